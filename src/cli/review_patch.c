/*
 * A change as unified text, as git writes it, so that `git apply` and `patch` read it. In: both
 * sides of one path. Out: text. Both sides may be an agent's: they are read through no link, and
 * what goes to a terminal is escaped; in a file or pipe the bytes are as they are, and only names
 * are quoted. What is no text, or too long to compare, is in git's binary form there
 * (review_binary.c). What git cannot say (an empty directory, a mode beside the execute bit) and
 * what it refuses (a path in a git directory) is left out: `git apply` takes all or nothing.
 */
#include "cli/review.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diff.h"
#include "base/io.h"
#include "base/text.h"
#include "base/patch_binary.h"
#include "cli/review_parts.h"
#include "rules/git_name.h"

struct patch {
	struct buf *out; /* NULL: only counts */
	bool terminal, colour;
};

/* Takes over the bytes of a small file; of a large one only the descriptor and the size. */
static int read_file(int fd, struct patch_side *c)
{
	struct stat st;
	int status;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		c->why = "cannot be read";
		return 0;
	}
	c->size = (uint64_t)st.st_size;
	if (c->size > DIFF_BYTES_MAX)
		return 0;
	status = io_read_all(fd, DIFF_BYTES_MAX, &c->bytes);
	if (status == -EFBIG) { /* it grows while it is read */
		buf_free(&c->bytes);
		return 0;
	}
	if (status < 0) {
		c->why = "cannot be read";
		return status == -ENOMEM ? status : 0;
	}
	c->size = c->bytes.len;
	c->held = true;
	c->text = diff_is_text(c->bytes.data, c->bytes.len);
	return 0;
}

