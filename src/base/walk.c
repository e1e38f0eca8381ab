/*
 * The walk. In: an open directory. Out: calls for each entry beneath it. Runs in the supervisor and
 * in the verbs with the user's rights, on trees that an agent has made and that other sandboxes may
 * be changing at this moment.
 *
 * Each directory is opened from its parent's descriptor by one name with O_NOFOLLOW, so no link is
 * ever followed, a path may be longer than PATH_MAX, and nothing recurses: the stack of directories
 * is on the heap. Types come from the directory itself; a file is looked at (fstatat) only where
 * the file system does not say. Deeper than OPEN_MAX levels the topmost descriptors are closed; on
 * the way back such a directory is opened again as ".." and must be the very same one (device and
 * inode), else the walk ends with ESTALE.
 *
 * What vanished or became something else between listing and opening is passed over: it is not
 * there any more.
 */
#include "base/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define OPEN_MAX 64
#define NAME_ROOM 4096 /* some file systems in user space have names longer than NAME_MAX */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)

struct frame {
	int fd; /* -1: closed, to be opened again from below */
	unsigned mark;
	size_t path_len;   /* of this directory in walk.path */
	size_t names_from; /* its subdirectories in walk.names: from here */
	size_t names_next; /* the next one to enter */
	dev_t device;      /* known once fd is closed */
	ino_t inode;
	bool forced; /* mode is to be restored */
	unsigned mode;
};

struct walk {
	const struct walk_ops *ops;
	void *ctx;
	struct ward_err *e;
	struct frame *frames;
	size_t depth, cap; /* frames in use and allocated */
	size_t closed;     /* frames below this index are closed */
	struct buf path, names;
	char *entries; /* what getdents fills */
};

#define ENTRIES_SIZE 32768

static struct frame *top(struct walk *w)
{
	return &w->frames[w->depth - 1];
}

static struct walk_dir dir_of(struct walk *w)
{
	struct frame *f = top(w);

	w->path.len = f->path_len;
	w->path.data[f->path_len] = '\0';
	return (struct walk_dir){ f->fd, w->path.data, f->path_len, f->mark };
}

/* Room for any name behind the directory's path, so that entries need no more than a copy. */
static bool reserve_path(struct walk *w, size_t dir_len)
{
	static const char room[NAME_ROOM + 2];

	w->path.len = dir_len;
	if (w->path.cap - dir_len <= sizeof(room))
		buf_add(&w->path, room, sizeof(room));
	w->path.len = dir_len;
	return !w->path.failed;
}

static void set_path(struct walk *w, size_t dir_len, const char *name, struct walk_entry *entry)
{
	size_t n = strlen(name);
	char *at = w->path.data + dir_len;

	if (dir_len)
		*at++ = '/';
	memcpy(at, name, n + 1);
	entry->path = w->path.data;
	entry->name_at = (size_t)(at - w->path.data);
	entry->path_len = w->path.len = entry->name_at + n;
}

