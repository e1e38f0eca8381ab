/*
 * The network of a sandbox, through the control socket. In: rules that the operator wants changed,
 * questions about what there is. Out: answers when the gateway has given its own; nothing here
 * waits. Only a client that serve.c lets in can ask: the same user or root, outside of every
 * sandbox. What the gateway says is shown as text and believed no further.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "event/event.h"
#include "protocol/gateway.h"
#include "run/box_internal.h"
#include "run/serve_internal.h"

static struct control_net_limits limits_of(const struct rule_limits *l)
{
	return (struct control_net_limits){ l->connections, l->connection_rate, l->receive_bytes,
					    l->send_bytes,  l->bandwidth,       l->request_rate,
					    l->spend };
}

/* What is known without the gateway. */
static struct control_net summary(const struct box *b, const struct gate_shown *shown)
{
	const struct egress *g = b->egress;
	const struct rules *rules = egress_rules(g);
	struct control_net n = { .generation = egress_generation(g),
				 .limits = limits_of(&rules->limits),
				 .closed = egress_closed(g),
				 .mode = rules->network,
				 .state = (uint8_t)egress_state(g),
				 .by_port = egress_by_port(g) };

	snprintf(n.workspace, sizeof(n.workspace), "%.*s", (int)sizeof(n.workspace) - 1,
		 b->plan->workspace);
	for (uint32_t i = 0; i < rules->n_items; i++)
		n.rules += !rules->items[i].dead;
	if (shown) {
		n.connections = shown->totals.connections;
		n.bytes_in = shown->totals.bytes_in;
		n.bytes_out = shown->totals.bytes_out;
		n.names = shown->totals.names;
		n.denied = shown->totals.denied;
		n.open = shown->whole.open;
		n.requests = shown->whole.requests;
		n.spent = shown->whole.spent;
		n.held = shown->whole.held;
	}
	return n;
}

static void put_rule(const struct egress *g, uint32_t i, const struct gate_meter *m,
		     struct buf *out)
{
	const struct rules *rules = egress_rules(g);
	const struct rule *rule = &rules->items[i];
	struct control_net_rule row = { .number = i,
					.deny = rule->deny,
					.added = rule->added,
					.private = rule->private,
					.mode = rule->moded ? (uint8_t)(rule->mode + 1) : 0,
					.remaining_ms = egress_remaining_ms(g, i),
					.limits = limits_of(&rule->limits) };
	auto_buf text = { 0 };

	rules_text(rules, (int32_t)i, &text);
	if (text.len < sizeof(row.text))
		snprintf(row.text, sizeof(row.text), "%s", buf_text(&text));
	else
		snprintf(row.text, sizeof(row.text), "%.*s...", (int)sizeof(row.text) - 4,
			 buf_text(&text));
	if (m) {
		row.hits = rule->deny ? m->denied : m->opened;
		row.open = m->open;
		row.bytes_in = m->bytes_in;
		row.bytes_out = m->bytes_out;
		row.requests = m->requests;
		row.spent = m->spent;
		row.held = m->held;
	}
	buf_add(out, &row, sizeof(row));
}

/* "cache:7001 at 127.0.0.1": a service of the host, and whether a deny rule wins over it. */
static void put_service(const struct rules *rules, uint32_t i, struct buf *out)
{
	const struct rule_service *s = &rules->services[i];
	struct control_net_rule row = { .number = rules->n_items + i,
					.service = true,
					.limits = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
						    UINT64_MAX, UINT64_MAX, UINT64_MAX } };
	char address[HOST_TEXT];
	int32_t denied_by = -1;
	struct host host;

	if (host_read(rules->text + s->host, s->len, &host) == HOST_FINE)
		(void)rules_service(rules, &host, s->port, &denied_by);
	row.deny = denied_by >= 0;
	snprintf(row.text, sizeof(row.text), "%.*s:%u at %s", s->len, rules->text + s->host,
		 s->port, ip_text(&s->ip, address));
	buf_add(out, &row, sizeof(row));
}

/* Rules from a number on, and behind them the host's services; those that were taken back are left
 * out. Returns where to go on, 0: nowhere. */
static uint32_t put_rules(const struct egress *g, uint32_t from, const struct gate_shown *shown,
			  struct buf *out)
{
	const struct rules *rules = egress_rules(g);
	uint32_t i, all = rules->n_items + rules->n_services;

	for (i = from; i < all && i - from < CONTROL_NET_ROWS; i++)
		if (i >= rules->n_items)
			put_service(rules, i - rules->n_items, out);
		else if (!rules->items[i].dead)
			put_rule(g, i,
				 shown && i - from < shown->count ? &shown->rows.meters[i - from]
								  : NULL,
				 out);
	return i < all ? i : 0;
}

static void put_flows(const struct gate_shown *shown, struct buf *out)
{
	for (uint32_t i = 0; i < shown->count && i < GATE_ROWS; i++) {
		const struct gate_flow *f = &shown->rows.flows[i];
		struct control_net_flow row = { .generation = f->generation,
						.bytes_in = f->bytes_in,
						.bytes_out = f->bytes_out,
						.age_ms = f->age_ms,
						.rule = f->rule,
						.port = f->port,
						.inward = f->inward,
						.how = f->how,
						.open = f->bytes_in || f->bytes_out };

		snprintf(row.host, sizeof(row.host), "%.*s", (int)sizeof(f->host) - 1, f->host);
		buf_add(out, &row, sizeof(row));
	}
}

