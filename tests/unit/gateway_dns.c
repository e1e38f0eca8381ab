/* The resolver inside: what it answers, what it refuses, and the table of synthetic addresses. */
#include <errno.h>

#include "gateway_help.h"
#include "rules/dns.h"
#include "rules/net.h"
#include "rules/port_classes.h"

static const uint8_t seed[16] = { 1, 2, 3 };

struct message {
	uint8_t bytes[8192];
	size_t n;
};

static void add(struct message *m, const void *bytes, size_t n)
{
	memcpy(m->bytes + m->n, bytes, n);
	m->n += n;
}

static void add16(struct message *m, unsigned value)
{
	add(m, (uint8_t[]){ (uint8_t)(value >> 8), (uint8_t)value }, 2);
}

static void add_name(struct message *m, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		add(m, (uint8_t[]){ (uint8_t)n }, 1);
		add(m, name, n);
		name += n + (name[n] == '.');
	}
	add(m, "", 1);
}

static void add_header(struct message *m, unsigned flags, unsigned qd, unsigned an, unsigned ns,
		       unsigned ar)
{
	m->n = 0;
	add16(m, 0x1234);
	add16(m, flags);
	add16(m, qd);
	add16(m, an);
	add16(m, ns);
	add16(m, ar);
}

static void ask(struct message *m, const char *name, unsigned type)
{
	add_header(m, 0x0100, 1, 0, 0, 0);
	add_name(m, name);
	add16(m, type);
	add16(m, 1);
}

static void add_opt(struct message *m, unsigned version)
{
	m->bytes[11]++;
	add(m, "", 1);
	add16(m, DNS_OPT);
	add16(m, 4096);
	add16(m, version);
	add16(m, 0x8000);
	add16(m, 0);
}

struct answer {
	uint8_t bytes[DNS_ANSWER_MAX];
	size_t n;
	unsigned flags, rcode, qd, an, ns, ar;
	struct dns_outcome outcome;
};

static void answer(const struct rules *r, struct name_table *names, const struct message *m,
		   struct answer *a)
{
	memset(a, 0, sizeof(*a));
	a->n = resolver_answer(r, names, m->bytes, m->n, a->bytes, sizeof(a->bytes), &a->outcome);
	if (!a->n)
		return;
	assert_int_equal(a->bytes[0] << 8 | a->bytes[1], 0x1234);
	a->flags = (unsigned)(a->bytes[2] << 8 | a->bytes[3]);
	a->rcode = a->flags & 15;
	a->qd = a->bytes[5];
	a->an = a->bytes[7];
	a->ns = a->bytes[9];
	a->ar = a->bytes[11];
	assert_int_equal(a->flags & 0x8080, 0x8080);
}

struct fixture {
	struct rules *rules;
	struct name_table *names;
};

static int set_up(void **state)
{
	static struct fixture f;

	f.rules = rules_of("{mode: restricted, egress_allowlist: ['api.example.com', "
			   "'*.wild.example:443'], host_services: ['pg=127.0.0.1:5432']}");
	f.names = name_table_new(seed);
	*state = &f;
	return f.names ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	rules_free(f->rules);
	name_table_free(f->names);
	return 0;
}

static void test_a(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;
	struct ip first;
	struct host back;

	ask(&m, "aPi.eXample.COM", DNS_A);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NOERROR);
	assert_int_equal(a.flags & 0x0100, 0x0100);
	assert_int_equal(a.an, 1);
	/* the question as it was written */
	assert_memory_equal(a.bytes + 12, m.bytes + 12, m.n - 12);
	assert_memory_equal(a.bytes + a.n - 4, ((uint8_t[]){ 198, 19, 0, 1 }), 4);
	assert_true(name_table_find(f->names, &a.outcome.ip, &back));
	assert_string_equal(back.name, "api.example.com");
	first = a.outcome.ip;
	ask(&m, "x.wild.example", DNS_A);
	answer(f->rules, f->names, &m, &a);
	assert_false(ip_equal(&a.outcome.ip, &first));
	ask(&m, "api.example.com", DNS_A);
	answer(f->rules, f->names, &m, &a);
	assert_true(ip_equal(&a.outcome.ip, &first));
	ask(&m, "pg", DNS_A);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.an, 1);
	assert_int_equal(name_table_count(f->names), 3);
}

