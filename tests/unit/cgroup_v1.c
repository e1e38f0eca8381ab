/*
 * cgroup v1 for real: limits of a few MiB and a few processes, in directories below the
 * caller's own. Where the caller may not make them (an ordinary user, a host with v2 only)
 * every test says so and is skipped; the decision itself is tested in limits.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "cgroup_help.h"

#define MIB (1ULL << 20)

static void plan_init(struct plan *p, uint64_t memory, uint64_t pids, uint64_t milli_cpus)
{
	*p = plan_without_limits(CGROUP_V1);
	p->limits[LIMIT_MEMORY] = (struct plan_limit){ memory, HELD_CGROUP1 };
	p->limits[LIMIT_PIDS] = (struct plan_limit){ pids, HELD_CGROUP1 };
	p->limits[LIMIT_CPU] = (struct plan_limit){ milli_cpus, HELD_CGROUP1 };
}

static struct cgroup *make(const struct plan *p)
{
	if (cgroup_probe() != CGROUP_V1) {
		print_message("this user may make no cgroup v1 here\n");
		skip();
	}
	return create(p);
}

/* A child that puts itself in and then does its work. */
static pid_t start(struct cgroup *c, int (*work)(void))
{
	int fds[4];
	size_t n = cgroup_self_fds(c, fds, 4);
	int joined[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(joined, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < n; i++)
			if (write(fds[i], "0", 1) != 1)
				_exit(99);
		if (write(joined[1], "j", 1) != 1)
			_exit(99);
		_exit(work());
	}
	assert_true(pid > 0);
	close(joined[1]);
	assert_int_equal(read(joined[0], &byte, 1), 1);
	close(joined[0]);
	return pid;
}

static int eat_memory(void)
{
	for (int i = 0; i < 256; i++) {
		char *p =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return 1;
		memset(p, 1, MIB);
	}
	return 0;
}

static void test_memory_hog_is_killed(void **state)
{
	struct plan p;
	struct usage u = { 0 };
	struct cgroup *c;
	struct pollfd ready = { .events = POLLIN };
	int status;

	(void)state;
	plan_init(&p, 64 * MIB, POLICY_NONE, POLICY_NONE);
	c = make(&p);
	assert_int_equal(cgroup_clone_fd(c), -1);
	ready.fd = cgroup_event_fd(c);
	assert_true(ready.fd >= 0);
	assert_int_equal(poll(&ready, 1, 0), 0);
	status = status_of(start(c, eat_memory));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(poll(&ready, 1, 1000), 1);
	cgroup_event_read(c, &u);
	assert_true(u.hit[LIMIT_MEMORY]);
	assert_false(u.hit[LIMIT_PIDS]);
	assert_in_range(u.memory_peak_bytes, 60 * MIB, 64 * MIB);
	assert_int_equal(poll(&ready, 1, 0), 0);
	end(c);
}

static int eat_tmpfs(void)
{
	auto_free char *block = calloc(1, MIB);
	auto_fd fd = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);

	for (int i = 0; i < 256; i++)
		if (write(fd, block, MIB) != (ssize_t)MIB)
			return 1;
	return 0;
}

static int eat_shared(void)
{
	char *p = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, 256 * MIB);
	return 0;
}

static int eat_in_children(void)
{
	for (int i = 0; i < 8; i++) {
		if (fork() == 0) {
			char *p = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			memset(p, 1, 16 * MIB);
			sleep(2);
			_exit(0);
		}
	}
	sleep(1);
	return 0;
}

static void expect_oom(int (*work)(void))
{
	struct plan p;
	struct usage u = { 0 };
	struct cgroup *c;

	plan_init(&p, 64 * MIB, POLICY_NONE, POLICY_NONE);
	c = make(&p);
	status_of(start(c, work));
	cgroup_usage(c, &u);
	assert_true(u.hit[LIMIT_MEMORY]);
	assert_int_equal(cgroup_kill(c), 0);
	end(c);
}

static void test_tmpfs_counts(void **state)
{
	(void)state;
	expect_oom(eat_tmpfs);
}

static void test_shared_memory_counts(void **state)
{
	(void)state;
	expect_oom(eat_shared);
}

static void test_many_processes_count_together(void **state)
{
	(void)state;
	expect_oom(eat_in_children);
}

static int fork_much(void)
{
	int made = 0, refused = 0;

	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			pause();
			_exit(0);
		}
		made += pid > 0;
		refused += pid < 0 && errno == EAGAIN;
	}
	return made == 7 && refused == 293 ? 0 : 1;
}

static void test_fork_bomb_is_held(void **state)
{
	struct plan p;
	struct usage u = { 0 };
	struct cgroup *c;
	enum limit l;
	pid_t pid, left[1];

	(void)state;
	plan_init(&p, POLICY_NONE, 8, POLICY_NONE);
	c = make(&p);
	pid = start(c, fork_much);
	assert_int_equal(status_of(pid), 0);
	cgroup_usage(c, &u);
	assert_true(u.hit[LIMIT_PIDS]);
	assert_int_equal(u.pids_refused, 293);
	assert_int_equal(u.pids, 7);
	assert_true(limits_stop(&p, &u, &l));
	assert_int_equal(l, LIMIT_PIDS);
	assert_int_equal(cgroup_kill(c), 0); /* the seven that pause */
	assert_int_equal(cgroup_read_pids(c->dirs[CG_PIDS].fd, left, ARRAY_LEN(left)), 0);
	end(c);
}

