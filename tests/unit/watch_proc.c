/* What /proc says, partly in words that a sandbox chose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sys/sysmacros.h>

#include "limit/watch_parts.h"

static void test_stat(void **state)
{
	static const char plain[] = "42 (sh) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 6 0 "
				    "999 4096000 250 18446744073709551615 1 1";
	static const char forged[] = "42 (a) R 1 (x) 9) T 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 1 "
				     "20 0 6 0 999 4096000 250 1844674407370955 1 1";
	struct proc_info p;

	(void)state;
	assert_true(proc_parse_stat(plain, &p));
	assert_int_equal(p.pid, 42);
	assert_int_equal(p.ppid, 7);
	assert_int_equal(p.state, 'S');
	assert_int_equal(p.threads, 6);
	assert_int_equal(p.cpu_ticks, 124);
	assert_int_equal(p.virtual_bytes, 4096000);
	assert_int_equal(p.resident_pages, 250);
	assert_true(proc_parse_stat(forged, &p));
	assert_int_equal(p.ppid, 7);
	assert_int_equal(p.state, 'T');
	assert_int_equal(p.cpu_ticks, 124);
}

static void test_broken_stat(void **state)
{
	static const char *const texts[] = { "",  ")",       "1 (x)", "x (y) S 1", "1 (x) S 1 2 3",
					     "(", "1 x S 2)" };
	struct proc_info p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_false(proc_parse_stat(texts[i], &p));
}

static void test_key(void **state)
{
	static const char text[] =
		"Name:\tRssAnon: 99\nRssAnon:\t  12 kB\nRssAnonX: 5\nVmPTE:\t7 kB\n";

	(void)state;
	assert_int_equal(proc_parse_key(text, "RssAnon"), 12);
	assert_int_equal(proc_parse_key(text, "VmPTE"), 7);
	assert_int_equal(proc_parse_key(text, "RssShmem"), 0);
	assert_int_equal(proc_parse_key("", "x"), 0);
}

static void test_sockstat(void **state)
{
	static const char text[] =
		"sockets: used 12\nTCP: inuse 2 orphan 0 tw 0 alloc 3 mem 1\nUDP: inuse 1 mem 0\n";
	uint64_t count;

	(void)state;
	assert_int_equal(sock_parse_full(text, &count), 10 * (544 << 10) + 2 * (10 << 20));
	assert_int_equal(count, 12);
	assert_int_equal(sock_parse_full("", &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(sock_parse_full("sockets: used 1\nTCP: inuse 5\n", &count), 10 << 20);
}

static void test_netlink(void **state)
{
	(void)state;
	assert_int_equal(beyond_parse_netlink("00000000d1ae5b1f 0   -1234567    00000111 61440    "
					      "2304     0     2        0        31337"),
			 63744);
	assert_int_equal(beyond_parse_netlink("sk               Eth Pid        Groups   Rmem     "
					      "Wmem     Dump  Locks    Drops    Inode"),
			 0);
	assert_int_equal(beyond_parse_netlink("00000000d1ae5b1f 0   -1234567    00000111 -61440   "
					      "2304     0     2        0        31337"),
			 2304);
	assert_int_equal(beyond_parse_netlink(""), 0);
	assert_int_equal(beyond_parse_netlink("x 0 1 0 -"), 0);
}

static void test_shared(void **state)
{
	uint64_t inode = 0, offset = 0;

	(void)state;
	assert_int_equal(
		beyond_parse_shared("7f00-9f00 rw-s 00002000 00:01 4242    /dev/zero (deleted)",
				    makedev(0, 1), &inode, &offset),
		0x2000);
	assert_int_equal(inode, 4242);
	assert_int_equal(offset, 0x2000);
	assert_int_equal(beyond_parse_shared("7f00-9f00 rw-s 00000000 00:01 7 [anon_shmem:x]",
					     makedev(0, 1), &inode, &offset),
			 0x2000);
	assert_int_equal(beyond_parse_shared("7f00-9f00 rw-p 00000000 00:01 7", makedev(0, 1),
					     &inode, &offset),
			 0);
	assert_int_equal(beyond_parse_shared("7f00-9f00 rw-s 00000000 08:01 7 /x", makedev(0, 1),
					     &inode, &offset),
			 0);
	assert_int_equal(beyond_parse_shared("7f00-9f00 rw-s 00000000 00:01 0", makedev(0, 1),
					     &inode, &offset),
			 0);
	assert_int_equal(beyond_parse_shared("9f00-7f00 rw-s 00000000 00:01 7", makedev(0, 1),
					     &inode, &offset),
			 0);
	assert_int_equal(beyond_parse_shared("7f00-9f00 s", makedev(0, 1), &inode, &offset), 0);
}

static void test_machine(void **state)
{
	static const char text[] = "MemTotal:  1000 kB\nMemFree: 5 kB\nMemAvailable:  600 "
				   "kB\nSlab: 90 kB\nSUnreclaim:  40 kB\n";
	struct beyond_growth g = { 0 };
	struct beyond_machine m;

	(void)state;
	assert_false(beyond_parse_meminfo("MemTotal: 5 kB\n", &m));
	assert_true(beyond_parse_meminfo(text, &m));
	assert_int_equal(m.available_bytes, 600 << 10);
	assert_int_equal(m.lost_bytes, (1000 - 5 - 90) << 10);
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_QUIET);
	m.kernel_bytes += 30 << 10;
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_QUIET);
	m.kernel_bytes -= 20 << 10; /* what others free hides no rise */
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_QUIET);
	m.kernel_bytes += 30 << 10;
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_LOOK);
	m.kernel_bytes = 700 << 10;
	/* there is room yet */
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_LOOK);
	m.available_bytes = 100 << 10;
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_MACHINE);
	g.rise_bytes = 0;
	assert_int_equal(beyond_judge(&g, &m, 800 << 10, true), BEYOND_QUIET);
	m.file_bytes = m.locked_bytes = 100 << 10; /* the same pages: not twice */
	assert_int_equal(beyond_judge(&g, &m, 800 << 10, true), BEYOND_QUIET);
	/* a file system in memory is part of it, where it can be the sandbox's */
	m.file_bytes = 200 << 10;
	assert_int_equal(beyond_judge(&g, &m, 800 << 10, false), BEYOND_QUIET);
	assert_int_equal(beyond_judge(&g, &m, 800 << 10, true), BEYOND_MACHINE);
	g = (struct beyond_growth){ .files = true };
	m.lost_bytes = 10 << 10;
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_QUIET);
	m.lost_bytes = 700 << 10;
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_MACHINE);
	g = (struct beyond_growth){ .files = true };
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_QUIET);
	m.file_bytes += 60 << 10; /* shared memory rises: time for a look */
	assert_int_equal(beyond_judge(&g, &m, 100 << 10, false), BEYOND_LOOK);
}