static unsigned char type_of(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

static int see_entry(struct walk *w, struct frame *f, const struct dirent64 *d)
{
	struct walk_entry entry = { .name = d->d_name, .inode = d->d_ino, .type = d->d_type };
	struct walk_dir dir;
	int status = 1;

	if (d->d_name[0] == '.' && (!d->d_name[1] || (d->d_name[1] == '.' && !d->d_name[2])))
		return 0;
	if (entry.type == DT_UNKNOWN)
		entry.type = type_of(f->fd, d->d_name);
	if (entry.type == DT_UNKNOWN)
		return 0; /* gone */
	if (strlen(d->d_name) > NAME_ROOM)
		return ward_fail(w->e, ENAMETOOLONG, "a name is longer than %d bytes", NAME_ROOM);
	if (w->ops->entry) {
		set_path(w, f->path_len, d->d_name, &entry);
		dir = (struct walk_dir){ f->fd, w->path.data, f->path_len, f->mark };
		status = w->ops->entry(w->ctx, &dir, &entry);
		f->mark = dir.mark;
	}
	if (status > 0 && entry.type == DT_DIR)
		buf_add(&w->names, d->d_name, strlen(d->d_name) + 1);
	return status < 0 ? status : 0;
}

/* Whether the entries that were read, n bytes, hold the name that the caller wants to know
 * first. */
static bool holds_peek(const struct walk *w, ssize_t n)
{
	for (ssize_t at = 0; at < n;) {
		const struct dirent64 *d = (const void *)(w->entries + at);

		if (d->d_name[0] == w->ops->peek_name[0] &&
		    strcmp(d->d_name, w->ops->peek_name) == 0)
			return true;
		at += d->d_reclen;
	}
	return false;
}

/* Reads the whole directory. A name to peek at that turns up behind the first entries starts the
 * reading anew. */
static int read_dir(struct walk *w, struct frame *f)
{
	bool peeked = !w->ops->peek_name, first = true;

	for (;;) {
		ssize_t n = getdents64(f->fd, w->entries, ENTRIES_SIZE);
		struct walk_dir dir = dir_of(w);
		int status = 0;

		/* the end, or removed while it was read */
		if (n == 0 || (n < 0 && errno == ENOENT))
			return 0;
		if (n < 0)
			return ward_fail_errno(w->e, "cannot read directory %s",
					       *dir.path ? dir.path : ".");
		if (!peeked && holds_peek(w, n)) {
			peeked = true;
			status = w->ops->peek(w->ctx, &dir);
			if (status < 0)
				return status;
			if (!first) {
				w->names.len = f->names_from;
				if (lseek(f->fd, 0, SEEK_SET) < 0)
					return ward_fail_errno(
						w->e, "cannot read directory %s again", dir.path);
				continue;
			}
		}
		first = false;
		for (ssize_t at = 0; at < n && status >= 0;) {
			const struct dirent64 *d = (const void *)(w->entries + at);

			at += d->d_reclen;
			status = see_entry(w, f, d);
		}
		if (status < 0)
			return status;
	}
}

static int list_dir(struct walk *w)
{
	struct frame *f = top(w);
	struct walk_dir dir = dir_of(w);
	int status = w->ops->opened ? w->ops->opened(w->ctx, &dir) : 0;

	f->mark = dir.mark;
	if (status >= 0 && !reserve_path(w, f->path_len))
		status = ward_fail(w->e, ENOMEM, "out of memory");
	if (status >= 0)
		status = read_dir(w, f);
	if (status < 0)
		return status;
	if (w->names.failed)
		return ward_fail(w->e, ENOMEM, "out of memory");
	if (!w->ops->listed)
		return 0;
	dir = dir_of(w);
	status = w->ops->listed(w->ctx, &dir);
	f->mark = dir.mark;
	return status;
}

/* Closes the topmost directory that is still open when there are too many of them. */
static int bound_open(struct walk *w)
{
	struct frame *f;
	struct stat st;

	if (w->depth - w->closed <= OPEN_MAX)
		return 0;
	f = &w->frames[w->closed];
	if (fstat(f->fd, &st) < 0)
		return ward_fail_errno(w->e, "cannot access a directory");
	f->device = st.st_dev;
	f->inode = st.st_ino;
	close(f->fd);
	f->fd = -1;
	w->closed++;
	return 0;
}

/* Takes fd. */
static int push(struct walk *w, int fd, unsigned mark, size_t path_len, unsigned mode, bool forced)
{
	if (w->depth == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 32;
		struct frame *grown = reallocarray(w->frames, cap, sizeof(*grown));

		if (!grown) {
			close(fd);
			return ward_fail(w->e, ENOMEM, "out of memory");
		}
		w->frames = grown;
		w->cap = cap;
	}
	w->frames[w->depth++] = (struct frame){ .fd = fd,
						.mark = mark,
						.path_len = path_len,
						.mode = mode,
						.forced = forced,
						.names_from = w->names.len,
						.names_next = w->names.len };
	return bound_open(w);
}

/* Opens the parent of the top frame again if it was closed. */
static int reopen_parent(struct walk *w)
{
	struct frame *parent = &w->frames[w->depth - 2];
	struct stat st;

	if (parent->fd >= 0)
		return 0;
	parent->fd = openat(top(w)->fd, "..", DIR_FLAGS);
	if (parent->fd < 0)
		return ward_fail_errno(w->e, "cannot return from a deep directory");
	w->closed--;
	if (fstat(parent->fd, &st) < 0 || st.st_dev != parent->device || st.st_ino != parent->inode)
		return ward_fail(w->e, ESTALE, "a deep directory was moved during the walk");
	return 0;
}

static void drop_top(struct walk *w)
{
	struct frame *f = top(w);

	if (f->forced && f->fd >= 0 && fchmod(f->fd, f->mode) < 0)
		f->forced = false; /* removed meanwhile: there is nothing to restore */
	if (f->fd >= 0)
		close(f->fd);
	w->names.len = f->names_from;
	w->depth--;
	if (w->closed > w->depth)
		w->closed = w->depth;
}

static int leave_dir(struct walk *w)
{
	struct walk_dir dir;
	size_t n = top(w)->path_len;
	auto_free char *name = NULL;
	int status;

	if (w->depth == 1) {
		drop_top(w);
		return 0;
	}
	status = reopen_parent(w);
	if (status < 0)
		return status;
	drop_top(w);
	if (!w->ops->leave)
		return 0;
	w->path.data[n] = '\0';
	name = strdup(w->path.data + top(w)->path_len + (top(w)->path_len ? 1 : 0));
	if (!name)
		return ward_fail(w->e, ENOMEM, "out of memory");
	dir = dir_of(w);
	return w->ops->leave(w->ctx, &dir, name);
}

int walk_force_open(int dir_fd, const char *name, unsigned *ret_mode)
{
	auto_fd path_fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char link[32];
	struct stat st;
	int fd;

	if (path_fd < 0 || fstat(path_fd, &st) < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	if (chmod(link, (st.st_mode & 07777) | 0700) < 0)
		return -errno;
	fd = openat(path_fd, ".", DIR_FLAGS);
	*ret_mode = st.st_mode & 07777;
	return fd < 0 ? -errno : fd;
}

/* Opens and lists the next subdirectory of the top frame. */
static int enter_dir(struct walk *w, const char *name)
{
	struct walk_dir dir = dir_of(w);
	struct walk_entry entry = { .type = DT_DIR };
	unsigned mark = dir.mark, mode = 0;
	int fd, status = 1;
	bool forced = false;

	if (!reserve_path(w, dir.path_len))
		return ward_fail(w->e, ENOMEM, "out of memory");
	set_path(w, dir.path_len, name, &entry);
	dir.path = entry.path;
	entry.name = entry.path + entry.name_at;
	if (w->ops->enter)
		status = w->ops->enter(w->ctx, &dir, &entry, &mark);
	if (status <= 0)
		return status;
	fd = openat(dir.fd, name, DIR_FLAGS);
	if (fd < 0 && errno == EACCES && w->ops->force) {
		fd = walk_force_open(dir.fd, name, &mode);
		forced = fd >= 0;
		errno = fd < 0 ? -fd : 0;
	}
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (fd < 0 && (errno == EACCES || errno == EPERM) && w->ops->unreadable)
		return w->ops->unreadable(w->ctx, &dir, &entry);
	if (fd < 0)
		return ward_fail_errno(w->e, "cannot open directory %s", entry.path);
	status = push(w, fd, mark, entry.path_len, mode, forced);
	return status < 0 ? status : list_dir(w);
}

static int walk_all(struct walk *w)
{
	int status = list_dir(w);

	while (status >= 0 && w->depth) {
		struct frame *f = top(w);

		if (f->names_next < w->names.len) {
			size_t at = f->names_next;
			auto_free char *name = strdup(w->names.data + at);

			if (!name)
				return ward_fail(w->e, ENOMEM, "out of memory");
			f->names_next += strlen(name) + 1;
			status = enter_dir(w, name);
		} else {
			status = leave_dir(w);
		}
	}
	return status < 0 ? status : 0;
}

int walk_tree(int root_fd, const struct walk_ops *ops, void *ctx, unsigned mark, struct ward_err *e)
{
	return walk_tree_at(root_fd, "", ops, ctx, mark, e);
}

int walk_tree_at(int root_fd, const char *prefix, const struct walk_ops *ops, void *ctx,
		 unsigned mark, struct ward_err *e)
{
	struct walk w = { .ops = ops, .ctx = ctx, .e = e };
	int fd = openat(root_fd, ".", DIR_FLAGS);
	int status;

	if (fd < 0)
		return ward_fail_errno(e, "cannot open the tree");
	buf_puts(&w.path, prefix);
	w.entries = malloc(ENTRIES_SIZE);
	if (!w.entries || w.path.failed) {
		close(fd);
		status = ward_fail(e, ENOMEM, "out of memory");
	} else {
		status = push(&w, fd, mark, strlen(prefix), 0, false);
		if (status >= 0)
			status = walk_all(&w);
	}
	while (w.depth)
		drop_top(&w);
	free(w.entries);
	free(w.frames);
	buf_free(&w.path);
	buf_free(&w.names);
	return status;
}
