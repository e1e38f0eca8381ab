/*
 * What a JSON Schema may say. In: a tree. Out: yes, or the first keyword that is not well-formed or
 * would narrow and is not enforced here: unevaluated*, $dynamicRef, $recursiveRef, references
 * outside of the document. So a schema that loads is a schema that holds. Keywords that only
 * describe (title, format, content*, examples) are accepted and change nothing. Pure functions.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tools/decimal.h"
#include "tools/json_schema.h"
#include "tools/regex.h"

#define SEEN_MAX 1024 /* targets of references */

enum form {
	FORM_SCHEMA,
	FORM_SCHEMAS,     /* a list of schemas */
	FORM_SCHEMA_MAP,  /* a map of schemas */
	FORM_PATTERN_MAP, /* the same, its keys are patterns */
	FORM_NUMBER,
	FORM_POSITIVE,
	FORM_COUNT,
	FORM_PATTERN,
	FORM_BOOL,
	FORM_LIST,
	FORM_TEXTS,
	FORM_TEXTS_MAP,
	FORM_TYPE,
	FORM_REF,
	FORM_DIALECT,
	FORM_ANY,
	FORM_REFUSED
};

static const struct {
	const char *word;
	enum form form;
} keywords[] = {
	{ "$schema", FORM_DIALECT },
	{ "$id", FORM_ANY },
	{ "$comment", FORM_ANY },
	{ "$anchor", FORM_ANY },
	{ "$defs", FORM_SCHEMA_MAP },
	{ "definitions", FORM_SCHEMA_MAP },
	{ "$ref", FORM_REF },
	{ "type", FORM_TYPE },
	{ "enum", FORM_LIST },
	{ "const", FORM_ANY },
	{ "minimum", FORM_NUMBER },
	{ "maximum", FORM_NUMBER },
	{ "exclusiveMinimum", FORM_NUMBER },
	{ "exclusiveMaximum", FORM_NUMBER },
	{ "multipleOf", FORM_POSITIVE },
	{ "minLength", FORM_COUNT },
	{ "maxLength", FORM_COUNT },
	{ "minItems", FORM_COUNT },
	{ "maxItems", FORM_COUNT },
	{ "minProperties", FORM_COUNT },
	{ "maxProperties", FORM_COUNT },
	{ "minContains", FORM_COUNT },
	{ "maxContains", FORM_COUNT },
	{ "pattern", FORM_PATTERN },
	{ "required", FORM_TEXTS },
	{ "properties", FORM_SCHEMA_MAP },
	{ "patternProperties", FORM_PATTERN_MAP },
	{ "additionalProperties", FORM_SCHEMA },
	{ "propertyNames", FORM_SCHEMA },
	{ "dependentRequired", FORM_TEXTS_MAP },
	{ "dependentSchemas", FORM_SCHEMA_MAP },
	{ "prefixItems", FORM_SCHEMAS },
	{ "items", FORM_SCHEMA },
	{ "contains", FORM_SCHEMA },
	{ "uniqueItems", FORM_BOOL },
	{ "allOf", FORM_SCHEMAS },
	{ "anyOf", FORM_SCHEMAS },
	{ "oneOf", FORM_SCHEMAS },
	{ "not", FORM_SCHEMA },
	{ "if", FORM_SCHEMA },
	{ "then", FORM_SCHEMA },
	{ "else", FORM_SCHEMA },
	{ "title", FORM_ANY },
	{ "description", FORM_ANY },
	{ "default", FORM_ANY },
	{ "examples", FORM_ANY },
	{ "deprecated", FORM_ANY },
	{ "readOnly", FORM_ANY },
	{ "writeOnly", FORM_ANY },
	{ "format", FORM_ANY },
	{ "contentEncoding", FORM_ANY },
	{ "contentMediaType", FORM_ANY },
	{ "contentSchema", FORM_ANY },
	{ "unevaluatedProperties", FORM_REFUSED },
	{ "unevaluatedItems", FORM_REFUSED },
	{ "$dynamicRef", FORM_REFUSED },
	{ "$dynamicAnchor", FORM_ANY },
	{ "$recursiveRef", FORM_REFUSED },
	{ "$vocabulary", FORM_REFUSED },
	{ "additionalItems", FORM_REFUSED },
	{ "dependencies", FORM_REFUSED },
};

struct check {
	const struct node *root;
	struct schema_error *error;
	const struct node *seen[SEEN_MAX];
	size_t seen_count;
	bool strict;
};

static bool check_schema(struct check *c, const struct node *schema);

