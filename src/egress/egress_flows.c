/*
 * What the gateway let pass and what it refused, as events. In: packets of records
 * (rules/flow_report.h) and denials of front. Out: events. Runs in the supervisor; what front says
 * is believed no further than it goes into an event.
 */
#include "egress/egress_internal.h"

#include <stdio.h>
#include <string.h>

#include "event/event.h"
#include "event/result.h"
#include "observe/provenance.h"
#include "plan/plan_canary.h"
#include "policy/units.h"
#include "rules/flow_report.h"

static const char *how_name(const struct flow_report *t)
{
	static const char names[][12] = { "dns", "transparent", "connect", "socks" };

	return t->inward ? "published" : names[t->how];
}

#define OBJECT_TEXT (HOST_TEXT + 8) /* brackets, a colon, five digits */

/* HOST:PORT, [HOST]:PORT, or HOST where the port is 0. */
static void object_text(char out[OBJECT_TEXT], const char *host, bool brackets, uint16_t port)
{
	size_t n = strnlen(host, HOST_TEXT - 1);
	char *at = out;
	uint16_t unit = 1;

	if (brackets)
		*at++ = '[';
	memcpy(at, host, n);
	at += n;
	if (brackets)
		*at++ = ']';
	if (port)
		*at++ = ':';
	while (port / unit >= 10)
		unit = (uint16_t)(unit * 10);
	for (; port && unit; unit /= 10)
		*at++ = (char)('0' + port / unit % 10);
	*at = '\0';
}

/* A rule as the policy has it; one after another is mostly the same. */
static const char *rule_name(struct egress *g, int32_t rule)
{
	struct egress_named *n = &g->named;

	if (rule < 0 || (uint32_t)rule >= g->rules->n_items)
		return NULL;
	if (!n->text.len || n->rule != rule || n->generation != g->rules->generation) {
		n->text.len = 0;
		rules_text(g->rules, rule, &n->text);
		n->rule = rule;
		n->generation = g->rules->generation;
	}
	return n->text.len ? buf_text(&n->text) : NULL;
}

/* The fields are set in the order of the table: that is cheapest, and there may be thousands a
 * second. */
static void emit_flow(struct egress *g, const struct flow_report *t, struct result *r)
{
	static const char modes[][8] = { "tls", "http", "tcp" };
	bool opened = t->kind == FLOW_REPORT_OPENED;
	struct ward_event v = event_make(opened ? EVENT_CONNECT : EVENT_CLOSE,
					 opened ? ACTION_ALLOW : ACTION_LOG, NULL);
	struct ip ip = { .family = t->family };
	char object[OBJECT_TEXT], address[HOST_TEXT] = "";
	const char *rule = rule_name(g, t->rule);

	object_text(object, t->inward ? "inside" : t->host, !t->inward && strchr(t->host, ':'),
		    t->port);
	event_text(&v, FIELD_OBJECT, object);
	event_text(&v, FIELD_RULE, rule ? rule : t->inward ? "network.ingress" : NULL);
	if (!opened)
		event_number(&v, FIELD_DURATION_MS, t->number);
	event_text(&v, FIELD_HOST, t->inward ? NULL : t->host);
	event_number(&v, FIELD_PORT, t->port);
	if (opened) {
		memcpy(ip.bytes, t->address, sizeof(ip.bytes));
		if (t->family && !t->inward)
			event_text(&v, FIELD_ADDRESS, ip_text(&ip, address));
		event_text(&v, FIELD_PROTOCOL, "tcp");
		event_text(&v, FIELD_MODE,
			   t->mode < ARRAY_LEN(modes) && !t->inward ? modes[t->mode] : NULL);
	}
	event_text(&v, FIELD_HOW, how_name(t));
	event_number(&v, FIELD_FLOW, t->flow);
	event_number(&v, FIELD_GENERATION, t->generation);
	if (!opened) {
		event_number(&v, FIELD_BYTES_IN, t->bytes_in);
		event_number(&v, FIELD_BYTES_OUT, t->bytes_out);
	}
	event_emit(r->events, &v);
}

static void emit_name(struct egress *g, const struct flow_report *t, struct result *r)
{
	struct ward_event v = event_make(EVENT_DNS, ACTION_ALLOW, t->host);

	event_text(&v, FIELD_RULE, rule_name(g, t->rule));
	event_text(&v, FIELD_HOST, t->host);
	event_number(&v, FIELD_GENERATION, t->generation);
	event_emit(r->events, &v);
}

