/*
 * Looking for secrets in what the command prints (credentials.scan_output): ward-scan stands
 * between the supervisor and the caller's descriptors.
 */
#ifndef WARD_RUN_OUTPUT_SCAN_H
#define WARD_RUN_OUTPUT_SCAN_H

#include "model/plan.h"
#include "model/result.h"

#define OUTPUT_SCANS 3 /* standard output, standard error, the terminal */

struct output_scan {
	size_t count;
	struct one_scan {
		pid_t pid;
		int say_fd; /* owned: what it reports at its end */
		unsigned mode;
		const char *place;
	} all[OUTPUT_SCANS];
	uint64_t unseen; /* bytes of a terminal that it was too slow for */
};

/* Whether output is looked through. */
bool output_scan_is_on(const struct plan *p);
/* Starts one that passes on to to_fd (-1: a terminal, it only looks). *ret_fd is the pipe to write
 * into; the caller closes it when nothing more comes. */
must_check int output_scan_begin(struct output_scan *s, const struct plan *p, int to_fd,
				 const char *place, int *ret_fd, struct ward_err *e);
/* All pipes are closed: waits until everything is passed on, at most until until_ms (io_now_ms). 1:
 * stop_fd became readable before that. */
int output_scan_wait(struct output_scan *s, uint64_t until_ms, int stop_fd);
/* Behind that: reports what was found. */
void output_scan_end(struct output_scan *s, struct result *r);

#endif
