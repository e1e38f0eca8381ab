/* The file of --report. */
#ifndef WARD_CLI_REPORT_H
#define WARD_CLI_REPORT_H

#include "base/buf.h"

struct report {
	int dir_fd; /* owned; -1: no report is wanted */
	char *name; /* owned; of the file in it */
};

#define NO_REPORT ((struct report){ .dir_fd = -1 })

/* Opens the directory of path and makes sure that the file can be written; NULL: no report. Nothing
 * is left there yet. */
must_check int report_open(struct report *r, const char *path, struct ward_err *e);
/* Writes text and a newline as the file, whole or not at all, mode 0600. Nothing to do without a
 * report. */
must_check int report_write(const struct report *r, const struct buf *text, struct ward_err *e);
void report_close(struct report *r);

#endif
