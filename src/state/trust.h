/* Which contents of policy files the user has accepted. */
#ifndef WARD_STATE_TRUST_H
#define WARD_STATE_TRUST_H

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

/* 1 if this content was accepted, 0 if not, or -errno with *e. */
must_check int trust_has(const char hex[SHA256_HEX], struct ward_err *e);
/* The same, and keeps the text, so that trust_last() can show what has changed since. */
must_check int trust_keep(const char hex[SHA256_HEX], const char *path, const struct buf *text,
			  struct ward_err *e);
/* The text that was accepted last for a file at this path. 1: there is one, 0: none, or -errno with
 * *e. */
must_check int trust_last(const char *path, struct buf *ret_text, struct ward_err *e);
/* Notes that ward itself has written this content to a policy file, at a path without links, on a
 * person's word: the sweep of a run under way takes a new one for the agent's otherwise. */
must_check int trust_note_written(const char *path, const struct buf *text, struct ward_err *e);
/* Whether the file is that of such a note, which is not older than since_ns (of the clock that
 * stamps files): the same content, this user's own, no other name. */
bool trust_is_written(const char *path, int dir_fd, const char *name, uint64_t since_ns);
/* Accepts the content; path is noted for the reader of the state directory. */
must_check int trust_add(const char hex[SHA256_HEX], const char *path, struct ward_err *e);

#endif
