/*
 * The list of sandboxes. In: filters of a query. Out: a page of the client's own sandboxes, ordered
 * by their start and then by their id, and where the next page begins: the token of a page says
 * behind which sandbox it starts, so that one which comes or goes meanwhile moves nothing.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/control_access.h"
#include "envd/query.h"
#include "rules/json_in.h"

#define LIMIT_MAX 100
#define FILTER_MAX 16 /* fields of metadata in one query */

struct filter {
	struct buf metadata, state, template, order, token, after, limit;
	bool paused, running, ascending;
	int64_t started_after_ms;
	unsigned most;
};

static void filter_free(struct filter *f)
{
	buf_free(&f->metadata);
	buf_free(&f->state);
	buf_free(&f->template);
	buf_free(&f->order);
	buf_free(&f->token);
	buf_free(&f->after);
	buf_free(&f->limit);
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	while (*list) {
		size_t len = strcspn(list, ",");

		if (len == n && memcmp(list, word, n) == 0)
			return true;
		list += len + (list[len] == ',');
	}
	return false;
}

/* How many fields a filter of metadata has. */
static unsigned count_fields(const struct buf *form)
{
	auto_buf name = { 0 }, value = { 0 };
	unsigned n = 0;
	size_t at = 0;

	while (n <= FILTER_MAX && query_next(buf_text(form), form->len, &at, &name, &value) > 0)
		n++;
	return n;
}

/* False: the query cannot be understood. */
static bool read_filter(const struct conn *c, struct filter *f)
{
	const char *q = c->http.req.query.s;
	size_t n = c->http.req.query.n;
	struct tm t = { 0 };
	int bad = 0;

	bad |= query_get(q, n, "metadata", &f->metadata) < 0;
	bad |= query_get(q, n, "state", &f->state) < 0;
	bad |= query_get(q, n, "template", &f->template) < 0;
	bad |= query_get(q, n, "order", &f->order) < 0;
	bad |= query_get(q, n, "nextToken", &f->token) < 0;
	bad |= query_get(q, n, "startedAfter", &f->after) < 0;
	bad |= query_get(q, n, "limit", &f->limit) < 0;
	bad |= count_fields(&f->metadata) > FILTER_MAX;
	f->paused = !f->state.len || has_word(f->state.data, "paused");
	f->running = !f->state.len || has_word(f->state.data, "running");
	f->ascending = strcmp(buf_text(&f->order), "asc") == 0;
	if (f->order.len && !f->ascending && strcmp(f->order.data, "desc") != 0)
		bad = 1;
	f->most = f->limit.len ? (unsigned)strtoul(f->limit.data, NULL, 10) : LIMIT_MAX;
	if (f->most < 1 || f->most > LIMIT_MAX)
		bad = 1;
	if (f->after.len && !strptime(f->after.data, "%Y-%m-%dT%H:%M:%S", &t))
		bad = 1;
	f->started_after_ms = f->after.len ? (int64_t)timegm(&t) * 1000 : INT64_MIN;
	return !bad;
}

/* Whether a sandbox's metadata has what the form says; its fields are escaped once more. */
static bool metadata_has(const char *metadata, const char *name, const char *value)
{
	struct json_in j;
	struct json_level l;
	const char *key;
	bool found = false;

	json_in_init(&j, (const uint8_t *)metadata, strlen(metadata));
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key)) {
			bool same = strcmp(key, name) == 0;
			auto_buf text = { 0 };

			json_in_string(&j, &text);
			found |= same && strcmp(buf_text(&text), value) == 0;
		}
	}
	json_in_free(&j);
	return found;
}

static bool metadata_matches(const struct sandbox *s, const struct buf *form)
{
	auto_buf name = { 0 }, value = { 0 };
	size_t at = 0;

	if (!form->len)
		return true;
	while (query_next(form->data, form->len, &at, &name, &value) > 0) {
		auto_buf plain_name = { 0 }, plain_value = { 0 };

		if (!query_decode(buf_text(&name), name.len, false, &plain_name) ||
		    !query_decode(buf_text(&value), value.len, false, &plain_value) ||
		    !metadata_has(s->metadata ? s->metadata : "{}", buf_text(&plain_name),
				  buf_text(&plain_value)))
			return false;
	}
	return true;
}

static int compare(const struct sandbox *a, const struct sandbox *b)
{
	if (a->started_ms != b->started_ms)
		return a->started_ms < b->started_ms ? -1 : 1;
	return strcmp(a->id, b->id);
}

static int ascending(const void *a, const void *b)
{
	return compare(*(struct sandbox *const *)a, *(struct sandbox *const *)b);
}

static int descending(const void *a, const void *b)
{
	return -ascending(a, b);
}

/* The token: "MS-ID" of the last one of the page before. */
static bool is_behind(const struct sandbox *s, const struct filter *f)
{
	struct sandbox last = { 0 };
	long long ms;

	if (!f->token.len)
		return true;
	if (sscanf(f->token.data, "%lld-%20[a-z0-9]", &ms, last.id) != 2)
		return false;
	last.started_ms = ms;
	return f->ascending ? compare(s, &last) > 0 : compare(s, &last) < 0;
}

static bool is_wanted(struct conn *c, const struct sandbox *s, const struct filter *f)
{
	if (s->pool || s->state == SANDBOX_ENDING || s->state == SANDBOX_STARTING ||
	    !access_sees(c, s))
		return false;
	if (s->state == SANDBOX_PAUSED ? !f->paused : !f->running)
		return false;
	if (f->template.len && strcmp(f->template.data, s->template) != 0)
		return false;
	return s->started_ms >= f->started_after_ms && metadata_matches(s, &f->metadata) &&
	       is_behind(s, f);
}

static void show_page(struct conn *c, struct sandbox **all, size_t n, const struct filter *f)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };
	char more[128] = "";
	size_t shown = n < f->most ? n : f->most;

	json_begin_array(&j, NULL);
	for (size_t i = 0; i < shown; i++)
		show_detail(c, all[i], true, &j);
	json_end_array(&j);
	if (shown < n)
		snprintf(more, sizeof(more), "X-Next-Token: %lld-%s\r\n",
			 (long long)all[shown - 1]->started_ms, all[shown - 1]->id);
	conn_answer(c, 200, "application/json", &body, *more ? more : NULL);
}

void control_list(struct conn *c)
{
	struct sandbox **all = calloc(c->front->sandbox_count + 1, sizeof(struct sandbox *));
	struct filter f = { 0 };
	size_t n = 0;

	if (!all) {
		conn_refuse(c, 500, "out of memory");
	} else if (!read_filter(c, &f)) {
		conn_refuse(
			c, 400,
			"the query cannot be understood: state, metadata (16 fields), template, "
			"startedAfter, order, limit (1 to 100), nextToken");
	} else {
		for (struct sandbox *s = c->front->sandboxes; s; s = s->next)
			if (is_wanted(c, s, &f))
				all[n++] = s;
		qsort(all, n, sizeof(all[0]), f.ascending ? ascending : descending);
		show_page(c, all, n, &f);
	}
	filter_free(&f);
	free(all);
}
