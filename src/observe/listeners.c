/*
 * Servers that nobody can reach. In: calls of listen (tables/watched.def), shown before they go on.
 * Out: one event for each port on which something inside still listens a while later and that
 * network.ingress does not publish; at the end of a run that failed, was interrupted or had such a
 * server for long, one denial with the option that publishes it. Tests that start a server of their
 * own for a moment, or on a port that the kernel chose, are not reported.
 *
 * The tables of the sandbox's sockets are opened while the caller waits, so that they are its
 * network namespace's and no other's, whatever becomes of its pid. Runs in the supervisor.
 */
#include "observe/listeners.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"
#include "event/event.h"
#include "event/result.h"
#include "model/plan.h"

#define TABLE_BYTES (256 * 1024)
#define SETTLE_MS 2000 /* a server that ends sooner was a test's */
#define LONG_MS 10000
#define AGAIN_MS 1000
#define STATE_LISTEN 0x0a
#define CHOSEN_PORTS 32768 /* from here on the kernel chooses them */
#define LOW_PORTS 1024     /* only root may publish them as they are */

void listeners_init(struct listeners *l)
{
	*l = (struct listeners){ .table_fds = { -1, -1 } };
}

void listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < 2; i++) {
		own_close_fd(&l->table_fds[i]);
		l->table_fds[i] = -1;
	}
	l->look_ms = 0;
}

uint16_t listeners_read_line(const char *line)
{
	const char *local = strchr(line, ':');
	unsigned port, state;

	/* "  0: 0100007F:1538 00000000:0000 0A ..." */
	if (!local ||
	    sscanf(local + 1, " %*32[0-9A-F]:%4x %*32[0-9A-F]:%*4x %2x", &port, &state) != 2 ||
	    state != STATE_LISTEN)
		return 0;
	return (uint16_t)port;
}

struct look {
	const struct plan *plan;
	uint64_t now_ms;
	struct result *result;
};

static bool is_published(const struct plan *p, uint16_t port)
{
	for (size_t i = 0; i < p->net.published_count; i++)
		if (p->net.published[i].inside == port)
			return true;
	return false;
}

static const char why[] = "a program inside listens there, and nothing outside can reach it";

static void put_remedy(struct buf *out, uint16_t port)
{
	if (port < LOW_PORTS)
		buf_printf(out, "network.ingress: [\"%u:%u\"]", 8000U + port, port);
	else
		buf_printf(out, "network.ingress: [\"%u\"]", port);
}

static void report(uint16_t port, struct result *r)
{
	struct ward_event v;
	char object[24];
	auto_buf remedy = { 0 };

	snprintf(object, sizeof(object), "port %u", port);
	put_remedy(&remedy, port);
	v = event_make(EVENT_CONNECT, ACTION_DENY, object);
	event_text(&v, FIELD_RULE, "network.ingress");
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(r->events, &v);
}

static void saw_port(struct listeners *l, uint16_t port, const struct look *look)
{
	if (port >= CHOSEN_PORTS || is_published(look->plan, port))
		return;
	for (size_t i = 0; i < l->own_count; i++)
		if (l->own[i] == port)
			return;
	for (size_t i = 0; i < l->count; i++)
		if (l->seen[i].port == port) {
			l->seen[i].last_ms = look->now_ms;
			return;
		}
	if (l->count == LISTENERS_MAX)
		return;
	l->seen[l->count++] = (struct listener){ .port = port,
						 .first_ms = look->now_ms,
						 .last_ms = look->now_ms };
	report(port, look->result);
}

/* Hands each port that is listened on to the function. */
static void read_tables(struct listeners *l,
			void (*on_port)(struct listeners *, uint16_t, const struct look *),
			const struct look *look)
{
	for (size_t i = 0; i < 2; i++) {
		auto_buf text = { 0 };
		const char *line;

		if (l->table_fds[i] < 0 || lseek(l->table_fds[i], 0, SEEK_SET) < 0 ||
		    io_read_all(l->table_fds[i], TABLE_BYTES, &text) < 0)
			continue;
		for (line = buf_text(&text); *line;
		     line += strcspn(line, "\n"), line += *line == '\n') {
			uint16_t port = listeners_read_line(line);

			if (port)
				on_port(l, port, look);
		}
	}
}

/* Before the first call: those are ward's own, the gateway's. */
static void note_own(struct listeners *l, uint16_t port, const struct look *look unused_arg)
{
	if (l->own_count < LISTENERS_OWN_MAX)
		l->own[l->own_count++] = port;
}

void listeners_saw(struct listeners *l, int listener_fd, const struct seccomp_notif *q,
		   uint64_t now_ms)
{
	static const char names[2][5] = { "tcp", "tcp6" };
	bool first = l->table_fds[0] < 0;

	for (size_t i = 0; i < 2 && first; i++) {
		char path[40];

		snprintf(path, sizeof(path), "/proc/%u/net/%s", q->pid, names[i]);
		l->table_fds[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (first)
		read_tables(l, note_own, NULL);
	/* its pid may be another process's by now: then so are the tables */
	if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &q->id) < 0) {
		if (first)
			listeners_close(l);
		return;
	}
	if (!l->look_ms)
		l->look_ms = now_ms + SETTLE_MS;
}

void listeners_look(struct listeners *l, const struct plan *p, uint64_t now_ms, struct result *r)
{
	struct look look = { p, now_ms, r };

	if (!l->look_ms || now_ms < l->look_ms)
		return;
	l->look_ms = now_ms + AGAIN_MS;
	read_tables(l, saw_port, &look);
}

void listeners_finish(const struct listeners *l, struct result *r)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct listener *s = &l->seen[i];
		auto_buf what = { 0 }, remedy = { 0 };

		if (r->exit_code == 0 && s->last_ms - s->first_ms < LONG_MS)
			continue;
		buf_printf(&what, "connection to port %u", s->port);
		put_remedy(&remedy, s->port);
		if (!what.failed && !remedy.failed)
			result_deny(r, buf_text(&what), why, buf_text(&remedy));
	}
}
