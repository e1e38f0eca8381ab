/* Unit test of who may do what at ward serve: one test for each row of src/daemon/access.def, the
 * matrix of roles and rights, and the body of a request for a token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/access.h"

#define NOON_MS (INT64_C(1000) * 3600 * (24 * 20000 + 12))
#define BOX "abcd0123456789abcdef"

static const struct access_who key = { .id = "0123456789ab", .owner = "alice", .role = ROLE_ADMIN };
static const struct access_what box = { .owner = "alice",
					.sandbox = BOX,
					.labels = "{\"team\":\"red\",\"n\":\"1\"}",
					.template = "base",
					.engine = "native" };

static struct access_when noon(void)
{
	return (struct access_when){ .now_ms = NOON_MS,
				     .source = { .family = 4, .bytes = { 10, 1, 2, 3 } } };
}

static enum access_check use(const struct access_who *who)
{
	const struct access_when when = noon();

	return access_decide(who, RIGHT_READ, &box, &when);
}

static void check_EXPIRED(void)
{
	struct access_who w = key;

	w.made_ms = NOON_MS - 1000;
	w.expires_ms = NOON_MS + 1;
	assert_int_equal(use(&w), ACCESS_ALLOWED);
	w.expires_ms = NOON_MS;
	assert_int_equal(use(&w), ACCESS_EXPIRED);
	w.expires_ms = 1;
	assert_int_equal(use(&w), ACCESS_EXPIRED);
}

static void check_EARLY(void)
{
	struct access_who w = key;

	w.expires_ms = NOON_MS + 900000;
	w.made_ms = NOON_MS + 59000;
	assert_int_equal(use(&w), ACCESS_ALLOWED);
	w.made_ms = NOON_MS + 61000;
	assert_int_equal(use(&w), ACCESS_EARLY);
	w.expires_ms = 0; /* a key has no time that a clock could prolong */
	assert_int_equal(use(&w), ACCESS_ALLOWED);
}

static void check_SOURCE(void)
{
	static const struct {
		const char *sources;
		enum access_check wanted;
	} rows[] = {
		{ "10.0.0.0/8", ACCESS_ALLOWED },
		{ "10.1.2.3", ACCESS_ALLOWED },
		{ "10.1.2.4", ACCESS_SOURCE },
		{ "10.1.2.2/31", ACCESS_ALLOWED },
		{ "192.0.2.0/24,10.1.0.0/16", ACCESS_ALLOWED },
		{ "192.0.2.0/24", ACCESS_SOURCE },
		{ "0.0.0.0/0", ACCESS_ALLOWED },
		{ "::/0", ACCESS_SOURCE },
		{ "nonsense", ACCESS_SOURCE },
	};
	struct access_when when = noon();
	struct access_who w = key;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(w.sources, sizeof(w.sources), "%s", rows[i].sources);
		assert_int_equal(use(&w), rows[i].wanted);
	}
	snprintf(w.sources, sizeof(w.sources), "0.0.0.0/0");
	when.source.family = 0;
	assert_int_equal(access_decide(&w, RIGHT_READ, &box, &when), ACCESS_SOURCE);
}

static void check_HOURS(void)
{
	static const struct {
		const char *hours;
		enum access_check wanted;
	} rows[] = {
		{ "08:00-18:00", ACCESS_ALLOWED }, { "12:00-12:01", ACCESS_ALLOWED },
		{ "11:00-12:00", ACCESS_HOURS },   { "18:00-08:00", ACCESS_HOURS },
		{ "22:00-12:30", ACCESS_ALLOWED }, { "00:00-11:59", ACCESS_HOURS },
		{ "8-18", ACCESS_HOURS },          { "25:00-26:00", ACCESS_HOURS },
	};
	struct access_who w = key;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(w.hours, sizeof(w.hours), "%s", rows[i].hours);
		assert_int_equal(use(&w), rows[i].wanted);
	}
}

