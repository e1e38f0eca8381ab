/*
 * Which policy allows more. In: two policies. Out: the fields in which the second is wider, by the
 * NARROW column of the table; and the values that this build does not do yet, by the column
 * "later". It decides whether a found policy file needs trust and whether an option needs --widen,
 * so what cannot be compared counts as wider. Pure functions, no rights.
 */
#include <errno.h>
#include <string.h>

#include "policy/schema.h"

static uint64_t resolve(const struct schema_row *row, uint64_t value, uint64_t memory_bytes)
{
	if (row->type != TYPE_MEMORY || value == POLICY_NONE || !(value & POLICY_PERCENT))
		return value;
	return (uint64_t)((unsigned __int128)memory_bytes * (value & ~POLICY_PERCENT) / 100);
}

static bool number_differs_in_kind(uint64_t a, uint64_t b)
{
	return a != POLICY_NONE && b != POLICY_NONE && ((a ^ b) & POLICY_PERCENT);
}

static bool number_widens(const struct schema_row *row, uint64_t old, uint64_t new,
			  uint64_t memory_bytes)
{
	if (row->type == TYPE_MEMORY && !memory_bytes && number_differs_in_kind(old, new))
		return true;
	if (row->type == TYPE_MEMORY && number_differs_in_kind(old, new)) {
		old = resolve(row, old, memory_bytes);
		new = resolve(row, new, memory_bytes);
	}
	return row->narrow == NARROW_HIGHER ? new < old : new > old;
}

/* Whether each entry of part is in whole. */
static bool contains_all(const struct strv *whole, const struct strv *part)
{
	for (size_t i = 0; i < part->len; i++)
		if (!strv_has(whole, part->items[i]))
			return false;
	return true;
}

static bool has_negation(const struct strv *list)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i][0] == '!')
			return true;
	return false;
}

/* Patterns: the last one that matches decides, so with a ! among them order counts. More of them is
 * narrower only if the old ones are all there in their order and no new one takes something out. */
static bool patterns_widen(const struct strv *old, const struct strv *new)
{
	size_t at = 0;

	if (!has_negation(old) && !has_negation(new))
		return !contains_all(new, old);
	for (size_t i = 0; i < new->len; i++) {
		if (at < old->len && strcmp(new->items[i], old->items[at]) == 0)
			at++;
		else if (new->items[i][0] == '!')
			return true;
	}
	return at < old->len;
}

static bool has_kind(const struct strv *list, const char *kind)
{
	for (size_t i = 0; i < list->len; i++)
		if (strncmp(list->items[i], kind, strlen(kind)) == 0)
			return true;
	return false;
}

/* Commands: a deny or ask that goes away widens; while there is an allow-list, a new allow or ask
 * does, and so does the end of the list. */
static bool commands_widen(const struct strv *old, const struct strv *new)
{
	bool listed = has_kind(old, "allow ");

	if (listed && !has_kind(new, "allow "))
		return true;
	for (size_t i = 0; i < old->len; i++)
		if (strncmp(old->items[i], "allow ", 6) != 0 && !strv_has(new, old->items[i]))
			return true;
	for (size_t i = 0; listed && i < new->len; i++)
		if (strncmp(new->items[i], "deny ", 5) != 0 && !strv_has(old, new->items[i]))
			return true;
	return false;
}

/* The entry without `ask`; NULL: it has none. A key stands between quotation marks of its own,
 * which no text in canonical JSON has. */
static char *without_ask(const char *rule)
{
	static const char ask[] = ",\"ask\":true";
	const char *at = strstr(rule, ask);
	char *plain = at ? strdup(rule) : NULL;

	if (plain)
		memmove(plain + (at - rule), at + strlen(ask), strlen(at + strlen(ask)) + 1);
	return plain;
}

/* Whether new is old, or old with `ask` added. */
static bool is_rule_or_asks(const char *old, const char *new)
{
	auto_free char *plain = without_ask(new);

	return strcmp(old, new) == 0 || (plain && strcmp(old, plain) == 0);
}

/* Rules: deny < ask < allow. A rule that asks may stand before one that allows the same host, so
 * with one among them order counts, and its end widens. */
static bool rules_widen(const struct strv *old, const struct strv *new)
{
	size_t at = 0;
	bool asks = false;

	for (size_t i = 0; i < old->len; i++)
		asks |= strstr(old->items[i], ",\"ask\":true") != NULL;
	for (size_t i = 0; i < new->len; i++) {
		size_t k = asks ? at : 0;

		while (k < old->len && !is_rule_or_asks(old->items[k], new->items[i])) {
			if (asks && strstr(old->items[k], ",\"ask\":true"))
				return true;
			k++;
		}
		if (k == old->len)
			return true;
		at = k + 1;
	}
	for (; asks && at < old->len; at++)
		if (strstr(old->items[at], ",\"ask\":true"))
			return true;
	return false;
}

