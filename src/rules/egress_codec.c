/*
 * Rules as one message. In: struct rules; out: bytes; and back. The gateway believes nothing of
 * them: every count, offset, kind and name is checked before it is used, and what does not encode
 * to the same bytes again was not made here. Fixed order, host byte order (it never leaves the
 * machine). Pure. Fuzzed (fuzz/rules.c).
 */
#include <errno.h>
#include <string.h>

#include "policy/policy_rule.h"
#include "rules/egress_index.h"

#define MAGIC 0x344c5257u /* "WRL4" */
#define LIMITS_BYTES 56
#define HEADER_BYTES (4 + 8 + 4 + LIMITS_BYTES + 4 * 5)
#define RULE_BYTES (7 + 2 + 4 + 4 + 4 + 2 + 17 + LIMITS_BYTES)
#define SERVICE_BYTES (1 + 4 + 2 + 17)
#define PRICE_BYTES (TOKENS_MODEL + 5 * 8)

enum {
	FLAG_DENY = 1,
	FLAG_ADDED = 2,
	FLAG_DEAD = 4,
	FLAG_PRIVATE = 8,
	FLAG_MODED = 16,
	FLAG_LLM = 32,
	FLAG_ASK = 64,
	FLAG_NEVER = 128
};

struct cursor {
	const uint8_t *at;
	size_t left;
};

static void put(struct buf *out, const void *value, size_t n)
{
	buf_add(out, value, n);
}

static bool get(struct cursor *c, void *value, size_t n)
{
	if (c->left < n)
		return false;
	memcpy(value, c->at, n);
	c->at += n;
	c->left -= n;
	return true;
}

static void put_ip(struct buf *out, const struct ip *ip)
{
	put(out, &ip->family, 1);
	put(out, ip->bytes, sizeof(ip->bytes));
}

static bool get_ip(struct cursor *c, struct ip *ip, bool none)
{
	static const uint8_t zero[16];

	if (!get(c, &ip->family, 1) || !get(c, ip->bytes, sizeof(ip->bytes)))
		return false;
	if (!ip->family)
		return none && memcmp(ip->bytes, zero, sizeof(zero)) == 0;
	if (ip->family == 4)
		return memcmp(ip->bytes + 4, zero, 12) == 0;
	return ip->family == 6;
}

static void put_limits(struct buf *out, const struct rule_limits *l)
{
	const uint64_t values[] = { l->connections, l->connection_rate, l->receive_bytes,
				    l->send_bytes,  l->bandwidth,       l->request_rate,
				    l->spend };

	put(out, values, sizeof(values));
}

static bool get_limits(struct cursor *c, struct rule_limits *l)
{
	return get(c, &l->connections, 8) && get(c, &l->connection_rate, 8) &&
	       get(c, &l->receive_bytes, 8) && get(c, &l->send_bytes, 8) &&
	       get(c, &l->bandwidth, 8) && get(c, &l->request_rate, 8) && get(c, &l->spend, 8);
}

static void put_price(struct buf *out, const struct price *p)
{
	const uint64_t values[] = { p->input, p->output, p->cache_read, p->cache_write,
				    p->max_output };

	put(out, p->model, sizeof(p->model));
	put(out, values, sizeof(values));
}

static bool get_price(struct cursor *c, struct price *p)
{
	return get(c, p->model, sizeof(p->model)) && p->model[0] &&
	       !p->model[sizeof(p->model) - 1] && get(c, &p->input, 8) && get(c, &p->output, 8) &&
	       get(c, &p->cache_read, 8) && get(c, &p->cache_write, 8) && get(c, &p->max_output, 8);
}

