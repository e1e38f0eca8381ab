/*
 * Definitions of tools in one form, and their digests (mcp_pin.h). In: trees of what a server
 * lists. Out: text in which equal definitions are equal: keys in order, no space. Pure.
 */
#include "tools/mcp_pin.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sha256.h"

static int compare_keys(const void *a, const void *b)
{
	return strcmp((*(const struct node *const *)a)->key, (*(const struct node *const *)b)->key);
}

void mcp_canonical(const struct node *n, const char *skip, struct buf *out)
{
	const struct node **sorted;
	size_t count = 0;
	bool comma = false;

	if (n->kind == NODE_LIST) {
		buf_puts(out, "[");
		for (const struct node *c = n->first; c; c = c->next) {
			buf_puts(out, c == n->first ? "" : ",");
			mcp_canonical(c, NULL, out);
		}
		buf_puts(out, "]");
		return;
	}
	if (n->kind != NODE_MAP) {
		tools_json(n, out);
		return;
	}
	sorted = calloc(n->count + 1, sizeof(struct node *));
	for (const struct node *c = sorted ? n->first : NULL; c; c = c->next)
		sorted[count++] = c;
	if (sorted)
		qsort(sorted, count, sizeof(*sorted), compare_keys);
	else
		out->failed = true;
	buf_puts(out, "{");
	for (size_t i = 0; i < count; i++) {
		if (skip && strcmp(sorted[i]->key, skip) == 0)
			continue;
		buf_puts(out, comma ? "," : "");
		json_quote(out, sorted[i]->key);
		buf_puts(out, ":");
		mcp_canonical(sorted[i], NULL, out);
		comma = true;
	}
	buf_puts(out, "}");
	free(sorted);
}

void mcp_pin(const struct node *tools, char ret[72])
{
	auto_strv lines = { 0 };
	struct sha256 h;
	char hex[SHA256_HEX];

	for (const struct node *t = tools->first; t; t = t->next) {
		auto_buf line = { 0 };

		mcp_canonical(t, "_meta", &line);
		strv_take(&lines, buf_take(&line));
	}
	strv_sort(&lines);
	sha256_begin(&h);
	for (size_t i = 0; i < lines.len; i++) {
		sha256_add(&h, lines.items[i], strlen(lines.items[i]));
		sha256_add(&h, "\n", 1);
	}
	sha256_end_hex(&h, hex);
	snprintf(ret, 72, "sha256:%s", lines.failed ? "" : hex);
}
