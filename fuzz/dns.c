/* Fuzzes the resolver: an answer is for its question, fits, and gives an address only to a name
 * that the rules have. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rules/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct rules *make_rules(void)
{
	static const char text[] = "network: {mode: restricted, egress_allowlist: [a.example, "
				   "'*.wild.example'], host_services: ['pg=127.0.0.1:5432']}";
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	struct policy p = { 0 };
	struct rules *r = NULL;

	if (policy_defaults(&p, &e) < 0 ||
	    policy_read(&p, "f", (const uint8_t *)text, strlen(text), POLICY_FILE, &errors) < 0 ||
	    rules_compile(&p, 1, &r, &e) < 0)
		abort();
	policy_clear(&p);
	return r;
}

static void check_answer(const uint8_t *data, const struct dns_outcome *o, const uint8_t *out,
			 size_t len)
{
	const struct host *h = &o->query.host;
	struct dns_query again;

	assert(len >= 12 && len <= DNS_UDP_MAX && memcmp(out, data, 2) == 0 && (out[2] & 0x80));
	/* an answer is no question: two resolvers do not talk for ever */
	assert(!dns_read(out, len, &again));
	if (o->query.question_len)
		assert(memcmp(out + 12, data + 12, o->query.question_len) == 0);
	if (!o->ip.family || o->ip.bytes[0] == 127)
		return;
	assert(h->kind == HOST_NAME);
	assert(strcmp(h->name, "a.example") == 0 || strcmp(h->name, "pg") == 0 ||
	       (h->len > 13 && strcmp(h->name + h->len - 13, ".wild.example") == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t seed[16] = { 7 };
	static struct rules *rules;
	static struct name_table *names;
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_outcome o;
	struct host back;
	size_t len;

	if (!rules)
		rules = make_rules();
	if (names && name_table_count(names) > 5000) {
		name_table_free(names);
		names = NULL;
	}
	if (!names)
		names = name_table_new(seed);
	assert(names);
	len = resolver_answer(rules, names, data, n, out, sizeof(out), &o);
	if (len)
		check_answer(data, &o, out, len);
	if (o.ip.family && o.ip.bytes[0] != 127)
		assert(name_table_find(names, &o.ip, &back) && host_equal(&back, &o.query.host));
	len = resolver_refuse(data, n, out, sizeof(out), &o.query);
	o.ip = (struct ip){ 0 };
	if (len)
		check_answer(data, &o, out, len);
	(void)!dns_frame(data, n);
	return 0;
}
