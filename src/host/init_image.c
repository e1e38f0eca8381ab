/*
 * ward-init as an open file. In: the bytes that ward carries. Out: a descriptor for execveat. Runs
 * in the supervisor with the user's rights. Nothing with a name stays: a memory file has none, and
 * the file that stands in for it loses its own before anything else learns of it. That one is made
 * new and through no link, so a directory that others write to (with the sticky bit, as /tmp has
 * it) will do.
 */
#include "host/init_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/io.h"
#include "guest/image.h"

static int write_image(int fd)
{
	return io_write_all(fd, guest_init_begin, (size_t)(guest_init_end - guest_init_begin));
}

/* The kernel executes nothing that is open for writing, so it is opened once more. */
static int open_file(const char *dir)
{
	unsigned long long unique = 0;
	char path[256];
	auto_fd written = -1;
	int fd = -1, r;

	if (getrandom(&unique, sizeof(unique), 0) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/.ward-init-%016llx", dir, unique);
	written = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (written < 0)
		return -errno;
	r = write_image(written);
	if (r == 0 && fchmod(written, 0755) < 0)
		r = -errno;
	if (r == 0) {
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : fd;
	}
	unlink(path);
	return r;
}

static int open_memory(const char *name)
{
	auto_fd fd = memfd_create(name, MFD_CLOEXEC);
	int r = fd < 0 ? -errno : write_image(fd);

	return r < 0 ? r : take_fd(&fd);
}

int init_image_open(const char *name, const char *dir)
{
	int fd = open_memory(name), up;

	if (fd < 0)
		fd = open_file(dir);
	if (fd < 0)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, 10); /* above what children overwrite */
	if (up < 0)
		up = -errno;
	close(fd);
	return up;
}
