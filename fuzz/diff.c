/* Fuzzer of lib/diff: the hunks, applied to the old text, give the new one. The input is split in
 * two at its first zero byte. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/diff.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct rebuild {
	struct buf made;
	const char *old;
	size_t old_len, at, line;
};

static void copy_line(struct rebuild *r)
{
	const char *newline = memchr(r->old + r->at, '\n', r->old_len - r->at);
	size_t n = newline ? (size_t)(newline - (r->old + r->at)) + 1 : r->old_len - r->at;

	buf_add(&r->made, r->old + r->at, n);
	r->at += n;
	r->line++;
}

static int on_hunk(void *ctx, size_t old_line, size_t old_count, size_t new_line unused_arg,
		   size_t new_count unused_arg)
{
	struct rebuild *r = ctx;

	while (r->line < old_line + (old_count ? 0 : 1) && r->at < r->old_len)
		copy_line(r);
	return 0;
}

static int on_line(void *ctx, char sign, const char *text, size_t n, bool whole)
{
	struct rebuild *r = ctx;

	if (sign != '+') {
		if (n > r->old_len - r->at || (n && memcmp(r->old + r->at, text, n) != 0))
			abort();
		r->at += n + whole;
		r->line++;
	}
	if (sign != '-') {
		buf_add(&r->made, text, n);
		buf_add(&r->made, "\n", whole);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const struct diff_ops ops = { on_hunk, on_line };
	const char *old = (const char *)bytes, *zero = n ? memchr(bytes, 0, n) : NULL;
	size_t old_len = zero ? (size_t)(zero - old) : n, new_len = zero ? n - old_len - 1 : 0;
	struct rebuild r = { .old = old, .old_len = old_len, .line = 1 };
	const char *new_text = zero ? zero + 1 : "";

	if (diff_texts(old, old_len, new_text, new_len, &ops, &r, NULL) < 0)
		return 0;
	while (r.at < old_len)
		copy_line(&r);
	if (r.made.len != new_len || (new_len && memcmp(r.made.data, new_text, new_len) != 0))
		abort();
	buf_free(&r.made);
	return 0;
}
