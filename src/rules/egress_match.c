/*
 * The matcher. In: compiled rules, a canonical host, a port. Out: the rule that decides. Names and
 * suffixes are in one hash table by their text: a lookup is one probe for the name and one for each
 * of its suffixes, whatever the number of rules. Hashes are not keyed, because only the policy puts
 * entries in. Blocks are a list, longest prefix first. Deny rules are looked for in everything that
 * matches before an allow rule counts. Pure; run by the gateway's parsing process. Fuzzed
 * (fuzz/rules.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_rule.h"
#include "rules/egress_index.h"

static uint32_t hash_text(const char *s, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	return h;
}

struct rules *rules_new(uint32_t n_items, uint32_t n_services, uint32_t n_ports, uint32_t n_text)
{
	auto_rules r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->n_items = n_items;
	r->n_services = n_services;
	r->n_ports = n_ports;
	r->n_text = n_text;
	r->items = calloc((size_t)n_items + 1, sizeof(*r->items));
	r->services = calloc((size_t)n_services + 1, sizeof(*r->services));
	r->ports = calloc((size_t)n_ports + 1, sizeof(*r->ports));
	r->text = calloc((size_t)n_text + 1, 1);
	return r->items && r->services && r->ports && r->text ? take_ptr(r) : NULL;
}

void rules_free(struct rules *r)
{
	if (!r)
		return;
	free(r->items);
	free(r->services);
	free(r->ports);
	free(r->text);
	free(r->prices);
	free(r->buckets);
	free(r->chain);
	free(r->blocks);
	free(r->any);
	free(r);
}

/* Puts rule i where it is looked for, in front of what is there. */
static void put_front(struct rules *r, uint32_t i)
{
	const struct rule *rule = &r->items[i];
	uint32_t *bucket;

	if (rule->kind == RULE_ANY) {
		memmove(r->any + 1, r->any, r->n_any * sizeof(*r->any));
		r->any[0] = i;
		r->n_any++;
	} else if (rule->kind == RULE_BLOCK) {
		uint32_t at = 0;

		while (at < r->n_blocks && r->items[r->blocks[at]].prefix > rule->prefix)
			at++;
		memmove(r->blocks + at + 1, r->blocks + at,
			(r->n_blocks - at) * sizeof(*r->blocks));
		r->blocks[at] = i;
		r->n_blocks++;
	} else {
		r->has_suffix |= rule->kind == RULE_SUFFIX;
		bucket = &r->buckets[hash_text(r->text + rule->host, rule->len) &
				     (r->n_buckets - 1)];
		r->chain[i] = *bucket;
		*bucket = i + 1;
	}
}

int rules_index(struct rules *r)
{
	r->n_buckets = 16;
	while (r->n_buckets < r->n_items * 2)
		r->n_buckets *= 2;
	r->buckets = calloc(r->n_buckets, sizeof(*r->buckets));
	r->chain = calloc((size_t)r->n_items + 1, sizeof(*r->chain));
	r->blocks = calloc((size_t)r->n_items + 1, sizeof(*r->blocks));
	r->any = calloc((size_t)r->n_items + 1, sizeof(*r->any));
	if (!r->buckets || !r->chain || !r->blocks || !r->any)
		return -ENOMEM;
	for (uint32_t i = r->n_items; i > 0; i--) /* the policy's: the first in front */
		if (!r->items[i - 1].added && !r->items[i - 1].dead)
			put_front(r, i - 1);
	for (uint32_t i = 0; i < r->n_items; i++) /* added ones: the last in front */
		if (r->items[i].added && !r->items[i].dead)
			put_front(r, i);
	return 0;
}

static bool has_port(const struct rules *r, const struct rule *rule, uint16_t port)
{
	const uint16_t *ports = r->ports + rule->first_port;

	if (!rule->n_ports)
		return true;
	/* any: a name is known if some port of it is allowed, and unknown only if all are denied */
	if (!port)
		return !rule->deny;
	for (unsigned i = 0; i < rule->n_ports && ports[i] <= port; i++)
		if (ports[i] == port)
			return true;
	return false;
}

