/*
 * The scanner of ward-keys with a real database: texts in lines and in any pieces, names of fields,
 * escapes; and that nothing passes as clean where there is no scanner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hs/hs.h>

#include "base/buf.h"
#include "creds/forms.h"
#include "keys/scan.h"
#include "protocol/secrets.h"

#define SECRET "kY7-pQ2vW9zR4mN8tB3hJ6cX1fL5dS0gA7uE2iO9qK"
#define SHOWN "kY7-WARDabcdefghijklmnopqrstuvwxyz01234567"

struct scanner {
	struct scan_text texts[FORMS * 2];
	uint8_t bytes[FORMS * 2][FORM_ROOM(64)];
	size_t count;
	void *place;
	struct scan *scan;
};

static void add(struct scanner *s, const char *value, unsigned shown)
{
	for (unsigned f = 0; f < FORMS; f++) {
		size_t n = form_write((enum form)f, (const uint8_t *)value, strlen(value),
				      s->bytes[s->count]);

		if (!n)
			continue;
		s->texts[s->count] = (struct scan_text){ .id = PATTERN_ID(0, 0, shown, f),
							 .len = (uint32_t)n,
							 .bytes = s->bytes[s->count] };
		s->count++;
	}
}

static int setup(void **state)
{
	static struct scanner s;
	const char *texts[FORMS * 2];
	size_t bytes[FORMS * 2], n, room;
	unsigned ids[FORMS * 2], flags[FORMS * 2] = { 0 };
	hs_compile_error_t *error = NULL;
	hs_database_t *db = NULL;
	struct ward_err e = { 0 };
	char *serial = NULL;
	int status;

	add(&s, SECRET, 0);
	add(&s, SHOWN, 1);
	for (unsigned i = 0; i < s.count; i++) {
		texts[i] = (const char *)s.texts[i].bytes;
		bytes[i] = s.texts[i].len;
		ids[i] = i;
	}
	if (hs_compile_lit_multi(texts, flags, ids, bytes, (unsigned)s.count, HS_MODE_BLOCK, NULL,
				 &db, &error) != HS_SUCCESS ||
	    hs_serialize_database(db, &serial, &n) != HS_SUCCESS ||
	    scan_room((const uint8_t *)serial, n, &room, &e) < 0)
		return -1;
	s.place = aligned_alloc(64, (room + 63) / 64 * 64);
	hs_free_database(db);
	*state = &s;
	status = s.place && scan_new((const uint8_t *)serial, n, s.place, s.texts, s.count, &s.scan,
				     &e) == 0
			 ? 0
			 : -1;
	free(serial);
	return status;
}

/* Passes text through in pieces of that size, as an answer or a request; what comes out is in ret.
 */
static uint32_t pass(const struct scan *s, const char *text, size_t n, size_t piece, bool answer,
		     struct buf *ret)
{
	struct scan_for f = {
		.secrets = true, .shown = !answer, .replace = true, .prompt = !answer
	};
	auto_buf held = { 0 };

	ret->len = 0;
	for (size_t at = 0; at < n; at += piece) {
		size_t some = n - at < piece ? n - at : piece, clean;

		buf_add(&held, text + at, some);
		clean = scan_run(s, (uint8_t *)held.data, held.len, at + some == n, &f);
		buf_add(ret, held.data, clean);
		memmove(held.data, held.data + clean, held.len - clean);
		held.len -= clean;
	}
	assert_int_equal(held.len, 0);
	assert_int_equal(ret->len, n);
	return f.count;
}

/* What a decoder makes of lines: the characters of base64 and hexadecimal that are left. */
static bool has_letters(const struct buf *text, const char *letters)
{
	auto_buf plain = { 0 };
	static const char *const breaks[] = { "\\u000d\\u000a", "\\r\\n", "\\n",  "%0D%0A", "%0A",
					      "\ndata: ",       "\r\n\t", "\r\n", "\n  ",   "\n",
					      "&#10;" };

	for (size_t at = 0; at < text->len;) {
		size_t skip = 0;

		for (size_t i = 0; i < sizeof(breaks) / sizeof(*breaks) && !skip; i++)
			if (strncmp(text->data + at, breaks[i], strlen(breaks[i])) == 0)
				skip = strlen(breaks[i]);
		if (!skip)
			buf_add(&plain, text->data + at++, 1);
		at += skip;
	}
	return strstr(buf_text(&plain), letters) != NULL;
}

/* Base64 and hexadecimal in lines of every width, whatever the break and the pieces. */
static void test_lines(void **state)
{
	static const char *const breaks[] = {
		"\n",   "\r\n",   "\\n",      "\\r\\n", "%0A", "%0D%0A", "\\u000d\\u000a",
		"\n  ", "\r\n\t", "\ndata: ", "&#10;"
	};
	struct scanner *s = *state;

	for (unsigned before = 0; before < 3; before++)
		for (unsigned hex = 0; hex < 2; hex++) {
			char whole[64], encoded[256] = { 0 }, inner[256] = { 0 };

			snprintf(whole, sizeof(whole), "%.*s%s", (int)before, "ab", SECRET);
			if (hex)
				form_hex((const uint8_t *)whole, strlen(whole), encoded);
			else
				form_base64((const uint8_t *)whole, strlen(whole),
					    (uint8_t *)encoded);
			form_write(hex ? FORM_HEX : (enum form)(FORM_BASE64_0 + before),
				   (const uint8_t *)SECRET, strlen(SECRET), (uint8_t *)inner);
			assert_non_null(strstr(encoded, inner));
			for (unsigned b = 0; b < sizeof(breaks) / sizeof(*breaks); b++)
				for (size_t width = 1; width < 80; width += width < 20 ? 1 : 19) {
					auto_buf text = { 0 }, out = { 0 };

					buf_puts(&text, "{\"key\": \"");
					for (size_t i = 0; encoded[i]; i++)
						buf_printf(&text, "%s%c",
							   i && i % width == 0 ? breaks[b] : "",
							   encoded[i]);
					buf_puts(&text, "\", \"more\": 1}");
					for (size_t piece = 1; piece < text.len + 40;
					     piece = piece * 3 + 1)
						for (unsigned answer = 0; answer < 2; answer++) {
							if (!pass(s->scan, text.data, text.len,
								  piece, answer, &out))
								fail_msg("not found: pieces of "
									 "%zu, answer %u: %s",
									 piece, answer, text.data);
							assert_false(has_letters(&out, inner));
							assert_memory_equal(
								out.data + out.len - 13,
								text.data + text.len - 13, 13);
						}
				}
		}
}

