/*
 * cgroup v2 for real, as far as a hybrid host goes: directories, cloning into them, freezing,
 * killing, nesting, removal. Limits need controllers, which such a host has on v1; a guest with
 * v2 alone tests those.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* A directory from before the plan, as far as this host goes: without controllers. NULL: this user
 * may write none. */
static struct cgroup *begin_early(void)
{
	struct cgroup *c = calloc(1, sizeof(*c));
	struct ward_err e = { 0 };
	struct cgroup_map map;
	int r;

	assert_non_null(c);
	*c = (struct cgroup){ .ops = &cgroup2_ops, .event_fd = -1 };
	for (unsigned i = 0; i < CG_PLACES; i++)
		c->dirs[i].fd = c->dirs[i].join_fd = -1;
	c->inner.fd = c->inner.join_fd = c->own.fd = c->own.join_fd = -1;
	assert_int_equal(cgroup_map_read(&map, &e), 0);
	r = cgroup2_begin(c, &map, 0);
	cgroup_map_clear(&map);
	if (r == 0)
		return c;
	free(c);
	return NULL;
}

static void early_directory_is_locked(unused_arg void **state)
{
	struct cgroup *c = begin_early();
	pid_t pid;
	int fd;

	if (!c) {
		print_message("no cgroup v2 directory that this user may write\n");
		skip();
		return;
	}
	current = c;
	assert_non_null(strstr(c->dirs[CG_UNIFIED].path, "/" CGROUP_EARLY));
	fd = open(c->dirs[CG_UNIFIED].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	close(fd);
	pid = clone_into(cgroup_clone_fd(c));
	(void)cgroup_remove_orphans();
	assert_int_equal(kill(pid, 0), 0); /* it lives, as its maker does */
	assert_int_equal(access(c->dirs[CG_UNIFIED].path, F_OK), 0);
	assert_int_equal(cgroup_kill(c), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	end(c);
}

/* Its maker is killed, and a process that it put there is not. */
static void orphan_is_removed(unused_arg void **state)
{
	char path[4096] = "";
	int pipe_fds[2], status;
	pid_t maker, inside;

	assert_int_equal(pipe(pipe_fds), 0);
	maker = fork();
	if (maker == 0) {
		struct cgroup *c = begin_early();
		const char *name = c ? c->dirs[CG_UNIFIED].path : "";

		if (write(pipe_fds[1], name, strlen(name) + 1) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_true(read(pipe_fds[0], path, sizeof(path) - 1) > 0);
	kill(maker, SIGKILL);
	assert_int_equal(waitpid(maker, &status, 0), maker);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	if (!path[0]) {
		print_message("no cgroup v2 directory that this user may write\n");
		skip();
		return;
	}
	{
		auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(fd >= 0);
		inside = clone_into(fd);
	}
	assert_true(cgroup_remove_orphans() >= 1);
	assert_int_equal(waitpid(inside, &status, 0), inside);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(access(path, F_OK), -1);
}

static void only_fitting_plans_suit(unused_arg void **state)
{
	struct cgroup c = { .ops = &cgroup2_ops, .enabled = CGROUP2_LIMITS };
	struct plan p = { .spec = &spec, .facts = { .cgroup = CGROUP_V2 } };

	spec.policy.proc_nesting = false;
	assert_false(cgroup_suits(&c, &p)); /* no limit that it would hold */
	p.limits[LIMIT_MEMORY].held_by = HELD_CGROUP2;
	assert_true(cgroup_suits(&c, &p));
	p.limits[LIMIT_CPU].held_by = HELD_CGROUP2;
	assert_false(cgroup_suits(&c, &p)); /* it has no such controller */
	p.limits[LIMIT_CPU].held_by = HELD_NONE;
	spec.policy.proc_nesting = true;
	assert_false(cgroup_suits(&c, &p)); /* the limits must be above what the sandbox sees */
	spec.policy.proc_nesting = false;
	p.facts.cgroup = CGROUP_V1;
	assert_false(cgroup_suits(&c, &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_freeze_and_kill, clean_up),
		cmocka_unit_test_teardown(test_nesting, clean_up),
		cmocka_unit_test_teardown(test_leftovers, clean_up),
		cmocka_unit_test_teardown(test_probe_is_honest, clean_up),
		cmocka_unit_test_teardown(early_directory_is_locked, clean_up),
		cmocka_unit_test_teardown(orphan_is_removed, clean_up),
		cmocka_unit_test(only_fitting_plans_suit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
