/*
 * Questions of a run in the foreground, where its operator sits. In: the queue (approve/approve.h).
 * Out: the bar on the terminal (console_ask.c), or, where that cannot be shown, a line on standard
 * error that says what waits and how it is answered. Runs in the supervisor; a standard error that
 * takes nothing now gets nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "run/box_internal.h"
#include "term/prompt.h"

static const struct question *first(void *context, size_t *ret_count)
{
	const struct box *b = context;

	*ret_count = b->approve ? approve_count(b->approve) : 0;
	return *ret_count ? approve_get(b->approve, 0) : NULL;
}

static int answer(void *context, const struct question *q, enum question_answer answer,
		  uint64_t seconds, struct ward_err *e)
{
	struct box *b = context;
	struct question_who who = { .uid = geteuid(), .pid = getpid(), .via = "terminal" };
	const char *name = NULL;

	if (!b->approve)
		return ward_fail(e, ESRCH, "the run is over");
	for (int i = 0; i < 3 && !name; i++)
		name = ttyname(i);
	snprintf(who.from, sizeof(who.from), "%s", name ? name : "");
	return approve_answer(b->approve, q->id, answer, seconds, &who, e);
}

/* What approvals.never names is not put into the policy either. */
static int change(void *context, const struct question *q, bool write, struct ward_err *e)
{
	struct box *b = context;

	if (box_is_never(b, q))
		return ward_fail(e, EPERM, "approvals.never names it");
	return always_begin(&b->always, q, write, e);
}

static int changed(void *context, const char **ret_text, struct ward_err *e)
{
	struct box *b = context;

	return always_look(&b->always, ret_text, e);
}

/* One line for every question, once. */
static void say(struct box *b, const struct question *q)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	auto_buf out = { 0 };

	b->said_question = q->id;
	buf_printf(&out, "ward: %s waits for an answer: ward approve %s:%" PRIu64 " --once%s\n",
		   q->subject, b->plan->spec->run_id, q->id, b->streams.console ? "\r" : "");
	if (!out.failed && poll(&p, 1, 0) > 0 && p.revents & POLLOUT)
		(void)!write(STDERR_FILENO, out.data, out.len);
}

static void on_changed(void *context)
{
	struct box *b = context;

	if (b->dead)
		return;
	if (b->streams.console)
		console_asked(b->streams.console);
	if (b->streams.console && console_shows_questions(b->streams.console))
		return;
	for (size_t i = 0; i < approve_count(b->approve); i++)
		if (approve_get(b->approve, i)->id > b->said_question)
			say(b, approve_get(b->approve, i));
}

int box_prompt_begin(struct box *b, struct ward_err *e)
{
	static const struct prompt_ops ops = { .first = first,
					       .answer = answer,
					       .digits = console_digits,
					       .change = change,
					       .changed = changed };

	if (!b->approve || b->detached)
		return 0;
	b->always.file = b->plan->spec->policy_file;
	b->always.dir = b->plan->spec->workspace;
	approve_on_change(b->approve, on_changed, b);
	return b->streams.console ? console_ask(b->streams.console, &ops, b, e) : 0;
}
