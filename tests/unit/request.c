/* Requests as bytes: what is written is read back the same, and what was not written is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "api/request.h"

static struct request_option options[] = {
	{ "process.env", "LANG=C", "ward_spec_add", true },
	{ "resources.pids_limit", "", "ward_spec_set", false },
};
static char *words[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "" }, NULL };

static void write_sample(struct buf *out)
{
	struct request r = { .flags = REQUEST_WIDEN, .texts = { "/p.yaml", NULL, "/w/sub" }, .options = options,
			     .option_count = 2, .argv = words, .arg_count = 3 };
	struct ward_err e = { 0 };

	assert_int_equal(request_write(&r, out, &e), 0);
}

static void round_trip(void **state)
{
	struct ward_err e = { 0 };
	struct request r;
	auto_buf bytes = { 0 };

	(void)state;
	write_sample(&bytes);
	assert_int_equal(request_read(bytes.data, bytes.len, &r, &e), 0);
	assert_int_equal(r.flags, REQUEST_WIDEN);
	assert_string_equal(r.texts[REQUEST_POLICY], "/p.yaml");
	assert_null(r.texts[REQUEST_WORKSPACE]);
	assert_string_equal(r.texts[REQUEST_DIRECTORY], "/w/sub");
	assert_int_equal(r.option_count, 2);
	assert_string_equal(r.options[0].value, "LANG=C");
	assert_string_equal(r.options[0].origin, "ward_spec_add");
	assert_true(r.options[0].append);
	assert_false(r.options[1].append);
	assert_string_equal(r.options[1].value, "");
	assert_int_equal(r.arg_count, 3);
	assert_string_equal(r.argv[1], "-c");
	assert_string_equal(r.argv[2], "");
	assert_null(r.argv[3]);
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
	buf_add(&bytes, "", 1);	/* one more text than was promised */
	struct ward_err e = { 0 };

	assert_int_equal(request_read(bytes.data, bytes.len, &r, &e), -EINVAL);
}

static void changed_head(void **state)
{
	(void)state;
	for (size_t i = 0; i < 20; i++) {
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
	char *argv[] = { word, NULL };
	struct request r = { .options = options, .argv = argv, .arg_count = 1 };
	struct ward_err e = { 0 };
	auto_buf bytes = { 0 };

	(void)state;
	memset(word, 'x', REQUEST_BYTES_MAX - 1);
	word[REQUEST_BYTES_MAX - 1] = '\0';
	assert_int_equal(request_write(&r, &bytes, &e), -E2BIG);
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
