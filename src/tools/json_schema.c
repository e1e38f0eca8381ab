/*
 * The validator of JSON Schema. In: a schema that was checked (json_schema_check.c) and a value,
 * both as trees. Out: yes, or the first place that does not match and why. Every keyword is one row
 * of a table. Written here because no kept C library knows the 2020-12 revision (Debian's C
 * libraries stop at draft 4, the others are C++ or interpreters'); bounded in steps and depth, so
 * that a schema that refers to itself ends. Pure functions over untrusted trees, fuzzed
 * (fuzz/json_schema.c).
 */
#include "tools/json_schema.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tools/decimal.h"
#include "tools/regex.h"

#define STEPS_MAX 1000000
#define DEPTH_MAX 200
#define TEXT_MAX 60

struct validation {
	const struct node *root;
	struct schema_error *error;
	char path[256];
	unsigned steps, depth, quiet; /* quiet: a branch that may fail */
	bool gave_up;
};

static bool valid(struct validation *v, const struct node *schema, const struct node *value);

static bool fail(struct validation *v, const struct node *value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static bool fail(struct validation *v, const struct node *value, const char *format, ...)
{
	auto_buf shown = { 0 };
	char text[256];
	va_list ap;

	if (v->quiet || v->gave_up)
		return false;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	text_escape(&shown, text);
	snprintf(v->error->message, sizeof(v->error->message), "%s", buf_text(&shown));
	snprintf(v->error->path, sizeof(v->error->path), "%s", v->path);
	v->error->line = value->line;
	v->error->column = value->column;
	return false;
}

static bool give_up(struct validation *v, const struct node *value, const char *why)
{
	v->quiet = 0;
	fail(v, value, "%s", why);
	v->gave_up = true;
	return false;
}

/* A text in a message: cut. */
static const char *shown(const char *text, char ret[TEXT_MAX + 4])
{
	size_t n = strnlen(text, TEXT_MAX);

	while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	memcpy(ret, text, n);
	memcpy(ret + n, text[n] ? "..." : "", text[n] ? 4 : 1);
	return ret;
}

static bool is_number(const struct node *n, struct decimal *ret)
{
	return n->kind == NODE_NUMBER && decimal_read(n->text, ret);
}

static size_t characters(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

bool json_equal(const struct node *a, const struct node *b)
{
	const struct node *x = a->first, *y = b->first;
	struct decimal m, n;

	if (a->kind != b->kind || a->count != b->count)
		return false;
	if (a->kind == NODE_NUMBER)
		return is_number(a, &m) && is_number(b, &n) ? decimal_compare(&m, &n) == 0
							    : strcmp(a->text, b->text) == 0;
	if (a->text)
		return strcmp(a->text, b->text) == 0;
	if (a->kind == NODE_LIST) {
		for (; x && y; x = x->next, y = y->next)
			if (!json_equal(x, y))
				return false;
		return !x && !y;
	}
	for (; x; x = x->next) {
		y = node_get(b, x->key);
		if (!y || !json_equal(x, y))
			return false;
	}
	return true;
}

static bool has_type(const char *word, const struct node *value)
{
	struct decimal d;

	switch (value->kind) {
	case NODE_NULL:
		return strcmp(word, "null") == 0;
	case NODE_BOOL:
		return strcmp(word, "boolean") == 0;
	case NODE_NUMBER:
		return strcmp(word, "number") == 0 ||
		       (strcmp(word, "integer") == 0 && is_number(value, &d) &&
			decimal_is_integer(&d));
	case NODE_WORD:
	case NODE_STRING:
		return strcmp(word, "string") == 0;
	case NODE_LIST:
		return strcmp(word, "array") == 0;
	case NODE_MAP:
		return strcmp(word, "object") == 0;
	}
	return false;
}

static bool check_type(struct validation *v, const struct node *k,
		       unused_arg const struct node *schema, const struct node *value)
{
	char cut[TEXT_MAX + 4];

	if (k->text)
		return has_type(k->text, value) ||
		       fail(v, value, "expected %s", shown(k->text, cut));
	for (const struct node *c = k->first; c; c = c->next)
		if (has_type(c->text, value))
			return true;
	return fail(v, value, "has none of the types");
}

static bool check_enum(struct validation *v, const struct node *k,
		       unused_arg const struct node *schema, const struct node *value)
{
	char cut[TEXT_MAX + 4];

	for (const struct node *c = k->first; c; c = c->next)
		if (json_equal(c, value))
			return true;
	return fail(v, value, "%s is none of the values",
		    value->text ? shown(value->text, cut) : "it");
}

static bool check_const(struct validation *v, const struct node *k,
			unused_arg const struct node *schema, const struct node *value)
{
	return json_equal(k, value) || fail(v, value, "it is not the one value allowed");
}

static bool check_number(struct validation *v, const struct node *k,
			 unused_arg const struct node *schema, const struct node *value)
{
	struct decimal bound, d;
	int order;
	bool holds;

	if (value->kind != NODE_NUMBER)
		return true;
	if (!is_number(value, &d) || !is_number(k, &bound))
		return give_up(v, value, "the number is too long to be compared");
	order = decimal_compare(&d, &bound);
	holds = strcmp(k->key, "minimum") == 0            ? order >= 0
		: strcmp(k->key, "maximum") == 0          ? order <= 0
		: strcmp(k->key, "exclusiveMinimum") == 0 ? order > 0
		: strcmp(k->key, "exclusiveMaximum") == 0 ? order < 0
							  : decimal_is_multiple(&d, &bound);
	return holds ||
	       fail(v, value, "%.40s does not satisfy %s %.40s", value->text, k->key, k->text);
}

/* minLength, maxItems and the like, by what is counted. */
static bool check_count(struct validation *v, const struct node *k,
			unused_arg const struct node *schema, const struct node *value)
{
	bool least = strncmp(k->key, "min", 3) == 0;
	const char *what = k->key + 3;
	struct decimal bound, d;
	char number[24];
	size_t n;

	if (strcmp(what, "Length") == 0 && value->kind == NODE_STRING)
		n = characters(value->text);
	else if ((strcmp(what, "Items") == 0 && value->kind == NODE_LIST) ||
		 (strcmp(what, "Properties") == 0 && value->kind == NODE_MAP))
		n = value->count;
	else
		return true;
	snprintf(number, sizeof(number), "%zu", n);
	if (!decimal_read(number, &d) || !is_number(k, &bound))
		return give_up(v, value, "the number is too long to be compared");
	return (least ? decimal_compare(&d, &bound) >= 0 : decimal_compare(&d, &bound) <= 0) ||
	       fail(v, value, "%s does not satisfy %s %.40s", number, k->key, k->text);
}

static bool matches(struct validation *v, const struct node *value, const char *pattern,
		    const char *text)
{
	int r = regex_match(pattern, REGEX_SEARCH, text, NULL);

	return r < 0 ? give_up(v, value, "the pattern takes too long") : r > 0;
}

static bool check_pattern(struct validation *v, const struct node *k,
			  unused_arg const struct node *schema, const struct node *value)
{
	char cut[TEXT_MAX + 4];

	return value->kind != NODE_STRING || matches(v, value, k->text, value->text) ||
	       fail(v, value, "does not match the pattern %s", shown(k->text, cut));
}

static bool check_all_of(struct validation *v, const struct node *k,
			 unused_arg const struct node *schema, const struct node *value)
{
	for (const struct node *c = k->first; c; c = c->next)
		if (!valid(v, c, value))
			return false;
	return true;
}

/* Whether it matches, without a word if not. */
static bool would(struct validation *v, const struct node *schema, const struct node *value)
{
	bool yes;

	v->quiet++;
	yes = valid(v, schema, value);
	v->quiet -= v->quiet > 0;
	return yes;
}

static unsigned count_matches(struct validation *v, const struct node *k, const struct node *value)
{
	unsigned n = 0;

	for (const struct node *c = k->first; c && !v->gave_up; c = c->next)
		n += would(v, c, value);
	return n;
}

static bool check_some_of(struct validation *v, const struct node *k,
			  unused_arg const struct node *schema, const struct node *value)
{
	unsigned n = count_matches(v, k, value);

	if (strcmp(k->key, "anyOf") == 0)
		return n > 0 || fail(v, value, "matches none of anyOf");
	return n == 1 || fail(v, value, "matches %u of oneOf, not one", n);
}

static bool check_not(struct validation *v, const struct node *k,
		      unused_arg const struct node *schema, const struct node *value)
{
	return (!would(v, k, value) && !v->gave_up) || fail(v, value, "matches what it must not");
}

static bool check_if(struct validation *v, const struct node *k, const struct node *schema,
		     const struct node *value)
{
	const struct node *branch = node_get(schema, would(v, k, value) ? "then" : "else");

	return !v->gave_up && (!branch || valid(v, branch, value));
}

static bool check_ref(struct validation *v, const struct node *k,
		      unused_arg const struct node *schema, const struct node *value)
{
	const struct node *target = json_schema_ref(v->root, k->text);

	return target ? valid(v, target, value) : give_up(v, value, "a $ref leads nowhere");
}

/* One member or element deeper, for messages. */
static bool valid_child(struct validation *v, const struct node *schema, const struct node *child,
			unsigned index)
{
	size_t n = strlen(v->path);
	bool yes;

	if (child->key)
		snprintf(v->path + n, sizeof(v->path) - n, "/%s", child->key);
	else
		snprintf(v->path + n, sizeof(v->path) - n, "/%u", index);
	yes = valid(v, schema, child);
	v->path[n] = '\0';
	return yes;
}

static bool check_properties(struct validation *v, const struct node *k,
			     unused_arg const struct node *schema, const struct node *value)
{
	for (const struct node *c = value->kind == NODE_MAP ? k->first : NULL; c; c = c->next) {
		const struct node *member = node_get(value, c->key);

		if (member && !valid_child(v, c, member, 0))
			return false;
	}
	return true;
}

static bool check_pattern_properties(struct validation *v, const struct node *k,
				     unused_arg const struct node *schema, const struct node *value)
{
	if (value->kind != NODE_MAP)
		return true;
	for (const struct node *c = k->first; c; c = c->next)
		for (const struct node *m = value->first; m; m = m->next)
			if (matches(v, m, c->key, m->key) && !valid_child(v, c, m, 0))
				return false;
	return !v->gave_up;
}

static bool is_additional(struct validation *v, const struct node *schema, const struct node *m)
{
	const struct node *properties = node_get(schema, "properties");
	const struct node *patterns = node_get(schema, "patternProperties");

	if (properties && node_get(properties, m->key))
		return false;
	for (const struct node *c = patterns ? patterns->first : NULL; c; c = c->next)
		if (matches(v, m, c->key, m->key))
			return false;
	return true;
}

static bool check_additional(struct validation *v, const struct node *k, const struct node *schema,
			     const struct node *value)
{
	char cut[TEXT_MAX + 4];

	for (const struct node *m = value->kind == NODE_MAP ? value->first : NULL; m; m = m->next) {
		if (!is_additional(v, schema, m) || v->gave_up)
			continue;
		if (k->kind == NODE_BOOL && *k->text == 'f')
			return fail(v, m, "the key %s is not allowed", shown(m->key, cut));
		if (!valid_child(v, k, m, 0))
			return false;
	}
	return !v->gave_up;
}

static bool check_required(struct validation *v, const struct node *k,
			   unused_arg const struct node *schema, const struct node *value)
{
	char cut[TEXT_MAX + 4];

	for (const struct node *c = value->kind == NODE_MAP ? k->first : NULL; c; c = c->next)
		if (!node_get(value, c->text))
			return fail(v, value, "the key %s is missing", shown(c->text, cut));
	return true;
}

static bool check_dependent(struct validation *v, const struct node *k, const struct node *schema,
			    const struct node *value)
{
	for (const struct node *c = value->kind == NODE_MAP ? k->first : NULL; c; c = c->next) {
		if (!node_get(value, c->key))
			continue;
		if (strcmp(k->key, "dependentSchemas") == 0 ? !valid(v, c, value)
							    : !check_required(v, c, schema, value))
			return false;
	}
	return true;
}

static bool check_names(struct validation *v, const struct node *k,
			unused_arg const struct node *schema, const struct node *value)
{
	for (const struct node *m = value->kind == NODE_MAP ? value->first : NULL; m; m = m->next) {
		struct node name = { .kind = NODE_STRING,
				     .line = m->key_line,
				     .column = m->key_column,
				     .text = m->key };

		if (!valid(v, k, &name))
			return false;
	}
	return true;
}

static bool check_prefix(struct validation *v, const struct node *k,
			 unused_arg const struct node *schema, const struct node *value)
{
	const struct node *item = value->kind == NODE_LIST ? value->first : NULL;
	unsigned i = 0;

	for (const struct node *c = k->first; c && item; c = c->next, item = item->next)
		if (!valid_child(v, c, item, i++))
			return false;
	return true;
}

static bool check_items(struct validation *v, const struct node *k, const struct node *schema,
			const struct node *value)
{
	const struct node *prefix = node_get(schema, "prefixItems");
	unsigned i = 0, skip = prefix ? prefix->count : 0;

	for (const struct node *c = value->kind == NODE_LIST ? value->first : NULL; c;
	     c = c->next) {
		if (i++ < skip)
			continue;
		if (!valid_child(v, k, c, i - 1))
			return false;
	}
	return true;
}

static bool within(struct validation *v, const struct node *value, const struct node *bound,
		   unsigned n, int sign)
{
	char number[24];
	struct decimal b, d;

	snprintf(number, sizeof(number), "%u", n);
	if (!is_number(bound, &b) || !decimal_read(number, &d))
		return give_up(v, value, "the number is too long to be compared");
	return sign * decimal_compare(&d, &b) >= 0;
}

static bool check_contains(struct validation *v, const struct node *k, const struct node *schema,
			   const struct node *value)
{
	const struct node *least = node_get(schema, "minContains");
	const struct node *most = node_get(schema, "maxContains");
	unsigned n = 0;

	if (value->kind != NODE_LIST)
		return true;
	for (const struct node *c = value->first; c && !v->gave_up; c = c->next)
		n += would(v, k, c);
	if (v->gave_up)
		return false;
	if (least ? !within(v, value, least, n, 1) : n == 0)
		return fail(v, value, "contains too few matching elements");
	if (most && !within(v, value, most, n, -1))
		return fail(v, value, "contains too many matching elements");
	return true;
}

static bool check_unique(struct validation *v, const struct node *k,
			 unused_arg const struct node *schema, const struct node *value)
{
	if (value->kind != NODE_LIST || *k->text == 'f')
		return true;
	for (const struct node *a = value->first; a; a = a->next)
		for (const struct node *b = a->next; b; b = b->next) {
			if (++v->steps > STEPS_MAX)
				return give_up(v, value, "the check takes too long");
			if (json_equal(a, b))
				return fail(v, b, "an element is there twice");
		}
	return true;
}

static const struct {
	const char *word;
	bool (*check)(struct validation *v, const struct node *k, const struct node *schema,
		      const struct node *value);
} keywords[] = {
	{ "$ref", check_ref },
	{ "type", check_type },
	{ "enum", check_enum },
	{ "const", check_const },
	{ "minimum", check_number },
	{ "maximum", check_number },
	{ "exclusiveMinimum", check_number },
	{ "exclusiveMaximum", check_number },
	{ "multipleOf", check_number },
	{ "minLength", check_count },
	{ "maxLength", check_count },
	{ "minItems", check_count },
	{ "maxItems", check_count },
	{ "minProperties", check_count },
	{ "maxProperties", check_count },
	{ "pattern", check_pattern },
	{ "required", check_required },
	{ "properties", check_properties },
	{ "patternProperties", check_pattern_properties },
	{ "additionalProperties", check_additional },
	{ "propertyNames", check_names },
	{ "dependentRequired", check_dependent },
	{ "dependentSchemas", check_dependent },
	{ "prefixItems", check_prefix },
	{ "items", check_items },
	{ "contains", check_contains },
	{ "uniqueItems", check_unique },
	{ "allOf", check_all_of },
	{ "anyOf", check_some_of },
	{ "oneOf", check_some_of },
	{ "not", check_not },
	{ "if", check_if },
};

static bool valid_here(struct validation *v, const struct node *schema, const struct node *value)
{
	if (schema->kind == NODE_BOOL)
		return *schema->text == 't' || fail(v, value, "nothing is allowed here");
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
		const struct node *k = node_get(schema, keywords[i].word);

		if (k && (!keywords[i].check(v, k, schema, value) || v->gave_up))
			return false;
	}
	return true;
}

static bool valid(struct validation *v, const struct node *schema, const struct node *value)
{
	bool yes;

	if (v->gave_up)
		return false;
	if (++v->steps > STEPS_MAX || v->depth == DEPTH_MAX)
		return give_up(v, value, "the check takes too long");
	v->depth++;
	yes = valid_here(v, schema, value);
	v->depth--;
	return yes;
}

int json_schema_validate(const struct node *schema, const struct node *value,
			 struct schema_error *ret)
{
	struct validation v = { .root = schema, .error = ret };

	*ret = (struct schema_error){ 0 };
	if (valid(&v, schema, value) && !v.gave_up)
		return 0;
	return v.gave_up ? -ERANGE : -EINVAL;
}
