/* Answers of programs, groups of hosts, and the digest that signs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "approve/answer.h"
#include "approve/group.h"
#include "base/buf.h"
#include "base/hmac.h"

static int answer_text(const char *text, struct answer_said *ret)
{
	struct ward_err e;

	return answer_read((const uint8_t *)text, strlen(text), ret, &e);
}

static void test_answers(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"{}",
		"[]",
		"{\"id\": \"a:1\"}",
		"{\"answer\": \"once\"}",
		"{\"id\": \"a:1\", \"answer\": \"yes\"}",
		"{\"id\": \"a:1\", \"answer\": 1}",
		"{\"id\": 1, \"answer\": \"once\"}",
		"{\"id\": \"a:1\", \"answer\": \"once\", \"answer\": \"run\"}",
		"{\"id\": \"a:1\", \"answer\": \"once\", \"\\u0061nswer\": \"run\"}",
		"{\"id\": \"a:1\", \"answer\": \"once\", \"more\": null}",
		"{\"id\": \"a:1\", \"answer\": \"once\"} x",
		"{\"id\": \"a:1\", \"answer\": \"once\", \"seconds\": 1}",
		"{\"id\": \"a:1\", \"answer\": \"time\"}",
		"{\"id\": \"a:1\", \"answer\": \"time\", \"seconds\": 0}",
		"{\"id\": \"a:1\", \"answer\": \"time\", \"seconds\": -1}",
		"{\"id\": \"a:1\", \"answer\": \"time\", \"seconds\": 1.5}",
		"{\"id\": \"a:1\", \"answer\": \"time\", \"seconds\": 1e3}",
		"{\"id\": \"a:1\", \"answer\": \"time\", \"seconds\": \"5\"}",
		"{\"id\": \"a:1\", \"answer\": \"time\", \"seconds\": 604801}",
		"{\"id\": \"a:1\", \"answer\": \"time\", \"seconds\": 99999999999999999999}",
		"{\"id\": \"a:1\", \"answer\": \"once\", \"by\": \"a\\u001bb\"}",
		"{\"id\": \"a:1\", \"answer\": \"once\", \"by\": \"a\\u202eb\"}",
		"{\"id\": \"a:1\", \"answer\": \"once\", \"by\": "
		"\"0123456789012345678901234567890123456789\"}",
	};
	struct answer_said said;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (answer_text(bad[i], &said) != -EINVAL)
			fail_msg("%s", bad[i]);
	for (enum question_answer a = QUESTION_ONCE; a < QUESTION_ANSWERS; a++) {
		char text[128];

		snprintf(text, sizeof(text),
			 " {\"answer\": \"%s\", \"id\": \"box:17\", \"by\": \"me\"%s} ",
			 answer_word(a), a == QUESTION_TIME ? ", \"seconds\": 604800" : "");
		assert_int_equal(answer_text(text, &said), 0);
		assert_int_equal(said.answer, a);
		assert_int_equal(said.seconds, a == QUESTION_TIME ? 604800 : 0);
		assert_string_equal(said.id, "box:17");
		assert_string_equal(said.by, "me");
	}
	assert_null(answer_word(0));
	assert_null(answer_word(QUESTION_ANSWERS));
	assert_int_equal(answer_of("maybe"), 0);
}

static void test_groups(void **state)
{
	static const char list[] =
		"// a comment\norg\ncom\nco.uk\nuk\ngithub.io\nio\n*.ck\n!www.ck\n"
		"s3.amazonaws.com\n";
	static const struct {
		const char *host, *group;
	} rows[] = {
		{ "registry.npmjs.org", "*.npmjs.org" },
		{ "a.b.npmjs.org", "*.npmjs.org" },
		{ "npmjs.org", NULL }, /* it is the whole */
		{ "org", NULL },       /* a public suffix */
		{ "www.shop.co.uk", "*.shop.co.uk" },
		{ "shop.co.uk", NULL }, /* *.co.uk is everybody's */
		{ "me.github.io", NULL },
		{ "www.me.github.io", "*.me.github.io" },
		{ "github.io", NULL },
		{ "bucket.s3.amazonaws.com", NULL },
		{ "x.bucket.s3.amazonaws.com", "*.bucket.s3.amazonaws.com" },
		{ "a.shop.town.ck", "*.shop.town.ck" },
		{ "shop.town.ck", NULL },
		{ "a.www.ck", "*.www.ck" },
		{ "10.1.2.3", NULL },
		{ "2001:db8::1", NULL },
		{ "localhost", NULL },
	};
	char group[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool has = group_of(list, sizeof(list) - 1, rows[i].host, group, sizeof(group));

		if (has != (rows[i].group != NULL) || (has && strcmp(group, rows[i].group) != 0))
			fail_msg("%s: %s", rows[i].host, has ? group : "none");
		assert_false(group_of("", 0, rows[i].host, group, sizeof(group)));
	}
	assert_false(group_of(list, sizeof(list) - 1, "registry.npmjs.org", group, 5));
}

/* RFC 4231 */
static void test_hmac(void **state)
{
	static const char data[] = "what do ya want for nothing?";
	const struct hmac_part whole = { data, sizeof(data) - 1 },
			       parts[] = { { data, 5 }, { data + 5, 0 }, { data + 5, 23 } };
	char key[131], hex[SHA256_HEX], other[SHA256_HEX];

	(void)state;
	hmac_hex("Jefe", 4, &whole, 1, hex);
	assert_string_equal(hex,
			    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	hmac_hex("Jefe", 4, parts, 3, other);
	assert_true(hmac_equal(hex, other));
	memset(key, 0xaa, sizeof(key));
	hmac_hex(
		key, sizeof(key),
		&(struct hmac_part){ "Test Using Larger Than Block-Size Key - Hash Key First", 54 },
		1, other);
	assert_string_equal(other,
			    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	assert_false(hmac_equal(hex, other));
	memcpy(other, hex, sizeof(other));
	other[63] = other[63] == '0' ? '1' : '0';
	assert_false(hmac_equal(hex, other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_hmac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
