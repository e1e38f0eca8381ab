/*
 * Answering in place of a person. In: a box whose policy asks, a function of the host program. Out:
 * answers at the box's supervisor, the same way `ward approve` gives them: the first answer to a
 * question counts, approvals.never holds, and what the function does not answer
 * in time is a no. It is called in the thread that calls ward_decide(), with no lock held, so other
 * threads may use the box meanwhile, and it may itself.
 */
#include <errno.h>
#include <string.h>

#include "api/process.h"
#include "base/io.h"
#include "control/client_approve.h"

/* Waits for another state of the questions than *seen. 1: there is one; 0: not in time. */
static int await_change(struct ward_box *b, uint32_t *seen, int left_ms, struct ward_err *e)
{
	struct client_answer said = { 0 };
	struct client c = NO_CLIENT;
	int r = box_reach(b, &c, e);

	if (r == 0)
		r = client_send(&c, CONTROL_QUESTION_WATCH, 0, (int32_t)*seen, 0, e);
	if (r == 0)
		r = client_receive(&c, &said, left_ms, e);
	client_close(&c);
	if (r == -ETIMEDOUT)
		return 0;
	if (r < 0)
		return r;
	if (said.message.op != CONTROL_OK || said.message.a < 0) {
		ward_fail(e, ENOTSUP, "the sandbox %s asks nothing", b->id);
		return ward_remedy(e, "set approvals.mode: ask, with a rule that has ask");
	}
	*seen = (uint32_t)said.message.a;
	return 1;
}

static enum ward_answer call(const struct question *q, ward_decide_fn *decide, void *context,
			     unsigned *ret_seconds)
{
	const char *details[QUESTION_DETAILS_MAX + 1] = { NULL };
	uint64_t now = io_now_ms(), left = q->deadline_ms > now ? q->deadline_ms - now : 0;
	struct ward_question asked = { .size = sizeof(asked),
				       .number = q->id,
				       .kind = question_kind_name(q->kind),
				       .subject = q->subject,
				       .host = q->host,
				       .rule = q->rule,
				       .process = q->process,
				       .details = details,
				       .port = q->port,
				       .count = q->count,
				       .left_ms = (unsigned)left };

	for (size_t i = 0; i < QUESTION_DETAILS_MAX && *q->details[i]; i++)
		details[i] = q->details[i];
	*ret_seconds = 0;
	return decide(context, &asked, ret_seconds);
}

/* 1: the answer counts; 0: it does not, or there is none. */
static int decide_one(struct ward_box *b, const struct question *q, ward_decide_fn *decide,
		      void *context, struct ward_err *e)
{
	static const enum question_answer answers[] = { [WARD_ANSWER_ONCE] = QUESTION_ONCE,
							[WARD_ANSWER_RUN] = QUESTION_RUN,
							[WARD_ANSWER_TIME] = QUESTION_TIME,
							[WARD_ANSWER_DENY] = QUESTION_DENY };
	unsigned seconds;
	enum ward_answer answer = call(q, decide, context, &seconds);
	struct client_said said = { .seconds = answer == WARD_ANSWER_TIME ? seconds : 0,
				    .via = QUESTION_VIA_LIBRARY };
	int r;

	if (answer == WARD_ANSWER_NONE)
		return 0;
	/* anything else that it returns is no yes */
	said.answer = (size_t)answer < ARRAY_LEN(answers) ? answers[answer] : QUESTION_DENY;
	r = client_answer_question(b->id, q->id, &said, e);
	return r == 0 ? 1 : r == -EALREADY || r == -ENOENT ? 0 : r;
}

/* Each question is handed to the function once. */
static bool is_new(struct ward_box *b, uint64_t id)
{
	bool new;

	pthread_mutex_lock(&b->lock);
	new = id > b->decided;
	if (new)
		b->decided = id;
	pthread_mutex_unlock(&b->lock);
	return new;
}

static int decide_all(struct ward_box *b, ward_decide_fn *decide, void *context, int *ret_count,
		      struct ward_err *e)
{
	struct client_questions all = { 0 };
	struct box_info info = { 0 };
	int r;

	memcpy(info.id, b->id, sizeof(info.id));
	r = client_box_questions(&info, &all, e);
	for (size_t i = 0; r >= 0 && i < all.len; i++) {
		if (!is_new(b, all.items[i].q.id))
			continue;
		r = decide_one(b, &all.items[i].q, decide, context, e);
		*ret_count += r > 0;
	}
	client_questions_clear(&all);
	return r < 0 ? r : 0;
}

int ward_decide(struct ward_box *b, ward_decide_fn *decide, void *context, int timeout_ms,
		struct ward_error *e)
{
	struct ward_err inner = { 0 };
	uint64_t began = io_now_ms();
	uint32_t seen = 0;
	int count = 0, r = 1;

	while (!count && r > 0) {
		r = await_change(b, &seen, api_time_left(timeout_ms, began, io_now_ms()), &inner);
		if (r > 0 && decide_all(b, decide, context, &count, &inner) < 0)
			r = -inner.code;
	}
	return r < 0 ? api_fail(e, &inner) : count;
}
