/*
 * The network of a sandbox that runs: asking for it, changing it. In: a connection to its
 * supervisor. Out: rows, gathered over as many answers as they take; each answer was checked
 * (control.h). Between two of them the world may have moved on: a list is what was seen, not one
 * moment.
 */
#include "control/client_net.h"
#include "policy/units.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "state/boxes_internal.h"
#include "state/runs.h"

#define ROWS_MAX 100000
#define ANSWER_BYTES                                                                               \
	(sizeof(struct control_message) + sizeof(struct control_net) +                             \
	 CONTROL_NET_ROWS * sizeof(struct control_net_rule))

int client_net_find(const char *word, struct box_info *ret_info, struct ward_err *e)
{
	return client_find_alive(word, ret_info, e);
}

int client_net_list(struct boxes *ret_boxes, struct ward_err *e)
{
	int r = client_list(ret_boxes, e);

	if (r == 0)
		client_recover(ret_boxes);
	return r;
}

/* One answer, NUL-free and checked; its length, or -errno. */
static ssize_t receive(struct client *c, char *bytes, size_t cap, struct ward_err *e)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	struct control_message m;
	ssize_t n;
	int r;

	do
		r = poll(&p, 1, CLIENT_ANSWER_MS);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return ward_fail(e, ETIMEDOUT, "the sandbox %s does not answer", c->id);
	n = recv(c->fd, bytes, cap, MSG_TRUNC);
	if (n <= 0)
		return ward_fail(e, ESRCH, "the sandbox %s has ended", c->id);
	if ((size_t)n > cap || control_check_answer(bytes, (size_t)n) < 0)
		return ward_fail(e, EPROTO, "the sandbox %s sent a malformed answer", c->id);
	memcpy(&m, bytes, sizeof(m));
	if (m.op == CONTROL_ERROR) {
		control_read_error(bytes, (size_t)n, e);
		return -e->code;
	}
	return m.op == CONTROL_NET
		       ? n
		       : ward_fail(e, EPROTO, "the sandbox %s sent an unexpected answer", c->id);
}

/* All rows of one kind, appended to *rows. */
static int gather(struct client *c, enum control_net_what what, size_t row_bytes,
		  struct control_net *ret_now, struct buf *rows, struct ward_err *e)
{
	auto_free char *bytes = malloc(ANSWER_BYTES);
	struct control_message m = { 0 };

	if (!bytes)
		return ward_fail(e, ENOMEM, "out of memory");
	do {
		int32_t from = m.b;
		ssize_t n;
		int r = client_send(c, CONTROL_NET_SHOW, 0, (int32_t)what, from, e);

		if (r < 0)
			return r;
		n = receive(c, bytes, ANSWER_BYTES, e);
		if (n < 0)
			return (int)n;
		memcpy(&m, bytes, sizeof(m));
		memcpy(ret_now, bytes + sizeof(m), sizeof(*ret_now));
		if (m.a != (int32_t)what || (m.b && m.b <= from))
			return ward_fail(e, EPROTO, "the sandbox %s sent an unexpected answer",
					 c->id);
		buf_add(rows, bytes + sizeof(m) + sizeof(*ret_now),
			control_net_rows(bytes, (size_t)n) * row_bytes);
	} while (m.b && !rows->failed && rows->len / row_bytes < ROWS_MAX);
	return rows->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int client_net_show(struct client *c, struct client_net *ret, struct ward_err *e)
{
	auto_buf rules = { 0 }, flows = { 0 };
	struct client_net n = { 0 };
	int r = gather(c, CONTROL_NET_FLOWS, sizeof(*n.flows), &n.now, &flows, e);

	if (r == 0)
		r = gather(c, CONTROL_NET_RULES, sizeof(*n.rules), &n.now, &rules, e);
	if (r < 0)
		return r;
	n.flow_count = flows.len / sizeof(*n.flows);
	n.rule_count = rules.len / sizeof(*n.rules);
	n.flows = calloc(n.flow_count + 1, sizeof(*n.flows));
	n.rules = calloc(n.rule_count + 1, sizeof(*n.rules));
	if (!n.flows || !n.rules) {
		client_net_clear(&n);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	if (flows.len)
		memcpy(n.flows, flows.data, flows.len);
	if (rules.len)
		memcpy(n.rules, rules.data, rules.len);
	*ret = n;
	return 0;
}

int client_net_show_now(struct client *c, struct control_net *ret, struct ward_err *e)
{
	auto_buf rows = { 0 };

	return gather(c, CONTROL_NET_SUMMARY, sizeof(struct control_net_rule), ret, &rows, e);
}

void client_net_clear(struct client_net *n)
{
	free(n->rules);
	free(n->flows);
	*n = (struct client_net){ 0 };
}

int client_net_change(struct client *c, bool deny, char *const *lines, size_t count,
		      unsigned seconds, struct control_net *ret, struct ward_err *e)
{
	auto_buf packet = { 0 };
	char bytes[sizeof(struct control_message) + CONTROL_ERROR_BYTES];
	int r = control_write_net(deny ? CONTROL_NET_DENY : CONTROL_NET_ALLOW, lines, count,
				  seconds, &packet);
	ssize_t n;

	if (r == -E2BIG) {
		ward_fail(e, E2BIG, "more than %d rules in one change, or rules that are too long",
			  CONTROL_NET_LINES);
		return ward_remedy(e, "split it into several changes");
	}
	if (r < 0)
		return ward_fail(e, -r, "no rule given");
	r = client_send_packet(c, packet.data, packet.len, e);
	if (r < 0)
		return r;
	n = receive(c, bytes, sizeof(bytes), e);
	if (n < 0)
		return (int)n;
	memcpy(ret, bytes + sizeof(struct control_message), sizeof(*ret));
	return 0;
}

/* -- as text */

const char *client_net_mode(const struct control_net *n)
{
	return n->mode == 1 ? "restricted" : n->mode == 2 ? "open" : "none";
}

const char *client_net_gateway(const struct control_net *n)
{
	return n->state == 0 ? "waiting" : n->state == 1 ? "running" : "ended";
}

const char *client_net_rule_mode(const struct control_net_rule *r)
{
	static const char *const modes[] = { "", "splice", "http", "tcp" };

	return r->mode < ARRAY_LEN(modes) ? modes[r->mode] : "";
}

static void json_limits(struct json *j, const struct control_net_limits *l)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "connections", l->connections },     { "connection_rate", l->connection_rate },
		{ "receive_bytes", l->receive_bytes }, { "send_bytes", l->send_bytes },
		{ "bandwidth", l->bandwidth },         { "request_rate", l->request_rate }
	};

	json_begin_object(j, "limits");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].value != UINT64_MAX)
			json_uint(j, rows[i].name, rows[i].value);
	if (l->spend != UINT64_MAX)
		units_json_money(j, "spend", l->spend);
	json_end_object(j);
}

