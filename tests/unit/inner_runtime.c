/* Packets for a sandbox that has a runtime of its own inside. */
#include "plan/inner.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/guest.h"

static struct strv words(const char *first, const char *second)
{
	struct strv list = { 0 };

	strv_add(&list, first);
	if (second)
		strv_add(&list, second);
	return list;
}

static void make(struct buf *b, uint32_t op, int32_t count, const char *behind, size_t n)
{
	struct guest_message m = { .op = op, .a = count, .b = 1, .tag = 7 };

	b->len = 0;
	buf_add(b, &m, sizeof(m));
	buf_add(b, behind, n);
}

static void test_words_stand_in_front(void **state)
{
	static const char behind[] = "/dir\0ls\0-l\0A=1",
			  wanted[] = "/dir\0runner\0exec\0ls\0-l\0A=1";
	auto_strv exec = words("runner", "exec"), none = { 0 };
	auto_buf in = { 0 }, out = { 0 };
	struct guest_message m;

	(void)state;
	make(&in, GUEST_EXEC, 2, behind, sizeof(behind));
	assert_int_equal(inner_packet(&exec, &none, in.data, in.len, &out), 1);
	memcpy(&m, out.data, sizeof(m));
	assert_int_equal(m.op, GUEST_EXEC);
	assert_int_equal(m.a, 4);
	assert_int_equal(m.b, 1);
	assert_int_equal(m.tag, 7);
	assert_int_equal(out.len, sizeof(m) + sizeof(wanted));
	assert_memory_equal(out.data + sizeof(m), wanted, sizeof(wanted));
}

static void test_copies(void **state)
{
	static const char behind[] = "\0get\0/x";
	auto_strv exec = words("runner", "exec"), copy = words("copier", NULL), none = { 0 };
	auto_buf in = { 0 }, out = { 0 };
	struct guest_message m;

	(void)state;
	make(&in, GUEST_COPY, 2, behind, sizeof(behind));
	assert_int_equal(inner_packet(&exec, &none, in.data, in.len, &out), 0);
	assert_int_equal(inner_packet(&none, &none, in.data, in.len, &out), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(inner_packet(&exec, &copy, in.data, in.len, &out), 1);
	memcpy(&m, out.data, sizeof(m));
	assert_int_equal(m.op, GUEST_EXEC);
	assert_int_equal(m.a, 3);
	assert_string_equal(out.data + sizeof(m) + 1, "copier");
}

static void test_what_is_no_packet(void **state)
{
	auto_strv exec = words("runner", NULL), none = { 0 };
	auto_free char *long_word = calloc(1, GUEST_PACKET_MAX);
	auto_buf in = { 0 }, out = { 0 };

	(void)state;
	assert_non_null(long_word);
	assert_int_equal(inner_packet(&exec, &none, "abc", 3, &out), -EINVAL);
	make(&in, GUEST_EXEC, 1, "no end", 6);
	assert_int_equal(inner_packet(&exec, &none, in.data, in.len, &out), -EINVAL);
	memset(long_word + 1, 'x', GUEST_PACKET_MAX - 2);
	make(&in, GUEST_EXEC, 1, long_word, GUEST_PACKET_MAX - sizeof(struct guest_message));
	assert_int_equal(inner_packet(&exec, &none, in.data, in.len, &out), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_stand_in_front),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_what_is_no_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
