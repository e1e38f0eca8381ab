/*
 * A process that waits for a command, made while none is requested. It was born in the cgroup of
 * commands, in pid 1's memory (so nothing is copied), leads a session of its own, has pipes for its
 * 0-2 and is still root. A command without a terminal is given to it: it takes the limits and ids
 * of commands and executes. So it is never one process more than there are commands, and it exists
 * only while no user process does: none can see or stop it.
 *
 * Its life is one word: BORN, then PARKED, which it says itself, and GONE, which the kernel writes
 * when it has left pid 1's memory, by an exec or by its end. pid 1 waits while it is BORN. From
 * PARKED on both run in the same memory: it makes raw system calls only, and what it was given
 * (words, list, stack) is left alone until it is GONE.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clone.h"
#include "base/raw.h"
#include "vm/guest/agent.h"

#define STACK_BYTES 65536

enum { GONE, PARKED, BORN };

static void wait_while(const int *word, int value, int how)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		raw_call(SYS_futex, word, how, value, 0);
}

static void tell(int *word, int value, int how)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	raw_call(SYS_futex, word, how, 1);
}

static int spare_main(void *argument)
{
	struct agent *a = argument;
	struct spare *sp = &a->spare;

	if (!job_take_ends(&sp->ends))
		return JOB_NOT_STARTED;
	tell(&sp->state, PARKED, FUTEX_WAKE);
	wait_while(&sp->go, 0, FUTEX_WAIT_PRIVATE);
	if (sp->settled)
		raw_call(SYS_personality, ADDR_NO_RANDOMIZE);
	job_become(a, sp->words, &sp->start, sp->list);
}

/* Until the last one has left our memory. It was given a command that has ended, or is about to be
 * executed. */
static void settle(struct agent *a)
{
	struct spare *sp = &a->spare;

	wait_while(&sp->state, PARKED, FUTEX_WAIT);
	if (sp->list != sp->few)
		free(sp->list);
	if (!a->spare_words && sp->words_room == JOB_SPARE_BYTES)
		a->spare_words = sp->words;
	else
		free(sp->words);
	sp->list = NULL;
	sp->words = NULL;
	sp->words_room = 0;
}

static long launch(struct agent *a)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	struct clone_child c = { .flags = CLONE_VM | CLONE_CHILD_CLEARTID,
				 .child_tid = &a->spare.state,
				 .stack = stack,
				 .stack_bytes = sizeof(stack),
				 .main = spare_main,
				 .argument = a };

	if (a->cgroup_fd >= 0) {
		c.flags |= CLONE_INTO_CGROUP;
		c.cgroup_fd = a->cgroup_fd;
	}
	a->spare.state = BORN;
	a->spare.go = 0;
	return clone_start(&c);
}

static void close_all(int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

int spare_make(struct agent *a)
{
	struct spare *sp = &a->spare;
	long pid = 0;

	if (sp->pid)
		return 0;
	settle(a);
	for (unsigned i = 0; i < VM_STREAMS && pid == 0; i++)
		pid = job_make_pipe(i, &sp->ends.inner[i], &sp->outer[i]);
	if (pid == 0) {
		pid = launch(a);
		if (pid > 0)
			wait_while(&sp->state, BORN, FUTEX_WAIT);
	}
	close_all(sp->ends.inner, VM_STREAMS);
	if (pid < 0) {
		sp->state = GONE;
		close_all(sp->outer, VM_STREAMS);
		return (int)pid;
	}
	sp->pid = (pid_t)pid;
	return 0;
}

/* Words and variables as execve() wants them, pointing into the words: in `few` where that has
 * room, else in memory of their own. */
static bool list_words(struct spare *sp)
{
	size_t argc = sp->start.argc, count = argc + sp->start.envc;
	char *at = sp->words + strlen(sp->words) + 1;

	sp->list = count + 2 <= SPARE_FEW ? sp->few : calloc(count + 2, sizeof(*sp->list));
	if (!sp->list)
		return false;
	for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
		sp->list[i < argc ? i : i + 1] = at;
	sp->list[argc] = sp->list[count + 1] = NULL;
	return true;
}

pid_t spare_start(struct agent *a, struct job *j, const struct vm_start *s)
{
	struct spare *sp = &a->spare;
	pid_t pid;
	int r;

	if (sp->pid && sp->state != PARKED) /* it was ended: by the kernel, for its memory */
		spare_drop(a);
	r = spare_make(a);
	if (r < 0)
		return r;
	sp->start = *s;
	sp->settled = a->rehearsal.speaking && a->rehearsal.times > REHEARSE_ROUND;
	sp->words = j->words;
	sp->words_room = j->words_room;
	j->words = NULL;
	j->words_len = j->words_room = 0;
	if (!list_words(sp)) {
		spare_drop(a);
		return -ENOMEM;
	}
	j->in_fd = sp->outer[0];
	j->out_fds[1] = sp->outer[1];
	j->out_fds[2] = sp->outer[2];
	for (int i = 0; i < VM_STREAMS; i++)
		sp->outer[i] = -1;
	pid = sp->pid;
	sp->pid = 0;
	tell(&sp->go, 1, FUTEX_WAKE_PRIVATE);
	return pid;
}

void spare_lost(struct agent *a)
{
	a->spare.pid = 0;
	close_all(a->spare.outer, VM_STREAMS);
}

void spare_drop(struct agent *a)
{
	pid_t pid = a->spare.pid;

	if (!pid)
		return;
	if (kill(pid, SIGKILL) == 0)
		waitpid(pid, NULL, 0);
	spare_lost(a);
}
