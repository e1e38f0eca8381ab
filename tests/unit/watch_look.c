/*
 * The watch on real processes: memory, processes and processor time. A family of this program
 * stands for the sandbox (watch_family.h). Each test has a guilty and an innocent case.
 */
#include "watch_family.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

static char *fill(size_t bytes, int flags)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	memset(p, 1, bytes);
	return p;
}

/* ---- memory ---- */

static int hog(int fd)
{
	fill(64 * MIB, MAP_PRIVATE);
	return ready(fd);
}

/* Four children that do their part; the family is ready when all of them have. */
static int ready_with_four(int fd, void (*part)(void *arg), void *arg)
{
	int done[2];
	char byte;

	if (pipe2(done, O_CLOEXEC) < 0)
		return 1;
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			part(arg);
			return ready(done[1]);
		}
	}
	for (int i = 0; i < 4; i++)
		if (read(done[0], &byte, 1) != 1)
			return 1;
	return ready(fd);
}

static void fill_own(void *arg)
{
	(void)arg;
	fill(16 * MIB, MAP_PRIVATE);
}

/* Five processes, each of which wrote its own. */
static int crowd(int fd)
{
	return ready_with_four(fd, fill_own, NULL);
}

/* Five processes that share what the first wrote. */
static int share_by_fork(int fd)
{
	fill(32 * MIB, MAP_PRIVATE);
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			while (pause() < 0)
				;
	return ready(fd);
}

static void touch_all(void *pages)
{
	for (size_t at = 0; at < 32 * MIB; at += 4096)
		((volatile char *)pages)[at]++;
}

static int share_by_map(int fd)
{
	return ready_with_four(fd, touch_all, fill(32 * MIB, MAP_SHARED));
}

/* Pages of zeroes cost nothing but the tables that point at them. */
static int page_tables(int fd)
{
	size_t size = 64ULL << 30;
	volatile char *p =
		mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char sum = 0;

	if (p == MAP_FAILED)
		return 1;
	madvise((void *)(uintptr_t)p, size, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < size; at += 2 * MIB)
		sum = (char)(sum + p[at]);
	return sum ? 1 : ready(fd);
}

