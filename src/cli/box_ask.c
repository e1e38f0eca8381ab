/*
 * Questions of a sandbox that runs elsewhere, on the terminal of who has joined it. In: its control
 * socket. Out: the bar of run/console_ask.c, and answers, which the sandbox's supervisor takes or
 * refuses. The supervisor says when what waits has changed; then it is listed again, so a sandbox
 * that asks nothing costs one request at the start. Runs with the user's rights outside of every
 * sandbox.
 */
#include "cli/box_ask.h"

#include <errno.h>
#include <unistd.h>

#include "term/prompt.h"

#define FIRST_MS 2000

static const struct question *first(void *context, size_t *ret_count)
{
	const struct box_ask *a = context;

	*ret_count = a->questions.len;
	return a->questions.len ? &a->questions.items[0].q : NULL;
}

static int answer(void *context, const struct question *q, enum question_answer answer,
		  uint64_t seconds, struct ward_err *e)
{
	struct box_ask *a = context;
	struct client_said said = { .answer = answer,
				    .seconds = seconds,
				    .via = QUESTION_VIA_TERMINAL,
				    .from = ttyname(STDIN_FILENO) };

	return client_answer_question(a->box.id, q->id, &said, e);
}

static int change(void *context, const struct question *q, bool write, struct ward_err *e)
{
	struct box_ask *a = context;

	return always_begin(&a->always, q, write, e);
}

static int changed(void *context, const char **ret_text, struct ward_err *e)
{
	struct box_ask *a = context;

	return always_look(&a->always, ret_text, e);
}

static void list(struct box_ask *a)
{
	struct client_questions now = { 0 };
	struct ward_err e = { 0 };

	if (client_box_questions(&a->box, &now, &e) < 0)
		return; /* it is ending, or stuck: the old ones stay, and an answer says so */
	client_questions_clear(&a->questions);
	a->questions = now;
	console_asked(a->console);
}

/* Takes what the supervisor says, and waits for the next change. False: there will be none. */
static bool take(struct box_ask *a, int timeout_ms)
{
	struct client_answer said;
	struct ward_err e = { 0 };

	return client_receive(&a->watch, &said, timeout_ms, &e) == 0 &&
	       said.message.op == CONTROL_OK && said.message.a >= 0 &&
	       client_send(&a->watch, CONTROL_QUESTION_WATCH, 0, said.message.a, 0, &e) == 0;
}

void box_ask_begin(struct box_ask *a, const char *box, struct console *console)
{
	static const struct prompt_ops ops = { .first = first,
					       .answer = answer,
					       .digits = console_digits,
					       .change = change,
					       .changed = changed };
	struct ward_err e = { 0 };

	*a = (struct box_ask){ .watch = NO_CLIENT, .console = console };
	if (!console || client_find_alive(box, &a->box, &e) < 0 ||
	    client_connect(&a->box, &a->watch, &e) < 0)
		return;
	if (client_send(&a->watch, CONTROL_QUESTION_WATCH, 0, 0, 0, &e) < 0 || !take(a, FIRST_MS) ||
	    console_ask(console, &ops, a, &e) < 0) {
		client_close(&a->watch);
		return;
	}
	a->always.dir = a->box.workspace;
	list(a);
}

int box_ask_fd(const struct box_ask *a)
{
	return a->watch.fd;
}

void box_ask_handle(struct box_ask *a)
{
	if (take(a, 0)) {
		list(a);
		return;
	}
	client_close(&a->watch);
	client_questions_clear(&a->questions);
	console_asked(a->console);
}

void box_ask_end(struct box_ask *a)
{
	client_close(&a->watch);
	client_questions_clear(&a->questions);
	always_end(&a->always);
	box_info_clear(&a->box);
}