int rules_encode(const struct rules *r, struct buf *out)
{
	const uint8_t asks = r->asks;
	const uint32_t magic = MAGIC,
		       counts[] = { r->n_items, r->n_services, r->n_ports, r->n_text, r->n_prices };

	put(out, &magic, 4);
	put(out, &r->generation, 8);
	put(out, &r->network, 1);
	put(out, &r->unpriced, 1);
	put(out, &r->spend_warning, 1);
	put(out, &asks, 1);
	put_limits(out, &r->limits);
	put(out, counts, sizeof(counts));
	for (uint32_t i = 0; i < r->n_items; i++) {
		const struct rule *rule = &r->items[i];
		uint8_t flags =
			(uint8_t)((rule->deny ? FLAG_DENY : 0) | (rule->added ? FLAG_ADDED : 0) |
				  (rule->dead ? FLAG_DEAD : 0) |
				  (rule->private ? FLAG_PRIVATE : 0) |
				  (rule->moded ? FLAG_MODED : 0) | (rule->llm ? FLAG_LLM : 0) |
				  (rule->ask ? FLAG_ASK : 0) | (rule->never ? FLAG_NEVER : 0));
		const uint8_t bytes[7] = { rule->kind,   flags,     rule->mode,
					   rule->prefix, rule->len, rule->waf };

		put(out, bytes, sizeof(bytes));
		put(out, &rule->n_ports, 2);
		put(out, &rule->first_port, 4);
		put(out, &rule->host, 4);
		put(out, &rule->http, 4);
		put(out, &rule->http_len, 2);
		put_ip(out, &rule->ip);
		put_limits(out, &rule->limits);
	}
	for (uint32_t i = 0; i < r->n_services; i++) {
		put(out, &r->services[i].len, 1);
		put(out, &r->services[i].host, 4);
		put(out, &r->services[i].port, 2);
		put_ip(out, &r->services[i].ip);
	}
	put(out, r->ports, r->n_ports * sizeof(*r->ports));
	put(out, r->text, r->n_text);
	for (uint32_t i = 0; i < r->n_prices; i++)
		put_price(out, &r->prices[i]);
	return out->failed ? -ENOMEM : 0;
}

/* Whether the text at this place is a canonical name of len characters, or empty. */
static bool is_name(const struct rules *r, uint32_t at, uint8_t len)
{
	struct host host;

	if ((uint64_t)at + len + 1 > r->n_text || r->text[at + len])
		return false;
	if (!len)
		return true;
	return host_read(r->text + at, len, &host) == HOST_FINE && host.kind == HOST_NAME &&
	       host.len == len && memcmp(host.name, r->text + at, len) == 0;
}

static bool ports_fine(const struct rules *r, const struct rule *rule)
{
	const uint16_t *ports = r->ports + rule->first_port;

	if (rule->n_ports > RULES_PORTS_MAX ||
	    (uint64_t)rule->first_port + rule->n_ports > r->n_ports)
		return false;
	for (unsigned i = 0; i < rule->n_ports; i++)
		if (!ports[i] || (i && ports[i - 1] >= ports[i]))
			return false;
	return rule->n_ports || rule->deny;
}

/* Whether its conditions lie in the text; what they say is for the caller. */
static bool http_fine(const struct rules *r, const struct rule *rule)
{
	if (!rule->http_len)
		return true;
	return (rule->mode == RULE_INSPECT || rule->mode == RULE_PLAIN) && rule->moded &&
	       (uint64_t)rule->http + rule->http_len <= r->n_text &&
	       !r->text[rule->http + rule->http_len - 1];
}

static bool rule_fine(const struct rules *r, const struct rule *rule)
{
	unsigned most = rule->ip.family == 4 ? 32 : 128;
	bool named = rule->kind == RULE_NAME || rule->kind == RULE_SUFFIX;

	if (rule->kind > RULE_BLOCK || rule->mode >= RULE_MODES ||
	    !is_name(r, rule->host, rule->len))
		return false;
	if (named != (rule->len > 0) || (rule->kind == RULE_BLOCK) != (rule->ip.family > 0))
		return false;
	if (rule->kind == RULE_BLOCK ? rule->prefix > most : rule->prefix > 0)
		return false;
	if (rule->kind == RULE_BLOCK && rule->moded &&
	    (rule->mode == RULE_SPLICE || rule->mode == RULE_INSPECT))
		return false;
	if ((rule->ask && rule->deny) || (rule->never && (!rule->dead || !rule->deny)))
		return false;
	return ports_fine(r, rule) && http_fine(r, rule);
}

