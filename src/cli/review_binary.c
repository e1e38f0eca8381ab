/*
 * Changes that are no text, for `git apply`. In: both sides of a file. Out: the index line with the
 * names of both as git objects, and both contents in git's binary form, so that the patch can be
 * reversed too. Runs in ward diff with the user's rights; a side of any size is read in pieces, and
 * what is made of it goes to standard output as it comes.
 */
#include "cli/review_parts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/patch_binary.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "rules/git_name.h"

#define PIECE_BYTES (256u << 10)
#define HELD_BYTES (4u << 20)    /* of text before it is written */
#define SIDE_MAX (1000ull << 20) /* git apply reads no longer patch */

/* Gets the content piece by piece. */
typedef int piece_fn(void *ctx, const void *bytes, size_t n);

static int each_piece(const struct patch_side *s, piece_fn *fn, void *ctx)
{
	auto_free char *bytes = s->held || !s->there ? NULL : malloc(PIECE_BYTES);
	int status = 0;

	if (!s->there)
		return 0;
	if (s->held)
		return fn(ctx, buf_text(&s->bytes), s->bytes.len);
	if (!bytes)
		return -ENOMEM;
	for (uint64_t at = 0; at < s->size && status == 0;) {
		size_t want = s->size - at < PIECE_BYTES ? (size_t)(s->size - at) : PIECE_BYTES;
		ssize_t n = pread(s->fd, bytes, want, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ESTALE; /* it shrank */
		status = fn(ctx, bytes, (size_t)n);
		at += (uint64_t)n;
	}
	return status;
}

struct naming {
	bool long_names;
	struct sha1 s1;
	struct sha256 s256;
};

static int name_piece(void *ctx, const void *bytes, size_t n)
{
	struct naming *x = ctx;

	if (x->long_names)
		sha256_add(&x->s256, bytes, n);
	else
		sha1_add(&x->s1, bytes, n);
	return 0;
}

/* Appends the name that the content has as an object of git's; zeroes: it is not there. */
static int put_object_name(const struct patch_side *s, bool long_names, struct buf *out)
{
	size_t len = long_names ? GIT_SHA256 : GIT_SHA1;
	struct naming x = { .long_names = long_names };
	uint8_t digest[GIT_HASH_MAX] = { 0 };
	char head[40];
	int n = snprintf(head, sizeof(head), "blob %llu", (unsigned long long)s->size), status = 0;

	sha1_begin(&x.s1);
	sha256_begin(&x.s256);
	if (s->there) {
		name_piece(&x, head, (size_t)n + 1);
		status = each_piece(s, name_piece, &x);
		if (long_names)
			sha256_end(&x.s256, digest);
		else
			sha1_end(&x.s1, digest);
	}
	for (size_t i = 0; i < len; i++)
		buf_printf(out, "%02x", digest[i]);
	return status;
}

struct writing {
	struct patch_binary binary;
	struct buf *out;
};

static int write_piece(void *ctx, const void *bytes, size_t n)
{
	struct writing *w = ctx;

	patch_binary_add(&w->binary, bytes, n);
	if (w->out->failed)
		return -ENOMEM;
	if (w->out->len > HELD_BYTES) {
		if (say_out(w->out, EXIT_FINE) != EXIT_FINE)
			return -EIO;
		w->out->len = 0;
	}
	return 0;
}

static int put_content(const struct patch_side *s, struct buf *out)
{
	struct writing w = { .out = out };
	int status;

	patch_binary_begin(&w.binary, out, s->there ? s->size : 0);
	status = each_piece(s, write_piece, &w);
	patch_binary_end(&w.binary);
	return status;
}

int review_put_binary(const struct review *r, struct patch_side *a, struct patch_side *b,
		      struct buf *out, struct ward_err *e)
{
	bool long_names = changes_has_sha256(r->record.workspace);
	int status;

	if (a->size > SIDE_MAX || b->size > SIDE_MAX)
		return ward_fail(e, EFBIG, "too large, git apply reads %llu MiB", SIDE_MAX >> 20);
	buf_puts(out, "index ");
	status = put_object_name(a, long_names, out);
	buf_puts(out, "..");
	if (status == 0)
		status = put_object_name(b, long_names, out);
	buf_puts(out, "\nGIT binary patch\n");
	if (status == 0)
		status = put_content(b, out);
	if (status == 0)
		status = put_content(a, out);
	return status;
}