/* What a request to a language model came to. */
static void emit_spent(const struct egress *g, const struct flow_report *t, struct result *r)
{
	struct ward_event v =
		event_make(EVENT_SPEND, ACTION_LOG, *t->host ? t->host : "unknown model");
	auto_buf rule = { 0 }, cost = { 0 };

	if (t->rule >= 0 && (uint32_t)t->rule < g->rules->n_items)
		rules_text(g->rules, t->rule, &rule);
	units_put_money(t->number, &cost);
	event_text(&v, FIELD_RULE, rule.len ? buf_text(&rule) : NULL);
	event_number(&v, FIELD_GENERATION, t->generation);
	event_number(&v, FIELD_TOKENS_IN, t->bytes_out);
	event_number(&v, FIELD_TOKENS_OUT, t->bytes_in);
	event_text(&v, FIELD_COST, buf_text(&cost));
	event_emit(r->events, &v);
}

/* A rule of the firewall matched. */
static void emit_waf(const struct egress *g, const struct flow_report *t, struct result *r)
{
	static const char severities[][12] = { "emergency", "alert",  "critical", "error",
					       "warning",   "notice", "info",     "debug" };
	struct ward_event v = event_make(EVENT_WAF, t->inward ? ACTION_DENY : ACTION_LOG, t->host);
	auto_buf rule = { 0 };

	if (t->rule >= 0 && (uint32_t)t->rule < g->rules->n_items)
		rules_text(g->rules, t->rule, &rule);
	event_text(&v, FIELD_RULE, rule.len ? buf_text(&rule) : NULL);
	event_number(&v, FIELD_FLOW, t->flow);
	event_number(&v, FIELD_GENERATION, t->generation);
	if (t->number)
		event_number(&v, FIELD_SIGNATURE_ID, t->number);
	event_text(&v, FIELD_LEVEL,
		   severities[t->bytes_in < ARRAY_LEN(severities) ? t->bytes_in : 7]);
	event_emit(r->events, &v);
}

/* The kind as it is, or for "canary:NUMBER" its name. */
static void name_canary(const struct egress *g, const char *kind, char *ret, size_t cap)
{
	static const char prefix[] = "canary:";
	const struct canaries *c = g->plan->live->canaries;
	unsigned long number;

	snprintf(ret, cap, "%s", kind);
	if (!c || strncmp(kind, prefix, sizeof(prefix) - 1) != 0)
		return;
	number = strtoul(kind + sizeof(prefix) - 1, NULL, 10);
	if (number < c->value_count)
		snprintf(ret, cap, CANARY_SENT "%s", c->values[number].name);
}

/* What looks like a secret is in a request: "KIND WHERE HOST". */
static void emit_secret(const struct egress *g, const struct flow_report *t, struct result *r)
{
	static const char *const done[] = { "the request was blocked", "it was overwritten",
					    "the request was sent" };
	char kind[64] = "", where[24] = "", host[HOST_TEXT] = "", name[WATCH_CANARY_PATH + 32];
	auto_buf rule = { 0 }, note = { 0 };
	struct ward_event v;

	if (sscanf(t->host, "%63s %23s %254s", kind, where, host) != 3 || t->how > SCAN_LOG)
		return;
	name_canary(g, kind, name, sizeof(name));
	v = event_make(EVENT_CREDENTIAL_FOUND, t->how == SCAN_LOG ? ACTION_LOG : ACTION_DENY, name);
	if (t->rule >= 0 && (uint32_t)t->rule < g->rules->n_items)
		rules_text(g->rules, t->rule, &rule);
	event_text(&v, FIELD_RULE, rule.len ? buf_text(&rule) : NULL);
	event_text(&v, FIELD_WHY, done[t->how]);
	event_text(&v, FIELD_PATH, where);
	event_text(&v, FIELD_HOST, host);
	event_number(&v, FIELD_PORT, t->port);
	event_number(&v, FIELD_FLOW, t->flow);
	event_emit(r->events, &v);
	if (t->how == SCAN_BLOCK || strcmp(name, kind) != 0)
		return; /* the refusal is reported by itself, and so is a canary */
	buf_printf(&note, "%s in the %s of a request to %s: %s", kind, where, host, done[t->how]);
	result_secret(r, buf_text(&note));
}

