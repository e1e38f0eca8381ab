/*
 * Path handling. The lexical functions are pure and fuzzed (fuzz/path.c). The opening ones refuse
 * whatever would leave the directory they are given; they run in the supervisor and in the verbs
 * with the user's rights, never inside.
 */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LINKS_MAX 40 /* as the kernel's own */

/* As openat2 has it: a link at the end is an error, unless it was asked for. */
static int refuse_link(int fd, int flags)
{
	struct stat st;

	if (!(flags & O_PATH) || flags & O_NOFOLLOW || fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode))
		return fd;
	close(fd);
	return -ELOOP;
}

/* One component at a time, never through a link: what an outer sandbox that hides openat2 leaves
 * us. */
static int walk_nolink(int dir_fd, const char *path, int flags)
{
	auto_fd at = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[256];

	if (at < 0)
		return -errno;
	if (*path == '/')
		return -EXDEV;
	for (;;) {
		size_t n = strcspn(path, "/");
		bool last;
		int next;

		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		path += n + strspn(path + n, "/");
		last = *path == '\0';
		if (strcmp(name, "..") == 0)
			return -EXDEV;
		next = openat(at, n ? name : ".",
			      last ? (flags | O_NOFOLLOW | O_CLOEXEC)
				   : (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
		if (next < 0)
			return -errno;
		if (last)
			return refuse_link(next, flags);
		close(at);
		at = next;
	}
}

struct resolving {
	char done[PATH_MAX]; /* no link in it, beneath the directory */
	char rest[PATH_MAX];
	size_t done_len;
	unsigned links;
};

/* What the link that was reached says goes in front of the rest; 0: it is no link. */
static int expand_link(int dir_fd, struct resolving *r)
{
	auto_fd fd = walk_nolink(dir_fd, r->done, O_PATH | O_NOFOLLOW);
	char text[PATH_MAX];
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", text, sizeof(text));
	size_t rest_len = strlen(r->rest);

	if (fd < 0)
		return fd;
	if (n < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : -errno;
	if (n == 0 || *text == '/')
		return -EXDEV;
	if (++r->links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)n + 1 + rest_len >= sizeof(r->rest))
		return -ENAMETOOLONG;
	memmove(r->rest + n + 1, r->rest, rest_len + 1);
	memcpy(r->rest, text, (size_t)n);
	r->rest[n] = '/';
	return 1;
}

static int resolve_name(int dir_fd, struct resolving *r, const char *name, size_t n)
{
	size_t before = r->done_len;
	int is_link;

	if (n == 2 && memcmp(name, "..", 2) == 0) {
		if (r->done_len == 0)
			return -EXDEV;
		while (r->done_len && r->done[--r->done_len] != '/')
			;
		r->done[r->done_len] = '\0';
		return 0;
	}
	if (before + n + 2 > sizeof(r->done))
		return -ENAMETOOLONG;
	if (before)
		r->done[r->done_len++] = '/';
	memcpy(r->done + r->done_len, name, n);
	r->done_len += n;
	r->done[r->done_len] = '\0';
	is_link = expand_link(dir_fd, r);
	if (is_link > 0) {
		r->done_len = before;
		r->done[before] = '\0';
	}
	return is_link < 0 ? is_link : 0;
}

/* Follows links by hand as long as they stay beneath; what is opened in the end is opened through
 * none. */
static int walk_beneath(int dir_fd, const char *path, int flags)
{
	struct resolving r = { .done_len = 0 };

	if (*path == '/')
		return -EXDEV;
	if (strlen(path) >= sizeof(r.rest))
		return -ENAMETOOLONG;
	memcpy(r.rest, path, strlen(path) + 1);
	while (*r.rest) {
		char name[256];
		size_t n = strcspn(r.rest, "/"), skip = n + strspn(r.rest + n, "/");
		int err;

		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, r.rest, n);
		memmove(r.rest, r.rest + skip, strlen(r.rest + skip) + 1);
		err = n == 0 || (n == 1 && *name == '.') ? 0 : resolve_name(dir_fd, &r, name, n);
		if (err < 0)
			return err;
	}
	return walk_nolink(dir_fd, r.done_len ? r.done : ".", flags);
}

static int open_resolved(int dir_fd, const char *path, int flags, uint64_t resolve,
			 struct ward_err *e)
{
	struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC, .resolve = resolve };
	long fd;

	do
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
		fd = resolve & RESOLVE_NO_SYMLINKS ? walk_nolink(dir_fd, path, flags)
						   : walk_beneath(dir_fd, path, flags);
		if (fd < 0)
			errno = (int)-fd;
	}
	if (fd < 0 && errno == EXDEV)
		return ward_fail(e, EXDEV, "cannot open %s: it leads out of the directory", path);
	return fd < 0 ? ward_fail_errno(e, "cannot open %s", path) : (int)fd;
}

int path_open_beneath(int dir_fd, const char *path, int flags, struct ward_err *e)
{
	return open_resolved(dir_fd, path, flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, e);
}

int path_open_nolink(int dir_fd, const char *path, int flags, struct ward_err *e)
{
	return open_resolved(dir_fd, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, e);
}

char *path_clean(const char *path)
{
	size_t len = strlen(path), out = 0;
	char *clean;

	if (*path != '/')
		return NULL;
	clean = malloc(len + 2);
	if (!clean)
		return NULL;
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (out && clean[--out] != '/')
				;
		} else if (n && !(n == 1 && path[0] == '.')) {
			clean[out++] = '/';
			memcpy(clean + out, path, n);
			out += n;
		}
		path += n;
	}
	if (!out)
		clean[out++] = '/';
	clean[out] = '\0';
	return clean;
}

char *path_join(const char *base, const char *rest)
{
	auto_buf joined = { 0 };

	if (*rest == '/')
		return path_clean(rest);
	buf_puts(&joined, base);
	buf_puts(&joined, "/");
	buf_puts(&joined, rest);
	return joined.failed ? NULL : path_clean(joined.data);
}

/* realpath() of musl leaves "//" in front as it is. */
static const char *one_slash(const char *path)
{
	while (path[0] == '/' && path[1] == '/')
		path++;
	return path;
}

bool path_is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir = one_slash(dir));

	path = one_slash(path);
	if (n == 1)
		return *path == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}
