/*
 * The watch on real processes: a family of this program stands for the sandbox, file systems
 * made in a mount namespace of the test's own stand for its trees. Each test has a guilty and
 * an innocent case.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "limit/watch_parts.h"

#define MIB (1ULL << 20)

static struct spec spec;
static struct plan plan;
static char *disk_dir, *tmpfs_dir; /* two small tmpfs */
static char directory[] = "/tmp/ward-ut-watchXXXXXX";

/* ---- the world of a test ---- */

static void plan_none(void)
{
	memset(&plan, 0, sizeof(plan));
	plan.spec = &spec;
	plan.level = LEVEL_NAMESPACES;
	plan.facts.cpus = 2;
	for (unsigned i = 0; i < LIMITS; i++)
		plan.limits[i].value = POLICY_NONE;
}

static void plan_set(enum limit l, uint64_t value, enum held_by held)
{
	plan.limits[l] = (struct plan_limit){ value, held };
}

/* A family: the first process says when it is ready, then goes on as work() does. */
struct family {
	pid_t pid;
	int ready_fd, go_fd;
};

static struct family begin(int (*work)(int ready_fd))
{
	int ready[2], go[2];
	struct family f;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	f.pid = fork();
	if (f.pid == 0) {
		setpgid(0, 0);
		close(go[1]);
		close(ready[0]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		_exit(work(ready[1]));
	}
	setpgid(f.pid, f.pid);
	close(ready[1]);
	close(go[0]);
	f.ready_fd = ready[0];
	f.go_fd = go[1];
	return f;
}

static void go(struct family *f)
{
	char byte;

	assert_int_equal(write(f->go_fd, "g", 1), 1);
	assert_int_equal(read(f->ready_fd, &byte, 1), 1);
}

static void end(struct family *f)
{
	kill(-f->pid, SIGKILL);
	assert_int_equal(waitpid(f->pid, NULL, 0), f->pid);
	close(f->ready_fd);
	close(f->go_fd);
}

static int ready(int fd)
{
	if (write(fd, "r", 1) != 1)
		return 1;
	while (pause() < 0)
		;
	return 0;
}

static struct watch *watch(const struct family *f)
{
	static int tmpfs_fds[1], disk_fds[1];
	struct watch_config c = { .plan = &plan,
				  .init_pid = f->pid,
				  .proc_fd = -1,
				  .tmpfs_fds = tmpfs_fds,
				  .tmpfs_count = 1,
				  .disk_fds = disk_fds,
				  .disk_count = 1 };
	struct ward_err e = { 0 };
	struct watch *w = NULL;

