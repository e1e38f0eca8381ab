/*
 * The gateway's life, seen from the supervisor. In: sockets of the sandbox's namespace, what the
 * gateway says. Out: denials and totals in the result. Runs in the supervisor as the user. The
 * supervisor waits for the sockets and reads none of them: at the first sign of life in one it
 * starts the gateway (egress_start.c) and hands them all over; a command that never uses the
 * network costs no process. What the gateway says is believed no further than it goes into the
 * report.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "egress/egress_internal.h"
#include "event/result.h"
#include "observe/explain.h"
#include "rules/remedy.h"

#define END_MS 1000 /* what the gateway may take to say its totals */
#define EVENTS_AT_ONCE 64
/* between two looks at what passed: a busy gateway shall not wake the supervisor for each
 * connection */
#define REST_MS 10

bool egress_is_waiting(const struct egress *g)
{
	return g && g->waiting_fd >= 0;
}

/* It ended before it was given anything. */
static int explain_end(struct egress *g, struct ward_err *e)
{
	struct gate_event event;

	if (recv(g->fd, &event, sizeof(event), MSG_DONTWAIT) == (ssize_t)sizeof(event) &&
	    event.kind == GATE_FAILED)
		return ward_fail(e, EPIPE, "the gateway could not start: %.*s",
				 (int)sizeof(event.text), event.text);
	return ward_fail(
		e, EPIPE,
		"ward's gateway exited before the sandbox was built; the system's log may say why");
}

/* No other process has them from here on. */
static void close_sockets(struct egress *g)
{
	for (size_t i = 0; i < g->count; i++)
		close(g->sockets[i].fd);
	g->count = 0;
	own_close_fd(&g->waiting_fd);
	g->waiting_fd = -1;
}

static int give_sockets(struct egress *g, struct ward_err *e)
{
	struct gate_order order = { .word = GATE_SOCKETS,
				    .count = (uint32_t)g->count,
				    .ports = g->ports };
	int fds[NET_FDS_MAX];

	_Static_assert(NET_FDS_MAX <= IO_FDS_MAX, "one message has all of them");
	for (size_t i = 0; i < g->count; i++) {
		fds[i] = g->sockets[i].fd;
		order.kinds[i] = (uint8_t)g->sockets[i].kind;
		order.inside[i] = g->sockets[i].inside;
	}
	return io_send_fds(g->fd, &order, sizeof(order), fds, g->count) < 0 ? explain_end(g, e) : 0;
}

static void close_talk(struct egress *g)
{
	own_close_fd(&g->fd);
	own_close_fd(&g->orders_fd);
	g->fd = g->orders_fd = -1;
}

int egress_take(struct egress *g, struct running *run, int *ret_ask_fd, struct ward_err *e)
{
	int r;

	*ret_ask_fd = -1;
	g->waiting_fd = epoll_create1(EPOLL_CLOEXEC);
	if (g->waiting_fd < 0)
		return ward_fail_errno(e, "cannot wait for the sandbox's sockets");
	g->ports = run->net_ports;
	for (; run->net_count && g->count < NET_FDS_MAX; run->net_count--) {
		struct net_fd *socket = &run->net_fds[run->net_count - 1];

		if (socket->kind == NET_RULES)
			g->rules_fd = socket->fd; /* ours alone */
		else if (socket->kind == NET_ASK)
			*ret_ask_fd = socket->fd; /* so is this */
		else
			g->sockets[g->count++] = *socket;
	}
	for (size_t i = 0; i < g->count; i++) {
		struct epoll_event event = { .events = EPOLLIN };
		enum net_socket kind = g->sockets[i].kind;

		/* a seed is not connected, which looks like an end to epoll; a maker is only for
		 * dial */
		if (kind >= NET_SEED4 && kind <= NET_MAKER6)
			continue;
		if (epoll_ctl(g->waiting_fd, EPOLL_CTL_ADD, g->sockets[i].fd, &event) < 0)
			return ward_fail_errno(e, "cannot wait for the sandbox's sockets");
	}
	if (g->fd < 0)
		return 0;
	r = give_sockets(g, e); /* it was started early */
	close_sockets(g);
	return r;
}

