/*
 * The relay (relay.h). In: connections of calls, from ward-mcp; the bytes of a server, which is
 * hostile. Out: results put together anew (mcp/result.c), reports on definitions that have changed,
 * and the server's standard error with everything escaped. It is a child of ward-mcp by fork, so
 * that what was accepted is in its memory; what ward-mcp has open, and the environment, it gives up
 * before it reads a byte, and its rights with them.
 */
#include "cli/mcp/relay.h"
#include "cli/mcp/relay_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "base/trim_memory.h"
#include "confine/confine.h"

#define READ_BYTES 65536
#define START_MS 60000       /* for initialize, and for each page of a list */
#define IDLE_MS 1000         /* quiet for so long: memory is given back */
#define LAST_MS 1000         /* for answers when the server has ended */
#define ERROR_LINE_MAX 900   /* bytes that are shown at one time */
#define ERROR_MAX (1u << 20) /* and in all */

enum { CONTROL_FD = 3, TO_FD, FROM_FD, ERROR_FD, RELAY_FDS };

/* -- standard error */

/* One write that cannot block: what does not fit is lost. */
static void write_error(const char *text, size_t n)
{
	struct pollfd fd = { STDERR_FILENO, POLLOUT, 0 };

	if (poll(&fd, 1, 0) == 1 && fd.revents & POLLOUT)
		(void)!write(STDERR_FILENO, text, n);
}

void relay_say(const struct relay *r, const char *what, const char *text)
{
	auto_buf line = { 0 };

	buf_printf(&line, "ward mcp: %s: %s", r->start.name, what);
	text_escape(&line, text);
	buf_puts(&line, "\n");
	write_error(buf_text(&line), line.len);
}

static void show_errors(struct relay *r, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n && !r->start.mute && r->shown < ERROR_MAX;) {
		const char *end = memchr(bytes + at, '\n', n - at);
		size_t len = end ? (size_t)(end - bytes) - at : n - at;
		char piece[ERROR_LINE_MAX + 1];
		size_t m = len < ERROR_LINE_MAX ? len : ERROR_LINE_MAX;

		memcpy(piece, bytes + at, m);
		piece[m] = '\0'; /* a NUL in it ends it: the rest is lost */
		if (m)
			relay_say(r, "says: ", piece);
		r->shown += m + 1;
		if (r->shown >= ERROR_MAX)
			relay_say(r, "what else it says is not shown", "");
		at += m + (end && m == len);
	}
}

/* -- streams of the server */