static void answer(struct serve *s, struct serve_client *c, const struct gate_shown *shown)
{
	struct control_message m = { .magic = CONTROL_MAGIC,
				     .op = CONTROL_NET,
				     .a = (int32_t)c->net_what };
	struct control_net n = summary(s->box, shown);
	auto_buf out = { 0 };
	uint32_t next = 0;

	buf_add(&out, &m, sizeof(m));
	buf_add(&out, &n, sizeof(n));
	if (c->net_what == CONTROL_NET_RULES)
		next = put_rules(s->box->egress, c->net_from, shown, &out);
	if (c->net_what == CONTROL_NET_FLOWS && shown) {
		put_flows(shown, &out);
		next = shown->next;
	}
	c->net_op = 0;
	m.b = (int32_t)(next & INT32_MAX);
	if (out.failed) {
		c->gone = true;
		return;
	}
	memcpy(out.data, &m, sizeof(m));
	serve_send(c, out.data, out.len, NULL, 0);
}

static void take_shown(void *context, const struct gate_shown *shown)
{
	struct serve *s = context;

	for (size_t i = 0; i < s->client_count; i++)
		if (s->clients[i].net_op == CONTROL_NET_SHOW &&
		    (uint32_t)s->clients[i].number == shown->tag)
			answer(s, &s->clients[i], shown);
}

/* Asks the gateway; where there is none, what is known is all. */
static void ask(struct serve *s, struct serve_client *c)
{
	unsigned what = c->net_what == CONTROL_NET_FLOWS ? SHOW_FLOWS : SHOW_METERS;

	c->net_op = CONTROL_NET_SHOW;
	egress_on_shown(s->box->egress, take_shown, s);
	if (egress_ask(s->box->egress, what, c->net_from, (uint32_t)c->number) < 0)
		answer(s, c, NULL);
}

/* Each rule is an event: the journal shows which rules were in force when. */
static void report(const struct serve *s, const struct serve_client *c,
		   const struct control_message *m, char *const *lines, size_t count)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(peer);

	(void)!getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	for (size_t i = 0; i < count; i++) {
		struct ward_event v = event_make(
			EVENT_POLICY_CHANGE, m->op == CONTROL_NET_DENY ? ACTION_DENY : ACTION_ALLOW,
			lines[i]);

		event_text(&v, FIELD_CHANGE, m->op == CONTROL_NET_DENY ? "deny" : "allow");
		event_text(&v, FIELD_VIA, "control");
		event_number(&v, FIELD_UID, peer.uid);
		event_number(&v, FIELD_PID, (uint64_t)peer.pid);
		event_number(&v, FIELD_GENERATION, c->net_generation);
		if (m->b) {
			event_number(&v, FIELD_VALUE, (uint64_t)m->b);
			event_text(&v, FIELD_UNIT, "seconds");
		}
		event_emit(s->box->result->events, &v);
	}
}

static void change(struct serve *s, struct serve_client *c, const struct control_message *m,
		   char *text)
{
	char *lines[CONTROL_NET_LINES];
	struct ward_err e = { 0 };
	size_t count = 0;

	for (; count < (size_t)m->a && count < CONTROL_NET_LINES; text += strlen(text) + 1)
		lines[count++] = text;
	if (egress_change(s->box->egress, lines, count, m->op == CONTROL_NET_DENY, (uint64_t)m->b,
			  &c->net_generation, &e) < 0) {
		serve_refuse(c, &e);
		return;
	}
	report(s, c, m, lines, count);
	c->net_op = m->op;
	c->net_what = CONTROL_NET_SUMMARY;
	serve_net_look(s);
}

void serve_net_look(struct serve *s)
{
	struct egress *g = s->box->egress;

	for (size_t i = 0; i < s->client_count; i++) {
		struct serve_client *c = &s->clients[i];
		struct ward_err e = { 0 };

		if (!c->net_op || c->gone)
			continue;
		if (c->net_op == CONTROL_NET_SHOW) {
			if (egress_state(g) == EGRESS_ENDED)
				answer(s, c, NULL);
		} else if (egress_state(g) == EGRESS_ENDED) {
			c->net_op = 0;
			ward_fail(&e, EPIPE,
				  "the gateway exited before it had the rules: the sandbox no "
				  "longer has a network");
			serve_refuse(c, &e);
		} else if (egress_generation(g) >= c->net_generation) {
			answer(s, c, NULL);
		}
	}
}

void serve_net(struct serve *s, struct serve_client *c, const struct control_message *m, char *text,
	       size_t n)
{
	struct ward_err e = { 0 };

	(void)n; /* control_check_request() has counted the strings */
	if (!s->box->egress) {
		ward_fail(&e, EOPNOTSUPP, "the sandbox %s has no network", s->entry->id);
		ward_remedy(&e, "start it with --allow HOST, or with network.mode: restricted");
		serve_refuse(c, &e);
		return;
	}
	c->net_what = (uint32_t)m->a;
	c->net_from = (uint32_t)m->b;
	if (m->op == CONTROL_NET_SHOW)
		ask(s, c);
	else
		change(s, c, m, text);
}
