/*
 * The files of a sandbox as one stream of bytes, which ward-envd writes in one sandbox and reads in
 * another one; what is between them passes it on and reads nothing of it. A program of the first
 * sandbox may have written it, so the reader believes nothing; what it makes, it makes with the
 * rights of the second one. Pure functions, fuzzed (fuzz/archive.c).
 */
#ifndef WARD_ENVD_ARCHIVE_H
#define WARD_ENVD_ARCHIVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCHIVE_HEADER 20
#define ARCHIVE_BYTES 65536 /* most behind a header; an extended attribute is the longest */
#define ARCHIVE_ROOTS 3     /* the home, /tmp, and the home of "root" where there is one */

enum archive_type {
	ARCHIVE_BEGIN = 1, /* the first one; number: the version */
	ARCHIVE_DIR,       /* path; "" is the root itself */
	ARCHIVE_FILE,      /* path; what it has follows */
	ARCHIVE_DATA,      /* of that file; number: where */
	ARCHIVE_SIZE,      /* of that file, behind its data; number: bytes */
	ARCHIVE_LINK,      /* path, NUL, what it says */
	ARCHIVE_HARD,      /* path, NUL, path of a file that was before, of the same root */
	ARCHIVE_FIFO,      /* path */
	ARCHIVE_ATTRIBUTE, /* of the file before: name, NUL, value */
	ARCHIVE_END,       /* the last one: without it the archive was cut off */
	ARCHIVE_TYPES
};

#define ARCHIVE_VERSION 1

struct archive_record {
	uint8_t type, root;
	uint16_t mode;  /* permissions, never set-id */
	uint32_t bytes; /* behind the header */
	int64_t number; /* seconds of the last change, where nothing else is said above */
	uint32_t nanos;
};

void archive_write(uint8_t out[ARCHIVE_HEADER], const struct archive_record *r);
/* False: no archive has such a record. */
bool archive_read(const uint8_t in[ARCHIVE_HEADER], struct archive_record *ret);
/* Reads what stands behind the header of a record with names: *ret_path, and for a LINK, HARD and
 * ATTRIBUTE the second part. bytes must have a NUL behind its n bytes. False: it has not that form,
 * or a path that is not plainly beneath its root. */
bool archive_names(const struct archive_record *r, const char *bytes, const char **ret_path,
		   const char **ret_second, size_t *ret_second_bytes);

#endif
