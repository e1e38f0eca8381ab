/*
 * Fields as text. In: a typed policy. Out: each field's value as a document would hold it, on one
 * line, such that reading it gives the same value. For plan, messages and the comparison. Pure
 * functions, no rights.
 */
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "policy/policy_value.h"

/* Words that a YAML reader may take for something else than a string. */
static bool is_reserved(const char *s)
{
	static const char *const words[] = { "null", "true", "false", "yes", "no",
					     "on",   "off",  "y",     "n" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(s, words[i]) == 0)
			return true;
	return false;
}

/* Plain where every reader takes it for the same string, else quoted. */
void policy_scalar_text(struct buf *out, const char *s)
{
	static const char safe[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=+@*";
	size_t n = strlen(s);
	bool starts_well = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_' ||
			   *s == '/' || strcmp(s, ".") == 0 || strncmp(s, "./", 2) == 0;

	if (n && starts_well && strspn(s, safe) == n && !is_reserved(s))
		buf_add(out, s, n);
	else
		json_quote(out, s);
}

static void list_text(const struct strv *list, bool verbatim, struct buf *out)
{
	buf_puts(out, "[");
	for (size_t i = 0; i < list->len; i++) {
		buf_puts(out, i ? ", " : "");
		if (verbatim)
			buf_puts(out, list->items[i]);
		else
			policy_scalar_text(out, list->items[i]);
	}
	buf_puts(out, "]");
}

static void mounts_text(const struct policy_mounts *mounts, struct buf *out)
{
	buf_puts(out, "[");
	for (size_t i = 0; i < mounts->len; i++) {
		const struct policy_mount *m = &mounts->items[i];

		buf_puts(out, i ? ", {path: " : "{path: ");
		policy_scalar_text(out, m->path);
		buf_puts(out, m->writable ? ", mode: read_write" : ", mode: read_only");
		if (m->at) {
			buf_puts(out, ", at: ");
			policy_scalar_text(out, m->at);
		}
		buf_puts(out, "}");
	}
	buf_puts(out, "]");
}

static void commands_text(const struct strv *list, struct buf *out)
{
	static const char *const kinds[] = { "allow", "ask", "deny" };
	bool any = false;

	buf_puts(out, "{");
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		size_t n = strlen(kinds[k]);
		bool open = false;

		for (size_t i = 0; i < list->len; i++) {
			if (strncmp(list->items[i], kinds[k], n) != 0 || list->items[i][n] != ' ')
				continue;
			if (open)
				buf_puts(out, ", ");
			else
				buf_printf(out, "%s%s: [", any ? ", " : "", kinds[k]);
			any = open = true;
			policy_scalar_text(out, list->items[i] + n + 1);
		}
		buf_puts(out, open ? "]" : "");
	}
	buf_puts(out, "}");
}

/* A pair of ports is quoted: some readers of YAML take it for a number to the base 60. */
static void ports_text(const struct strv *list, struct buf *out)
{
	for (size_t i = 0; i < list->len; i++) {
		buf_puts(out, i ? ", " : "[");
		if (strchr(list->items[i], ':'))
			json_quote(out, list->items[i]);
		else
			buf_puts(out, list->items[i]);
	}
	buf_puts(out, list->len ? "]" : "deny_all");
}

static void list_field_text(const struct schema_row *row, const struct strv *list, struct buf *out)
{
	if (row->type == TYPE_COMMANDS)
		commands_text(list, out);
	else if (row->type == TYPE_INGRESS)
		ports_text(list, out);
	else if (row->type == TYPE_TOOLCHAINS && list->len < 2 &&
		 (!list->len || strv_has(list, "auto")))
		buf_puts(out, list->len ? "auto" : "none");
	else if (row->type == TYPE_GPUS && (!list->len || strv_has(list, "all")))
		buf_puts(out, list->len ? "all" : "none");
	else
		list_text(list,
			  row->type != TYPE_STRINGS && row->type != TYPE_ENUMS &&
				  row->type != TYPE_TOOLCHAINS,
			  out);
}

/* A URL without the password that it may have: what is shown ends up in logs. */
static void shown_text(struct buf *out, const char *text)
{
	const char *rest = strstr(text, "://"), *at = rest ? strrchr(rest, '@') : NULL;
	const char *colon = at ? memchr(rest + 3, ':', (size_t)(at - rest - 3)) : NULL;
	auto_buf shown = { 0 };

	if (!colon) {
		policy_scalar_text(out, text);
		return;
	}
	buf_printf(&shown, "%.*s:***%s", (int)(colon - text), text, at);
	policy_scalar_text(out, buf_text(&shown));
	out->failed |= shown.failed;
}

