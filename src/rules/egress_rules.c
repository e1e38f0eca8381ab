/*
 * Compiling egress rules. In: struct policy, or the rules in force and one line more. Out: struct
 * rules. Runs in the supervisor, with the user's rights, before the gateway starts and for every
 * `ward net`; what it refuses never reaches the gateway. Pure.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_grant.h"
#include "policy/policy_never.h"
#include "policy/policy_rule.h"
#include "policy/units.h"
#include "rules/address.h"
#include "rules/egress_index.h"

/* Rules in the making: ports and hosts go into pools, which grow. */
struct making {
	struct rule *items;
	struct rule_service *services;
	struct buf ports, text;
	uint32_t n_items, n_services;
};

static void making_free(struct making *m)
{
	free(m->items);
	free(m->services);
	buf_free(&m->ports);
	buf_free(&m->text);
}

static uint32_t add_text(struct making *m, const char *text)
{
	uint32_t at = (uint32_t)m->text.len;

	buf_add(&m->text, text, strlen(text) + 1);
	return at;
}

static int compare_ports(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static void add_ports(struct making *m, struct rule *rule, const uint16_t *ports, unsigned n)
{
	uint16_t sorted[RULES_PORTS_MAX];
	unsigned kept = 0;

	n = n > RULES_PORTS_MAX ? RULES_PORTS_MAX : n;
	memcpy(sorted, ports, n * sizeof(*ports));
	if (n > 1)
		qsort(sorted, n, sizeof(*sorted), compare_ports);
	for (unsigned i = 0; i < n; i++)
		if (!kept || sorted[kept - 1] != sorted[i])
			sorted[kept++] = sorted[i];
	rule->first_port = (uint32_t)(m->ports.len / sizeof(*sorted));
	rule->n_ports = (uint16_t)kept;
	buf_add(&m->ports, sorted, kept * sizeof(*sorted));
}

/* Kind, text and address of a canonical host. */
static int set_host(struct making *m, struct rule *rule, const char *text, struct ward_err *e)
{
	size_t n = strcspn(text, "/");
	struct host host;
	uint64_t prefix;

	if (strcmp(text, "*") == 0) {
		rule->kind = RULE_ANY;
		rule->host = add_text(m, "");
		return 0;
	}
	rule->kind = strncmp(text, "*.", 2) == 0 ? RULE_SUFFIX : RULE_NAME;
	text += rule->kind == RULE_SUFFIX ? 2 : 0;
	n -= rule->kind == RULE_SUFFIX ? 2 : 0;
	if (host_read(text, n, &host) != HOST_FINE ||
	    (host.kind == HOST_ADDRESS && rule->kind == RULE_SUFFIX) ||
	    (host.kind == HOST_NAME && text[n]))
		return ward_fail(e, EINVAL, "%s: not a host, an address or a block", text);
	rule->host = add_text(m, host.kind == HOST_NAME ? host.name : "");
	rule->len = host.len;
	if (host.kind == HOST_NAME)
		return 0;
	prefix = host.ip.family == 4 ? 32 : 128;
	if (text[n] && (units_parse_uint(text + n + 1, &prefix) < 0 ||
			prefix > (host.ip.family == 4 ? 32 : 128)))
		return ward_fail(e, EINVAL, "%s: not a prefix length", text);
	rule->kind = RULE_BLOCK;
	rule->ip = host.ip;
	rule->prefix = (uint8_t)prefix;
	return 0;
}

static bool has_condition(const struct policy_rule *from, const char *kinds, size_t n)
{
	for (size_t at = 0; at < from->http_len; at += strlen(from->http + at) + 1)
		if (memchr(kinds, from->http[at], n))
			return true;
	return false;
}

/* Whether it says something about bodies, which are held until they are decided about. */
static bool decides_by_body(const struct policy_rule *from)
{
	static const char kinds[] = { POLICY_HTTP_GRAPHQL, POLICY_HTTP_RPC, POLICY_HTTP_GIT,
				      POLICY_HTTP_REPOSITORY, POLICY_HTTP_REF };

	return has_condition(from, kinds, sizeof(kinds));
}

/* What needs HTTP knowledge ends TLS, unless the rule or the port says that there is none. */
static int set_inspect(struct making *m, struct rule *rule, const struct policy_rule *from,
		       struct ward_err *e)
{
	bool plain = from->mode == POLICY_RULE_HTTP,
	     websocket = has_condition(from, (const char[]){ POLICY_HTTP_WEBSOCKET }, 1);

	rule->llm = from->llm;
	rule->waf = (uint8_t)from->waf;
	if (rule->kind == RULE_BLOCK && !plain) {
		ward_fail(e, EINVAL, "%s: mode inspect works with names only", from->host);
		return ward_remedy(e, "name the host, or remove what needs a look into requests");
	}
	if ((from->waf || from->llm || websocket) && decides_by_body(from)) {
		ward_fail(e, EINVAL,
			  "%s: %s cannot be combined with graphql, json_rpc or git in one rule",
			  from->host,
			  from->waf   ? "waf"
			  : from->llm ? "llm"
				      : "websocket");
		return ward_remedy(e, "write two rules, each with paths of its own");
	}
	rule->moded = true;
	rule->mode = plain ? RULE_PLAIN : RULE_INSPECT;
	rule->http = (uint32_t)m->text.len;
	rule->http_len = (uint16_t)from->http_len;
	buf_add(&m->text, from->http, from->http_len);
	return 0;
}

/* Where requests are looked into, each is asked about, and limits count as ever. Else a connection
 * is, and what is answered becomes a rule for its host and port. */
static int check_ask(const struct policy_rule *from, struct ward_err *e)
{
	if (!from->ask || from->inspect || from->mode == POLICY_RULE_INSPECT)
		return 0;
	if (from->connections != POLICY_NONE || from->connection_rate != POLICY_NONE ||
	    from->receive != POLICY_NONE || from->send != POLICY_NONE ||
	    from->bandwidth != POLICY_NONE) {
		ward_fail(e, EINVAL, "%s: ask cannot be combined with limits in one rule",
			  from->host);
		return ward_remedy(e, "use the limits of the whole sandbox, such as "
				      "network.connection_limit, or mode: inspect, which asks "
				      "about each request");
	}
	return 0;
}

static int set_mode(struct making *m, struct rule *rule, const struct policy_rule *from,
		    struct ward_err *e)
{
	static const uint8_t modes[] = { [POLICY_RULE_SPLICE] = RULE_SPLICE,
					 [POLICY_RULE_HTTP] = RULE_HTTP,
					 [POLICY_RULE_TCP] = RULE_TCP };
	bool block = rule->kind == RULE_BLOCK && rule->prefix != (rule->ip.family == 4 ? 32 : 128);

	if (from->mode == POLICY_RULE_HTTP && block)
		return ward_fail(e, EINVAL,
				 "%s: mode http works with names and single addresses only",
				 from->host);
	if (from->mode == POLICY_RULE_INSPECT || from->inspect)
		return set_inspect(m, rule, from, e);
	rule->moded = from->mode != POLICY_RULE_BY_PORT;
	rule->mode = rule->moded ? modes[from->mode] : RULE_TCP;
	if (rule->kind == RULE_BLOCK && rule->moded && rule->mode == RULE_SPLICE)
		return ward_fail(e, EINVAL, "%s: mode splice works with names only", from->host);
	return 0;
}

/* Gives the rules what models cost. */
static int add_prices(struct rules *r, const struct price *prices, uint32_t n, struct ward_err *e)
{
	r->prices = calloc((size_t)n + 1, sizeof(*r->prices));
	if (!r->prices)
		return ward_fail(e, ENOMEM, "out of memory");
	if (n)
		memcpy(r->prices, prices, n * sizeof(*prices));
	r->n_prices = n;
	return 0;
}

/* What counts needs a table to count by. */
static int check_prices(const struct rules *r, struct ward_err *e)
{
	bool counts = false;

	for (uint32_t i = 0; i < r->n_items; i++)
		counts |= r->items[i].llm && !r->items[i].dead;
	if (counts && !r->n_prices && r->unpriced != UNPRICED_FREE) {
		ward_fail(e, EINVAL,
			  "network.prices: a rule counts the cost of language models, but no model "
			  "has a price");
		return ward_remedy(e, "add network.prices: [{model: \"NAME*\", input: 3, output: "
				      "15}], per million tokens");
	}
	if (!counts && r->limits.spend != RULE_NONE) {
		ward_fail(e, EINVAL, "network.spend_limit: no rule counts costs");
		return ward_remedy(e, "set llm: true in the rules for language models: {host: "
				      "\"api.example.com\", llm: true}");
	}
	return 0;
}

static int read_prices(const struct policy *p, struct rules *r, struct ward_err *e)
{
	if (p->net_prices.len > RULES_PRICES_MAX)
		return ward_fail(e, E2BIG, "network.prices: more than %d prices", RULES_PRICES_MAX);
	r->prices = calloc(p->net_prices.len + 1, sizeof(*r->prices));
	if (!r->prices)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < p->net_prices.len; i++) {
		struct policy_price from;

		if (policy_price_read(p->net_prices.items[i], &from, e) < 0)
			return ward_wrap(e, "network.prices[%zu]", i);
		r->prices[r->n_prices] = (struct price){ .input = from.input,
							 .output = from.output,
							 .cache_read = from.cache_read,
							 .cache_write = from.cache_write,
							 .max_output = from.max_output };
		memcpy(r->prices[r->n_prices++].model, from.model, sizeof(from.model));
	}
	r->unpriced = (uint8_t)p->net_unpriced;
	r->spend_warning = p->net_spend_warning == POLICY_NONE ? 0 : (uint8_t)p->net_spend_warning;
	return check_prices(r, e);
}

