/* Unit test of a tree's pieces: what is written on one side comes out at the other, with a device
 * and without; what cannot be is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "vm/disk.h"

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) * 7);
}

static int compare(void *ctx, const void *bytes, size_t n)
{
	uint64_t *at = ctx;

	for (size_t i = 0; i < n; i++, ++*at)
		if (((const uint8_t *)bytes)[i] != pattern(*at))
			return -EILSEQ;
	return 0;
}

/* The exit code of a reader that compares n bytes, and what the writer's end said. */
static int there(uint64_t n, size_t step, int disk_fd)
{
	int records[2], answers[2], status = 0, r;
	struct disk_writer w;
	uint8_t bytes[70000];
	pid_t pid;

	assert_int_equal(pipe(records) | pipe(answers), 0);
	pid = fork();
	if (pid == 0) {
		uint64_t at = 0;

		close(records[1]);
		close(answers[0]);
		r = disk_read_all(records[0], answers[1], disk_fd, compare, &at);
		_exit(r < 0 ? 1 : at == n ? 0 : 2);
	}
	close(records[0]);
	close(answers[1]);
	assert_int_equal(disk_writer_begin(&w, records[1], answers[0], disk_fd), 0);
	for (uint64_t at = 0; at < n;) {
		size_t take = n - at < step ? (size_t)(n - at) : step;

		for (size_t i = 0; i < take; i++)
			bytes[i] = pattern(at + i);
		disk_put(&w, bytes, take);
		at += take;
	}
	r = disk_writer_end(&w);
	close(records[1]);
	close(answers[0]);
	waitpid(pid, &status, 0);
	return r < 0 ? r : WEXITSTATUS(status);
}

static void test_there(void **state)
{
	static const uint64_t sizes[] = { 0,
					  1,
					  DISK_INLINE_MAX,
					  DISK_INLINE_MAX + 1,
					  DISK_SLOT_BYTES - 1,
					  DISK_SLOT_BYTES,
					  DISK_SLOT_BYTES + 1,
					  9 * DISK_SLOT_BYTES + 4097 };
	int disk_fd = memfd_create("disk", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(disk_fd, DISK_BYTES), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(there(sizes[i], 65536, disk_fd), 0);
		assert_int_equal(there(sizes[i], 1000, -1), 0);
	}
	close(disk_fd);
}

static int on_load(void *ctx, uint32_t slot, uint32_t len)
{
	(void)slot;
	*(uint32_t *)ctx += len;
	return 0;
}

static int announce(bool has_slots, size_t n, const uint32_t *numbers)
{
	uint32_t seen = 0;
	struct disk_reader r = { .has_slots = has_slots, .load = on_load, .ctx = &seen };

	return disk_read(&r, numbers, n * sizeof(*numbers));
}

static void test_lies(void **state)
{
	(void)state;
	assert_int_equal(announce(true, 8, (uint32_t[]){ 0, 1, 1, DISK_SLOT_BYTES, 2, 3, 3, 4 }),
			 0);
	assert_int_equal(announce(true, 10, (uint32_t[]){ 0, 1, 1, 1, 2, 1, 3, 1, 0, 1 }), 0);
	assert_int_equal(announce(false, 2, (uint32_t[]){ 0, 1 }), -EPROTO);
	assert_int_equal(announce(true, 2, (uint32_t[]){ 1, 1 }), -EPROTO);
	assert_int_equal(announce(true, 4, (uint32_t[]){ 0, 1, 0, 1 }), -EPROTO);
	assert_int_equal(announce(true, 2, (uint32_t[]){ 0, 0 }), -EPROTO);
	assert_int_equal(announce(true, 2, (uint32_t[]){ 0, DISK_SLOT_BYTES + 1 }), -EPROTO);
	assert_int_equal(announce(true, 2, (uint32_t[]){ DISK_SLOTS, 1 }), -EPROTO);
	assert_int_equal(announce(true, 2, (uint32_t[]){ DISK_INLINE, 0 }), -EPROTO);
	assert_int_equal(announce(true, 2, (uint32_t[]){ DISK_INLINE, DISK_INLINE_MAX + 1 }),
			 -EPROTO);
}

/* Nobody answers: the writer does not wait for ever once the other side is gone. */
static void test_gone(void **state)
{
	int disk_fd = memfd_create("disk", MFD_CLOEXEC), out[2], answers[2];
	static uint8_t bytes[DISK_SLOT_BYTES];
	struct disk_writer w;

	(void)state;
	assert_int_equal(pipe(out) | pipe(answers) | ftruncate(disk_fd, DISK_BYTES), 0);
	close(answers[1]);
	assert_int_equal(disk_writer_begin(&w, out[1], answers[0], disk_fd), 0);
	for (unsigned i = 0; i <= DISK_SLOTS; i++)
		disk_put(&w, bytes, sizeof(bytes));
	assert_int_equal(disk_writer_end(&w), -EPIPE);
	close(disk_fd);
	close(out[0]);
	close(out[1]);
	close(answers[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_there),
					    cmocka_unit_test(test_lies),
					    cmocka_unit_test(test_gone) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
