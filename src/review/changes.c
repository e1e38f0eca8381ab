/*
 * Reading a review. In: the upper layer of an overlay and the workspace beneath it. Out: a sorted
 * list of changes. Runs in the verbs and at the end of a run with the user's rights; every name,
 * mode and byte of the upper layer was chosen by an agent.
 *
 * The kernel leaves in the upper layer: whole copies of changed and new files; a character device
 * 0/0 for what was deleted; a directory with user.overlay.opaque for one that was made anew, so
 * that nothing of the workspace shows in it (nor in what lies beneath it). An agent cannot make any
 * of these by hand: the kernel refuses the device and escapes the attributes. Whatever else is
 * there is taken as it is. What equals the workspace is no change.
 *
 * Conflicts: the workspace's own change time tells. Nobody can set it, the overlay never writes
 * there, and the record says when each run began; a path counts from the run in which its entry in
 * the upper layer was made (its birth time), so that a continued run may build on what was edited
 * before it.
 */
#include "review/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "review/changes_internal.h"
#include "gitview/git_run.h"
#include "guard/guard_internal.h"
#include "review/review_internal.h"

#define PATH_LONGEST 16384 /* four times what the kernel takes in one call */
/* an agent can make a million names; a list of them must not eat the machine */
#define LIST_BYTES (1u << 30)

enum { OPAQUE = 1 }; /* mark of directories: nothing of the workspace shows in them */

static uint64_t timespec_ns(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A change could not be added: why, unless that was said. */
static int out_of_memory(struct reading *s)
{
	return s->list_bytes > LIST_BYTES ? -E2BIG : ward_fail(s->e, ENOMEM, "out of memory");
}

bool changes_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* The time from which a change in the workspace is somebody else's: since, or the later one at
 * which path was applied. */
static uint64_t later_applied(const struct reading *s, const char *path, uint64_t since)
{
	uint64_t applied = s->clock_set_back ? 0 : changes_applied_at(&s->applied_list, path);

	return applied > since ? applied : since;
}

/* When the run began that made this entry of the upper layer, or when it was applied since. */
static uint64_t baseline(const struct reading *s, int dir_fd, const char *name, const char *path)
{
	const struct review_record *record = &s->review->record;
	uint64_t start = record->starts[0], born;
	struct statx sx;

	if (s->clock_set_back)
		return 0;
	start = later_applied(s, path, start);
	if (record->start_count == 1 ||
	    statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &sx) < 0 ||
	    !(sx.stx_mask & STATX_BTIME))
		return start;
	born = (uint64_t)sx.stx_btime.tv_sec * 1000000000u + sx.stx_btime.tv_nsec;
	for (size_t i = 1; i < record->start_count; i++)
		if (record->starts[i] <= born && record->starts[i] > start)
			start = record->starts[i];
	return start;
}

static struct change *add_change(struct reading *s, const char *path, enum change_kind kind)
{
	struct changes *c = s->changes;

	s->list_bytes += strlen(path) + sizeof(*c->items);
	if (s->list_bytes > LIST_BYTES) {
		ward_fail(s->e, E2BIG,
			  "the review has more changes than ward can list, or longer names");
		ward_remedy(s->e, "copy what you need out of it, then: ward discard %s",
			    s->review->id);
		return NULL;
	}
	if (c->len == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 64;
		struct change *grown = reallocarray(c->items, cap, sizeof(*grown));

		if (!grown)
			return NULL;
		c->items = grown;
		c->cap = cap;
	}
	c->items[c->len] =
		(struct change){ .path = strdup(path), .kind = kind, .twin = CHANGE_NONE };
	return c->items[c->len].path ? &c->items[c->len++] : NULL;
}

static void note_old(struct change *c, const struct stat *old, uint64_t since)
{
	c->old_mode = old->st_mode;
	c->old_size = (uint64_t)old->st_size;
	c->inode = old->st_ino;
	c->ctime_ns = timespec_ns(old->st_ctim);
	c->mtime_ns = timespec_ns(old->st_mtim);
	c->conflict = c->ctime_ns >= since;
}

/* ---- what was deleted ---- */

struct deletion {
	struct reading *s;
	uint64_t since;
	bool opaque;
};