/* A rule that says no more than host and port, as a person writes it: {"host":"A","ports":[80]} is
 * A:80. */
static void item_text(const struct schema_row *row, const char *item, struct buf *out)
{
	static const char host[] = "{\"host\":\"", ports[] = "\",\"ports\":[";
	const char *from = item + sizeof(host) - 1, *end, *digits;
	size_t n;

	if (row->type == TYPE_RULES && strncmp(item, host, sizeof(host) - 1) == 0 &&
	    (end = strstr(from, ports)) && !memchr(from, '\\', (size_t)(end - from))) {
		digits = end + sizeof(ports) - 1;
		n = strspn(digits, "0123456789");
		if (n && strcmp(digits + n, "]}") == 0) {
			buf_printf(out,
				   memchr(from, ':', (size_t)(end - from)) ? "[%.*s]:%.*s"
									   : "%.*s:%.*s",
				   (int)(end - from), from, (int)n, digits);
			return;
		}
	}
	if (row->type == TYPE_RULES)
		buf_puts(out, item);
	else
		policy_scalar_text(out, item);
}

/* " adds A, B": the items of `in` that `but` does not have. */
static void put_others(const struct schema_row *row, const char *verb, const struct strv *in,
		       const struct strv *but, struct buf *out)
{
	const char *before = verb;

	for (size_t i = 0; i < in->len; i++) {
		if (strv_has(but, in->items[i]))
			continue;
		buf_puts(out, before);
		item_text(row, in->items[i], out);
		before = ", ";
	}
}

char *policy_difference(const struct policy *from, const struct policy *to, enum policy_field field)
{
	const struct schema_row *row = schema_row(field);
	auto_free char *old = policy_text(from, field), *new = policy_text(to, field);
	auto_buf out = { 0 };

	if (!old || !new)
		return NULL;
	buf_printf(&out, "%s: ", row->row.path);
	if (row->type == TYPE_RULES || row->type == TYPE_STRINGS || row->type == TYPE_ENUMS) {
		const struct strv *a = schema_const_member(from, row),
				  *b = schema_const_member(to, row);
		size_t begin = out.len;

		put_others(row, "adds ", b, a, &out);
		put_others(row, out.len > begin ? "; drops " : "drops ", a, b, &out);
		if (out.len > begin)
			return out.failed ? NULL : buf_take(&out);
	}
	buf_printf(&out, "%s -> %s", old, new);
	return out.failed ? NULL : buf_take(&out);
}

char *policy_text(const struct policy *p, enum policy_field field)
{
	const struct schema_row *row = schema_row(field);
	const void *member = schema_const_member(p, row);
	auto_buf out = { 0 };

	switch (schema_held(row->type)) {
	case HELD_TEXT: {
		const char *text = *(char *const *)member;

		if (text)
			shown_text(&out, text);
		else
			buf_puts(&out, "null");
		break;
	}
	case HELD_INDEX:
		buf_puts(&out, policy_enum_name(field, *(const unsigned *)member));
		break;
	case HELD_FLAG:
		buf_puts(&out, *(const bool *)member ? "true" : "false");
		break;
	case HELD_NUMBER:
		schema_number_text(row->type, *(const uint64_t *)member, &out);
		break;
	case HELD_LIST:
		list_field_text(row, member, &out);
		break;
	case HELD_MOUNTS:
		mounts_text(member, &out);
		break;
	}
	return buf_take(&out);
}

void policy_document(const struct policy *p,
		     bool (*leaves_out)(const char *path, const char *fallback, const char *text),
		     struct buf *out)
{
	const char *group = "";
	size_t group_len = 0;

	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		enum policy_field field = (enum policy_field)i;
		const struct policy_row *row = policy_row(field);
		const char *dot = strchr(row->path, '.');
		size_t n = dot ? (size_t)(dot - row->path) : 0;
		auto_free char *text = policy_text(p, field);

		out->failed |= !text;
		if (!text || strcmp(row->path, "profile") == 0 ||
		    strcmp(row->path, "extends") == 0 ||
		    (leaves_out && leaves_out(row->path, row->fallback, text)))
			continue;
		if (n && (n != group_len || strncmp(group, row->path, n) != 0))
			buf_printf(out, "%.*s:\n", (int)n, row->path);
		group = row->path;
		group_len = n;
		buf_printf(out, "%s%s: %s\n", n ? "  " : "", dot ? dot + 1 : row->path, text);
	}
}
