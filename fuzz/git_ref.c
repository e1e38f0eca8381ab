/* Fuzzer of refs, packed-refs, FETCH_HEAD and reflogs: what comes out lies inside the bytes and has
 * the form that was promised. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules/git_ref.h"
#include "rules/git_reflog.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct range {
	const char *from, *to;
	unsigned hash;
};

static void check(const struct range *r, const char *s, size_t n)
{
	if (s < r->from || s > r->to || n > (size_t)(r->to - s))
		abort();
}

static int see_ref(void *ctx, const struct git_packed_ref *ref)
{
	const struct range *r = ctx;

	check(r, ref->name, ref->name_n);
	if (!git_is_id(ref->id, r->hash * 2, r->hash) || !git_ref_name_ok(ref->name, ref->name_n) ||
	    memmem(ref->name, ref->name_n, "..", 2) ||
	    (ref->peeled && !git_is_id(ref->peeled, r->hash * 2, r->hash)))
		abort();
	return 0;
}

static int see_line(void *ctx, const struct git_reflog_line *line)
{
	const struct range *r = ctx;

	check(r, line->who, line->who_n);
	if (line->message)
		check(r, line->message, line->message_n);
	if (memchr(line->who, '\n', line->who_n) || memchr(line->who, '\0', line->who_n))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *text = n ? (const char *)bytes : "", *why = NULL, *at;
	size_t len;

	for (unsigned hash = GIT_SHA1; hash <= GIT_SHA256; hash += GIT_SHA256 - GIT_SHA1) {
		struct range r = { .from = text, .to = text + n, .hash = hash };
		enum git_ref_kind kind = git_ref_read(text, n, hash, &at, &len);

		if (kind != GIT_REF_BAD)
			check(&r, at, len);
		if (kind == GIT_REF_SYMBOLIC && !git_ref_name_ok(at, len))
			abort();
		(void)git_head_read(text, n, hash, &at, &len);
		(void)git_fetch_head_ok(text, n, hash);
		(void)git_id_lines_ok(text, n, hash, 1);
		if (git_packed_read(text, n, hash, see_ref, &r, &why) != 0 && !why)
			abort();
		if (git_reflog_read(text, n, hash, see_line, &r, &why) != 0 && !why)
			abort();
	}
	return 0;
}
