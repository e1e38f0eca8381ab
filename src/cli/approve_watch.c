/*
 * ward approve --watch: questions as they come, answered by keys. In: the questions of all
 * sandboxes, asked for every LOOK_MS; keys of the terminal. Out: answers. One question is shown at
 * a time, the oldest first. No key answers by accident: what was typed before a question was shown,
 * or within ARM_MS of that, is thrown away, and a key that is no answer does nothing. Runs with the
 * user's rights.
 */
#include "cli/approve.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/question.h"
#include "host/program.h"

#define LOOK_MS 200
#define ARM_MS 400

struct watching {
	const struct options *o;
	struct termios old;
	/* what is shown; id 0: nothing */
	struct client_question shown;
	uint64_t armed_ms; /* keys count from then on */
	bool waiting_said, over;
	bool until_empty; /* ends when nothing waits */
	/* skipped: only later ones are shown, until there is none */
	uint64_t after_ms, after_id;
	uint64_t seconds; /* what t means */
};

static void set_raw(const struct watching *w, bool on)
{
	struct termios t = w->old;

	if (on)
		t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	(void)tcsetattr(STDIN_FILENO, on ? TCSAFLUSH : TCSANOW, &t);
}

static bool is_shown(const struct watching *w, const struct client_question *q)
{
	return w->shown.q.id == q->q.id && strcmp(w->shown.box, q->box) == 0;
}

static int show(struct watching *w, const struct client_question *q)
{
	char group[sizeof(q->q.host)];
	auto_buf out = { 0 };

	w->shown = *q;
	w->armed_ms = io_now_ms() + ARM_MS;
	w->waiting_said = false;
	buf_puts(&out, "\n");
	approve_put(q, false, &out);
	buf_printf(&out,
		   "  a once  s this sandbox  t %" PRIu64
		   " s  A always  d deny  n next  ? more  q quit\n",
		   w->seconds);
	if (approve_group(&q->q, group, sizeof(group)))
		buf_printf(&out, "  g all of %s for this sandbox\n", group);
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	return say_out(&out, EXIT_FINE);
}

/* The oldest one, or behind the one that was skipped; after the last one the first again. */
static const struct client_question *next(const struct watching *w,
					  const struct client_questions *all)
{
	for (size_t i = 0; i < all->len; i++) {
		const struct question *q = &all->items[i].q;

		if (q->asked_ms > w->after_ms ||
		    (q->asked_ms == w->after_ms && q->id > w->after_id))
			return &all->items[i];
	}
	return &all->items[0];
}

/* The oldest question, if it is another one than before. */
static int look(struct watching *w)
{
	struct client_questions all = { 0 };
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	size_t silent, at = 0;
	int code = EXIT_FINE;

	if (client_questions(&all, &silent, &e) < 0)
		return say_error(&e, false, EXIT_REFUSED);
	while (w->shown.q.id && at < all.len && !is_shown(w, &all.items[at]))
		at++;
	if (w->shown.q.id && at == all.len) {
		buf_printf(&out, "  %s: it does not wait any more\n", w->shown.q.subject);
		w->shown = (struct client_question){ 0 };
	}
	if (!w->shown.q.id && !all.len && !w->waiting_said) {
		buf_puts(&out, w->until_empty ? "no question waits for an answer\n"
					      : "no question waits for an answer; q ends\n");
		w->waiting_said = true;
	}
	if (out.len)
		code = say_out(&out, EXIT_FINE);
	if (!w->shown.q.id && all.len && code == EXIT_FINE)
		code = show(w, next(w, &all));
	w->over = w->until_empty && !all.len;
	client_questions_clear(&all);
	return code;
}

static int answer(struct watching *w, enum question_answer how, bool group)
{
	struct options o = *w->o;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	bool fine;

	if (how == QUESTION_ALWAYS) /* which asks itself */
		set_raw(w, false);
	o.group = group;
	fine = approve_send(&o, &w->shown, how, how == QUESTION_TIME ? w->seconds : 0, &e) == 0;
	if (how == QUESTION_ALWAYS)
		set_raw(w, true);
	if (!fine) {
		(void)say_error(&e, false, EXIT_REFUSED);
		w->armed_ms = io_now_ms() + ARM_MS;
		return EXIT_FINE; /* the next look tells what became of it */
	}
	buf_printf(&out, "  %s: %s\n", w->shown.q.subject,
		   how == QUESTION_DENY ? "denied" : "allowed");
	w->shown = (struct client_question){ 0 };
	return say_out(&out, EXIT_FINE);
}

/* What was answered about this host before, from the journals. */
static void put_history(const struct watching *w)
{
	char host[sizeof(w->shown.q.host)];
	const char *const words[] = { "ward-audit", "show",   "--all", "--kind",
				      "approval",   "--host", host,    NULL };
	char *argv[ARRAY_LEN(words)];
	struct ward_err e = { 0 };
	pid_t pid;

	memcpy(host, w->shown.q.host, sizeof(host));
	memcpy(argv, words, sizeof(argv)); /* exec takes them without const */
	if (!*host)
		return;
	pid = fork();
	if (pid == 0) {
		(void)!program_become(argv, &e);
		(void)say_error(&e, false, EXIT_REFUSED);
		_exit(EXIT_REFUSED);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int on_key(struct watching *w, char key)
{
	char group[sizeof(w->shown.q.host)];
	auto_buf out = { 0 };

	if (!w->shown.q.id || io_now_ms() < w->armed_ms)
		return EXIT_FINE;
	switch (key) {
	case 'a':
		return answer(w, QUESTION_ONCE, false);
	case 's':
		return answer(w, QUESTION_RUN, false);
	case 't':
		return answer(w, QUESTION_TIME, false);
	case 'A':
		return answer(w, QUESTION_ALWAYS, false);
	case 'd':
		return answer(w, QUESTION_DENY, false);
	case 'g':
		return approve_group(&w->shown.q, group, sizeof(group))
			       ? answer(w, QUESTION_RUN, true)
			       : EXIT_FINE;
	case 'n':
		w->after_ms = w->shown.q.asked_ms;
		w->after_id = w->shown.q.id;
		w->shown = (struct client_question){ 0 };
		return EXIT_FINE;
	case '?':
		approve_put(&w->shown, true, &out);
		if (say_out(&out, EXIT_FINE) != EXIT_FINE)
			return EXIT_REFUSED;
		put_history(w);
		return EXIT_FINE;
	default:
		return EXIT_FINE;
	}
}

static int serve(struct watching *w)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	int code = EXIT_FINE;

	while (code == EXIT_FINE && !w->over) {
		char key = 0;
		ssize_t n = 1;

		code = look(w);
		if (code != EXIT_FINE || w->over || poll(&p, 1, LOOK_MS) <= 0)
			continue;
		n = read(STDIN_FILENO, &key, 1);
		if (n == 0 || (n < 0 && errno != EINTR) || key == 'q' || key == 3)
			break;
		code = on_key(w, key);
	}
	return code;
}

int approve_watch(const struct options *o, uint64_t seconds)
{
	struct watching w = { .o = o, .until_empty = !o->watch, .seconds = seconds };
	struct ward_err e = { 0 };
	int code;

	if (!question_possible() || tcgetattr(STDIN_FILENO, &w.old) < 0) {
		ward_fail(&e, ENOTTY, "--watch needs a terminal");
		ward_remedy(&e, "ward approve --json lists the questions for a program");
		return say_error(&e, false, EXIT_REFUSED);
	}
	w.old.c_lflag |= ICANON | ECHO;
	set_raw(&w, true);
	code = serve(&w);
	set_raw(&w, false);
	return code;
}
