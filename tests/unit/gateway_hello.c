/* The gate of mode splice: which TLS greetings pass, cut anywhere, and when it goes blind. */
#include "gateway_help.h"
#include "rules/sniff.h"

#define NAME "api.example.com"

struct bytes {
	uint8_t b[200000];
	size_t n;
};

static void put(struct bytes *o, const void *bytes, size_t n)
{
	assert_true(o->n + n <= sizeof(o->b));
	if (n)
		memcpy(o->b + o->n, bytes, n);
	o->n += n;
}

static void put_number(struct bytes *o, size_t value, unsigned size)
{
	while (size--)
		put(o, (uint8_t[]){ (uint8_t)(value >> 8 * size) }, 1);
}

/* A ClientHello message with these extensions. */
static void put_hello(struct bytes *o, const struct bytes *extensions)
{
	size_t body = 2 + 32 + 1 + 32 + 2 + 4 + 1 + 1 + (extensions ? 2 + extensions->n : 0);
	uint8_t zero[32] = { 0 };

	put_number(o, 1, 1);
	put_number(o, body, 3);
	put_number(o, 0x0303, 2);
	put(o, zero, 32);
	put_number(o, 32, 1);
	put(o, zero, 32);
	put_number(o, 4, 2);
	put_number(o, 0x13011302, 4);
	put_number(o, 0x0100, 2);
	if (!extensions)
		return;
	put_number(o, extensions->n, 2);
	put(o, extensions->b, extensions->n);
}

static void put_extension(struct bytes *o, unsigned type, const void *body, size_t n)
{
	put_number(o, type, 2);
	put_number(o, n, 2);
	put(o, body, n);
}

static void put_name(struct bytes *o, const char *name, size_t n)
{
	static struct bytes body;

	body.n = 0;
	put_number(&body, n + 3, 2);
	put_number(&body, 0, 1);
	put_number(&body, n, 2);
	put(&body, name, n);
	put_extension(o, 0, body.b, body.n);
}

/* A message in records of at most size bytes. */
static void put_records(struct bytes *o, unsigned type, const struct bytes *message, size_t size)
{
	for (size_t at = 0; at < message->n;) {
		size_t some = message->n - at < size ? message->n - at : size;

		put_number(o, type, 1);
		put_number(o, 0x0301, 2);
		put_number(o, some, 2);
		put(o, message->b + at, some);
		at += some;
	}
}

enum { ALPN = 1, ECH = 2, PADDING = 4, LARGE = 8, TWICE = 16, OLD_ESNI = 32 };

/* A client's first flight for name (NULL: none). */
static void greet(struct bytes *o, const char *name, unsigned with, size_t record)
{
	static struct bytes extensions, message;
	static uint8_t zero[60000];

	extensions.n = message.n = o->n = 0;
	put_extension(&extensions, 0x0a0a, NULL, 0);
	if (with & PADDING)
		put_extension(&extensions, 21, zero, 1500);
	if (name)
		put_name(&extensions, name, strlen(name));
	if (with & TWICE)
		put_name(&extensions, name, strlen(name));
	if (with & ALPN)
		put_extension(&extensions, 16, "\0\014\2h2\010http/1.1", 14);
	if (with & ECH)
		put_extension(&extensions, 0xfe0d, zero, 100);
	if (with & OLD_ESNI)
		put_extension(&extensions, 0xffce, zero, 100);
	if (with & LARGE)
		put_extension(&extensions, 51, zero, 60000);
	put_hello(&message, &extensions);
	put_records(o, 22, &message, record);
}

static struct sniff gate_for(const char *name)
{
	struct host h = host_of(name);
	struct sniff g;

	sniff_init(&g, RULE_SPLICE, &h, 443);
	return g;
}

/* Feeds bytes in pieces; returns how many passed in all, or -reason; then none has. */
static long feed(struct sniff *g, const struct bytes *o, size_t piece)
{
	static uint8_t held[sizeof(o->b)];
	size_t n = 0, passed = 0;

	for (size_t at = 0; at < o->n;) {
		size_t some = o->n - at < piece ? o->n - at : piece, release;

		memcpy(held + n, o->b + at, some);
		n += some;
		at += some;
		if (sniff_client(g, held, n, &release) == SNIFF_REFUSE) {
			assert_int_equal(passed + release, 0);
			return -(long)g->reason;
		}
		assert_true(release <= n);
		memmove(held, held + release, n - release);
		n -= release;
		passed += release;
	}
	return (long)passed;
}