/* No IPv6, no HTTPS and SVCB hints, no text: the name exists, the record does not. */
static void test_nodata(void **state)
{
	static const unsigned types[] = { DNS_AAAA, DNS_HTTPS, DNS_SVCB, 16, 10,
					  15,       2,         DNS_SOA,  99, 65535 };
	struct fixture *f = *state;
	struct message m;
	struct answer a;

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		ask(&m, "api.example.com", types[i]);
		answer(f->rules, f->names, &m, &a);
		assert_int_equal(a.rcode, DNS_NOERROR);
		assert_int_equal(a.an, 0);
		assert_int_equal(a.ns, 1);
		assert_true(a.outcome.verdict.allow);
	}
	assert_int_equal(name_table_count(f->names), 0);
}

static void test_denied(void **state)
{
	static const char *const names[] = { "evil.test",
					     "example.com",
					     "api.example.com.evil.test",
					     "wild.example",
					     "aGVsbG8gd29ybGQ.c2VjcmV0.evil.test",
					     "com",
					     "1.2.3.4",
					     "pg.evil.test" };
	static const unsigned types[] = { DNS_A, DNS_AAAA, 16, 10, DNS_ANY };
	struct fixture *f = *state;
	struct message m;
	struct answer a;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		for (size_t k = 0; k < ARRAY_LEN(types); k++) {
			ask(&m, names[i], types[k]);
			answer(f->rules, f->names, &m, &a);
			assert_int_equal(a.rcode, DNS_NXDOMAIN);
			assert_int_equal(a.an, 0);
			assert_int_equal(a.ns, 1);
			assert_true(a.outcome.decided);
			assert_false(a.outcome.verdict.allow);
		}
	assert_int_equal(name_table_count(f->names), 0);
}

/* A label with a dot, a NUL or a space inside is not the name that its text looks like. */
static void test_odd_labels(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;

	add_header(&m, 0, 1, 0, 0, 0);
	add(&m,
	    "\x0f"
	    "api.example.com",
	    17);
	add16(&m, DNS_A);
	add16(&m, 1);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
	add_header(&m, 0, 1, 0, 0, 0);
	add(&m,
	    "\x03"
	    "a\0b\x04wild\x07"
	    "example",
	    18);
	add16(&m, DNS_A);
	add16(&m, 1);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
	add_header(&m, 0, 1, 0, 0, 0);
	add(&m,
	    "\x04"
	    "a.b.\x04wild\x07"
	    "example",
	    19);
	add16(&m, DNS_A);
	add16(&m, 1);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
	ask(&m, "", DNS_A); /* the root */
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
}

static void test_malformed(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;

	ask(&m, "api.example.com", DNS_A);
	for (size_t n = 0; n < m.n; n++) { /* every cut */
		struct message cut = m;

		cut.n = n;
		answer(f->rules, f->names, &cut, &a);
		assert_int_equal(a.n, n < 12 ? 0 : 12);
		assert_int_equal(a.rcode, n < 12 ? 0 : DNS_FORMERR);
	}
	m.bytes[m.n++] = 0; /* something behind */
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_FORMERR);

	ask(&m, "api.example.com", DNS_A);
	m.bytes[5] = 2; /* two questions */
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_FORMERR);
	m.bytes[5] = 0;
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_FORMERR);
}

#define FIFTY                                                                                      \
	"\x32"                                                                                     \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Names of questions that are none. */