/* Files of the sandbox's tmpfs count whether mapped or not, and not twice when mapped. */
static int tmpfs_file(int fd)
{
	int dir = open(tmpfs_dir, O_RDONLY | O_DIRECTORY);
	int file = openat(dir, "big", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *p;

	if (ftruncate(file, 32 * MIB) < 0)
		return 1;
	p = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	memset(p, 1, 32 * MIB);
	unlinkat(dir, "big", 0);
	return ready(fd);
}

static void test_memory(void **state)
{
	static const struct {
		int (*work)(int);
		uint64_t mib;
		enum limit ends;
		bool looked; /* the innocent ones that need a close look */
	} rows[] = {
		{ hog, 48, LIMIT_MEMORY, true },           { hog, 96, LIMITS, false },
		{ crowd, 48, LIMIT_MEMORY, true },         { share_by_fork, 64, LIMITS, true },
		{ share_by_fork, 24, LIMIT_MEMORY, true }, { share_by_map, 64, LIMITS, true },
		{ share_by_map, 24, LIMIT_MEMORY, true },  { page_tables, 64, LIMIT_MEMORY, true },
		{ tmpfs_file, 24, LIMIT_MEMORY, true },    { tmpfs_file, 48, LIMITS, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct usage u;
		enum limit l;
		int looks;

		plan_none();
		plan_set(LIMIT_MEMORY, rows[i].mib * MIB, HELD_WATCH);
		l = run(rows[i].work, &u, &looks);
		if (l != rows[i].ends || (looks > 0) != rows[i].looked)
			fail_msg("row %zu: ended by %d, %d looks, %llu MiB", i, l, looks,
				 (unsigned long long)(u.memory_peak_bytes / MIB));
		if (l == LIMIT_MEMORY)
			assert_true(u.memory_peak_bytes > rows[i].mib * MIB);
	}
}

/* ---- processes and cpu ---- */

static int forks(int fd)
{
	for (int i = 0; i < 8; i++)
		if (fork() == 0)
			while (pause() < 0)
				;
	return ready(fd);
}

static void test_pids(void **state)
{
	struct usage u;
	int looks;

	(void)state;
	plan_none();
	plan_set(LIMIT_PIDS, 8, HELD_WATCH);
	expect(forks, LIMIT_PIDS);
	plan_set(LIMIT_PIDS, 9, HELD_WATCH);
	expect(forks, LIMITS);
	/* where the kernel holds it, at one more, that one is noted and does not kill at once; as
	 * many as allowed are no hit */
	plan_set(LIMIT_PIDS, 8, HELD_RLIMIT);
	assert_int_equal(run(forks, &u, &looks), LIMITS);
	assert_true(u.hit[LIMIT_PIDS]);
	assert_int_equal(u.pids, 9);
	plan_set(LIMIT_PIDS, 9, HELD_RLIMIT);
	assert_int_equal(run(forks, &u, &looks), LIMITS);
	assert_false(u.hit[LIMIT_PIDS]);
}

static int burn(int fd)
{
	volatile unsigned n = 0;

	if (write(fd, "r", 1) != 1)
		return 1;
	for (;;)
		n++;
	return 0;
}

/* Children that nobody waits for, each too short to be seen for long. */
static int burn_in_children(int fd)
{
	signal(SIGCHLD, SIG_IGN);
	if (write(fd, "r", 1) != 1)
		return 1;
	for (int i = 0; i < 100000; i++) {
		const struct timespec t = { .tv_nsec = 4000000 };

		if (fork() == 0) {
			struct timespec used;

			do
				clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
			while (used.tv_nsec < 12000000);
			_exit(0);
		}
		nanosleep(&t, NULL);
	}
	return 0;
}

/* Runs the family as the watch says. Per cent of one processor that it used, and of the time in
 * which it might run. The machine may be busy, so only what is too much is wrong. */
static void obey(int (*work)(int), uint64_t *ret_used, uint64_t *ret_running)
{
	struct family f = begin(work);
	struct watch *w = watch(&f);
	struct usage u = { 0 };
	bool paused = false;
	uint64_t running = 0, ticks = 75, began = io_now_ms();

	go(&f);
	for (unsigned i = 0; i < ticks; i++) {
		(void)watch_tick(w, &u);
		if (watch_wants_pause(w) != paused) {
			paused = !paused;
			kill(-f.pid, paused ? SIGSTOP : SIGCONT);
		}
		running += !paused;
		tick_sleep();
	}
	end(&f);
	watch_destroy(w);
	*ret_used = u.cpu_ms * 100 / (io_now_ms() - began);
	*ret_running = running * 100 / ticks;
	assert_false(u.hit[LIMIT_CPU]);
}

/* Whether a family is held at a twentieth of a processor. A tick that comes late on a busy machine
 * lets it run on, so it has three tries. */
static bool is_held(int (*work)(int), uint64_t most_running)
{
	for (int i = 0; i < 3; i++) {
		uint64_t used, running;

		obey(work, &used, &running);
		if (used <= 20 && (running < most_running || used <= 7))
			return true;
	}
	return false;
}

static void test_cpu(void **state)
{
	uint64_t used, running;

	(void)state;
	plan_none();
	plan_set(LIMIT_CPU, 50, HELD_WATCH);
	assert_true(is_held(burn, 60));
	assert_true(is_held(burn_in_children, 90));
	plan_set(LIMIT_CPU, 2000, HELD_WATCH);
	obey(burn, &used, &running);
	assert_int_equal(running, 100);
	plan_set(LIMIT_CPU, 300, HELD_CGROUP1);
	obey(burn, &used, &running);
	assert_int_equal(running, 100);
}

/* Memory files are found among very many descriptors, in steps, each counted once, and forgotten
 * when they are closed. */
static void test_memory_files(void **state)
{
	/* one that has none of them; see look_into() */
	struct proc_info self[2] = { { .pid = 1 }, { .pid = getpid() } };
	struct proc_table table = { .items = self, .len = 2 };
	auto_fd proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct proc_view view = { .fd = proc, .own_fd = -1 };
	struct memfds m;
	int many[900], file, copy;
	uint64_t bytes = 0;

	(void)state;
	memfds_open(&m);
	assert_true(m.on);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	file = memfd_create("test", MFD_CLOEXEC);
	copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(fallocate(file, 0, 0, 3 * MIB), 0);
	for (int i = 0; i < 2000 && bytes != 3 * MIB; i++)
		bytes = memfds_bytes(&m, &view, &table);
	assert_int_equal(bytes, 3 * MIB);
	close(file);
	/* where it was is gone: it is not counted until it is found again */
	for (int i = 0; i < 2000 && bytes == 3 * MIB; i++)
		bytes = memfds_bytes(&m, &view, &table);
	for (int i = 0; i < 2000 && bytes != 3 * MIB; i++)
		bytes = memfds_bytes(&m, &view, &table);
	assert_int_equal(bytes, 3 * MIB);
	close(copy);
	for (int i = 0; i < 20000 && m.len; i++)
		bytes = memfds_bytes(&m, &view, &table);
	assert_int_equal(bytes, 0);
	assert_int_equal(m.len, 0);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		close(many[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_memory_files),
	};

	return cmocka_run_group_tests(tests, make_world, end_world);
}
