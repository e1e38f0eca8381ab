/* The validator of JSON Schema: each keyword allows and denies; what is not enforced is refused.
 * json_schema_suite.py runs the official test suite through this program where it is to be had:
 * `json-schema suite FILE...` prints "FILE passed failed refused". */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/io.h"
#include "tools/decimal.h"
#include "tools/json_schema.h"
#include "tools/regex.h"
#include "tools/tools.h"

#include <fcntl.h>

static struct node *parse(const char *text)
{
	struct ward_err e = { 0 };
	struct reader r = { .name = "", .e = &e };
	struct node *n = json_read(&r, (const uint8_t *)text, strlen(text));

	assert_true(n && !r.count);
	return n;
}

static const struct {
	const char *schema, *good, *bad; /* values with | between them */
} rows[] = {
	{ "{\"type\":\"integer\"}", "1|1.0|-3|1e2", "1.5|\"1\"|null|true|1e-2" },
	{ "{\"type\":[\"string\",\"null\"]}", "\"\"|null", "1|{}" },
	{ "{\"enum\":[1,\"a\",{\"x\":[1]}]}", "1.0|\"a\"|{\"x\":[1.0]}", "2|\"A\"|{\"x\":[]}" },
	{ "{\"const\":{\"a\":1,\"b\":2}}", "{\"b\":2,\"a\":1}", "{\"a\":1}|[1,2]" },
	{ "{\"minimum\":9007199254740992}", "9007199254740992", "9007199254740991.9" },
	{ "{\"exclusiveMaximum\":0.3}", "0.29999999999999999999|-1", "0.3|0.30" },
	{ "{\"multipleOf\":0.01}", "4.35|0|1e10", "0.0075|4.355" },
	{ "{\"multipleOf\":3}", "9|3e0|1.5e1", "10|0.3" },
	{ "{\"minLength\":2,\"maxLength\":3}", "\"ab\"|\"\\u00e4\\u00f6\\u00fc\"|7",
	  "\"a\"|\"abcd\"" },
	{ "{\"pattern\":\"^a+$\"}", "\"aa\"|1", "\"ab\"|\"a\\n\"" },
	{ "{\"pattern\":\"^\\\\d{2}(?!x)\"}", "\"12y\"", "\"12x\"|\"1\"" },
	{ "{\"required\":[\"a\"],\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":\"\"}|1",
	  "{}|{\"a\":1}" },
	{ "{\"properties\":{\"a\":true},\"patternProperties\":{\"^x\":{}},"
	  "\"additionalProperties\":false}",
	  "{\"a\":1,\"xy\":2}|{}", "{\"b\":1}|{\"ax\":1}" },
	{ "{\"propertyNames\":{\"maxLength\":2}}", "{\"ab\":1}", "{\"abc\":1}" },
	{ "{\"minProperties\":1,\"maxProperties\":1}", "{\"a\":1}", "{}|{\"a\":1,\"b\":1}" },
	{ "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"b\":1}|{\"a\":1,\"b\":1}", "{\"a\":1}" },
	{ "{\"dependentSchemas\":{\"a\":{\"required\":[\"c\"]}}}", "{}|{\"a\":1,\"c\":1}",
	  "{\"a\":1}" },
	{ "{\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"type\":\"string\"}}",
	  "[1,\"a\"]|[]", "[\"a\"]|[1,2]" },
	{ "{\"contains\":{\"type\":\"integer\"},\"minContains\":2,\"maxContains\":3}",
	  "[1,2]|[1,\"a\",2,3]", "[1]|[1,2,3,4]" },
	{ "{\"uniqueItems\":true}", "[1,true,\"1\"]", "[1,1.0]|[{\"a\":1},{\"a\":1}]" },
	{ "{\"minItems\":1,\"maxItems\":2}", "[1]|{}", "[]|[1,2,3]" },
	{ "{\"allOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "2", "1|\"a\"" },
	{ "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":2}]}", "\"\"|2", "1" },
	{ "{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "1|2.5", "3|1.5" },
	{ "{\"not\":{\"type\":\"string\"}}", "1", "\"\"" },
	{ "{\"if\":{\"type\":\"integer\"},\"then\":{\"minimum\":1},\"else\":{\"type\":\"null\"}}",
	  "1|null", "0|\"a\"" },
	{ "{\"$ref\":\"#/$defs/a~1b\",\"$defs\":{\"a/b\":{\"type\":\"null\"}}}", "null", "1" },
	{ "{\"$ref\":\"#here\",\"$defs\":{\"x\":{\"$anchor\":\"here\",\"type\":\"null\"}}}", "null",
	  "1" },
	{ "{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
	  "{\"next\":{\"next\":{}}}", "{\"next\":{\"other\":1}}" },
	{ "true", "1", "" },
	{ "false", "", "1|null" },
};

static void try_values(const struct node *schema, const char *values, int expected)
{
	char *copy = strdup(values), *save = NULL;
	struct schema_error why;

	for (char *v = strtok_r(copy, "|", &save); v; v = strtok_r(NULL, "|", &save)) {
		struct node *value = parse(v);
		int r = json_schema_validate(schema, value, &why);

		if (r != expected)
			print_error("%s: %d\n", v, r);
		assert_int_equal(r, expected);
		assert_int_equal(*why.message != '\0', expected != 0);
		node_free(value);
	}
	free(copy);
}

static void test_keywords(unused_arg void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct node *schema = parse(rows[i].schema);
		struct schema_error why;

		assert_int_equal(json_schema_check(schema, true, &why), 0);
		try_values(schema, rows[i].good, 0);
		try_values(schema, rows[i].bad, -EINVAL);
		node_free(schema);
	}
}

