/*
 * ward stop, kill, pause, resume: one word to sandboxes that run. In: their names. Out: they have
 * ended, or stand still, when the verb does. Everything is asked of all of them before anything is
 * waited for, so that many end as fast as one. A supervisor that does not answer is killed, which
 * ends its sandbox too.
 */
#include "cli/boxes.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/io.h"
#include "cli/panic.h"
#include "policy/units.h"

#define STOP_MS 10000  /* between SIGTERM and force, unless said */
#define AFTER_MS 15000 /* beyond that for the end itself: sweep, record */

/* What kind of word it is. */
struct word {
	enum control_op op;
	int32_t argument;
	bool ends; /* the sandbox shall be over when the verb ends */
};

static void connect_all(const struct options *o, struct chosen *c, int *code)
{
	struct rlimit files;

	if (c->len > 200 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* one connection each */
	}
	for (size_t i = 0; i < c->len; i++) {
		struct ward_err e = { 0 };

		if (c->failed[i] || client_connect(&c->infos[i], &c->clients[i], &e) == 0)
			continue;
		boxes_look_again(&c->infos[i]);
		if (c->infos[i].alive || !o->all)
			chosen_fail(o, c, i, &e, code);
		else
			c->failed[i] = true; /* it has ended just now: that was wanted */
	}
}

static int time_left(uint64_t until_ms)
{
	uint64_t now = io_now_ms();

	return now < until_ms ? (int)(until_ms - now) : 0;
}

struct request {
	enum control_op op;
	int32_t argument;
};

/* Sends all requests, then takes the answers. force: a supervisor that does not answer is killed.
 */
static void ask_all(const struct options *o, struct chosen *c, const struct request *requests,
		    size_t count, bool force, int *code)
{
	struct client_answer answer;
	/* one wait for all that are stuck */
	uint64_t until = io_now_ms() + CLIENT_ANSWER_MS;

	for (size_t k = 0; k < count; k++)
		for (size_t i = 0; i < c->len; i++) {
			struct ward_err e = { 0 };

			if (!c->failed[i] &&
			    client_send(&c->clients[i], requests[k].op, 0, requests[k].argument, 0,
					&e) < 0 &&
			    e.code != ESRCH)
				chosen_fail(o, c, i, &e, code);
		}
	for (size_t i = 0; i < c->len; i++) {
		struct ward_err e = { 0 };
		int r = 0;

		for (size_t k = 0; k < count && r == 0 && !c->failed[i]; k++)
			r = client_receive(&c->clients[i], &answer, time_left(until), &e);
		if (r == 0 || (force && r == -ESRCH))
			continue;
		if (!force || client_kill_supervisor(&c->infos[i], &e) < 0)
			chosen_fail(o, c, i, &e, code);
	}
}

static void wait_all(const struct options *o, struct chosen *c, int timeout_ms, int *code)
{
	for (size_t i = 0; i < c->len; i++) {
		struct ward_err e = { 0 };

		if (!c->failed[i] && client_wait_end(&c->clients[i], timeout_ms, &e) < 0 &&
		    client_kill_supervisor(&c->infos[i], &e) < 0)
			chosen_fail(o, c, i, &e, code);
	}
}

static int say_word(struct options *o, const struct word *w, unsigned flags)
{
	const struct request all[] = { { CONTROL_WAIT, 0 }, { w->op, w->argument } };
	struct chosen c;
	int code;

	if (!o->word_count && !o->all) {
		struct ward_err e = { 0 };

		ward_fail(&e, EINVAL, "no sandbox given");
		ward_remedy(&e, "ward ps lists them");
		return say_usage(&e, o);
	}
	boxes_choose(o, flags, &c, &code);
	connect_all(o, &c, &code);
	ask_all(o, &c, all + !w->ends, w->ends ? 2 : 1, w->ends, &code);
	if (w->ends)
		wait_all(o, &c, w->argument + AFTER_MS, &code);
	code = boxes_report(o, &c, code);
	chosen_clear(&c);
	return code;
}

int verb_stop(struct options *o)
{
	struct word w = { .op = CONTROL_STOP, .argument = STOP_MS, .ends = true };
	struct ward_err e = { 0 };
	uint64_t ms;

	if (o->grace) {
		if (units_parse_seconds(o->grace, &ms) < 0 || ms > 86400000) {
			ward_fail(&e, EINVAL, "--timeout %.80s: expected a time of at most a day",
				  o->grace);
			ward_remedy(&e, "for instance --timeout 30, 0.5, 2m");
			return say_usage(&e, o);
		}
		w.argument = (int32_t)ms;
	}
	return say_word(o, &w, CHOOSE_ALIVE | CHOOSE_ALL);
}

/* TERM, SIGTERM, 15; 0: unknown */
static int find_signal(const char *name)
{
	uint64_t number;

	if (units_parse_uint(name, &number) == 0)
		return number >= 1 && number <= 64 ? (int)number : 0;
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; i < 65; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return 0;
}

int verb_kill(struct options *o)
{
	struct word w = { .op = CONTROL_KILL, .ends = true };
	struct ward_err e = { 0 };

	if (o->signal) {
		int number = find_signal(o->signal);

		if (!number) {
			ward_fail(&e, EINVAL, "--signal %.80s: unknown signal", o->signal);
			ward_remedy(&e, "for instance --signal TERM, SIGUSR1, 15");
			return say_usage(&e, o);
		}
		if (number != SIGKILL)
			w = (struct word){ .op = CONTROL_SIGNAL, .argument = number };
	}
	if (o->all && w.op == CONTROL_KILL)
		return panic_kill_all(o); /* without the supervisors, which may hang */
	return say_word(o, &w, CHOOSE_ALIVE | CHOOSE_ALL);
}

int verb_pause(struct options *o)
{
	const struct word w = { .op = CONTROL_PAUSE };

	return say_word(o, &w, CHOOSE_ALIVE | CHOOSE_ALL);
}

int verb_resume(struct options *o)
{
	const struct word w = { .op = CONTROL_RESUME };

	return say_word(o, &w, CHOOSE_ALIVE | CHOOSE_ALL);
}
