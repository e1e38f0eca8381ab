/*
 * A change of a text as people read it. In: two texts, which may be anybody's. Out: a unified diff,
 * escaped line by line. For what a person is about to accept: ward policy add, ward trust.
 */
#include "cli/difference.h"

#include <string.h>

#include "base/diff.h"
#include "base/text.h"

static int put_hunk(void *ctx, size_t old_line, size_t old_count, size_t new_line, size_t new_count)
{
	buf_printf(ctx, "@@ -%zu,%zu +%zu,%zu @@\n", old_line, old_count, new_line, new_count);
	return 0;
}

static int put_line(void *ctx, char sign, const char *text, size_t n, unused_arg bool whole)
{
	auto_free char *line = strndup(text, n);

	buf_add(ctx, &sign, 1);
	text_escape(ctx, line ? line : "");
	buf_puts(ctx, "\n");
	return 0;
}

int difference_put(const char *old_name, const struct buf *old, const char *new_name,
		   const struct buf *new, struct buf *out)
{
	static const struct diff_ops ops = { put_hunk, put_line };

	buf_puts(out, "--- ");
	text_escape(out, old_name);
	buf_puts(out, "\n+++ ");
	text_escape(out, new_name);
	buf_puts(out, "\n");
	return diff_texts(buf_text(old), old->len, buf_text(new), new->len, &ops, out, NULL);
}
