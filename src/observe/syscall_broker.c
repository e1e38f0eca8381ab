/*
 * Calls on behalf of the sandbox, on the Landlock level.
 *
 * Landlock confines what is opened, made, renamed and removed, but not modes, times and attributes:
 * chmod of any file of the user would go through. So the filter sends those calls here. In: a
 * notification, that is a number and six registers of a process that waits. Out: the error that it
 * gets. Runs in the supervisor, with more rights than the sandbox has, so it trusts nothing:
 *
 *   - everything behind a pointer is copied once from the caller's memory and used only from the
 *     copy;
 *   - /proc/PID is opened once, and that it is the process that waits is checked after that
 *     (NOTIF_ID_VALID): a pid that was reused in between is noticed, a later one is another
 *     directory;
 *   - a path is resolved by the supervisor, beneath the directory of a writable tree (openat2, no
 *     magic links); a relative one starts at the caller's directory, which must lie in such a tree
 *     as well. A descriptor must be of a file in one;
 *   - the file must belong to the sandbox's user, which is also the supervisor's; set-id bits are
 *     never set (the filter has refused them already); of attributes only those in "user.";
 *   - nothing is opened for reading or writing (O_PATH), so no device, pipe or lease can make it
 *     wait.
 */
#include "observe/syscall_broker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#include "base/path.h"
#include "plan/level.h"

#define PAGE_BYTES 4096
#define XATTR_NAME_LEN 256
#define XATTR_VALUE_MAX 65536
#define SYS_FCHMODAT2 452

#define NONE 7 /* as an argument's index: there is none */

enum operation { CHANGE_MODE, CHANGE_TIMES, SET_ATTRIBUTE, REMOVE_ATTRIBUTE };
enum time_format { TIME_NONE, TIME_UTIMBUF, TIME_TIMEVAL, TIME_TIMESPEC };

struct served {
	int nr;
	enum operation operation;
	unsigned dir, path; /* indices of arguments: directory descriptor, path; path NONE: dir is
			       the file itself */
	unsigned value;     /* mode, times, or attribute name (value, size, flags follow) */
	unsigned flags;     /* AT_*; NONE */
	bool nofollow;
	enum time_format times;
};

static const struct served served_calls[] = {
	{ SYS_chmod, CHANGE_MODE, NONE, 0, 1, NONE, false, TIME_NONE },
	{ SYS_fchmod, CHANGE_MODE, 0, NONE, 1, NONE, false, TIME_NONE },
	{ SYS_fchmodat, CHANGE_MODE, 0, 1, 2, NONE, false, TIME_NONE },
	{ SYS_FCHMODAT2, CHANGE_MODE, 0, 1, 2, 3, false, TIME_NONE },
	{ SYS_utime, CHANGE_TIMES, NONE, 0, 1, NONE, false, TIME_UTIMBUF },
	{ SYS_utimes, CHANGE_TIMES, NONE, 0, 1, NONE, false, TIME_TIMEVAL },
	{ SYS_futimesat, CHANGE_TIMES, 0, 1, 2, NONE, false, TIME_TIMEVAL },
	{ SYS_utimensat, CHANGE_TIMES, 0, 1, 2, 3, false, TIME_TIMESPEC },
	{ SYS_setxattr, SET_ATTRIBUTE, NONE, 0, 1, NONE, false, TIME_NONE },
	{ SYS_lsetxattr, SET_ATTRIBUTE, NONE, 0, 1, NONE, true, TIME_NONE },
	{ SYS_fsetxattr, SET_ATTRIBUTE, 0, NONE, 1, NONE, false, TIME_NONE },
	{ SYS_removexattr, REMOVE_ATTRIBUTE, NONE, 0, 1, NONE, false, TIME_NONE },
	{ SYS_lremovexattr, REMOVE_ATTRIBUTE, NONE, 0, 1, NONE, true, TIME_NONE },
	{ SYS_fremovexattr, REMOVE_ATTRIBUTE, 0, NONE, 1, NONE, false, TIME_NONE },
};

struct tree {
	char *path; /* cleaned, links resolved */
	int fd;
};

struct syscall_broker {
	uid_t uid; /* of the sandbox */
	struct tree *trees;
	size_t tree_count;
};

/* The caller of one call. */
struct caller {
	int proc_fd; /* /proc/PID, checked */
	int mem_fd;
	const uint64_t *args;
};

void syscall_broker_destroy(struct syscall_broker *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->tree_count; i++) {
		close(b->trees[i].fd);
		free(b->trees[i].path);
	}
	free(b->trees);
	free(b);
}

static int add_tree(struct syscall_broker *b, const char *path, struct ward_err *e)
{
	auto_free char *real = realpath(path, NULL);
	auto_fd fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (!real || fd < 0)
		return ward_fail_errno(e, "cannot open the directory %s", path);
	b->trees[b->tree_count++] = (struct tree){ take_ptr(real), take_fd(&fd) };
	return 0;
}

int syscall_broker_create(const struct plan *p, struct syscall_broker **ret_broker,
			  struct ward_err *e)
{
	struct syscall_broker *b = calloc(1, sizeof(*b));
	char tmp[64];
	int r = 0;

