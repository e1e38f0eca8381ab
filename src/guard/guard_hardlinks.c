/*
 * Second names of protected and hidden files. In: the regular files that the scan found. Out: the
 * same step for every other name that one of them has in the same tree (files inside a hidden
 * directory are not looked at). Runs in the supervisor at the end of the scan, and changes nothing.
 *
 * A read-only mount covers a name, not a file: what has a second hard link can be written through
 * that. An agent cannot make such a link (the mount lies between), but a tree may come with one, or
 * an earlier run may have left one. Only files with more than one link cost a second walk, and that
 * one looks at git's data too: a name can hide anywhere.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

bool guard_has_twin(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_nlink > 1;
}

int guard_hardlink_note(struct guard_hardlinks *t, int dir_fd, const char *name, bool hide,
			struct ward_err *e)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, *name ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_nlink < 2)
		return 0;
	if (t->len == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 16;
		struct guard_hardlink *grown = reallocarray(t->items, cap, sizeof(*grown));

		if (!grown)
			return ward_fail(e, ENOMEM, "out of memory");
		t->items = grown;
		t->cap = cap;
	}
	t->items[t->len++] = (struct guard_hardlink){ st.st_dev, st.st_ino, hide };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct guard_hardlink *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return x->device == y->device ? 0 : x->device < y->device ? -1 : 1;
}

struct twin_walk {
	struct guard_root *g;
	const struct guard_hardlinks *twins;
	struct ward_err *e;
};

/* Whether a file of that number is among them, on whatever device. */
static bool may_be(const struct guard_hardlinks *t, uint64_t inode)
{
	size_t low = 0, high = t->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->items[middle].inode == inode)
			return true;
		if (t->items[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static int twin_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct twin_walk *w = ctx;
	const struct guard_hardlink *found;
	struct guard_hardlink key;
	struct stat st;

	if (entry->type != DT_REG || !may_be(w->twins, entry->inode))
		return 1;
	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 1;
	key = (struct guard_hardlink){ .device = st.st_dev, .inode = st.st_ino };
	found = bsearch(&key, w->twins->items, w->twins->len, sizeof(key), compare);
	if (!found)
		return 1;
	return guard_add_step(w->g, found->hide ? GUARD_HIDE : GUARD_READONLY, entry->path, false,
			      w->e) < 0
		       ? -w->e->code
		       : 1;
}

static int twin_unreadable(void *ctx unused_arg, const struct walk_dir *d unused_arg,
			   const struct walk_entry *entry unused_arg)
{
	return 0; /* read-only as a whole since the scan */
}

int guard_hardlink_steps(struct guard_root *g, int root_fd, struct guard_hardlinks *t,
			 struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = twin_entry, .unreadable = twin_unreadable };
	struct twin_walk w = { g, t, e };

	if (!t->len)
		return 0;
	qsort(t->items, t->len, sizeof(*t->items), compare);
	/* one file under two names: hidden by one, hidden by all */
	for (size_t i = 1; i < t->len; i++)
		if (compare(&t->items[i - 1], &t->items[i]) == 0)
			t->items[i].hide = t->items[i - 1].hide =
				t->items[i - 1].hide || t->items[i].hide;
	for (size_t i = t->len; i-- > 1;)
		if (compare(&t->items[i - 1], &t->items[i]) == 0)
			t->items[i - 1].hide = t->items[i].hide;
	return walk_tree(root_fd, &ops, &w, 0, e);
}