/* Whatever goes wrong, the sandbox has no network then, and the report says so. */
static void begin(struct egress *g, struct result *r)
{
	struct ward_err e = { 0 };

	if (egress_start(g, &e) < 0 || give_sockets(g, &e) < 0) {
		strv_addf(&r->notes, "the sandbox had no network: %s", e.why);
		close_talk(g);
	}
	close_sockets(g);
}

int egress_fd(const struct egress *g)
{
	return !g ? -1 : g->waiting_fd >= 0 ? g->waiting_fd : g->rest_ms ? -1 : g->fd;
}

int egress_orders_fd(const struct egress *g)
{
	return g ? g->orders_fd : -1;
}

void egress_cut(struct egress *g)
{
	close_sockets(g); /* it may not have been started yet */
	close_talk(g);
	if (g->pid > 0)
		kill(-g->pid, SIGKILL); /* dial is of its group, and may be stuck, too */
}

/* -- what it says */

static const char *protocol_name(uint8_t protocol, char text[32])
{
	switch (protocol) {
	case 1:
	case 58:
		return "ping to";
	case 6:
		return "connection to";
	case 17:
		return "UDP to";
	default:
		snprintf(text, 32, "IP protocol %u to", protocol);
		return text;
	}
}

static void deny(const struct egress *g, const struct gate_event *event, struct result *r)
{
	struct want w = event->want;
	struct verdict v = event->verdict;
	auto_buf what = { 0 }, remedy = { 0 };
	char host[HOST_TEXT], protocol[32], request[sizeof(event->text)], more[sizeof(event->more)];

	w.host.name[sizeof(w.host.name) - 1] = '\0';
	w.host.len = (uint8_t)strlen(w.host.name);
	v.allow = false;
	if (v.reason >= VERDICT_REASONS)
		return;
	host_text(&w.host, host);
	memcpy(request, event->text, sizeof(request));
	request[sizeof(request) - 1] = '\0';
	memcpy(more, event->more, sizeof(more));
	more[sizeof(more) - 1] = '\0';
	for (char *c = request; *c; c++) /* it comes from inside */
		*c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
	for (char *c = more; *c; c++)
		*c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
	if (*request && w.port)
		buf_printf(&what, "%s to %s:%u", request, host, w.port);
	else if (w.how == WANT_DNS)
		buf_printf(&what, "name %s", host);
	else if (w.host.kind == HOST_NONE)
		buf_puts(&what, "request to the proxy");
	else if (w.port && w.host.kind == HOST_ADDRESS && w.host.ip.family == 6)
		buf_printf(&what, "%s [%s]:%u", protocol_name(event->protocol, protocol), host,
			   w.port);
	else if (w.port)
		buf_printf(&what, "%s %s:%u", protocol_name(event->protocol, protocol), host,
			   w.port);
	else
		buf_printf(&what, "%s %s", protocol_name(event->protocol, protocol), host);
	remedy_write(g->rules, &w, &v, request, more, &remedy);
	if (what.failed || remedy.failed)
		return;
	egress_report_denied(g, &w, &v, event->protocol, buf_text(&remedy), request, r);
	result_deny(r, buf_text(&what), verdict_reason_text((enum verdict_reason)v.reason),
		    remedy.len ? buf_text(&remedy) : explain_reason_advice(v.reason));
}

/* The last words of the gateway: what went through in all. */
static void take_totals(struct egress *g, const struct gate_event *event, struct result *r)
{
	g->reported = true;
	r->network.connections = event->totals.connections;
	r->network.bytes_in = event->totals.bytes_in;
	r->network.bytes_out = event->totals.bytes_out;
	r->network.names = event->totals.names;
	r->network.denied = event->totals.denied;
	r->network.spent = event->totals.spent;
	if (event->count)
		egress_report_lost(r, event->count,
				   "more denied attempts than are listed one by one");
	if (event->count)
		strv_addf(&r->notes, "%u more denied network attempts are counted but not listed",
			  event->count);
}

