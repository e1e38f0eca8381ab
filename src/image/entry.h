/* Names of archive entries: what an image's author wrote, made safe or refused. Pure functions. */
#ifndef WARD_IMAGE_ENTRY_H
#define WARD_IMAGE_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

#define ENTRY_PATH_MAX 4096 /* with its NUL */
#define ENTRY_NAME_MAX 255
#define ENTRY_DEPTH_MAX 128

enum entry_kind {
	ENTRY_ROOT, /* "." or "/": the root itself */
	ENTRY_PLAIN,
	ENTRY_WHITEOUT, /* path is what it takes away */
	ENTRY_OPAQUE,   /* path is the directory whose older content it takes away ("": the root) */
	ENTRY_IGNORED   /* marks of other tools */
};

/* Cleans a name: no "." parts, no double or final slash. Returns NULL and fills path and *ret_kind,
 * or says what is wrong with it. */
must_check const char *entry_read(const char *bytes, size_t n, char path[ENTRY_PATH_MAX],
				  enum entry_kind *ret_kind);
/* The same for what a hard link leads to: only plain names. */
must_check const char *entry_read_link(const char *bytes, size_t n, char path[ENTRY_PATH_MAX]);
/* Where the last part of a clean path begins. */
const char *entry_base(const char *path);

#endif