static int add_deleted(struct deletion *d, int dir_fd, const char *name, const char *path)
{
	struct change *c;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (changes_is_hidden(d->s, path, S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode))) {
		d->s->changes->hidden++;
		return 0;
	}
	c = add_change(d->s, path, CHANGE_DELETED);
	if (!c)
		return out_of_memory(d->s);
	note_old(c, &st, later_applied(d->s, path, d->since));
	/* its own time is not the business of those who look into it */
	if (S_ISDIR(st.st_mode))
		c->conflict = false;
	c->opaque = d->opaque;
	progress_step(d->s->progress, "changes found");
	return 1;
}

static int deleted_entry(void *ctx, struct walk_dir *dir, const struct walk_entry *entry)
{
	return add_deleted(ctx, dir->fd, entry->name, entry->path);
}

/* Everything that the workspace has at path, name of dir_fd. */
static int delete_tree(struct reading *s, int dir_fd, const char *name, const char *path,
		       uint64_t since, bool opaque)
{
	static const struct walk_ops ops = { .entry = deleted_entry };
	struct deletion d = { .s = s, .since = since, .opaque = opaque };
	size_t first = s->changes->len;
	auto_fd fd = -1;
	int status = add_deleted(&d, dir_fd, name, path);

	if (status <= 0 || !S_ISDIR(s->changes->items[first].old_mode))
		return status < 0 ? status : 0;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	status = fd < 0 ? ward_fail_errno(s->e, "cannot read directory %s", path)
			: walk_tree_at(fd, path, &ops, &d, 0, s->e);
	/* parents before children */
	for (size_t i = first; status >= 0 && i + 1 < s->changes->len; i++)
		if (S_ISDIR(s->changes->items[i].old_mode))
			s->changes->items[i].implied = true; /* settled by mark_implied() */
	return status;
}

/* ---- one entry ---- */

static int same_link(int a_dir, int b_dir, const char *name)
{
	char a[4096], b[4096];
	ssize_t n = readlinkat(a_dir, name, a, sizeof(a)),
		m = readlinkat(b_dir, name, b, sizeof(b));

	return n >= 0 && n == m && n < (ssize_t)sizeof(a) && memcmp(a, b, (size_t)n) == 0;
}

/* Whether the new file at upper/name holds what the old one does. Unreadable ones differ. */
static int same_file(struct reading *s, int upper, const char *name, const struct stat *new_st,
		     const struct stat *old_st)
{
	auto_fd a = -1, b = -1;
	int same;

	if (new_st->st_size != old_st->st_size)
		return 0;
	if (new_st->st_size == 0)
		return 1;
	b = openat(s->lower_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (b < 0)
		return 0;
	a = changes_open_file(upper, name);
	same = a < 0 ? 0 : changes_same_content(a, b, (uint64_t)new_st->st_size);
	return same > 0;
}

/* How what is new differs from what is there; CHANGE_KINDS: not at all. */
static enum change_kind compare(struct reading *s, int upper, const char *name,
				const struct stat *new_st, const struct stat *old_st)
{
	bool same = true;

	if ((new_st->st_mode & S_IFMT) != (old_st->st_mode & S_IFMT))
		return CHANGE_TYPE;
	if (S_ISREG(new_st->st_mode))
		same = same_file(s, upper, name, new_st, old_st);
	else if (S_ISLNK(new_st->st_mode))
		return same_link(upper, s->lower_fd, name) ? CHANGE_KINDS : CHANGE_CONTENT;
	if (!same)
		return CHANGE_CONTENT;
	return (new_st->st_mode & 0777) != (old_st->st_mode & 0777) ? CHANGE_MODE : CHANGE_KINDS;
}

static const char *refuse_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
		return NULL;
	case S_IFIFO:
		return "a pipe is never applied";
	case S_IFSOCK:
		return "a socket is never applied";
	default:
		return "a device is never applied";
	}
}

/* A copy of the workspace's file that lost its original: somebody outside has removed it, unless it
 * came by a rename inside. */
