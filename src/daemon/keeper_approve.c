/*
 * Questions of a sandbox, for the keeper. In: what its supervisor holds for an answer. Out: JSON of
 * libward's texts, which are escaped already and are written as strings; one answer, to one
 * question, as the front passes it on. Run by the keeper.
 */
#include <errno.h>

#include "base/json.h"
#include "daemon/keeper.h"

#define WAIT_MS 50 /* where a sandbox has asked nothing yet */

struct deciding {
	struct work *w;
	struct json out;
};

static void show(struct deciding *d, const struct ward_question *q)
{
	struct json *j = &d->out;
	char id[SANDBOX_ID + 32];

	snprintf(id, sizeof(id), "%s:%llu", d->w->q.id, (unsigned long long)q->number);
	json_begin_object(j, NULL);
	json_string(j, "id", id);
	json_string(j, "sandboxID", d->w->q.id);
	json_string(j, "kind", q->kind);
	json_string(j, "subject", q->subject);
	json_string(j, "host", q->host);
	json_uint(j, "port", q->port);
	json_string(j, "rule", q->rule);
	json_string(j, "process", q->process);
	json_begin_array(j, "details");
	for (const char *const *at = q->details; *at; at++)
		json_string(j, NULL, *at);
	json_end_array(j);
	json_uint(j, "waiting", q->count);
	json_uint(j, "secondsLeft", q->left_ms / 1000);
	json_end_object(j);
}

static enum ward_answer look(void *context, const struct ward_question *q, unsigned *ret_seconds)
{
	struct deciding *d = context;

	(void)ret_seconds;
	show(d, q);
	return WARD_ANSWER_NONE;
}

static enum ward_answer give(void *context, const struct ward_question *q, unsigned *ret_seconds)
{
	const struct deciding *d = context;
	const struct keeper_answer *a = &d->w->q.answer;

	if (q->number != a->number)
		return WARD_ANSWER_NONE;
	*ret_seconds = a->seconds;
	return (enum ward_answer)a->answer;
}

int keeper_questions(struct work *w, struct ward_box *b)
{
	struct deciding d = { .w = w, .out = { .out = &w->text, .depth = 1 } };
	int r = ward_decide(b, look, &d, WAIT_MS, &w->e);

	if (w->text.len >= KEEPER_TEXT_MAX)
		return keeper_bad(w, E2BIG, "too many questions");
	return r == -ENOTSUP ? 0 : r;
}

int keeper_give_answer(struct work *w, struct ward_box *b)
{
	struct deciding d = { .w = w };
	int r = ward_decide(b, give, &d, WAIT_MS, &w->e);

	return r == 0 ? keeper_bad(w, ENOENT, "no such question") : r;
}