static bool refuse(struct check *c, const struct node *n, const char *what, const char *why)
{
	auto_buf shown = { 0 };

	text_escape(&shown, what ? what : "schema");
	snprintf(c->error->message, sizeof(c->error->message), "%.80s: %.160s", buf_text(&shown),
		 why);
	c->error->path[0] = '\0';
	c->error->line = n->line;
	c->error->column = n->column;
	return false;
}

/* "/a~1b/0", percent-encoded, from the root. */
static const struct node *follow(const struct node *n, const char *pointer)
{
	char token[256];

	while (n && *pointer == '/') {
		size_t len = 0;
		const struct node *next = NULL;

		for (pointer++; *pointer && *pointer != '/' && len < sizeof(token) - 1;) {
			unsigned byte;
			int used = 0;

			if (*pointer == '%' && sscanf(pointer, "%%%2x%n", &byte, &used) == 1 &&
			    used == 3 && byte) {
				token[len++] = (char)byte;
				pointer += 3;
			} else {
				token[len++] = *pointer++;
			}
		}
		token[len] = '\0';
		for (char *at = token; (at = strchr(at, '~')) && (at[1] == '0' || at[1] == '1');
		     at++) {
			*at = at[1] == '0' ? '~' : '/';
			memmove(at + 1, at + 2, strlen(at + 2) + 1);
		}
		if (n->kind == NODE_MAP)
			next = node_get(n, token);
		if (n->kind == NODE_LIST && *token &&
		    strspn(token, "0123456789") == strlen(token)) {
			unsigned long i = strtoul(token, NULL, 10);

			for (next = n->first; next && i; i--)
				next = next->next;
		}
		n = next;
	}
	return *pointer ? NULL : n;
}

/* Names live in schemas only, not in what an enum or const holds. */
static const struct node *find_anchor(const struct node *n, const char *name)
{
	const struct node *anchor = n->kind == NODE_MAP ? node_get(n, "$anchor") : NULL;

	if (anchor && anchor->text && strcmp(anchor->text, name) == 0)
		return n;
	for (const struct node *c = n->first; c; c = c->next) {
		const struct node *found;

		if (c->key && (strcmp(c->key, "const") == 0 || strcmp(c->key, "enum") == 0))
			continue;
		found = find_anchor(c, name);
		if (found)
			return found;
	}
	return NULL;
}

const struct node *json_schema_ref(const struct node *root, const char *ref)
{
	if (ref[0] != '#')
		return NULL;
	if (!ref[1] || ref[1] == '/')
		return follow(root, ref + 1);
	return find_anchor(root, ref + 1);
}

static bool check_ref(struct check *c, const struct node *k)
{
	const struct node *target =
		k->kind == NODE_STRING ? json_schema_ref(c->root, k->text) : NULL;

	if (!target)
		return refuse(c, k, k->key,
			      "only references into the same document, which exist: #/$defs/NAME");
	for (size_t i = 0; i < c->seen_count; i++)
		if (c->seen[i] == target)
			return true;
	if (c->seen_count == SEEN_MAX)
		return refuse(c, k, k->key, "too many references");
	c->seen[c->seen_count++] = target;
	return check_schema(c, target);
}

static bool is_type(const struct node *n)
{
	static const char *const words[] = { "null",   "boolean", "number", "integer",
					     "string", "array",   "object" };

	for (size_t i = 0; n->kind == NODE_STRING && i < ARRAY_LEN(words); i++)
		if (strcmp(words[i], n->text) == 0)
			return true;
	return false;
}

static bool is_texts(const struct node *n)
{
	for (const struct node *c = n->first; c; c = c->next)
		if (c->kind != NODE_STRING)
			return false;
	return n->kind == NODE_LIST;
}

static bool check_pattern(struct check *c, const struct node *n, const char *pattern)
{
	char why[128];

	return regex_match(pattern, REGEX_SEARCH, "", why) != -EINVAL || refuse(c, n, pattern, why);
}

static bool check_children(struct check *c, const struct node *k, enum form form)
{
	enum node_kind kind = form == FORM_SCHEMAS ? NODE_LIST : NODE_MAP;

	if (k->kind != kind || (form == FORM_SCHEMAS && !k->first))
		return refuse(c, k, k->key,
			      kind == NODE_LIST ? "expected a list of schemas"
						: "expected a map of schemas");
	for (const struct node *child = k->first; child; child = child->next) {
		if (form == FORM_PATTERN_MAP && !check_pattern(c, child, child->key))
			return false;
		if (form == FORM_TEXTS_MAP) {
			if (!is_texts(child))
				return refuse(c, child, k->key, "expected lists of names");
		} else if (!check_schema(c, child)) {
			return false;
		}
	}
	return true;
}

