/* Units, defaults, copies and texts of the policy. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "policy/policy.h"
#include "policy/units.h"

struct unit_case {
	int (*parse)(const char *text, uint64_t *ret);
	const char *text;
	int result;
	uint64_t value;
};

static const struct unit_case unit_cases[] = {
	{ units_parse_uint, "0", 0, 0 },
	{ units_parse_uint, "1024", 0, 1024 },
	{ units_parse_uint, "18446744073709551614", 0, UINT64_MAX - 1 },
	{ units_parse_uint, "18446744073709551615", -ERANGE, 0 }, /* that is "none" */
	{ units_parse_uint, "18446744073709551616", -ERANGE, 0 },
	{ units_parse_uint, "1000000000000000000000000000000", -ERANGE, 0 },
	{ units_parse_uint, "", -EINVAL, 0 },
	{ units_parse_uint, "-1", -EINVAL, 0 },
	{ units_parse_uint, "+1", -EINVAL, 0 },
	{ units_parse_uint, " 1", -EINVAL, 0 },
	{ units_parse_uint, "1 ", -EINVAL, 0 },
	{ units_parse_uint, "1.5", -EINVAL, 0 },
	{ units_parse_uint, "1e3", -EINVAL, 0 },
	{ units_parse_uint, "0x10", -EINVAL, 0 },
	{ units_parse_uint, "010", -EINVAL, 0 },
	{ units_parse_uint, "nan", -EINVAL, 0 },
	{ units_parse_uint, ".5", -EINVAL, 0 },
	{ units_parse_size, "512", 0, 512 },
	{ units_parse_size, "64k", 0, 64000 },
	{ units_parse_size, "4Gi", 0, 4ULL << 30 },
	{ units_parse_size, "4GiB", 0, 4ULL << 30 },
	{ units_parse_size, "4gi", 0, 4ULL << 30 },
	{ units_parse_size, "1.5G", 0, 1500000000 },
	{ units_parse_size, "10MB", 0, 10000000 },
	{ units_parse_size, "0.5Ki", 0, 512 },
	{ units_parse_size, "15Pi", 0, 15ULL << 50 },
	{ units_parse_size, "20000Pi", -ERANGE, 0 },
	{ units_parse_size, "99999999999999999999", -ERANGE, 0 },
	{ units_parse_size, "1.5", -EINVAL, 0 },
	{ units_parse_size, "1.G", -EINVAL, 0 },
	{ units_parse_size, "4 Gi", -EINVAL, 0 },
	{ units_parse_size, "4Gx", -EINVAL, 0 },
	{ units_parse_size, "Gi", -EINVAL, 0 },
	{ units_parse_size, "-4Gi", -EINVAL, 0 },
	{ units_parse_cpus, "2", 0, 2000 },
	{ units_parse_cpus, "0.5", 0, 500 },
	{ units_parse_cpus, "500m", 0, 500 },
	{ units_parse_cpus, "1.2345", 0, 1234 },
	{ units_parse_cpus, "0.5m", -EINVAL, 0 },
	{ units_parse_cpus, "two", -EINVAL, 0 },
	{ units_parse_cpus, "18446744073709552", -ERANGE, 0 },
	{ units_parse_seconds, "300", 0, 300000 },
	{ units_parse_seconds, "0.5", 0, 500 },
	{ units_parse_seconds, "5m", 0, 300000 },
	{ units_parse_seconds, "1h30m", 0, 5400000 },
	{ units_parse_seconds, "1h05m", 0, 3900000 },
	{ units_parse_seconds, "1.5h", 0, 5400000 },
	{ units_parse_seconds, "250ms", 0, 250 },
	{ units_parse_seconds, "1d1s", 0, 86401000 },
	{ units_parse_seconds, "1s250ms", 0, 1250 },
	{ units_parse_seconds, "30m1h", -EINVAL, 0 },
	{ units_parse_seconds, "1h1h", -EINVAL, 0 },
	{ units_parse_seconds, "1h30", -EINVAL, 0 },
	{ units_parse_seconds, "1w", -EINVAL, 0 },
	{ units_parse_seconds, "s", -EINVAL, 0 },
	{ units_parse_seconds, "", -EINVAL, 0 },
	{ units_parse_seconds, "99999999999999999999d", -ERANGE, 0 },
	{ units_parse_seconds, "213503982334d23h", -ERANGE, 0 },
};

