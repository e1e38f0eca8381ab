/*
 * The decision. In: compiled rules, what a program wants, later the address that was resolved. Out: a verdict with its rule, mode,
 * reason and remedy. Phase one runs in the process that parses what comes from inside and cannot connect; phase two runs in the
 * one that connects, which sees no byte of the sandbox. Both deny unless something allows. Pure functions.
 */
#include <string.h>
#include <strings.h>

#include "gateway/decide.h"

enum remedy { REMEDY_NONE, REMEDY_RULE, REMEDY_TCP, REMEDY_PRIVATE, REMEDY_ADDRESS, REMEDY_SERVICE, REMEDY_LIMIT, REMEDY_NAME,
	      REMEDY_SPLICE, REMEDY_HTTP, REMEDY_PRICE };

static const struct {
	char name[20];
	uint8_t remedy;
	char text[92];
} reasons[VERDICT_REASONS] = {
#define REASON(id, label, way, words) [REASON_##id] = { label, REMEDY_##way, words },
#include "egress.def"
#undef REASON
};

#define REASON(id, label, way, words)                                                               \
	_Static_assert(sizeof(words) <= sizeof(reasons[0].text) && sizeof(label) <= sizeof(reasons[0].name), "too long: " words);
#include "egress.def"
#undef REASON

void want_host(struct want *ret, enum want_how how, const struct host *host, uint16_t port)
{
	memset(ret, 0, sizeof(*ret));
	ret->how = (uint8_t)how;
	ret->port = port;
	ret->host = *host;
}

void verdict_refuse(struct verdict *v, enum verdict_reason reason)
{
	v->allow = false;
	v->reason = (uint8_t)reason;
}

static void grant(struct verdict *v, enum rule_mode mode, enum verdict_reach reach)
{
	v->allow = true;
	v->reason = REASON_ALLOWED;
	v->mode = (uint8_t)mode;
	v->reach = (uint8_t)reach;
}

/* An address that stands alone in a rule was named; a block was not. */
static enum verdict_reach reach_of(const struct rules *r, int32_t rule, const struct host *host)
{
	const struct rule *item = rule >= 0 ? &r->items[rule] : NULL;

	if (host->kind == HOST_NAME)
		return REACH_NAME;
	return item && item->prefix == (item->ip.family == 4 ? 32 : 128) ? REACH_ADDRESS : REACH_BLOCK;
}

static enum verdict_reason why_not(const struct want *w, const struct rules_match *m)
{
	if (m->denied)
		return REASON_DENIED;
	if (m->other_port)
		return REASON_PORT;
	return w->host.kind == HOST_ADDRESS ? REASON_LITERAL : REASON_NOT_LISTED;
}

void decide_name(const struct rules *r, const struct want *w, struct verdict *ret)
{
	struct rules_match m;
	int32_t denied_by;

	memset(ret, 0, sizeof(*ret));
	ret->generation = r->generation;
	ret->port = w->port;
	ret->rule = ret->service = -1;
	ret->mode = RULE_TCP;
	if (w->host.kind == HOST_ADDRESS)
		ret->ip = w->host.ip;
	if (r->network != RULES_RESTRICTED && r->network != RULES_OPEN) {
		verdict_refuse(ret, REASON_NO_NETWORK);
		return;
	}
	if (w->stale || w->host.kind == HOST_NONE || (!w->port && w->how != WANT_DNS)) {
		verdict_refuse(ret, w->stale ? REASON_STALE : REASON_BAD_NAME);
		return;
	}
	ret->service = rules_service(r, &w->host, w->port, &denied_by);
	if (denied_by >= 0) {
		ret->rule = denied_by;
		verdict_refuse(ret, REASON_DENIED);
		return;
	}
	if (ret->service >= 0) {
		ret->ip = r->services[ret->service].ip;
		grant(ret, RULE_TCP, REACH_SERVICE);
		return;
	}
	m = rules_match(r, &w->host, w->port);
	ret->rule = m.rule;
	if (m.denied || (m.rule < 0 && r->network != RULES_OPEN)) {
		verdict_refuse(ret, why_not(w, &m));
		return;
	}
	ret->private = m.rule >= 0 && r->items[m.rule].private;
	grant(ret, rules_mode(r, m.rule, w->port), reach_of(r, m.rule, &w->host));
}