static int add_rule(struct making *m, const struct policy_rule *from, bool deny, bool every_port,
		    struct ward_err *e)
{
	struct rule *rule = &m->items[m->n_items];
	int r = set_host(m, rule, from->host, e);

	if (r == 0)
		r = check_ask(from, e);
	if (r == 0)
		r = set_mode(m, rule, from, e);
	if (r < 0)
		return r;
	rule->deny = deny;
	rule->private = from->private;
	rule->ask = from->ask && !deny;
	rule->limits =
		(struct rule_limits){ from->connections, from->connection_rate, from->receive,
				      from->send,        from->bandwidth,       from->request_rate,
				      from->spend };
	if (!every_port)
		add_ports(m, rule, from->ports, from->n_ports);
	m->n_items++;
	return 0;
}

/* What a service may be: an address of the host or of its networks, and nobody's credentials. */
static int add_service(struct making *m, const char *line, struct ward_err *e)
{
	struct rule_service *service = &m->services[m->n_services];
	struct policy_rule parts;
	struct host host;
	char name[64];
	enum address_class class;
	int r = policy_service_read(line, name, &parts, e);

	if (r < 0)
		return r;
	if (strcmp(parts.host, "localhost") == 0)
		memcpy(parts.host, "127.0.0.1", sizeof("127.0.0.1"));
	if (host_read(parts.host, strlen(parts.host), &host) != HOST_FINE ||
	    host.kind != HOST_ADDRESS) {
		ward_fail(e, EINVAL, "%s: a host service needs an address", line);
		return ward_remedy(e, "write %s=127.0.0.1:%u, or use egress_allowlist for a name",
				   name, parts.ports[0]);
	}
	class = address_classify(&host.ip);
	if (class != ADDRESS_LOOPBACK && class != ADDRESS_PRIVATE && class != ADDRESS_PUBLIC)
		return ward_fail(e, EINVAL, "%s: not an address of this host", line);
	service->ip = host.ip;
	service->port = parts.ports[0];
	if (host_read(name, strlen(name), &host) != HOST_FINE || host.kind != HOST_NAME)
		return ward_fail(e, EINVAL, "%s: not a name that programs can look up", name);
	service->host = add_text(m, host.name);
	service->len = host.len;
	m->n_services++;
	return 0;
}

