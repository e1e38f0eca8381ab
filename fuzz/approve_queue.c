/*
 * Fuzzes the queue of questions: requests, answers, withdrawals and time in any order. Nothing is
 * let through without a person's yes: neither one for this question, nor an earlier one for the run
 * or for a time that is not over, about what is like it. Every question ends once.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "approve/approve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define KINDS 8 /* of requests; two of each are like each other */

struct model {
	struct approve *a;
	uint64_t now, until[KINDS]; /* yes until then; UINT64_MAX: as long as the run */
	unsigned asked, ended;
	enum question_answer answer; /* a person gives it now */
};

static int apply(void *context, const struct question *q, enum question_answer answer,
		 uint64_t seconds, struct ward_err *e)
{
	struct model *m = context;
	unsigned like = q->like[0];

	(void)e;
	if (answer == 0 || answer == QUESTION_DENY)
		return 0;
	assert(m->answer ? m->answer != QUESTION_DENY : like && m->now < m->until[like]);
	if (answer != QUESTION_ONCE && like) {
		uint64_t until = seconds ? m->now + seconds * 1000 : 0;

		if (!approve_remember(m->a, q, until))
			return -ENOSPC;
		m->until[like] = until ? until : UINT64_MAX;
	}
	return 0;
}

static void on_asked(void *context, const struct question *q)
{
	(void)q;
	((struct model *)context)->asked++;
}

static void on_ended(void *context, const struct question *q, enum approve_end end,
		     enum question_answer answer, uint64_t seconds, const struct question_who *who)
{
	struct model *m = context;

	(void)q;
	(void)answer;
	(void)seconds;
	m->ended += end == APPROVE_ANSWERED || end == APPROVE_TIMEOUT || end == APPROVE_WITHDRAWN;
	assert(!who == (end != APPROVE_ANSWERED && end != APPROVE_LATE));
}

static struct question about(uint8_t byte)
{
	struct question q = { .kind = QUESTION_REQUEST, .port = 443, .host = "a.example" };

	q.exact[0] = byte % (2 * KINDS);
	q.like[0] = byte % KINDS;
	q.serial_first = byte / 32;
	return q;
}

static void step(struct model *m, uint8_t op, uint8_t arg)
{
	static const struct question_who who = { .uid = 1 };
	struct question q = about(arg);
	struct ward_err e = { 0 };
	uint64_t id;

	switch (op % 4) {
	case 0:
		(void)!approve_ask(m->a, &q, m->now, &id);
		break;
	case 1:
		approve_withdraw(m->a, &q);
		break;
	case 2:
		m->answer = (enum question_answer)(op / 4 % (QUESTION_ANSWERS + 1));
		(void)!approve_answer(m->a, arg, m->answer,
				      m->answer == QUESTION_TIME ? 1 + op / 64 : 0, &who, &e);
		m->answer = 0;
		break;
	default:
		m->now += arg * 10;
		approve_on_time(m->a, m->now);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct approve_ops ops = { .apply = apply,
						.asked = on_asked,
						.ended = on_ended };
	struct model m = { .now = 1 };

	m.a = approve_create(&ops, &m, 1000);
	assert(m.a);
	for (size_t i = 0; i + 1 < n; i += 2) {
		step(&m, data[i], data[i + 1]);
		assert(m.asked == m.ended + approve_count(m.a));
	}
	approve_destroy(m.a);
	assert(m.asked == m.ended);
	return 0;
}
