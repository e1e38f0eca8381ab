/*
 * What the tests of cgroup v1 and v2 share: a plan with no limit, the cgroup of the running test
 * (removed also when the test fails), and questions about a process in it. Included by one .c each.
 */
#ifndef WARD_TESTS_CGROUP_HELP_H
#define WARD_TESTS_CGROUP_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "base/io.h"
#include "limit/cgroup_kind.h"

static struct spec spec;
static struct cgroup *current; /* removed also when a test fails */

static struct plan plan_without_limits(enum cgroup_kind kind)
{
	static unsigned serial;
	struct plan p = { .spec = &spec, .facts = { .cgroup = kind } };

	snprintf(spec.run_id, sizeof(spec.run_id), "ut%d-%u", getpid(), serial++);
	for (unsigned i = 0; i < LIMITS; i++)
		p.limits[i].value = POLICY_NONE;
	return p;
}

static struct cgroup *create(const struct plan *p)
{
	struct ward_err e = { 0 };
	struct cgroup *c = NULL;

	if (cgroup_create(p, &c, &e) < 0)
		fail_msg("%s: %s", e.what, e.why);
	current = c;
	return c;
}

static int clean_up(void **state)
{
	(void)state;
	if (current && cgroup_kill(current) < 0)
		print_message("processes are left\n");
	cgroup_destroy(current);
	current = NULL;
	return 0;
}

static int status_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Every directory is gone after the end. */
static void end(struct cgroup *c)
{
	auto_strv dirs = { 0 };
	struct stat st;

	cgroup_dirs(c, &dirs);
	assert_true(dirs.len > 0);
	current = NULL;
	cgroup_destroy(c);
	for (size_t i = 0; i < dirs.len; i++)
		assert_int_equal(stat(dirs.items[i], &st), -1);
}

static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;
	struct timespec t;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* On a busy machine the scheduler may take a while. */
static void runs_again(pid_t pid, uint64_t before)
{
	struct timespec some = { .tv_nsec = 10000000 };

	for (int i = 0; i < 1000 && cpu_of(pid) == before; i++)
		nanosleep(&some, NULL);
	assert_true(cpu_of(pid) > before);
}

/* A frozen process gets no processor time; a thawed one runs on. */
static void check_freeze(struct cgroup *c, pid_t pid)
{
	struct timespec some = { .tv_nsec = 50000000 };
	uint64_t before;

	assert_int_equal(cgroup_freeze(c, true), 0);
	before = cpu_of(pid);
	nanosleep(&some, NULL);
	assert_int_equal(cpu_of(pid), before);
	assert_int_equal(cgroup_freeze(c, false), 0);
	runs_again(pid, before);
}

/* Removed by the paths in a record, as after a ward that was killed: processes and directories. */
static void check_leftovers(struct cgroup *c, const struct strv *dirs, pid_t pid)
{
	struct stat st;

	cgroup_remove_dirs(dirs);
	assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
	for (size_t i = 0; i < dirs->len; i++)
		assert_int_equal(stat(dirs->items[i], &st), -1);
	current = NULL;
	cgroup_destroy(c);
}

#endif
