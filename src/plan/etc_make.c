/*
 * Making the kept /etc (etc_cache.c finds it). In: the rows of a plan's system. Out:
 * STATE/kept-etc/ID with what they name of /etc: files of ward's own, links as the host has them,
 * copies of the host's files, and of its directories if little would have to be looked at each
 * time; for other directories a place to mount them at. Runs in the supervisor with the user's
 * rights, when the sandbox has started; a failure of any kind leaves nothing but the way without
 * it.
 *
 * One process makes at a time, under a name that no process uses, and the last thing that it does
 * is to turn the link. What a killed one left, and directories that are neither the newest nor in
 * use, go when the next is made. What has changed in the last two seconds could change again
 * without a new time: it is not kept yet.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "base/remove.h"
#include "plan/certs.h"
#include "plan/etc_cache.h"
#include "plan/plan.h"
#include "plan/plan_root.h"
#include "root-table.h"
#include "state/store.h"

#define MAKING "make-" /* in front of the id of one that is not complete */
#define LOCK "lock"
#define KEPT_MAX 4 /* in use, and the newest */
#define SETTLED_S 2
#define RETRY_S 60
#define FAILED_MODE 0400
#define FILE_BYTES_MAX (1u << 20)
#define TREE_CHECKS_MAX 8 /* a mount and its end cost as much as a dozen looks */
#define TREE_NAMES_MAX 64
#define DEPTH_MAX 4

struct maker {
	int dir_fd, etc_fd, root_fd; /* of STATE/kept-etc, of the host's, of what is made */
	bool noexec;                 /* nothing in the state directory can be executed */
	char id[ETC_CACHE_ID_BYTES];
	/* offsets are counted from the texts' beginning until the end */
	struct buf checks, entries, texts;
	time_t settled;
};

static uint32_t add_text(struct maker *m, const char *text)
{
	size_t at = m->texts.len;

	buf_add(&m->texts, text, strlen(text) + 1);
	return (uint32_t)at;
}

/* Remembers how a thing of the host's is. One that changes again has a later time, unless its time
 * is still to come. */
static int add_check(struct maker *m, const char *path, const struct stat *st)
{
	struct etc_check c = { 0 };

	if (st->st_ctim.tv_sec >= m->settled)
		return st->st_ctim.tv_sec > time(NULL) + 1 ? -EINVAL : -EAGAIN;
	etc_check_fill(&c, st);
	c.path = add_text(m, path);
	buf_add(&m->checks, (const char *)&c, sizeof(c));
	return m->checks.failed || m->texts.failed ? -ENOMEM : 0;
}