/* Written out: a right that a role gets by accident is red here. */
static void check_ROLE(void)
{
	static const struct {
		enum access_role role;
		const char *rights;
	} rows[] = {
		{ ROLE_VIEWER, "read server" },
		{ ROLE_RUNNER, "read use create end" },
		{ ROLE_OPERATOR, "read use create end keep stop server" },
		{ ROLE_APPROVER, "read approve" },
		{ ROLE_ADMIN, "read use create end keep stop approve tokens audit server" },
		{ ROLE_NONE, "" },
	};
	struct access_when when = noon();

	when.one_owner = true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct access_who w = key;

		w.role = rows[i].role;
		assert_int_equal(access_decide(&w, RIGHT_OPEN, &box, &when), ACCESS_ALLOWED);
		for (int r = RIGHT_OPEN + 1; r < RIGHTS; r++) {
			char name[64], all[256];
			enum access_check wanted;

			snprintf(all, sizeof(all), " %s ", rows[i].rights);
			snprintf(name, sizeof(name), " %s ",
				 access_right_name((enum access_right)r));
			wanted = strstr(all, name) ? ACCESS_ALLOWED : ACCESS_ROLE;
			assert_int_equal(access_decide(&w, (enum access_right)r, &box, &when),
					 wanted);
		}
	}
	assert_int_equal(sizeof(rows) / sizeof(rows[0]), ROLES);
}

static void check_DERIVED(void)
{
	const struct access_when when = noon();
	struct access_who w = key;

	assert_int_equal(access_decide(&w, RIGHT_TOKENS, &box, &when), ACCESS_ALLOWED);
	snprintf(w.parent, sizeof(w.parent), "ba9876543210");
	assert_int_equal(access_decide(&w, RIGHT_TOKENS, &box, &when), ACCESS_DERIVED);
	assert_int_equal(access_decide(&w, RIGHT_END, &box, &when), ACCESS_ALLOWED);
}

static void check_SERVER(void)
{
	struct access_when when = noon();
	struct access_who w = key;

	assert_int_equal(access_decide(&w, RIGHT_SERVER, &box, &when), ACCESS_SERVER);
	when.one_owner = true;
	assert_int_equal(access_decide(&w, RIGHT_SERVER, &box, &when), ACCESS_ALLOWED);
	when.one_owner = false;
	snprintf(w.owner, sizeof(w.owner), "*");
	assert_int_equal(access_decide(&w, RIGHT_SERVER, &box, &when), ACCESS_ALLOWED);
}

static void check_OWNER(void)
{
	const struct access_what nothing = { 0 };
	const struct access_when when = noon();
	struct access_who w = key;

	snprintf(w.owner, sizeof(w.owner), "bob");
	assert_int_equal(use(&w), ACCESS_OWNER);
	assert_int_equal(access_decide(&w, RIGHT_READ, &nothing, &when), ACCESS_ALLOWED);
	snprintf(w.owner, sizeof(w.owner), "alic");
	assert_int_equal(use(&w), ACCESS_OWNER);
	snprintf(w.owner, sizeof(w.owner), "*");
	assert_int_equal(use(&w), ACCESS_ALLOWED);
}

static void check_SANDBOX(void)
{
	struct access_what fresh = box;
	const struct access_when when = noon();
	struct access_who w = key;

	snprintf(w.sandbox, sizeof(w.sandbox), BOX);
	assert_int_equal(use(&w), ACCESS_ALLOWED);
	fresh.sandbox = "";
	assert_int_equal(access_decide(&w, RIGHT_CREATE, &fresh, &when), ACCESS_SANDBOX);
	fresh.sandbox = NULL;
	assert_int_equal(access_decide(&w, RIGHT_READ, &fresh, &when), ACCESS_SANDBOX);
	w.sandbox[0] = 'x';
	assert_int_equal(use(&w), ACCESS_SANDBOX);
}

static void check_LABELS(void)
{
	static const struct {
		const char *labels;
		enum access_check wanted;
	} rows[] = {
		{ "{\"team\":\"red\"}", ACCESS_ALLOWED },
		{ "{\"team\":\"red\",\"n\":\"1\"}", ACCESS_ALLOWED },
		{ "{\"team\":\"red\",\"n\":\"2\"}", ACCESS_LABELS },
		{ "{\"team\":\"re\"}", ACCESS_LABELS },
		{ "{\"red\":\"team\"}", ACCESS_LABELS },
		{ "damaged", ACCESS_LABELS },
	};
	const struct access_when when = noon();
	struct access_what none = box;
	struct access_who w = key;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(w.labels, sizeof(w.labels), "%s", rows[i].labels);
		assert_int_equal(use(&w), rows[i].wanted);
	}
	snprintf(w.labels, sizeof(w.labels), "{\"team\":\"red\"}");
	none.labels = NULL;
	assert_int_equal(access_decide(&w, RIGHT_READ, &none, &when), ACCESS_LABELS);
}

