/*
 * Fuzzes the validator of JSON Schema: a schema, a NUL, a value. No crash, no leak, no hang; every
 * refusal has a message that is harmless for a terminal; and validation is a function: twice the
 * same. A value that matches a schema does not match its negation.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "tools/json_schema.h"
#include "tools/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct node *parse(const uint8_t *data, size_t n)
{
	struct ward_err e = { 0 };
	struct reader r = { .name = "", .e = &e };
	struct node *root = json_read(&r, data, n);

	if (root && r.count) {
		node_free(root);
		return NULL;
	}
	return root;
}

static void check_message(const struct schema_error *why)
{
	assert(*why->message);
	for (const char *c = why->message; *c; c++)
		assert((unsigned char)*c >= 0x20 && *c != 0x7f);
}

/* {"not": SCHEMA}, where no reference of it means the root. */
static void try_negation(const struct node *schema, const struct node *value, int r)
{
	struct schema_error why;
	struct buf text = { 0 };
	struct node *negation;

	buf_puts(&text, "{\"not\":");
	tools_json(schema, &text);
	buf_puts(&text, "}");
	negation = strstr(text.data, "$ref") ? NULL : parse((uint8_t *)text.data, text.len);
	if (negation && r != -ERANGE && json_schema_check(negation, false, &why) == 0) {
		int other = json_schema_validate(negation, value, &why);

		assert(other == -ERANGE || (other == 0) == (r != 0));
	}
	node_free(negation);
	buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = n ? memchr(data, 0, n) : NULL;
	struct node *schema, *value;
	struct schema_error why;

	if (!end || n > 16384)
		return 0;
	schema = parse(data, (size_t)(end - data));
	value = parse(end + 1, n - (size_t)(end - data) - 1);
	if (schema && value) {
		assert(json_equal(value, value));
		if (json_schema_check(schema, data[0] & 1, &why) < 0) {
			check_message(&why);
		} else {
			int r = json_schema_validate(schema, value, &why);

			assert(r == 0 || r == -EINVAL || r == -ERANGE);
			if (r < 0)
				check_message(&why);
			assert(json_schema_validate(schema, value, &why) == r);
			try_negation(schema, value, r);
		}
	}
	node_free(schema);
	node_free(value);
	return 0;
}
