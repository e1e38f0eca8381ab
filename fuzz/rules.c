/*
 * Fuzzes egress rules. 'B': bytes of a serialised set; what decodes encodes to the same bytes.
 * Anything else: lines of "+host:port" and "-host:port" that are added one by one. A name follows
 * behind the last NUL; the matcher must agree with a plain walk over all rules.
 */
#include <assert.h>
#include <string.h>

#include "rules/decide.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool rule_has_host(const struct rules *r, const struct rule *rule, const struct host *h)
{
	const char *text = r->text + rule->host;

	if (rule->dead)
		return false;
	if (rule->kind == RULE_BLOCK)
		return h->kind == HOST_ADDRESS && ip_within(&h->ip, &rule->ip, rule->prefix);
	if (h->kind != HOST_NAME)
		return false;
	if (rule->kind == RULE_ANY)
		return true;
	if (rule->kind == RULE_NAME)
		return rule->len == h->len && memcmp(text, h->name, h->len) == 0;
	return h->len > rule->len + 1 && h->name[h->len - rule->len - 1] == '.' &&
	       memcmp(text, h->name + h->len - rule->len, rule->len) == 0;
}

static bool rule_has_port(const struct rules *r, const struct rule *rule, uint16_t port)
{
	for (unsigned i = 0; i < rule->n_ports; i++)
		if (r->ports[rule->first_port + i] == port)
			return true;
	return !rule->n_ports || (!port && !rule->deny);
}

/* How specific a rule is; more is more. */
static unsigned weight(const struct rule *rule)
{
	if (rule->kind == RULE_BLOCK)
		return rule->prefix;
	return rule->kind == RULE_NAME ? 1000 : rule->kind == RULE_SUFFIX ? 1u + rule->len : 0;
}

static bool beats(const struct rules *r, int32_t a, int32_t b)
{
	const struct rule *x = &r->items[a], *y = b < 0 ? NULL : &r->items[b];

	if (!y || weight(x) != weight(y))
		return !y || weight(x) > weight(y);
	if (x->added != y->added)
		return x->added;
	return x->added ? a > b : a < b;
}

/* Hosts that no answer opens: no rule that asks, or that was added, leads there. */
static void check_never(const struct rules *r, const struct host *h, uint16_t port)
{
	bool never = false;
	struct verdict v;
	struct want w;

	for (uint32_t i = 0; i < r->n_items; i++) {
		struct rule alive = r->items[i];

		alive.dead = false;
		never |= alive.never && (alive.kind == RULE_ANY || rule_has_host(r, &alive, h));
	}
	assert(rules_never(r, h) == never);
	if (!never || !port)
		return;
	want_host(&w, WANT_TRANSPARENT, h, port);
	decide_name(r, &w, &v);
	assert(!v.ask && (!v.allow || v.rule < 0 || v.service >= 0 || !r->items[v.rule].added));
}

static void check_match(const struct rules *r, const struct host *h, uint16_t port)
{
	struct rules_match m = rules_match(r, h, port);
	bool denied = false;
	int32_t best = -1;

	for (uint32_t i = 0; i < r->n_items; i++) {
		const struct rule *rule = &r->items[i];

		if (!rule_has_host(r, rule, h) || !rule_has_port(r, rule, port))
			continue;
		denied |= rule->deny;
		if (!rule->deny && beats(r, (int32_t)i, best))
			best = (int32_t)i;
	}
	assert(m.denied == denied);
	if (!denied)
		assert(m.rule == best);
	else
		assert(r->items[m.rule].deny && rule_has_host(r, &r->items[m.rule], h));
	(void)rules_service(r, h, port, (int32_t[]){ 0 });
}

static void check_rules(const struct rules *r, const char *name, size_t n)
{
	static const uint16_t ports[] = { 0, 22, 80, 443, 8443 };
	struct host h;

	if (host_read(name, n, &h) != HOST_FINE)
		return;
	for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
		check_match(r, &h, ports[i]);
		check_never(r, &h, ports[i]);
	}
}

static void check_bytes(const uint8_t *bytes, size_t n, const char *name, size_t name_len)
{
	auto_buf out = { 0 };
	auto_rules r = NULL;

	if (rules_decode(bytes, n, &r) < 0)
		return;
	assert(rules_encode(r, &out) == 0 && out.len == n && memcmp(out.data, bytes, n) == 0);
	for (uint32_t i = 0; i < r->n_items && i < 8; i++) {
		auto_buf text = { 0 };

		rules_text(r, (int32_t)i, &text);
		check_rules(r, r->text + r->items[i].host, r->items[i].len);
	}
	check_rules(r, name, name_len);
}

static void check_lines(char *lines, const char *name, size_t name_len)
{
	struct ward_err e = { 0 };
	struct policy p = { 0 };
	struct rules *r = NULL;
	auto_buf out = { 0 };
	unsigned count = 0;

	assert(policy_defaults(&p, &e) == 0);
	strv_add(&p.appr_never, "host:*.b.test");
	strv_add(&p.appr_never, "host:10.0.0.0/8");
	assert(rules_compile(&p, 1, &r, &e) == 0);
	policy_clear(&p);
	for (char *at = lines, *line; count < 16 && (line = strsep(&at, "\n")); count++) {
		struct rules *next = NULL;

		if ((*line == '+' || *line == '-') &&
		    rules_change(r, line + 1, *line == '-', &next, &e) == 0) {
			rules_free(r);
			r = next;
		}
	}
	assert(rules_encode(r, &out) == 0);
	check_bytes((const uint8_t *)out.data, out.len, name, name_len);
	check_rules(r, name, name_len);
	rules_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *nul = n ? memrchr(data, '\0', n) : NULL;
	size_t name_len = nul ? (size_t)(data + n - nul - 1) : 0;
	char lines[4096];

	if (n && data[0] == 'B') {
		check_bytes(data + 1, n - 1 - (nul ? name_len + 1 : 0),
			    nul ? (const char *)nul + 1 : "", name_len);
		check_bytes(data + 1, n - 1, "a.example.com", 13);
		return 0;
	}
	if (n >= sizeof(lines))
		return 0;
	memcpy(lines, data, n);
	lines[n] = '\0';
	check_lines(lines, nul ? (const char *)nul + 1 : "a.example.com", nul ? name_len : 13);
	return 0;
}
