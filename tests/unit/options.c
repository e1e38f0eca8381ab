/* Unit test of cli/options: every form of an option, what is refused, and what the help says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cli/cli.h"

#define READ(verb, ...) read_words(verb, (const char *[]){ __VA_ARGS__, NULL })

static struct options o;
static struct ward_err e;
static char *words[64];

static int read_words(enum verb verb, const char **given)
{
	size_t count = 0;

	while (given[count++])
		;
	options_clear(&o);
	e = (struct ward_err){ 0 };
	memcpy(words, given, sizeof(*given) * count);
	return options_read(verb, words, &o, &e);
}

static void check_field(size_t i, const char *field, const char *value, bool append)
{
	assert_true(i < o.field_count);
	assert_string_equal(o.fields[i].field, field);
	assert_string_equal(o.fields[i].value, value);
	assert_int_equal(o.fields[i].append, append);
}

static void test_forms(unused_arg void **state)
{
	assert_int_equal(READ(VERB_RUN, "-p", "a.yaml", "-wdir", "--chdir=sub", "--timeout", "5",
			      "--memory=1Gi", "--env", "A=b", "--set", "process.syscalls=build",
			      "--widen", "-v", "--json", "--report", "r.json", "--", "cmd", "-x"),
			 0);
	assert_string_equal(o.policy_file, "a.yaml");
	assert_string_equal(o.workspace, "dir");
	assert_string_equal(o.cwd, "sub");
	assert_string_equal(o.report_file, "r.json");
	assert_true(o.widen && o.verbose && o.json);
	check_field(0, "resources.timeout_seconds", "5", false);
	check_field(1, "resources.memory_limit", "1Gi", false);
	check_field(2, "process.env", "A=b", true);
	check_field(3, "process.syscalls", "build", false);
	assert_string_equal(o.fields[0].option, "--timeout");
	assert_int_equal(o.word_count, 2);
	assert_string_equal(o.words[0], "cmd");
	assert_string_equal(o.words[1], "-x");
	assert_null(o.words[2]);
}

static void test_command_begins(unused_arg void **state)
{
	assert_int_equal(READ(VERB_RUN, "--pids", "9", "ls", "--json", "--", "-l"), 0);
	assert_false(o.json);
	assert_int_equal(o.word_count, 4);
	assert_string_equal(o.words[1], "--json");
	assert_int_equal(READ(VERB_RUN, "--", "--json"), 0);
	assert_string_equal(o.words[0], "--json");
	assert_int_equal(READ(VERB_RUN, "-", "x"), 0); /* "-" is a word */
	assert_int_equal(o.word_count, 2);
}

static void test_plain_words(unused_arg void **state)
{
	assert_int_equal(READ(VERB_CHECK, "a.yaml", "--json"), 0);
	assert_true(o.json);
	assert_int_equal(o.word_count, 1);
	assert_string_equal(o.words[0], "a.yaml");
	assert_int_equal(READ(VERB_QUARANTINE, "restore", "--json", "run1", "--", "-odd"), 0);
	assert_int_equal(o.word_count, 3);
	assert_string_equal(o.words[2], "-odd");
	assert_null(o.words[3]);
}

static void test_mounts(unused_arg void **state)
{
	assert_int_equal(READ(VERB_RUN, "--ro", "/opt/a/../b", "--rw", "/data:/mnt/x", "--ro",
			      "/q\"uote", "c"),
			 0);
	check_field(0, "filesystem.host_mounts", "{\"path\":\"/opt/b\",\"mode\":\"read_only\"}",
		    true);
	check_field(1, "filesystem.host_mounts",
		    "{\"path\":\"/data\",\"mode\":\"read_write\",\"at\":\"/mnt/x\"}", true);
	check_field(2, "filesystem.host_mounts", "{\"path\":\"/q\\\"uote\",\"mode\":\"read_only\"}",
		    true);
	/* a colon alone is part of the name */
	assert_int_equal(READ(VERB_RUN, "--ro", "sub:dir", "c"), 0);
	assert_non_null(strstr(o.fields[0].value, "/sub:dir\""));
	assert_true(READ(VERB_RUN, "--ro", "", "c") < 0);
	assert_true(READ(VERB_RUN, "--ro", ":/x", "c") < 0);
	assert_true(READ(VERB_RUN, "--ro", "/a\xff", "c") < 0);
}

