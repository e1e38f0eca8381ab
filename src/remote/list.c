/*
 * What sandboxes there are at the server, and which of them words name. In: pages of the list. Out:
 * `ward --host URL ps`, in the form of `ward ps`: the template stands where the name does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "remote/http.h"

#define PAGES_MAX 1000

static bool is_id(const char *text)
{
	return strlen(text) == REMOTE_ID &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == REMOTE_ID;
}

static bool add_row(struct remote_boxes *b, size_t page, const struct value *row)
{
	const struct values *v = &b->pages[page];
	const char *id = value_text(v, row, "sandboxID");
	struct remote_box *items = reallocarray(b->items, b->len + 1, sizeof(*items));
	size_t *of = items ? reallocarray(b->of, b->len + 1, sizeof(*of)) : NULL;

	b->items = items ? items : b->items;
	b->of = of ? of : b->of;
	if (!items || !of)
		return false;
	if (!is_id(id))
		return true; /* nothing that a path of a request could be made from */
	memcpy(items[b->len].id, id, REMOTE_ID + 1);
	items[b->len].paused = strcmp(value_text(v, row, "state"), "paused") == 0;
	items[b->len].row = row;
	of[b->len++] = page;
	return true;
}

static int add_page(struct remote_boxes *b, const struct reply *a, struct ward_err *e)
{
	struct values *pages = reallocarray(b->pages, b->page_count + 1, sizeof(*pages));
	struct values *v;

	if (!pages)
		return ward_fail(e, ENOMEM, "out of memory");
	b->pages = pages;
	v = &pages[b->page_count];
	if (values_read((const uint8_t *)buf_text(&a->body), a->body.len, v) < 0) {
		ward_fail(e, EPROTO, "the server's answer is not JSON");
		return ward_remedy(e, "is it ward serve that answers there?");
	}
	b->page_count++;
	for (const struct value *row = value_first(v, v->items); row; row = value_next(v, row))
		if (!add_row(b, b->page_count - 1, row))
			return ward_fail(e, ENOMEM, "out of memory");
	return 0;
}

int remote_list(struct remote *r, struct remote_boxes *ret, struct ward_err *e)
{
	auto_buf path = { 0 };
	int result = 0;

	*ret = (struct remote_boxes){ 0 };
	buf_puts(&path, "/v2/sandboxes?limit=100");
	for (size_t i = 0; i < PAGES_MAX && result == 0; i++) {
		struct reply a = { 0 };

		result = http_call(r->http, "GET", buf_text(&path), NULL, NULL, &a, e);
		if (result == 0)
			result = add_page(ret, &a, e);
		buf_free(&a.body);
		if (!*a.next)
			break;
		buf_free(&path);
		buf_puts(&path, "/v2/sandboxes?limit=100&nextToken=");
		http_quote(&path, a.next);
	}
	if (result < 0)
		remote_boxes_free(ret);
	return result;
}

void remote_boxes_free(struct remote_boxes *b)
{
	for (size_t i = 0; i < b->page_count; i++)
		values_free(&b->pages[i]);
	free(b->pages);
	free(b->items);
	free(b->of);
	*b = (struct remote_boxes){ 0 };
}

const struct values *remote_page(const struct remote_boxes *b, size_t i)
{
	return &b->pages[b->of[i]];
}

static int find_in(const struct remote_boxes *b, const char *word, char ret[REMOTE_ID + 1],
		   struct ward_err *e)
{
	const struct remote_box *found = NULL;
	auto_buf shown = { 0 };

	text_escape(&shown, word);
	for (size_t i = 0; *word && i < b->len; i++)
		if (strncmp(b->items[i].id, word, strlen(word)) == 0) {
			if (found)
				return ward_fail(e, EINVAL, "%.80s is the beginning of several ids",
						 buf_text(&shown));
			found = &b->items[i];
		}
	if (!found) {
		ward_fail(e, ENOENT, "the server has no sandbox %.80s of yours", buf_text(&shown));
		return ward_remedy(e, "ward --host URL ps lists them");
	}
	memcpy(ret, found->id, REMOTE_ID + 1);
	return 0;
}

int remote_find(struct remote *r, const char *word, char ret[REMOTE_ID + 1], struct ward_err *e)
{
	struct remote_boxes all;
	int result;

	if (is_id(word)) { /* the server says whether there is one */
		memcpy(ret, word, REMOTE_ID + 1);
		return 0;
	}
	result = remote_list(r, &all, e);
	if (result == 0) {
		result = find_in(&all, word, ret, e);
		remote_boxes_free(&all);
	}
	return result;
}