static bool get_rule(struct cursor *c, struct rule *rule)
{
	uint8_t bytes[7];

	if (!get(c, bytes, sizeof(bytes)) || bytes[5] > POLICY_WAF_BLOCK || bytes[6])
		return false;
	rule->kind = bytes[0];
	rule->deny = bytes[1] & FLAG_DENY;
	rule->added = bytes[1] & FLAG_ADDED;
	rule->dead = bytes[1] & FLAG_DEAD;
	rule->private = bytes[1] & FLAG_PRIVATE;
	rule->moded = bytes[1] & FLAG_MODED;
	rule->llm = bytes[1] & FLAG_LLM;
	rule->ask = bytes[1] & FLAG_ASK;
	rule->never = bytes[1] & FLAG_NEVER;
	rule->waf = bytes[5];
	rule->mode = bytes[2];
	rule->prefix = bytes[3];
	rule->len = bytes[4];
	return get(c, &rule->n_ports, 2) && get(c, &rule->first_port, 4) &&
	       get(c, &rule->host, 4) && get(c, &rule->http, 4) && get(c, &rule->http_len, 2) &&
	       get_ip(c, &rule->ip, true) && get_limits(c, &rule->limits);
}

static bool get_service(struct cursor *c, struct rule_service *s)
{
	return get(c, &s->len, 1) && get(c, &s->host, 4) && get(c, &s->port, 2) &&
	       get_ip(c, &s->ip, false) && s->len && s->port;
}

static bool get_body(struct cursor *c, struct rules *r)
{
	for (uint32_t i = 0; i < r->n_items; i++)
		if (!get_rule(c, &r->items[i]))
			return false;
	for (uint32_t i = 0; i < r->n_services; i++)
		if (!get_service(c, &r->services[i]))
			return false;
	if (!get(c, r->ports, r->n_ports * sizeof(*r->ports)) || !get(c, r->text, r->n_text))
		return false;
	for (uint32_t i = 0; i < r->n_prices; i++)
		if (!get_price(c, &r->prices[i]))
			return false;
	if (c->left)
		return false;
	for (uint32_t i = 0; i < r->n_items; i++)
		if (!rule_fine(r, &r->items[i]))
			return false;
	for (uint32_t i = 0; i < r->n_services; i++)
		if (!is_name(r, r->services[i].host, r->services[i].len))
			return false;
	return true;
}

int rules_decode(const uint8_t *bytes, size_t n, struct rules **ret)
{
	struct cursor c = { bytes, n };
	struct rule_limits limits;
	uint64_t generation;
	uint32_t magic, counts[5];
	uint8_t network, unpriced, warning, asks;
	auto_rules r = NULL;

	if (n > RULES_BYTES_MAX || !get(&c, &magic, 4) || magic != MAGIC ||
	    !get(&c, &generation, 8) || !get(&c, &network, 1) || network > RULES_OPEN ||
	    !get(&c, &unpriced, 1) || unpriced > UNPRICED_FREE || !get(&c, &warning, 1) ||
	    warning > 100 || !get(&c, &asks, 1) || asks > 1 || !get_limits(&c, &limits) ||
	    !get(&c, counts, sizeof(counts)))
		return -EINVAL;
	/* what the counts promise must be there before anything is allocated for it */
	if (counts[0] > RULES_MAX || counts[1] > RULES_SERVICES_MAX ||
	    counts[2] > RULES_MAX * RULES_PORTS_MAX || counts[4] > RULES_PRICES_MAX ||
	    (uint64_t)counts[0] * RULE_BYTES + (uint64_t)counts[1] * SERVICE_BYTES +
			    (uint64_t)counts[2] * 2 + counts[3] +
			    (uint64_t)counts[4] * PRICE_BYTES !=
		    c.left)
		return -EINVAL;
	r = rules_new(counts[0], counts[1], counts[2], counts[3]);
	if (r)
		r->prices = calloc((size_t)counts[4] + 1, sizeof(*r->prices));
	if (!r || !r->prices)
		return -ENOMEM;
	r->n_prices = counts[4];
	r->unpriced = unpriced;
	r->spend_warning = warning;
	r->generation = generation;
	r->network = network;
	r->asks = asks;
	r->limits = limits;
	if (!get_body(&c, r))
		return -EINVAL;
	if (rules_index(r) < 0)
		return -ENOMEM;
	*ret = take_ptr(r);
	return 0;
}
