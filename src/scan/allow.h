/* What ward scan does not count: the lines of an allow list or a baseline. */
#ifndef WARD_SCAN_ALLOW_H
#define WARD_SCAN_ALLOW_H

#include "base/buf.h"

#define FINGERPRINT_DIGITS 16

struct allow_line {
	char fingerprint[FINGERPRINT_DIGITS + 1]; /* "": any */
	int rule;                                 /* -1: any */
	char *glob;                               /* of the path; NULL: any; owned */
};

struct allow {
	struct allow_line *lines; /* owned */
	size_t count, cap;
};

void allow_free(struct allow *a);
/* Adds the lines of a file; name is for messages. A pure function. */
must_check int allow_read(struct allow *a, const char *name, const char *text, size_t n,
			  struct ward_err *e);
/* Whether a line covers the finding. A pure function. */
bool allow_covers(const struct allow *a, const char *fingerprint, int rule, const char *path);
/* Whether path matches a glob: * and ? within a name, ** over any number of them. A glob without a
 * slash is compared with the last name. A pure function. */
bool allow_glob(const char *glob, const char *path);

#endif
