/*
 * Bodies and paths of requests to the code interpreter. In: bytes of a client. Out: code, names,
 * and variables as JSON anew. A field of another type makes the whole body bad; null is an absent
 * one. Run by the interpreter's process in the sandbox. Pure.
 */
#include "envd/interpreter_read.h"

#include <string.h>

static bool take_text(struct json_in *j, struct buf *out)
{
	if (json_in_peek(j) == 'n') {
		json_in_skip(j);
		return false;
	}
	if (json_in_peek(j) != '"')
		j->bad = true;
	else
		json_in_string(j, out);
	return true;
}

static void take_env(struct json_in *j, struct buf *out)
{
	struct json again = { .out = out };
	struct json_level l;
	const char *key;

	if (json_in_peek(j) == 'n') {
		json_in_skip(j);
		return;
	}
	if (json_in_peek(j) != '{') {
		j->bad = true;
		return;
	}
	out->len = 0;
	json_begin_object(&again, NULL);
	if (json_in_open(j, '{', &l))
		while (json_in_next(j, &l, &key)) {
			auto_free char *name = strdup(key);
			auto_buf value = { 0 };

			(void)take_text(j, &value);
			j->bad |= !name || !*name || strchr(name, '=');
			if (!j->bad)
				json_string(&again, name, buf_text(&value));
		}
	json_end_object(&again);
}

bool execution_read(const uint8_t *bytes, size_t n, struct execution *ret)
{
	bool fine, code = false;
	struct json_level l;
	struct json_in j;
	const char *key;

	*ret = (struct execution){ 0 };
	json_in_init(&j, bytes, n);
	if (json_in_open(&j, '{', &l))
		while (json_in_next(&j, &l, &key)) {
			if (strcmp(key, "code") == 0)
				code = take_text(&j, &ret->code);
			else if (strcmp(key, "context_id") == 0)
				ret->has_context = take_text(&j, &ret->context);
			else if (strcmp(key, "language") == 0)
				ret->has_language = take_text(&j, &ret->language);
			else if (strcmp(key, "env_vars") == 0)
				take_env(&j, &ret->env);
			else
				json_in_skip(&j);
		}
	fine = json_in_end(&j) && code && !ret->code.failed && !ret->env.failed;
	json_in_free(&j);
	return fine;
}

void execution_free(struct execution *e)
{
	buf_free(&e->code);
	buf_free(&e->context);
	buf_free(&e->language);
	buf_free(&e->env);
}

bool new_context_read(const uint8_t *bytes, size_t n, struct new_context *ret)
{
	struct json_level l;
	struct json_in j;
	const char *key;
	bool fine;

	*ret = (struct new_context){ 0 };
	json_in_init(&j, bytes, n);
	if (json_in_open(&j, '{', &l))
		while (json_in_next(&j, &l, &key)) {
			if (strcmp(key, "language") == 0)
				(void)take_text(&j, &ret->language);
			else if (strcmp(key, "cwd") == 0)
				(void)take_text(&j, &ret->cwd);
			else
				json_in_skip(&j);
		}
	fine = json_in_end(&j);
	json_in_free(&j);
	return fine;
}

void new_context_free(struct new_context *c)
{
	buf_free(&c->language);
	buf_free(&c->cwd);
}

bool context_path(const char *path, size_t n, char ret_id[64], bool *ret_restart)
{
	static const char prefix[] = "/contexts/", suffix[] = "/restart";
	size_t head = sizeof(prefix) - 1, tail = sizeof(suffix) - 1;

	if (n <= head || memcmp(path, prefix, head) != 0)
		return false;
	path += head;
	n -= head;
	*ret_restart = n > tail && memcmp(path + n - tail, suffix, tail) == 0;
	n -= *ret_restart ? tail : 0;
	if (!n || n >= 64 || memchr(path, '/', n))
		return false;
	memcpy(ret_id, path, n);
	ret_id[n] = '\0';
	return strlen(ret_id) == n;
}
