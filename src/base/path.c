/*
 * Path handling. The lexical functions are pure and fuzzed (fuzz/path.c). The opening ones refuse whatever would leave
 * the directory they are given; they run in the supervisor and in the verbs with the user's rights, never inside.
 */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

/* One component at a time, never through a link: what an outer sandbox that hides openat2 leaves us. */
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
			return next;
		close(at);
		at = next;
	}
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
		fd = walk_nolink(dir_fd, path, flags);
		if (fd < 0)
			errno = (int)-fd;
	}
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
	buf_printf(&joined, "%s/%s", base, rest);
	return joined.failed ? NULL : path_clean(joined.data);
}

bool path_is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1)
		return *path == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}
