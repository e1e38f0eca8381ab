/*
 * A tree as JSON text. In: a tree of either syntax. Out: one line. YAML does not say whether an
 * unquoted word is a number: what JSON would read as one is. Pure.
 */
#include <string.h>

#include "base/json.h"
#include "tools/decimal.h"
#include "tools/tools.h"

static bool is_json_number(const char *s)
{
	struct decimal ignored;

	if (*s == '-' ? s[1] == '0' && s[2] >= '0' && s[2] <= '9'
		      : *s == '0' && s[1] >= '0' && s[1] <= '9')
		return false;
	return decimal_read(s, &ignored);
}

/* The depth is bounded by NODE_DEPTH_MAX. */
void tools_json(const struct node *n, struct buf *out)
{
	bool map = n->kind == NODE_MAP;

	if (n->kind == NODE_NULL) {
		buf_puts(out, "null");
	} else if (n->kind == NODE_BOOL || n->kind == NODE_NUMBER ||
		   (n->kind == NODE_WORD && is_json_number(n->text))) {
		buf_puts(out, n->text);
	} else if (n->text) {
		json_quote(out, n->text);
	} else {
		buf_puts(out, map ? "{" : "[");
		for (const struct node *c = n->first; c; c = c->next) {
			if (c != n->first)
				buf_puts(out, ",");
			if (map) {
				json_quote(out, c->key);
				buf_puts(out, ":");
			}
			tools_json(c, out);
		}
		buf_puts(out, map ? "}" : "]");
	}
}
