/*
 * Which ports a name may use, as a set. In: compiled rules. Out: the distinct sets, each with a
 * number. A name's set depends on the rule for the name itself, or else on the longest suffix that
 * matches it: so one sample for each rule finds every set there can be. Pure; run by the
 * supervisor, which makes the kernel's rules of them, and by front, which gives addresses.
 */
#include "rules/net.h"
#include "rules/port_classes.h"

#include <string.h>

#define SAMPLE                                                                                     \
	"ward-sample-name" /* under a suffix; a name that stands in a rule has its own sample */

/* Its place in the list of ports; NET_CLASS_PORTS_MAX: there is no more room. */
static unsigned port_place(struct net_classes *c, uint16_t port)
{
	unsigned i;

	for (i = 0; i < c->port_count; i++)
		if (c->ports[i] == port)
			return i;
	if (i < NET_CLASS_PORTS_MAX)
		c->ports[c->port_count++] = port;
	return i;
}

static bool add_ports(const struct rules *r, struct net_classes *c)
{
	bool room = true;

	for (uint32_t i = 0; i < r->n_items; i++) {
		const struct rule *rule = &r->items[i];

		for (unsigned k = 0;
		     k < rule->n_ports && !rule->deny && !rule->dead && rule->kind != RULE_BLOCK;
		     k++)
			room &= port_place(c, r->ports[rule->first_port + k]) < NET_CLASS_PORTS_MAX;
	}
	for (uint32_t i = 0; i < r->n_services; i++)
		room &= port_place(c, r->services[i].port) < NET_CLASS_PORTS_MAX;
	return room;
}

static uint64_t ports_of(const struct rules *r, const struct net_classes *c,
			 const struct host *host)
{
	uint64_t set = 0;

	for (unsigned i = 0; i < c->port_count; i++) {
		struct rules_match m = rules_match(r, host, c->ports[i]);
		int32_t denied_by;
		bool serves = rules_service(r, host, c->ports[i], &denied_by) >= 0;

		if (serves ? denied_by < 0 : m.rule >= 0 && !m.denied)
			set |= UINT64_C(1) << i;
	}
	return set;
}

/* A name of the rules themselves, which is canonical, behind a prefix or alone. False: there is no
 * such name, for nothing can be longer than the longest. */
static bool sample(const char *prefix, const char *name, size_t len, struct host *ret)
{
	size_t before = strlen(prefix);

	if (before + len > HOSTNAME_MAX)
		return false;
	ret->kind = HOST_NAME;
	ret->len = (uint8_t)(before + len);
	memcpy(ret->name, prefix, before);
	memcpy(ret->name + before, name, len);
	ret->name[before + len] = '\0';
	return true;
}

static void add_class(const struct rules *r, struct net_classes *c, const char *prefix,
		      const char *name, size_t len)
{
	struct rules_match known;
	struct host host;
	uint64_t set;

	if (!sample(prefix, name, len, &host))
		return;
	set = ports_of(r, c, &host);
	for (unsigned i = 0; i < c->count; i++)
		if (c->sets[i] == set)
			return;
	/* nothing at all is a set, too, of a name whose ports are each denied; one that is denied
	 * as such has no address */
	known = rules_match(r, &host, 0);
	if ((set || (known.rule >= 0 && !known.denied)) && c->count < NET_CLASSES_MAX)
		c->sets[c->count++] = set;
}

void classes_extend(const struct rules *r, struct net_classes *c)
{
	if (c->off || r->network != RULES_RESTRICTED || !add_ports(r, c)) {
		c->off = true;
		return;
	}
	for (uint32_t i = 0; i < r->n_items && c->count < NET_CLASSES_MAX; i++) {
		const struct rule *rule = &r->items[i];

		if (rule->dead || rule->kind == RULE_BLOCK)
			continue;
		if (rule->kind == RULE_NAME)
			add_class(r, c, "", r->text + rule->host, rule->len);
		else
			add_class(r, c, rule->kind == RULE_ANY ? SAMPLE : SAMPLE ".",
				  r->text + rule->host, rule->len);
	}
	for (uint32_t i = 0; i < r->n_services; i++)
		add_class(r, c, "", r->text + r->services[i].host, r->services[i].len);
}

unsigned classes_of(const struct rules *r, const struct net_classes *c, const struct host *host)
{
	uint64_t set = c && !c->off ? ports_of(r, c, host) : 0;

	for (unsigned i = 0; c && !c->off && i < c->count; i++)
		if (c->sets[i] == set)
			return i;
	return NET_CLASSES_MAX;
}
