/* tools.yaml: what is read and refused, and what hostile arguments become: whole argv elements
 * within the scope, or nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/path.h"
#include "tools/bind.h"
#include "tools/value.h"

#define SCOPE "    scope: {}\n"
#define NATURE                                                                                     \
	"    nature: {private_data: false, untrusted_content: false, communicates_outside: "       \
	"false,\n"                                                                                 \
	"      destructive: false}\n"

static const char document[] =
	"version: 1\n"
	"tools:\n"
	"  search:\n"
	"    description: finds words in notes\n"
	"    run: [grep, -rn, \"--max-count={most}\", -e, \"{word}\", --, \"{path}\"]\n"
	"    parameters:\n"
	"      word: {type: string, max_length: 100}\n"
	"      path: {type: path, default: notes}\n"
	"      most: {type: integer, min: 0, max: 9, default: 5}\n"
	"    scope: {read: [notes], write: [out]}\n" NATURE "  bare:\n"
	"    description: its value stands where an option could\n"
	"    run: [echo, \"{text}\", \"x{more}\", \"{rest...}\"]\n"
	"    parameters:\n"
	"      text: {}\n"
	"      more: {required: false}\n"
	"      rest: {list: true, required: false}\n" SCOPE NATURE "  save:\n"
	"    description: writes\n"
	"    run: [tee, \"{path}\"]\n"
	"    parameters: {path: {type: path, access: write}}\n"
	"    scope: {read: [notes], write: [out]}\n" NATURE "  get:\n"
	"    description: fetches\n"
	"    run: [curl, \"{url}\", \"{host}\"]\n"
	"    parameters: {url: {type: url}, host: {type: host, default: a.example.com}}\n"
	"    scope: {hosts: [\"a.example.com:443\", \"*.b.example.org\"]}\n" NATURE;

static int read_text(struct tools *t, const char *text, struct policy_errors *errors)
{
	return tools_read(t, "tools.yaml", (const uint8_t *)text, strlen(text), errors);
}

static void load(struct tools *t)
{
	struct policy_errors errors = { 0 };
	int r = read_text(t, document, &errors);

	for (size_t i = 0; i < errors.lines.len; i++)
		print_error("%s\n", errors.lines.items[i]);
	assert_int_equal(r, 0);
	strv_free(&errors.lines);
}

static int bind_one(const struct tools *t, const char *tool, const char *name, const char *value,
		    struct tools_call *ret, struct ward_err *e)
{
	const struct tools_argument argument = { name, value };

	*e = (struct ward_err){ 0 };
	return tools_bind(t, tools_find(t, tool), "/w", "/home/u", &argument, 1, ret, e);
}

static void test_argv(unused_arg void **state)
{
	static const struct tools_argument some[] = { { "word", "$(id) `x` ; rm -rf / *" },
						      { "path", "notes/a b" } };
	static const char *const expected[] = {
		"grep", "-rn", "--max-count=5", "-e", "$(id) `x` ; rm -rf / *", "--", "/w/notes/a b"
	};
	static const struct tools_argument list[] = { { "text", "a" },
						      { "rest", "1" },
						      { "rest", "2" } };
	auto_tools t = { 0 };
	struct tools_call c = { 0 };
	struct ward_err e = { 0 };

	load(&t);
	assert_int_equal(tools_bind(&t, tools_find(&t, "search"), "/w", NULL, some, 2, &c, &e), 0);
	assert_int_equal(c.argv.len, ARRAY_LEN(expected));
	for (size_t i = 0; i < c.argv.len; i++)
		assert_string_equal(c.argv.items[i], expected[i]);
	assert_string_equal(c.input,
			    "{\"word\":\"$(id) `x` ; rm -rf / *\",\"path\":\"/w/notes/a b\","
			    "\"most\":5}");
	tools_call_free(&c);
	assert_int_equal(tools_bind(&t, tools_find(&t, "bare"), "/w", NULL, list, 3, &c, &e), 0);
	assert_int_equal(c.argv.len, 4); /* x{more} is left out */
	assert_string_equal(c.argv.items[3], "2");
	tools_call_free(&c);
}

/* -- hostile arguments: every payload at every kind of parameter, with every dress */