static int read_side(int root_fd, const char *path, mode_t mode, bool own, struct patch_side *c)
{
	const char *name;
	auto_fd dir = -1;
	char target[4096];

	*c = (struct patch_side){ .fd = -1 };
	c->there = S_ISREG(mode) || S_ISLNK(mode);
	c->held = c->text = !c->there;
	if (!c->there)
		return 0;
	dir = changes_open_parent(root_fd, path, &name);
	if (dir >= 0 && S_ISLNK(mode)) {
		ssize_t n = readlinkat(dir, name, target, sizeof(target));

		if (n >= 0)
			buf_add(&c->bytes, target, (size_t)n);
		else
			c->why = "cannot be read";
		c->held = c->text = true;
		c->size = c->bytes.len;
		return c->bytes.failed ? -ENOMEM : 0;
	}
	if (dir >= 0)
		c->fd = own ? changes_open_file(dir, name)
			    : openat(dir, name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return read_file(c->fd, c);
}

void review_side_clear(struct patch_side *c)
{
	buf_free(&c->bytes);
	own_close_fd(&c->fd);
}

static int put_hunk(void *ctx, size_t old_line, size_t old_count, size_t new_line, size_t new_count)
{
	struct patch *p = ctx;

	buf_printf(p->out, "%s@@ -%zu,%zu +%zu,%zu @@%s\n", p->colour ? "\033[36m" : "", old_line,
		   old_count, new_line, new_count, p->colour ? "\033[0m" : "");
	return 0;
}

/* Text for a terminal: tabs stay, whatever acts is escaped. */
static void put_harmless(struct buf *out, const char *text, size_t n)
{
	while (n) {
		const char *tab = memchr(text, '\t', n);
		size_t len = tab ? (size_t)(tab - text) : n;
		auto_free char *piece = strndup(text, len);

		if (piece)
			text_escape(out, piece);
		buf_puts(out, tab ? "\t" : "");
		text += len + (tab ? 1 : 0);
		n -= len + (tab ? 1 : 0);
	}
}

void review_put_line(struct buf *out, char sign, const char *text, size_t n, bool whole,
		     bool terminal, bool colour)
{
	if (colour && sign != ' ')
		buf_puts(out, sign == '+' ? "\033[32m" : "\033[31m");
	buf_add(out, &sign, 1);
	if (terminal)
		put_harmless(out, text, n);
	else
		buf_add(out, text, n);
	buf_puts(out, colour && sign != ' ' ? "\033[0m\n" : "\n");
	if (!whole)
		buf_puts(out, "\\ No newline at end of file\n");
}

static int put_line(void *ctx, char sign, const char *text, size_t n, bool whole)
{
	struct patch *p = ctx;

	review_put_line(p->out, sign, text, n, whole, p->terminal, p->colour);
	return 0;
}

static unsigned git_mode(mode_t mode)
{
	return S_ISLNK(mode) ? 0120000 : mode & 0100 ? 0100755 : 0100644;
}

/* One change of one path on its way into a patch. */
struct patching {
	const struct review *review;
	const struct change *change;
	const char *old_path, *new_path;
	mode_t old_mode, new_mode;
	struct patch_side a, b;
};

static void put_header(struct buf *out, const struct patching *x, bool colour)
{
	bool renamed = strcmp(x->old_path, x->new_path) != 0;

	buf_puts(out, colour ? "\033[1m" : "");
	buf_puts(out, "diff --git ");
	patch_put_name(out, "a/", x->old_path);
	buf_puts(out, " ");
	patch_put_name(out, "b/", x->new_path);
	buf_puts(out, colour ? "\033[0m\n" : "\n");
	if (!x->a.there)
		buf_printf(out, "new file mode %06o\n", git_mode(x->new_mode));
	else if (!x->b.there)
		buf_printf(out, "deleted file mode %06o\n", git_mode(x->old_mode));
	else if (git_mode(x->old_mode) != git_mode(x->new_mode))
		buf_printf(out, "old mode %06o\nnew mode %06o\n", git_mode(x->old_mode),
			   git_mode(x->new_mode));
	if (renamed) {
		buf_puts(out, "similarity index 100%\nrename from ");
		patch_put_name(out, "", x->old_path);
		buf_puts(out, "\nrename to ");
		patch_put_name(out, "", x->new_path);
		buf_puts(out, "\n");
	}
}

/* A name with a blank ends in a tab, as git writes it, so that patch(1) sees where it ends. */
static void put_side_name(struct buf *out, const char *prefix, const char *path, bool there)
{
	if (!there) {
		buf_puts(out, "/dev/null");
		return;
	}
	patch_put_name(out, prefix, path);
}

static void put_names(struct buf *out, const struct patching *x)
{
	buf_puts(out, "--- ");
	put_side_name(out, "a/", x->old_path, x->a.there);
	buf_puts(out, x->a.there && strchr(x->old_path, ' ') ? "\t\n+++ " : "\n+++ ");
	put_side_name(out, "b/", x->new_path, x->b.there);
	buf_puts(out, x->b.there && strchr(x->new_path, ' ') ? "\t\n" : "\n");
}

/* A person sees that they differ; git apply gets the bytes. */
static int put_binary(struct patch *p, struct patching *x, struct ward_err *e)
{
	if (!p->terminal)
		return review_put_binary(x->review, &x->a, &x->b, p->out, e);
	buf_puts(p->out, "Binary files ");
	put_side_name(p->out, "a/", x->old_path, x->a.there);
	buf_puts(p->out, " and ");
	put_side_name(p->out, "b/", x->new_path, x->b.there);
	buf_puts(p->out, " differ\n");
	return 0;
}

/* Both sides are known; out is set. */
static int put_sides(struct patch *p, struct patching *x, struct diff_counts *counts,
		     struct ward_err *e)
{
	static const struct diff_ops ops = { put_hunk, put_line };
	const struct buf *a = &x->a.bytes, *b = &x->b.bytes;

	if (x->a.held && x->b.held && a->len == b->len &&
	    (!a->len || memcmp(a->data, b->data, a->len) == 0))
		return 0;
	if (!x->a.text || !x->b.text)
		return put_binary(p, x, e);
	put_names(p->out, x);
	return diff_texts(buf_text(a), a->len, buf_text(b), b->len, &ops, p, counts);
}

/* Whether there is something that git can say. */
static bool says_something(const struct patching *x)
{
	return x->a.there != x->b.there || strcmp(x->old_path, x->new_path) != 0 ||
	       git_mode(x->old_mode) != git_mode(x->new_mode) || !x->a.held || !x->b.held ||
	       x->a.bytes.len != x->b.bytes.len ||
	       (x->a.bytes.len && memcmp(x->a.bytes.data, x->b.bytes.data, x->a.bytes.len) != 0);
}

/* What both sides' edits come to, where they merge: that is what an apply makes. */
static int read_merged(struct patching *x)
{
	size_t conflicts;
	mode_t mode;

	x->b = (struct patch_side){ .fd = -1, .there = true, .held = true };
	if (changes_merge(x->review, x->change, -1, &x->b.bytes, &mode, &conflicts) < 0)
		x->b.why = "cannot be read";
	x->new_mode = S_IFREG | mode;
	x->b.size = x->b.bytes.len;
	x->b.text = diff_is_text(x->b.bytes.data, x->b.bytes.len);
	return x->b.bytes.failed ? -ENOMEM : 0;
}

static int patch_between(struct patching *x, struct patch *p, size_t *added, size_t *removed,
			 struct ward_err *e)
{
	struct diff_counts counts = { 0 };
	int status = read_side(x->review->workspace_fd, x->old_path, x->old_mode, false, &x->a);

	x->b.fd = -1;
	if (status == 0 && x->change->merged)
		status = read_merged(x);
	else if (status == 0)
		status = read_side(x->review->upper_fd, x->new_path, x->new_mode, true, &x->b);
	if (status == 0 && (x->a.why || x->b.why)) {
		ward_fail(e, EACCES, "%s %s", x->new_path, x->a.why ? x->a.why : x->b.why);
		status = p->out ? -EACCES : 0;
	} else if (status == 0 && p->out && (x->a.there || x->b.there) && says_something(x)) {
		put_header(p->out, x, p->colour);
		status = put_sides(p, x, &counts, e);
	} else if (status == 0 && !p->out && x->a.text && x->b.text) {
		status = diff_texts(buf_text(&x->a.bytes), x->a.bytes.len, buf_text(&x->b.bytes),
				    x->b.bytes.len, NULL, NULL, &counts);
	}
	*added += counts.added;
	*removed += counts.removed;
	review_side_clear(&x->a);
	review_side_clear(&x->b);
	return status;
}

int review_sides(const struct review *r, const struct changes *all, const struct change *c,
		 struct patch_side *ret_old, struct patch_side *ret_new)
{
	const struct change *from = c->twin != CHANGE_NONE ? &all->items[c->twin] : c;
	struct patching x = { .review = r, .change = c, .b = { .fd = -1 } };
	int status = read_side(r->workspace_fd, from->path, from->old_mode, false, ret_old);

	if (status == 0 && c->merged) {
		status = read_merged(&x);
		*ret_new = x.b;
	} else if (status == 0) {
		status = read_side(r->upper_fd, c->path, c->new_mode, true, ret_new);
	}
	return status;
}

bool review_git_takes(const struct changes *all, const struct change *c)
{
	const char *from = c->twin != CHANGE_NONE ? all->items[c->twin].path : c->path;

	return !git_path_refused(c->path, strlen(c->path), S_ISLNK(c->new_mode)) &&
	       !git_path_refused(from, strlen(from), false);
}

int review_patch(const struct review *r, const struct changes *all, const struct change *c,
		 bool terminal, bool colour, struct buf *out, size_t *added, size_t *removed,
		 struct ward_err *e)
{
	struct patch p = { out, terminal, colour };
	bool renamed = c->twin != CHANGE_NONE;
	struct patching x = { .review = r,
			      .change = c,
			      .old_path = renamed ? all->items[c->twin].path : c->path,
			      .new_path = c->path,
			      .old_mode = renamed ? all->items[c->twin].old_mode : c->old_mode,
			      .new_mode = c->new_mode };
	int status;

	if (renamed && c->kind == CHANGE_DELETED)
		return 0;             /* reported with the other end */
	if (c->kind == CHANGE_TYPE) { /* one goes, another comes */
		struct patching gone = x;

		gone.new_mode = x.old_mode = 0;
		status = patch_between(&gone, &p, added, removed, e);
		if (status == 0)
			status = patch_between(&x, &p, added, removed, e);
	} else {
		status = patch_between(&x, &p, added, removed, e);
	}
	if (status == 0 && out && out->failed)
		status = -ENOMEM;
	if (status == 0 || e->code)
		return status;
	return ward_fail(e, -status, "cannot compare %s: %s", c->path, strerror(-status));
}
