/*
 * One path of an apply. In: a change that was judged. Out: the workspace with it. Runs with the
 * user's rights on two trees that must not be believed: the review is an agent's work, the
 * workspace may be changing under us. Directories are opened through no link (openat2, beneath), a
 * name is taken without following it, and what is there must be what was looked at.
 *
 * A file is written without a name (O_TMPFILE) and gets one when it is complete; over an existing
 * one it goes by a temporary name and a rename. So at any moment a path is the old thing or the new
 * one. Modes lose set-id bits, owners are the workspace's, attributes are not taken along.
 */
#include "review/apply_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/content.h"
#include "base/io.h"

/* What stands at a path of the workspace now. */
struct place {
	int dir_fd; /* owned */
	const char *name;
	struct stat st; /* of what is there */
	bool there;
};

/* 0; 1: not as it was when the change was read; -errno. */
static int open_place(struct applying *a, const struct change *c, struct place *p)
{
	bool as_judged;

	*p = (struct place){ .dir_fd = -1 };
	p->dir_fd = changes_open_parent(a->review->workspace_fd, c->path, &p->name);
	if (p->dir_fd == -ENOENT || p->dir_fd == -ENOTDIR || p->dir_fd == -ELOOP ||
	    p->dir_fd == -EXDEV)
		return 1;
	if (p->dir_fd < 0)
		return ward_fail(a->e, -p->dir_fd, "cannot open the directory of %s: %s", c->path,
				 strerror(-p->dir_fd));
	p->there = fstatat(p->dir_fd, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0;
	as_judged = p->there ? p->st.st_ino == c->inode &&
				       (p->st.st_mode & S_IFMT) == (c->old_mode & S_IFMT) &&
				       (S_ISDIR(p->st.st_mode) ||
					(uint64_t)p->st.st_mtim.tv_sec * 1000000000u +
							(uint64_t)p->st.st_mtim.tv_nsec ==
						c->mtime_ns)
			     : c->inode == 0;
	return as_judged || a->request->force ? 0 : 1;
}

static int fail_at(struct applying *a, const struct change *c, int error)
{
	ward_fail(a->e, error, "cannot apply %s: %s", c->path, strerror(error));
	if (error == ENOSPC || error == EDQUOT)
		return ward_remedy(a->e, "free some space and apply again; what was not applied is "
					 "still in the review");
	return ward_remedy(a->e, "what was not applied is still in the review of %s",
			   a->review->id);
}

/* ---- names ---- */

static void temp_name(const struct applying *a, char name[APPLY_NAME_MAX])
{
	snprintf(name, APPLY_NAME_MAX, "%s%s", APPLY_TEMP, a->token);
}

/* The owner of what is put there: that of what it replaces, else the workspace's. Others have only
 * their own. */
static int own_fd(const struct applying *a, const struct place *p, int fd)
{
	const struct review_record *record = &a->review->record;

	if (geteuid() != 0)
		return 0;
	if (p->there && S_ISREG(p->st.st_mode))
		return fchown(fd, p->st.st_uid, p->st.st_gid);
	return fchown(fd, (uid_t)record->owner_uid, (gid_t)record->owner_gid);
}

/* A user can give a file to another group only if they are in it. What replaces a file of a group
 * that cannot be kept gives the group that it has instead no more than everybody. */
static mode_t mode_for(const struct place *p, int fd, mode_t mode)
{
	struct stat st;

	if (geteuid() == 0 || !p->there || !S_ISREG(p->st.st_mode) || fstat(fd, &st) < 0 ||
	    st.st_gid == p->st.st_gid || fchown(fd, (uid_t)-1, p->st.st_gid) == 0)
		return mode;
	return (mode & ~(mode_t)070) | (mode & 070 & mode << 3);
}

static int own_link(const struct applying *a, const struct place *p, const char *name)
{
	const struct review_record *record = &a->review->record;

	if (geteuid() != 0)
		return 0;
	return fchownat(p->dir_fd, name, (uid_t)record->owner_uid, (gid_t)record->owner_gid,
			AT_SYMLINK_NOFOLLOW);
}

/* Gives the complete file its name. A directory that stood there is empty and goes first. */
static int name_file(const struct applying *a, const struct place *p, int fd, bool has_temp)
{
	char temp[APPLY_NAME_MAX], link[32];

	temp_name(a, temp);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (p->there && S_ISDIR(p->st.st_mode) && unlinkat(p->dir_fd, p->name, AT_REMOVEDIR) < 0)
		return -errno;
	if (!has_temp && (!p->there || S_ISDIR(p->st.st_mode)))
		return linkat(AT_FDCWD, link, p->dir_fd, p->name, AT_SYMLINK_FOLLOW) < 0 ? -errno
											 : 0;
	if (!has_temp && linkat(AT_FDCWD, link, p->dir_fd, temp, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	if (renameat2(p->dir_fd, temp, p->dir_fd, p->name, p->there ? 0 : RENAME_NOREPLACE) == 0)
		return 0;
	if (!p->there && (errno == EINVAL || errno == ENOSYS) &&
	    renameat(p->dir_fd, temp, p->dir_fd, p->name) == 0)
		return 0; /* a file system that knows no NOREPLACE */
	return -errno;
}

/* Opens the file that the copy goes to; where it cannot be nameless it has the temporary name. */
static int open_copy(const struct applying *a, const struct place *p, bool *ret_has_temp)
{
	char temp[APPLY_NAME_MAX];
	int fd = openat(p->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	*ret_has_temp = false;
	if (fd >= 0)
		return fd;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
		return -errno;
	temp_name(a, temp);
	fd = openat(p->dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	*ret_has_temp = fd >= 0;
	return fd < 0 ? -errno : fd;
}

static int put_file(struct applying *a, const struct change *c, const struct place *p)
{
	const char *name;
	auto_fd dir = changes_open_parent(a->review->upper_fd, c->path, &name);
	auto_fd from = dir < 0 ? dir : changes_open_file(dir, name);
	auto_fd to = -1;
	char temp[APPLY_NAME_MAX];
	struct stat st;
	bool has_temp;
	int status;

	if (from < 0)
		return from;
	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	to = open_copy(a, p, &has_temp);
	if (to < 0)
		return to;
	status = content_copy(from, to, (uint64_t)st.st_size);
	if (status == 0 &&
	    (own_fd(a, p, to) < 0 || fchmod(to, mode_for(p, to, c->new_mode & 0777)) < 0 ||
	     futimens(to, (struct timespec[]){ { .tv_nsec = UTIME_OMIT }, st.st_mtim }) < 0))
		status = -errno;
	if (status == 0)
		status = name_file(a, p, to, has_temp);
	temp_name(a, temp);
	if (status < 0)
		unlinkat(p->dir_fd, temp, 0); /* ours alone, if it is there */
	return status;
}

/* Whether the file is still the one that was judged: what was made of it is based on that. */
static bool is_as_judged(const struct place *p, const struct change *c)
{
	struct stat st;

	return fstatat(p->dir_fd, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == c->inode &&
	       (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec ==
		       c->ctime_ns;
}

/* Content that was put together here. */
static int put_bytes(struct applying *a, const struct change *c, const struct place *p,
		     const struct buf *bytes, mode_t mode)
{
	bool has_temp;
	auto_fd to = open_copy(a, p, &has_temp);
	char temp[APPLY_NAME_MAX];
	int status = to < 0 ? to : io_write_all(to, buf_text(bytes), bytes->len);

	if (status == 0 && (own_fd(a, p, to) < 0 || fchmod(to, mode_for(p, to, mode & 0777)) < 0))
		status = -errno;
	if (status == 0 && !is_as_judged(p, c))
		status = -ESTALE;
	if (status == 0)
		status = name_file(a, p, to, has_temp);
	temp_name(a, temp);
	if (status < 0)
		unlinkat(p->dir_fd, temp, 0);
	return status;
}

/* Both sides' edits; with markers where that was decided. */
static int put_merged(struct applying *a, const struct change *c, const struct place *p,
		      bool markers)
{
	auto_fd ours = openat(p->dir_fd, p->name,
			      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf bytes = { 0 };
	size_t conflicts = 0;
	mode_t mode = 0;
	int status =
		ours < 0 ? -ESTALE : changes_merge(a->review, c, ours, &bytes, &mode, &conflicts);

	if (status == -ENOENT || status == -EINVAL || (status == 0 && conflicts && !markers))
		return -ESTALE;
	return status < 0 ? status : put_bytes(a, c, p, &bytes, mode);
}

static int put_link(struct applying *a, const struct change *c, const struct place *p)
{
	const char *name;
	auto_fd dir = changes_open_parent(a->review->upper_fd, c->path, &name);
	char target[4096], temp[APPLY_NAME_MAX];
	ssize_t n = dir < 0 ? -1 : readlinkat(dir, name, target, sizeof(target) - 1);
	int status = 0;

	if (dir < 0 || n < 0)
		return dir < 0 ? dir : -errno;
	target[n] = '\0';
	if (changes_link_leaves(a->review->record.workspace, c->path, target))
		return -EXDEV; /* judged before, and nobody can have changed it */
	temp_name(a, temp);
	if (p->there && S_ISDIR(p->st.st_mode) && unlinkat(p->dir_fd, p->name, AT_REMOVEDIR) < 0)
		return -errno;
	if (symlinkat(target, p->dir_fd, temp) < 0)
		return -errno;
	if (own_link(a, p, temp) < 0 || renameat(p->dir_fd, temp, p->dir_fd, p->name) < 0)
		status = -errno;
	if (status < 0)
		unlinkat(p->dir_fd, temp, 0);
	return status;
}

/* Its own mode comes last, when what is in it is there. */
static int put_dir(struct applying *a, const struct change *c, const struct place *p)
{
	auto_fd fd = -1;

	if (p->there && S_ISDIR(p->st.st_mode))
		return 0;
	if (p->there && unlinkat(p->dir_fd, p->name, 0) < 0)
		return -errno;
	if (mkdirat(p->dir_fd, p->name, (c->new_mode & 0777) | 0700) < 0)
		return -errno;
	fd = openat(p->dir_fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || own_fd(a, &(struct place){ .dir_fd = -1 }, fd) < 0)
		return -errno;
	return 0;
}

/* Only the mode of what is there, and more. */
static int put_mode(const struct change *c, const struct place *p, mode_t more)
{
	auto_fd fd = openat(p->dir_fd, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != p->st.st_ino || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return -ESTALE;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return chmod(link, (c->new_mode & 0777) | more) < 0 ? -errno : 0;
}

/* What outside hands can have caused between our look and our touch. */
static bool is_race(int status)
{
	return status == -EEXIST || status == -ENOTEMPTY || status == -ESTALE ||
	       status == -EISDIR || status == -ENOTDIR;
}

int apply_put(struct applying *a, const struct change *c, enum apply_outcome how)
{
	const struct apply_pick *pick =
		how == APPLY_PART ? apply_find_pick(a->request, c->path) : NULL;
	struct place p;
	int status = open_place(a, c, &p);

	if (status == 0 && pick)
		status = put_bytes(a, c, &p, pick->content, p.st.st_mode);
	else if (status == 0 && (c->merged || how == APPLY_MARKED))
		status = put_merged(a, c, &p, how == APPLY_MARKED);
	else if (status == 0 && c->kind == CHANGE_MODE)
		/* until what is in it is done */
		status = put_mode(c, &p, S_ISDIR(c->new_mode) ? 0700 : 0);
	else if (status == 0 && S_ISREG(c->new_mode))
		status = put_file(a, c, &p);
	else if (status == 0 && S_ISLNK(c->new_mode))
		status = put_link(a, c, &p);
	else if (status == 0)
		status = put_dir(a, c, &p);
	else if (status < 0)
		return status;
	own_close_fd(&p.dir_fd);
	if (status == 1 || is_race(status))
		return 1;
	return status < 0 ? fail_at(a, c, -status) : 0;
}

int apply_dir_mode(struct applying *a, const struct change *c)
{
	struct place p;
	int status = open_place(
		&(struct applying){ .review = a->review,
				    .e = a->e,
				    .request = &(struct apply_request){ .force = true } },
		c, &p);

	if (status == 0 && p.there && S_ISDIR(p.st.st_mode) &&
	    (p.st.st_mode & 0777) != (c->new_mode & 0777)) {
		status = put_mode(c, &p, 0);
		if (status < 0)
			status = fail_at(a, c, -status);
	}
	own_close_fd(&p.dir_fd);
	return status;
}

int apply_delete(struct applying *a, const struct change *c)
{
	struct place p;
	int status = open_place(a, c, &p);

	if (status == 0 && p.there &&
	    unlinkat(p.dir_fd, p.name, S_ISDIR(p.st.st_mode) ? AT_REMOVEDIR : 0) < 0)
		status = errno == ENOENT ? 0 : -errno;
	else if (status < 0)
		return status;
	own_close_fd(&p.dir_fd);
	if (status == 1 || is_race(status))
		return 1;
	return status < 0 ? fail_at(a, c, -status) : 0;
}

void apply_drop(const struct review *r, const struct change *c)
{
	const char *name;
	auto_fd dir = c->opaque ? -1 : changes_open_parent(r->upper_fd, c->path, &name);
	struct stat st;

	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (c->kind == CHANGE_DELETED && !S_ISCHR(st.st_mode))
		return; /* something of another change has the name */
	if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
		return; /* it stays, and equals the workspace: no change any more */
}
