/*
 * What the kernel brings to the gateway. In: the policy's network part. Out: blocks of addresses
 * with ports. Everything else is refused by the kernel at once, so that a program sees a refused
 * connection and not one that breaks; the gateway decides about what is brought, so more than
 * needed here opens nothing.
 */
#include "plan/plan_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/units.h"
#include "rules/port_classes.h"

static void add_match(struct plan_net *n, const struct net_match *m)
{
	for (size_t i = 0; i < n->match_count && i < PLAN_NET_MATCHES_MAX; i++) {
		const struct net_match *known = &n->matches[i];

		if (known->v6 == m->v6 && known->prefix == m->prefix && known->first <= m->first &&
		    known->last >= m->last &&
		    memcmp(known->address, m->address, sizeof(m->address)) == 0)
			return;
	}
	if (n->match_count < PLAN_NET_MATCHES_MAX)
		n->matches[n->match_count] = *m;
	n->match_count++;
}

static void add_port(struct plan_net *n, uint16_t port)
{
	for (size_t i = 0; i < n->port_count; i++)
		if (n->ports[i] == port)
			return;
	if (n->port_count < NET_PORTS_MAX)
		n->ports[n->port_count++] = port;
	else
		n->ports_left_out = true;
}

/* Everything, whatever the address: where there are too many blocks, and under mode open. */
static void bring_all(struct plan_net *n)
{
	n->match_count = 2;
	n->matches[0] = (struct net_match){ .first = 1, .last = 65535 };
	n->matches[1] = (struct net_match){ .v6 = true, .first = 1, .last = 65535 };
}

/* Ports of addresses; those of names are brought by their classes. */
static void add_rule(struct plan_net *n, const struct rules *rules, const struct rule *rule)
{
	struct net_match m = { .v6 = rule->ip.family == 6, .prefix = rule->prefix };

	memcpy(m.address, rule->ip.bytes, sizeof(m.address));
	for (unsigned i = 0; i < rule->n_ports; i++) {
		m.first = m.last = rules->ports[rule->first_port + i];
		if (rule->kind == RULE_BLOCK)
			add_match(n, &m);
		add_port(n, m.first);
	}
}

static void add_services(struct plan_net *n, const struct rules *rules)
{
	for (uint32_t i = 0; i < rules->n_services; i++)
		add_port(n, rules->services[i].port);
}

static void add_class(struct plan_net *n, const struct net_match *block, uint64_t set)
{
	struct net_match m = *block;

	for (unsigned i = 0; i < n->classes.port_count; i++) {
		m.first = m.last = n->classes.ports[i];
		if (set >> i & 1)
			add_match(n, &m);
	}
}

/* Every port that some name has, for every name. */
static void add_all_names(struct plan_net *n, const struct rules *rules)
{
	struct net_match m = { .prefix = NET_NAMES4_PREFIX, .address = NET_NAMES4 };

	for (uint32_t i = 0; i < rules->n_items; i++) {
		const struct rule *rule = &rules->items[i];

		for (unsigned k = 0;
		     k < rule->n_ports && rule->kind != RULE_BLOCK && !rule->deny && !rule->dead;
		     k++) {
			m.first = m.last = rules->ports[rule->first_port + k];
			add_match(n, &m);
		}
	}
	for (uint32_t i = 0; i < rules->n_services; i++) {
		m.first = m.last = rules->services[i].port;
		add_match(n, &m);
	}
}

/* The ports of names: of each class for its block, of all for the names that are in none. Where
 * there are no classes, all for all. */
static void add_names(struct plan_net *n, const struct rules *rules)
{
	struct net_match rest = { .prefix = NET_REST4_PREFIX, .address = NET_REST4 };
	size_t before = n->match_count;

	classes_extend(rules, &n->classes);
	for (unsigned k = 0; k < n->classes.count && !n->classes.off; k++) {
		struct net_match m = { .prefix = NET_CLASS_PREFIX, .address = NET_NAMES4 };

		m.address[2] = (uint8_t)(k * (NET_CLASS_ADDRESSES / 256));
		add_class(n, &m, n->classes.sets[k]);
	}
	if (!n->classes.off && n->classes.count)
		add_class(n, &rest, UINT64_MAX);
	if (!n->classes.off && n->match_count <= PLAN_NET_MATCHES_MAX)
		return;
	n->classes.off = true;
	n->match_count = before;
	add_all_names(n, rules);
}