static const struct {
	const char *bytes;
	size_t n;
} bad_names[] = {
	{ "\xc0\x0c", 2 }, /* points at itself */
	{ "\x41"
	  "aa\0",
	  4 },                                         /* a label of an unknown kind */
	{ FIFTY FIFTY FIFTY FIFTY FIFTY, 5 * 51 + 1 }, /* 256 bytes of name */
};

static void test_malformed_names(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;

	for (size_t i = 0; i < ARRAY_LEN(bad_names); i++) {
		add_header(&m, 0, 1, 0, 0, 0);
		add(&m, bad_names[i].bytes, bad_names[i].n);
		add16(&m, DNS_A);
		add16(&m, 1);
		answer(f->rules, f->names, &m, &a);
		assert_int_equal(a.rcode, DNS_FORMERR);
	}
}

static void test_not_answered(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;

	ask(&m, "api.example.com", DNS_A);
	m.n = sizeof(m.bytes); /* too large */
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_FORMERR);
	ask(&m, "api.example.com", DNS_A);
	m.bytes[2] |= 0x80; /* a response: not a word */
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.n, 0);
	ask(&m, "api.example.com", DNS_A);
	m.bytes[2] |= 0x28; /* UPDATE */
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NOTIMP);
	ask(&m, "version.bind", 16);
	m.bytes[m.n - 1] = 3; /* CHAOS */
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_REFUSED);
	assert_int_equal(name_table_count(f->names), 0);
}

static void test_edns(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;

	ask(&m, "api.example.com", DNS_A);
	add_opt(&m, 0);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NOERROR);
	assert_int_equal(a.an, 1);
	assert_int_equal(a.ar, 1);
	add_opt(&m, 0); /* twice */
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_FORMERR);
	ask(&m, "api.example.com", DNS_A);
	add_opt(&m, 1);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.outcome.rcode, DNS_BADVERS);
	assert_int_equal(a.an, 0);
	assert_int_equal(a.bytes[a.n - 6], 1); /* the upper part of 16 */
	/* a compressed name in front of a TSIG: skipped, not followed */
	ask(&m, "api.example.com", DNS_A);
	m.bytes[11] = 1;
	add16(&m, 0xc00c);
	add16(&m, 250);
	add16(&m, 255);
	add16(&m, 0);
	add16(&m, 0);
	add16(&m, 1);
	add(&m, "x", 1);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.an, 1);
}

static void test_reverse_and_localhost(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;

	ask(&m, "api.example.com", DNS_A);
	answer(f->rules, f->names, &m, &a);
	ask(&m, "1.0.19.198.in-addr.arpa", DNS_PTR);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.an, 1);
	assert_memory_equal(a.bytes + a.n - 17, "\003api\007example\003com", 17);
	assert_false(a.outcome.decided);
	ask(&m, "2.0.18.198.in-addr.arpa", DNS_PTR);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
	ask(&m, "8.8.8.8.in-addr.arpa", DNS_PTR);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
	ask(&m, "111.222.333.444.555.666.777.888.in-addr.arpa", DNS_PTR);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
	ask(&m, "localhost", DNS_A);
	answer(f->rules, f->names, &m, &a);
	assert_memory_equal(a.bytes + a.n - 4, ((uint8_t[]){ 127, 0, 0, 1 }), 4);
	ask(&m, "localhost.evil.test", DNS_A);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
}

/* A flood of names under a wildcard ends; the names of the rules are still answered. */
static void test_flood(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;
	char name[64];
	unsigned i = 0;

	do {
		snprintf(name, sizeof(name), "n%u.wild.example", i++);
		ask(&m, name, DNS_A);
		answer(f->rules, f->names, &m, &a);
	} while (a.rcode == DNS_NOERROR);
	assert_int_equal(i, NAME_TABLE_WILD + 1);
	assert_int_equal(a.rcode, DNS_SERVFAIL);
	assert_int_equal(a.outcome.verdict.reason, REASON_NAMES_FULL);
	ask(&m, "api.example.com", DNS_A);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.an, 1);
	ask(&m, "n7.wild.example", DNS_A);
	answer(f->rules, f->names, &m, &a);
	assert_int_equal(a.an, 1);
	assert_memory_equal(a.bytes + a.n - 4, ((uint8_t[]){ 198, 19, 0, 8 }), 4);
}

