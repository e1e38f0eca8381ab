/* The user's own chain: which journals there are and how far, and what was done outside any run. */
#ifndef WARD_AUDIT_INDEX_H
#define WARD_AUDIT_INDEX_H

#include "audit/place.h"

#define INDEX_SEGMENT_MAX (64 << 20) /* then it goes on in a new file */

/* Appends events under the index's lock. Their time is now where they have none. What a killed
 * writer left half written is removed first, and reported. 0 or -errno. */
must_check int index_append(int audit_fd, struct ward_event *events, size_t count,
			    struct ward_err *e);

/* The same with an event that is made once the lock is held: fill gets the chain as it is. A
 * negative return of fill is handed on. done is called once the event is written, still under the
 * lock. */
must_check int index_append_with(int audit_fd,
				 int (*fill)(const struct chain *c, void *with,
					     struct ward_event *ret, struct ward_err *e),
				 void (*done)(int audit_fd, void *with), void *with,
				 struct ward_err *e);

/* For verbs: reports something that belongs to no run that goes on, or to one that has ended
 * (v->run). Nothing is done where the user keeps no journal; a failure is the caller's to tell. */
must_check int index_report(struct ward_event *v, struct ward_err *e);

#endif