static void check_refusal(int r, const char *why, const char *remedy)
{
	assert_true(r < 0);
	if (!strstr(e.why, why) || !strstr(e.remedy, remedy))
		fail_msg("got \"%s\" (%s), expected \"%s\" (%s)", e.why, e.remedy, why, remedy);
}

static void test_refusals(unused_arg void **state)
{
	check_refusal(READ(VERB_RUN, "--tiemout", "5", "c"), "unknown option --tiemout",
		      "--timeout");
	check_refusal(READ(VERB_RUN, "--memroy=5", "c"), "unknown option --memroy=5", "--memory");
	check_refusal(READ(VERB_RUN, "--qqqqqqqq", "c"), "unknown option", "ward run --help");
	check_refusal(READ(VERB_RUN, "-Z", "c"), "unknown option -Z", "");
	check_refusal(READ(VERB_RUN, "-vZ", "c"), "unknown option -vZ", "");
	check_refusal(READ(VERB_RUN, "--timeout"), "--timeout needs a value: SECONDS", "");
	check_refusal(READ(VERB_RUN, "--widen=yes", "c"), "--widen takes no value", "");
	check_refusal(READ(VERB_RUN, "-p", "", "c"), "the value is empty", "");
	check_refusal(READ(VERB_RUN, "--set", "x", "c"), "expected FIELD=VALUE", "");
	check_refusal(READ(VERB_RUN, "--set", "=x", "c"), "expected FIELD=VALUE", "");
	check_refusal(READ(VERB_RUN, "--json"), "no command", "ward run --help");
	check_refusal(READ(VERB_RUN, "--"), "no command", "ward run --help");
	check_refusal(READ(VERB_RUN, "--", "", "x"), "the name of the command is empty", "");
	check_refusal(READ(VERB_TRUST, "a", "b"), "unexpected argument: b", "");
	check_refusal(READ(VERB_DOCTOR, "--timeout", "5"), "unknown option --timeout", "");
	check_refusal(READ(VERB_TRUST, "--", "a", "b"), "unexpected argument: b", "");
}

static void test_letters(unused_arg void **state)
{
	assert_int_equal(READ(VERB_EXEC, "-it", "box", "c"), 0);
	assert_true(o.input && o.tty);
	assert_int_equal(READ(VERB_EXEC, "-iC/tmp", "box", "c"), 0);
	assert_true(o.input);
	assert_string_equal(o.cwd, "/tmp");
	assert_int_equal(READ(VERB_EXEC, "-iC", "/tmp", "box", "c"), 0);
	assert_string_equal(o.cwd, "/tmp");
	check_refusal(READ(VERB_EXEC, "-ix", "box", "c"), "unknown option -ix", "");
}

static void test_many(unused_arg void **state)
{
	enum { COUNT = 1000 };
	static char env[] = "--env", value[] = "A=1", command[] = "c";
	static char *many[2 * COUNT + 2];

	for (size_t i = 0; i < COUNT; i++) {
		many[2 * i] = env;
		many[2 * i + 1] = value;
	}
	many[2 * COUNT] = command;
	options_clear(&o);
	assert_int_equal(options_read(VERB_RUN, many, &o, &e), 0);
	assert_int_equal(o.field_count, COUNT);
	assert_int_equal(o.word_count, 1);
}

static void test_help(unused_arg void **state)
{
	for (int v = 0; v <= VERBS; v++) {
		auto_buf out = { 0 };
		size_t column = 0;

		help_text((enum verb)v, &out);
		assert_non_null(strstr(out.data, "usage: ward"));
		assert_non_null(strstr(out.data, "example:"));
		for (size_t i = 0; i < out.len; i++) {
			column = out.data[i] == '\n' ? 0 : column + 1;
			assert_true(column < 80);
		}
		assert_int_equal(column, 0);
	}
	assert_int_equal(verb_find("run"), VERB_RUN);
	assert_int_equal(verb_find("nope"), -1);
	assert_string_equal(verb_name(VERB_QUARANTINE), "quarantine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),       cmocka_unit_test(test_command_begins),
		cmocka_unit_test(test_plain_words), cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_refusals),    cmocka_unit_test(test_letters),
		cmocka_unit_test(test_many),        cmocka_unit_test(test_help),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	options_clear(&o);
	return failed;
}
