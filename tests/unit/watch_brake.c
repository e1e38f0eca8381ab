/*
 * Holding back who fills the disk, on real processes: the threads and descendants of a family run
 * on one processor while that is wanted, and on all of them a second later. Its first process is
 * ward-init's place and is left alone; who has chosen a processor keeps it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "limit/watch_parts.h"

static int processors_of(pid_t pid)
{
	cpu_set_t set;

	return sched_getaffinity(pid, sizeof(set), &set) < 0 ? -1 : CPU_COUNT(&set);
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		for (;;)
			pause();
	}
	return pid;
}

/* first: has the child, which has the grandchild */
struct family {
	pid_t first, child, grandchild;
};

static struct family make_family(void)
{
	struct family f = { 0 };
	pid_t pids[2];
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	f.first = fork();
	if (f.first == 0) {
		pid_t child;

		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		child = fork();
		if (child == 0) {
			pids[0] = getpid();
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			pids[1] = sleeper();
			if (write(fds[1], pids, sizeof(pids)) != sizeof(pids))
				_exit(1);
		}
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], pids, sizeof(pids)), sizeof(pids));
	f.child = pids[0];
	f.grandchild = pids[1];
	close(fds[0]);
	close(fds[1]);
	return f;
}

static void end_family(const struct family *f)
{
	kill(f->first, SIGKILL);
	assert_int_equal(waitpid(f->first, NULL, 0), f->first);
}

static void test_one_processor_and_back(void **state)
{
	const struct timespec calm = { .tv_sec = 1, .tv_nsec = 200 * 1000000 };
	struct disk_brake b = { 0 };
	int all = processors_of(0);
	struct family f;

	(void)state;
	if (all < 2)
		skip();
	f = make_family();
	brake_tick(&b, f.first, false);
	assert_int_equal(processors_of(f.grandchild), all);
	brake_tick(&b, f.first, true);
	assert_int_equal(processors_of(f.first), all);
	assert_int_equal(processors_of(f.child), 1);
	assert_int_equal(processors_of(f.grandchild), 1);
	brake_tick(&b, f.first, false); /* not calm for long enough */
	assert_int_equal(processors_of(f.child), 1);
	nanosleep(&calm, NULL);
	brake_tick(&b, f.first, false);
	assert_int_equal(processors_of(f.child), all);
	assert_int_equal(processors_of(f.grandchild), all);
	end_family(&f);
}

static void test_who_frees_itself_is_held_again(void **state)
{
	const struct timespec pass = { .tv_nsec = 200 * 1000000 };
	struct disk_brake b = { 0 };
	int all = processors_of(0);
	cpu_set_t every;
	struct family f;

	(void)state;
	if (all < 2)
		skip();
	assert_int_equal(sched_getaffinity(0, sizeof(every), &every), 0);
	f = make_family();
	brake_tick(&b, f.first, true);
	assert_int_equal(sched_setaffinity(f.child, sizeof(every), &every), 0);
	nanosleep(&pass, NULL);
	brake_tick(&b, f.first, true);
	assert_int_equal(processors_of(f.child), 1);
	end_family(&f);
}

static void test_own_choice_stays(void **state)
{
	const struct timespec calm = { .tv_sec = 1, .tv_nsec = 200 * 1000000 };
	struct disk_brake b = { 0 };
	cpu_set_t all, own, now;
	struct family f;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2)
		skip();
	f = make_family();
	/* the two processors that there are at least: one of them is not the brake's */
	brake_tick(&b, f.first, true);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && cpu != b.processor) {
			CPU_ZERO(&own);
			CPU_SET(cpu, &own);
		}
	assert_int_equal(sched_setaffinity(f.child, sizeof(own), &own), 0);
	nanosleep(&calm, NULL);
	brake_tick(&b, f.first, false);
	assert_int_equal(sched_getaffinity(f.child, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &own));
	end_family(&f);
}

static void test_hurry(void **state)
{
	struct disk_brake b = { 0 };

	(void)state;
	brake_hurry(&b, true);
	/* a child is never in a hurry */
	if (sched_getscheduler(0) != SCHED_OTHER) {
		pid_t pid = sleeper();

		assert_int_equal(sched_getscheduler(pid) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	brake_hurry(&b, false);
	assert_int_equal(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_processor_and_back),
		cmocka_unit_test(test_who_frees_itself_is_held_again),
		cmocka_unit_test(test_own_choice_stays),
		cmocka_unit_test(test_hurry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
