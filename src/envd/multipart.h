/*
 * multipart/form-data as a stream: bytes go in as they come, and come out as parts with their names
 * and their content, in constant memory. Pure, fuzzed (fuzz/multipart.c).
 */
#ifndef WARD_ENVD_MULTIPART_H
#define WARD_ENVD_MULTIPART_H

#include "base/buf.h"

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046 */
#define MULTIPART_HEAD_MAX 16384

enum multipart_state {
	MULTIPART_START,
	MULTIPART_HEAD,
	MULTIPART_BODY,
	MULTIPART_END,
	MULTIPART_BAD
};

struct multipart {
	enum multipart_state state;
	size_t boundary_len;
	char boundary[MULTIPART_BOUNDARY_MAX + 5]; /* with "\r\n--" in front */
	struct buf held;                           /* bytes that are not decided about yet; owned */
	size_t given;                              /* of held, handed out by the last call */
	char *name, *filename;                     /* of the part; owned; NULL: none given */
};

enum multipart_what {
	MULTIPART_MORE,
	MULTIPART_PART,
	MULTIPART_DATA,
	MULTIPART_PART_END,
	MULTIPART_DONE,
	MULTIPART_WRONG
};

/* Begins with the value of Content-Type. False: it is no multipart/form-data with a boundary. */
must_check bool multipart_init(struct multipart *m, const char *content_type);
void multipart_free(struct multipart *m);
/* Adds bytes as they came. */
void multipart_feed(struct multipart *m, const void *bytes, size_t n);
/* What comes next: MULTIPART_DATA has *ret and *ret_n, valid until the next call. */
enum multipart_what multipart_next(struct multipart *m, const char **ret, size_t *ret_n);

#endif