/* Grants: one that asks is narrower than the same without. */
static bool grants_widen(const struct strv *old, const struct strv *new)
{
	for (size_t i = 0; i < new->len; i++) {
		size_t k = 0;

		while (k < old->len && !is_rule_or_asks(old->items[k], new->items[i]))
			k++;
		if (k == old->len)
			return true;
	}
	return false;
}

static bool list_widens(const struct schema_row *row, const struct strv *old,
			const struct strv *new)
{
	if (row->type == TYPE_COMMANDS)
		return commands_widen(old, new);
	if (row->type == TYPE_RULES)
		return rules_widen(old, new);
	if (row->type == TYPE_GRANTS)
		return grants_widen(old, new);
	if (row->type == TYPE_GPUS && strv_has(old, "all"))
		return false;
	if (row->narrow == NARROW_MORE)
		return patterns_widen(old, new);
	if (row->narrow == NARROW_SAME)
		return !contains_all(old, new) || !contains_all(new, old);
	return !contains_all(old, new);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool mount_is_covered(const struct policy_mounts *old, const struct policy_mount *m)
{
	for (size_t i = 0; i < old->len; i++) {
		const struct policy_mount *o = &old->items[i];

		if (same_text(o->path, m->path) && same_text(o->at, m->at) &&
		    (o->writable || !m->writable))
			return true;
	}
	return false;
}

static bool mounts_widen(const struct policy_mounts *old, const struct policy_mounts *new)
{
	for (size_t i = 0; i < new->len; i++)
		if (!mount_is_covered(old, &new->items[i]))
			return true;
	return false;
}

bool policy_field_widens(const struct policy *base, const struct policy *p, enum policy_field field,
			 uint64_t memory_bytes)
{
	const struct schema_row *row = schema_row(field);
	const void *old = schema_const_member(base, row), *new = schema_const_member(p, row);
	bool higher = row->narrow == NARROW_HIGHER;

	if (row->narrow == NARROW_ANY)
		return false;
	switch (schema_held(row->type)) {
	case HELD_TEXT: /* texts have no order: SAME */
		return !same_text(*(char *const *)old, *(char *const *)new);
	case HELD_INDEX:
		return higher ? *(const unsigned *)new < *(const unsigned *)old
			      : *(const unsigned *)new > *(const unsigned *)old;
	case HELD_FLAG:
		return *(const bool *)new != *(const bool *)old &&*(const bool *)new != higher;
	case HELD_NUMBER:
		return number_widens(row, *(const uint64_t *)old, *(const uint64_t *)new,
				     memory_bytes);
	case HELD_LIST:
		return list_widens(row, old, new);
	case HELD_MOUNTS:
		return mounts_widen(old, new);
	}
	return true;
}

int policy_compare_on(const struct policy *base, const struct policy *p, uint64_t memory_bytes,
		      struct strv *wider)
{
	int count = 0;

	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		enum policy_field field = (enum policy_field)i;
		auto_free char *line = NULL;

		if (!policy_field_widens(base, p, field, memory_bytes))
			continue;
		line = policy_difference(base, p, field);
		if (!line)
			return -ENOMEM;
		strv_add(wider, line);
		count++;
	}
	return wider->failed ? -ENOMEM : count;
}

int policy_compare(const struct policy *base, const struct policy *p, struct strv *wider)
{
	return policy_compare_on(base, p, 0, wider);
}

/* Whether the row says of this one value that it comes later. */
static bool value_is_later(const struct schema_row *row, const char *text)
{
	unsigned index;

	return schema_word(row->row.later, text, strlen(text), &index);
}

/* A list is in order of preference: one entry that this build has will do. */
static void check_entries(const struct schema_row *row, const struct strv *list, struct strv *lines,
			  int *count)
{
	for (size_t i = 0; i < list->len; i++)
		if (!value_is_later(row, list->items[i]))
			return;
	for (size_t i = 0; i < list->len; i++)
		if (value_is_later(row, list->items[i])) {
			strv_addf(lines, "%s: %s is not yet supported by this build", row->row.path,
				  list->items[i]);
			++*count;
		}
}

int policy_unsupported(const struct policy *p, struct strv *lines)
{
	int count = 0;

	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		const struct schema_row *row = schema_row((enum policy_field)i);
		auto_free char *text = NULL;

		if (!*row->row.later || p->origin[i].source == POLICY_DEFAULT)
			continue;
		if (row->type == TYPE_ENUMS) {
			check_entries(row, schema_const_member(p, row), lines, &count);
			continue;
		}
		text = policy_text(p, (enum policy_field)i);
		if (!text)
			return -ENOMEM;
		if (strcmp(row->row.later, "*") == 0 ? strcmp(text, row->row.fallback) == 0
						     : !value_is_later(row, text))
			continue;
		strv_addf(lines, "%s: %s is not yet supported by this build", row->row.path, text);
		count++;
	}
	return lines->failed ? -ENOMEM : count;
}
