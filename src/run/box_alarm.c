/*
 * Watch rules of a run. In: every event, on its way to the journal. Out: alerts, which are events
 * too, and what the rule says: nothing, a question for a person, a sandbox that stands still, or
 * its end. The rules themselves are src/alarm, which decides nothing but that it was too much. Runs
 * in the supervisor; a run without rules has none of this.
 *
 * Rules only count while events are reported; what they say is done at the end of the same turn of
 * the loop (box_alarm_act). The sandbox stands still before anything is read or written about it:
 * the processes that the alert names are those that did it, not those that are left. A sandbox that
 * is frozen waits for its operator (ward resume, ward kill), for its own time limit, or for an
 * answer; an answer is about its own rule alone: what another rule, a canary or the operator holds
 * stays held. What reads as a program's name was chosen by the sandbox.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alarm/alarm.h"
#include "approve/show.h"
#include "base/io.h"
#include "base/text.h"
#include "event/event.h"
#include "run/box_internal.h"
#include "run/detach.h"

#define EXE_MAX 200
#define STATUS_MAX 2048
#define SAMPLE_MS 1000

struct box_alarm {
	struct event_sink sink; /* first member: the sink that receives events */
	struct event_sink *next;
	struct alarm *alarm; /* owned */
};

static struct box_alarm *of(struct event_sink *s)
{
	return (struct box_alarm *)(void *)s;
}

static int on_begin(struct event_sink *s, const char *run, struct ward_err *e)
{
	return event_begin(of(s)->next, run, e);
}

static void on_take(struct event_sink *s, const struct ward_event *v)
{
	event_emit(of(s)->next, v);
	alarm_see(of(s)->alarm, v, io_now_ms());
}

static int on_flush(struct event_sink *s, struct ward_err *e)
{
	return event_flush(of(s)->next, e);
}

