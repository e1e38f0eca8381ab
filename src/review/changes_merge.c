/*
 * Conflicts, looked at closely. In: changes of a review whose files somebody else touched since the
 * run began. Out: which of them are none (only a time changed), which merge, which stay. Runs in
 * the verbs with the user's rights; all three sides are read through no link and up to a bound.
 */
#include "review/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/diff.h"
#include "base/io.h"
#include "base/merge.h"

static int read_ours(const struct review *r, const char *path, int fd, struct buf *ret)
{
	const char *name;
	auto_fd dir = -1, own = -1;

	if (fd < 0) {
		dir = changes_open_parent(r->workspace_fd, path, &name);
		fd = own =
			dir < 0 ? dir
				: openat(dir, name,
					 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	return fd < 0 ? -ENOENT : io_read_all(fd, DIFF_BYTES_MAX, ret);
}

static int read_theirs(const struct review *r, const char *path, struct buf *ret)
{
	const char *name;
	auto_fd dir = changes_open_parent(r->upper_fd, path, &name);
	auto_fd fd = dir < 0 ? dir : changes_open_file(dir, name);

	return fd < 0 ? -ENOENT : io_read_all(fd, DIFF_BYTES_MAX, ret);
}

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

static struct merge_text text_of(const struct buf *b, const char *label)
{
	return (struct merge_text){ buf_text(b), b->len, label };
}

static int merge_bytes(const struct review *r, const struct buf *base, const struct buf *ours,
		       const struct buf *theirs, struct buf *ret, size_t *ret_conflicts)
{
	char run[REVIEW_ID_MAX + 8];
	struct merge_text b = text_of(base, "when the run began"), o = text_of(ours, "workspace"),
			  t = text_of(theirs, run);

	snprintf(run, sizeof(run), "run %s", r->id);
	*ret_conflicts = 0;
	if (is_same(base, ours) || is_same(ours, theirs)) {
		buf_add(ret, theirs->data, theirs->len);
		return ret->failed ? -ENOMEM : 0;
	}
	if (!diff_is_text(base->data, base->len) || !diff_is_text(ours->data, ours->len) ||
	    !diff_is_text(theirs->data, theirs->len))
		return -EINVAL;
	return merge_texts(&b, &o, &t, ret, ret_conflicts);
}

int changes_merge(const struct review *r, const struct change *c, int ours_fd,
		  struct buf *ret_bytes, mode_t *ret_mode, size_t *ret_conflicts)
{
	auto_buf base = { 0 }, ours = { 0 }, theirs = { 0 };
	mode_t base_mode = 0;
	int status = S_ISREG(c->old_mode) && S_ISREG(c->new_mode) && c->kind == CHANGE_CONTENT
			     ? changes_base_read(r, c->path, &base, &base_mode)
			     : -ENOENT;

	if (status == 0)
		status = read_ours(r, c->path, ours_fd, &ours);
	if (status == 0)
		status = read_theirs(r, c->path, &theirs);
	if (status == 0)
		status = merge_bytes(r, &base, &ours, &theirs, ret_bytes, ret_conflicts);
	/* the execute bits of the side that changed them; else the workspace's */
	*ret_mode = (c->new_mode & 0111) != (base_mode & 0111) ? c->new_mode & 0777
							       : c->old_mode & 0777;
	return status;
}

int changes_settle(const struct review *r, struct changes *c, struct ward_err *e)
{
	for (size_t i = 0; i < c->len; i++) {
		struct change *x = &c->items[i];
		auto_buf merged = { 0 };
		size_t conflicts = 0;
		mode_t mode;
		int status;

		if (!x->conflict)
			continue;
		status = changes_merge(r, x, -1, &merged, &mode, &conflicts);
		if (status == -ENOMEM)
			return ward_fail(e, ENOMEM, "out of memory");
		if (status < 0)
			continue; /* it stays a conflict */
		x->markable = conflicts > 0;
		x->merged = !conflicts;
		x->conflict = conflicts > 0;
	}
	return 0;
}