static bool lost_original(const struct reading *s, const struct walk_dir *d,
			  const struct walk_entry *entry, uint64_t since)
{
	auto_fd fd = entry->type == DT_REG
			     ? openat(d->fd, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
			     : -1;
	struct stat parent;
	char link[32];

	if (fd < 0 || s->applied || s->lower_fd < 0 || fstat(s->lower_fd, &parent) < 0 ||
	    timespec_ns(parent.st_ctim) < since)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return getxattr(link, "user.overlay.origin", NULL, 0) >= 0;
}

static int see_whiteout(struct reading *s, const struct walk_dir *d, const struct walk_entry *entry)
{
	s->whiteouts++;
	if (s->lower_fd < 0 || d->mark & OPAQUE)
		return 0;
	return delete_tree(s, s->lower_fd, entry->name, entry->path,
			   baseline(s, d->fd, entry->name, entry->path), false);
}

static int see_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct reading *s = ctx;
	enum change_kind kind = CHANGE_ADDED;
	struct stat st, old = { 0 };
	struct change *c;
	uint64_t since;
	bool there;

	progress_step(s->progress, "entries read");
	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (changes_is_hidden(s, entry->path, S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode))) {
		s->changes->hidden++;
		return 0;
	}
	if (changes_is_whiteout(&st))
		return see_whiteout(s, d, entry);
	there = s->lower_fd >= 0 &&
		fstatat(s->lower_fd, entry->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	if (there)
		kind = compare(s, d->fd, entry->name, &st, &old);
	if (kind == CHANGE_KINDS)
		return 1;
	since = baseline(s, d->fd, entry->name, entry->path);
	if (kind == CHANGE_TYPE && S_ISDIR(old.st_mode)) {
		int status = delete_tree(s, s->lower_fd, entry->name, entry->path, since, false);

		if (status < 0)
			return status;
	}
	c = add_change(s, entry->path, kind);
	if (!c)
		return out_of_memory(s);
	if (there)
		note_old(c, &old, since);
	/* its deletion is a change of its own */
	if (kind == CHANGE_TYPE && S_ISDIR(old.st_mode)) {
		c->inode = 0;
		c->conflict = false;
	}
	if (!there && lost_original(s, d, entry, since))
		c->conflict = s->maybe_lost = true;
	c->new_mode = st.st_mode;
	c->new_size = (uint64_t)st.st_size;
	c->opaque = d->mark & OPAQUE;
	c->refused = refuse_kind(st.st_mode);
	if (entry->path_len > PATH_LONGEST - NAME_MAX) {
		c->refused = "it is too deep to apply";
		return 0;
	}
	return 1;
}

/* ---- directories ---- */

/* What the workspace has in a directory that was made anew, and that is not there any more. */
static int see_opaque(struct reading *s, const struct walk_dir *d, uint64_t since)
{
	auto_free char *dir_path = strndup(d->path, d->path_len);
	int copy = openat(s->lower_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), status = 0;
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);

	if (!list || !dir_path) {
		if (copy >= 0 && !list)
			close(copy);
		return out_of_memory(s);
	}
	for (struct dirent *entry = readdir(list); entry && status >= 0; entry = readdir(list)) {
		auto_buf path = { 0 };
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (fstatat(d->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !changes_is_whiteout(&st))
			continue;
		buf_printf(&path, "%s%s%s", dir_path, *dir_path ? "/" : "", entry->d_name);
		status = path.failed ? out_of_memory(s)
				     : delete_tree(s, s->lower_fd, entry->d_name, path.data, since,
						   true);
	}
	return status;
}

