/* gVisor's wall: which version runsc says it is, and what crosses the wall. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "engine/gvisor/gvisor.h"
#include "gvisor/gvisor.h"

static void test_version(void **state)
{
	static const struct {
		const char *text;
		uint32_t date;
	} rows[] = {
		{ "runsc version 0.0~20221219.0\nspec: 1.0.2-dev\n", 20221219 },
		{ "runsc version release-20240729.0\n", 20240729 },
		{ "runsc version VERSION_MISSING\nspec: 1.1.0\n", 0 },
		{ "19991231 120240729", 20240729 },
		{ "2024072", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(gvisor_version_date(rows[i].text, strlen(rows[i].text)),
				 rows[i].date);
	assert_false(gvisor_has_systrap(&(struct gvisor_runtime){ .date = 20221219 }));
	assert_true(gvisor_has_systrap(&(struct gvisor_runtime){ .date = 20240729 }));
}

static void test_known(void **state)
{
	static const struct {
		const char *text;
		bool known;
	} rows[] = {
		{ "runsc version 0.0~20240729.0\nspec: 1.0.2-dev\n", true },
		{ "runsc version 0.0~20240729.0", false },
		{ "runsc version 0.0~20240729.01\n", false },
		{ "runsc version 0.0~20240729.0-mine\n", false },
		{ "my runsc version 0.0~20240729.0\n", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(gvisor_is_known(rows[i].text, strlen(rows[i].text)),
				 rows[i].known);
}

static void test_report(void **state)
{
	static const struct {
		const char *text;
		enum command_report report;
		int value;
	} rows[] = {
		{ "", REPORT_NOTHING, -1 },    { "e1", REPORT_NOTHING, -1 },
		{ "b", REPORT_BEGUN, -1 },     { "be0", REPORT_EXIT, 0 },
		{ "be255", REPORT_EXIT, 255 }, { "be256", REPORT_BEGUN, -1 },
		{ "bs9", REPORT_SIGNAL, 9 },   { "bs0", REPORT_BEGUN, -1 },
		{ "bs65", REPORT_BEGUN, -1 },  { "be", REPORT_BEGUN, -1 },
		{ "be1x", REPORT_BEGUN, -1 },  { "be0001", REPORT_BEGUN, -1 },
		{ "bb", REPORT_BEGUN, -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int value = -1;

		assert_int_equal(command_report_parse(rows[i].text, strlen(rows[i].text), &value),
				 rows[i].report);
		assert_int_equal(value, rows[i].value);
	}
}

static void test_start(void **state)
{
	char sh[] = "sh", odd[] = "\xff\n", variable[] = "A=b c";
	char *argv[] = { sh, odd, NULL }, *envp[] = { variable, NULL };
	const struct start given = { .uid = 1000,
				     .gid = 100,
				     .argc = 2,
				     .envc = 1,
				     .cwd = "/w",
				     .argv = argv,
				     .envp = envp };
	auto_buf bytes = { 0 };
	struct start got;

	(void)state;
	start_write(&given, &bytes);
	assert_int_equal(start_parse(bytes.data, bytes.len, &got), 0);
	assert_true(got.uid == 1000 && got.gid == 100 && got.argc == 2 && got.envc == 1);
	assert_string_equal(got.cwd, "/w");
	assert_string_equal(got.argv[1], odd);
	assert_null(got.argv[2]);
	assert_string_equal(got.envp[0], variable);
	assert_null(got.envp[1]);
	start_free(&got);
	for (size_t n = 0; n < bytes.len; n++)
		assert_int_equal(start_parse(bytes.data, n, &got), -EINVAL);
	buf_add(&bytes, "", 1);
	assert_int_equal(start_parse(bytes.data, bytes.len, &got), -EINVAL);
	memset(bytes.data + 8, 0xff, 4);
	assert_int_equal(start_parse(bytes.data, bytes.len, &got), -EINVAL);
}

static void test_answer(void **state)
{
	static const struct {
		const char *text;
		int r;
		bool success;
		int64_t result;
		const char *error;
	} rows[] = {
		{ "{\"success\":true,\"err\":\"\",\"result\":768}", 0, true, 768, "" },
		{ "{\"success\":true,\"err\":\"\",\"result\":{}}", 0, true, -1, "" },
		{ "{\"success\":true,\"err\":\"\",\"result\":null}", 0, true, -1, "" },
		{ "{\"success\":false,\"err\":\"no \\\"room\\\" }\",\"result\":null}", 0, false, -1,
		  "no  room  }" },
		{ "{\"success\":true,\"err\":\"\",\"result\":12345678901}", -EINVAL, false, 0, "" },
		{ "{\"success\":true,\"err\":\"\",\"result\":-1}", 0, true, -1, "" },
		{ "{\"success\":maybe,\"err\":\"\",\"result\":1}", -EINVAL, false, 0, "" },
		{ "{\"err\":\"\"}", -EINVAL, false, 0, "" },
		{ "[]", -EINVAL, false, 0, "" },
		{ "", -EAGAIN, false, 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct answer a = { 0 };

		assert_int_equal(answer_parse(rows[i].text, strlen(rows[i].text), &a), rows[i].r);
		if (rows[i].r < 0)
			continue;
		assert_int_equal(a.success, rows[i].success);
		assert_int_equal(a.result, rows[i].result);
		assert_string_equal(a.error, rows[i].error);
		for (size_t n = 0; n < strlen(rows[i].text); n++)
			assert_int_equal(answer_parse(rows[i].text, n, &a), -EAGAIN);
	}
}

/* Threads are counted in lists of that name, and not in what a command calls itself. */
static void test_threads(void **state)
{
	static const struct {
		const char *text;
		uint64_t count;
	} rows[] = {
		{ "", 0 },
		{ "{\"success\":true,\"err\":\"\",\"result\":null}", 0 },
		{ "{\"success\":true,\"err\":\"\",\"result\":[{\"uid\":0,\"threads\":[1],\"cmd\":"
		  "\"a\"}]}",
		  1 },
		{ "{\"result\":[{\"threads\":[],\"pid\":4},{\"threads\":[1,2,3],\"pid\":5,\"cmd\":"
		  "\"x\"},{\"threads\":[9]}]}",
		  4 },
		{ "{\"result\":[{\"threads\":[1,2],\"cmd\":\"\\\"threads\\\":[1,2,3,4\"},{"
		  "\"threads\":[7]}]}",
		  3 },
		{ "{\"result\":[{\"cmd\":\"a\\\\\",\"threads\":[1,2]}]}", 2 },
		{ "\"threads\":[", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(answer_count_threads(rows[i].text, strlen(rows[i].text)),
				 rows[i].count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version), cmocka_unit_test(test_known),
		cmocka_unit_test(test_report),  cmocka_unit_test(test_start),
		cmocka_unit_test(test_answer),  cmocka_unit_test(test_threads)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
