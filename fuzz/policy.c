/*
 * Fuzzes the policy reader. The first byte chooses YAML or JSON, the rest is the document. Whatever
 * it is: no crash, no leak, errors exactly when it is refused and none that could act on a
 * terminal. What is accepted survives a copy, is not wider than itself, and each field's text reads
 * back as the same.
 */
#include <assert.h>
#include <string.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_line(const char *line)
{
	for (; *line; line++)
		assert((unsigned char)*line >= 0x20 && *line != 0x7f);
}

static bool is_ascii(const char *s)
{
	while (*s && (unsigned char)*s < 0x7f)
		s++;
	return !*s;
}

/* The text of a field, set again, is the same text. */
static void check_field(const struct policy *p, enum policy_field field)
{
	const char *path = policy_row(field)->path, *dot = strchr(path, '.');
	char *text = policy_text(p, field), *again;
	struct policy_errors errors = { 0 };
	struct buf doc = { 0 };
	struct ward_err e;
	struct policy q;

	assert(text);
	if (is_ascii(text)) {
		assert(policy_defaults(&q, &e) == 0);
		buf_printf(&doc, "%.*s%s%s: %s\n", dot ? (int)(dot - path) : 0, path,
			   dot ? ":\n  " : "", dot ? dot + 1 : path, text);
		assert(policy_read(&q, "f.yaml", (const uint8_t *)doc.data, doc.len, POLICY_FILE,
				   &errors) == 0);
		again = policy_text(&q, field);
		assert(again && strcmp(text, again) == 0);
		free(again);
		policy_clear(&q);
	}
	buf_free(&doc);
	strv_free(&errors.lines);
	free(text);
}

static void check_policy(const struct policy *p)
{
	struct strv lines = { 0 };
	struct policy copy;
	struct ward_err e;

	assert(policy_copy(&copy, p, &e) == 0);
	assert(policy_compare(p, &copy, &lines) == 0);
	assert(policy_unsupported(p, &lines) >= 0);
	for (unsigned i = 0; i < POLICY_FIELDS; i++)
		check_field(&copy, (enum policy_field)i);
	policy_clear(&copy);
	strv_free(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct policy_errors errors = { 0 };
	struct ward_err e;
	struct policy p;
	int r;

	if (!n || n > 65536)
		return 0;
	assert(policy_defaults(&p, &e) == 0);
	r = policy_read(&p, data[0] & 1 ? "f.yaml" : "f", data + 1, n - 1, POLICY_FILE, &errors);
	assert((r == 0) == (errors.lines.len == 0));
	for (size_t i = 0; i < errors.lines.len; i++)
		check_line(errors.lines.items[i]);
	if (r == 0)
		check_policy(&p);
	policy_clear(&p);
	strv_free(&errors.lines);
	return 0;
}
