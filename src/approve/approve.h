/*
 * The questions of one run that wait for a person. One queue in the run's supervisor; the terminal
 * prompt and the control socket (run/serve_approve.c) list and answer through this interface.
 *
 * A pure state machine: it has no clock and does no I/O. The time comes in as an argument, and what
 * an answer has as its effect goes out through struct approve_ops.
 */
#ifndef WARD_APPROVE_APPROVE_H
#define WARD_APPROVE_APPROVE_H

#include "base/err.h"
#include "model/question.h"

#define APPROVE_PENDING_MAX 500
#define APPROVE_SECONDS_MAX (7 * 24 * 3600)

struct approve;

/* How a question ended. */
enum approve_end {
	APPROVE_ANSWERED,
	APPROVE_TIMEOUT,   /* no answer in time: denied */
	APPROVE_WITHDRAWN, /* the process that asked is gone, or the run has ended */
	APPROVE_LATE,      /* an answer to a question that had ended already: without effect */
	APPROVE_COVERED    /* an answer for the run or for a time covers it: it never waited */
};

struct approve_ops {
	/* Puts an answer into effect; seconds: of TIME. < 0: it could not, *e says why, and the
	 * question goes on to wait. A DENY always succeeds, and so does answer 0: time is up. */
	int (*apply)(void *context, const struct question *q, enum question_answer answer,
		     uint64_t seconds, struct ward_err *e);
	/* For the record; who: of ANSWERED and LATE, else NULL. */
	void (*asked)(void *context, const struct question *q);
	void (*ended)(void *context, const struct question *q, enum approve_end end,
		      enum question_answer answer, uint64_t seconds,
		      const struct question_who *who);
	/* The set of questions has changed, or the count of one of them. May be NULL; see
	 * approve_on_change(). */
	void (*changed)(void *context);
};

/* ops and context are borrowed. NULL: out of memory. */
must_check struct approve *approve_create(const struct approve_ops *ops, void *context,
					  uint64_t timeout_ms);
/* Ends every question as withdrawn. NULL is fine. */
void approve_destroy(struct approve *a);
/* Another function to call when the set has changed, beside ops->changed: the terminal prompt's.
 * NULL: none. It must not answer from within. */
void approve_on_change(struct approve *a, void (*changed)(void *context), void *context);

/* One request more. template: kind, host, port, exact, like, serial_first and all texts; id, times
 * and count are made here. An equal one (kind, host, port and exact) that waits already gets a
 * higher count. *ret_id is the question's; 0: an earlier answer covers it (approve_remember()), and
 * was put into effect. -ENOBUFS: too many wait, or too many came in a minute: the request is to be
 * denied. */
must_check int approve_ask(struct approve *a, const struct question *template, uint64_t now_ms,
			   uint64_t *ret_id);
/* One of the requests for it is gone; with the last one goes the question. template: as it was
 * asked. A request that an earlier question was about is not one of them. */
void approve_withdraw(struct approve *a, const struct question *template);
/* Later requests like q are let through as if they were answered with ONCE, until then (0: as long
 * as the run); for apply(). False: q has no `like`, or there are too many. */
must_check bool approve_remember(struct approve *a, const struct question *q, uint64_t until_ms);
/* Takes that back, for an answer that could not be put into effect. */
void approve_forget(struct approve *a, const struct question *q);
/* How many wait, and the one at that place, in the order of asking; borrowed until the set changes.
 * NULL: none. */
size_t approve_count(const struct approve *a);
const struct question *approve_get(const struct approve *a, size_t at);
const struct question *approve_find(const struct approve *a, uint64_t id);
/* Answers. The first answer counts: -EALREADY for one that had ended, -ENOENT for an id that there
 * never was, -EINVAL for an answer that there is not; other errors are apply's. A yes for more than
 * once answers the others like it that wait as well. */
must_check int approve_answer(struct approve *a, uint64_t id, enum question_answer answer,
			      uint64_t seconds, const struct question_who *who, struct ward_err *e);
/* When the first one times out, 0: none waits. And those that do by now. */
uint64_t approve_due_ms(const struct approve *a);
void approve_on_time(struct approve *a, uint64_t now_ms);

#endif
