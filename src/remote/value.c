/*
 * Values (value.h). In: bytes of a server's answer. Out: the array; strings without their escapes,
 * each with a NUL behind it. Pure.
 */
#include "remote/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rules/json_in.h"

static size_t keep(struct values *v, const char *text, size_t n)
{
	size_t at = v->text.len;

	buf_add(&v->text, text, n);
	buf_add(&v->text, "", 1);
	return at;
}

/* A new value's place; 0: there is no room, but for the first. */
static size_t add(struct values *v, const char *key)
{
	if (v->len == v->cap) {
		size_t cap = v->cap ? 2 * v->cap : 64;
		struct value *grown =
			v->len < VALUES_MAX ? reallocarray(v->items, cap, sizeof(*grown)) : NULL;

		if (!grown)
			return 0;
		v->items = grown;
		v->cap = cap;
	}
	v->items[v->len] = (struct value){ .key = keep(v, key, strlen(key)) };
	return v->len++;
}

static bool fill(struct values *v, struct json_in *j, size_t at);

static bool fill_members(struct values *v, struct json_in *j, char open, size_t at)
{
	struct json_level level;
	const char *key = "";
	size_t last = 0;

	if (!json_in_open(j, open, &level))
		return false;
	while (json_in_next(j, &level, &key)) {
		size_t child = add(v, open == '{' ? key : "");

		if (!child)
			return false;
		if (last)
			v->items[last].next = child;
		else
			v->items[at].child = child;
		last = child;
		if (!fill(v, j, child))
			return false;
	}
	return !j->bad;
}

/* Recursion is bounded by JSON_IN_DEPTH. */
static bool fill(struct values *v, struct json_in *j, size_t at)
{
	char first = json_in_peek(j);

	if (first == '{' || first == '[') {
		v->items[at].kind = first == '{' ? VALUE_OBJECT : VALUE_LIST;
		return fill_members(v, j, first, at);
	}
	if (first == '"') {
		auto_buf text = { 0 };

		json_in_string(j, &text);
		v->items[at].kind = VALUE_TEXT;
		v->items[at].text = keep(v, buf_text(&text), text.len);
		return !j->bad && !text.failed;
	}
	if (first) {
		const uint8_t *begin = j->at;

		json_in_skip(j);
		v->items[at].kind = VALUE_PLAIN;
		v->items[at].text = keep(v, (const char *)begin, (size_t)(j->at - begin));
	}
	return first && !j->bad;
}

int values_read(const uint8_t *bytes, size_t n, struct values *ret)
{
	struct json_in j;
	bool fine;

	*ret = (struct values){ 0 };
	json_in_init(&j, bytes, n);
	(void)add(ret, "");
	fine = ret->len == 1 && fill(ret, &j, 0) && json_in_end(&j);
	json_in_free(&j);
	if (fine && !ret->text.failed)
		return 0;
	values_free(ret);
	return -EINVAL;
}

void values_free(struct values *v)
{
	free(v->items);
	buf_free(&v->text);
	*v = (struct values){ 0 };
}

static const char *text_at(const struct values *v, size_t at)
{
	return v->text.data + at;
}

const struct value *value_first(const struct values *v, const struct value *of)
{
	return of && of->child ? &v->items[of->child] : NULL;
}

const struct value *value_next(const struct values *v, const struct value *of)
{
	return of && of->next ? &v->items[of->next] : NULL;
}

const struct value *value_get(const struct values *v, const struct value *of, const char *key)
{
	if (!of || of->kind != VALUE_OBJECT)
		return NULL;
	for (const struct value *at = value_first(v, of); at; at = value_next(v, at))
		if (strcmp(text_at(v, at->key), key) == 0)
			return at;
	return NULL;
}

const char *value_key(const struct values *v, const struct value *of)
{
	return text_at(v, of->key);
}

const char *value_own_text(const struct values *v, const struct value *of)
{
	return of && (of->kind == VALUE_TEXT || of->kind == VALUE_PLAIN) ? text_at(v, of->text)
									 : "";
}

const char *value_text(const struct values *v, const struct value *of, const char *key)
{
	const struct value *found = value_get(v, of, key);

	return found && found->kind == VALUE_TEXT ? text_at(v, found->text) : "";
}

uint64_t value_uint(const struct values *v, const struct value *of, const char *key)
{
	const char *text = value_own_text(v, value_get(v, of, key));

	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

bool value_bool(const struct values *v, const struct value *of, const char *key)
{
	const struct value *found = value_get(v, of, key);

	return found && found->kind == VALUE_PLAIN && strcmp(text_at(v, found->text), "true") == 0;
}

uint64_t value_time_ms(const struct values *v, const struct value *of, const char *key)
{
	const char *text = value_text(v, of, key);
	struct tm t = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);
	unsigned ms = 0, digits = 0;
	time_t seconds;

	if (!end || t.tm_year < 70 || t.tm_year > 8000)
		return 0;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++)
			if (digits++ < 3)
				ms = 10 * ms + (unsigned)(*end - '0');
	if (strcmp(end, "Z") != 0)
		return 0;
	for (; digits < 3; digits++)
		ms *= 10;
	seconds = timegm(&t);
	return seconds < 0 ? 0 : (uint64_t)seconds * 1000 + ms;
}