static const char *const payloads[] = {
	"-rf",
	"--help",
	"--exec=/bin/sh",
	"-",
	"--",
	"-o/etc/passwd",
	"$(id)",
	"`id`",
	"${IFS}x",
	"; id",
	"| id",
	"&& id",
	"> /etc/passwd",
	"a\nb",
	"a\rb",
	"a\tb",
	"\x1b[2J",
	"*",
	"?",
	"[a-z]*",
	"{a,b}",
	"~",
	"~root",
	"~/x",
	"..",
	"../x",
	"a/../../x",
	"notes/../../etc/passwd",
	"notes/..",
	"/etc/passwd",
	"/w/../etc",
	"//etc/passwd",
	"/w/notes/../../etc/shadow",
	"notes/./../..",
	"\xe2\x80\x90rf",
	"\xef\xbc\x8d\xef\xbc\x8dhelp",
	"\xe2\x80\xaertf",
	"a\xe2\x80\x8b"
	"b",
	"\xef\xbc\x8e\xef\xbc\x8e/x",
	"\xc0\xae\xc0\xae/x",
	"\xff\xfe",
	"\xed\xa0\x80",
	"%2e%2e/x",
	"%00",
	"@/etc/passwd",
	"file:///etc/passwd",
	"http://x/",
	"https://evil.example.net/",
	"https://a.example.com@evil.example.net/",
	"https://evil.example.net#a.example.com",
	"https://a.example.com\\@evil.example.net/",
	"https://a.example.com.evil.example.net/",
	"https://A.EXAMPLE.COM/x y",
	"https://a.example.com:22/",
	"https://[::1]/",
	"https://b.example.org/",
	"a.example.com.evil.example.net",
	"169.254.169.254",
	"localhost",
	"{word}",
	"{{word}}",
	"${word}",
	"%s%n",
	"'",
	"\"",
	"\\",
	"#",
	"!",
	"a b",
	"",
};
static const char *const dresses[] = { "%s", " %s", "%s ", "./%s", "notes/%s" };

