/*
 * Fuzzes taking parts out of a document. The first byte chooses YAML or JSON, then the ways to the
 * parts, a line each, up to a NUL, and the document. Whatever it is: no crash, no leak; what comes
 * out can be read, and is longer by no more than the brackets that stand for what is empty.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/cut.h"
#include "policy/policy_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_ways(const char *text, struct strv *ret)
{
	while (*text && ret->len < 64) {
		size_t n = strcspn(text, "\n");

		strv_addf(ret, "%.*s", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static void check_reads(const char *name, const struct buf *out)
{
	struct policy_errors errors = { 0 };
	struct reader r = { .name = name, .errors = &errors };
	const uint8_t *bytes = (const uint8_t *)buf_text(out);
	auto_node root = policy_is_json(name, bytes, out->len) ? json_read(&r, bytes, out->len)
							       : yaml_read(&r, bytes, out->len);

	assert(root && !r.count);
	strv_free(&errors.lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct strv ways = { 0 }, none = { 0 };
	struct buf out = { 0 }, again = { 0 };
	struct ward_err e = { 0 };
	const uint8_t *nul;
	const char *name;
	int r;

	if (n < 2 || n > 16384 || !(nul = memchr(data + 1, '\0', n - 1)))
		return 0;
	name = data[0] & 1 ? "f.yaml" : "f.json";
	read_ways((const char *)data + 1, &ways);
	n -= (size_t)(nul + 1 - data);
	r = document_cut(name, nul + 1, n, &ways, &out, &e);
	if (r < 0) {
		assert(e.why[0] && !out.len);
	} else if (!ways.len) {
		assert(out.len == n && memcmp(buf_text(&out), nul + 1, n) == 0);
	} else {
		check_reads(name, &out);
		assert(out.len <= n + 3 * ways.len);
		assert(document_cut(name, (const uint8_t *)buf_text(&out), out.len, &none, &again,
				    &e) == 0);
	}
	strv_free(&ways);
	buf_free(&out);
	buf_free(&again);
	return 0;
}