/* Weighs one rule whose host matches; true: it denies, nothing more to look for. */
static bool weigh(const struct rules *r, uint32_t i, uint16_t port, struct rules_match *m)
{
	const struct rule *rule = &r->items[i];

	if (!has_port(r, rule, port)) {
		m->other_port |= !rule->deny;
		return false;
	}
	if (rule->deny) {
		*m = (struct rules_match){ .rule = (int32_t)i, .denied = true };
		return true;
	}
	if (m->rule < 0)
		m->rule = (int32_t)i;
	return false;
}

static bool weigh_text(const struct rules *r, enum rule_kind kind, const char *s, size_t n,
		       uint16_t port, struct rules_match *m)
{
	for (uint32_t at = r->buckets[hash_text(s, n) & (r->n_buckets - 1)]; at;
	     at = r->chain[at - 1]) {
		const struct rule *rule = &r->items[at - 1];

		if (rule->kind == kind && rule->len == n &&
		    memcmp(r->text + rule->host, s, n) == 0 && weigh(r, at - 1, port, m))
			return true;
	}
	return false;
}

static void match_name(const struct rules *r, const struct host *host, uint16_t port,
		       struct rules_match *m)
{
	const char *end = host->name + host->len;

	if (weigh_text(r, RULE_NAME, host->name, host->len, port, m))
		return;
	for (const char *dot = host->name;
	     r->has_suffix && (dot = memchr(dot, '.', (size_t)(end - dot)));) {
		dot++;
		if (weigh_text(r, RULE_SUFFIX, dot, (size_t)(end - dot), port, m))
			return;
	}
	for (uint32_t i = 0; i < r->n_any; i++)
		if (weigh(r, r->any[i], port, m))
			return;
}

struct rules_match rules_match(const struct rules *r, const struct host *host, uint16_t port)
{
	struct rules_match m = { .rule = -1 };

	if (host->kind == HOST_NAME)
		match_name(r, host, port, &m);
	for (uint32_t i = 0; host->kind == HOST_ADDRESS && i < r->n_blocks; i++) {
		const struct rule *rule = &r->items[r->blocks[i]];

		if (ip_within(&host->ip, &rule->ip, rule->prefix) &&
		    weigh(r, r->blocks[i], port, &m))
			break;
	}
	if (m.rule >= 0)
		m.other_port = false;
	return m;
}

/* Whether the rule's hosts have this one among them, whatever the port is. */
static bool names_host(const struct rules *r, const struct rule *rule, const struct host *host)
{
	const char *text = r->text + rule->host;
	size_t more;

	if (rule->kind == RULE_BLOCK)
		return host->kind == HOST_ADDRESS && ip_within(&host->ip, &rule->ip, rule->prefix);
	if (rule->kind == RULE_ANY)
		return true;
	if (host->kind != HOST_NAME || host->len < rule->len)
		return false;
	more = (size_t)host->len - rule->len;
	if (rule->kind == RULE_NAME ? more > 0 : more < 2 || host->name[more - 1] != '.')
		return false;
	return memcmp(host->name + more, text, rule->len) == 0;
}

bool rules_never(const struct rules *r, const struct host *host)
{
	for (uint32_t i = 0; i < r->n_items; i++)
		if (r->items[i].never && names_host(r, &r->items[i], host))
			return true;
	return false;
}

/* The last two labels of a name. */
static const char *end_of(const char *name, size_t n)
{
	unsigned dots = 0;

	while (n && (name[n - 1] != '.' || ++dots < 2))
		n--;
	return name + n;
}

bool rules_never_near(const struct rules *r, const struct host *host)
{
	for (uint32_t i = 0; host->kind == HOST_NAME && i < r->n_items; i++) {
		const struct rule *rule = &r->items[i];
		const char *text = r->text + rule->host;

		if (rule->never && rule->kind != RULE_BLOCK &&
		    strcmp(end_of(text, rule->len), end_of(host->name, host->len)) == 0)
			return true;
	}
	return false;
}

/* The deny rule that wins over a service of the host, -1: none. */
static int32_t service_denied_by(const struct rules *r, const struct rule_service *s,
				 const struct host *name, uint16_t port)
{
	const struct host address = { .kind = HOST_ADDRESS, .ip = s->ip };
	struct rules_match m = rules_match(r, name, port);

	if (!m.denied)
		m = rules_match(r, &address, port ? s->port : 0);
	return m.denied ? m.rule : -1;
}