static const size_t pieces[] = { 1, 2, 5, 7, 100, 1448, 200000 };
static const size_t records[] = { 1, 3, 100, 16384 };

static void check(const char *name, unsigned with, long reason)
{
	static struct bytes o;

	for (size_t r = 0; r < ARRAY_LEN(records); r++)
		for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
			struct sniff g = gate_for(NAME);
			long got;

			if (with & LARGE && (records[r] < 100 || pieces[p] < 5))
				continue;
			greet(&o, name, with, records[r]);
			got = feed(&g, &o, pieces[p]);
			if (got != (reason ? -reason : (long)o.n))
				fail_msg("%s with %u, records of %zu, pieces of %zu: %ld", name,
					 with, records[r], pieces[p], got);
		}
}

static void test_names(void **state)
{
	(void)state;
	check(NAME, 0, 0);
	check("API.Example.COM", ALPN | PADDING, 0);
	check(NAME, LARGE, 0);
	check("evil.test", 0, REASON_WRONG_SNI);
	check("api.example.com.evil.test", ALPN, REASON_WRONG_SNI);
	check("example.com", 0, REASON_WRONG_SNI);
	check("1.2.3.4", 0, REASON_WRONG_SNI);
	check(NULL, ALPN, REASON_NO_SNI);
	check(NAME, ECH, REASON_ECH);
	check(NAME, OLD_ESNI, REASON_ECH);
	check(NULL, ECH, REASON_ECH);
	check(NAME, TWICE, REASON_TLS_OLD);
}

static long feed_raw(const void *bytes, size_t n)
{
	static struct bytes o;
	struct sniff g = gate_for(NAME);

	o.n = 0;
	put(&o, bytes, n);
	return feed(&g, &o, 1);
}