static int keep_times(const struct maker *m, const char *path, const struct stat *st)
{
	const struct timespec times[2] = { st->st_mtim, st->st_mtim };

	return utimensat(m->root_fd, path, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int write_file(const struct maker *m, const char *path, const char *text, size_t n,
		      mode_t mode)
{
	auto_fd fd = openat(m->root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	int r = fd < 0 ? -errno : io_write_all(fd, text, n);

	return r == 0 && fchmod(fd, mode & 0777) < 0 ? -errno : r;
}

static bool is_file_fit(const struct maker *m, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_mode & S_IROTH &&
	       !(st->st_mode & (S_ISUID | S_ISGID)) && st->st_size <= FILE_BYTES_MAX &&
	       !(m->noexec && st->st_mode & (S_IXUSR | S_IXGRP | S_IXOTH));
}

static int copy_file(struct maker *m, const char *path)
{
	auto_fd fd =
		openat(m->etc_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf text = { 0 };
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	r = is_file_fit(m, &st) ? io_read_all(fd, FILE_BYTES_MAX, &text) : -EINVAL;
	if (r == 0 && text.len != (size_t)st.st_size)
		r = -EAGAIN;
	if (r == 0)
		r = write_file(m, path, buf_text(&text), text.len, st.st_mode);
	if (r == 0)
		r = keep_times(m, path, &st);
	return r < 0 ? r : add_check(m, path, &st);
}

static int copy_link(struct maker *m, const char *path, const struct stat *st)
{
	char target[4096];
	ssize_t n = readlinkat(m->etc_fd, path, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, m->root_fd, path) < 0 ? -errno : keep_times(m, path, st);
}

static DIR *open_dir(const struct maker *m, const char *path)
{
	int fd = openat(m->etc_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* What a tree would take. */
struct weight {
	unsigned checks, names;
};

/* Whether a tree may be copied: few files, all of which everybody may read. */
static bool is_light(const struct maker *m, const char *path, struct weight *w, unsigned depth)
{
	auto_dir dir = depth > DEPTH_MAX ? NULL : open_dir(m, path);
	const struct dirent *d;
	bool fine = dir && ++w->checks <= TREE_CHECKS_MAX;

	while (fine && (d = readdir(dir))) {
		char inner[PATH_MAX];
		struct stat st;

		if (is_dot(d->d_name))
			continue;
		if (snprintf(inner, sizeof(inner), "%s/%s", path, d->d_name) >=
			    (int)sizeof(inner) ||
		    ++w->names > TREE_NAMES_MAX ||
		    fstatat(m->etc_fd, inner, &st, AT_SYMLINK_NOFOLLOW) < 0)
			fine = false;
		else if (S_ISDIR(st.st_mode))
			fine = (st.st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH) &&
			       is_light(m, inner, w, depth + 1);
		else if (!S_ISLNK(st.st_mode))
			fine = is_file_fit(m, &st) && ++w->checks <= TREE_CHECKS_MAX;
	}
	return fine;
}

static int copy_tree(struct maker *m, const char *path)
{
	auto_dir dir = open_dir(m, path);
	const struct dirent *d;
	struct stat of, st;
	int r;

	if (!dir || fstat(dirfd(dir), &of) < 0 || mkdirat(m->root_fd, path, 0700) < 0)
		return -errno;
	r = add_check(m, path, &of);
	while (r == 0 && (d = readdir(dir))) {
		char inner[PATH_MAX];

		if (is_dot(d->d_name))
			continue;
		if (snprintf(inner, sizeof(inner), "%s/%s", path, d->d_name) >= (int)sizeof(inner))
			r = -ENAMETOOLONG;
		else if (fstatat(m->etc_fd, inner, &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = -errno;
		else
			r = S_ISDIR(st.st_mode)   ? copy_tree(m, inner)
			    : S_ISLNK(st.st_mode) ? copy_link(m, inner, &st)
						  : copy_file(m, inner);
	}
	if (r == 0 && fchmodat(m->root_fd, path, of.st_mode & 0777, 0) < 0)
		r = -errno;
	return r < 0 ? r : keep_times(m, path, &of);
}

/* The directories above an entry: what appears in them is seen by their times. */
static int make_parents(struct maker *m, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_free char *dir = strndup(path, (size_t)(slash - path));

		if (!dir)
			return -ENOMEM;
		if (mkdirat(m->root_fd, dir, 0755) < 0 && errno != EEXIST)
			return -errno;
		if (fchmodat(m->root_fd, dir, 0755, 0) < 0)
			return -errno;
	}
	return 0;
}

/* A place to mount it at: whether it is still there is checked in the directory above it. */
static int make_place(const struct maker *m, const struct plan_mount *row, const char *path)
{
	return (row->is_file ? mknodat(m->root_fd, path, S_IFREG | 0444, 0)
			     : mkdirat(m->root_fd, path, 0755)) < 0
		       ? -errno
		       : 0;
}

/* Whether it is mounted, and not copied. */
static bool is_mounted(const struct maker *m, const struct plan_mount *row, const char *path)
{
	struct weight w = { 0 };
	struct stat st;

	if (row->kind != MOUNT_BIND)
		return false;
	return row->is_file ? fstatat(m->etc_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				      !is_file_fit(m, &st)
			    : !is_light(m, path, &w, 0);
}

static int add_entry(struct maker *m, const struct plan_mount *row, bool mounted)
{
	struct etc_entry entry = { .is_file = row->is_file, .mounted = mounted };

	entry.target = add_text(m, row->target);
	if (row->kind == MOUNT_LINK)
		entry.link = add_text(m, row->source);
	buf_add(&m->entries, (const char *)&entry, sizeof(entry));
	return m->entries.failed || m->texts.failed ? -ENOMEM : 0;
}

static int make_row(struct maker *m, const struct plan_mount *row)
{
	const char *path = row->target + sizeof("/etc");
	bool mounted = is_mounted(m, row, path);
	int r = make_parents(m, path);

	if (r < 0)
		return r;
	if (row->kind == MOUNT_FILE)
		return write_file(m, path, row->source, strlen(row->source), row->mode);
	if (row->kind == MOUNT_LINK)
		r = symlinkat(row->source, m->root_fd, path) < 0 ? -errno : 0;
	else if (mounted)
		r = make_place(m, row, path);
	else
		r = row->is_file ? copy_file(m, path) : copy_tree(m, path);
	return r < 0 ? r : add_entry(m, row, mounted);
}

/* /etc itself, and the directories in it that the table looks into. */
static int check_parents(struct maker *m, const struct stat *stamp)
{
	auto_strv dirs = { 0 };
	int r = add_check(m, ".", stamp);

	plan_etc_parents(&dirs);
	for (size_t i = 0; i < dirs.len && r == 0; i++) {
		struct stat st;

		if (fstatat(m->etc_fd, dirs.items[i], &st, 0) == 0)
			r = add_check(m, dirs.items[i], &st);
		else if (errno != ENOENT)
			r = -errno;
	}
	return dirs.failed ? -ENOMEM : r;
}

static int make_root(struct maker *m, const struct plan_mount *rows, size_t count,
		     const struct stat *stamp)
{
	static const struct {
		const char *name, *target;
	} links[] = { { "mtab", "/proc/self/mounts" }, { "gitconfig", ETC_CACHE_GIT } };
	int r = check_parents(m, stamp);

	for (size_t i = 0; i < count && r == 0; i++)
		if (strncmp(rows[i].target, "/etc/", 5) == 0)
			r = make_row(m, &rows[i]);
	for (size_t i = 0; i < ARRAY_LEN(links) && r == 0; i++)
		r = symlinkat(links[i].target, m->root_fd, links[i].name) < 0 ? -errno : 0;
	return r;
}

/* The list, when all else is there. */
static int write_list(struct maker *m, int own_fd)
{
	struct etc_head head = { .magic = ETC_CACHE_MAGIC, .table = ROOT_TABLE };
	uint32_t base = (uint32_t)(sizeof(head) + m->checks.len + m->entries.len);
	auto_buf list = { 0 };
	auto_fd fd = -1;
	int r = snprintf(head.boot, sizeof(head.boot), "%s", io_boot_id());

	if (r <= 0 || r >= (int)sizeof(head.boot))
		return -EINVAL;
	memcpy(head.id, m->id, sizeof(head.id));
	head.check_count = (uint32_t)(m->checks.len / sizeof(struct etc_check));
	head.entry_count = (uint32_t)(m->entries.len / sizeof(struct etc_entry));
	for (size_t i = 0; i < head.check_count; i++)
		((struct etc_check *)(void *)m->checks.data)[i].path += base;
	for (size_t i = 0; i < head.entry_count; i++) {
		struct etc_entry *entry = &((struct etc_entry *)(void *)m->entries.data)[i];

		entry->target += base;
		entry->link += entry->link ? base : 0;
	}
	buf_add(&list, (const char *)&head, sizeof(head));
	buf_add(&list, m->checks.data, m->checks.len);
	buf_add(&list, m->entries.data, m->entries.len);
	buf_add(&list, m->texts.data, m->texts.len);
	if (list.failed || list.len > ETC_CACHE_LIST_MAX)
		return -E2BIG;
	fd = openat(own_fd, ETC_CACHE_LIST, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : io_write_all(fd, list.data, list.len);
}

/* The newest one gets the link, in one step. */
static int turn_link(const struct maker *m, const char *making)
{
	if (renameat(m->dir_fd, making, m->dir_fd, m->id) < 0 ||
	    symlinkat(m->id, m->dir_fd, making) < 0 ||
	    renameat(m->dir_fd, making, m->dir_fd, ETC_CACHE_NOW) < 0)
		return -errno;
	return 0;
}

static int make(struct maker *m, const struct plan_mount *rows, size_t count,
		const struct stat *stamp)
{
	char making[sizeof(MAKING) + ETC_CACHE_ID_BYTES];
	auto_fd own = -1, root = -1;
	int r;

	snprintf(making, sizeof(making), MAKING "%s", m->id);
	if (mkdirat(m->dir_fd, making, 0700) < 0)
		return -errno;
	own = openat(m->dir_fd, making, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (own < 0 || mkdirat(own, ETC_CACHE_ROOT, 0700) < 0)
		return -errno;
	root = openat(own, ETC_CACHE_ROOT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return -errno;
	m->root_fd = root;
	r = make_root(m, rows, count, stamp);
	if (r == 0 && fchmod(root, 0755) < 0)
		r = -errno;
	if (r == 0)
		r = write_list(m, own);
	return r < 0 ? r : turn_link(m, making);
}

/* Whether no process uses it: then it is taken out of use, and removed. */
static bool drop(const struct maker *m, const char *name)
{
	auto_fd own = openat(m->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd list = own < 0 ? -1
			       : openat(own, ETC_CACHE_LIST,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (list < 0 && errno != ENOENT && errno != ENOTDIR)
		return false;
	if (list >= 0 && flock(list, LOCK_EX | LOCK_NB) < 0)
		return false;
	if (list >= 0)
		(void)!unlinkat(own, ETC_CACHE_LIST, 0);
	(void)!remove_tree_at(m->dir_fd, name);
	return true;
}

/* What is half made goes, and with all what is not in use. Returns how many of those stay. */
static unsigned sweep(const struct maker *m, bool all)
{
	int fd = openat(m->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	unsigned stay = 0;

	while (dir && (d = readdir(dir))) {
		if (strncmp(d->d_name, MAKING, sizeof(MAKING) - 1) == 0) {
			if (unlinkat(m->dir_fd, d->d_name, 0) < 0)
				(void)!remove_tree_at(m->dir_fd, d->d_name);
		} else if (all && !is_dot(d->d_name) && strcmp(d->d_name, LOCK) != 0 &&
			   strcmp(d->d_name, ETC_CACHE_NOW) != 0) {
			stay += !drop(m, d->d_name);
		}
	}
	return dir ? stay : KEPT_MAX;
}

/* Whether it is there, so that it was asked for before. */
static bool open_place(struct maker *m)
{
	struct ward_err ignored = { 0 };
	auto_fd state_fd = store_open(&ignored);
	struct statvfs v;

	if (state_fd < 0 || mkdirat(state_fd, ETC_CACHE_DIR, 0700) == 0 || errno != EEXIST ||
	    fstatvfs(state_fd, &v) < 0)
		return false;
	m->noexec = v.f_flag & ST_NOEXEC;
	m->dir_fd =
		openat(state_fd, ETC_CACHE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return m->dir_fd >= 0;
}

/* One that could not be made is tried again a minute later: that is when the lock's mode was
 * changed, for which a full disk has room. */
static bool failed_lately(int lock_fd)
{
	struct stat st;

	return fstat(lock_fd, &st) < 0 ||
	       ((st.st_mode & 0777) == FAILED_MODE && st.st_ctim.tv_sec > time(NULL) - RETRY_S);
}

static void make_alone(struct maker *m, const struct plan_mount *rows, size_t count,
		       const struct stat *stamp)
{
	auto_fd lock = openat(m->dir_fd, LOCK,
			      O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct etc_cache found;
	int r;

	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 || failed_lately(lock))
		return;
	if (etc_cache_find(false, &found)) { /* a process was faster */
		etc_cache_release(&found);
		return;
	}
	store_new_id(m->id, sizeof(m->id));
	r = sweep(m, true) < KEPT_MAX ? make(m, rows, count, stamp) : -EBUSY;
	if (r < 0)
		sweep(m, true);
	if (r < 0 && r != -EAGAIN)
		(void)!fchmod(lock, FAILED_MODE);
}

/* Inspected rules mount certificates of their own there. */
static bool has_certs(const struct plan_mount *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].target, CERTS_SYSTEM) == 0)
			return rows[i].kind == MOUNT_BIND && !rows[i].is_file;
	return false;
}

void etc_cache_make(const struct plan_mount *rows, size_t count, const struct stat *stamp,
		    time_t read)
{
	struct maker m = { .dir_fd = -1, .root_fd = -1, .settled = read - SETTLED_S };

	if (!has_certs(rows, count) || !open_place(&m))
		return;
	m.etc_fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	buf_add(&m.texts, "", 1); /* no text has the offset 0 */
	if (m.etc_fd >= 0)
		make_alone(&m, rows, count, stamp);
	own_close_fd(&m.etc_fd);
	own_close_fd(&m.dir_fd);
	buf_free(&m.checks);
	buf_free(&m.entries);
	buf_free(&m.texts);
}

void etc_cache_tidy(void)
{
	struct ward_err ignored = { 0 };
	auto_fd state = store_open(&ignored);
	auto_fd dir = state < 0 ? -1
				: openat(state, ETC_CACHE_DIR,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_fd lock =
		dir < 0 ? -1 : openat(dir, LOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
		sweep(&(struct maker){ .dir_fd = dir }, false);
}