int32_t rules_service(const struct rules *r, const struct host *host, uint16_t port,
		      int32_t *ret_denied_by)
{
	*ret_denied_by = -1;
	for (uint32_t i = 0; host->kind == HOST_NAME && i < r->n_services; i++) {
		const struct rule_service *s = &r->services[i];

		if (s->len == host->len && memcmp(r->text + s->host, host->name, s->len) == 0 &&
		    (!port || s->port == port)) {
			*ret_denied_by = service_denied_by(r, s, host, port);
			return (int32_t)i;
		}
	}
	return -1;
}

enum rule_mode rules_mode(const struct rules *r, int32_t rule, uint16_t port)
{
	if (rule < 0 || (uint32_t)rule >= r->n_items)
		return RULE_TCP;
	if (r->items[rule].moded && r->items[rule].mode == RULE_INSPECT && port == 80)
		return RULE_PLAIN;
	if (r->items[rule].moded)
		return (enum rule_mode)r->items[rule].mode;
	if (r->items[rule].kind == RULE_BLOCK)
		return RULE_TCP;
	return port == 443 ? RULE_SPLICE : port == 80 ? RULE_HTTP : RULE_TCP;
}

static bool is_looked_into(const struct rule *rule)
{
	return !rule->deny && !rule->dead && rule->moded &&
	       (rule->mode == RULE_INSPECT || rule->mode == RULE_PLAIN);
}

bool rules_inspect(const struct rules *r)
{
	for (uint32_t i = 0; i < r->n_items; i++)
		if (is_looked_into(&r->items[i]) && r->items[i].mode == RULE_INSPECT)
			return true;
	return false;
}

bool rules_look(const struct rules *r)
{
	for (uint32_t i = 0; i < r->n_items; i++)
		if (is_looked_into(&r->items[i]))
			return true;
	return false;
}

bool rules_waf(const struct rules *r, int32_t rule, uint16_t port)
{
	bool some = false;

	for (uint32_t i = 0; rule < 0 && i < r->n_items; i++)
		some |= is_looked_into(&r->items[i]) && r->items[i].waf != POLICY_WAF_OFF;
	for (int32_t i = rule; i >= 0 && (uint32_t)i < r->n_items; i = rules_sibling(r, i, port))
		some |= r->items[i].waf != POLICY_WAF_OFF;
	return some;
}

/* Whether a rule's names are all among those of another. */
static bool has_names(const struct rules *outer_rules, const struct rule *outer,
		      const struct rules *r, const struct rule *rule)
{
	const char *of = outer_rules->text + outer->host, *name = r->text + rule->host;

	if (outer->kind == RULE_ANY)
		return true;
	if (rule->kind == RULE_ANY || rule->len < outer->len ||
	    memcmp(name + rule->len - outer->len, of, outer->len) != 0)
		return false;
	return rule->len == outer->len || name[rule->len - outer->len - 1] == '.';
}

bool rules_is_prepared(const struct rules *first, const struct rules *new, uint32_t i)
{
	const struct rule *rule = &new->items[i];

	if (!is_looked_into(rule))
		return true;
	if (rule->waf && !rules_waf(first, -1, 0))
		return false;
	if (rule->mode == RULE_PLAIN)
		return rules_look(first);
	for (uint32_t k = 0; k < first->n_items; k++)
		if (is_looked_into(&first->items[k]) && first->items[k].mode == RULE_INSPECT &&
		    has_names(first, &first->items[k], new, rule))
			return true;
	return false;
}

int32_t rules_sibling(const struct rules *r, int32_t rule, uint16_t port)
{
	const struct rule *first;

	if (rule < 0 || (uint32_t)rule >= r->n_items)
		return -1;
	first = &r->items[rule];
	for (uint32_t i = (uint32_t)rule + 1; i < r->n_items; i++) {
		const struct rule *other = &r->items[i];

		if (is_looked_into(other) && other->kind == first->kind &&
		    other->len == first->len && other->prefix == first->prefix &&
		    ip_equal(&other->ip, &first->ip) &&
		    memcmp(r->text + other->host, r->text + first->host, first->len) == 0 &&
		    has_port(r, other, port) &&
		    rules_mode(r, (int32_t)i, port) == rules_mode(r, rule, port))
			return (int32_t)i;
	}
	return -1;
}