static bool is_plain_text(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* A path that leads where it says: no "..", no doubled slash. */
static void assert_clean(const char *path)
{
	char *clean = path_clean(path);

	assert_non_null(clean);
	assert_string_equal(clean, path);
	free(clean);
}

/* What a value that was accepted must be. */
static void check_accepted(const struct tools_call *c, const char *tool, const char *value)
{
	if (strcmp(tool, "search") == 0) {
		assert_int_equal(c->argv.len, 7);
		assert_string_equal(c->argv.items[5], "--");
		assert_clean(c->argv.items[6]);
		assert_true(path_is_beneath(c->argv.items[6], "/w/notes") ||
			    path_is_beneath(c->argv.items[6], "/w/out"));
	}
	if (strcmp(tool, "save") == 0) {
		assert_int_equal(c->argv.len, 2);
		assert_clean(c->argv.items[1]);
		assert_true(path_is_beneath(c->argv.items[1], "/w/out"));
	}
	if (strcmp(tool, "bare") == 0) {
		assert_int_equal(c->argv.len, 2);
		assert_string_equal(c->argv.items[1], value); /* whole, unchanged */
		assert_true(c->argv.items[1][0] != '-');
	}
	if (strcmp(tool, "get") == 0) {
		assert_int_equal(c->argv.len, 3);
		assert_true(strncmp(c->argv.items[1], "https://a.example.com/", 22) == 0 ||
			    strstr(c->argv.items[1], ".b.example.org/"));
	}
	for (size_t i = 0; i < c->argv.len; i++) {
		assert_true(is_plain_text(c->argv.items[i]));
	}
}

static void test_hostile(unused_arg void **state)
{
	static const struct {
		const char *tool, *param;
	} ways[] = { { "search", "word" }, { "search", "path" }, { "bare", "text" },
		     { "save", "path" },   { "get", "url" },     { "search", "most" } };
	unsigned tried = 0, accepted = 0;
	auto_tools t = { 0 };

	load(&t);
	for (size_t i = 0; i < ARRAY_LEN(payloads) * ARRAY_LEN(dresses); i++) {
		char value[256];

		snprintf(value, sizeof(value), "%.*s%s%s",
			 (int)(strstr(dresses[i % 5], "%s") - dresses[i % 5]), dresses[i % 5],
			 payloads[i / 5], strstr(dresses[i % 5], "%s") + 2);
		for (size_t k = 0; k < ARRAY_LEN(ways); k++) {
			struct tools_argument both[2] = { { ways[k].param, value },
							  { "word", "x" } };
			size_t n = strcmp(ways[k].tool, "search") == 0 &&
						   strcmp(ways[k].param, "word") != 0
					   ? 2
					   : 1;
			struct tools_call c = { 0 };
			struct ward_err e = { 0 };
			int r = tools_bind(&t, tools_find(&t, ways[k].tool), "/w", "/home/u", both,
					   n, &c, &e);

			tried++;
			if (r == 0) {
				accepted++;
				check_accepted(&c, ways[k].tool, value);
			} else {
				assert_int_equal(r, -EINVAL);
				assert_true(is_plain_text(e.why));
			}
			tools_call_free(&c);
		}
	}
	assert_true(tried >= 200 && accepted > 100);
}

static void test_dash_needs_a_guard(unused_arg void **state)
{
	struct tools_call c = { 0 };
	auto_tools t = { 0 };
	struct ward_err e;

	load(&t);
	assert_int_equal(bind_one(&t, "bare", "text", "-n", &c, &e), -EINVAL);
	assert_non_null(strstr(e.why, "option"));
	tools_call_free(&c);
	assert_int_equal(bind_one(&t, "search", "word", "-n", &c, &e), -EINVAL);
	tools_call_free(&c);
	assert_int_equal(bind_one(&t, "search", "path", "notes", &c, &e), -EINVAL);
	assert_non_null(strstr(e.why, "--word is missing"));
	tools_call_free(&c);
	assert_int_equal(bind_one(&t, "search", "wrod", "x", &c, &e), -EINVAL);
	assert_non_null(strstr(e.remedy, "--word"));
	tools_call_free(&c);
	assert_int_equal(bind_one(&t, "get", "url", "https://x.b.example.org", &c, &e), 0);
	assert_string_equal(c.argv.items[1], "https://x.b.example.org/");
	tools_call_free(&c);
}

/* Each broken document, and what its one error says. */
static const struct {
	const char *tool, *says;
} broken[] = {
	{ "    description: a\n    runn: [x]\n" SCOPE NATURE, "did you mean \"run\"?" },
	{ "    description: a\n" SCOPE NATURE, "exactly one of run" },
	{ "    run: [x]\n" SCOPE NATURE, "\"description\" is missing" },
	{ "    description: a\n    run: [x]\n" NATURE, "\"scope\" is missing" },
	{ "    description: a\n    run: [x]\n" SCOPE, "\"nature\" is missing" },
	{ "    description: a\n    run: [\"{p}\"]\n    parameters: {p: {}}\n" SCOPE NATURE,
	  "the program cannot be a parameter" },
	{ "    description: a\n    run: [x, \"{q}\"]\n    parameters: {p: {}}\n" SCOPE NATURE,
	  "there is no \"q\"" },
	{ "    description: a\n    run: [x]\n    parameters: {p: {}}\n" SCOPE NATURE,
	  "is never used" },
	{ "    description: a\n    run: [x, \"{p}\"]\n    parameters: {p: {type: pth}}\n" SCOPE
		  NATURE,
	  "did you mean \"path\"?" },
	{ "    description: a\n    run: [x, \"{p}\"]\n    parameters: {p: {pattern: '('}}\n" SCOPE
		  NATURE,
	  "parameters.p.pattern" },
	{ "    description: a\n    run: [x]\n    output: {tpye: object}\n" SCOPE NATURE,
	  "did you mean \"type\"?" },
	{ "    description: a\n    http: {url: \"https://{h}/\"}\n    parameters: {h: {}}\n" SCOPE
		  NATURE,
	  "no parameter can choose the host" },
	{ "    description: a\n    http: {url: \"http://x/\"}\n" SCOPE NATURE, "expected https" },
	{ "    description: a\n    mcp: {server: s}\n" SCOPE NATURE, "there is no \"s\"" },
	{ "    description: a\n    run: [x]\n    scope: {hosts: [\"a:b\"]}\n" NATURE, "hosts[0]" },
};

static void test_errors(unused_arg void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		struct policy_errors errors = { 0 };
		struct buf text = { 0 };
		struct tools t;

		buf_printf(&text, "version: 1\ntools:\n  t:\n%s", broken[i].tool);
		assert_int_equal(read_text(&t, buf_text(&text), &errors), -EINVAL);
		if (!strstr(errors.lines.items[0], broken[i].says))
			print_error("%zu: %s\n", i, errors.lines.items[0]);
		assert_non_null(strstr(errors.lines.items[0], broken[i].says));
		assert_int_equal(strncmp(errors.lines.items[0], "tools.yaml:", 11), 0);
		tools_free(&t);
		strv_free(&errors.lines);
		buf_free(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_argv),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_dash_needs_a_guard),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
