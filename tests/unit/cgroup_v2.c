/*
 * cgroup v2 for real, as far as a hybrid host goes: directories, cloning into them, freezing,
 * killing, nesting, removal. Limits need controllers, which such a host has on v1; a guest with
 * v2 alone tests those.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "cgroup_help.h"

static struct cgroup *make(bool nesting)
{
	struct plan p = plan_without_limits(CGROUP_V2);
	struct ward_err e = { 0 };
	struct cgroup_map map;
	bool usable;

	spec.policy.proc_nesting = nesting;
	assert_int_equal(cgroup_map_read(&map, &e), 0);
	usable = map.dir[CG_UNIFIED] && cgroup_may_create(map.dir[CG_UNIFIED]);
	cgroup_map_clear(&map);
	if (!usable) {
		print_message("no cgroup v2 directory that this user may write\n");
		skip();
	}
	return create(&p);
}

static pid_t clone_into(int fd)
{
	struct clone_args a = { .flags = CLONE_INTO_CGROUP,
				.exit_signal = SIGCHLD,
				.cgroup = (uint64_t)fd };
	pid_t pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile unsigned n = 0;; n++)
			;
	}
	assert_true(pid > 0);
	return pid;
}

static void test_freeze_and_kill(void **state)
{
	struct timespec some = { .tv_nsec = 50000000 };
	struct cgroup *c = make(false);
	struct usage u = { 0 };
	int fds[4];
	pid_t pid;

	(void)state;
	assert_int_equal(cgroup_self_fds(c, fds, 4), 0);
	pid = clone_into(cgroup_clone_fd(c));
	nanosleep(&some, NULL);
	check_freeze(c, pid);
	assert_int_equal(cgroup_freeze(c, true), 0);
	assert_int_equal(cgroup_kill(c), 0);
	assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
	cgroup_usage(c, &u);
	assert_true(u.cpu_ms > 0);
	assert_false(u.hit[LIMIT_MEMORY]);
	end(c);
}

/* Whose limits can be written from inside is one level above where the processes are. */
static void test_nesting(void **state)
{
	struct cgroup *c = make(true);
	auto_buf text = { 0 };
	char path[64];
	pid_t pid;

	(void)state;
	pid = clone_into(cgroup_clone_fd(c));
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1u << 16, &text), 0);
	assert_non_null(strstr(buf_text(&text), "/box\n"));
	assert_int_equal(cgroup_freeze(c, true), 0);
	assert_int_equal(cgroup_kill(c), 0);
	status_of(pid);
	end(c);
}

static void test_leftovers(void **state)
{
	struct cgroup *c = make(true);
	auto_strv dirs = { 0 };
	pid_t pid;

	(void)state;
	pid = clone_into(cgroup_clone_fd(c));
	assert_int_equal(cgroup_freeze(c, true), 0);
	cgroup_dirs(c, &dirs);
	assert_int_equal(dirs.len, 2);
	check_leftovers(c, &dirs, pid);
}

/* Without controllers v2 cannot hold limits, and says so. */
static void test_probe_is_honest(void **state)
{
	struct cgroup_info info;
	struct cgroup_map map;
	struct ward_err e = { 0 };

	(void)state;
	assert_int_equal(cgroup_map_read(&map, &e), 0);
	memset(&info, 0, sizeof(info));
	if (map.dir[CG_MEMORY]) {
		assert_false(cgroup2_ops.probe(&map, &info));
		assert_true(!map.dir[CG_UNIFIED] || info.why[0]);
	}
	cgroup_map_clear(&map);
	cgroup_probe_info(&info);
	assert_int_equal(info.kind, cgroup_probe());
	assert_int_equal(info.kind == CGROUP_NONE, info.why[0] != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_freeze_and_kill, clean_up),
		cmocka_unit_test_teardown(test_nesting, clean_up),
		cmocka_unit_test_teardown(test_leftovers, clean_up),
		cmocka_unit_test_teardown(test_probe_is_honest, clean_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