/* What is no secret passes as it is, and does not wait where a line or a document has ended. */
static void test_others(void **state)
{
	static const char *const texts[] = { "{\"a\": 1}\n", "data: hello\n\n",
					     "event: x\r\ndata: {}\r\n\r\n", "<p>text</p>\n",
					     "plain text.\n" };
	struct scanner *s = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct scan_for f = { .secrets = true, .replace = true };
		auto_buf text = { 0 };

		buf_puts(&text, texts[i]);
		assert_int_equal(scan_run(s->scan, (uint8_t *)text.data, text.len, false, &f),
				 text.len);
		assert_string_equal(text.data, texts[i]);
		assert_int_equal(f.count, 0);
	}
}

/* A large body of short lines, with the secret in one place, and much more than one reading has
 * room for. */
static void test_large(void **state)
{
	struct scanner *s = *state;
	auto_buf text = { 0 }, out = { 0 };
	char inner[128] = { 0 };

	form_write(FORM_BASE64_0, (const uint8_t *)SECRET, strlen(SECRET), (uint8_t *)inner);
	for (unsigned lines = 0; lines < 20000; lines++)
		buf_printf(&text, "%05u\n", lines);
	for (size_t i = 0; inner[i]; i++)
		buf_printf(&text, "%c%s", inner[i], i % 4 == 3 ? "\n" : "");
	for (unsigned lines = 0; lines < 20000; lines++)
		buf_printf(&text, "\n%05u", lines);
	for (size_t piece = 1000; piece < 1000000; piece *= 10) {
		assert_true(pass(s->scan, text.data, text.len, piece, true, &out) > 0);
		assert_false(has_letters(&out, inner));
		assert_memory_equal(out.data, text.data, 119000);
	}
}

static uint32_t head(const struct scan *s, const char *text, bool replace, struct buf *ret)
{
	struct scan_for f = { .secrets = true, .shown = true, .replace = replace };

	ret->len = 0;
	buf_puts(ret, text);
	scan_head(s, (uint8_t *)ret->data, ret->len, &f);
	return f.count;
}

static void test_heads(void **state)
{
	static const struct {
		const char *text;
		bool found;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nX: y\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\nx-" SECRET ": y\r\n\r\n", true },
		{ "GET / HTTP/1.1\r\nky7-pq2vw9zr4mn8tb3hj6cx1fl5ds0ga7ue2io9qk: y\r\n\r\n", true },
		{ "GET / HTTP/1.1\r\nX-KY7-WARDABCDEFGHIJKLMNOPQRSTUVWXYZ01234567-Z: y\r\n\r\n",
		  true },
		{ "GET / HTTP/1.1\r\nX: ky7-pq2vw9zr4mn8tb3hj6cx1fl5ds0ga7ue2io9qk\r\n\r\n",
		  false }, /* a value's case counts */
		{ "GET /a?k=%6bY7-pQ2vW9z%52%34mN8tB3hJ6cX1fL5dS0gA7uE2iO9qK HTTP/1.1\r\n\r\n",
		  true },
		{ "GET /kY7%2DpQ2vW9zR4mN8tB3hJ6cX1fL5dS0gA7uE2iO9q%4b/x HTTP/1.1\r\n\r\n", true },
		{ "HTTP/1.1 200 " SECRET "\r\n\r\n", true },
	};
	struct scanner *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		auto_buf out = { 0 }, again = { 0 };

		assert_int_equal(head(s->scan, cases[i].text, false, &out) > 0, cases[i].found);
		assert_string_equal(out.data, cases[i].text);
		assert_int_equal(head(s->scan, cases[i].text, true, &out) > 0, cases[i].found);
		assert_int_equal(strcmp(out.data, cases[i].text) != 0, cases[i].found);
		assert_int_equal(head(s->scan, buf_text(&out), true, &again) > 0, false);
	}
}

/* Without a scanner nothing passes as clean. */
static void test_none(void **state)
{
	struct scan_for f = { .secrets = true, .replace = true };
	uint8_t bytes[] = "anything";

	(void)state;
	assert_int_equal(scan_run(NULL, bytes, 8, false, &f), 8);
	assert_int_equal(f.count, 1);
	assert_string_equal(bytes, "xxxxxxxx");
	f.count = 0;
	scan_head(NULL, bytes, 8, &f);
	assert_int_equal(f.count, 1);
	assert_int_equal(scan_begun(NULL, bytes, 8, &f), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines), cmocka_unit_test(test_others),
		cmocka_unit_test(test_large), cmocka_unit_test(test_heads),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
