/*
 * The queue of questions. In: requests that wait, answers, the time. Out: calls of struct
 * approve_ops: the effect of an answer, and what goes on record. A pure state machine in the run's
 * supervisor: it has no clock, does no I/O and keeps everything in memory, so with the supervisor
 * all questions end, and the sandbox too.
 *
 * Invariants: a question leaves the queue exactly once, with its first answer, its deadline, or its
 * last request. Nothing but an answer that was put into effect is a yes. Ids are never used twice,
 * so that an answer cannot hit a question that was not shown. At most APPROVE_PENDING_MAX wait, and
 * at most PER_MINUTE come in a minute: what is beyond is refused, not queued.
 */
#include "approve/approve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

#define PER_MINUTE 1000
#define MINUTE_MS 60000
#define ENDED_MAX 64 /* kept, so that a late answer is told why */

struct approve {
	const struct approve_ops *ops; /* borrowed */
	void *context;
	void (*changed)(void *context);
	void *changed_context;
	uint64_t timeout_ms, last_id;
	uint64_t minute_ms; /* when the current one began */
	uint32_t in_minute;
	size_t count, ended_count;
	struct question *pending[APPROVE_PENDING_MAX]; /* owned; in the order of asking */
	struct question *ended[ENDED_MAX];             /* owned; a ring */
};

struct approve *approve_create(const struct approve_ops *ops, void *context, uint64_t timeout_ms)
{
	struct approve *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->ops = ops;
	a->context = context;
	a->timeout_ms = timeout_ms;
	return a;
}

void approve_on_change(struct approve *a, void (*changed)(void *context), void *context)
{
	a->changed = changed;
	a->changed_context = context;
}

static void tell_changed(struct approve *a)
{
	if (a->ops->changed)
		a->ops->changed(a->context);
	if (a->changed)
		a->changed(a->changed_context);
}

/* Out of the queue, to those that have ended. */
static struct question *take_out(struct approve *a, size_t at)
{
	struct question *q = a->pending[at], **place = &a->ended[a->ended_count++ % ENDED_MAX];

	memmove(&a->pending[at], &a->pending[at + 1], (a->count - at - 1) * sizeof(a->pending[0]));
	a->count--;
	free(*place);
	*place = q;
	return q;
}

void approve_destroy(struct approve *a)
{
	if (!a)
		return;
	a->changed = NULL; /* who listens may be gone */
	while (a->count)
		a->ops->ended(a->context, take_out(a, 0), APPROVE_WITHDRAWN, QUESTION_DENY, 0,
			      NULL);
	for (size_t i = 0; i < ENDED_MAX; i++)
		free(a->ended[i]);
	free(a);
}

static bool is_equal(const struct question *q, unsigned kind, const char *host, uint16_t port)
{
	return q->kind == kind && q->port == port && strcmp(q->host, host) == 0;
}

static bool is_too_often(struct approve *a, uint64_t now_ms)
{
	if (now_ms - a->minute_ms >= MINUTE_MS) {
		a->minute_ms = now_ms;
		a->in_minute = 0;
	}
	return a->in_minute >= PER_MINUTE;
}

int approve_ask(struct approve *a, const struct question *template, uint64_t now_ms,
		uint64_t *ret_id)
{
	struct question *q;

	for (size_t i = 0; i < a->count; i++) {
		q = a->pending[i];
		if (!is_equal(q, template->kind, template->host, template->port))
			continue;
		if (q->count < UINT32_MAX)
			q->count++;
		if (template->serial_first < q->serial_first)
			q->serial_first = template->serial_first;
		if (template->serial_first > q->serial_last)
			q->serial_last = template->serial_first;
		*ret_id = q->id;
		tell_changed(a);
		return 0;
	}
	if (a->count == APPROVE_PENDING_MAX || is_too_often(a, now_ms))
		return -ENOBUFS;
	q = malloc(sizeof(*q));
	if (!q)
		return -ENOBUFS;
	*q = *template;
	q->id = ++a->last_id;
	q->count = 1;
	q->serial_last = q->serial_first;
	q->asked_ms = now_ms;
	q->deadline_ms = now_ms + a->timeout_ms;
	a->pending[a->count++] = q;
	a->in_minute++;
	*ret_id = q->id;
	a->ops->asked(a->context, q);
	tell_changed(a);
	return 0;
}

void approve_withdraw(struct approve *a, const char *host, uint16_t port, uint64_t serial)
{
	for (size_t i = 0; i < a->count; i++) {
		struct question *q = a->pending[i];

		if (!is_equal(q, QUESTION_CONNECT, host, port) || serial < q->serial_first ||
		    serial > q->serial_last)
			continue;
		if (--q->count == 0)
			a->ops->ended(a->context, take_out(a, i), APPROVE_WITHDRAWN, QUESTION_DENY,
				      0, NULL);
		tell_changed(a);
		return;
	}
}

size_t approve_count(const struct approve *a)
{
	return a->count;
}

const struct question *approve_get(const struct approve *a, size_t at)
{
	return at < a->count ? a->pending[at] : NULL;
}

const struct question *approve_find(const struct approve *a, uint64_t id)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->pending[i]->id == id)
			return a->pending[i];
	return NULL;
}

/* An answer that comes too late has no effect, but goes on record. */
static int answer_ended(struct approve *a, uint64_t id, enum question_answer answer,
			uint64_t seconds, const struct question_who *who, struct ward_err *e)
{
	for (size_t i = 0; i < ENDED_MAX; i++)
		if (a->ended[i] && a->ended[i]->id == id)
			a->ops->ended(a->context, a->ended[i], APPROVE_LATE, answer, seconds, who);
	if (!id || id > a->last_id) {
		ward_fail(e, ENOENT, "question %" PRIu64 ": there is none", id);
		return ward_remedy(e, "see ward approve");
	}
	ward_fail(e, EALREADY,
		  "question %" PRIu64 ": it was answered already, or nobody waits for it any more",
		  id);
	return ward_remedy(e, "ward audit show --kind approval shows by whom");
}

int approve_answer(struct approve *a, uint64_t id, enum question_answer answer, uint64_t seconds,
		   const struct question_who *who, struct ward_err *e)
{
	size_t at = 0;
	int r;

	if (answer < QUESTION_ONCE || answer >= QUESTION_ANSWERS ||
	    (answer == QUESTION_TIME) != (seconds > 0) || seconds > APPROVE_SECONDS_MAX)
		return ward_fail(e, EINVAL, "question %" PRIu64 ": not an answer", id);
	while (at < a->count && a->pending[at]->id != id)
		at++;
	if (at == a->count)
		return answer_ended(a, id, answer, seconds, who, e);
	r = a->ops->apply(a->context, a->pending[at], answer, seconds, e);
	if (r < 0 && answer != QUESTION_DENY)
		return r;
	a->ops->ended(a->context, take_out(a, at), APPROVE_ANSWERED, answer, seconds, who);
	tell_changed(a);
	return 0;
}

uint64_t approve_due_ms(const struct approve *a)
{
	/* all wait equally long: the first that was asked is the first to end */
	return a && a->count ? a->pending[0]->deadline_ms : 0;
}

void approve_on_time(struct approve *a, uint64_t now_ms)
{
	struct ward_err e = { 0 };
	bool some = false;

	while (a && a->count && now_ms >= a->pending[0]->deadline_ms) {
		struct question *q = take_out(a, 0);

		(void)a->ops->apply(a->context, q, 0, 0, &e);
		a->ops->ended(a->context, q, APPROVE_TIMEOUT, QUESTION_DENY, 0, NULL);
		some = true;
	}
	if (some)
		tell_changed(a);
}
