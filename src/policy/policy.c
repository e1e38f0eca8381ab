/*
 * The policy as a typed value. In: the table's defaults. Out: a filled struct policy, its copies
 * and the text of each field. Everything goes by the rows of tables/policy.def and how each type is
 * held, so a new field needs no code here. The defaults are read by a small splitter of our own,
 * not by the YAML reader: they are on the start path. Pure functions, no rights; -ENOMEM is the
 * only way to fail.
 */
#include "policy/policy.h"

#include <errno.h>
#include <string.h>

#include "policy/schema.h"
#include "policy_words.h"

/* "[a, b]" into a list. */
static void split_list(const char *text, struct strv *out)
{
	size_t n = strlen(text);

	if (n < 2 || *text != '[')
		return;
	for (const char *at = text + 1, *end = text + n - 1; at < end;) {
		size_t len;

		at += strspn(at, " ,");
		len = strcspn(at, ",]");
		if (len)
			strv_take(out, strndup(at, len));
		at += len + 1;
	}
}

static bool set_default(struct policy *p, const struct schema_row *row)
{
	const char *text = row->row.fallback;
	void *member = schema_member(p, row);

	switch (schema_held(row->type)) {
	case HELD_TEXT:
		if (strcmp(text, "null") == 0)
			return true;
		*(char **)member = strdup(text);
		return *(char **)member != NULL;
	case HELD_INDEX:
		return schema_word(row->row.values, text, strlen(text), member);
	case HELD_FLAG:
		*(bool *)member = strcmp(text, "true") == 0;
		return true;
	case HELD_NUMBER:
		return schema_number(row->type, row->row.values, text, member) == 0;
	case HELD_LIST:
		if (row->type == TYPE_TOOLCHAINS)
			strv_add(member, text);
		else
			split_list(text, member);
		return !((struct strv *)member)->failed;
	case HELD_MOUNTS:
		break; /* none by default */
	}
	return true;
}

int policy_defaults(struct policy *p, struct ward_err *e)
{
	*p = (struct policy){ 0 };
	for (unsigned i = 0; i < POLICY_FIELDS; i++)
		if (!set_default(p, schema_row((enum policy_field)i))) {
			policy_clear(p);
			return ward_fail(e, ENOMEM,
					 "cannot make the default policy: out of memory");
		}
	return 0;
}

void policy_mounts_free(struct policy_mounts *m)
{
	for (size_t i = 0; i < m->len; i++) {
		free(m->items[i].path);
		free(m->items[i].at);
	}
	free(m->items);
	*m = (struct policy_mounts){ 0 };
}

int policy_mounts_add(struct policy_mounts *m, const char *path, const char *at, bool writable)
{
	struct policy_mount *grown = reallocarray(m->items, m->len + 1, sizeof(*grown));
	struct policy_mount new = { .writable = writable };

	if (!grown)
		return -ENOMEM;
	m->items = grown;
	new.path = strdup(path);
	new.at = at ? strdup(at) : NULL;
	if (!new.path || (at && !new.at)) {
		free(new.path);
		free(new.at);
		return -ENOMEM;
	}
	m->items[m->len++] = new;
	return 0;
}

void policy_clear_field(struct policy *p, enum policy_field field)
{
	const struct schema_row *row = schema_row(field);
	void *member = schema_member(p, row);

	switch (schema_held(row->type)) {
	case HELD_TEXT:
		free(*(char **)member);
		*(char **)member = NULL;
		break;
	case HELD_LIST:
		strv_free(member);
		break;
	case HELD_MOUNTS:
		policy_mounts_free(member);
		break;
	case HELD_INDEX:
	case HELD_FLAG:
	case HELD_NUMBER:
		break;
	}
}

void policy_clear(struct policy *p)
{
	for (unsigned i = 0; i < POLICY_FIELDS; i++)
		policy_clear_field(p, (enum policy_field)i);
	*p = (struct policy){ 0 };
}

static bool copy_field(struct policy *dst, const struct policy *src, const struct schema_row *row)
{
	void *to = schema_member(dst, row);
	const void *from = schema_const_member(src, row);

	switch (schema_held(row->type)) {
	case HELD_TEXT: {
		const char *text = *(char *const *)from;

		*(char **)to = text ? strdup(text) : NULL;
		return !text || *(char **)to;
	}
	case HELD_INDEX:
		*(unsigned *)to = *(const unsigned *)from;
		return true;
	case HELD_FLAG:
		*(bool *)to = *(const bool *)from;
		return true;
	case HELD_NUMBER:
		*(uint64_t *)to = *(const uint64_t *)from;
		return true;
	case HELD_LIST: {
		const struct strv *list = from;

		for (size_t i = 0; i < list->len; i++)
			strv_add(to, list->items[i]);
		return !((struct strv *)to)->failed;
	}
	case HELD_MOUNTS: {
		const struct policy_mounts *m = from;

		for (size_t i = 0; i < m->len; i++)
			if (policy_mounts_add(to, m->items[i].path, m->items[i].at,
					      m->items[i].writable) < 0)
				return false;
		return true;
	}
	}
	return true;
}

int policy_copy(struct policy *dst, const struct policy *src, struct ward_err *e)
{
	*dst = (struct policy){ .file = src->file };
	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		dst->origin[i] = src->origin[i];
		if (!copy_field(dst, src, schema_row((enum policy_field)i))) {
			policy_clear(dst);
			return ward_fail(e, ENOMEM, "cannot copy the policy: out of memory");
		}
	}
	return 0;
}

const char *policy_enum_name(enum policy_field field, unsigned index)
{
	return index < ARRAY_LEN(enum_words[0]) ? enum_words[field][index] : "";
}
