/* The scanner: checks that pass and fail, pieces of any length, placeholders, allow lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "scan/allow.h"
#include "scan/check.h"
#include "scan/detect.h"
#include "scan/pattern.h"

static bool passes(enum check c, const char *hit, size_t prefix)
{
	struct part all = { (const uint8_t *)hit, strlen(hit) };
	struct part secret = { all.bytes + prefix, all.n - prefix };

	return check_secret(c, all, &secret, true);
}

static void test_checksums(void **state)
{
	(void)state;
	assert_true(passes(CHECK_CRC62, "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", 4));
	assert_false(passes(CHECK_CRC62, "ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18", 4));
	assert_true(passes(CHECK_CARD, "4012 8888 8888 1881", 0));
	assert_false(passes(CHECK_CARD, "4012 8888 8888 1882", 0));
	assert_false(passes(CHECK_CARD, "9012 8888 8888 1886", 0));
	assert_true(passes(CHECK_IBAN, "DE89370400440532013000", 0));
	assert_true(passes(CHECK_IBAN, "GB29 NWBK 6016 1331 9268 19", 0));
	assert_false(passes(CHECK_IBAN, "DE88370400440532013000", 0));
	assert_false(passes(CHECK_IBAN, "ZZ89370400440532013000", 0));
	assert_true(passes(CHECK_SSN, "536-22-8726", 0));
	assert_false(passes(CHECK_SSN, "666-22-8726", 0));
	assert_false(passes(CHECK_SSN, "536-00-8726", 0));
	/* test vectors of NIP-19 and BIP 32 */
	assert_true(passes(CHECK_BECH32,
			   "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5", 5));
	assert_false(passes(CHECK_BECH32,
			    "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe6", 5));
	assert_true(passes(CHECK_BASE58,
			   "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJ"
			   "xWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
			   0));
	assert_false(passes(CHECK_BASE58,
			    "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPG"
			    "JxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHj",
			    0));
	assert_true(passes(CHECK_BASIC, "c3ZjOlpyOGtRMXh3", 0));  /* svc:Zr8kQ1xw */
	assert_false(passes(CHECK_BASIC, "Zm9vYmFyYmF6cXV4", 0)); /* no colon */
	assert_true(passes(CHECK_EMAIL, "ann@corp.org", 0));
	assert_false(passes(CHECK_EMAIL, "ann@example.org", 0));
	assert_true(passes(CHECK_PHONE, "+49 30 9018200", 0));
	assert_false(passes(CHECK_PHONE, "(415) 555-0123", 0));
}

static void test_placeholders(void **state)
{
	static const char *const none[] = { "AKIAIOSFODNN7EXAMPLE", "xxxxxxxxxxxx", "changeme123",
					    "${DB_PASSWORD}",       "1234567890",   "abcdefghij" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_true(check_is_placeholder(
			(struct part){ (const uint8_t *)none[i], strlen(none[i]) }));
	assert_false(check_is_placeholder((struct part){ (const uint8_t *)"Zr8kQ1xwB7", 10 }));
}

static void test_patterns(void **state)
{
	static const char *const wrong[] = { "", "[a", "a{2", "a{3,2}", "#z", "(a", "a)", "%a" };
	static struct pattern p;
	struct pattern_match m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(pattern_compile(wrong[i], false, &p));
	assert_true(pattern_compile("k[#w]{0,9}%(#h{4})", true, &p));
	assert_true(pattern_match(&p, (const uint8_t *)"Key: \"00ff\"", 11, 0, false, &m));
	assert_int_equal(m.secret_start, 6);
	assert_int_equal(m.secret_end, 10);
	assert_true(m.quoted);
	assert_false(pattern_match(&p, (const uint8_t *)"Key: \"00ff0\"", 12, 0, false, &m));
}

struct seen {
	size_t count, rule;
	uint64_t offset, line;
};

static void found(void *ctx, const struct detect_hit *hit)
{
	struct seen *s = ctx;

	s->count++;
	s->rule = hit->rule;
	s->offset = hit->offset;
	s->line = hit->line;
}

/* One token, wherever it stands in the stream and whatever the pieces are. */
static void test_window_ends(void **state)
{
	static const char token[] = " 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 ";
	static char text[900000];
	struct detect_rules *rules;
	struct ward_err e = { 0 };

	(void)state;
	assert_int_equal(detect_rules_new(DETECT_SECRET, &rules, &e), 0);
	for (size_t at = 255000; at < 275000; at += 37) {
		struct seen s = { 0 };
		struct detector *d;
		size_t done = 0;

		memset(text, '\n', sizeof(text));
		memcpy(text + at, token, sizeof(token) - 1);
		assert_int_equal(detector_new(rules, found, &s, &d, &e), 0);
		while (done < sizeof(text)) {
			size_t room, n = 70001;
			uint8_t *to = detector_room(d, &room);

			n = n < room ? n : room;
			n = n < sizeof(text) - done ? n : sizeof(text) - done;
			memcpy(to, text + done, n);
			assert_int_equal(detector_fill(d, n, &e), 0);
			done += n;
		}
		assert_int_equal(detector_fill(d, 0, &e), 0);
		detector_free(d);
		assert_int_equal(s.count, 1);
		assert_int_equal(s.rule, detect_find_rule("github-token", 12));
		assert_int_equal(s.offset, at + 5);
		assert_int_equal(s.line, at + 1);
	}
	detect_rules_free(rules);
}

static void test_allow(void **state)
{
	static const char text[] = "# made up\nfingerprint 0123456789abcdef of a test\n"
				   "path tests/** all made up\nrule jwt *.md documents\n";
	static const char *const wrong[] = { "path a\n", "rule nothing * x\n", "fingerprint 12 x\n",
					     "all\n", "fingerprints 0123456789abcdef x\n" };
	struct allow a = { 0 };
	struct ward_err e = { 0 };
	int jwt = detect_find_rule("jwt", 3);

	(void)state;
	assert_int_equal(allow_read(&a, "list", text, sizeof(text) - 1, &e), 0);
	assert_true(allow_covers(&a, "0123456789abcdef", 0, "x"));
	assert_false(allow_covers(&a, "1123456789abcdef", 0, "x"));
	assert_true(allow_covers(&a, "", 0, "./tests/a/b"));
	assert_true(allow_covers(&a, "", jwt, "docs/a.md"));
	assert_false(allow_covers(&a, "", jwt + 1, "docs/a.md"));
	allow_free(&a);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		assert_true(allow_read(&a, "list", wrong[i], strlen(wrong[i]), &e) < 0);
		allow_free(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checksums), cmocka_unit_test(test_placeholders),
		cmocka_unit_test(test_patterns),  cmocka_unit_test(test_window_ends),
		cmocka_unit_test(test_allow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
