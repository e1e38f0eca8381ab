/* Whole reads and writes: at their place, in several pieces, and what ends too early. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_write_at),
					    cmocka_unit_test(test_read_exactly),
					    cmocka_unit_test(test_close_later),
					    cmocka_unit_test(test_close_later_some) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
