/* Values of canaries in streams: every form, in pieces of every size, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/canary_find.h"

#define TOKENS "abcdefghijklmnop2345q3zrw5tnmc7xk2vbpday"

static struct canary_finder *finder;

static int begin(void **state)
{
	struct ward_err e = { 0 };

	(void)state;
	return canary_finder_new(TOKENS, 2, &finder, &e);
}

static int end(void **state)
{
	(void)state;
	canary_finder_free(finder);
	return 0;
}

static int find(const char *text, size_t n, size_t piece)
{
	struct canary_stream s = { 0 };
	int found = -1;

	for (size_t at = 0; at < n && found < 0; at += piece)
		found = canary_find(finder, &s, text + at, n - at < piece ? n - at : piece);
	return found;
}

static void test_forms(void **state)
{
	static const struct {
		const char *text;
		int found;
	} rows[] = {
		{ "x q3zrw5tnmc7xk2vbpday y", 1 },
		{ "abcdefghijklmnop", 0 }, /* as much as proves it */
		{ "abcdefghijklmno", -1 },
		{ "AKIAABCDEFGHIJKLMNOP", 0 },
		{ "ydapbv2kx7cmnt5wrz3q", 1 },                     /* backwards */
		{ "71337a727735746e6d6337786b32766270646179", 1 }, /* hexadecimal */
		{ "71337A727735746E6D6337786B32766270646179", 1 }, /* in capitals */
		{ "cTN6cnc1dG5tYzd4azJ2YnBkYXk=", 1 },             /* base64 */
		{ "eHEzenJ3NXRubWM3eGsydmJwZGF5eHg=", 1 },         /* behind a byte */
		{ "eHhxM3pydzV0bm1jN3hrMnZicGRheQ==", 1 },         /* behind two */
		{ "cTN6cnc1dG5t\\r\\nYzd4azJ2YnBk\r\n YXk=", 1 },  /* in lines */
		{ "OEZXU4TXGV2G43LDG54GWMTWMJYGIYLZ", 1 },         /* base32 */
		{ "%71%33zrw5tnmc7xk2vb%70%64ay", 1 },             /* a URL */
		{ "\\u00713\\u007arw5tnmc7xk2vbpday", 1 },         /* JSON */
		{ "%%71%%33zrw5tnmc7xk2vbpday", 1 },
		{ "q3zr.w5tn-mc7x_k2vb/pday", 1 },
		{ "q 3 z r w 5 t n m c 7 x k 2 v b p d a y", 1 },
		{ "q3zrw5tnmc7xx2vbpday", -1 },
		{ "\\u0071\\u0033\\xzrw5", -1 },
		{ "\\u1271 3zrw5tnmc7xk2v", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t piece = 1; piece < 50; piece++)
			if (find(rows[i].text, strlen(rows[i].text), piece) != rows[i].found)
				fail_msg("%s in pieces of %zu", rows[i].text, piece);
}

/* A stream that is long enough for the counters to come round. */
static void test_long(void **state)
{
	static char noise[65536];
	struct canary_stream s = { .plain = { .count = (1u << 31) - 40000 },
				   .unescaped = { .count = (1u << 31) - 40000 } };
	uint32_t random = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++) {
		random = random * 1103515245 + 12345;
		noise[i] = "abcdefghijklmnopqrstuvwxyz234567%\\"[random / 65536 % 34];
	}
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(canary_find(finder, &s, noise, sizeof(noise)), -1);
	assert_int_equal(canary_find(finder, &s, "q3zrw5tnmc7xk2vbpday", 20), 1);
}

static void test_too_many(void **state)
{
	struct canary_finder *f = NULL;
	struct ward_err e = { 0 };
	char *tokens = calloc(CANARY_VALUES_MAX + 1, CANARY_TOKEN);

	(void)state;
	assert_non_null(tokens);
	for (unsigned i = 0; i <= CANARY_VALUES_MAX; i++)
		snprintf(tokens + i * CANARY_TOKEN, CANARY_TOKEN, "%010uabcdefghi", i * 7919);
	assert_true(canary_finder_new(tokens, CANARY_VALUES_MAX + 1, &f, &e) < 0);
	assert_int_equal(canary_finder_new(tokens, CANARY_VALUES_MAX, &f, &e), 0);
	canary_finder_free(f);
	free(tokens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