/* One event. False: there is none now. */
static bool read_message(struct egress *g, struct result *r)
{
	union {
		struct gate_event event;
		struct gate_shown shown;
		struct gate_request request;
		uint8_t report[FLOW_REPORT_PACKET];
		uint32_t kind;
	} said;
	ssize_t n = recv(g->fd, &said, sizeof(said), MSG_DONTWAIT);
	struct gate_event event;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n == (ssize_t)sizeof(said.shown) && said.shown.kind == GATE_SHOWN) {
		r->network.bytes_in = said.shown.totals.bytes_in;
		r->network.bytes_out = said.shown.totals.bytes_out;
		if (g->shown)
			g->shown(g->shown_context, &said.shown);
		return true;
	}
	if (n == (ssize_t)sizeof(said.request) &&
	    (said.kind == GATE_REQUEST_ASK || said.kind == GATE_REQUEST_UNASK)) {
		egress_on_request(g, &said.request);
		return true;
	}
	if (n > (ssize_t)sizeof(said.kind) && said.kind == GATE_FLOW_REPORT &&
	    egress_on_flow_report(g, said.report + sizeof(said.kind), (size_t)n - sizeof(said.kind),
				  r)) {
		if (!g->taken_by_ms)
			g->rest_ms = io_now_ms() + REST_MS;
		return true;
	}
	if (n != (ssize_t)sizeof(event)) {
		close_talk(g);
		return false;
	}
	event = said.event;
	if (event.kind == GATE_TAKEN)
		egress_on_taken(g, &event);
	if (event.kind == GATE_ASK || event.kind == GATE_UNASK)
		egress_on_ask(g, &event);
	if (event.kind == GATE_DENIED)
		deny(g, &event, r);
	if (event.kind == GATE_FAILED)
		strv_addf(&r->notes, "the gateway could not start: %.*s", (int)sizeof(event.text),
			  event.text);
	if (event.kind == GATE_TOTALS)
		take_totals(g, &event, r);
	return true;
}

void egress_handle(struct egress *g, struct result *r)
{
	int count;

	if (g->waiting_fd >= 0) {
		begin(g, r);
		return;
	}
	for (count = 0; count < EVENTS_AT_ONCE && g->fd >= 0 && read_message(g, r); count++)
		;
	if (count == EVENTS_AT_ONCE)
		g->rest_ms = 0; /* there is more */
	if (g->fd < 0 && !g->ending)
		strv_add(&r->notes, "the gateway exited before the command: from then on the "
				    "sandbox had no network");
}

void egress_end(struct egress *g, struct result *r)
{
	uint64_t until = io_now_ms() + END_MS, now;

	struct epoll_event event;

	if (!g)
		return;
	if (g->fd >= 0 && g->waiting_fd < 0)
		egress_handle(g, r); /* it may have ended while it was not polled */
	g->ending = true;
	r->network.generation = g->rules->generation;
	if (g->unpublished)
		strv_addf(&r->notes,
			  "port %u of the profile was in use on this host, so it was not published",
			  g->unpublished);
	if (g->waiting_fd >= 0 && epoll_wait(g->waiting_fd, &event, 1, 0) > 0)
		begin(g, r); /* something was tried at the very end: it must be reported */
	close_sockets(g);
	if (g->fd >= 0)
		shutdown(g->fd, SHUT_WR);
	while (g->fd >= 0 && (now = io_now_ms()) < until) {
		struct pollfd ready = { .fd = g->fd, .events = POLLIN };

		if (read_message(g, r))
			continue;
		if (g->fd >= 0 && poll(&ready, 1, (int)(until - now)) < 0 && errno != EINTR)
			break;
	}
	close_talk(g);
	egress_report_tape(g, r);
	own_close_fd(&g->rules_fd);
	own_close_fd(&g->program_fd);
	own_close_fd(&g->waf_program_fd);
	rules_free(g->own);
	if (g->waf_pid > 0 && waitpid(g->waf_pid, NULL, WNOHANG) == g->waf_pid) {
		strv_add(&r->notes,
			 "the web application firewall (ward-waf) exited before the command: from "
			 "then on rules with waf: block refused everything");
	} else if (g->waf_pid > 0) {
		kill(g->waf_pid, SIGKILL);
		while (waitpid(g->waf_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	buf_free(&g->named.text);
	if (g->pid > 0) {
		kill(-g->pid, SIGKILL); /* it has said all that it had to say */
		while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(g);
}
