/*
 * The sinks of a run, ward's part. In: audit.sinks. Out: ward-audit forward (cli/audit/forward.c),
 * which gets the journals' directory, the sinks and a socket, and a little of the environment. It
 * is started with the event of the start, when the sandbox runs: a run never waits for a sink but
 * at its end, within bounds. Nothing is started, touched or asked where a policy has no sinks. What
 * could not be delivered is a note of the result; a sink with on_lag: stop that is stuck ends the
 * run at the next event.
 */
#include "audit/sinks_run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "audit/forward.h"
#include "audit/sink_state.h"
#include "base/find.h"
#include "base/io.h"
#include "base/path.h"
#include "event/event.h"
#include "host/program.h"
#include "plan/plan_reach.h"
#include "policy/policy_sink.h"

#define MORE_MS 2000 /* beyond what the sinks themselves wait */

struct sinks {
	struct event_sink sink;
	struct event_sink *journal_events;
	struct journal *journal;
	const struct plan *plan;
	struct strv lines; /* the policy's, with everything where it really is */
	char run[48];
	uint64_t from, wait_ms;
	int socket_fd;
	pid_t pid;
	bool tried;
	struct ward_err failure; /* the run must end for it */
	char stuck[256];
};

/* -- the program */

/* What a command, a name's lookup and certificates need; the rest of the environment is not passed:
 * business. */
static bool is_passed(const struct sinks *s, const char *entry)
{
	static const char *const names[] = { "PATH=", "HOME=", "USER=",          "LOGNAME=",
					     "LANG=", "TZ=",   "SSL_CERT_FILE=", "SSL_CERT_DIR=" };
	const struct strv *sinks = &s->plan->spec->policy.audit_sinks;
	struct ward_err ignored = { 0 };
	bool passed = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return true;
	for (size_t i = 0; i < sinks->len && !passed; i++) {
		struct policy_sink p;
		size_t n;

		if (policy_sink_read(sinks->items[i], &p, &ignored) < 0)
			continue;
		n = p.token && strncmp(p.token, "env:", 4) == 0 ? strlen(p.token + 4) : 0;
		passed = n && strncmp(entry, p.token + 4, n) == 0 && entry[n] == '=';
		policy_sink_clear(&p);
	}
	return passed;
}

