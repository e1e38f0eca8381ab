/*
 * Walking a name that a sandbox has chosen. In: a root and an absolute path. Out: whether it
 * exists, and its name without links. Runs in the supervisor with the user's rights, over the
 * sandbox's root (there the sandbox may change everything meanwhile) and over the host's.
 *
 * Each step opens one name as a place only (O_PATH | O_NOFOLLOW): links are read as text and begun
 * again from the root, so none leads out of it and a magic link of /proc is nothing but its text.
 * The kernel's own file systems are not entered, by whatever name or bind they are reached, nor are
 * automounts: an O_PATH open does not start one, and a place that is still autofs is refused. Steps
 * are counted; a file system that answers slowly (FUSE, NFS) is waited for.
 */
#include "observe/walk_names.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/own.h"
#include "base/path.h"

#define STEPS_MAX 2048 /* names that are opened */
#define LINKS_MAX 40   /* as the kernel */

struct walk {
	/* names that were walked, each with its slash in front; no links among them */
	char done[PATH_MAX];
	char left[PATH_MAX]; /* what is to be walked */
	dev_t device;        /* of the place that was reached */
	unsigned steps, links;
};

static bool is_kernels(int fd)
{
	static const unsigned refused[] = {
		AUTOFS_SUPER_MAGIC, PROC_SUPER_MAGIC,   SYSFS_MAGIC,        DEBUGFS_MAGIC,
		TRACEFS_MAGIC,      SECURITYFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		BPF_FS_MAGIC,       DEVPTS_SUPER_MAGIC, NSFS_MAGIC,         PSTOREFS_MAGIC,
		EFIVARFS_MAGIC,     BINFMTFS_MAGIC,     SELINUX_MAGIC
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if ((unsigned)fs.f_type == refused[i])
			return true;
	return false;
}

/* What is left becomes done/first/left, from the root again. false: too long. */
static bool begin_again(struct walk *w, const char *first)
{
	char all[PATH_MAX];
	int n = snprintf(all, sizeof(all), "%s/%s/%s", first[0] == '/' ? "" : w->done, first,
			 w->left);

	if (n < 0 || (size_t)n >= sizeof(all))
		return false;
	memcpy(w->left, all, (size_t)n + 1);
	w->done[0] = '\0';
	return true;
}

/* The next name, taken from what is left; "": there is none. false: too long for any file. */
static bool next_name(struct walk *w, char name[NAME_MAX + 1])
{
	const char *at = w->left + strspn(w->left, "/");
	size_t n = strcspn(at, "/");

	if (n > NAME_MAX)
		return false;
	memcpy(name, at, n);
	name[n] = '\0';
	memmove(w->left, at + n, strlen(at + n) + 1);
	return true;
}

/* One up: all but the last name is walked again. */
static bool go_up(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash)
		*slash = '\0';
	return begin_again(w, ".");
}

static bool follow_link(struct walk *w, int fd)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(fd, "", text, sizeof(text) - 1);

	if (n <= 0 || ++w->links > LINKS_MAX)
		return false;
	text[n] = '\0';
	return begin_again(w, text);
}

static bool add_name(struct walk *w, const char *name)
{
	size_t at = strlen(w->done), n = strlen(name);

	if (at + n + 2 > sizeof(w->done))
		return false;
	w->done[at] = '/';
	memcpy(w->done + at + 1, name, n + 1);
	return true;
}

/* The name as it is known up to here, and as it was asked for beyond. */
static enum walk_end end_walk(struct walk *w, enum walk_end end, char *ret)
{
	auto_free char *clean = NULL;

	if (!begin_again(w, "."))
		return WALK_REFUSED;
	clean = path_clean(w->left);
	if (!clean || strlen(clean) >= PATH_MAX)
		return WALK_REFUSED;
	memcpy(ret, clean, strlen(clean) + 1);
	return path_is_beneath(ret, "/dev") ? WALK_REFUSED : end;
}

/* Walks until the end, an absent name or a link. 1: from the root again. */
static int walk_once(struct walk *w, int root_fd, bool follow, enum walk_end *ret)
{
	auto_fd at = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	*ret = WALK_REFUSED;
	if (at < 0 || fstat(at, &st) < 0)
		return 0;
	w->device = st.st_dev;
	for (;;) {
		char name[NAME_MAX + 1];
		auto_fd fd = -1;

		if (!next_name(w, name))
			return 0;
		if (!name[0]) {
			*ret = WALK_THERE;
			return 0;
		}
		if (strcmp(name, ".") == 0)
			continue;
		if (++w->steps > STEPS_MAX)
			return 0;
		if (strcmp(name, "..") == 0)
			return go_up(w);
		fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0) {
			*ret = errno == ENOENT && add_name(w, name) ? WALK_ABSENT : WALK_REFUSED;
			return 0;
		}
		if (fstat(fd, &st) < 0 || (st.st_dev != w->device && is_kernels(fd)))
			return 0;
		w->device = st.st_dev;
		if (S_ISLNK(st.st_mode) && (follow || w->left[strspn(w->left, "/")]))
			return follow_link(w, fd);
		if (!add_name(w, name))
			return 0;
		close(at);
		at = take_fd(&fd);
	}
}

enum walk_end walk_names(int root_fd, const char *path, bool follow, char *ret)
{
	struct walk w = { .steps = 0 };
	enum walk_end end;

	if (path[0] != '/' || strlen(path) >= sizeof(w.left))
		return WALK_REFUSED;
	memcpy(w.left, path, strlen(path) + 1);
	while (walk_once(&w, root_fd, follow, &end) > 0)
		;
	return end == WALK_REFUSED ? end : end_walk(&w, end, ret);
}
