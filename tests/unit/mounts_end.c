/* Who takes the mounts apart: whoever is at it is left to it, whoever still waits is ended. */
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

/* A process in the sandbox's place, with somebody who waits for its end. */
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
	native_begin_holder(run);
	assert_true(run->mounts_pid > 0);
	return pid;
}

static void finish(struct running *run, pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (run->mounts_pid > 0)
		assert_int_equal(waitpid(run->mounts_pid, NULL, 0), run->mounts_pid);
	close(run->pid_fd);
	free(run->child);
}

static void who_waits_is_ended(unused_arg void **state)
{
	struct running run;
	pid_t pid = begin(&run);

	native_end_holder(&run);
	assert_int_equal(run.mounts_pid, 0);
	assert_false(((struct native_memory *)run.child)->keep.taken); /* it is still to be done */
	finish(&run, pid);
}

static void who_is_at_it_is_not(unused_arg void **state)
{
	struct running run;
	pid_t pid = begin(&run);
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)run.mounts_pid, &info, WEXITED | WNOWAIT), 0);
	native_end_holder(&run);
	assert_true(run.mounts_pid > 0); /* nobody does it again */
	finish(&run, pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(who_waits_is_ended),
					    cmocka_unit_test(who_is_at_it_is_not) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
