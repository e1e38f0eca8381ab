/*
 * Fuzzes the editor of policy files. The first byte chooses YAML or JSON, the second the field;
 * then the value up to a NUL, and the document. Whatever it is: no crash, no leak. What is made can
 * be read, says in every other field what the old one said, and can be edited again to no effect;
 * of the old bytes nothing is gone where an entry was added to a list.
 */
#include <assert.h>
#include <string.h>

#include "policy/policy_edit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool read_document(struct policy *p, const char *name, const void *bytes, size_t n)
{
	struct policy_errors errors = { 0 };
	struct ward_err e;
	bool fine;

	assert(policy_defaults(p, &e) == 0);
	fine = policy_read(p, name, bytes, n, POLICY_FILE, &errors) == 0;
	strv_free(&errors.lines);
	return fine;
}

static bool is_within(const uint8_t *old, size_t n, const char *new, size_t m)
{
	size_t at = 0;

	for (size_t i = 0; i < m && at < n; i++)
		at += (uint8_t) new[i] == old[at];
	return at == n;
}

static void check(const char *name, const uint8_t *old, size_t n, enum policy_field field,
		  const struct buf *new)
{
	const char *type = policy_row(field)->type;
	struct policy a, b;

	assert(read_document(&a, name, old, n) &&
	       read_document(&b, name, new->data ? new->data : "", new->len));
	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		char *left = policy_text(&a, (enum policy_field)i),
		     *right = policy_text(&b, (enum policy_field)i);

		assert((strcmp(left, right) == 0) == (i != (unsigned)field));
		free(left);
		free(right);
	}
	if (memmem(old, n, "ull", 3) || memmem(old, n, "ULL", 3) || memchr(old, '~', n))
		type = ""; /* a null in the group's place goes */
	if (strcmp(type, "STRINGS") == 0 || strcmp(type, "RULES") == 0 ||
	    strcmp(type, "MOUNTS") == 0 || strcmp(type, "GRANTS") == 0 || strcmp(type, "SSH") == 0)
		assert(is_within(old, n, new->data, new->len));
	policy_clear(&a);
	policy_clear(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *name, *value;
	const uint8_t *nul;
	struct buf out = { 0 }, again = { 0 };
	struct ward_err e = { 0 };
	enum policy_field field;
	int r;

	if (n < 3 || n > 16384 || !(nul = memchr(data + 2, '\0', n - 2)))
		return 0;
	name = data[0] & 1 ? "f.yaml" : "f";
	field = (enum policy_field)(data[1] % POLICY_FIELDS);
	value = (const char *)data + 2;
	n -= (size_t)(nul + 1 - data);
	r = policy_edit(name, nul + 1, n, policy_row(field)->path, value, &out, &e);
	if (r == 0) {
		check(name, nul + 1, n, field, &out);
		assert(policy_edit(name, (const uint8_t *)out.data, out.len,
				   policy_row(field)->path, value, &again, &e) == 1);
	} else if (r == 1) {
		assert(out.len == n && memcmp(buf_text(&out), nul + 1, n) == 0);
	} else {
		assert(e.why[0]);
	}
	buf_free(&out);
	buf_free(&again);
	return 0;
}
