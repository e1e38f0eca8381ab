/* Reading a journal's file line by line, and finding the files of a run. */
#ifndef WARD_AUDIT_LINES_H
#define WARD_AUDIT_LINES_H

#include "audit/place.h"
#include "base/buf.h"

struct lines {
	int fd;                /* owned */
	char name[PLACE_NAME]; /* below STATE/audit */
	uint64_t number;       /* of the line that was given last, from 1 */
	char *buffer;          /* owned */
	size_t at, len;
	bool ended;
};

/* Opens a file below STATE/audit. 0 or -errno. */
must_check int lines_open(struct lines *l, int audit_fd, const char *name);
void lines_close(struct lines *l);
/* The next line with its newline, borrowed until the next call; the last one may lack it. 1: there
 * is one; 0: the end, as it is now (it may be asked again); -EBADMSG: no line is that long. */
must_check int lines_next(struct lines *l, const char **ret_line, size_t *ret_len);

/* The files of a run's journal in their order, below STATE/audit; of the index where run is NULL.
 * *ret_live: its last one is still being written, or its writer was killed. */
void lines_files(int audit_fd, const char *run, struct strv *ret, bool *ret_live);
/* The ids of all runs that have a journal, sorted: the oldest first. */
must_check int lines_runs(int audit_fd, struct strv *ret, struct ward_err *e);

#endif