static void read_errors(struct relay *r)
{
	char bytes[4096];
	ssize_t n = read(ERROR_FD, bytes, sizeof(bytes));

	if (n > 0)
		show_errors(r, bytes, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		r->error_open = false;
}

static void read_server(struct relay *r)
{
	static char bytes[READ_BYTES];
	ssize_t n = read(FROM_FD, bytes, sizeof(bytes));

	if (n > 0)
		remote_add(&r->up, &r->sink, bytes, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		relay_end(r, "the server has ended");
}

static void write_server(struct relay *r)
{
	struct buf *out = &r->up.out;
	ssize_t n = out->len ? write(TO_FD, out->data, out->len) : 0;

	if (n < 0 && errno != EINTR && errno != EAGAIN) {
		relay_end(r, "the server has ended");
		return;
	}
	if (n > 0 && (size_t)n == out->len) {
		buf_free(out);
	} else if (n > 0) {
		out->len -= (size_t)n;
		memmove(out->data, out->data + n, out->len + 1);
	}
}

void relay_end(struct relay *r, const char *why)
{
	if (!r->ended)
		r->why = why;
	r->ended = true;
}

/* -- the loop */

enum { POLL_CONTROL, POLL_FROM, POLL_ERROR, POLL_TO, POLL_SLOTS };
#define POLLS_MAX (POLL_SLOTS + RELAY_SLOTS_MAX)

static size_t fill(struct relay *r, struct pollfd *p, struct relay_slot **who)
{
	size_t n = POLL_SLOTS;

	p[POLL_CONTROL] = (struct pollfd){ CONTROL_FD, POLLIN, 0 };
	p[POLL_FROM] = (struct pollfd){ FROM_FD, POLLIN, 0 };
	p[POLL_ERROR] = (struct pollfd){ r->error_open ? ERROR_FD : -1, POLLIN, 0 };
	p[POLL_TO] = (struct pollfd){ r->up.out.len ? TO_FD : -1, POLLOUT, 0 };
	for (size_t i = 0; i < RELAY_SLOTS_MAX; i++) {
		struct relay_slot *s = &r->slots[i];

		if (s->fd < 0)
			continue;
		who[n] = s;
		p[n++] = (struct pollfd){ s->fd, (short)(POLLIN | (s->out.len ? POLLOUT : 0)), 0 };
	}
	return n;
}

/* A server that is asked for its tools, and does not answer. */
static int wait_ms(struct relay *r)
{
	uint64_t now = io_now_ms();

	if (r->up.asked != r->awaited) {
		r->awaited = r->up.asked;
		r->begin_ms = now;
	}
	if (!r->awaited)
		return -1;
	if (now - r->begin_ms >= START_MS)
		relay_end(r, "the server does not answer, 60 seconds after it was asked for its "
			     "tools");
	return r->ended ? 0 : (int)(START_MS - (now - r->begin_ms));
}

static int wait_for_any(struct relay *r, struct pollfd *p, size_t n)
{
	int wait = wait_ms(r), ready;

	if (wait >= 0)
		return poll(p, n, wait);
	ready = poll(p, n, IDLE_MS);
	return ready ? ready : trim_memory_poll(p, n, -1);
}

static void turn(struct relay *r)
{
	static struct pollfd p[POLLS_MAX];
	static struct relay_slot *who[POLLS_MAX];
	size_t n = fill(r, p, who);

	if (wait_for_any(r, p, n) < 0)
		return; /* EINTR: nothing is known */
	if (p[POLL_CONTROL].revents)
		(void)relay_take_slot(r, CONTROL_FD);
	if (p[POLL_ERROR].revents)
		read_errors(r);
	if (p[POLL_FROM].revents)
		read_server(r);
	if (p[POLL_TO].revents)
		write_server(r);
	for (size_t i = POLL_SLOTS; i < n; i++)
		if (p[i].revents)
			relay_slot_ready(r, who[i]);
	if (r->up.state == REMOTE_BROKEN)
		relay_end(r, r->up.why);
	relay_on_turn(r);
}

/* Answers what is open, and waits a moment for it to be read. */
static void finish(struct relay *r)
{
	uint64_t end_ms = io_now_ms() + LAST_MS, now;

	while (relay_take_slot(r, CONTROL_FD))
		; /* those can be asked again */
	relay_fail_all(r, r->why);
	if (r->why && *r->why)
		relay_say(r, r->why, "");
	while (relay_owes(r) && (now = io_now_ms()) < end_ms) {
		static struct pollfd p[POLLS_MAX];
		static struct relay_slot *who[POLLS_MAX];
		size_t n = fill(r, p, who);

		if (poll(p + POLL_SLOTS, n - POLL_SLOTS, (int)(end_ms - now)) <= 0)
			continue;
		for (size_t i = POLL_SLOTS; i < n; i++)
			if (p[i].revents)
				relay_slot_ready(r, who[i]);
	}
}

/* -- the beginning */

/* Descriptors become 3 to 6, from places above: no one of them is in another's way. */
static bool take_fds(const struct relay_start *s)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[RELAY_FDS];

	const int given[RELAY_FDS] = { null,     null,       STDERR_FILENO, s->control_fd,
				       s->to_fd, s->from_fd, s->error_fd };
	for (int i = 0; i < RELAY_FDS; i++) {
		high[i] = fcntl(given[i], F_DUPFD_CLOEXEC, 64);
		if (high[i] < 0)
			return false;
	}
	for (int i = 0; i < RELAY_FDS; i++)
		if (dup2(high[i], i) < 0)
			return false;
	for (int i = TO_FD; i < RELAY_FDS; i++)
		if (fcntl(i, F_SETFL, O_NONBLOCK) < 0)
			return false;
	return syscall(SYS_close_range, RELAY_FDS, ~0U, 0) == 0;
}

static void forget_environment(void)
{
	for (char **v = environ; v && *v; v++)
		explicit_bzero(*v, strlen(*v));
	environ = NULL;
}

_Noreturn void relay_run(const struct relay_start *s)
{
	static struct relay r;
	struct ward_err e = { 0 };

	r.start = *s;
	r.error_open = true;
	for (size_t i = 0; i < RELAY_SLOTS_MAX; i++)
		r.slots[i].fd = -1;
	/* ward-mcp ends it: a key that is typed on its terminal is for that one */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	forget_environment();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != s->parent || !take_fds(s))
		_exit(1);
	if (confine_enter(PROC_MCP_RELAY, NULL, &e) < 0) {
		relay_say(&r, "its reader cannot be locked up: ", e.why);
		_exit(1);
	}
	relay_begin(&r);
	while (!r.ended)
		turn(&r);
	finish(&r);
	_exit(0);
}