	if (!b)
		return ward_fail(e, ENOMEM, "out of memory");
	b->uid = p->ids.host_uid;
	b->trees = calloc(p->mount_count + 1, sizeof(*b->trees));
	if (!b->trees)
		r = ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < p->mount_count && r == 0; i++)
		if (p->mounts[i].kind == MOUNT_BIND && p->mounts[i].writable &&
		    !p->mounts[i].is_file)
			r = add_tree(b, p->mounts[i].source, e);
	level_tmp_path(p->spec->run_id, tmp, sizeof(tmp));
	if (r == 0 && access(tmp, F_OK) == 0)
		r = add_tree(b, tmp, e);
	if (r < 0) {
		syscall_broker_destroy(b);
		return r;
	}
	*ret_broker = b;
	return 0;
}

static const struct served *find_served(int nr)
{
	for (size_t i = 0; i < ARRAY_LEN(served_calls); i++)
		if (served_calls[i].nr == nr)
			return &served_calls[i];
	return NULL;
}

bool syscall_broker_serves(int nr)
{
	return find_served(nr) != NULL;
}

/* ---- the caller's memory ---- */

static int copy_bytes(const struct caller *c, uint64_t address, void *to, size_t n)
{
	if (address > INT64_MAX)
		return -EFAULT;
	ssize_t got = pread(c->mem_fd, to, n, (off_t)address);

	return got == (ssize_t)n ? 0 : -EFAULT;
}

/* A string of less than n bytes, page by page: behind its end may lie nothing. */
static int copy_string(const struct caller *c, uint64_t address, char *to, size_t n, int too_long)
{
	size_t have = 0;

	while (have < n) {
		size_t step = PAGE_BYTES - (address + have) % PAGE_BYTES;
		ssize_t got;

		step = step < n - have ? step : n - have;
		if (address + have > INT64_MAX)
			return -EFAULT;
		got = pread(c->mem_fd, to + have, step, (off_t)(address + have));
		if (got <= 0)
			return -EFAULT;
		if (memchr(to + have, '\0', (size_t)got))
			return 0;
		have += (size_t)got;
	}
	return -too_long;
}

/* ---- which file ---- */

static const struct tree *find_tree(const struct syscall_broker *b, const char *path)
{
	for (size_t i = 0; i < b->tree_count; i++)
		if (path_is_beneath(path, b->trees[i].path))
			return &b->trees[i];
	return NULL;
}

static const char *rest_of(const struct tree *t, const char *path)
{
	path += strlen(t->path);
	path += strspn(path, "/");
	return *path ? path : ".";
}

static int open_in_tree(const struct tree *t, const char *rest, bool nofollow)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	long fd = -1;

	/* EAGAIN: a process renames while ".." is resolved; the sandbox could do that for ever */
	for (int tries = 0; tries < 8; tries++) {
		fd = syscall(SYS_openat2, t->fd, rest, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	if (fd >= 0)
		return (int)fd;
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EACCES:
	case EAGAIN:
		return -errno;
	default:
		return -EPERM; /* it leaves the tree, or openat2 is not to be had */
	}
}

/* The path of a link below /proc/PID; it may be cut only by being too long, which is refused. */
static int read_link(int dir_fd, const char *name, char *to, size_t n)
{
	ssize_t len = readlinkat(dir_fd, name, to, n);

	if (len < 0 || (size_t)len >= n)
		return -EPERM;
	to[len] = '\0';
	return 0;
}