static void test_other_protocols(void **state)
{
	(void)state;
	assert_int_equal(feed_raw("GET / HTTP/1.1\r\n", 16), -REASON_NOT_TLS);
	assert_int_equal(feed_raw("SSH-2.0-x\r\n", 11), -REASON_NOT_TLS);
	assert_int_equal(feed_raw("\x80\x2e\x01\x03\x01", 5), -REASON_TLS_OLD);
	assert_int_equal(feed_raw("\x16\x02\x00", 3), -REASON_NOT_TLS);
	/* data before any greeting */
	assert_int_equal(feed_raw("\x17\x03\x03\x00\x01x", 6), -REASON_NOT_TLS);
	assert_int_equal(feed_raw("\x15\x03\x03\x00\x02\x01\x00", 7), -REASON_NOT_TLS);
	/* an empty record */
	assert_int_equal(feed_raw("\x16\x03\x01\x00\x00", 5), -REASON_TLS_OLD);
	assert_int_equal(feed_raw("\x16\x03\x01\x40\x01", 5), -REASON_TLS_OLD);
	/* a ServerHello */
	assert_int_equal(feed_raw("\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9), -REASON_TLS_OLD);
	assert_int_equal(feed_raw("\x16\x03\x01\x00\x04\x01\x01\x00\x01", 9), -REASON_TLS_LARGE);
	assert_int_equal(feed_raw("\x16\x03\x01\x00\x04\x01\x00\x00\x01", 9), -REASON_TLS_OLD);
}

/* Every length of the message one too small or too large, and every cut: never a pass, never held
 * for good by a whole message. */
static void test_lengths(void **state)
{
	static struct bytes extensions, message, o;

	(void)state;
	extensions.n = message.n = 0;
	put_name(&extensions, NAME, strlen(NAME));
	put_extension(&extensions, 16, "\0\3\2h2", 5);
	put_hello(&message, &extensions);
	for (size_t at = 0; at < message.n; at++) {
		for (int by = -1; by <= 1; by += 2) {
			struct sniff g = gate_for(NAME);
			bool random = (at >= 6 && at < 38) || (at >= 39 && at < 71) ||
				      (at >= 73 && at < 77) || at == 78;
			long got;

			message.b[at] = (uint8_t)(message.b[at] + by);
			o.n = 0;
			put_records(&o, 22, &message, 16384);
			got = feed(&g, &o, 200000);
			if (!random && at != 5 && got > 0 && at < message.n - 9)
				fail_msg("byte %zu changed by %d passes", at, by);
			message.b[at] = (uint8_t)(message.b[at] - by);
		}
	}
	put_records(&o, 22, &message, 16384);
	for (size_t n = 0; n < message.n; n++) {
		struct sniff g = gate_for(NAME);
		size_t release = 1;

		assert_int_equal(sniff_client(&g, o.b, n, &release), SNIFF_OPEN);
		assert_int_equal(release, 0);
	}
}

static void test_odd_names(void **state)
{
	static const struct {
		const char *body;
		size_t n;
		long reason;
	} rows[] = {
		/* two names */
		{ "\0\x22\0\0\x0f" NAME "\0\0\x0d"
		  "evil.test.com",
		  36, REASON_TLS_OLD },
		{ "\0\x12\1\0\x0f" NAME, 20, REASON_TLS_OLD }, /* another type */
		/* NUL behind */
		{ "\0\x13\0\0\x10" NAME "\0", 21, REASON_WRONG_SNI },
		{ "\0\x13\0\0\x10" NAME ".", 21, 0 },
		{ "\0\0", 2, REASON_TLS_OLD },
		{ "", 0, REASON_TLS_OLD },
		{ "\0\x12\0\0\x0e" NAME, 20, REASON_TLS_OLD },
	};
	static struct bytes extensions, message, o;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sniff g = gate_for(NAME);
		long got;

		extensions.n = message.n = o.n = 0;
		put_extension(&extensions, 0, rows[i].body, rows[i].n);
		put_hello(&message, &extensions);
		put_records(&o, 22, &message, 16384);
		got = feed(&g, &o, 3);
		if (got != (rows[i].reason ? -rows[i].reason : (long)o.n))
			fail_msg("row %zu: %ld", i, got);
	}
	message.n = o.n = 0;
	put_hello(&message, NULL); /* no extensions at all */
	put_records(&o, 22, &message, 16384);
	assert_int_equal(feed_raw(o.b, o.n), -REASON_NO_SNI);
}

static void server_hello(struct bytes *o, bool retry)
{
	static const uint8_t retry_random[32] = {
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
		0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
		0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};
	static struct bytes message;
	uint8_t other[32] = { 1 };

	message.n = 0;
	put_number(&message, 2, 1);
	put_number(&message, 2 + 32 + 10, 3);
	put_number(&message, 0x0303, 2);
	put(&message, retry ? retry_random : other, 32);
	put(&message, "0123456789", 10);
	put_records(o, 22, &message, 11);
	if (retry)
		put(o, "\x14\x03\x03\0\1\1", 6);
}

static enum sniff_say serve(struct sniff *g, const struct bytes *o, size_t piece)
{
	enum sniff_say say = SNIFF_OPEN;

	for (size_t at = 0; at < o->n && say == SNIFF_OPEN; at += piece)
		say = sniff_server(g, o->b + at, o->n - at < piece ? o->n - at : piece);
	return say;
}

static void test_blind(void **state)
{
	static struct bytes o, s, more;
	struct sniff g = gate_for(NAME);
	size_t release;

	(void)state;
	greet(&o, NAME, 0, 16384);
	assert_int_equal(feed(&g, &o, 200000), o.n);
	more.n = 0;
	/* compatibility and early data pass */
	put(&more, "\x14\x03\x03\0\1\1\x17\x03\x03\0\5early", 16);
	assert_int_equal(feed(&g, &more, 3), more.n);
	s.n = 0;
	put(&s, "\x15\x03\x03\0\2\1\x70", 7); /* a warning: unrecognized_name */
	server_hello(&s, false);
	assert_int_equal(serve(&g, &s, 1), SNIFF_BLIND);
	assert_int_equal(sniff_client(&g, (uint8_t *)(uintptr_t) "anything", 8, &release),
			 SNIFF_BLIND);
	assert_int_equal(release, 8);
	assert_int_equal(sniff_server(&g, (const uint8_t *)"anything", 8), SNIFF_BLIND);
}

/* HelloRetryRequest: the second greeting counts as the first did. */
static void test_retry(void **state)
{
	static struct bytes o, s;

	(void)state;
	/* also one that does not wait for the retry */
	for (unsigned before = 0; before < 2; before++)
		for (unsigned good = 0; good < 2; good++) {
			struct sniff g = gate_for(NAME);

			greet(&o, NAME, 0, 16384);
			assert_int_equal(feed(&g, &o, 200000), o.n);
			s.n = 0;
			server_hello(&s, true);
			if (!before)
				assert_int_equal(serve(&g, &s, 4), SNIFF_OPEN);
			greet(&o, good ? NAME : "evil.test", 0, 50);
			assert_int_equal(feed(&g, &o, 9), good ? (long)o.n : -REASON_WRONG_SNI);
			if (!good)
				continue;
			if (before)
				assert_int_equal(serve(&g, &s, 4), SNIFF_OPEN);
			s.n = 0;
			server_hello(&s, false);
			assert_int_equal(serve(&g, &s, 4), SNIFF_BLIND);
		}
}

static void test_second_greeting_without_name(void **state)
{
	static struct bytes o;
	struct sniff g = gate_for(NAME);

	(void)state;
	greet(&o, NAME, 0, 16384);
	assert_int_equal(feed(&g, &o, 200000), o.n);
	greet(&o, NULL, 0, 16384);
	assert_int_equal(feed(&g, &o, 200000), -REASON_NO_SNI);
	g = gate_for(NAME);
	greet(&o, NAME, 0, 16384);
	assert_int_equal(feed(&g, &o, 200000), o.n);
	assert_int_equal(feed(&g, (struct bytes[]){ { "\x16\x03\x03\0\4\x10\0\0\0", 9 } }, 9),
			 -REASON_TLS_OLD);
}

static void test_server(void **state)
{
	static struct bytes o, s;
	struct sniff g = gate_for(NAME);

	(void)state;
	/* speaks first */
	assert_int_equal(sniff_server(&g, (const uint8_t *)"SSH-2.0", 7), SNIFF_REFUSE);
	g = gate_for(NAME);
	greet(&o, NAME, 0, 16384);
	assert_int_equal(feed(&g, &o, 200000), o.n);
	assert_int_equal(sniff_server(&g, (const uint8_t *)"HTTP/1.1 400", 12), SNIFF_REFUSE);
	assert_int_equal(g.reason, REASON_NOT_TLS);
	g = gate_for(NAME);
	feed(&g, &o, 200000);
	s.n = 0;
	server_hello(&s, true);
	server_hello(&s, true); /* two retries */
	assert_int_equal(serve(&g, &s, 100), SNIFF_REFUSE);
}

/* Nothing between the parts of a message, and nothing behind it in its record. */
static void test_interleaved(void **state)
{
	static struct bytes o, message, cut;

	(void)state;
	greet(&o, NAME, 0, 40);
	cut.n = 0;
	put(&cut, o.b, 45);
	put(&cut, "\x17\x03\x03\0\1x", 6);
	put(&cut, o.b + 45, o.n - 45);
	assert_int_equal(feed_raw(cut.b, cut.n), -REASON_NOT_TLS);
	greet(&o, NAME, 0, 16384);
	message.n = cut.n = 0;
	put(&message, o.b + 5, o.n - 5);
	put(&message, o.b + 5, o.n - 5);
	put_records(&cut, 22, &message, 16384);
	assert_int_equal(feed_raw(cut.b, cut.n), -REASON_TLS_OLD);
}

/* A message of legal size in tiny records is more than is held. */
static void test_flood(void **state)
{
	static struct bytes o;
	struct sniff g = gate_for(NAME);

	(void)state;
	greet(&o, NAME, LARGE, 3);
	assert_int_equal(feed(&g, &o, 1000), -REASON_TLS_LARGE);
}

static void test_tcp(void **state)
{
	struct host h = host_of(NAME);
	struct sniff g;
	size_t release;

	(void)state;
	sniff_init(&g, RULE_TCP, &h, 22);
	assert_int_equal(sniff_client(&g, (uint8_t *)(uintptr_t) "x", 1, &release), SNIFF_BLIND);
	assert_int_equal(release, 1);
	sniff_init(&g, RULE_MODES, &h, 22);
	assert_int_equal(sniff_client(&g, (uint8_t *)(uintptr_t) "x", 1, &release), SNIFF_REFUSE);
	assert_int_equal(release, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_other_protocols),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_blind),
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_second_greeting_without_name),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_tcp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
