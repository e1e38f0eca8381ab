/*
 * Descriptor helpers. In: descriptors that the caller owns. Out: bytes. Runs in every process;
 * opens only what its caller names, always close-on-exec.
 */
#include "base/fd_message.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

int io_write_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int io_write_at(int fd, const void *bytes, size_t n, uint64_t offset)
{
	const char *at = bytes;

	while (n) {
		ssize_t done = pwrite(fd, at, n, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		at += done;
		offset += (uint64_t)done;
		n -= (size_t)done;
	}
	return 0;
}

int io_read_exactly(int fd, void *bytes, size_t n)
{
	char *at = bytes;

	while (n) {
		ssize_t got = read(fd, at, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EPIPE;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

/* A kernel before 6.4 cannot write to a pipe without waiting; there a page goes where poll promises
 * room for one. */
static ssize_t write_to_pipe(int fd, const char *bytes, size_t n)
{
	struct iovec data;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t r;

	memcpy(&data.iov_base, &bytes, sizeof(bytes));
	data.iov_len = n;
	r = pwritev2(fd, &data, 1, -1, RWF_NOWAIT);
	if (r >= 0 || errno != EOPNOTSUPP)
		return r;
	if (poll(&p, 1, 0) > 0)
		return write(fd, bytes, n < PIPE_BUF ? n : PIPE_BUF);
	errno = EAGAIN;
	return -1;
}

ssize_t io_write_some(int fd, unsigned type, const char *bytes, size_t n)
{
	if (S_ISSOCK(type))
		return send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	return S_ISFIFO(type) ? write_to_pipe(fd, bytes, n) : write(fd, bytes, n);
}

int io_read_all(int fd, size_t max, struct buf *b)
{
	/* what is read on the start path is short, and each page of a stack costs a microsecond */
	char chunk[4096];
	size_t total = 0;

	for (;;) {
		bool large = total >= sizeof(chunk) && buf_reserve(b, total);
		ssize_t n =
			large ? read(fd, b->data + b->len, total) : read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		total += (size_t)n;
		if (total > max)
			return -EFBIG;
		if (large)
			b->len += (size_t)n;
		else
			buf_add(b, chunk, (size_t)n);
	}
	buf_add(b, "", 0);
	return b->failed ? -ENOMEM : 0;
}

int io_read_file(int dir_fd, const char *path, size_t max, struct buf *b)
{
	auto_fd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : io_read_all(fd, max, b);
}

int io_write_file(int dir_fd, const char *path, const char *text)
{
	auto_fd fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	size_t n = strlen(text);
	ssize_t done;

	if (fd < 0)
		return -errno;
	do
		done = write(fd, text, n);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return -errno;
	return (size_t)done == n ? 0 : -EIO;
}

ssize_t io_recv_fds(int sock_fd, void *bytes, size_t n, int *fds, size_t max_fds, size_t *ret_fds)
{
	FD_MESSAGE_CONTROL(IO_FDS_MAX) control;
	struct iovec iov = { .iov_base = bytes, .iov_len = n };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	ssize_t got;

	*ret_fds = 0;
	do
		got = recvmsg(sock_fd, &m, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	*ret_fds = fd_message_take(&m, fds, max_fds);
	return got;
}

ssize_t io_sendmsg(int sock_fd, const struct msghdr *m, int flags)
{
	struct rlimit files;
	ssize_t sent;

	do
		sent = sendmsg(sock_fd, m, flags);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0 || errno != ETOOMANYREFS)
		return sent;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)!setrlimit(RLIMIT_NOFILE, &files);
	}
	return sendmsg(sock_fd, m, flags);
}

ssize_t io_sendmsg_fds(int sock_fd, const void *bytes, size_t n, const int *fds, size_t count,
		       int flags)
{
	FD_MESSAGE_CONTROL(IO_FDS_MAX) control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };

	if (count > IO_FDS_MAX) {
		errno = E2BIG;
		return -1;
	}
	fd_message_put(&m, fds, count);
	return io_sendmsg(sock_fd, &m, MSG_NOSIGNAL | flags);
}

int io_send_fds(int sock_fd, const void *bytes, size_t n, const int *fds, size_t count)
{
	return io_sendmsg_fds(sock_fd, bytes, n, fds, count, 0) < 0 ? -errno : 0;
}

#define LATER_MAX 16

/* Names a socket; the name is free again when the kernel has closed it. false: all are taken, or we
 * may not. */
static bool take_turn(int sock_fd)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	unsigned first = (unsigned)getpid();

	for (unsigned i = 0; i < LATER_MAX; i++) {
		int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "ward-closes-%u-%u",
				 geteuid(), (first + i) % LATER_MAX);

		if (bind(sock_fd, (const struct sockaddr *)&at,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
			return true;
		if (errno != EADDRINUSE)
			return false;
	}
	return false;
}

/* A socket whose only reference is a message queued on itself has no owner: a thread of the
 * kernel's (since Linux 6.10) looks for such ones when a socket is closed, and closes what is in
 * them, the first descriptor first. */
void io_close_later(int fd)
{
	int pair[2];

	if (fd < 0)
		return;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0) {
		close(fd);
		return;
	}
	if (take_turn(pair[1]))
		(void)!io_send_fds(pair[0], "", 1, (int[]){ fd, pair[1] }, 2);
	close(fd);
	close(pair[1]);
	close(pair[0]); /* now it is looked for */
}

uint64_t io_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

const char *io_boot_id(void)
{
	static char id[64];
	auto_fd fd = id[0] ? -1 : open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, id, sizeof(id) - 1);

	if (n > 0)
		id[strcspn(id, "\n")] = '\0';
	return id;
}
