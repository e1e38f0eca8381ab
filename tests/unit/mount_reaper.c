/* The mount reaper: one that is at work is left alone, one that still waits is ended. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/native/native.h"

static struct native_memory *memory_of(const struct running *run)
{
	return run->child;
}

/* A process in the sandbox's place, and a reaper that waits for its end. */
static pid_t begin(struct running *run)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	*run = (struct running){ .child = calloc(1, sizeof(struct native_memory)),
				 .pid_fd = pidfd_open(pid, 0),
				 .mounts_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) };
	assert_non_null(run->child);
	native_start_reaper(run);
	assert_true(run->reaper_pid > 0);
	return pid;
}

static void finish(struct running *run, pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (run->reaper_pid > 0)
		assert_int_equal(waitpid(run->reaper_pid, NULL, 0), run->reaper_pid);
	close(run->pid_fd);
	free(run->child);
}

static void waiting_reaper_is_ended(unused_arg void **state)
{
	struct running run;
	pid_t pid = begin(&run);

	native_stop_reaper(&run);
	assert_int_equal(run.reaper_pid, 0);
	assert_false(memory_of(&run)->child.sync.keep_claimed); /* it is still to be done */
	finish(&run, pid);
}

static void working_reaper_is_left_alone(unused_arg void **state)
{
	struct running run;
	pid_t pid = begin(&run);
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)run.reaper_pid, &info, WEXITED | WNOWAIT), 0);
	native_stop_reaper(&run);
	assert_true(run.reaper_pid > 0); /* it is not done again */
	finish(&run, pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(waiting_reaper_is_ended),
					    cmocka_unit_test(working_reaper_is_left_alone) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