static int see_opened(void *ctx, struct walk_dir *d)
{
	struct reading *s = ctx;
	char value[2] = "";
	int status;

	own_close_fd(&s->lower_fd);
	s->lower_fd = -1;
	if (d->path_len) {
		auto_free char *path = strndup(d->path, d->path_len);
		const char *name;
		auto_fd parent =
			path ? changes_open_parent(s->review->workspace_fd, path, &name) : -ENOMEM;

		if (parent >= 0)
			s->lower_fd = openat(parent, name,
					     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	} else {
		s->lower_fd =
			openat(s->review->workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	status = changes_hide_enter(s, d->path, d->path_len);
	if (status < 0)
		return status;
	if (d->path_len && fgetxattr(d->fd, "user.overlay.opaque", value, sizeof(value)) == 1 &&
	    value[0] == 'y')
		d->mark |= OPAQUE;
	if (d->mark & OPAQUE && s->lower_fd >= 0)
		return see_opaque(s, d, baseline(s, d->fd, ".", ""));
	return 0;
}

static int see_unreadable(void *ctx, const struct walk_dir *d unused_arg,
			  const struct walk_entry *entry)
{
	struct reading *s = ctx;

	return ward_fail(s->e, EACCES, "the directory %s of the review belongs to another user",
			 entry->path);
}

static const struct walk_ops read_ops = {
	.opened = see_opened,
	.entry = see_entry,
	.unreadable = see_unreadable,
	.force = true,
};

/* ---- the list ---- */

static int by_path(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	if (order)
		return order;
	/* a tree that gives way is deleted first */
	return (y->kind == CHANGE_DELETED) - (x->kind == CHANGE_DELETED);
}

/* A directory is worth a line of its own only if nothing in it is. What is in it follows it in the
 * list, behind names such as "dir-x" that sort before "dir/". */
static bool has_child(const struct changes *c, size_t i)
{
	size_t n = strlen(c->items[i].path);
	size_t low = i + 1, high = c->len;
	auto_free char *prefix = NULL;

	if (asprintf(&prefix, "%s/", c->items[i].path) < 0) {
		prefix = NULL;
		return false;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(c->items[middle].path, prefix) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->len && strncmp(c->items[low].path, prefix, n + 1) == 0;
}

static void mark_implied(struct changes *c)
{
	for (size_t i = 0; i < c->len; i++) {
		struct change *x = &c->items[i];

		x->implied = (x->kind == CHANGE_ADDED && S_ISDIR(x->new_mode) && has_child(c, i)) ||
			     (x->kind == CHANGE_DELETED && S_ISDIR(x->old_mode) &&
			      (has_child(c, i) ||
			       (i + 1 < c->len && strcmp(c->items[i + 1].path, x->path) == 0)));
		if (!x->implied)
			c->counts[x->kind]++;
	}
}

static bool is_clock_set_back(const struct review_record *record)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return timespec_ns(now) < record->starts[record->start_count - 1];
}

/* What of the review was applied before. */
static int read_applied(struct reading *s)
{
	auto_buf text = { 0 };
	int status = io_read_file(s->review->dir_fd, REVIEW_APPLIED, LIST_BYTES, &text);

	if (status == -ENOENT)
		return 0;
	s->applied = true;
	if (status == 0)
		status = changes_applied_read(buf_text(&text), text.len, &s->applied_list);
	return status < 0
		       ? ward_fail(s->e, -status, "cannot read the record of applied changes: %s",
				   strerror(-status))
		       : 0;
}

int changes_read(const struct review *r, struct changes *ret_changes, struct progress *progress,
		 struct ward_err *e)
{
	struct changes found = { 0 };
	struct reading s = { .review = r,
			     .changes = &found,
			     .progress = progress,
			     .e = e,
			     .lower_fd = -1,
			     .clock_set_back = is_clock_set_back(&r->record) };
	int status;

	if (r->workspace_fd < 0) {
		ward_fail(e, ESTALE,
			  "the workspace %s is gone or was replaced by another directory",
			  r->record.workspace);
		return ward_remedy(e, "restore it at that path; ward discard %s removes the review",
				   r->id);
	}
	progress_begin(progress, 0);
	status = read_applied(&s);
	if (status >= 0)
		status = changes_hide_begin(&s);
	if (status >= 0)
		status = walk_tree(r->upper_fd, &read_ops, &s, 0, e);
	own_close_fd(&s.lower_fd);
	changes_applied_clear(&s.applied_list);
	changes_hide_end(&s);
	if (status < 0) {
		changes_clear(&found);
		return ward_wrap(e, "reading the changes of %s", r->id);
	}
	for (size_t i = 0; s.maybe_lost && s.whiteouts && i < found.len; i++)
		if (found.items[i].kind == CHANGE_ADDED)
			/* renamed inside, as far as anybody can tell */
			found.items[i].conflict = false;
	if (found.len)
		qsort(found.items, found.len, sizeof(*found.items), by_path);
	mark_implied(&found);
	if (git_views_show(r->id, &found.git, e) < 0) {
		changes_clear(&found);
		return ward_wrap(e, "reading the changes of %s", r->id);
	}
	*ret_changes = found;
	return 0;
}

void changes_clear(struct changes *c)
{
	for (size_t i = 0; i < c->len; i++) {
		free(c->items[i].path);
		free(c->items[i].leads_to);
	}
	free(c->items);
	strv_free(&c->git);
	*c = (struct changes){ 0 };
}

size_t changes_count(const struct changes *c)
{
	size_t n = 0;

	for (size_t i = 0; i < CHANGE_KINDS; i++)
		n += c->counts[i];
	return n - c->renames + c->git.len;
}
