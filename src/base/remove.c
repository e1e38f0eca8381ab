/*
 * Removing what a sandbox left in a directory of its own. Runs in the supervisor or in `ward
 * recover`, with the user's rights, when the sandbox is dead. Nothing is followed, a directory is
 * entered by descriptor, and what lies too deep is moved up to the top first, so that depth costs
 * neither stack nor descriptors.
 */
#include "base/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 16
#define ROUNDS_MAX 100000

struct removal {
	int top_fd;
	unsigned moved; /* names given to what was moved up */
	bool again;     /* something was moved up */
};

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A directory of the sandbox's may be closed to its owner too. */
static int open_dir(int dir_fd, const char *name)
{
	auto_fd path_fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char self[32];
	struct stat st;

	if (path_fd < 0)
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	if (fstat(path_fd, &st) < 0 || ((st.st_mode & 0700) != 0700 && chmod(self, 0700) < 0))
		return -errno;
	int fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* To the top, under a name that is free there, or an empty directory's: the tree may have such
 * names itself. Without flags, which NFS and others do not have. */
static int move_up(struct removal *r, int dir_fd, const char *name)
{
	char up[32];

	do {
		snprintf(up, sizeof(up), ".up-%u", r->moved++);
		if (renameat(dir_fd, name, r->top_fd, up) == 0) {
			r->again = true;
			return 0;
		}
	} while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
	return -errno;
}

static int clear_dir(struct removal *r, int fd, unsigned depth);

static int remove_entry(struct removal *r, int dir_fd, const char *name, unsigned depth)
{
	int fd, err;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	err = -errno;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES)
		return errno == ENOTDIR ? err : -errno; /* of a file the first one says why */
	/* only a directory that its owner may write can be moved, too */
	fd = open_dir(dir_fd, name);
	if (fd < 0)
		return fd;
	if (depth >= DEPTH_MAX) {
		close(fd);
		return move_up(r, dir_fd, name);
	}
	err = clear_dir(r, fd, depth + 1);
	if (err == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		err = -errno;
	return err;
}

/* Takes fd. */
static int clear_dir(struct removal *r, int fd, unsigned depth)
{
	auto_dir dir = fdopendir(fd);
	struct dirent *entry;
	int err = 0;

	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (err == 0 && (entry = readdir(dir)))
		if (!is_dot(entry->d_name))
			err = remove_entry(r, fd, entry->d_name, depth);
	return err;
}

int remove_tree(const char *path)
{
	return remove_tree_at(AT_FDCWD, path);
}

int remove_tree_at(int dir_fd, const char *path)
{
	struct removal r = { .top_fd = -1, .again = true };
	auto_fd top = open_dir(dir_fd, path);
	int err = 0;

	if (top < 0)
		return top == -ENOENT ? 0 : top;
	r.top_fd = top;
	for (unsigned rounds = 0; err == 0 && r.again && rounds < ROUNDS_MAX; rounds++) {
		int fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r.again = false;
		err = fd < 0 ? -errno : clear_dir(&r, fd, 0);
	}
	if (err == 0 && unlinkat(dir_fd, path, AT_REMOVEDIR) < 0)
		err = -errno;
	return err;
}