/* A budget comes to its end: the journal has it, and so has the summary. */
static void emit_budget(const struct egress *g, const struct flow_report *t, struct result *r)
{
	struct ward_event v = event_make(EVENT_NET_LIMIT, ACTION_LOG,
					 t->rule < 0 ? "network.spend_limit" : "spend_limit");
	auto_buf rule = { 0 }, why = { 0 };

	if (t->rule >= 0 && (uint32_t)t->rule < g->rules->n_items)
		rules_text(g->rules, t->rule, &rule);
	units_put_money(t->number, &why);
	buf_puts(&why, " of ");
	units_put_money(t->bytes_out, &why);
	buf_puts(&why, " is spent on language models");
	event_text(&v, FIELD_RULE, rule.len ? buf_text(&rule) : NULL);
	event_text(&v, FIELD_WHY, buf_text(&why));
	event_emit(r->events, &v);
	strv_addf(&r->notes, "%s%sspend_limit: %s", rule.len ? buf_text(&rule) : "network.",
		  rule.len ? ": " : "", buf_text(&why));
}

void egress_report_lost(struct result *r, uint64_t lost, const char *why)
{
	struct ward_event v = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, "gateway");

	event_text(&v, FIELD_WHY, why);
	event_number(&v, FIELD_LOST, lost);
	event_emit(r->events, &v);
}

/* "METHOD /path KEY=ENTRY", taken apart. */
struct said_request {
	char method[40], path[400], asked[200];
	/* with scheme and host; with the method in front */
	char url[OBJECT_TEXT + 420], object[OBJECT_TEXT + 470];
	bool cut; /* it was longer; one that ends so by itself counts as such */
};

static void copy_word(char *out, size_t size, const char **at)
{
	size_t n = strcspn(*at, " "), kept = n < size ? n : size - 1;

	memcpy(out, *at, kept);
	out[kept] = '\0';
	*at += n;
	*at += strspn(*at, " ");
}

/* False: it is not about a request. */
static bool read_request(const char *text, const char *host, uint16_t port, enum rule_mode mode,
			 struct said_request *ret)
{
	bool plain = mode == RULE_PLAIN;
	char place[OBJECT_TEXT];

	const char *at = text;

	copy_word(ret->method, sizeof(ret->method), &at);
	if (!*ret->method || (*at != '/' && *at != '*'))
		return false;
	copy_word(ret->path, sizeof(ret->path), &at);
	ret->cut = strlen(ret->path) >= 3 && strcmp(ret->path + strlen(ret->path) - 3, "...") == 0;
	copy_word(ret->asked, sizeof(ret->asked), &at);
	object_text(place, host, strchr(host, ':') != NULL, port == (plain ? 80 : 443) ? 0 : port);
	snprintf(ret->url, sizeof(ret->url), "%s://%s%s", plain ? "http" : "https", place,
		 ret->path);
	snprintf(ret->object, sizeof(ret->object), "%s %s", ret->method, ret->url);
	return true;
}

static void emit_http(struct egress *g, const struct flow_report *t, struct result *r)
{
	struct ward_event v = event_make(EVENT_HTTP, ACTION_ALLOW, NULL);
	const char *at = t->host;
	struct said_request said;
	char host[HOST_TEXT];

	copy_word(host, sizeof(host), &at);
	if (!read_request(at, host, t->port, (enum rule_mode)t->mode, &said))
		return;
	event_text(&v, FIELD_OBJECT, said.object);
	event_text(&v, FIELD_RULE, rule_name(g, t->rule));
	event_text(&v, FIELD_HOST, host);
	event_number(&v, FIELD_PORT, t->port);
	event_number(&v, FIELD_FLOW, t->flow);
	event_number(&v, FIELD_GENERATION, t->generation);
	event_number(&v, FIELD_BYTES_IN, t->bytes_in);
	event_number(&v, FIELD_BYTES_OUT, t->bytes_out);
	event_text(&v, FIELD_METHOD, said.method);
	event_text(&v, FIELD_URL, said.url);
	if (t->number)
		event_number(&v, FIELD_STATUS, t->number);
	event_text(&v, FIELD_ASKED, *said.asked ? said.asked : NULL);
	if (said.cut)
		event_flag(&v, FIELD_CUT);
	event_emit(r->events, &v);
}