/* Makes struct rules of what was gathered, which is theirs from here; indexes it. */
static int seal(struct making *m, struct rules **ret, struct ward_err *e)
{
	auto_rules r = calloc(1, sizeof(*r));

	if (!r || m->ports.failed || m->text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r->n_items = m->n_items;
	r->n_services = m->n_services;
	r->n_ports = (uint32_t)(m->ports.len / sizeof(*r->ports));
	r->n_text = (uint32_t)m->text.len;
	r->items = take_ptr(m->items);
	r->services = take_ptr(m->services);
	r->ports = (uint16_t *)(void *)buf_take(&m->ports);
	r->text = buf_take(&m->text);
	if (!r->ports || !r->text || rules_index(r) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	*ret = take_ptr(r);
	return 0;
}

static int start_making(struct making *m, size_t n_items, size_t n_services, struct ward_err *e)
{
	if (n_items > RULES_MAX)
		return ward_fail(e, E2BIG, "more than %d rules", RULES_MAX);
	if (n_services > RULES_SERVICES_MAX)
		return ward_fail(e, E2BIG, "more than %d host services", RULES_SERVICES_MAX);
	m->items = calloc(n_items + 1, sizeof(*m->items));
	m->services = calloc(n_services + 1, sizeof(*m->services));
	return m->items && m->services ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

/* Where a grant may put a secret in, requests are looked into: on the port of HTTPS, and unless the
 * rule says otherwise. */
static bool gets_secret(const struct policy *p, const struct policy_rule *rule)
{
	for (unsigned i = 0; i < rule->n_ports && rule->mode == POLICY_RULE_BY_PORT && !rule->ask;
	     i++)
		if (rule->ports[i] == 443)
			return policy_grants_touch(p, rule->host);
	return false;
}

/* Hosts that no answer opens stand among the rules, where nothing else looks at them. */
static int add_never(struct making *m, const struct policy *p, struct ward_err *e)
{
	for (size_t i = 0; i < p->appr_never.len; i++) {
		struct rule *rule = &m->items[m->n_items];
		char host[256];

		if (!never_host(p->appr_never.items[i], host))
			continue;
		if (set_host(m, rule, host, e) < 0)
			return ward_wrap(e, "approvals.never[%zu]", i);
		rule->never = rule->deny = rule->dead = true;
		m->n_items++;
	}
	return 0;
}

static int gather(struct making *m, const struct policy *p, struct ward_err *e)
{
	int r = start_making(m, p->net_egress.len + p->appr_never.len, p->net_host_services.len, e);

	for (size_t i = 0; r == 0 && i < p->net_egress.len; i++) {
		struct policy_rule rule;

		r = policy_rule_read(p->net_egress.items[i], &rule, e);
		if (r == 0 && gets_secret(p, &rule))
			rule.mode = POLICY_RULE_INSPECT;
		if (r == 0)
			r = add_rule(m, &rule, false, false, e);
		if (r < 0)
			ward_wrap(e, "network.egress_allowlist[%zu]", i);
	}
	if (r == 0)
		r = add_never(m, p, e);
	for (size_t i = 0; r == 0 && i < p->net_host_services.len; i++) {
		r = add_service(m, p->net_host_services.items[i], e);
		if (r < 0)
			ward_wrap(e, "network.host_services[%zu]", i);
	}
	return r;
}

static bool same_host(const struct making *m, const struct rule *a, const struct rule *b)
{
	return a->kind == b->kind && a->len == b->len && a->prefix == b->prefix &&
	       ip_equal(&a->ip, &b->ip) &&
	       memcmp(m->text.data + a->host, m->text.data + b->host, a->len) == 0;
}

static const uint16_t *ports_of(const struct making *m, const struct rule *rule)
{
	return (const uint16_t *)(const void *)m->ports.data + rule->first_port;
}

static bool same_ports(const struct making *m, const struct rule *a, const struct rule *b)
{
	return a->n_ports == b->n_ports &&
	       (!a->n_ports ||
		memcmp(ports_of(m, a), ports_of(m, b), a->n_ports * sizeof(uint16_t)) == 0);
}

static bool same_http(const struct making *m, const struct rule *a, const struct rule *b)
{
	return a->http_len == b->http_len &&
	       (!a->http_len ||
		memcmp(m->text.data + a->http, m->text.data + b->http, a->http_len) == 0);
}

static bool share_port(const struct making *m, const struct rule *a, const struct rule *b)
{
	for (unsigned i = 0; i < a->n_ports; i++)
		for (unsigned k = 0; k < b->n_ports; k++)
			if (ports_of(m, a)[i] == ports_of(m, b)[k])
				return true;
	return !a->n_ports || !b->n_ports;
}

/* A rule that asks about requests never would where another one for the host allows them all. */
static int check_asked(const struct making *m, struct ward_err *e)
{
	for (uint32_t i = 0; i < m->n_items; i++) {
		const struct rule *asks = &m->items[i];

		for (uint32_t k = 0; asks->ask && asks->moded && k < m->n_items; k++) {
			const struct rule *other = &m->items[k];

			if (other->ask || other->deny || !other->moded || other->http_len ||
			    other->waf || asks->mode < RULE_INSPECT || other->mode != asks->mode ||
			    !same_host(m, asks, other) || !share_port(m, asks, other))
				continue;
			ward_fail(e, EINVAL,
				  "network.egress_allowlist[%u]: ask has no effect: "
				  "egress_allowlist[%u] allows all requests to the same host",
				  i, k);
			return ward_remedy(e, "remove one of the two rules, or give the second "
					      "one methods or paths");
		}
	}
	return 0;
}

int rules_compile(const struct policy *p, uint64_t generation, struct rules **ret,
		  struct ward_err *e)
{
	struct making m = { 0 };
	int r = gather(&m, p, e);

	if (r == 0)
		r = check_asked(&m, e);
	if (r == 0)
		r = seal(&m, ret, e);
	making_free(&m);
	if (r < 0)
		return r;
	(*ret)->generation = generation;
	(*ret)->network = (uint8_t)p->net_mode;
	(*ret)->asks = p->appr_mode == APPROVALS_ASK;
	(*ret)->limits = (struct rule_limits){ p->net_connections, p->net_connection_rate,
					       p->net_receive,     p->net_send,
					       p->net_bandwidth,   p->net_request_rate,
					       p->net_spend };
	r = read_prices(p, *ret, e);
	if (r < 0)
		rules_free(take_ptr(*ret));
	return r;
}

/* The new rule is the last one: what it replaces or takes back dies; an equal one that is dead
 * already gives its place. */
static void settle(struct making *m)
{
	struct rule *new = &m->items[m->n_items - 1];

	for (uint32_t i = 0; i + 1 < m->n_items; i++) {
		struct rule *old = &m->items[i];

		if (old->added && !old->dead && same_host(m, old, new) &&
		    (old->deny == new->deny ? same_ports(m, old, new)
					    : !new->deny &&share_port(m, old, new)))
			old->dead = true;
	}
	for (uint32_t i = m->n_items - 1; i-- > 0;) {
		struct rule *old = &m->items[i];

		if (!old->dead && old->added && same_host(m, old, new) && share_port(m, old, new))
			return; /* a later one would win over what comes back before it */
		if (old->never || !old->dead || old->deny != new->deny ||
		    old->moded != new->moded || old->mode != new->mode ||
		    old->private != new->private || old->ask != new->ask || old->llm != new->llm ||
		    old->waf != new->waf || !same_host(m, old, new) || !same_ports(m, old, new) ||
		    !same_http(m, old, new) ||
		    memcmp(&old->limits, &new->limits, sizeof(new->limits)) != 0)
			continue;
		old->dead = false;
		m->n_items--;
		return;
	}
}

/* What there was, with room for one more. */
static int gather_old(struct making *m, const struct rules *old, struct ward_err *e)
{
	int r = start_making(m, (size_t)old->n_items + 1, old->n_services, e);

	if (r < 0 || !m->items || !m->services)
		return r;
	memcpy(m->items, old->items, old->n_items * sizeof(*old->items));
	memcpy(m->services, old->services, old->n_services * sizeof(*old->services));
	m->n_items = old->n_items;
	m->n_services = old->n_services;
	buf_add(&m->ports, old->ports, old->n_ports * sizeof(*old->ports));
	buf_add(&m->text, old->text, old->n_text);
	return 0;
}

/* Only the last rule is looked at: one for more hosts than approvals.never names is not used for
 * those (decide.c). */
static int check_never(const struct making *m, const struct rules *old, struct ward_err *e)
{
	const struct rule *new = &m->items[m->n_items - 1];
	struct host host = { .kind = HOST_ADDRESS, .ip = new->ip };
	char text[HOST_TEXT];

	if (new->deny || new->kind == RULE_ANY ||
	    (new->kind != RULE_BLOCK &&host_read(m->text.data + new->host, new->len, &host) !=
	     HOST_FINE) ||
	    !rules_never(old, &host))
		return 0;
	ward_fail(e, EPERM, "approvals.never names %s: nothing during a run can allow it",
		  host_text(&host, text));
	return ward_remedy(e, "change approvals.never, and start a new run");
}

static int gather_change(struct making *m, const struct rules *old, const char *line, bool deny,
			 struct ward_err *e)
{
	struct policy_rule rule;
	bool port_said;
	int r = policy_rule_parse(line, &rule, &port_said, e);

	if (r == 0)
		r = gather_old(m, old, e);
	if (r < 0 || !m->items)
		return r;
	r = add_rule(m, &rule, deny, deny && !port_said, e);
	if (r < 0)
		return r;
	if (m->ports.failed || m->text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r = check_never(m, old, e);
	if (r < 0)
		return r;
	m->items[m->n_items - 1].added = true;
	settle(m);
	return 0;
}

/* Seals what became of old. */
static int seal_next(struct making *m, const struct rules *old, int r, struct rules **ret,
		     struct ward_err *e)
{
	if (r == 0)
		r = seal(m, ret, e);
	making_free(m);
	if (r < 0)
		return r;
	(*ret)->generation = old->generation + 1;
	(*ret)->network = old->network;
	(*ret)->asks = old->asks;
	(*ret)->limits = old->limits;
	(*ret)->unpriced = old->unpriced;
	(*ret)->spend_warning = old->spend_warning;
	r = add_prices(*ret, old->prices, old->n_prices, e);
	if (r == 0)
		r = check_prices(*ret, e);
	if (r < 0)
		rules_free(take_ptr(*ret));
	return r;
}

int rules_change(const struct rules *old, const char *line, bool deny, struct rules **ret,
		 struct ward_err *e)
{
	struct making m = { 0 };
	int r = gather_change(&m, old, line, deny, e);

	return seal_next(&m, old, r, ret, e);
}

int rules_retire(const struct rules *old, const uint32_t *items, size_t count, struct rules **ret,
		 struct ward_err *e)
{
	struct making m = { 0 };
	int r = gather_old(&m, old, e);

	for (size_t i = 0; r == 0 && i < count; i++)
		if (items[i] < m.n_items)
			m.items[items[i]].dead = true;
	return seal_next(&m, old, r, ret, e);
}

void rules_text(const struct rules *r, int32_t rule, struct buf *out)
{
	const struct rule *item = rule >= 0 && (uint32_t)rule < r->n_items ? &r->items[rule] : NULL;
	char text[HOST_TEXT];

	if (!item)
		return;
	if (item->kind == RULE_BLOCK && item->ip.family == 6)
		buf_printf(out, "[%s]", ip_text(&item->ip, text));
	else if (item->kind == RULE_BLOCK)
		buf_puts(out, ip_text(&item->ip, text));
	else
		buf_printf(out, "%s%s",
			   item->kind == RULE_SUFFIX ? "*."
			   : item->kind == RULE_ANY  ? "*"
						     : "",
			   r->text + item->host);
	if (item->kind == RULE_BLOCK && item->prefix != (item->ip.family == 4 ? 32 : 128))
		buf_printf(out, "/%u", item->prefix);
	for (unsigned i = 0; i < item->n_ports; i++)
		buf_printf(out, "%c%u", i ? ',' : ':', r->ports[item->first_port + i]);
}