/* How long the next look at the disk may wait: less near the limit, with many processors, and after
 * a fast write. */
static void test_pace(void **state)
{
	const uint64_t mib = 1 << 20, gib = 1 << 30;
	struct disk_pace p = { 0 };

	(void)state;
	assert_int_equal(limits_disk_margin(64 * mib), 256 * mib);
	assert_int_equal(limits_disk_margin(20 * gib), 2 * gib);
	assert_true(disk_pace_wait(&p, 20 * gib, 0, 2) >= 1000);
	assert_in_range(disk_pace_wait(&p, 64 * mib, 64 * mib, 2), 2, 10);
	assert_true(disk_pace_wait(&p, gib, 0, 64) < disk_pace_wait(&p, gib, 0, 2));
	assert_true(disk_pace_wait(&p, 64 * mib, 500 * mib, 1024) >= 1);
	disk_pace_note(&p, 0, 1000);
	disk_pace_note(&p, 400 * mib, 1010);
	assert_int_equal(p.rate, 40 * mib);
	assert_true(disk_pace_wait(&p, gib, 400 * mib, 2) < 20);
	disk_pace_note(&p, 401 * mib, 1010); /* too soon to tell: the next one counts it */
	assert_int_equal(p.rate, 40 * mib);
	for (uint64_t now = 1030; now < 3000; now += 20)
		disk_pace_note(&p, 401 * mib, now);
	assert_true(p.rate < mib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),    cmocka_unit_test(test_broken_stat),
		cmocka_unit_test(test_key),     cmocka_unit_test(test_sockstat),
		cmocka_unit_test(test_netlink), cmocka_unit_test(test_machine),
		cmocka_unit_test(test_pace),    cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
