/* Files between the host and a sandbox: the outer side of ward cp. */
#ifndef WARD_CONTROL_COPY_H
#define WARD_CONTROL_COPY_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/progress.h"
#include "protocol/guest.h"

#define COPY_ERRORS_KEPT 100

/* What a copy came to. */
struct copy_report {
	uint64_t files, bytes;
	struct strv errors; /* "path: reason", the first ones */
	uint64_t error_count;
	struct progress *progress; /* borrowed; NULL: not shown */
	const char *root;          /* how errors name what is copied as a whole; NULL: "." */
};

void copy_report_clear(struct copy_report *r);
/* Notes that something at path was not copied, and why. */
__attribute__((format(printf, 3, 4))) void copy_note(struct copy_report *r, const char *path,
						     const char *why, ...);

/* Whether a record's head, and the name behind it, may be believed: a known type, sizes that fit, a
 * name that stays beneath. Pure functions over what a sandbox says. */
must_check int copy_check_head(const void *bytes, size_t n, struct guest_copy *ret_head);
must_check int copy_check_name(const char *name, size_t n);
/* Whether a link with this target, found at path (both relative to what is copied), stays within
 * it. A pure function. */
bool copy_link_stays(const char *path, const char *target, size_t target_len);

/* Opens what shall be copied in. No link is followed that stands in one of `writable`, the
 * directories that the sandbox can write: it could lead to anything of the user's. */
must_check int copy_open_source(const char *path, const struct strv *writable, struct ward_err *e);
/* Writes the tree at source_fd to out_fd as records. */
must_check int copy_send(int out_fd, int source_fd, struct copy_report *report, struct ward_err *e);

/* Where copies go to: an open directory and a name in it. */
struct copy_place {
	int dir_fd;
	char name[256];
};
/* Finds it: path itself, or path/base where path is a directory. Through no link in `writable`. */
must_check int copy_open_place(const char *path, const char *base, const struct strv *writable,
			       struct copy_place *ret_place, struct ward_err *e);
/* Makes files of the records that come from in_fd, which a sandbox wrote: nothing outside of the
 * place is touched, no link is followed, no mode is more than permissions. */
must_check int copy_receive(int in_fd, const struct copy_place *place, struct copy_report *report,
			    struct ward_err *e);
/* The same, and what a sweep would take out of a workspace is refused by the name that it would
 * have at the place (guard_gate.h): it is named in the report and does not get there. policy may be
 * NULL. Whatever ends the process, nothing stays there but what was admitted (copy_stage.c). */
struct gate_policy;
must_check int copy_receive_judged(int in_fd, const struct copy_place *place,
				   const struct gate_policy *policy, struct copy_report *report,
				   struct ward_err *e);
/* Reads what the inner side says after a copy into the sandbox: its error, if there was one. */
must_check int copy_receive_end(int in_fd, struct ward_err *e);

#endif
