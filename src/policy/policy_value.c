/*
 * Scalars of a policy. In: a node and what its row allows. Out: the value, or an error that names
 * the field, what was expected, what stands there and, where a word is misspelt, the nearest known
 * one. Nothing is guessed: yes is not true, "true" in quotes is not true, a number with an exponent
 * is no number. Pure functions, no rights.
 */
#include "policy/policy_value.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "policy/policy_grant.h"
#include "policy/policy_http.h"
#include "policy/policy_never.h"
#include "policy/policy_ssh.h"
#include "policy/policy_watch.h"

void value_key_path(char out[VALUE_PATH], const char *path, const char *key)
{
	if (snprintf(out, VALUE_PATH, "%s.%s", path, key) >= VALUE_PATH)
		out[VALUE_PATH - 1] = '\0'; /* cut: no known path is that long */
}

void value_index_path(char out[VALUE_PATH], const char *path, unsigned index)
{
	if (snprintf(out, VALUE_PATH, "%s[%u]", path, index) >= VALUE_PATH)
		out[VALUE_PATH - 1] = '\0';
}

void value_error(struct reader *r, const char *path, const struct node *n, const char *expected,
		 const char *hint)
{
	auto_buf found = { 0 };

	node_show(&found, n);
	reader_error(r, (struct place){ n->line, n->column }, hint, "%s: expected %s, found %s",
		     path, expected, buf_text(&found));
}

void value_unknown_key(struct reader *r, const char *path, const struct node *n,
		       const struct strv *known)
{
	unsigned distance = UINT_MAX;
	const char *best = NULL;
	auto_buf shown = { 0 }, hint = { 0 };

	for (size_t i = 0; i < known->len; i++)
		text_nearest(n->key, known->items[i], &best, &distance);
	if (best) {
		buf_printf(&hint, "did you mean \"%s\"?", best);
	} else {
		buf_puts(&hint, "known here:");
		for (size_t i = 0; i < known->len; i++)
			buf_printf(&hint, "%s %s", i ? "," : "", known->items[i]);
	}
	text_escape(&shown, n->key);
	reader_error(r, (struct place){ n->key_line, n->key_column }, buf_text(&hint),
		     "%s%s%.80s: unknown key", path, *path ? "." : "", buf_text(&shown));
}

static bool is_text(const struct node *n)
{
	return n->kind == NODE_WORD || n->kind == NODE_STRING;
}

bool value_string(struct reader *r, const char *path, const char *values, const struct node *n,
		  const char **ret)
{
	const char *expected, *hint = NULL;
	unsigned index;

	if (n->kind == NODE_NULL && schema_word(values, "null", 4, &index)) {
		*ret = NULL;
		return true;
	}
	if (!is_text(n)) {
		if (n->kind == NODE_BOOL || n->kind == NODE_NUMBER)
			hint = "put it in quotes if it is text";
		value_error(r, path, n, "text", hint);
		return false;
	}
	if (!value_has_shape(values, n->text, &expected, &hint)) {
		value_error(r, path, n, expected, hint);
		return false;
	}
	*ret = n->text;
	return true;
}

bool value_bool(struct reader *r, const char *path, const struct node *n, bool *ret)
{
	static const char *const yes[] = { "yes", "on", "y", "true", "1" };
	static const char *const no[] = { "no", "off", "n", "false", "0" };
	const char *hint = NULL;

	if (n->kind == NODE_BOOL) {
		*ret = *n->text == 't';
		return true;
	}
	for (size_t i = 0; n->text && i < ARRAY_LEN(yes); i++) {
		if (strcasecmp(n->text, yes[i]) == 0)
			hint = "write true, without quotes";
		if (strcasecmp(n->text, no[i]) == 0)
			hint = "write false, without quotes";
	}
	value_error(r, path, n, "true or false", hint);
	return false;
}

/* "a, b or c" */
static void join_words(const char *words, struct buf *out)
{
	const char *word;
	size_t len, next_len;

	for (unsigned i = 0; (word = schema_nth_word(words, i, &len)); i++) {
		if (i)
			buf_puts(out, schema_nth_word(words, i + 1, &next_len) ? ", " : " or ");
		buf_add(out, word, len);
	}
}