static void test_names_differ(void **state)
{
	struct fixture *f = *state;
	struct host h = { .kind = HOST_NAME }, back;
	struct ip ip;

	for (unsigned i = 0; i < NAME_TABLE_LISTED; i++) {
		h.len = (uint8_t)snprintf(h.name, sizeof(h.name), "h%u.example", i);
		assert_true(name_table_give(f->names, &h, true, NET_CLASSES_MAX, &ip));
		assert_true(name_table_is_synthetic(&ip));
		assert_true(name_table_find(f->names, &ip, &back));
		assert_true(host_equal(&h, &back));
	}
	assert_false(name_table_find(
		f->names, &(struct ip){ .family = 4, .bytes = { 198, 18, 0, 0 } }, &back));
	assert_false(name_table_find(
		f->names, &(struct ip){ .family = 4, .bytes = { 198, 19, 255, 255 } }, &back));
	assert_false(name_table_find(
		f->names, &(struct ip){ .family = 6, .bytes = { 198, 18, 0, 1 } }, &back));
}

static void test_destination(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct answer a;
	struct want w;
	struct verdict v;

	ask(&m, "api.example.com", DNS_A);
	answer(f->rules, f->names, &m, &a);
	want_destination(&w, f->names, &a.outcome.ip, 443);
	decide_name(f->rules, &w, &v);
	assert_true(v.allow);
	assert_int_equal(v.mode, RULE_SPLICE);
	assert_string_equal(w.host.name, "api.example.com");
	want_destination(&w, f->names, &(struct ip){ .family = 4, .bytes = { 198, 18, 9, 9 } },
			 443);
	decide_name(f->rules, &w, &v);
	assert_int_equal(v.reason, REASON_STALE);
	want_destination(&w, f->names, &(struct ip){ .family = 4, .bytes = { 1, 2, 3, 4 } }, 443);
	decide_name(f->rules, &w, &v);
	assert_int_equal(v.reason, REASON_LITERAL);
}

/* The address of a name, as its third byte tells the class. */
static struct ip address(const struct rules *r, struct name_table *names, const char *name)
{
	struct message m;
	struct answer a;

	ask(&m, name, DNS_A);
	answer(r, names, &m, &a);
	assert_int_equal(a.an, 1);
	return a.outcome.ip;
}

/* Names with the same ports share a block; a rule more moves a name, whose old address goes on to
 * mean it. */
static void test_classes(void **state)
{
	struct fixture *f = *state;
	struct net_classes c = { 0 };
	struct ward_err e = { 0 };
	struct rules *next = NULL;
	struct ip before, after;
	struct host back;

	classes_extend(f->rules, &c);
	assert_int_equal(c.count, 2);
	assert_int_equal(c.port_count, 2);
	name_table_use_classes(f->names, &c);
	before = address(f->rules, f->names, "api.example.com");
	assert_true(ip_within(&before, &(struct ip){ 4, { 198, 18, 0, 0 } }, 20));
	after = address(f->rules, f->names, "a.wild.example");
	assert_true(ip_within(&after, &(struct ip){ 4, { 198, 18, 0, 0 } }, 20));
	after = address(f->rules, f->names, "pg");
	assert_true(ip_within(&after, &(struct ip){ 4, { 198, 18, 16, 0 } }, 20));
	assert_int_equal(rules_change(f->rules, "api.example.com:8443", false, &next, &e), 0);
	classes_extend(next, &c);
	assert_int_equal(c.count, 3);
	after = address(next, f->names, "api.example.com");
	assert_true(ip_within(&after, &(struct ip){ 4, { 198, 18, 32, 0 } }, 20));
	assert_true(name_table_find(f->names, &before, &back));
	assert_string_equal(back.name, "api.example.com");
	assert_true(name_table_find(f->names, &after, &back));
	assert_string_equal(back.name, "api.example.com");
	rules_free(next);
	next = NULL;
	assert_int_equal(rules_change(f->rules, "b.wild.example", true, &next, &e), 0);
	classes_extend(next, &c);
	assert_int_equal(c.count, 3); /* who may nothing has no address */
	rules_free(next);
	for (unsigned i = 0; i < NET_CLASS_ADDRESSES + 10; i++) {
		char name[64];

		snprintf(name, sizeof(name), "n%u.wild.example", i);
		after = address(f->rules, f->names, name);
	}
	/* the block is full */
	assert_true(ip_within(&after, &(struct ip){ 4, { 198, 19, 0, 0 } }, 16));
	name_table_use_classes(f->names, NULL);
}

