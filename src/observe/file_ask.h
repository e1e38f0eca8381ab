/*
 * Files outside of the sandbox's view that a person is asked about (filesystem.ask). An open of one
 * waits at the seccomp listener; with a yes it is answered with a descriptor of a sealed copy, made
 * by the supervisor of the very file that was shown.
 */
#ifndef WARD_OBSERVE_FILE_ASK_H
#define WARD_OBSERVE_FILE_ASK_H

#include <limits.h>

#include "base/err.h"
#include "observe/observe.h"

#define FILE_ASK_BYTES_MAX (64 * 1024 * 1024) /* of one file */

struct file_ask;
struct plan;
struct result;

/* One open that waits, or does not any more. */
struct file_asked {
	char path[PATH_MAX]; /* of the host, without links */
	char exe[PATH_MAX];  /* who opens it; "": unknown */
	uint64_t bytes;      /* its size */
	uint64_t serial;     /* of this open */
	uint8_t exact[32];   /* of the path and the file there */
	uint8_t like[32];    /* of the path */
};
/* < 0: nobody can be asked. */
typedef int file_ask_fn(void *context, bool waits, const struct file_asked *asked);

/* NULL: nothing is asked about, or out of memory (*ret_failed). Borrows the plan and the
 * listener. */
struct file_ask *file_ask_create(const struct plan *p, int listener_fd, bool *ret_failed);
/* Withdraws what waits. NULL is fine. */
void file_ask_destroy(struct file_ask *f);
void file_ask_on(struct file_ask *f, file_ask_fn *asked, void *context);
/* Whether the call is an open of such a file. *ret_error: 0, it waits; else what it gets at
 * once. */
bool file_ask_take(struct file_ask *f, const struct seccomp_notif *q, const struct observation *o,
		   struct result *r, int *ret_error);
/* Answers what waits for this file and is not younger than serial. */
must_check int file_ask_answer(struct file_ask *f, const uint8_t exact[32], uint64_t serial,
			       bool yes, struct ward_err *e);
/* When to look for callers that have gone; 0: none waits. And looks. NULL is fine. */
uint64_t file_ask_due_ms(const struct file_ask *f);
void file_ask_on_time(struct file_ask *f, uint64_t now_ms);

#endif
