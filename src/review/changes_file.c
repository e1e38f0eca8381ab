/*
 * Files of a review and of the workspace: opening them through no link, comparing their bytes. Runs
 * in the verbs with the user's rights. Depth and size are an agent's choice: a path may be longer
 * than the kernel takes, a file larger than memory, and mostly holes, which are skipped and not
 * read.
 */
#include "review/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/path.h"

#define CHUNK_BYTES (128u << 10)
#define PIECE_MAX 3000 /* of a path, well below PATH_MAX */

int changes_open_parent(int root_fd, const char *path, const char **ret_name)
{
	const char *name = strrchr(path, '/');
	auto_fd at = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ward_err ignored;

	if (at < 0)
		return -errno;
	*ret_name = name ? name + 1 : path;
	while (name && path < name) {
		const char *end = name;
		char piece[PIECE_MAX + NAME_MAX + 2];
		int next;

		if (end - path > PIECE_MAX) {
			end = strchr(path + PIECE_MAX, '/');
			if (end > name || end - path >= (ptrdiff_t)sizeof(piece))
				return -ENAMETOOLONG;
		}
		memcpy(piece, path, (size_t)(end - path));
		piece[end - path] = '\0';
		next = path_open_nolink(at, piece, O_RDONLY | O_DIRECTORY, &ignored);
		if (next == -EACCES) /* enough to reach what is in it */
			next = path_open_nolink(at, piece, O_PATH | O_DIRECTORY, &ignored);
		if (next < 0)
			return next;
		close(at);
		at = next;
		path = end + 1;
	}
	return take_fd(&at);
}

int changes_open_file(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags), error;
	auto_fd path_fd = -1;
	char link[32];
	struct stat st;

	if (fd >= 0 || errno != EACCES)
		return fd < 0 ? -errno : fd;
	path_fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    chmod(link, (st.st_mode & 0777) | 0400) < 0)
		return -errno;
	fd = openat(dir_fd, name, flags);
	error = errno;
	if (chmod(link, st.st_mode & 0777) < 0 && fd >= 0) {
		error = errno;
		close(fd);
		fd = -1;
	}
	return fd < 0 ? -error : fd;
}

/* Where the next byte is that is not in a hole; size: there is none. */
static uint64_t next_data(int fd, uint64_t at, uint64_t size)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	if (data >= 0)
		return (uint64_t)data < size ? (uint64_t)data : size;
	return errno == ENXIO ? size : at; /* a file system that knows no holes */
}

static ssize_t read_at(int fd, char *bytes, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pread(fd, bytes + done, n - done, (off_t)(at + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

int changes_same_content(int a_fd, int b_fd, uint64_t size)
{
	auto_free char *a = malloc(2 * CHUNK_BYTES);
	char *b;

	if (!a)
		return -ENOMEM;
	b = a + CHUNK_BYTES;
	for (uint64_t at = 0; at < size;) {
		uint64_t a_next = next_data(a_fd, at, size), b_next = next_data(b_fd, at, size);
		ssize_t n, m;

		at = a_next < b_next ? a_next : b_next;
		if (at >= size)
			return 1;
		n = read_at(a_fd, a, CHUNK_BYTES, at);
		m = n < 0 ? n : read_at(b_fd, b, CHUNK_BYTES, at);
		if (m < 0)
			return (int)m;
		if (n != m || memcmp(a, b, (size_t)n) != 0)
			return 0;
		if (n == 0)
			return 1; /* both shrank */
		at += (uint64_t)n;
	}
	return 1;
}
