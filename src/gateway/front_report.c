/*
 * What front tells the supervisor. In: decisions, and packets that the kernel refused (seen by the
 * audit socket). Out: one fixed-size event each, at most SAID_MAX a second; the rest is counted.
 * Never waits: a program that floods the gateway with attempts loses events, not service. While the
 * supervisor is slow up to LATER of them are kept and go before anything else: what is allowed
 * cannot be done so often that what is not goes unsaid. Runs in front.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/front.h"
#include "gateway/packet.h"

#define SAID_MAX 200
#define AT_ONCE 64
#define LATER 128

static bool may_say(struct front *f)
{
	uint64_t second = io_now_ms() / 1000;

	if (second != f->said_second) {
		f->said_second = second;
		f->said = 0;
	}
	return f->said++ < SAID_MAX;
}

bool front_say_later(struct front *f, bool wait)
{
	size_t at = 0;

	while (at < f->later_count && send(f->control_fd, &f->later[at], sizeof(*f->later),
					   MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) >= 0)
		at++;
	if (at)
		memmove(f->later, f->later + at, (f->later_count - at) * sizeof(*f->later));
	f->later_count -= at;
	return !f->later_count;
}

static void say(struct front *f, const struct gate_event *event)
{
	if (!may_say(f)) {
		f->unsaid++;
		return;
	}
	if (f->report.len) /* that was before */
		front_flow_report_send(f, false);
	if (!f->later_count &&
	    send(f->control_fd, event, sizeof(*event), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	if (!f->later)
		f->later = calloc(LATER, sizeof(*f->later));
	if (f->later && f->later_count < LATER)
		f->later[f->later_count++] = *event;
	else
		f->unsaid++;
}

void front_denied(struct front *f, const struct want *w, const struct verdict *v, uint8_t protocol)
{
	struct gate_event event = {
		.kind = GATE_DENIED, .protocol = protocol, .want = *w, .verdict = *v
	};

	f->totals.denied++;
	ratelimit_denied(&f->shape, v->rule);
	say(f, &event);
}

void front_refused(struct front *f, const struct want *w, const struct verdict *v,
		   const char *request, const char *more)
{
	struct gate_event event = {
		.kind = GATE_DENIED, .protocol = IPPROTO_TCP, .want = *w, .verdict = *v
	};

	snprintf(event.text, sizeof(event.text), "%s", request);
	snprintf(event.more, sizeof(event.more), "%s", more);
	f->totals.denied++;
	say(f, &event);
}

void front_totals(struct front *f)
{
	struct gate_event event = { .kind = GATE_TOTALS, .count = f->unsaid, .totals = f->totals };

	(void)!send(f->control_fd, &event, sizeof(event), MSG_NOSIGNAL);
}

void front_failed(const struct ward_err *e)
{
	struct gate_event event = { .kind = GATE_FAILED };

	snprintf(event.text, sizeof(event.text), "%.*s", (int)sizeof(event.text) - 1, e->why);
	(void)!send(GATE_FD_CONTROL, &event, sizeof(event), MSG_NOSIGNAL);
}

/* Whether the kernel brings it to a listening socket, where it is decided about and reported. */
static bool is_brought(const struct front *f, const struct packet *p)
{
	for (size_t i = 0; i < f->config.match_count && p->protocol == IPPROTO_TCP; i++) {
		const struct net_match *m = &f->config.matches[i];
		struct ip block = { .family = m->v6 ? 6 : 4 };

		memcpy(block.bytes, m->address, sizeof(block.bytes));
		if (p->port >= m->first && p->port <= m->last &&
		    (f->ports || ip_within(&p->to, &block, m->prefix)))
			return true;
	}
	return false;
}

static void audit_one(struct front *f, const uint8_t *bytes, size_t n)
{
	struct verdict v = { 0 };
	struct want w;
	struct packet p;

	if (!packet_read(bytes, n, &p) || is_brought(f, &p))
		return;
	want_destination(&w, f->names, &p.to, p.port);
	decide_name(f->rules, &w, &v);
	if (p.protocol != IPPROTO_TCP)
		verdict_refuse(&v, REASON_UDP);
	else if (v.allow || v.ask)
		return;
	front_denied(f, &w, &v, p.protocol);
}

/* The kernel's own message around a packet that the rules refused. */
static void log_one(struct front *f, const uint8_t *bytes, size_t n)
{
	const uint8_t *packet;
	size_t len = 0;

	while (n && packet_logged(&bytes, &n, &packet, &len))
		if (len)
			audit_one(f, packet, len);
}

void front_audit(struct front *f, int fd, enum net_socket kind)
{
	uint8_t bytes[1024];

	for (int i = 0; i < AT_ONCE; i++) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n < 0)
			/* also where some were lost for want of room: there are more where they
			 * came from */
			return;
		if (kind == NET_LOG)
			log_one(f, bytes, (size_t)n);
		else
			audit_one(f, bytes, (size_t)n);
	}
}