void plan_net_tproxy(const struct rules *rules, struct plan_net *n)
{
	static const uint16_t usual[] = { 443, 80, 22 };

	for (uint32_t i = 0; i < rules->n_items && rules->network != RULES_NONE; i++)
		if (!rules->items[i].deny && !rules->items[i].dead)
			add_rule(n, rules, &rules->items[i]);
	add_services(n, rules);
	add_names(n, rules);
	for (size_t i = 0; i < ARRAY_LEN(usual) && rules->network == RULES_OPEN; i++)
		add_port(n, usual[i]);
	if (rules->network == RULES_OPEN || n->match_count > PLAN_NET_MATCHES_MAX)
		bring_all(n);
}

static int read_proxy(const struct policy *p, struct plan_net *n, struct ward_err *e)
{
	int r;

	if (!p->net_upstream_proxy)
		return 0;
	n->proxy = calloc(1, sizeof(*n->proxy));
	if (!n->proxy)
		return ward_fail(e, ENOMEM, "out of memory");
	r = upstream_parse(p->net_upstream_proxy, n->proxy, e);
	return r < 0 ? ward_wrap(e, "network.upstream_proxy") : 0;
}

/* "3000", or "8080:3000". */
static bool read_ports(const char *text, struct plan_port *ret)
{
	const char *colon = strchr(text, ':');
	auto_free char *host = strndup(text, strcspn(text, ":"));
	uint64_t a = 0, b = 0;

	if (!host || units_parse_uint(host, &a) < 0 ||
	    units_parse_uint(colon ? colon + 1 : host, &b) < 0)
		return false;
	*ret = (struct plan_port){ (uint16_t)a, (uint16_t)b };
	return a >= 1 && a <= 65535 && b >= 1 && b <= 65535;
}

static int add_published(const struct policy *p, struct plan_net *n, struct ward_err *e)
{
	for (size_t i = 0; i < p->net_ingress.len; i++) {
		struct plan_port port;

		if (!read_ports(p->net_ingress.items[i], &port))
			return ward_fail(e, EINVAL, "network.ingress: %s is not a port",
					 p->net_ingress.items[i]);
		if (n->published_count >= NET_PUBLISHED_MAX)
			return ward_fail(e, E2BIG, "network.ingress: at most %d ports",
					 NET_PUBLISHED_MAX);
		for (size_t k = 0; k < n->published_count; k++)
			if (n->published[k].host == port.host) {
				ward_fail(e, EINVAL,
					  "network.ingress: port %u of this host is given twice",
					  port.host);
				return ward_remedy(e, "give one of them another port: %u:%u",
						   port.host < 65535 ? port.host + 1u : 1024u,
						   port.inside);
			}
		n->published[n->published_count++] = port;
	}
	return 0;
}

int plan_net_fill(const struct policy *p, struct plan_net *n, struct ward_err *e)
{
	int r;

	n->on = p->net_mode != NET_MODE_NONE || p->net_ingress.len;
	if (!n->on)
		return 0;
	r = rules_compile(p, 1, &n->rules, e);
	if (r == 0)
		r = read_proxy(p, n, e);
	if (r == 0)
		r = add_published(p, n, e);
	if (r < 0)
		return r;
	plan_net_tproxy(n->rules, n);
	return 0;
}

void plan_net_clear(struct plan_net *n)
{
	rules_free(n->rules);
	if (n->proxy)
		explicit_bzero(n->proxy, sizeof(*n->proxy));
	free(n->proxy);
	*n = (struct plan_net){ 0 };
}