static void word_error(struct reader *r, const char *path, const char *words, const struct node *n)
{
	auto_buf expected = { 0 }, hint = { 0 };
	auto_strv known = { 0 };
	unsigned distance = UINT_MAX;
	const char *word, *best = NULL;
	size_t len;

	for (unsigned i = 0; (word = schema_nth_word(words, i, &len)); i++)
		strv_addf(&known, "%.*s", (int)len, word);
	for (size_t i = 0; is_text(n) && i < known.len; i++)
		text_nearest(n->text, known.items[i], &best, &distance);
	if (best)
		buf_printf(&hint, "did you mean \"%s\"?", best);
	join_words(words, &expected);
	value_error(r, path, n, buf_text(&expected), best ? buf_text(&hint) : NULL);
}

bool value_enum(struct reader *r, const char *path, const char *values, const struct node *n,
		unsigned *ret)
{
	if (is_text(n) && schema_word(values, n->text, strlen(n->text), ret))
		return true;
	word_error(r, path, values, n);
	return false;
}

void value_enums(struct reader *r, const char *path, const char *values, const struct node *n,
		 struct strv *ret)
{
	unsigned index;

	if (n->kind != NODE_LIST) {
		if (value_enum(r, path, values, n, &index))
			strv_add(ret, n->text);
		return;
	}
	if (!n->first)
		value_error(r, path, n, "at least one of its values", NULL);
	for (const struct node *c = n->first; c; c = c->next) {
		if (!value_enum(r, path, values, c, &index))
			continue;
		if (strv_has(ret, c->text))
			value_error(r, path, c, "each value once", NULL);
		else
			strv_add(ret, c->text);
	}
}

bool value_number(struct reader *r, const char *path, enum schema_type type, const char *values,
		  const struct node *n, uint64_t *ret)
{
	const char *text = n->kind == NODE_NULL ? "none" : n->text, *hint = NULL;
	auto_buf expected = { 0 };
	int result = -EINVAL;

	if (n->kind == NODE_NULL || n->kind == NODE_NUMBER || is_text(n))
		result = schema_number(type, values, text, ret);
	if (result == 0)
		return true;
	schema_expected(type, values, &expected);
	if (result == -ERANGE)
		hint = "the number is out of range";
	else if (text && strpbrk(text, " \t"))
		hint = "no spaces within";
	else if (text && *text == '0' && text[1] >= '0' && text[1] <= '9')
		hint = "no leading zeros";
	value_error(r, path, n, buf_text(&expected), hint);
	return false;
}

static bool is_env(const char *text)
{
	size_t n = strcspn(text, "=");
	bool starts = n && !(text[0] >= '0' && text[0] <= '9');

	if (n > 1 && text[n - 1] == '*' && !text[n])
		n--; /* PREFIX* */
	return starts &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") >= n;
}

/* NAME=ADDRESS:PORT */
static bool is_service(const char *text)
{
	size_t n = strcspn(text, "=");
	char host[256];
	unsigned port;

	return n && n <= 63 && text[n] &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") >= n &&
	       !host_parse(text + n + 1, true, host, &port) && port && !strpbrk(host, "*/");
}

/* A name that can stand in a path: no slash, no dot in front. */
static bool is_name(const char *text)
{
	size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-");

	return n <= 64 && !text[n] && *text != '.' && *text != '-' && *text != '+';
}

