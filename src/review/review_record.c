/*
 * The record of a review, as text. In: bytes of a file in the state directory. Out: struct
 * review_record, or -EINVAL. Pure functions. One line a fact, "KEY VALUE", values escaped as in the
 * records of runs; the last line says that it is whole.
 */
#include "review/review.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "guard/guard_internal.h"

#define HEADER "ward-review 1"

static void put_line(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "%s ", key);
	guard_escape(out, value);
	buf_puts(out, "\n");
}

static void put_list(struct buf *out, const char *key, const struct strv *v)
{
	for (size_t i = 0; i < v->len; i++)
		put_line(out, key, v->items[i]);
}

void review_record_write(const struct review_record *r, struct buf *out)
{
	buf_puts(out, HEADER "\n");
	put_line(out, "workspace", r->workspace);
	buf_printf(out, "device %" PRIu64 "\ninode %" PRIu64 "\nuid %" PRIu64 "\ngid %" PRIu64 "\n",
		   r->device, r->inode, r->owner_uid, r->owner_gid);
	for (size_t i = 0; i < r->start_count; i++)
		buf_printf(out, "start %" PRIu64 "\n", r->starts[i]);
	put_list(out, "hide", &r->hide);
	put_list(out, "hidden", &r->hidden);
	put_list(out, "rule", &r->rules);
	if (r->blocks)
		buf_printf(out, "blocks %" PRIu64 "\n", r->blocks);
	if (r->personal)
		buf_printf(out, "personal %" PRIu64 "\n", r->personal);
	buf_puts(out, "complete\n");
}

void review_record_clear(struct review_record *r)
{
	free(r->workspace);
	free(r->starts);
	strv_free(&r->hide);
	strv_free(&r->hidden);
	strv_free(&r->rules);
	*r = (struct review_record){ 0 };
}

static int read_number(const char *value, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!*value)
		return -EINVAL;
	for (; *value; value++) {
		if (*value < '0' || *value > '9' || __builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*value - '0'), &number))
			return -EINVAL;
	}
	*ret_number = number;
	return 0;
}

static int add_start(struct review_record *r, const char *value)
{
	uint64_t *grown;

	if (r->start_count >= REVIEW_STARTS_MAX)
		return -EINVAL;
	grown = reallocarray(r->starts, r->start_count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->starts = grown;
	return read_number(value, &r->starts[r->start_count++]);
}

static int read_line(struct review_record *r, const char *key, char *value)
{
	const struct {
		const char *key;
		uint64_t *number;
		struct strv *list;
	} rows[] = {
		{ "device", &r->device, NULL },     { "inode", &r->inode, NULL },
		{ "uid", &r->owner_uid, NULL },     { "gid", &r->owner_gid, NULL },
		{ "hide", NULL, &r->hide },         { "hidden", NULL, &r->hidden },
		{ "rule", NULL, &r->rules },        { "blocks", &r->blocks, NULL },
		{ "personal", &r->personal, NULL },
	};

	if (strcmp(key, "start") == 0)
		return add_start(r, value);
	guard_unescape(value);
	if (strcmp(key, "workspace") == 0) {
		free(r->workspace);
		r->workspace = strdup(value);
		return r->workspace ? (*value == '/' ? 0 : -EINVAL) : -ENOMEM;
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].key, key) != 0)
			continue;
		if (rows[i].number)
			return read_number(value, rows[i].number);
		strv_add(rows[i].list, value);
		return rows[i].list->failed ? -ENOMEM : 0;
	}
	return -EINVAL;
}

int review_record_read(const char *text, size_t n, struct review_record *ret_record)
{
	auto_free char *copy = n ? strndup(text, n) : NULL;
	char *rest = copy, *line = copy ? strsep(&rest, "\n") : NULL;
	struct review_record r = { 0 };
	bool complete = false;
	int status = line && strlen(copy) <= n && strcmp(line, HEADER) == 0 ? 0 : -EINVAL;

	while (status == 0 && !complete && (line = strsep(&rest, "\n"))) {
		const char *key = strsep(&line, " ");

		complete = strcmp(key, "complete") == 0 && !line && rest;
		if (!complete)
			status = line ? read_line(&r, key, line) : -EINVAL;
	}
	if (status == 0 && (!complete || !r.workspace || !r.start_count))
		status = -EINVAL;
	if (status < 0) {
		review_record_clear(&r);
		return status;
	}
	*ret_record = r;
	return 0;
}