static const uint8_t class_reasons[ADDR_CLASSES] = {
	[ADDR_PUBLIC] = REASON_ALLOWED,	    [ADDR_PRIVATE] = REASON_PRIVATE,	 [ADDR_METADATA] = REASON_METADATA,
	[ADDR_LOOPBACK] = REASON_LOOPBACK,  [ADDR_LINK_LOCAL] = REASON_METADATA, [ADDR_MULTICAST] = REASON_MULTICAST,
	[ADDR_RESERVED] = REASON_RESERVED,  [ADDR_TRANSLATED] = REASON_TRANSLATED,
};

/* Whether this verdict reaches addresses of that class; own addresses have been looked for. */
static bool reaches(const struct verdict *v, enum addr_class class)
{
	if (class == ADDR_PUBLIC)
		return true;
	if (class == ADDR_PRIVATE)
		return v->private || v->reach == REACH_ADDRESS;
	return class == ADDR_METADATA && v->reach == REACH_ADDRESS;
}

void decide_address(const struct verdict *named, const struct ip *ip, const struct addr_own *own, struct verdict *ret)
{
	enum addr_class class = addr_classify(ip);
	bool bound = named->reach != REACH_NAME && !ip_equal(&named->ip, ip);

	*ret = *named;
	ret->ip = *ip;
	if (!named->allow)
		return;
	if (bound || !ip->family) {	/* nobody asked for this one */
		verdict_refuse(ret, REASON_RESERVED);
		return;
	}
	if (named->reach == REACH_SERVICE)
		return;
	if (class != ADDR_LOOPBACK && addr_is_own(own, ip))
		verdict_refuse(ret, REASON_OWN_ADDRESS);
	else if (!reaches(named, class))
		verdict_refuse(ret, (enum verdict_reason)class_reasons[class]);
}

const char *verdict_reason_text(enum verdict_reason reason)
{
	return (unsigned)reason < VERDICT_REASONS ? reasons[reason].text : "unknown";
}

const char *verdict_reason_name(enum verdict_reason reason)
{
	return (unsigned)reason < VERDICT_REASONS ? reasons[reason].name : "unknown";
}

/* host:port as a rule has it; 443 of a name is left away nowhere: what is written is what is meant. */
static void put_target(struct buf *out, const struct host *host, uint16_t port)
{
	char text[HOST_TEXT];
	bool six = host->kind == HOST_ADDRESS && host->ip.family == 6;

	buf_printf(out, six ? "[%s]" : "%s", host_text(host, text));
	if (port)
		buf_printf(out, ":%u", port);
}

static void put_rule_map(struct buf *out, const struct want *w, const char *more)
{
	char text[HOST_TEXT];

	buf_printf(out, "network.egress_allowlist: [{host: \"%s\", ports: [%u], %s}]", host_text(&w->host, text),
		   w->port ? w->port : 443, more);
}

