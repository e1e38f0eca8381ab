/*
 * Where on the host ward cp reads and writes. In: a path that the user typed, and the directories
 * that the sandbox can write. Out: an open file or directory. Runs with the user's rights. The path
 * is walked name by name: a link is followed only if it stands where the sandbox cannot have made
 * it. What the user calls such a directory does not matter, nor whose link led into it: it is the
 * directory that holds the link that counts, by the path the kernel has for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "control/copy.h"

#define LINKS_MAX 40 /* as the kernel's */

struct place_walk {
	const struct strv *writable;
	int fd;     /* the directory that is reached */
	char *rest; /* what is still to be walked; owned */
	unsigned links;
	struct ward_err *e;
};

/* Whether the sandbox can make names in this directory. If that is unknown, yes. */
static bool is_writable(const struct place_walk *w)
{
	char link[32], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", w->fd);
	n = readlink(link, path, sizeof(path));
	if (n < 0 || n == (ssize_t)sizeof(path))
		return true;
	path[n] = '\0';
	for (size_t i = 0; i < w->writable->len; i++)
		if (path_is_beneath(path, w->writable->items[i]))
			return true;
	return false;
}

/* Puts the target of the link `name`, open as link_fd, before what is still to be walked. */
static int follow(struct place_walk *w, int link_fd, const char *name, const char *rest)
{
	char target[4096], *longer = NULL;
	ssize_t n;

	if (is_writable(w)) {
		ward_fail(w->e, ELOOP, "%.300s is a link in a directory that the sandbox can write",
			  name);
		return ward_remedy(w->e, "the sandbox may have made it: name its target instead");
	}
	n = readlinkat(link_fd, "", target, sizeof(target) - 1);
	if (n < 0 || ++w->links > LINKS_MAX)
		return ward_fail(w->e, n < 0 ? errno : ELOOP, "cannot follow the link %.300s",
				 name);
	target[n] = '\0';
	if (asprintf(&longer, "%s/%s", target, rest) < 0)
		return ward_fail(w->e, ENOMEM, "out of memory");
	free(w->rest);
	w->rest = longer;
	if (target[0] != '/')
		return 0;
	own_close_fd(&w->fd);
	w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return w->fd < 0 ? ward_fail_errno(w->e, "cannot open /") : 0;
}

/* One name. 1: it was the last, and *ret_fd is open. */
static int step(struct place_walk *w, int flags, int *ret_fd)
{
	char *name = w->rest + strspn(w->rest, "/"), *rest = name + strcspn(name, "/");
	bool last;
	auto_fd next = -1;
	struct stat st;
	int fd;

	if (*rest)
		*rest++ = '\0';
	last = rest[strspn(rest, "/")] == '\0';
	next = openat(w->fd, *name ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0 || fstat(next, &st) < 0)
		return ward_fail_errno(w->e, "cannot open %.300s", *name ? name : ".");
	if (S_ISLNK(st.st_mode))
		return follow(w, next, name, rest);
	if (!last) {
		memmove(w->rest, rest, strlen(rest) + 1);
		own_close_fd(&w->fd);
		w->fd = take_fd(&next);
		return 0;
	}
	fd = openat(w->fd, *name ? name : ".", flags | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return ward_fail_errno(w->e, "cannot open %.300s", *name ? name : ".");
	*ret_fd = fd;
	return 1;
}

static int open_at_host(const char *path, const struct strv *writable, int flags,
			struct ward_err *e)
{
	struct place_walk w = { .writable = writable, .rest = strdup(path), .e = e };
	int fd = -1, r = 0;

	w.fd = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!w.rest || w.fd < 0)
		r = ward_fail(e, w.rest ? errno : ENOMEM, "cannot open %.300s", path);
	while (r == 0)
		r = step(&w, flags, &fd);
	own_close_fd(&w.fd);
	free(w.rest);
	return r < 0 ? r : fd;
}

int copy_open_source(const char *path, const struct strv *writable, struct ward_err *e)
{
	struct stat st;
	auto_fd fd = open_at_host(path, writable, O_RDONLY | O_NONBLOCK | O_NOCTTY, e);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return ward_fail(e, EINVAL, "%.300s is neither a file nor a directory", path);
	return take_fd(&fd);
}

int copy_open_place(const char *path, const char *base, const struct strv *writable,
		    struct copy_place *ret_place, struct ward_err *e)
{
	struct ward_err probe = { 0 };
	char *slash;
	int fd = open_at_host(path, writable, O_PATH | O_DIRECTORY, &probe);

	*ret_place = (struct copy_place){ .dir_fd = fd };
	if (fd >= 0 && *base) {
		snprintf(ret_place->name, sizeof(ret_place->name), "%s", base);
		return 0;
	}
	if (fd >= 0)
		close(fd);
	auto_free char *copy = strdup(path);
	if (!copy)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	slash = strrchr(copy, '/');
	snprintf(ret_place->name, sizeof(ret_place->name), "%s", slash ? slash + 1 : copy);
	if (slash)
		slash[slash == copy] = '\0';
	if (copy_check_name(ret_place->name, strlen(ret_place->name)) < 0 || !ret_place->name[0])
		return ward_fail(
			e, EINVAL,
			"%.300s cannot name the copy: end it with a name of a file or directory",
			path);
	ret_place->dir_fd = open_at_host(slash ? copy : ".", writable, O_PATH | O_DIRECTORY, e);
	return ret_place->dir_fd < 0 ? ret_place->dir_fd : 0;
}
