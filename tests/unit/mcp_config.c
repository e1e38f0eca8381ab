/* Configurations of MCP clients: what is added, what is kept, what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mcp/config.h"

#define ENTRY "\"ward\": {\"command\": \"/w\", \"args\": [\"mcp\", \"a\\\"b\"]}"

typedef int edit(const struct buf *text, const struct config_entry *entry, struct buf *out,
		 const char **ret_why);

static int run(edit *e, const char *group, const char *text, struct buf *out)
{
	auto_strv words = { 0 };
	auto_buf in = { 0 };
	struct config_entry entry = { group, "ward", &words, false };
	const char *why = NULL;
	int r;

	strv_add(&words, "/w");
	strv_add(&words, "mcp");
	strv_add(&words, "a\"b");
	buf_puts(&in, text);
	r = e(&in, &entry, out, &why);
	if (r == -EINVAL)
		assert_non_null(why);
	return r;
}

static void becomes(edit *e, const char *group, const char *text, const char *wanted)
{
	auto_buf out = { 0 };

	assert_int_equal(run(e, group, text, &out), 0);
	assert_string_equal(buf_text(&out), wanted);
}

static void fails(edit *e, const char *group, const char *text, int code)
{
	auto_buf out = { 0 };

	assert_int_equal(run(e, group, text, &out), code);
}

static void test_json_add(unused_arg void **state)
{
	static const char g[] = "servers";

	becomes(config_json_add, g, "", "{\n  \"servers\": {\n    " ENTRY "\n  }\n}\n");
	becomes(config_json_add, g, "{\"a\":1}", "{\"a\":1, \"servers\": {\n    " ENTRY "\n  }}");
	becomes(config_json_add, g, "{\n\t\"a\": [1 , 2],\n\t\"servers\": {}\n}\n",
		"{\n\t\"a\": [1 , 2],\n\t\"servers\": {\n    " ENTRY "\n  }\n}\n");
	becomes(config_json_add, g, "{ \"servers\": {\n\t\t\"x\": {\"y\": 1}\n\t}, \"b\": \"é\"}",
		"{ \"servers\": {\n\t\t\"x\": {\"y\": 1},\n\t\t" ENTRY "\n\t}, \"b\": \"é\"}");
	fails(config_json_add, g, "{\"servers\": {\"ward\": 1}}", -EEXIST);
	fails(config_json_add, g, "{\"servers\": {\"w\\u0061rd\": 1}}", -EEXIST);
	fails(config_json_add, g, "{\"servers\": []}", -EINVAL);
	fails(config_json_add, g, "[{\"servers\": {}}]", -EINVAL);
	fails(config_json_add, g, "{\"servers\": {}, \"servers\": {}}", -EINVAL);
	fails(config_json_add, g, "{\"servers\": {} // no\n}", -EINVAL);
	fails(config_json_add, g, "{\"a\": 1,}", -EINVAL);
	fails(config_json_add, g, "nonsense", -EINVAL);
}

static void test_json_remove(unused_arg void **state)
{
	static const char g[] = "servers";

	becomes(config_json_remove, g, "{\"servers\": {\"ward\": {}, \"b\" : 1 }}",
		"{\"servers\": {\"b\" : 1 }}");
	becomes(config_json_remove, g, "{\"servers\": {\"a\": 1 ,\n \"ward\": {} }}",
		"{\"servers\": {\"a\": 1 }}");
	becomes(config_json_remove, g, "{\"servers\": {\"a\": 1, \"ward\": {}, \"b\": 2}}",
		"{\"servers\": {\"a\": 1, \"b\": 2}}");
	becomes(config_json_remove, g, "{\"servers\": { \"ward\": {} }}", "{\"servers\": {}}");
	fails(config_json_remove, g, "{\"servers\": {}}", -ENOENT);
	fails(config_json_remove, g, "{\"ward\": 1}", -ENOENT);
	fails(config_json_remove, g, "{", -EINVAL);
}

#define TABLE "[g.ward]\ncommand = \"/w\"\nargs = [\"mcp\", \"a\\\"b\"]\n"

static void test_toml_add(unused_arg void **state)
{
	static const char *const good[] = {
		"a = 1\n",
		"[g]\n",
		"[g.other]\nx = [1,\n # c\n 2, ]\n",
		"[[t]]\n[t.u]\r\n",
		"a = \"\"\"x\n[g.ward]\n\"\"\"\"\nb = '''\\'''\n",
		"a = {b = 1, c.d = \"}\"}\n",
		"a.\"b c\" = 1979-05-27 07:32:00.5Z # x\n",
		"t = 07:32:00\nf = -1.5e+3\n",
		"x = \"[g.ward]\"\n",
		"# [g.ward]\n",
	};

	becomes(config_toml_add, "g", "", TABLE);
	becomes(config_toml_add, "g", "a = 1", "a = 1\n\n" TABLE);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		auto_buf wanted = { 0 };

		buf_printf(&wanted, "%s\n" TABLE, good[i]);
		becomes(config_toml_add, "g", good[i], buf_text(&wanted));
		becomes(config_toml_remove, "g", buf_text(&wanted), good[i]);
	}
	fails(config_toml_add, "g", "[g.ward]\n", -EEXIST);
	fails(config_toml_add, "g", "[ g . \"ward\" ]\n", -EEXIST);
	fails(config_toml_add, "g", "[g.ward.env]\n", -EEXIST);
	fails(config_toml_add, "g", "g.ward.command = 1\n", -EEXIST);
	fails(config_toml_add, "g", "[g]\nward = {}\n", -EEXIST);
}

static void test_toml_refused(unused_arg void **state)
{
	static const char *const wrong[] = {
		"g = {}\n",      "[[g]]\n",     "a\n",
		"a = \n",        "= 1\n",       "[a\n",
		"[a]]\n",        "a = \"x\n",   "a = [1, 2\n",
		"a = {b = 1\n",  "a = 1 2\n",   "[\"\\u0067\".x]\n",
		"a = \"\"\"x\n", "[a] b = 1\n", "a = {\nb = 1}\n",
		"\xff = 1\n",    "nonsense\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		fails(config_toml_add, "g", wrong[i], -EINVAL);
	becomes(config_toml_remove, "g",
		"a = 1\n\n" TABLE "\n[g.ward.env]\nX = \"1\"\n[h]\nb = 2\n", "a = 1\n[h]\nb = 2\n");
	fails(config_toml_remove, "g", "[g.ward]\n[h]\n[g.ward.env]\n", -EINVAL);
	fails(config_toml_remove, "g", "[g]\n", -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_add),
		cmocka_unit_test(test_json_remove),
		cmocka_unit_test(test_toml_add),
		cmocka_unit_test(test_toml_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