static int burn(void)
{
	struct timespec t0, t, cpu;

	clock_gettime(CLOCK_MONOTONIC, &t0);
	do
		clock_gettime(CLOCK_MONOTONIC, &t);
	while ((t.tv_sec - t0.tv_sec) * 1000 + (t.tv_nsec - t0.tv_nsec) / 1000000 < 1000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	return (int)(cpu.tv_sec * 100 + cpu.tv_nsec / 10000000); /* per cent of the second */
}

static void test_cpu_quota(void **state)
{
	struct plan p;
	struct usage u = { 0 };
	struct cgroup *c;
	int status;

	(void)state;
	plan_init(&p, POLICY_NONE, POLICY_NONE, 50); /* little, for the machine may be busy */
	c = make(&p);
	status = status_of(start(c, burn));
	assert_true(WIFEXITED(status));
	assert_in_range(WEXITSTATUS(status), 1, 15);
	cgroup_usage(c, &u);
	assert_true(u.cpu_throttled_ms > 0);
	assert_false(u.hit[LIMIT_CPU]);
	end(c);
}

static int wait_for_ever(void)
{
	while (pause() < 0)
		;
	return 0;
}

static void test_attach_and_kill(void **state)
{
	struct plan p;
	struct cgroup *c;
	struct ward_err e = { 0 };
	struct usage u = { 0 };
	pid_t pid;

	(void)state;
	plan_init(&p, 64 * MIB, 8, 500);
	c = make(&p);
	pid = fork();
	if (pid == 0)
		_exit(wait_for_ever());
	assert_int_equal(cgroup_attach(c, pid, &e), 0);
	cgroup_usage(c, &u);
	assert_int_equal(u.pids, 1);
	kill(pid, SIGKILL);
	status_of(pid);
	end(c);
}

static char process_state(pid_t pid)
{
	auto_buf text = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (io_read_file(AT_FDCWD, path, 1u << 16, &text) < 0)
		return '?';
	return strstr(buf_text(&text), "State:")[7];
}

static int forks_all_the_time(void)
{
	for (int i = 0; i < 1000000; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return 0;
}

static void test_freeze(void **state)
{
	struct timespec some = { .tv_nsec = 50000000 };
	struct plan p;
	struct cgroup *c;
	pid_t pid;

	(void)state;
	plan_init(&p, 64 * MIB, 8, POLICY_NONE);
	c = make(&p);
	pid = start(c, forks_all_the_time);
	nanosleep(&some, NULL);
	for (int round = 0; round < 2; round++)
		check_freeze(c, pid);
	assert_int_equal(cgroup_freeze(c, true), 0);
	assert_int_equal(process_state(pid), 'D');
	assert_int_equal(cgroup_kill(c), 0); /* also while frozen */
	assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
	end(c);
}

/* What a killed ward left: frozen processes and directories, found by the paths in a record. */
static void test_leftovers(void **state)
{
	auto_strv dirs = { 0 };
	auto_strv foreign = { 0 };
	struct plan p;
	struct cgroup *c;
	struct stat st;
	char name[] = "/tmp/ward-utXXXXXX";
	pid_t pid;

	(void)state;
	plan_init(&p, 64 * MIB, 8, 500);
	c = make(&p);
	pid = start(c, wait_for_ever);
	assert_int_equal(cgroup_freeze(c, true), 0);
	cgroup_dirs(c, &dirs);

	/* not ward's name, not a cgroup, not cleaned, a part above */
	assert_non_null(mkdtemp(name));
	strv_add(&foreign, name);
	strv_addf(&foreign, "%s/../%s", dirs.items[0], strrchr(dirs.items[0], '/') + 1);
	strv_addf(&foreign, "%s/", dirs.items[0]);
	strv_add(&foreign, "/sys/fs/cgroup/memory");
	strv_add(&foreign, "");
	strv_add(&foreign, "ward-x");
	cgroup_remove_dirs(&foreign);
	assert_int_equal(rmdir(name), 0);
	for (size_t i = 0; i < dirs.len; i++)
		assert_int_equal(stat(dirs.items[i], &st), 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);

	check_leftovers(c, &dirs, pid);
}

/* A directory of that name that is there already is not taken over, and not removed either. */
static void test_taken_name(void **state)
{
	struct plan p;
	struct cgroup *c, *other = NULL;
	struct ward_err e = { 0 };
	struct usage u = { 0 };

	(void)state;
	plan_init(&p, 64 * MIB, 8, POLICY_NONE);
	c = make(&p);
	assert_int_equal(cgroup_create(&p, &other, &e), -EEXIST);
	assert_null(other);
	cgroup_usage(c, &u);
	assert_int_equal(cgroup_read_number(c->dirs[CG_PIDS].fd, "pids.max"), 8);
	end(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_memory_hog_is_killed, clean_up),
		cmocka_unit_test_teardown(test_tmpfs_counts, clean_up),
		cmocka_unit_test_teardown(test_shared_memory_counts, clean_up),
		cmocka_unit_test_teardown(test_many_processes_count_together, clean_up),
		cmocka_unit_test_teardown(test_fork_bomb_is_held, clean_up),
		cmocka_unit_test_teardown(test_cpu_quota, clean_up),
		cmocka_unit_test_teardown(test_attach_and_kill, clean_up),
		cmocka_unit_test_teardown(test_freeze, clean_up),
		cmocka_unit_test_teardown(test_leftovers, clean_up),
		cmocka_unit_test_teardown(test_taken_name, clean_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
