/*
 * The content of a file into another. In: two descriptors. Out: the second holds what the first
 * does, holes as holes, by reference where the file system can. Runs wherever ward copies a file
 * for the user; it may be cut off at any moment.
 */
#include "base/content.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"

#define COPY_BYTES (1u << 20)

static int copy_plain(int from, int to, uint64_t at, uint64_t end)
{
	auto_free char *chunk = malloc(COPY_BYTES);

	if (!chunk)
		return -ENOMEM;
	while (at < end) {
		size_t want = end - at < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
		ssize_t n = pread(from, chunk, want, (off_t)at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = io_write_at(to, chunk, (size_t)n, at);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return 0;
}

/* One stretch of data, in the kernel where it can do that. */
static int copy_stretch(int from, int to, uint64_t at, uint64_t end)
{
	off_t in = (off_t)at, out = (off_t)at;

	while ((uint64_t)in < end) {
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - (uint64_t)in), 0);

		if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
			return -errno;
		if (n <= 0)
			return copy_plain(from, to, (uint64_t)in, end);
	}
	return 0;
}

int content_copy(int from_fd, int to_fd, uint64_t size)
{
	uint64_t at = 0;
	int status = 0;

	if (size == 0)
		return 0;
	if (ioctl(to_fd, FICLONE, from_fd) == 0)
		return 0;
	if (ftruncate(to_fd, (off_t)size) < 0)
		return -errno;
	while (at < size && status == 0) {
		off_t data = lseek(from_fd, (off_t)at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		at = data < 0 ? at : (uint64_t)data;
		hole = lseek(from_fd, (off_t)at, SEEK_HOLE);
		if (hole < 0 || (uint64_t)hole > size)
			hole = (off_t)size;
		if (at < (uint64_t)hole)
			status = copy_stretch(from_fd, to_fd, at, (uint64_t)hole);
		at = (uint64_t)hole;
	}
	return status;
}
