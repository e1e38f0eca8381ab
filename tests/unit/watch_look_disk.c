/*
 * The watch on real files: what a family of this program (watch_family.h) leaves on a disk, and
 * what others leave there. Each test has a guilty and an innocent case.
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk),
		cmocka_unit_test(test_inodes),
		cmocka_unit_test(test_others_are_not_the_sandbox),
		cmocka_unit_test(test_no_delay_for_who_goes_on),
	};

	return cmocka_run_group_tests(tests, make_world, end_world);
}
