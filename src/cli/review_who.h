/* Who made a change, by the journal of its run. */
#ifndef WARD_CLI_REVIEW_WHO_H
#define WARD_CLI_REVIEW_WHO_H

#include "cli/review.h"

struct who_writer {
	char *path; /* relative to the workspace; owned, likewise below */
	char *exe, *change, *seen;
	struct strv argv, hosts;
	uint64_t pid;
};

struct who {
	struct who_writer *items; /* in the order of the journal; owned */
	size_t len, cap;
};

/* Reads the journal of the review's run. A run that was not recorded at audit.level: full is an
 * error. */
must_check int who_read(const struct review *r, struct who *ret, struct ward_err *e);
void who_clear(struct who *w);
/* Who has changed this path, as lines for people, as a member "who" of an object, and as a line
 * that git takes for a trailer. */
void who_put(const struct who *w, const char *path, struct buf *out);
void who_json(const struct who *w, const char *path, struct json *j);
void who_trailer(const struct who *w, const char *path, struct buf *out);

#endif