static void check_TEMPLATE(void)
{
	const struct access_when when = noon();
	struct access_what other = box;
	struct access_who w = key;

	snprintf(w.templates, sizeof(w.templates), "python,base");
	assert_int_equal(use(&w), ACCESS_ALLOWED);
	other.template = "bas";
	assert_int_equal(access_decide(&w, RIGHT_READ, &other, &when), ACCESS_TEMPLATE);
	other.template = NULL;
	assert_int_equal(access_decide(&w, RIGHT_READ, &other, &when), ACCESS_TEMPLATE);
}

static void check_ENGINE(void)
{
	const struct access_when when = noon();
	struct access_what other = box;
	struct access_who w = key;

	snprintf(w.engines, sizeof(w.engines), "vm,gvisor");
	assert_int_equal(use(&w), ACCESS_ENGINE);
	other.engine = "gvisor";
	assert_int_equal(access_decide(&w, RIGHT_READ, &other, &when), ACCESS_ALLOWED);
	other.engine = NULL;
	assert_int_equal(access_decide(&w, RIGHT_READ, &other, &when), ACCESS_ENGINE);
}

/* Every row has its test. */
static void test_rows(void **state)
{
	static void (*const rows[])(void) = {
#define CHECK(id, name, status, why) check_##id,
#include "daemon/access.def"
	};

	(void)state;
	assert_int_equal(use(&key), ACCESS_ALLOWED);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		rows[i]();
}

static bool reads(const char *body, bool of_key)
{
	struct access_request q;

	return access_read_request((const uint8_t *)body, strlen(body), of_key, &q);
}

static void test_request(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"role\":\"runner\"}",
		"{\"role\":\"root\",\"ttl\":9}",
		"{\"role\":\"runner\",\"ttl\":0}",
		"{\"role\":\"runner\",\"ttl\":-5}",
		"{\"role\":\"runner\",\"ttl\":1e9}",
		"{\"role\":\"runner\",\"ttl\":99999999999}",
		"{\"role\":\"runner\",\"ttl\":\"9\"}",
		"{\"role\":\"runner\",\"ttl\":9,\"ttl\":9}",
		"{\"role\":\"runner\",\"ttl\":9,\"label\":{\"a\":\"b\"}}",
		"{\"role\":\"runner\",\"ttl\":9,\"labels\":{}}",
		"{\"role\":\"runner\",\"ttl\":9,\"templates\":[]}",
		"{\"role\":\"runner\",\"ttl\":9,\"templates\":[\"a,b\"]}",
		"{\"role\":\"runner\",\"ttl\":9,\"templates\":[\"\"]}",
		"{\"role\":\"runner\",\"ttl\":9,\"engines\":[\"docker\"]}",
		"{\"role\":\"runner\",\"ttl\":9,\"sources\":[\"10.0.0.0/33\"]}",
		"{\"role\":\"runner\",\"ttl\":9,\"sources\":[\"example.com\"]}",
		"{\"role\":\"runner\",\"ttl\":9,\"hours\":\"8-18\"}",
		"{\"role\":\"runner\",\"ttl\":9,\"hours\":\"\"}",
		"{\"role\":\"runner\",\"ttl\":9,\"sandboxID\":\"\"}",
		"{\"role\":\"runner\",\"ttl\":9,\"sandboxID\":null}",
	};
	static const char good[] =
		"{\"role\":\"runner\",\"ttl\":900,\"name\":\"ci\",\"sandboxID\":\"" BOX "\","
		"\"labels\":{\"team\":\"red\"},\"templates\":[\"base\",\"x\"],"
		"\"engines\":[\"vm\"],\"sources\":[\"::1\",\"10.0.0.0/8\"],"
		"\"hours\":\"08:00-18:00\"}";
	struct access_request q;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(reads(bad[i], false));
	assert_true(access_read_request((const uint8_t *)good, sizeof(good) - 1, false, &q));
	assert_int_equal(q.who.role, ROLE_RUNNER);
	assert_int_equal(q.ttl_s, 900);
	assert_string_equal(q.who.sandbox, BOX);
	assert_string_equal(q.who.labels, "{\"team\":\"red\"}");
	assert_string_equal(q.who.templates, "base,x");
	assert_string_equal(q.who.sources, "::1,10.0.0.0/8");
	assert_string_equal(q.who.hours, "08:00-18:00");
	assert_true(reads("{\"hours\":\"08:00-18:00\"}", true));
	assert_false(reads("{\"hours\":\"08:00-18:00\",\"owner\":\"*\"}", true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