int remote_choose(struct remote *r, struct strv *ret, struct ward_err *e)
{
	struct remote_boxes all = { 0 };
	int result = 0;

	if (!r->all && !r->word_count) {
		ward_fail(e, EINVAL, "no sandbox given");
		return ward_remedy(e, "ward --host URL ps lists them");
	}
	if (r->all)
		result = remote_list(r, &all, e);
	for (size_t i = 0; i < all.len; i++)
		strv_add(ret, all.items[i].id);
	remote_boxes_free(&all);
	for (size_t i = 0; result == 0 && i < r->word_count; i++) {
		char id[REMOTE_ID + 1];

		result = remote_find(r, r->words[i], id, e);
		if (result == 0 && !strv_has(ret, id))
			strv_add(ret, id);
	}
	return result == 0 && ret->failed ? ward_fail(e, ENOMEM, "out of memory") : result;
}

/* -- ps */

static void put_age(uint64_t since_ms, char *out, size_t n)
{
	struct timespec now;
	uint64_t s;

	clock_gettime(CLOCK_REALTIME, &now);
	s = (uint64_t)now.tv_sec > since_ms / 1000 ? (uint64_t)now.tv_sec - since_ms / 1000 : 0;
	snprintf(out, n, "%llu%c",
		 (unsigned long long)(s < 120      ? s
				      : s < 7200   ? s / 60
				      : s < 172800 ? s / 3600
						   : s / 86400),
		 s < 120      ? 's'
		 : s < 7200   ? 'm'
		 : s < 172800 ? 'h'
			      : 'd');
}

static void put_row(const struct remote_boxes *b, size_t i, struct buf *out)
{
	const struct values *v = remote_page(b, i);
	const struct value *row = b->items[i].row;
	auto_buf template = { 0 };
	char age[32];

	text_escape(&template, value_text(v, row, "templateID"));
	put_age(value_time_ms(v, row, "startedAt"), age, sizeof(age));
	buf_printf(out, "%-22s %-10.40s %-11s %-4s %-14s %s\n", b->items[i].id, buf_text(&template),
		   b->items[i].paused ? "paused" : "running", age, "-", "(idle)");
}

/* The fields of `ward ps --json`, and what a server's sandboxes have beside them. */
static void put_json_row(const struct remote_boxes *b, size_t i, struct json *j)
{
	const struct values *v = remote_page(b, i);
	const struct value *row = b->items[i].row, *metadata = value_get(v, row, "metadata");

	json_begin_object(j, NULL);
	json_string(j, "id", b->items[i].id);
	json_null(j, "name");
	json_string(j, "state", b->items[i].paused ? "paused" : "running");
	json_begin_array(j, "command");
	json_end_array(j);
	json_null(j, "workspace");
	json_bool(j, "foreground", false);
	json_null(j, "parent");
	json_uint(j, "started_ms", value_time_ms(v, row, "startedAt"));
	json_uint(j, "ends_ms", value_time_ms(v, row, "endAt"));
	json_string(j, "template", value_text(v, row, "templateID"));
	json_begin_object(j, "metadata");
	for (const struct value *at = value_first(v, metadata); at; at = value_next(v, at))
		json_string(j, value_key(v, at), value_own_text(v, at));
	json_end_object(j);
	json_end_object(j);
}

int remote_ps(struct remote *r)
{
	struct ward_err e = { 0 };
	struct remote_boxes all;
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (remote_list(r, &all, &e) < 0)
		return remote_fail(r, &e);
	if (r->json)
		json_begin_list(&j, "sandboxes");
	else if (!r->quiet)
		buf_printf(&out, "%-22s %-10s %-11s %-4s %-14s %s\n", "ID", "NAME", "STATE", "AGE",
			   "WORKSPACE", "COMMAND");
	for (size_t i = 0; i < all.len; i++)
		if (r->json)
			put_json_row(&all, i, &j);
		else if (r->quiet)
			buf_printf(&out, "%s\n", all.items[i].id);
		else
			put_row(&all, i, &out);
	if (r->json)
		json_end_list(&j);
	remote_boxes_free(&all);
	return say_out(&out, EXIT_FINE);
}
