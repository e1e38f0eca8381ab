/*
 * What the gateway let pass and what it refused, as events. In: packets of records (gateway/told.h) and denials of front. Out: events. Runs in the supervisor; what
 * front says is believed no further than it goes into an event.
 */
#include "lib/egress_internal.h"

#include <string.h>

#include "gateway/told.h"

static const char *how_name(const struct told *t)
{
	static const char names[][12] = { "dns", "transparent", "connect", "socks" };

	return t->inward ? "published" : names[t->how];
}

static void put_object(struct buf *out, const char *host, bool brackets, unsigned port)
{
	buf_printf(out, brackets ? "[%s]" : "%s", host);
	if (port)
		buf_printf(out, ":%u", port);
}

static void emit_flow(const struct egress *g, const struct told *t, struct result *r)
{
	static const char modes[][8] = { "tls", "http", "tcp" };
	bool opened = t->kind == TOLD_OPENED;
	struct ward_event v = event_make(opened ? EVENT_CONNECT : EVENT_CLOSE, opened ? ACTION_ALLOW : ACTION_LOG, NULL);
	struct ip ip = { .family = t->family };
	auto_buf object = { 0 }, rule = { 0 };
	char address[HOST_TEXT] = "";

	memcpy(ip.bytes, t->address, sizeof(ip.bytes));
	if (t->family)
		ip_text(&ip, address);
	put_object(&object, t->inward ? "inside" : t->host, !t->inward && strchr(t->host, ':'), t->port);
	event_text(&v, FIELD_OBJECT, buf_text(&object));
	event_text(&v, FIELD_HOST, t->inward ? NULL : t->host);
	event_number(&v, FIELD_PORT, t->port);
	event_text(&v, FIELD_HOW, how_name(t));
	event_number(&v, FIELD_FLOW, t->flow);
	event_number(&v, FIELD_GENERATION, t->generation);
	if (t->rule >= 0 && (uint32_t)t->rule < g->rules->n_items)
		rules_text(g->rules, t->rule, &rule);
	event_text(&v, FIELD_RULE, rule.len ? buf_text(&rule) : t->inward ? "network.ingress" : NULL);
	if (opened) {
		event_text(&v, FIELD_ADDRESS, *address && !t->inward ? address : NULL);
		event_text(&v, FIELD_MODE, t->mode < ARRAY_LEN(modes) && !t->inward ? modes[t->mode] : NULL);
		event_text(&v, FIELD_PROTOCOL, "tcp");
	} else {
		event_number(&v, FIELD_BYTES_IN, t->bytes_in);
		event_number(&v, FIELD_BYTES_OUT, t->bytes_out);
		event_number(&v, FIELD_DURATION_MS, t->number);
	}
	event_emit(r->events, &v);
}

static void emit_name(const struct egress *g, const struct told *t, struct result *r)
{
	struct ward_event v = event_make(EVENT_DNS, ACTION_ALLOW, t->host);
	auto_buf rule = { 0 };

	if (t->rule >= 0 && (uint32_t)t->rule < g->rules->n_items)
		rules_text(g->rules, t->rule, &rule);
	event_text(&v, FIELD_HOST, t->host);
	event_text(&v, FIELD_RULE, rule.len ? buf_text(&rule) : NULL);
	event_number(&v, FIELD_GENERATION, t->generation);
	event_emit(r->events, &v);
}

void egress_report_lost(struct result *r, uint64_t lost, const char *why)
{
	struct ward_event v = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, "gateway");

	event_text(&v, FIELD_WHY, why);
	event_number(&v, FIELD_LOST, lost);
	event_emit(r->events, &v);
}

bool egress_on_told(const struct egress *g, const uint8_t *bytes, size_t n, struct result *r)
{
	struct told t;
	size_t len;

	for (; n && (len = told_get(bytes, n, &t)); bytes += len, n -= len)
		switch ((enum told_kind)t.kind) {
		case TOLD_NAME:
			emit_name(g, &t, r);
			break;
		case TOLD_OPENED:
		case TOLD_CLOSED:
			emit_flow(g, &t, r);
			break;
		case TOLD_LOST:
			egress_report_lost(r, t.number, "more happened than could be told");
			break;
		case TOLD_KINDS:
			break;
		}
	return n == 0;
}

void egress_report_denied(const struct egress *g, const struct want *w, const struct verdict *v, uint8_t protocol, const char *remedy, struct result *r)
{
	static const char hows[][12] = { "dns", "transparent", "connect", "socks" };
	enum event_kind kind = w->how == WANT_DNS ? EVENT_DNS : protocol == 6 ? EVENT_CONNECT : EVENT_PACKET;
	struct ward_event e = event_make(kind, ACTION_DENY, NULL);
	auto_buf object = { 0 }, rule = { 0 };
	char host[HOST_TEXT] = "";

	if (!r->events)
		return;
	if (w->host.kind != HOST_NONE)
		host_text(&w->host, host);
	put_object(&object, *host ? host : "proxy", strchr(host, ':') != NULL, w->port);
	if (v->rule >= 0 && (uint32_t)v->rule < g->rules->n_items)
		rules_text(g->rules, v->rule, &rule);
	event_text(&e, FIELD_OBJECT, buf_text(&object));
	event_text(&e, FIELD_HOST, *host ? host : NULL);
	if (w->port)
		event_number(&e, FIELD_PORT, w->port);
	event_text(&e, FIELD_RULE, rule.len ? buf_text(&rule) : "network.egress_allowlist");
	event_text(&e, FIELD_REASON, verdict_reason_name((enum verdict_reason)v->reason));
	event_text(&e, FIELD_WHY, verdict_reason_text((enum verdict_reason)v->reason));
	event_text(&e, FIELD_REMEDY, *remedy ? remedy : NULL);
	event_text(&e, FIELD_HOW, w->how < ARRAY_LEN(hows) ? hows[w->how] : NULL);
	event_text(&e, FIELD_PROTOCOL, w->how == WANT_DNS ? NULL : protocol == 6 ? "tcp" : protocol == 17 ? "udp" : protocol == 1 || protocol == 58 ? "icmp" : "other");
	event_number(&e, FIELD_GENERATION, v->generation);
	event_emit(r->events, &e);
}