int box_alarm_begin(struct box *b, struct ward_err *e)
{
	struct alarm *alarm;
	int r = alarm_create(&b->plan->spec->policy, b->plan->workspace, &alarm, e);

	if (r < 0 || !alarm)
		return r;
	b->alarm = calloc(1, sizeof(*b->alarm));
	if (!b->alarm) {
		alarm_destroy(alarm);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	b->alarm->alarm = alarm;
	b->alarm->next = b->result->events;
	b->alarm->sink =
		(struct event_sink){ .begin = on_begin, .take = on_take, .flush = on_flush };
	b->result->events = &b->alarm->sink;
	return 0;
}

uint64_t box_alarm_sample_ms(const struct box *b)
{
	return b->alarm && alarm_wants_samples(b->alarm->alarm) ? SAMPLE_MS : 0;
}

/* -- who it was */

/* "PROGRAM (PID)" of a process inside, ended by a NUL; its parent, 0: there is none. */
static uint64_t put_process(int proc_fd, uint64_t pid, struct buf *out)
{
	char path[32], status[STATUS_MAX], exe[EXE_MAX];
	auto_fd fd = -1;
	long parent = 0;
	ssize_t n, len;

	snprintf(path, sizeof(path), "%" PRIu64 "/status", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	if (n <= 0)
		return 0;
	status[n] = '\0';
	snprintf(path, sizeof(path), "%" PRIu64 "/exe", pid);
	len = readlinkat(proc_fd, path, exe, sizeof(exe));
	if (len > 0)
		buf_add(out, exe, (size_t)len);
	else if (strncmp(status, "Name:\t", 6) == 0)
		buf_add(out, status + 6, strcspn(status + 6, "\n"));
	buf_printf(out, " (%" PRIu64 ")", pid);
	buf_add(out, "", 1);
	(void)text_number_after(status, "\nPPid:", 0, &parent);
	return parent > 0 ? (uint64_t)parent : 0;
}

void box_alarm_chain(const struct box *b, uint64_t pid, struct buf *out)
{
	for (unsigned i = 0; pid > 1 && b->run.proc_fd >= 0 && i < ALARM_CHAIN_MAX; i++)
		pid = put_process(b->run.proc_fd, pid, out);
}

/* What lives in the sandbox; ward-init is left out. */
void box_alarm_running(const struct box *b, struct buf *out)
{
	int fd = b->run.proc_fd < 0
			 ? -1
			 : openat(b->run.proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && count < ALARM_CHAIN_MAX && (entry = readdir(dir))) {
		uint64_t pid = 0;

		for (const char *c = entry->d_name; *c; c++)
			pid = *c >= '0' && *c <= '9' && pid < 100000000
				      ? pid * 10 + (uint64_t)(*c - '0')
				      : 1000000000;
		if (pid > 1 && pid < 1000000000) {
			(void)put_process(b->run.proc_fd, pid, out);
			count++;
		}
	}
	if (dir)
		closedir(dir);
}

/* -- what is done */

/* As ward ps shows it; a run in the foreground has no state there. */
static void set_state(struct box *b, enum box_state state)
{
	if (b->detached)
		boxes_set_state(&b->detached->entry, state);
}

/* A line for the person at the terminal: nothing inside writes any more. */
static void tell_frozen(const struct box *b, const char *what, const char *name, const char *why)
{
	auto_buf line = { 0 };
	struct stat st;

	if (b->detached)
		return;
	buf_printf(&line,
		   "%sward: %s %s: %s: %s is frozen; ward resume, ward kill or ward approve"
		   "%s\n",
		   isatty(STDERR_FILENO) ? "\r\n" : "", what, name, why, b->result->run_id,
		   isatty(STDERR_FILENO) ? "\r" : "");
	if (!line.failed && fstat(STDERR_FILENO, &st) == 0)
		(void)!io_write_some(STDERR_FILENO, st.st_mode, line.data, line.len);
}

static bool ask(struct box *b, const struct alarm_fire *f, const struct buf *chain)
{
	struct question q = { .kind = QUESTION_WATCH, .port = (uint16_t)f->rule_number };
	char line[sizeof(q.subject)];
	uint64_t id;

	if (!b->approve)
		return false;
	snprintf(q.host, sizeof(q.host), "%s", f->rule->name);
	snprintf(line, sizeof(line), "watch rule %s: %.100s", f->rule->name, f->why);
	show_text(q.subject, sizeof(q.subject), line);
	snprintf(q.details[0], sizeof(q.details[0]),
		 "the sandbox stands still; no answer kills it");
	for (unsigned i = 1; i < QUESTION_DETAILS_MAX && i <= f->cause_count; i++)
		show_text(q.details[i], sizeof(q.details[i]), f->causes[f->cause_count - i]);
	show_text(q.rule, sizeof(q.rule), f->rule->name);
	if (chain->len)
		show_text(q.process, sizeof(q.process), chain->data);
	return approve_ask(b->approve, &q, io_now_ms(), &id) == 0;
}

static void end_run(struct box *b, const char *what, const char *name, const char *why)
{
	if (!b->result->error.code) {
		ward_fail(&b->result->error, ECANCELED, "the %s %s ended the run: %s", what, name,
			  why);
		ward_remedy(&b->result->error,
			    "ward audit show --kind watch,canary shows what it saw; a false alarm "
			    "of a rule is silenced by except or a higher above");
	}
	b->alarmed = true;
	box_kill(b);
}

void box_alarm_stop(struct box *b, enum watch_do done, const char *what, const char *name,
		    const char *why)
{
	if (done == WATCH_KILL)
		end_run(b, what, name, why);
	if (done != WATCH_ASK && done != WATCH_FREEZE)
		return;
	b->suspect = true;
	b->kept |= done == WATCH_FREEZE;
	set_state(b, BOX_PAUSED);
	tell_frozen(b, what, name, why);
}

static void report(struct box *b, const struct alarm_fire *f, enum watch_do done,
		   const struct buf *chain, const struct buf *running)
{
	static const uint8_t actions[] = { [WATCH_LOG] = ACTION_LOG,
					   [WATCH_ASK] = ACTION_ASK,
					   [WATCH_FREEZE] = ACTION_DENY,
					   [WATCH_KILL] = ACTION_DENY };
	struct ward_event v =
		event_make(EVENT_ALERT, (enum event_action)actions[done], f->rule->name);
	auto_buf causes = { 0 };

	for (unsigned i = 0; i < f->cause_count; i++)
		buf_add(&causes, f->causes[i], strlen(f->causes[i]) + 1);
	event_text(&v, FIELD_RULE, metric_name(f->rule->count));
	event_text(&v, FIELD_WHY, f->why);
	event_text(&v, FIELD_REMEDY,
		   done == WATCH_LOG ? NULL : "watch.rules: a higher above, or except");
	if (f->pid)
		event_number(&v, FIELD_PID, f->pid);
	event_number(&v, FIELD_VALUE, f->value);
	event_text(&v, FIELD_CHANGE, watch_do_name(done));
	if (chain->len)
		event_list(&v, FIELD_CHAIN, chain->data, chain->len);
	if (running->len)
		event_list(&v, FIELD_RUNNING, running->data, running->len);
	if (causes.len)
		event_list(&v, FIELD_CAUSE, causes.data, causes.len);
	event_emit(b->result->events, &v);
}

/* One rule that has fired. A sandbox that is dead already only has an alert. */
static void act(struct box *b, const struct alarm_fire *f)
{
	enum watch_do done = b->dead ? WATCH_LOG : f->rule->act;
	auto_buf chain = { 0 }, running = { 0 };

	if (done != WATCH_LOG)
		box_hold(b, true, false);
	if (f->pid && !b->dead)
		box_alarm_chain(b, f->pid, &chain);
	if (!chain.len && f->pid)
		alarm_chain(b->alarm->alarm, f->pid, &chain);
	if (!chain.len && !b->dead)
		box_alarm_running(b, &running);
	if (done == WATCH_ASK && !ask(b, f, &chain))
		done = WATCH_KILL; /* too many questions wait */
	report(b, f, done, &chain, &running);
	strv_addf(done == WATCH_LOG ? &b->result->notes : &b->result->loud,
		  "watch rule %s: %s (%s)", f->rule->name, f->why, watch_do_name(done));
	box_alarm_stop(b, done, "watch rule", f->rule->name, f->why);
}

void box_alarm_act(struct box *b)
{
	struct alarm_fire f;

	box_canary_act(b);
	while (b->alarm && alarm_take(b->alarm->alarm, &f))
		act(b, &f);
}

/* Whether something else than this question holds the sandbox. */
static bool is_held_otherwise(const struct box *b, const struct question *answered)
{
	const struct question *q;

	for (size_t i = 0; b->approve && (q = approve_get(b->approve, i)); i++)
		if (q->kind == QUESTION_WATCH && q->id != answered->id)
			return true;
	return b->kept;
}

void box_alarm_answer(struct box *b, const struct question *q, enum question_answer answer,
		      uint64_t seconds)
{
	uint64_t now = io_now_ms();

	if (answer == QUESTION_ONCE || answer == QUESTION_RUN || answer == QUESTION_TIME) {
		if (answer != QUESTION_ONCE)
			alarm_silence(b->alarm->alarm, q->port,
				      answer == QUESTION_RUN ? UINT64_MAX : now + seconds * 1000);
		if (is_held_otherwise(b, q))
			return;
		b->suspect = false;
		box_hold(b, false, false);
		set_state(b, BOX_RUNNING);
		return;
	}
	end_run(b, "watch rule", q->host,
		answer == QUESTION_DENY ? "a person said no" : "nobody answered");
}

void box_alarm_end(struct box *b)
{
	if (!b->alarm)
		return;
	box_alarm_act(b);
	b->result->events = b->alarm->next;
	alarm_destroy(b->alarm->alarm);
	free(b->alarm);
	b->alarm = NULL;
}
