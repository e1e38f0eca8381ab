/*
 * The decision. In: compiled rules, what a program wants, later the address that was resolved. Out:
 * a verdict with its rule, mode and reason (remedy.c says what would allow it). Phase one runs in
 * the process that parses what comes from inside and cannot connect; phase two runs in the one that
 * connects, which sees no byte of the sandbox. Both deny unless something allows. Pure functions.
 */
#include <string.h>
#include <strings.h>

#include "rules/decide.h"

static const struct {
	char name[20];
	char text[92];
} reasons[VERDICT_REASONS] = {
#define REASON(id, label, way, words) [REASON_##id] = { label, words },
#include "egress.def"
};

#define REASON(id, label, way, words)                                                              \
	_Static_assert(sizeof(words) <= sizeof(reasons[0].text) &&                                 \
			       sizeof(label) <= sizeof(reasons[0].name),                           \
		       "too long: " words);
#include "egress.def"

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
	return item && item->prefix == (item->ip.family == 4 ? 32 : 128) ? REACH_ADDRESS
									 : REACH_BLOCK;
}

static enum verdict_reason why_not(const struct want *w, const struct rules_match *m)
{
	if (m->denied)
		return REASON_DENIED;
	if (m->other_port)
		return REASON_PORT;
	return w->host.kind == HOST_ADDRESS ? REASON_LITERAL : REASON_NOT_LISTED;
}

static const uint8_t class_reasons[ADDRESS_CLASSES] = {
	[ADDRESS_PUBLIC] = REASON_ALLOWED,      [ADDRESS_PRIVATE] = REASON_PRIVATE,
	[ADDRESS_METADATA] = REASON_METADATA,   [ADDRESS_LOOPBACK] = REASON_LOOPBACK,
	[ADDRESS_LINK_LOCAL] = REASON_METADATA, [ADDRESS_MULTICAST] = REASON_MULTICAST,
	[ADDRESS_RESERVED] = REASON_RESERVED,   [ADDRESS_TRANSLATED] = REASON_TRANSLATED,
};

/* The rule asks. Nobody is asked about an address that no yes would open: an answer becomes a rule
 * for the address alone, which would reach more than a block does. */
static void hold_back(const struct rules *r, const struct want *w, struct verdict *v)
{
	enum address_class class =
		w->host.kind == HOST_ADDRESS ? address_classify(&w->host.ip) : ADDRESS_PUBLIC;

	if (class != ADDRESS_PUBLIC && !(class == ADDRESS_PRIVATE && v->private)) {
		verdict_refuse(v, (enum verdict_reason)class_reasons[class]);
		return;
	}
	v->ask = r->asks;
	verdict_refuse(v, r->asks ? REASON_ASK : REASON_NOT_ASKED);
}

/* Whether the rule is, or becomes with a yes, an answer about a host that none may be about. A rule
 * that asks about requests may have others beside it that do not: there each request is held. */
static bool is_never(const struct rules *r, int32_t rule, unsigned mode, const struct host *host)
{
	const struct rule *item = &r->items[rule];

	return (item->added || (item->ask && mode < RULE_INSPECT)) && rules_never(r, host);
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
	if (m.rule >= 0 && is_never(r, m.rule, ret->mode, &w->host))
		verdict_refuse(ret, REASON_NEVER);
	/* where requests are looked into, they are asked about, and not the connection */
	else if (m.rule >= 0 && r->items[m.rule].ask && ret->mode < RULE_INSPECT)
		hold_back(r, w, ret);
}

/* Whether this verdict reaches addresses of that class; own addresses have been looked for. */
static bool reaches(const struct verdict *v, enum address_class class)
{
	if (class == ADDRESS_PUBLIC)
		return true;
	if (class == ADDRESS_PRIVATE)
		return v->private || v->reach == REACH_ADDRESS;
	return class == ADDRESS_METADATA && v->reach == REACH_ADDRESS;
}

void decide_address(const struct verdict *named, const struct ip *ip, const struct address_own *own,
		    struct verdict *ret)
{
	enum address_class class = address_classify(ip);
	bool bound = named->reach != REACH_NAME && !ip_equal(&named->ip, ip);

	*ret = *named;
	ret->ip = *ip;
	if (!named->allow)
		return;
	if (bound || !ip->family) { /* this one was not asked for */
		verdict_refuse(ret, REASON_RESERVED);
		return;
	}
	if (named->reach == REACH_SERVICE)
		return;
	if (class != ADDRESS_LOOPBACK && address_is_own(own, ip))
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
