/* Whole reads and writes: at their place, in several pieces, and what ends too early; descriptors
 * that go with a message. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd_message.h"
#include "base/io.h"
#include "base/own.h"

static void test_write_at(unused_arg void **state)
{
	auto_fd fd = memfd_create("io", MFD_CLOEXEC);
	char bytes[16] = { 0 };

	assert_int_equal(io_write_at(fd, "later", 5, 7), 0);
	assert_int_equal(io_write_at(fd, "first", 5, 0), 0);
	assert_int_equal(io_write_at(fd, "", 0, 100), 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), 12);
	assert_memory_equal(bytes, "first\0\0later", 12);
	assert_int_equal(io_write_at(-1, "x", 1, 0), -EBADF);
}

static void test_read_exactly(unused_arg void **state)
{
	char bytes[8] = { 0 };
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(io_write_all(ends[1], "abcdef", 6), 0);
	assert_int_equal(io_read_exactly(ends[0], bytes, 4), 0);
	assert_memory_equal(bytes, "abcd", 4);
	close(ends[1]);
	assert_int_equal(io_read_exactly(ends[0], bytes, 4), -EPIPE); /* two are left */
	assert_memory_equal(bytes, "efcd", 4);
	close(ends[0]);
}

/* Whoever reads the other end of a pipe sees that the last one is gone, and nothing stays with
 * us. */
static void test_close_later(unused_arg void **state)
{
	int ends[2], first = dup(0);
	char byte;

	close(first);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pipe(ends), 0);
		/* the lowest that is free: all others were closed */
		assert_int_equal(ends[0], first);
		io_close_later(ends[1]);
		assert_int_equal(read(ends[0], &byte, 1), 0);
		close(ends[0]);
	}
	io_close_later(-1);
}

/* Not all at once: what the kernel has not closed yet counts as the user's. */
static void test_close_later_some(unused_arg void **state)
{
	struct pollfd ends[100];
	int pair[2];
	size_t open = 0;

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		assert_int_equal(pipe(pair), 0);
		ends[i].fd = pair[0];
		io_close_later(pair[1]);
	}
	assert_true(poll(ends, ARRAY_LEN(ends), 0) >= 0);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		open += !(ends[i].revents & POLLHUP);
		close(ends[i].fd);
	}
	assert_in_range(open, 0, 16);
}

static size_t open_files(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void send_some(int sock_fd, size_t count)
{
	int fds[IO_FDS_MAX];

	for (size_t i = 0; i < count; i++)
		fds[i] = 0;
	assert_int_equal(io_send_fds(sock_fd, "x", 1, fds, count), 0);
}

/* As many as come are owned, and what is more than was asked for is closed. */
static void test_descriptors(unused_arg void **state)
{
	static const size_t sent[] = { 0, 1, 2, 3, 8, 63, IO_FDS_MAX };
	size_t before, count;
	int pair[2], fds[IO_FDS_MAX], stamps;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = open_files();
	for (size_t asked = 0; asked <= IO_FDS_MAX; asked += 3)
		for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
			size_t expected = sent[i] < asked ? sent[i] : asked;

			/* a socket that asks for time stamps, too, which take some room, gets its
			 * descriptors all the same */
			stamps = sent[i] < IO_FDS_MAX;
			assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_TIMESTAMP, &stamps, 4),
					 0);
			send_some(pair[0], sent[i]);
			assert_int_equal(io_recv_fds(pair[1], &byte, 1, fds, asked, &count), 1);
			assert_int_equal(count, expected);
			for (size_t fd = 0; fd < count; fd++) {
				assert_int_equal(fcntl(fds[fd], F_GETFD), FD_CLOEXEC);
				close(fds[fd]);
			}
			assert_int_equal(open_files(), before);
		}
	assert_int_equal(io_send_fds(pair[0], "x", 1, fds, IO_FDS_MAX + 1), -E2BIG);
	close(pair[0]);
	assert_int_equal(io_recv_fds(pair[1], &byte, 1, fds, 1, &count), 0);
	assert_int_equal(count, 0);
	close(pair[1]);
}

/* Whatever was in memory before, the kernel gets a header that is filled to the last byte. */
static void test_descriptors_header(unused_arg void **state)
{
	const uint64_t head[] = { CMSG_LEN(3 * sizeof(int)),
				  SOL_SOCKET | (uint64_t)SCM_RIGHTS << 32 };
	const int fds[] = { 5, 6, 7 };
	FD_MESSAGE_CONTROL(3) control;
	struct msghdr m = { .msg_control = control.space };

	memset(&control, 0xff, sizeof(control));
	fd_message_put(&m, fds, 3);
	assert_int_equal(m.msg_controllen, sizeof(head) + 4 * sizeof(int));
	assert_memory_equal(control.space, head, sizeof(head));
	assert_memory_equal(control.space + sizeof(head), ((const int[]){ 5, 6, 7, 0 }),
			    4 * sizeof(int));
}

/* Room for three is room for four: none may be lost or written behind the end. */
static void test_descriptors_rounded(unused_arg void **state)
{
	FD_MESSAGE_CONTROL(3) control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	int pair[2], fds[4] = { -1, -1, -1, -7 };
	size_t before;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = open_files();
	send_some(pair[0], 5);
	assert_int_equal(recvmsg(pair[1], &m, MSG_CMSG_CLOEXEC), 1);
	assert_true(m.msg_flags & MSG_CTRUNC);
	assert_int_equal(fd_message_take(&m, fds, 3), 3);
	assert_int_equal(fds[3], -7);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	assert_int_equal(open_files(), before);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_write_at),
					    cmocka_unit_test(test_read_exactly),
					    cmocka_unit_test(test_descriptors),
					    cmocka_unit_test(test_descriptors_rounded),
					    cmocka_unit_test(test_descriptors_header),
					    cmocka_unit_test(test_close_later),
					    cmocka_unit_test(test_close_later_some) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