static void test_refused(unused_arg void **state)
{
	static const char *const schemas[] = {
		"{\"unevaluatedProperties\":false}",
		"{\"$dynamicRef\":\"#a\"}",
		"{\"additionalItems\":false}",
		"{\"items\":[{}]}",
		"{\"type\":\"strin\"}",
		"{\"minimum\":\"1\"}",
		"{\"maxLength\":-1}",
		"{\"multipleOf\":0}",
		"{\"pattern\":\"(\"}",
		"{\"pattern\":\"(*LIMIT_MATCH=1000000000)a\"}",
		"{\"$ref\":\"http://x/y\"}",
		"{\"$ref\":\"#/$defs/none\"}",
		"{\"$defs\":{\"a\":{\"$id\":\"b\"}}}",
		"{\"$schema\":\"http://json-schema.org/draft-04/schema#\"}",
		"{\"allOf\":[]}",
		"[]",
		"{\"properties\":{\"a\":1}}",
	};
	struct schema_error why;
	struct node *typo = parse("{\"requierd\":[\"a\"]}");

	for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
		struct node *schema = parse(schemas[i]);

		assert_int_equal(json_schema_check(schema, false, &why), -EINVAL);
		assert_true(*why.message);
		node_free(schema);
	}
	assert_int_equal(json_schema_check(typo, false, &why), 0);
	assert_int_equal(json_schema_check(typo, true, &why), -EINVAL);
	assert_non_null(strstr(why.message, "\"required\""));
	node_free(typo);
}

/* What would take for ever ends as a refusal, never as a match. */
static void test_bounds(unused_arg void **state)
{
	struct node *loop = parse("{\"$ref\":\"#\"}"), *value = parse("1"), *text;
	struct node *slow = parse("{\"pattern\":\"^(a+)+$\"}");
	struct schema_error why;

	assert_int_equal(json_schema_check(loop, true, &why), 0);
	assert_int_equal(json_schema_validate(loop, value, &why), -ERANGE);
	text = parse("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"");
	assert_int_equal(json_schema_validate(slow, text, &why), -ERANGE);
	node_free(text);
	text = parse("{\"not\":{\"pattern\":\"^(a+)+$\"}}");
	node_free(slow);
	slow = text;
	text = parse("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"");
	assert_int_equal(json_schema_validate(slow, text, &why), -ERANGE);
	node_free(text);
	node_free(slow);
	node_free(loop);
	node_free(value);
}

static void test_decimals(unused_arg void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} pairs[] = { { "1", "1.0", 0 },      { "-1", "1", -1 },          { "10", "9", 1 },
		      { "1e3", "1000", 0 },   { "0.1", "0.10", 0 },       { "-0", "0", 0 },
		      { "1e-400", "0", 1 },   { "123e10", "1.23e12", 0 }, { "-2", "-10", 1 },
		      { "1e400", "9e399", 1 } };
	struct decimal a, b;

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		assert_true(decimal_read(pairs[i].a, &a) && decimal_read(pairs[i].b, &b));
		assert_int_equal(decimal_compare(&a, &b), pairs[i].order);
		assert_int_equal(decimal_compare(&b, &a), -pairs[i].order);
	}
	assert_false(decimal_read("", &a) || decimal_read("-", &a) || decimal_read("1.", &a) ||
		     decimal_read("1e", &a) || decimal_read("0x1", &a) ||
		     decimal_read("1e2000", &a));
	assert_false(decimal_read("123456789012345678901234567890123456789", &a));
	assert_int_equal(regex_match("a|b", REGEX_WHOLE, "ab", NULL), 0);
	assert_int_equal(regex_match("a|ab", REGEX_WHOLE, "ab", NULL), 1);
}

/* -- the official suite */

static void count_case(const struct node *group, unsigned *passed, unsigned *failed,
		       unsigned *refused)
{
	const struct node *schema = node_get(group, "schema"), *tests = node_get(group, "tests");
	struct schema_error why;

	if (json_schema_check(schema, false, &why) < 0) {
		*refused += tests->count;
		return;
	}
	for (const struct node *t = tests->first; t; t = t->next) {
		bool expected = strcmp(node_get(t, "valid")->text, "true") == 0;
		int r = json_schema_validate(schema, node_get(t, "data"), &why);

		if (r == -ERANGE) {
			++*refused;
		} else if ((r == 0) == expected) {
			++*passed;
		} else {
			++*failed;
			print_error("%s: %s\n", node_get(group, "description")->text,
				    node_get(t, "description")->text);
		}
	}
}

static int suite(char **files)
{
	int bad = 0;

	for (; *files; files++) {
		unsigned passed = 0, failed = 0, refused = 0;
		struct ward_err e = { 0 };
		struct reader r = { .name = *files, .e = &e };
		struct buf text = { 0 };
		struct node *all = NULL;

		if (io_read_file(AT_FDCWD, *files, NODE_BYTES_MAX, &text) == 0)
			all = json_read(&r, (const uint8_t *)text.data, text.len);
		for (const struct node *g = all ? all->first : NULL; g; g = g->next)
			count_case(g, &passed, &failed, &refused);
		printf("%s %u %u %u%s%s\n", *files, passed, failed, refused, all ? "" : " unread ",
		       all ? "" : e.why);
		bad |= failed || !all;
		node_free(all);
		buf_free(&text);
	}
	return bad;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keywords),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_decimals),
	};

	if (argc > 1 && strcmp(argv[1], "suite") == 0)
		return suite(argv + 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