/* Sixteen different sets, and more ports than are kept: what has no class is in the rest. */
static void test_many_classes(void **state)
{
	struct net_classes c = { 0 };
	auto_buf text = { 0 };
	struct rules *r;
	struct host h;

	(void)state;
	buf_puts(&text, "{mode: restricted, egress_allowlist: [");
	for (unsigned i = 0; i < 40; i++)
		buf_printf(&text, "'h%u.example:%u', ", i, 1000 + i);
	buf_puts(&text, "'x.example:9'], host_services: []}");
	r = rules_of(buf_text(&text));
	classes_extend(r, &c);
	assert_int_equal(c.count, NET_CLASSES_MAX);
	h = host_of("h3.example");
	assert_int_equal(classes_of(r, &c, &h), 3);
	h = host_of("h39.example");
	assert_int_equal(classes_of(r, &c, &h), NET_CLASSES_MAX);
	rules_free(r);
	text.len = 0;
	buf_puts(&text, "{mode: restricted, egress_allowlist: [");
	for (unsigned i = 0; i < 70; i++)
		buf_printf(&text, "'h%u.example:%u', ", i, 1000 + i);
	buf_puts(&text, "'x.example:9'], host_services: []}");
	r = rules_of(buf_text(&text));
	c = (struct net_classes){ 0 };
	classes_extend(r, &c);
	assert_true(c.off);
	h = host_of("h3.example");
	assert_int_equal(classes_of(r, &c, &h), NET_CLASSES_MAX);
	rules_free(r);
}

static void test_frame(void **state)
{
	uint8_t bytes[64] = { 0, 20 };

	(void)state;
	assert_int_equal(dns_frame(bytes, 0), 0);
	assert_int_equal(dns_frame(bytes, 1), 0);
	assert_int_equal(dns_frame(bytes, 21), 0);
	assert_int_equal(dns_frame(bytes, 22), 20);
	assert_int_equal(dns_frame(bytes, 64), 20);
	assert_int_equal(dns_frame((uint8_t[]){ 255, 255 }, 2), -EMSGSIZE);
	assert_int_equal(dns_frame((uint8_t[]){ 0, 11 }, 2), -EMSGSIZE);
}

int main(void)
{
#define WITH_RULES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_RULES(test_a),
		WITH_RULES(test_nodata),
		WITH_RULES(test_denied),
		WITH_RULES(test_odd_labels),
		WITH_RULES(test_malformed),
		WITH_RULES(test_malformed_names),
		WITH_RULES(test_not_answered),
		WITH_RULES(test_edns),
		WITH_RULES(test_flood),
		WITH_RULES(test_reverse_and_localhost),
		WITH_RULES(test_names_differ),
		WITH_RULES(test_destination),
		cmocka_unit_test(test_frame),
		WITH_RULES(test_classes),
		cmocka_unit_test(test_many_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
