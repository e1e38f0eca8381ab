/* ward-scan: what its files share. */
#ifndef WARD_SCAN_SCAN_H
#define WARD_SCAN_SCAN_H

#include "base/json.h"
#include "scan/allow.h"
#include "scan/detect.h"

struct scan_options {
	bool json, sarif, redact, pii, quiet, tracked;
	const char *severity, *allow, *baseline, *write_baseline;
	const char *mode;  /* stream: block, redact, log or silent */
	const char *since; /* look: nanoseconds of the real-time clock */
	int *index_fds;    /* of each word, with tracked; -1: none; owned by main.c */
	char **words;      /* borrowed, NULL-terminated */
	size_t count;
};

/* The report, written as it comes. */
struct report {
	const struct scan_options *options; /* borrowed */
	struct allow allow;
	enum severity least;
	const char *path; /* of the file that is being read; borrowed */
	struct buf out, baseline;
	struct json json;
	uint64_t files, bytes, findings, allowed, failures;
	int failed; /* -errno of standard output */
};

void report_begin(struct report *r);
/* One hit of a detector whose context is the report. */
void report_hit(void *ctx, const struct detect_hit *hit);
/* Something could not be read: the report is not complete. */
void report_failure(struct report *r, const char *path, const char *why);
/* Writes the end and the summary; the exit code. */
int report_end(struct report *r);
/* The table of rules. */
int report_rules(bool json);

/* Scans the open files and directories of the words (-1: standard input). */
must_check int files_scan(struct report *r, struct detector *d, const int *fds, struct ward_err *e);

/* Scans one open file. */
must_check int files_scan_fd(struct report *r, struct detector *d, int fd, const char *path,
			     struct ward_err *e);

/* tracked.c: the index of a work tree, or -1; the files in it. */
int tracked_open(int top_fd);
must_check int tracked_scan(struct report *r, struct detector *d, int top_fd, int index_fd,
			    const char *top, struct ward_err *e);

/* stream.c, for the supervisor: descriptors that it is started with. */
enum { SCAN_FD_IN = 3, SCAN_FD_OUT, SCAN_FD_SAY };
must_check int stream_run(const struct scan_options *o, struct ward_err *e);

/* look.c, for the supervisor and for ward diff and apply. */
enum { LOOK_FD_SAY = 3, LOOK_FD_LIST, LOOK_FD_NEW, LOOK_FD_OLD };
must_check int look_run(const struct scan_options *o, struct ward_err *e);

#endif