	if (tmpfs_fds[0] == 0) {
		tmpfs_fds[0] = open(tmpfs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		disk_fds[0] = open(disk_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (watch_create(&c, &w, &e) < 0)
		fail_msg("%s: %s", e.what, e.why);
	return w;
}

static void tick_sleep(void)
{
	const struct timespec t = { .tv_nsec = WATCH_TICK_MS * 1000000L };

	nanosleep(&t, NULL);
}

/* What the supervisor does, for a quarter of a second. *looks counts the close looks. */
static bool supervise(struct watch *w, const struct family *f, struct usage *u, enum limit *l,
		      int *looks)
{
	for (int i = 0; i < 13; i++) {
		if (watch_tick(w, u)) {
			kill(-f->pid, SIGSTOP);
			watch_confirm(w, u, WATCH_SIGNALLED);
			kill(-f->pid, SIGCONT);
			(*looks)++;
		}
		if (limits_stop(&plan, u, l))
			return true;
		tick_sleep();
	}
	return false;
}

/* Runs work() under the plan's limits; which limit ended it, or LIMITS. */
static enum limit run(int (*work)(int), struct usage *u, int *ret_looks)
{
	struct family f = begin(work);
	struct watch *w = watch(&f);
	enum limit l = LIMITS;
	bool stopped;

	memset(u, 0, sizeof(*u));
	*ret_looks = 0;
	go(&f);
	stopped = supervise(w, &f, u, &l, ret_looks);
	end(&f);
	watch_destroy(w);
	return stopped ? l : LIMITS;
}

static void expect(int (*work)(int), enum limit l)
{
	struct usage u;
	int looks;

	assert_int_equal(run(work, &u, &looks), l);
}

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

/* ---- disk ---- */

static int disk_open(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", disk_dir, name);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int write_much(int file)
{
	static char block[1 << 16];

	for (int i = 0; i < 256; i++)
		if (write(file, block, sizeof(block)) != (ssize_t)sizeof(block))
			return 1;
	return 0;
}

static int plain_file(int fd)
{
	return write_much(disk_open("plain")) ? 1 : ready(fd);
}

static int allocated_file(int fd)
{
	return fallocate(disk_open("allocated"), FALLOC_FL_KEEP_SIZE, 0, 16 * MIB) < 0 ? 1
										       : ready(fd);
}

static int sparse_file(int fd)
{
	return ftruncate(disk_open("sparse"), 1LL << 32) < 0 ? 1 : ready(fd);
}

static int unlinked_file(int fd)
{
	int file = open(disk_dir, O_TMPFILE | O_RDWR, 0600);

	return write_much(file) ? 1 : ready(fd);
}

/* Open in a thread's own table only, while the leader has none. */
static volatile int table_is_own;

static int thread_table(void *file)
{
	if (unshare(CLONE_FILES) < 0)
		return 1;
	table_is_own = 1;
	return ready(*(int *)file);
}

static int file_of_a_thread(int fd)
{
	static char stack[1 << 16];
	static int ready_fd;
	int file = open(disk_dir, O_TMPFILE | O_RDWR, 0600);

	ready_fd = fd;
	if (write_much(file) ||
	    clone(thread_table, stack + sizeof(stack),
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, &ready_fd) < 0)
		return 1;
	while (!table_is_own)
		usleep(1000);
	close(file);
	while (pause() < 0)
		;
	return 0;
}

static int mapped_file(int fd)
{
	int file = open(disk_dir, O_TMPFILE | O_RDWR, 0600);

	if (fallocate(file, 0, 0, 16 * MIB) < 0 ||
	    mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED)
		return 1;
	close(file);
	return ready(fd);
}

/* In the queue of a socket: nobody has it open. */
static int file_in_a_message(int fd)
{
	int file = open(disk_dir, O_TMPFILE | O_RDWR, 0600), pair[2];
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { .iov_base = control.space, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
	if (fallocate(file, 0, 0, 16 * MIB) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
	    sendmsg(pair[0], &m, 0) < 0)
		return 1;
	close(file);
	return ready(fd);
}

static int deep_file(int fd)
{
	int dir = open(disk_dir, O_RDONLY | O_DIRECTORY), file;

	for (int i = 0; i < 400; i++) {
		int next;

		if (mkdirat(dir, "d", 0700) < 0 && errno != EEXIST)
			return 1;
		next = openat(dir, "d", O_RDONLY | O_DIRECTORY);
		close(dir);
		dir = next;
	}
	file = openat(dir, "f", O_RDWR | O_CREAT, 0600);
	return write_much(file) ? 1 : ready(fd);
}

static int touched_and_replaced(int fd)
{
	for (int i = 0; i < 8; i++) {
		int file = disk_open("replaced");

		if (ftruncate(file, 0) < 0 || fallocate(file, 0, 0, 4 * MIB) < 0)
			return 1;
		close(file);
	}
	return ready(fd);
}

static int many_files(int fd)
{
	for (int i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "small-%d", i);
		close(disk_open(name));
	}
	return ready(fd);
}

static int idle(int fd)
{
	return ready(fd);
}

static void remove_deep(void)
{
	int dir = open(disk_dir, O_RDONLY | O_DIRECTORY);
	int depth[402], n = 0;

	depth[n++] = dir;
	while (n < 402 && (depth[n] = openat(depth[n - 1], "d", O_RDONLY | O_DIRECTORY)) >= 0)
		n++;
	unlinkat(depth[n - 1], "f", 0);
	for (; n > 1; n--) {
		close(depth[n - 1]);
		unlinkat(depth[n - 2], "d", AT_REMOVEDIR);
	}
	close(dir);
}

static void empty_disk(void)
{
	auto_dir dir = opendir(disk_dir);
	const struct dirent *entry;

	remove_deep();
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
}

static void test_disk(void **state)
{
	static const struct {
		int (*work)(int);
		uint64_t mib;
		enum limit ends;
	} rows[] = {
		{ plain_file, 8, LIMIT_DISK },     { plain_file, 20, LIMITS },
		{ allocated_file, 8, LIMIT_DISK }, { sparse_file, 8, LIMITS },
		{ unlinked_file, 8, LIMIT_DISK },  { file_of_a_thread, 8, LIMIT_DISK },
		{ mapped_file, 8, LIMIT_DISK },    { file_in_a_message, 8, LIMIT_DISK },
		{ deep_file, 8, LIMIT_DISK },      { touched_and_replaced, 8, LIMITS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct usage u;
		int looks;
		enum limit l;

		plan_none();
		plan_set(LIMIT_DISK, rows[i].mib * MIB, HELD_WATCH);
		l = run(rows[i].work, &u, &looks);
		empty_disk();
		if (l != rows[i].ends)
			fail_msg("row %zu: ended by %d after %d looks, grown by %llu KiB", i, l,
				 looks, (unsigned long long)(u.disk_bytes / 1024));
	}
}

static void test_inodes(void **state)
{
	(void)state;
	plan_none();
	plan_set(LIMIT_INODES, 50, HELD_WATCH);
	expect(many_files, LIMIT_INODES);
	empty_disk();
	plan_set(LIMIT_INODES, 150, HELD_WATCH);
	expect(many_files, LIMITS);
	empty_disk();
}

/* Somebody else fills the same file system: one look, forgiven, and what the sandbox does after
 * that still counts. */
static void test_others_are_not_the_sandbox(void **state)
{
	struct family f = begin(idle);
	struct usage u = { 0 };
	char path[256];
	struct watch *w;
	enum limit l;
	int looks = 0, file;

	(void)state;
	plan_none();
	plan_set(LIMIT_DISK, 8 * MIB, HELD_WATCH);
	plan_set(LIMIT_INODES, 50, HELD_WATCH);
	/* outside of the tree that the sandbox has */
	snprintf(path, sizeof(path), "%s/sub", disk_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	w = watch(&f);
	watch_destroy(w);

	auto_fd sub = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct watch_config c = {
		.plan = &plan, .init_pid = f.pid, .proc_fd = -1, .disk_fds = &sub, .disk_count = 1
	};
	struct ward_err e = { 0 };

	assert_int_equal(watch_create(&c, &w, &e), 0);
	go(&f);
	file = disk_open("others");
	assert_int_equal(write_much(file), 0);
	assert_false(supervise(w, &f, &u, &l, &looks));
	assert_int_equal(looks, 1);
	assert_int_equal(u.disk_bytes, 0);

	/* the sandbox's own growth comes on top */
	close(file);
	file = openat(sub, "own", O_RDWR | O_CREAT, 0600);
	assert_int_equal(write_much(file), 0);
	assert_true(supervise(w, &f, &u, &l, &looks));
	assert_int_equal(l, LIMIT_DISK);
	close(file);
	unlinkat(sub, "own", 0);
	end(&f);
	watch_destroy(w);
	rmdir(path);
	empty_disk();
}

/* A look that took long puts off the next one. It must not put off the first look after the limit
 * was passed, however often the disk is measured before that look, nor one that is due because much
 * was written since. */
static void test_no_delay_for_who_goes_on(void **state)
{
	auto_fd dir = open(disk_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct proc_view view = { .fd = -1, .own_fd = -1 };
	struct proc_table table = { 0 };
	struct watch_config c = { .plan = &plan,
				  .init_pid = getpid(),
				  .proc_fd = -1,
				  .disk_fds = &dir,
				  .disk_count = 1 };
	struct tree_watch t = { .view = &view, .table = &table };
	struct ward_err e = { 0 };
	struct usage u = { 0 };
	int file;

	(void)state;
	plan_none();
	plan_set(LIMIT_DISK, 8 * MIB, HELD_WATCH);
	assert_int_equal(tree_watch_start(&t, &c, &e), 0);
	t.over_look_ms = t.rise_look_ms = UINT64_MAX;
	file = disk_open("much");
	assert_int_equal(write_much(file), 0);
	for (int i = 0; i < 3; i++) {
		tree_watch_tick(&t, &u);
		assert_true(t.suspect);
	}
	/* what a look after the limit was passed leaves, where nothing was proven */
	t.over = true;
	t.look_bytes = u.disk_bytes;
	tree_watch_tick(&t, &u);
	assert_false(t.suspect);
	assert_int_equal(fallocate(file, 0, 0, 96 * MIB), 0);
	for (uint64_t end = io_now_ms() + 2000; !t.suspect && io_now_ms() < end; usleep(1000))
		tree_watch_tick(&t, &u); /* a burst delays the look for a moment */
	assert_true(t.suspect);
	close(file);
	empty_disk();
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

/* ---- */

static int make_world(void **state)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char map[64];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	if (uid != 0 && unshare(CLONE_NEWUSER) == 0) {
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (io_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
		    io_write_file(AT_FDCWD, "/proc/self/uid_map", map) < 0)
			return -1;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (io_write_file(AT_FDCWD, "/proc/self/gid_map", map) < 0)
			return -1;
	}
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    asprintf(&disk_dir, "%s/disk", directory) < 0 ||
	    asprintf(&tmpfs_dir, "%s/tmpfs", directory) < 0 || mkdir(disk_dir, 0700) < 0 ||
	    mkdir(tmpfs_dir, 0700) < 0 ||
	    mount("disk", disk_dir, "tmpfs", 0, "size=160m,nr_inodes=4096") < 0 ||
	    mount("tmp", tmpfs_dir, "tmpfs", 0, "size=64m,nr_inodes=4096") < 0)
		return -1;
	return 0;
}

static int end_world(void **state)
{
	(void)state;
	umount2(disk_dir, MNT_DETACH);
	umount2(tmpfs_dir, MNT_DETACH);
	rmdir(disk_dir);
	rmdir(tmpfs_dir);
	free(disk_dir);
	free(tmpfs_dir);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_disk),
		cmocka_unit_test(test_inodes),
		cmocka_unit_test(test_others_are_not_the_sandbox),
		cmocka_unit_test(test_no_delay_for_who_goes_on),
		cmocka_unit_test(test_memory_files),
	};

	return cmocka_run_group_tests(tests, make_world, end_world);
}