static bool is_cache(const char *text)
{
	static const char names[][8] = {
#define CACHE(name, part, path) name,
#include "caches.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0)
			return true;
	return false;
}

static bool is_toolchain(const char *text)
{
	static const char names[][8] = {
		"auto",
#define PRESET(name, help) name,
#include "toolchains.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0)
			return true;
	return false;
}

/* A host or a key of credentials.ssh. */
static bool ssh_has_shape(const char *kind, const char *text, const char **ret_expected,
			  const char **ret_hint)
{
	return kind[4] == 'h' ? ssh_host_is_sound(text, ret_expected, ret_hint)
			      : ssh_key_is_sound(text, ret_expected, ret_hint);
}

/* Shapes of items, each known where the item is read. */
static bool other_shape(const char *kind, const char *text, const char **ret_expected,
			const char **ret_hint)
{
	if (strcmp(kind, "canary_file") == 0) {
		*ret_expected = "~/PATH or an absolute path, without . and ..";
		return watch_is_canary_file(text);
	}
	if (strcmp(kind, "canary_remote") == 0) {
		*ret_expected =
			"NAME=https://HOST/PATH, with letters, digits and . _ - in the name";
		return watch_is_canary_remote(text);
	}
	if (strcmp(kind, "fingerprint") == 0) {
		*ret_expected = "the fingerprint of a gpg key, 40 hexadecimal digits";
		*ret_hint = "gpg --list-secret-keys shows it";
		return strlen(text) == 40 && strspn(text, "0123456789abcdefABCDEF") == 40;
	}
	if (strncmp(kind, "watch_", 6) == 0)
		return watch_has_shape(kind, text, ret_expected, ret_hint);
	if (strcmp(kind, "never") == 0)
		return never_has_shape(text, ret_expected, ret_hint);
	return strncmp(kind, "ssh_", 4) == 0 ? ssh_has_shape(kind, text, ret_expected, ret_hint)
					     : http_shape(kind, text, ret_expected, ret_hint);
}

bool value_has_shape(const char *kind, const char *text, const char **ret_expected,
		     const char **ret_hint)
{
	char host[256];
	unsigned port;

	*ret_hint = NULL;
	*ret_expected = "text that is not empty";
	if (!*text)
		return false;
	if (strcmp(kind, "env") == 0) {
		*ret_expected = "NAME, PREFIX* or NAME=VALUE";
		return is_env(text);
	}
	if (strcmp(kind, "pattern") == 0) {
		*ret_expected = "one gitignore pattern";
		*ret_hint = "one pattern per entry, without line breaks";
		return !strchr(text, '\n') && !strchr(text, '\r');
	}
	if (strcmp(kind, "service") == 0) {
		*ret_expected = "NAME=ADDRESS:PORT such as postgres=127.0.0.1:5432";
		return is_service(text);
	}
	if (strcmp(kind, "cache") == 0) {
		*ret_expected = "one of pip, uv, npm, yarn, pnpm, cargo, go, ccache, maven, "
				"gradle, bundle, deno and bun";
		return is_cache(text);
	}
	if (strcmp(kind, "toolchain") == 0) {
		*ret_expected = "auto or one of go, java, node, python, ruby, rust, bun, deno, "
				"mise and nix";
		return is_toolchain(text);
	}
	if (strcmp(kind, "name") == 0 || strcmp(kind, "program") == 0) {
		*ret_expected = *kind == 'n' ? "private or a name" : "the name of a program";
		*ret_hint =
			"letters, digits and . _ - +, at most 64, the first a letter, digit or _";
		return is_name(text);
	}
	if (strcmp(kind, "label") == 0) {
		*ret_expected = "a name";
		*ret_hint =
			"letters, digits and . _ - +, at most 64, the first a letter, digit or _";
		return is_name(text);
	}
	if (strcmp(kind, "layer") == 0) {
		*ret_expected = "the path of a policy file, or the name of a profile";
		return !strchr(text, '\n');
	}
	if (strcmp(kind, "variable") == 0) {
		*ret_expected = "the name of a variable";
		return is_env(text) && !strpbrk(text, "=*");
	}
	if (strcmp(kind, "source") == 0 || strcmp(kind, "header") == 0)
		return *kind == 's' ? grant_source_is_sound(text, ret_expected, ret_hint)
				    : grant_header_is_sound(text, ret_expected, ret_hint);
	if (strcmp(kind, "host") == 0) {
		*ret_expected = host_parse(text, false, host, &port);
		return !*ret_expected;
	}
	return other_shape(kind, text, ret_expected, ret_hint);
}

void value_words(struct reader *r, const char *path, const char *kind, const struct node *n,
		 struct strv *ret)
{
	const char *text;

	if (n->kind == NODE_LIST)
		value_strings(r, path, kind, n, ret);
	else if (value_string(r, path, kind, n, &text) && text)
		strv_add(ret, text);
}

void value_strings(struct reader *r, const char *path, const char *kind, const struct node *n,
		   struct strv *ret)
{
	char here[VALUE_PATH];
	unsigned i = 0;

	if (n->kind != NODE_LIST) {
		value_error(r, path, n, "a list",
			    n->kind == NODE_NULL ? "an empty list is []" : "put it in [ ]");
		return;
	}
	for (const struct node *c = n->first; c; c = c->next, i++) {
		const char *text, *expected, *hint;

		if (is_text(c) && value_has_shape(kind, c->text, &expected, &hint)) {
			strv_add(ret, c->text);
			continue;
		}
		value_index_path(here, path, i);
		if (value_string(r, here, kind, c, &text))
			strv_add(ret, text);
	}
}

const char *value_text_of(const struct node *map, const char *key)
{
	const struct node *n = node_get(map, key);

	return n && n->kind != NODE_LIST && n->kind != NODE_MAP ? n->text : NULL;
}

void value_refuse(struct reader *r, const char *path, const struct node *map, const char *key,
		  const char *why, const char *hint)
{
	const struct node *n = node_get(map, key);
	char here[VALUE_PATH];

	value_key_path(here, path, key);
	reader_error(r, (struct place){ n->line, n->column }, hint, "%s: %s", here, why);
}