bool egress_on_flow_report(struct egress *g, const uint8_t *bytes, size_t n, struct result *r)
{
	struct flow_report t;
	size_t len;

	for (; n && (len = flow_report_get(bytes, n, &t)); bytes += len, n -= len)
		switch ((enum flow_report_kind)t.kind) {
		case FLOW_REPORT_NAME:
			provenance_name(r->provenance, t.host, t.address,
					t.family == 4   ? 4
					: t.family == 6 ? 16
							: 0);
			if (!t.number)
				emit_name(g, &t, r);
			break;
		case FLOW_REPORT_OPENED:
			if (!t.inward && t.how >= WANT_CONNECT)
				provenance_proxied(r->provenance, t.host);
			emit_flow(g, &t, r);
			break;
		case FLOW_REPORT_CLOSED:
			emit_flow(g, &t, r);
			break;
		case FLOW_REPORT_LOST:
			egress_report_lost(r, t.number, "more happened than could be reported");
			break;
		case FLOW_REPORT_SPENT:
			emit_spent(g, &t, r);
			break;
		case FLOW_REPORT_WAF:
			emit_waf(g, &t, r);
			break;
		case FLOW_REPORT_SECRET:
			emit_secret(g, &t, r);
			break;
		case FLOW_REPORT_BUDGET:
			emit_budget(g, &t, r);
			break;
		case FLOW_REPORT_HTTP:
			emit_http(g, &t, r);
			break;
		case FLOW_REPORT_KINDS:
			break;
		}
	return n == 0;
}

void egress_report_denied(const struct egress *g, const struct want *w, const struct verdict *v,
			  uint8_t protocol, const char *remedy, const char *request,
			  struct result *r)
{
	static const char hows[][12] = { "dns", "transparent", "connect", "socks" };
	struct said_request said;
	enum event_kind kind = w->how == WANT_DNS ? EVENT_DNS
			       : protocol == 6    ? EVENT_CONNECT
						  : EVENT_PACKET;
	struct ward_event e;
	bool http;
	char host[HOST_TEXT] = "", object[OBJECT_TEXT];
	auto_buf rule = { 0 };

	if (!r->events)
		return;
	if (w->host.kind != HOST_NONE)
		host_text(&w->host, host);
	http = *host && read_request(request, host, w->port, (enum rule_mode)v->mode, &said);
	e = event_make(http ? EVENT_HTTP : kind, ACTION_DENY, NULL);
	object_text(object, *host ? host : "proxy", strchr(host, ':') != NULL, w->port);
	if (v->rule >= 0 && (uint32_t)v->rule < g->rules->n_items)
		rules_text(g->rules, v->rule, &rule);
	event_text(&e, FIELD_OBJECT, http ? said.object : object);
	event_text(&e, FIELD_HOST, *host ? host : NULL);
	if (http) {
		event_text(&e, FIELD_METHOD, said.method);
		event_text(&e, FIELD_URL, said.url);
		event_text(&e, FIELD_ASKED, *said.asked ? said.asked : NULL);
		if (said.cut)
			event_flag(&e, FIELD_CUT);
	}
	if (w->port)
		event_number(&e, FIELD_PORT, w->port);
	event_text(&e, FIELD_RULE, rule.len ? buf_text(&rule) : "network.egress_allowlist");
	event_text(&e, FIELD_REASON, verdict_reason_name((enum verdict_reason)v->reason));
	event_text(&e, FIELD_WHY, verdict_reason_text((enum verdict_reason)v->reason));
	event_text(&e, FIELD_REMEDY, *remedy ? remedy : NULL);
	event_text(&e, FIELD_HOW, w->how < ARRAY_LEN(hows) ? hows[w->how] : NULL);
	event_text(&e, FIELD_PROTOCOL,
		   w->how == WANT_DNS                ? NULL
		   : protocol == 6                   ? "tcp"
		   : protocol == 17                  ? "udp"
		   : protocol == 1 || protocol == 58 ? "icmp"
						     : "other");
	event_number(&e, FIELD_GENERATION, v->generation);
	event_emit(r->events, &e);
}