/* The file behind a descriptor of the caller. */
static int open_descriptor(const struct syscall_broker *b, const struct caller *c, int number)
{
	char name[32], path[PATH_MAX];
	auto_fd fd = -1;

	if (number < 0)
		return -EBADF;
	snprintf(name, sizeof(name), "fd/%d", number);
	fd = openat(c->proc_fd, name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EBADF : -EPERM;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (read_link(AT_FDCWD, name, path, sizeof(path)) < 0 || !find_tree(b, path))
		return -EPERM;
	return take_fd(&fd);
}

static int open_relative(const struct syscall_broker *b, const struct caller *c, int dir,
			 const char *path, bool nofollow)
{
	char name[32] = "cwd", base[PATH_MAX];
	auto_free char *whole = NULL;
	const struct tree *t;

	if (dir != AT_FDCWD)
		snprintf(name, sizeof(name), "fd/%d", dir);
	if (read_link(c->proc_fd, name, base, sizeof(base)) < 0)
		return dir == AT_FDCWD ? -EPERM : -EBADF;
	t = find_tree(b, base);
	if (!t)
		return -EPERM;
	if (asprintf(&whole, "%s/%s", rest_of(t, base), path) < 0)
		return -ENOMEM;
	return open_in_tree(t, whole, nofollow);
}

static int open_path(const struct syscall_broker *b, const struct caller *c, int dir,
		     const char *path, bool nofollow)
{
	const struct tree *t;

	if (*path != '/')
		return open_relative(b, c, dir, path, nofollow);
	t = find_tree(b, path);
	return t ? open_in_tree(t, rest_of(t, path), nofollow) : -EPERM;
}

static int open_target(const struct syscall_broker *b, const struct caller *c,
		       const struct served *s)
{
	int dir = s->dir == NONE ? AT_FDCWD : (int)(uint32_t)c->args[s->dir];
	unsigned flags = s->flags == NONE ? 0 : (unsigned)c->args[s->flags];
	char path[PATH_MAX];
	int r;

	if (flags & ~(unsigned)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (s->path == NONE ||
	    (!c->args[s->path] && s->operation == CHANGE_TIMES && s->dir != NONE))
		return open_descriptor(b, c, dir);
	r = copy_string(c, c->args[s->path], path, sizeof(path), ENAMETOOLONG);
	if (r < 0)
		return r;
	if (*path)
		return open_path(b, c, dir, path, s->nofollow || flags & AT_SYMLINK_NOFOLLOW);
	if (!(flags & AT_EMPTY_PATH))
		return -ENOENT;
	return dir == AT_FDCWD ? open_relative(b, c, dir, ".", false) : open_descriptor(b, c, dir);
}

/* ---- what is done to it ---- */

static int copy_times(const struct caller *c, const struct served *s, struct timespec to[2])
{
	struct utimbuf seconds;
	struct timeval micro[2];
	uint64_t address = c->args[s->value];
	int r;

	switch (s->times) {
	case TIME_UTIMBUF:
		r = copy_bytes(c, address, &seconds, sizeof(seconds));
		to[0] = (struct timespec){ .tv_sec = r ? 0 : seconds.actime };
		to[1] = (struct timespec){ .tv_sec = r ? 0 : seconds.modtime };
		return r;
	case TIME_TIMEVAL:
		r = copy_bytes(c, address, micro, sizeof(micro));
		for (int i = 0; i < 2 && r == 0; i++) {
			if (micro[i].tv_usec < 0 || micro[i].tv_usec >= 1000000)
				return -EINVAL;
			to[i] = (struct timespec){ micro[i].tv_sec, micro[i].tv_usec * 1000 };
		}
		return r;
	case TIME_TIMESPEC:
		return copy_bytes(c, address, to, 2 * sizeof(*to));
	case TIME_NONE:
		break;
	}
	return -EINVAL;
}

static int change_times(const struct caller *c, const struct served *s, int fd)
{
	struct timespec times[2];
	bool now = !c->args[s->value];

	if (!now) {
		int r = copy_times(c, s, times);

		if (r < 0)
			return r;
	}
	return utimensat(fd, "", now ? NULL : times, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int change_attribute(const struct caller *c, const struct served *s, const char *file)
{
	const uint64_t *args = c->args + s->value; /* name, value, size, flags */
	char name[XATTR_NAME_LEN];
	auto_free void *value = NULL;
	int r = copy_string(c, args[0], name, sizeof(name), ERANGE);

	if (r < 0)
		return r;
	if (strncmp(name, "user.", 5) != 0)
		return -EOPNOTSUPP;
	if (s->operation == REMOVE_ATTRIBUTE)
		return removexattr(file, name) < 0 ? -errno : 0;
	if (args[2] > XATTR_VALUE_MAX)
		return -E2BIG;
	value = malloc(args[2] + 1);
	if (!value)
		return -ENOMEM;
	r = args[2] ? copy_bytes(c, args[1], value, args[2]) : 0;
	if (r == 0 && setxattr(file, name, value, args[2], (int)(uint32_t)args[3]) < 0)
		r = -errno;
	return r;
}

static int change(const struct syscall_broker *b, const struct caller *c, const struct served *s,
		  int fd)
{
	mode_t mode = (mode_t)c->args[s->value] & 07777;
	char file[32];
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_uid != b->uid)
		return -EPERM;
	if (s->operation == CHANGE_TIMES)
		return change_times(c, s, fd);
	if (S_ISLNK(st.st_mode))
		return -EOPNOTSUPP;
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	if (s->operation != CHANGE_MODE)
		return change_attribute(c, s, file);
	if (mode & (S_ISUID | S_ISGID))
		return -EPERM;
	return chmod(file, mode) < 0 ? -errno : 0;
}

int syscall_broker_call(struct syscall_broker *b, int notify_fd,
			const struct seccomp_notif *request)
{
	const struct served *s = find_served(request->data.nr);
	auto_fd proc_fd = -1, mem_fd = -1, fd = -1;
	struct caller c = { .args = (const uint64_t *)request->data.args };
	uint64_t id = request->id;
	char path[32];

	if (!s)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%u", request->pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	mem_fd = proc_fd < 0 ? -1 : openat(proc_fd, "mem", O_RDONLY | O_CLOEXEC);
	if (mem_fd < 0 || ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		return -EPERM;
	c.proc_fd = proc_fd;
	c.mem_fd = mem_fd;
	fd = open_target(b, &c, s);
	if (fd < 0)
		return fd;
	/* links below /proc/PID were read while the call waited: it must wait still */
	if (ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		return -EPERM;
	return change(b, &c, s, fd);
}