static void test_units(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(unit_cases); i++) {
		const struct unit_case *c = &unit_cases[i];
		uint64_t value = 7;
		int r = c->parse(c->text, &value);

		if (r != c->result || (r == 0 && value != c->value))
			fail_msg("\"%s\": %d, %llu", c->text, r, (unsigned long long)value);
	}
}

static void test_formats(void **state)
{
	char out[32];

	(void)state;
	units_format_size(0, out, sizeof(out));
	assert_string_equal(out, "0 B");
	units_format_size(4ULL << 30, out, sizeof(out));
	assert_string_equal(out, "4 GiB");
	units_format_size(3ULL << 19, out, sizeof(out));
	assert_string_equal(out, "1.5 MiB");
	units_format_size(UINT64_MAX, out, sizeof(out));
	assert_string_equal(out, "15.9 EiB");
	units_format_ms(250, out, sizeof(out));
	assert_string_equal(out, "250 ms");
	units_format_ms(12345, out, sizeof(out));
	assert_string_equal(out, "12.3 s");
	units_format_ms(5400000, out, sizeof(out));
	assert_string_equal(out, "1 h 30 min");
}

/* Each default, written out, is what the table says. */
static void test_defaults(void **state)
{
	struct ward_err e;
	struct policy p;

	(void)state;
	assert_int_equal(policy_defaults(&p, &e), 0);
	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		auto_free char *text = policy_text(&p, i);

		assert_non_null(text);
		assert_string_equal(text, policy_row(i)->fallback);
		assert_int_equal(p.origin[i].source, POLICY_DEFAULT);
	}
	assert_int_equal(p.res_pids, 1024);
	assert_true(p.res_memory == (POLICY_PERCENT | 50));
	assert_true(p.res_timeout == POLICY_NONE);
	assert_int_equal(p.fs_mode, FS_MODE_READ_WRITE);
	assert_int_equal(p.req_limits, REQUIRE_LIMITS_WATCH);
	assert_int_equal(p.proc_syscalls, SYSCALLS_DEFAULT);
	assert_int_equal(p.req_isolation, REQUIRE_NAMESPACES);
	assert_null(p.tools);
	policy_clear(&p);
	policy_clear(&p);
}

static void test_copy(void **state)
{
	struct policy p, copy;
	struct ward_err e;

	(void)state;
	assert_int_equal(policy_defaults(&p, &e), 0);
	strv_add(&p.fs_hide, "*.key");
	p.origin[POLICY_F_fs_hide] =
		(struct policy_origin){ .source = POLICY_FILE, .line = 3, .column = 4 };
	assert_int_equal(policy_copy(&copy, &p, &e), 0);
	policy_clear(&p);
	assert_string_equal(copy.fs_hide.items[0], "*.key");
	assert_int_equal(copy.origin[POLICY_F_fs_hide].line, 3);
	assert_string_equal(copy.image, "host");
	policy_clear(&copy);
}

static void test_enum_names(void **state)
{
	(void)state;
	assert_string_equal(policy_enum_name(POLICY_F_fs_mode, FS_MODE_REVIEW), "review");
	assert_string_equal(policy_enum_name(POLICY_F_fs_mode, 3), "");
	assert_string_equal(policy_enum_name(POLICY_F_fs_mode, 99), "");
	assert_string_equal(policy_enum_name(POLICY_F_image, 0), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),      cmocka_unit_test(test_formats),
		cmocka_unit_test(test_defaults),   cmocka_unit_test(test_copy),
		cmocka_unit_test(test_enum_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