/* What requests have used of their budgets. */
static void json_budget(struct json *j, const struct control_net_limits *l, uint64_t requests,
			uint64_t spent, uint64_t held)
{
	uint64_t left = l->spend > spent ? l->spend - spent : 0;

	json_uint(j, "requests", requests);
	if (l->spend == UINT64_MAX && !spent && !held)
		return;
	units_json_money(j, "spent", spent);
	units_json_money(j, "held", held);
	if (l->spend != UINT64_MAX)
		units_json_money(j, "left", left);
}

void client_net_json_now(struct json *j, const struct control_net *n)
{
	json_string(j, "mode", client_net_mode(n));
	json_string(j, "gateway", client_net_gateway(n));
	json_uint(j, "generation", n->generation);
	json_string(j, "workspace", n->workspace);
}

static void json_rule(struct json *j, const struct control_net_rule *r)
{
	json_begin_object(j, NULL);
	json_uint(j, "number", r->number);
	json_string(j, "rule", r->text);
	json_string(j, "action", r->deny ? "deny" : "allow");
	json_bool(j, "live", r->added);
	json_string(j, "mode", *client_net_rule_mode(r) ? client_net_rule_mode(r) : NULL);
	json_bool(j, "private", r->private);
	json_uint(j, "hits", r->hits);
	json_uint(j, "open", r->open);
	json_uint(j, "bytes_in", r->bytes_in);
	json_uint(j, "bytes_out", r->bytes_out);
	json_budget(j, &r->limits, r->requests, r->spent, r->held);
	if (r->remaining_ms)
		json_uint(j, "lasts_ms", r->remaining_ms);
	json_limits(j, &r->limits);
	json_end_object(j);
}

size_t client_net_service_open(const struct client_net *n, const struct control_net_rule *s)
{
	size_t open = 0;

	for (size_t i = 0; i < n->flow_count; i++) {
		const struct control_net_flow *f = &n->flows[i];
		char name[sizeof(f->host) + 16];
		int len = snprintf(name, sizeof(name), "%s:%u at ", f->host, f->port);

		open += !f->inward && f->rule < 0 && strncmp(s->text, name, (size_t)len) == 0;
	}
	return open;
}

static void json_service(struct json *j, const struct client_net *n,
			 const struct control_net_rule *r)
{
	json_begin_object(j, NULL);
	json_string(j, "service", r->text);
	json_string(j, "action", r->deny ? "deny" : "allow");
	json_uint(j, "open", client_net_service_open(n, r));
	json_end_object(j);
}

static void json_flow(struct json *j, const struct control_net_flow *f)
{
	json_begin_object(j, NULL);
	json_string(j, "host", f->host);
	json_uint(j, "port", f->port);
	json_string(j, "direction", f->inward ? "in" : "out");
	if (f->rule >= 0)
		json_uint(j, "rule", (uint64_t)f->rule);
	json_uint(j, "generation", f->generation);
	json_uint(j, "bytes_in", f->bytes_in);
	json_uint(j, "bytes_out", f->bytes_out);
	json_uint(j, "age_ms", f->age_ms);
	json_end_object(j);
}

void client_net_json(struct json *j, const struct client_net *n)
{
	client_net_json_now(j, &n->now);
	json_begin_object(j, "totals");
	json_uint(j, "connections", n->now.connections);
	json_uint(j, "bytes_in", n->now.bytes_in);
	json_uint(j, "bytes_out", n->now.bytes_out);
	json_uint(j, "names", n->now.names);
	json_uint(j, "denied", n->now.denied);
	json_budget(j, &n->now.limits, n->now.requests, n->now.spent, n->now.held);
	json_end_object(j);
	json_limits(j, &n->now.limits);
	json_begin_array(j, "rules");
	for (size_t i = 0; i < n->rule_count; i++)
		if (!n->rules[i].service)
			json_rule(j, &n->rules[i]);
	json_end_array(j);
	json_begin_array(j, "services");
	for (size_t i = 0; i < n->rule_count; i++)
		if (n->rules[i].service)
			json_service(j, n, &n->rules[i]);
	json_end_array(j);
	json_begin_array(j, "connections");
	for (size_t i = 0; i < n->flow_count; i++)
		json_flow(j, &n->flows[i]);
	json_end_array(j);
}
