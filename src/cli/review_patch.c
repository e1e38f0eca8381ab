/*
 * A change as unified text, as git writes it, so that `git apply` and `patch` read it. In: both
 * sides of one path. Out: text. Both sides may be an agent's: they are read through no link, up to
 * a bound, and what goes to a terminal is escaped; in a file or pipe the bytes are as they are, and
 * only names are quoted.
 */
#include "cli/review.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diff.h"
#include "base/io.h"
#include "base/text.h"

struct patch {
	struct buf *out; /* NULL: only counts */
	bool terminal, colour;
};

/* One side: its bytes, or why they are not shown. */
struct content {
	struct buf bytes;
	bool there;
	const char *why; /* static text; NULL: bytes are complete */
};

static int read_side(int root_fd, const char *path, mode_t mode, bool own, struct content *c)
{
	const char *name;
	auto_fd dir = -1, fd = -1;
	char target[4096];
	int status;

	c->there = S_ISREG(mode) || S_ISLNK(mode);
	if (!c->there)
		return 0;
	dir = changes_open_parent(root_fd, path, &name);
	if (dir >= 0 && S_ISLNK(mode)) {
		ssize_t n = readlinkat(dir, name, target, sizeof(target));

		if (n >= 0)
			buf_add(&c->bytes, target, (size_t)n);
		return 0;
	}
	if (dir >= 0)
		fd = own ? changes_open_file(dir, name)
			 : openat(dir, name,
				  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	status = fd < 0 ? -EACCES : io_read_all(fd, DIFF_BYTES_MAX, &c->bytes);
	if (status == -ENOMEM)
		return status;
	if (status == -EFBIG)
		c->why = "too large to show";
	else if (status < 0)
		c->why = "cannot be read";
	else if (!diff_is_text(c->bytes.data, c->bytes.len))
		c->why = "binary";
	return 0;
}

static bool needs_quotes(const char *name)
{
	for (const unsigned char *s = (const unsigned char *)name; *s;) {
		unsigned point;
		size_t n = text_utf8(s, &point);

		if (!n || point < 0x20 || point == 0x7f || *s == '"' || *s == '\\' ||
		    text_acts(point))
			return true;
		s += n;
	}
	return false;
}

/* A name as git quotes it. */
static void put_name(struct buf *out, const char *prefix, const char *name)
{
	if (!needs_quotes(name)) {
		buf_printf(out, "%s%s", prefix, name);
		return;
	}
	buf_printf(out, "\"%s", prefix);
	for (const unsigned char *s = (const unsigned char *)name; *s; s++)
		if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if (*s < 0x20 || *s >= 0x7f)
			buf_printf(out, "\\%03o", *s);
		else
			buf_printf(out, "%c", *s);
	buf_puts(out, "\"");
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

static int put_line(void *ctx, char sign, const char *text, size_t n, bool whole)
{
	struct patch *p = ctx;

	if (p->colour && sign != ' ')
		buf_puts(p->out, sign == '+' ? "\033[32m" : "\033[31m");
	buf_add(p->out, &sign, 1);
	if (p->terminal)
		put_harmless(p->out, text, n);
	else
		buf_add(p->out, text, n);
	buf_puts(p->out, p->colour && sign != ' ' ? "\033[0m\n" : "\n");
	if (!whole)
		buf_puts(p->out, "\\ No newline at end of file\n");
	return 0;
}

static unsigned git_mode(mode_t mode)
{
	return S_ISLNK(mode) ? 0120000 : mode & 0100 ? 0100755 : 0100644;
}

static void put_header(struct buf *out, const char *old_path, const struct change *c,
		       bool old_there, bool new_there, bool colour)
{
	buf_puts(out, colour ? "\033[1m" : "");
	buf_puts(out, "diff --git ");
	put_name(out, "a/", old_path);
	buf_puts(out, " ");
	put_name(out, "b/", c->path);
	buf_puts(out, colour ? "\033[0m\n" : "\n");
	if (!old_there && new_there)
		buf_printf(out, "new file mode %06o\n", git_mode(c->new_mode));
	else if (old_there && !new_there)
		buf_printf(out, "deleted file mode %06o\n", git_mode(c->old_mode));
	else if (old_there && new_there && git_mode(c->old_mode) != git_mode(c->new_mode))
		buf_printf(out, "old mode %06o\nnew mode %06o\n", git_mode(c->old_mode),
			   git_mode(c->new_mode));
	if (c->twin != CHANGE_NONE) {
		buf_puts(out, "similarity index 100%\nrename from ");
		put_name(out, "", old_path);
		buf_puts(out, "\nrename to ");
		put_name(out, "", c->path);
		buf_puts(out, "\n");
	}
}

static void put_names(struct buf *out, const char *path, bool old_there, bool new_there)
{
	buf_puts(out, "--- ");
	if (old_there)
		put_name(out, "a/", path);
	else
		buf_puts(out, "/dev/null");
	buf_puts(out, "\n+++ ");
	if (new_there)
		put_name(out, "b/", path);
	else
		buf_puts(out, "/dev/null");
	buf_puts(out, "\n");
}

/* Both sides are known; out is set. */
static int put_sides(struct patch *p, const struct change *c, const struct content *a,
		     const struct content *b, struct diff_counts *counts)
{
	static const struct diff_ops ops = { put_hunk, put_line };

	if (a->why || b->why) {
		bool large = (a->why && *a->why != 'b') || (b->why && *b->why != 'b');

		buf_puts(p->out, large ? "Files " : "Binary files ");
		if (a->there)
			put_name(p->out, "a/", c->path);
		else
			buf_puts(p->out, "/dev/null");
		buf_puts(p->out, " and ");
		if (b->there)
			put_name(p->out, "b/", c->path);
		else
			buf_puts(p->out, "/dev/null");
		buf_printf(p->out, " differ%s%s\n", large ? ": " : "",
			   large ? (a->why && *a->why != 'b' ? a->why : b->why) : "");
		return 0;
	}
	if (a->bytes.len == b->bytes.len &&
	    (!a->bytes.len || memcmp(a->bytes.data, b->bytes.data, a->bytes.len) == 0))
		return 0;
	put_names(p->out, c->path, a->there, b->there);
	return diff_texts(buf_text(&a->bytes), a->bytes.len, buf_text(&b->bytes), b->bytes.len,
			  &ops, p, counts);
}

static int patch_between(const struct review *r, const char *old_path, const struct change *c,
			 mode_t old_mode, mode_t new_mode, struct patch *p, size_t *added,
			 size_t *removed)
{
	struct content a = { 0 }, b = { 0 };
	struct diff_counts counts = { 0 };
	int status = read_side(r->workspace_fd, old_path, old_mode, false, &a);

	if (status == 0)
		status = read_side(r->upper_fd, c->path, new_mode, true, &b);
	if (status == 0 && p->out && (a.there || b.there))
		put_header(p->out, old_path, c, a.there, b.there, p->colour);
	if (status == 0 && p->out)
		status = put_sides(p, c, &a, &b, &counts);
	else if (status == 0 && !a.why && !b.why)
		status = diff_texts(buf_text(&a.bytes), a.bytes.len, buf_text(&b.bytes),
				    b.bytes.len, NULL, NULL, &counts);
	*added += counts.added;
	*removed += counts.removed;
	buf_free(&a.bytes);
	buf_free(&b.bytes);
	return status;
}

int review_patch(const struct review *r, const struct changes *all, const struct change *c,
		 bool terminal, bool colour, struct buf *out, size_t *added, size_t *removed,
		 struct ward_err *e)
{
	struct patch p = { out, terminal, colour };
	bool renamed = c->twin != CHANGE_NONE;
	const char *old_path = renamed ? all->items[c->twin].path : c->path;
	mode_t old_mode = renamed ? all->items[c->twin].old_mode : c->old_mode;
	int status;

	if (renamed && c->kind == CHANGE_DELETED)
		return 0;             /* reported with the other end */
	if (c->kind == CHANGE_TYPE) { /* one goes, another comes */
		status = patch_between(r, c->path, c, old_mode, 0, &p, added, removed);
		if (status == 0)
			status = patch_between(r, c->path, c, 0, c->new_mode, &p, added, removed);
	} else {
		status = patch_between(r, old_path, c, old_mode, c->new_mode, &p, added, removed);
	}
	if (status == 0 && out && out->failed)
		status = -ENOMEM;
	return status < 0
		       ? ward_fail(e, -status, "cannot compare %s: %s", c->path, strerror(-status))
		       : 0;
}