static int sinks_file(const struct sinks *s)
{
	const struct strv *sinks = &s->lines;
	auto_fd fd = memfd_create("ward-sinks", MFD_CLOEXEC);
	auto_buf text = { 0 };

	for (size_t i = 0; i < sinks->len; i++)
		buf_printf(&text, "%s\n", sinks->items[i]);
	if (fd < 0 || text.failed || io_write_all(fd, text.data, text.len) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return take_fd(&fd);
}

static int start_program(struct sinks *s, struct ward_err *e)
{
	static char name[] = "ward-audit", word[] = "forward";
	char from[24], *argv[] = { name, word, s->run, from, NULL };
	auto_fd program_fd = program_open(name, e), lines_fd = sinks_file(s), theirs = -1;
	auto_strv env = { 0 };
	struct program p = { .fd = program_fd, .argv = argv, .fd_count = 3 };
	int pair[2];

	if (program_fd < 0)
		return program_fd;
	if (lines_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot start the process that feeds the sinks");
	s->socket_fd = pair[0];
	theirs = pair[1];
	snprintf(from, sizeof(from), "%" PRIu64, s->from);
	for (char **entry = environ; *entry; entry++)
		if (is_passed(s, *entry))
			strv_add(&env, *entry);
	strv_add(&env, "WARD_SINKS=1");
	p.envp = env.items;
	p.fds[0] = theirs;
	p.fds[1] = lines_fd;
	p.fds[2] = journal_directory(s->journal);
	return env.failed ? ward_fail(e, ENOMEM, "out of memory") : program_start(&p, &s->pid, e);
}

/* -- the sink */

static int begin(struct event_sink *sink, const char *run, struct ward_err *e)
{
	struct sinks *s = (struct sinks *)(void *)sink;
	int r = event_begin(s->journal_events, run, e);

	snprintf(s->run, sizeof(s->run), "%s", run);
	s->from = journal_events(s->journal);
	return r;
}

/* The program is started once the sandbox is: a supervisor that locks itself up does so after
 * that. */
static void take(struct event_sink *sink, const struct ward_event *v)
{
	struct sinks *s = (struct sinks *)(void *)sink;

	event_emit(s->journal_events, v);
	if (s->tried || v->kind != EVENT_RUN_START)
		return;
	s->tried = true;
	if (start_program(s, &s->failure) < 0)
		s->pid = 0;
}

/* Whether it has said that the run must end. */
static void listen_to(struct sinks *s)
{
	struct forward_message m;

	while (s->socket_fd >= 0 &&
	       recv(s->socket_fd, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m))
		if (m.op == FORWARD_STOP) {
			m.to[sizeof(m.to) - 1] = m.why[sizeof(m.why) - 1] = '\0';
			snprintf(s->stuck, sizeof(s->stuck), "%.250s", m.why[0] ? m.why : m.to);
		}
}

static int flush(struct event_sink *sink, struct ward_err *e)
{
	struct sinks *s = (struct sinks *)(void *)sink;
	int r = event_flush(s->journal_events, e);

	if (r < 0)
		return r;
	if (s->failure.code) {
		*e = s->failure;
		return ward_wrap(e, "audit.sinks");
	}
	listen_to(s);
	if (!s->stuck[0])
		return 0;
	ward_fail(e, EIO, "audit.sinks: events could not be delivered: %s", s->stuck);
	return ward_remedy(e,
			   "fix the collector, or let runs continue without it: on_lag: continue");
}

struct event_sink *sinks_events(struct sinks *s)
{
	return &s->sink;
}

/* -- its life */

/* A file that ward reads: where it really is. What the sandbox could change is refused. */
static int check_file(const struct plan *p, const char *what, char **path, size_t prefix,
		      struct ward_err *e)
{
	auto_free char *real = *path ? realpath(*path + prefix, NULL) : NULL, *text = NULL;
	const char *where;

	if (!*path)
		return 0;
	if (!real)
		return ward_fail_errno(e, "audit.sinks: %s: %s", what, *path + prefix);
	where = plan_reach(p, real);
	if (where) {
		ward_fail(e, EINVAL, "audit.sinks: %s: %s is in %s, which the sandbox can write to",
			  what, *path + prefix, where);
		return ward_remedy(e, "name a file elsewhere");
	}
	if (asprintf(&text, "%.*s%s", (int)prefix, *path, real) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	free(*path);
	*path = take_ptr(text);
	return 0;
}

/* What is not there yet lies where the nearest directory is that is. */
static const char *reach_word(const struct plan *p, const char *word)
{
	auto_free char *path = path_clean(word), *real = NULL;

	while (path && *path && !(real = realpath(path, NULL)))
		*strrchr(path, '/') = '\0';
	return real ? plan_reach(p, real) : NULL;
}

/* The program, and what of its words is a file: a script, most likely. */
static int check_command(const struct plan *p, struct policy_sink *sink, struct ward_err *e)
{
	auto_strv places = { 0 };
	int r;

	plan_reach_list(p, &places);
	r = places.failed ? ward_fail(e, ENOMEM, "out of memory")
			  : find_program(sink->words.items[0], &places, &sink->place, e);
	for (size_t i = 1; i < sink->words.len && r == 0; i++) {
		const char *where = reach_word(p, sink->words.items[i]);

		if (where)
			r = ward_fail(e, EACCES, "%.200s is in %s, which the sandbox can write to",
				      sink->words.items[i], where);
	}
	return r < 0 ? ward_wrap(e, "audit.sinks: %s", sink->to) : 0;
}

/* What the sandbox can write is neither run nor read nor believed. *sink: everything where it
 * really is. */
static int check_reach(const struct plan *p, struct policy_sink *sink, struct ward_err *e)
{
	int r = check_file(p, "ca", &sink->ca, 0, e);

	if (r == 0)
		r = check_file(p, "cert", &sink->cert, 0, e);
	if (r == 0)
		r = check_file(p, "key", &sink->key, 0, e);
	if (r == 0 && sink->token && strncmp(sink->token, "file:", 5) == 0)
		r = check_file(p, "token", &sink->token, 5, e);
	if (r == 0 && sink->way == SINK_FILE)
		r = plan_reach_file(p, "audit.sinks", sink->path, &sink->place, e);
	return r == 0 && sink->way == SINK_COMMAND ? check_command(p, sink, e) : r;
}

static int add_sink(struct sinks *s, const char *line, struct ward_err *e)
{
	struct policy_sink sink;
	auto_buf text = { 0 };
	int r = policy_sink_read(line, &sink, e);

	if (r < 0)
		return r;
	if (sink.wait_ms > s->wait_ms)
		s->wait_ms = sink.wait_ms;
	r = check_reach(s->plan, &sink, e);
	if (r == 0)
		r = policy_sink_write(line, &sink, &text, e);
	if (r == 0 && text.len > SINK_LINE_MAX - 64)
		r = ward_fail(e, E2BIG, "audit.sinks: %.200s is too long", line);
	if (r == 0)
		strv_add(&s->lines, text.data);
	policy_sink_clear(&sink);
	return r == 0 && s->lines.failed ? ward_fail(e, ENOMEM, "out of memory") : r;
}

int sinks_create(const struct plan *p, struct journal *j, struct sinks **ret, struct ward_err *e)
{
	const struct strv *lines = &p->spec->policy.audit_sinks;
	struct sinks *s;
	int r = 0;

	*ret = NULL;
	if (!lines->len)
		return 0;
	if (!j) {
		ward_fail(e, EINVAL,
			  "audit.sinks: sinks need the journal, but audit.journal is none");
		return ward_remedy(e, "audit.journal: default");
	}
	if (lines->len > SINKS_MAX)
		return ward_fail(e, E2BIG, "audit.sinks: at most %d sinks", SINKS_MAX);
	s = calloc(1, sizeof(*s));
	if (!s)
		return ward_fail(e, ENOMEM, "out of memory");
	s->sink = (struct event_sink){ .begin = begin, .take = take, .flush = flush };
	s->journal = j;
	s->journal_events = journal_sink(j);
	s->plan = p;
	s->socket_fd = -1;
	for (size_t i = 0; i < lines->len && r == 0; i++)
		r = add_sink(s, lines->items[i], e);
	if (r < 0) {
		strv_free(&s->lines);
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* A note that the short form has, too. */
__attribute__((format(printf, 2, 3))) static void note(struct result *r, const char *format, ...)
{
	auto_free char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	strv_add(&r->notes, text ? text : "out of memory");
	strv_add(&r->loud, text ? text : "out of memory");
}

static void note_left(struct result *r, const struct forward_message *m)
{
	if (m->left)
		note(r,
		     "%" PRIu64 " events are not yet delivered to %s: %s; the next run or `ward "
		     "audit send` sends them",
		     m->left, m->to, forward_why(m->to, m->why));
	if (m->dropped)
		note(r, "%" PRIu64 " events were refused by %s for good", m->dropped, m->to);
}

/* Until it has said what is left, or does not answer. */
static void wait_for_end(struct sinks *s, struct result *r)
{
	const struct forward_message end = { .op = FORWARD_END };
	uint64_t until = io_now_ms() + s->wait_ms + MORE_MS;

	if (send(s->socket_fd, &end, sizeof(end), MSG_NOSIGNAL) < 0) {
		note(r, "the process that feeds the sinks ended; `ward audit send` sends what is "
			"left");
		return;
	}
	for (;;) {
		struct pollfd polled = { .fd = s->socket_fd, .events = POLLIN };
		uint64_t now = io_now_ms();
		struct forward_message m;

		if (now >= until || poll(&polled, 1, (int)(until - now)) == 0) {
			note(r, "the process that feeds the sinks does not answer; `ward audit "
				"send` sends what is left");
			kill(s->pid, SIGKILL);
			return;
		}
		if (recv(s->socket_fd, &m, sizeof(m), MSG_DONTWAIT) != (ssize_t)sizeof(m)) {
			if (polled.revents & POLLHUP)
				return;
			continue;
		}
		m.to[sizeof(m.to) - 1] = m.why[sizeof(m.why) - 1] = '\0';
		if (m.op == FORWARD_LEFT)
			note_left(r, &m);
		if (m.op == FORWARD_DONE)
			return;
	}
}

void sinks_end(struct sinks *s, struct result *r)
{
	if (!s)
		return;
	if (s->pid > 0) {
		wait_for_end(s, r);
		own_close_fd(&s->socket_fd);
		s->socket_fd = -1;
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	own_close_fd(&s->socket_fd);
	strv_free(&s->lines);
	free(s);
}
