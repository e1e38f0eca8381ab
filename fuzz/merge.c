/* Fuzzer of base/merge: one side unchanged gives the other, both the same give that, and swapping
 * the sides changes no clean result. The input is split in three at its zero bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct merge_text next(const char **at, const char *end)
{
	const char *start = *at,
		   *zero = start < end ? memchr(start, 0, (size_t)(end - start)) : NULL;
	const char *stop = zero ? zero : end;

	*at = zero ? zero + 1 : end;
	return (struct merge_text){ start, (size_t)(stop - start), "x" };
}

static void must_be(const struct merge_text *base, const struct merge_text *ours,
		    const struct merge_text *theirs, const struct merge_text *wanted)
{
	struct buf out = { 0 };
	size_t conflicts = 0;

	if (merge_texts(base, ours, theirs, &out, &conflicts) == 0 &&
	    (conflicts || out.len != wanted->len ||
	     (out.len && memcmp(out.data, wanted->text, out.len) != 0)))
		abort();
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *at = n ? (const char *)bytes : "", *end = at + n;
	struct merge_text base = next(&at, end), ours = next(&at, end), theirs = next(&at, end);
	struct buf one = { 0 }, other = { 0 };
	size_t a = 0, b = 0;

	must_be(&base, &ours, &base, &ours);
	must_be(&base, &base, &theirs, &theirs);
	must_be(&base, &ours, &ours, &ours);
	if (merge_texts(&base, &ours, &theirs, &one, &a) == 0 &&
	    merge_texts(&base, &theirs, &ours, &other, &b) == 0 &&
	    (a != b || (!a && (one.len != other.len ||
			       (one.len && memcmp(one.data, other.data, one.len) != 0)))))
		abort();
	buf_free(&one);
	buf_free(&other);
	return 0;
}