static bool check_type_word(struct check *c, const struct node *k)
{
	if (is_type(k))
		return true;
	for (const struct node *t = k->first; t; t = t->next)
		if (!is_type(t))
			return refuse(c, t, k->key, "no such type");
	return (k->kind == NODE_LIST && k->first) || refuse(c, k, k->key, "no such type");
}

static bool check_dialect(struct check *c, const struct node *k)
{
	return (k->kind == NODE_STRING && (strstr(k->text, "/draft/2020-12/schema") ||
					   strstr(k->text, "/draft-07/schema"))) ||
	       refuse(c, k, k->key, "expected the revision 2020-12 (or draft-07)");
}

static bool check_form(struct check *c, const struct node *k, enum form form)
{
	struct decimal d;

	switch (form) {
	case FORM_SCHEMA:
		return check_schema(c, k);
	case FORM_SCHEMAS:
	case FORM_SCHEMA_MAP:
	case FORM_PATTERN_MAP:
	case FORM_TEXTS_MAP:
		return check_children(c, k, form);
	case FORM_NUMBER:
	case FORM_POSITIVE:
	case FORM_COUNT:
		if (k->kind != NODE_NUMBER || !decimal_read(k->text, &d) ||
		    (form != FORM_NUMBER && d.negative) || (form == FORM_POSITIVE && !d.digits) ||
		    (form == FORM_COUNT && !decimal_is_integer(&d)))
			return refuse(c, k, k->key,
				      form == FORM_COUNT      ? "expected a whole number"
				      : form == FORM_POSITIVE ? "expected a number above zero"
							      : "expected a number");
		return true;
	case FORM_PATTERN:
		return k->kind == NODE_STRING ? check_pattern(c, k, k->text)
					      : refuse(c, k, k->key, "expected a pattern");
	case FORM_BOOL:
		return k->kind == NODE_BOOL || refuse(c, k, k->key, "expected true or false");
	case FORM_LIST:
		return k->kind == NODE_LIST || refuse(c, k, k->key, "expected a list");
	case FORM_TEXTS:
		return is_texts(k) || refuse(c, k, k->key, "expected a list of names");
	case FORM_TYPE:
		return check_type_word(c, k);
	case FORM_REF:
		return check_ref(c, k);
	case FORM_DIALECT:
		return check_dialect(c, k);
	case FORM_ANY:
		return true;
	case FORM_REFUSED:
		return refuse(c, k, k->key, "ward does not enforce this keyword and refuses it");
	}
	return false;
}

static bool unknown(struct check *c, const struct node *k)
{
	unsigned distance = UINT_MAX;
	const char *best = NULL;
	char why[160] = "no keyword of JSON Schema";

	if (!c->strict || strncmp(k->key, "x-", 2) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
		text_nearest(k->key, keywords[i].word, &best, &distance);
	if (best)
		snprintf(why, sizeof(why), "no keyword of JSON Schema; did you mean \"%s\"?", best);
	return refuse(c, k, k->key, why);
}

/* The tree is at most NODE_DEPTH_MAX deep, and a reference is followed once. */
static bool check_schema(struct check *c, const struct node *schema)
{
	if (schema->kind == NODE_BOOL)
		return true;
	if (schema->kind != NODE_MAP)
		return refuse(c, schema, schema->key, "expected a schema: a map, true or false");
	if (schema != c->root && node_get(schema, "$id") &&
	    node_get(schema, "$id")->kind == NODE_STRING)
		return refuse(c, schema, "$id", "only at the top: ward reads one document");
	for (const struct node *k = schema->first; k; k = k->next) {
		size_t i = 0;

		while (i < ARRAY_LEN(keywords) && strcmp(keywords[i].word, k->key) != 0)
			i++;
		if (i == ARRAY_LEN(keywords) ? !unknown(c, k) : !check_form(c, k, keywords[i].form))
			return false;
	}
	return true;
}

int json_schema_check(const struct node *schema, bool strict, struct schema_error *ret)
{
	struct check *c = calloc(1, sizeof(*c));
	bool sound;

	*ret = (struct schema_error){ 0 };
	if (!c) {
		snprintf(ret->message, sizeof(ret->message), "out of memory");
		return -EINVAL;
	}
	c->root = schema;
	c->error = ret;
	c->strict = strict;
	sound = check_schema(c, schema);
	free(c);
	return sound ? 0 : -EINVAL;
}
