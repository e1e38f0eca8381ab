/*
 * The queue of questions. In: requests that wait, answers, the time. Out: calls of struct
 * approve_ops: the effect of an answer, and what goes on record. A pure state machine in the run's
 * supervisor: it has no clock, does no I/O and keeps everything in memory, so with the supervisor
 * all questions end, and the sandbox too.
 *
 * Invariants: a question leaves the queue exactly once, with its first answer, its deadline, or its
 * last request. Nothing but an answer that was put into effect is a yes, for what waits and, where
 * it was for the run or for a time, for what is like it (struct covered). Ids are never used twice,
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
#define ENDED_MAX 64 /* kept, so that a late answer gets the reason */
#define COVERED_MAX 1024

/* An answer for the run or for a time. */
struct covered {
	uint8_t kind;
	uint16_t port;
	uint64_t until_ms; /* 0: as long as the run */
	uint8_t like[sizeof(((struct question *)0)->like)];
	char host[sizeof(((struct question *)0)->host)];
};

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
	struct covered *covered;                       /* owned; NULL: none */
	size_t covered_count;
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
	free(a->covered);
	free(a);
}

static bool is_equal(const struct question *q, const struct question *other)
{
	return q->kind == other->kind && q->port == other->port &&
	       strcmp(q->host, other->host) == 0 &&
	       memcmp(q->exact, other->exact, sizeof(q->exact)) == 0;
}

/* -- answers that cover what comes later */

static bool has_like(const struct question *q)
{
	static const uint8_t none[sizeof(q->like)];

	return memcmp(q->like, none, sizeof(none)) != 0;
}

static bool is_covered_by(const struct covered *c, const struct question *q)
{
	return c->kind == q->kind && c->port == q->port && strcmp(c->host, q->host) == 0 &&
	       memcmp(c->like, q->like, sizeof(c->like)) == 0;
}

bool approve_remember(struct approve *a, const struct question *q, uint64_t until_ms)
{
	struct covered *c = NULL;

	if (!has_like(q))
		return false;
	if (!a->covered)
		a->covered = calloc(COVERED_MAX, sizeof(*a->covered));
	if (!a->covered)
		return false;
	for (size_t i = 0; i < a->covered_count && !c; i++)
		if (is_covered_by(&a->covered[i], q))
			c = &a->covered[i];
	if (!c && a->covered_count == COVERED_MAX)
		return false;
	if (!c)
		c = &a->covered[a->covered_count++];
	*c = (struct covered){ .kind = q->kind, .port = q->port, .until_ms = until_ms };
	memcpy(c->like, q->like, sizeof(c->like));
	memcpy(c->host, q->host, sizeof(c->host));
	return true;
}

void approve_forget(struct approve *a, const struct question *q)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->covered_count; i++)
		if (!is_covered_by(&a->covered[i], q))
			a->covered[kept++] = a->covered[i];
	a->covered_count = kept;
}

/* What has run out is forgotten. */
static bool is_covered(struct approve *a, const struct question *q, uint64_t now_ms)
{
	bool found = false;
	size_t kept = 0;

	for (size_t i = 0; i < a->covered_count; i++) {
		if (a->covered[i].until_ms && now_ms >= a->covered[i].until_ms)
			continue;
		found |= has_like(q) && is_covered_by(&a->covered[i], q);
		a->covered[kept++] = a->covered[i];
	}
	a->covered_count = kept;
	return found;
}

/* False: it could not be put into effect, and a person is asked. */
static bool let_through(struct approve *a, const struct question *template, uint64_t now_ms)
{
	struct question q = *template;
	struct ward_err e = { 0 };

	if (!a->covered_count || !is_covered(a, template, now_ms))
		return false;
	q.id = ++a->last_id;
	q.count = 1;
	q.serial_last = q.serial_first;
	q.asked_ms = q.deadline_ms = now_ms;
	if (a->ops->apply(a->context, &q, QUESTION_ONCE, 0, &e) < 0)
		return false;
	a->ops->ended(a->context, &q, APPROVE_COVERED, QUESTION_ONCE, 0, NULL);
	return true;
}

/* Others like it that wait. */
static void answer_alike(struct approve *a, const struct question *answered,
			 enum question_answer answer, uint64_t seconds,
			 const struct question_who *who)
{
	const struct question like = *answered; /* it may go out of the ring */
	struct ward_err e = { 0 };

	for (size_t i = 0; i < a->count;) {
		struct question *q = a->pending[i];

		if (q->kind != like.kind || q->port != like.port ||
		    strcmp(q->host, like.host) != 0 ||
		    memcmp(q->like, like.like, sizeof(q->like)) != 0 ||
		    a->ops->apply(a->context, q, QUESTION_ONCE, 0, &e) < 0)
			i++;
		else
			a->ops->ended(a->context, take_out(a, i), APPROVE_ANSWERED, answer, seconds,
				      who);
	}
}

/* -- questions */

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

	*ret_id = 0;
	if (let_through(a, template, now_ms))
		return 0;
	for (size_t i = 0; i < a->count; i++) {
		q = a->pending[i];
		if (!is_equal(q, template))
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

void approve_withdraw(struct approve *a, const struct question *template)
{
	uint64_t serial = template->serial_first;

	for (size_t i = 0; i < a->count; i++) {
		struct question *q = a->pending[i];

		if (!is_equal(q, template) || serial < q->serial_first || serial > q->serial_last)
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
		ward_fail(e, ENOENT, "there is no question %" PRIu64, id);
		return ward_remedy(e, "ward approve lists those that wait");
	}
	ward_fail(e, EALREADY,
		  "question %" PRIu64 ": it was answered already, or its request has ended", id);
	return ward_remedy(e, "ward audit show --kind approval shows by whom");
}

int approve_answer(struct approve *a, uint64_t id, enum question_answer answer, uint64_t seconds,
		   const struct question_who *who, struct ward_err *e)
{
	struct question *q;
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
	q = take_out(a, at);
	a->ops->ended(a->context, q, APPROVE_ANSWERED, answer, seconds, who);
	if (answer != QUESTION_ONCE && answer != QUESTION_DENY && has_like(q))
		answer_alike(a, q, answer, seconds, who);
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
