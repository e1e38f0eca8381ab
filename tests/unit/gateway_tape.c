/* Recordings: what is written is read, nothing that may be secret is in it, what was changed is not
 * believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "rules/tape.h"

static struct http_text text(const char *s)
{
	return (struct http_text){ s, strlen(s) };
}

struct maker {
	struct buf file;
	uint8_t before[TAPE_HASH];
};

static void add(struct maker *m, enum tape_kind kind, uint32_t exchange, const void *bytes,
		size_t n)
{
	struct tape_frame f = { .bytes = (uint32_t)n, .kind = (uint8_t)kind, .exchange = exchange };

	if (!m->file.len) {
		uint8_t start[TAPE_START];

		tape_start(start);
		buf_add(&m->file, start, sizeof(start));
	}
	tape_hash(m->before, &f, n ? bytes : "", f.hash);
	memcpy(m->before, f.hash, sizeof(f.hash));
	buf_add(&m->file, &f, sizeof(f));
	buf_add(&m->file, bytes, n);
}

/* Two exchanges whose frames lie between each other's. */
static void make(struct maker *m)
{
	static struct http_request r;
	static struct http_fields answer;
	struct tape_body none = { 0 };
	auto_buf ask = { 0 }, head = { 0 }, end = { 0 };

	r = (struct http_request){ .method = text("GET"),
				   .query = text("key=UNMISTAKABLEONE&page") };
	r.fields.items[r.fields.count++] =
		(struct http_field){ text("Authorization"), text("Bearer UNMISTAKABLETWO") };
	r.fields.items[r.fields.count++] =
		(struct http_field){ text("X-Api-Key"), text("UNMISTAKABLETHREE") };
	r.fields.items[r.fields.count++] =
		(struct http_field){ text("Accept"), text("text/plain") };
	answer.count = 0;
	answer.items[answer.count++] =
		(struct http_field){ text("Set-Cookie"), text("id=UNMISTAKABLEFOUR; Path=/") };
	tape_write_ask(&ask, &r, true, 1, "web.test", 443, text("/a"));
	tape_write_head(&head, 200, &answer);
	tape_write_end(&end, TAPE_WHOLE, &answer);
	for (uint32_t i = 1; i <= 2; i++)
		add(m, TAPE_ASK, i, ask.data, ask.len);
	add(m, TAPE_BODY, 1, &none, sizeof(none));
	add(m, TAPE_HEAD, 1, head.data, head.len);
	add(m, TAPE_HEAD, 2, head.data, head.len);
	add(m, TAPE_DATA, 2, "two", 3);
	add(m, TAPE_DATA, 1, "one", 3);
	add(m, TAPE_BODY, 2, &none, sizeof(none));
	add(m, TAPE_END, 2, end.data, end.len);
	add(m, TAPE_END, 1, end.data, end.len);
	add(m, TAPE_CLOSE, 2, NULL, 0);
}

static void test_read(void **state)
{
	struct maker m = { 0 };
	struct ward_err e = { 0 };
	struct tape_body none = { 0 }, other = { .bytes = 1 };
	uint8_t key[SHA256_BYTES];
	uint32_t others;
	struct tape t;
	uint64_t at;

	(void)state;
	make(&m);
	assert_null(memmem(m.file.data, m.file.len, "UNMISTAKABLE", 12));
	assert_non_null(memmem(m.file.data, m.file.len, "/a?key=&page", 12));
	assert_non_null(memmem(m.file.data, m.file.len, "text/plain", 10));
	assert_non_null(memmem(m.file.data, m.file.len, "id=redacted", 11));
	assert_int_equal(tape_open((const uint8_t *)m.file.data, m.file.len, &t, &e), 0);
	assert_true(t.closed && t.count == 2 && t.len == m.file.len);
	assert_true(!t.entries[0].early && t.entries[1].early);
	tape_key(text("GET"), "web.test", 443, text("/a"), text("key=UNMISTAKABLEONE&page"), key);
	assert_int_equal(tape_find(&t, key, &none, &others), 0);
	assert_int_equal(others, 2);
	assert_int_equal(tape_find(&t, key, NULL, &others), 1);
	assert_int_equal(tape_find(&t, key, &other, &others), -1);
	t.entries[0].used = true;
	assert_int_equal(tape_find(&t, key, &none, &others), 1);
	tape_key(text("GET"), "web.test", 443, text("/a"), text("key=another&page"), key);
	assert_int_equal(tape_find(&t, key, &none, &others), -1);
	assert_int_equal(others, 0);
	at = tape_after(&t, t.entries[1].head_at, 2);
	assert_memory_equal(t.bytes + at + sizeof(struct tape_frame), "two", 3);
	tape_close(&t);
	buf_free(&m.file);
}

/* Cut or changed anywhere: what was before it, and nothing behind it. */
static void test_breaks(void **state)
{
	struct maker m = { 0 };
	struct ward_err e = { 0 };
	struct tape t;

	(void)state;
	make(&m);
	for (size_t n = 0; n < m.file.len; n++) {
		if (tape_open((const uint8_t *)m.file.data, n, &t, &e) == 0) {
			assert_true(!t.closed && t.len <= n);
			tape_close(&t);
		}
		m.file.data[n] ^= 1;
		if (tape_open((const uint8_t *)m.file.data, m.file.len, &t, &e) == 0) {
			assert_true(!t.closed && t.len <= n);
			tape_close(&t);
		}
		m.file.data[n] ^= 1;
	}
	buf_free(&m.file);
}

/* Whole by its hashes, but not what a recording is. */
static void test_made_up(void **state)
{
	static struct http_request r;
	auto_buf ask = { 0 };
	struct ward_err e = { 0 };
	struct tape t;

	(void)state;
	r = (struct http_request){ .method = text("GET") };
	tape_write_ask(&ask, &r, true, 1, "web.test", 443, text("/a"));
	for (unsigned i = 0; i < 5; i++) {
		struct maker m = { 0 };

		if (i)
			add(&m, TAPE_ASK, 1, ask.data, ask.len);
		if (i == 0)
			add(&m, TAPE_DATA, 1, "x", 1); /* of nothing */
		else if (i == 1)
			add(&m, TAPE_DATA, 1, "x", 1); /* before its head */
		else if (i == 2)
			add(&m, TAPE_ASK, 3, ask.data, ask.len); /* not the next */
		else if (i == 3)
			/* a line in a name */
			add(&m, TAPE_HEAD, 1, "\xc8\0\1\0\0\0\2\0\0\0a\n\0\0\0\0", 16);
		else
			add(&m, TAPE_HEAD, 1, "\x64\0\0\0\0\0", 6); /* status 100 */
		assert_int_equal(tape_open((const uint8_t *)m.file.data, m.file.len, &t, &e) == 0,
				 i > 0);
		if (i) {
			assert_int_equal(t.count, 1);
			assert_int_equal(t.entries[0].head_at, 0);
			tape_close(&t);
		}
		buf_free(&m.file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_read),
					    cmocka_unit_test(test_breaks),
					    cmocka_unit_test(test_made_up) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
