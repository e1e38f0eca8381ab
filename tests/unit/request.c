/* Requests as bytes: what is written is read back the same, and what was not written is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "api/request.h"

static void write_sample(struct buf *out)
{
	auto_strv words = { 0 };
	struct ward_err e = { 0 };

	strv_add(&words, "--set");
	strv_add(&words, "process.syscalls=build");
	strv_add(&words, "--");
	strv_add(&words, "sh");
	strv_add(&words, "");
	assert_int_equal(request_write(REQUEST_DETACHED, &words, out, &e), 0);
}

static void round_trip(void **state)
{
	struct ward_err e = { 0 };
	struct request r;
	auto_buf bytes = { 0 };

	(void)state;
	write_sample(&bytes);
	assert_int_equal(request_read(bytes.data, bytes.len, &r, &e), 0);
	assert_int_equal(r.flags, REQUEST_DETACHED);
	assert_int_equal(r.count, 5);
	assert_string_equal(r.words[1], "process.syscalls=build");
	assert_string_equal(r.words[3], "sh");
	assert_string_equal(r.words[4], "");
	assert_null(r.words[5]);
	request_clear(&r);
}

static void cut_short(void **state)
{
	struct request r;
	auto_buf bytes = { 0 };

	(void)state;
	write_sample(&bytes);
	for (size_t n = 0; n < bytes.len; n++) {
		struct ward_err e = { 0 };

		assert_int_equal(request_read(bytes.data, n, &r, &e), -EINVAL);
		assert_int_equal(e.code, EINVAL);
	}
	buf_add(&bytes, "", 1); /* one more text than was promised */
	struct ward_err e = { 0 };

	assert_int_equal(request_read(bytes.data, bytes.len, &r, &e), -EINVAL);
}

static void changed_head(void **state)
{
	(void)state;
	for (size_t i = 0; i < 12; i++) {
		struct ward_err e = { 0 };
		struct request r;
		auto_buf bytes = { 0 };

		write_sample(&bytes);
		bytes.data[i] = (char)(bytes.data[i] ^ 0x40);
		assert_int_equal(request_read(bytes.data, bytes.len, &r, &e), -EINVAL);
	}
}

static void too_much(void **state)
{
	auto_free char *word = malloc(REQUEST_BYTES_MAX);
	struct ward_err e = { 0 };
	auto_strv words = { 0 };
	auto_buf bytes = { 0 };

	(void)state;
	memset(word, 'x', REQUEST_BYTES_MAX - 1);
	word[REQUEST_BYTES_MAX - 1] = '\0';
	strv_add(&words, word);
	assert_int_equal(request_write(0, &words, &bytes, &e), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(changed_head),
		cmocka_unit_test(too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