/* What the rule would have to say about HTTP; request is "METHOD /path", perhaps with " KEY=ENTRY" behind, or "". */
static void put_http(struct buf *out, const struct want *w, enum verdict_reason reason, const char *request)
{
	size_t method = strcspn(request, " "), path = request[method] ? strcspn(request + method + 1, " ?") : 0;
	const char *asked = path ? strchr(request + method + 1 + path, ' ') : NULL, *sign = asked ? strchr(asked, '=') : NULL;
	auto_buf more = { 0 };

	if (sign)
		buf_printf(&more, "%.*s: [\"%.*s\"]", (int)(sign - asked) - 1, asked + 1, (int)strcspn(sign + 1, "\""), sign + 1);
	else if (reason == REASON_METHOD && method)
		buf_printf(&more, "methods: [%.*s]", (int)method, request);
	else if (reason == REASON_PATH && path)
		buf_printf(&more, "paths: [\"%.*s\"]", (int)path, request + method + 1);
	else
		buf_puts(&more, reason == REASON_METHOD ? "methods: [...]" : reason == REASON_PATH ? "paths: [...]" :
				reason == REASON_QUERY ? "query: [...]" : reason == REASON_HEADER ? "headers: [...]" :
				reason == REASON_TYPE ? "content_types: [...]" : reason == REASON_WEBSOCKET ? "websocket: true" :
				reason == REASON_GRAPHQL ? "graphql: [...]" : reason == REASON_RPC ? "json_rpc: [...]" :
				reason == REASON_GIT || reason == REASON_GIT_FORCE ? "git: [...]" :
				reason == REASON_REQUEST_SIZE ? "request_limit: ..." :
				reason == REASON_WAF || reason == REASON_WAF_SIZE ? "waf: detect" : "response_limit: ...");
	put_rule_map(out, w, buf_text(&more));
}

void verdict_http_remedy(const struct want *w, const struct verdict *v, const char *request, struct buf *out)
{
	if (v->reason < VERDICT_REASONS && reasons[v->reason].remedy == REMEDY_HTTP)
		put_http(out, w, (enum verdict_reason)v->reason, request);
	else
		verdict_remedy(w, v, out);
}

void verdict_remedy(const struct want *w, const struct verdict *v, struct buf *out)
{
	struct host address = { .kind = HOST_ADDRESS, .ip = v->ip };
	char text[HOST_TEXT];

	if (v->allow || v->reason >= VERDICT_REASONS)
		return;
	switch ((enum remedy)reasons[v->reason].remedy) {
	case REMEDY_RULE:
		buf_puts(out, "network.egress_allowlist: [\"");
		put_target(out, &w->host, w->port);
		buf_puts(out, "\"]");
		break;
	case REMEDY_TCP:
		put_rule_map(out, w, "mode: tcp");
		break;
	case REMEDY_PRIVATE:
		put_rule_map(out, w, "private: true");
		break;
	case REMEDY_SPLICE:
		put_rule_map(out, w, "mode: splice");
		break;
	case REMEDY_HTTP:
		put_http(out, w, (enum verdict_reason)v->reason, "");
		break;
	case REMEDY_ADDRESS:
		buf_puts(out, "network.egress_allowlist: [\"");
		put_target(out, &address, w->port);
		buf_puts(out, "\"]");
		break;
	case REMEDY_SERVICE:
		buf_puts(out, "network.host_services: [\"NAME=");
		put_target(out, &address, w->port);
		buf_puts(out, "\"]");
		break;
	case REMEDY_LIMIT:
		buf_printf(out, "raise network.%s, or that of the rule", v->reason == REASON_REQUEST_RATE ? "request_rate" :
								      v->reason == REASON_SPENT || v->reason == REASON_SPEND_BUSY ? "spend_limit" :
								      v->reason == REASON_LIMIT_CONNECTIONS ? "connection_limit" :
								      v->reason == REASON_LIMIT_RATE ? "connection_rate" :
								      v->reason == REASON_LIMIT_RECEIVED ? "receive_limit" : "send_limit");
		break;
	case REMEDY_NAME:
		buf_printf(out, "look the name up again instead of using %s", host_text(&w->host, text));
		break;
	case REMEDY_PRICE:
		buf_puts(out, v->reason == REASON_UNPRICED ? "network.prices: [{model: NAME, input: PRICE, output: PRICE}], or network.unpriced: dearest" :
							     "network.unpriced: free lets it pass uncounted");
		break;
	case REMEDY_NONE:
		break;
	}
}
