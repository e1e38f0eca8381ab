/* A child that shares the caller's memory but nothing else: cheaper than fork, and its words reach
 * the caller. */
#ifndef WARD_BASE_CLONE_H
#define WARD_BASE_CLONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clone_child {
	uint64_t flags; /* CLONE_*; CLONE_PIDFD fills pid_fd */
	int cgroup_fd;  /* with CLONE_INTO_CGROUP */
	int pid_fd;
	int *child_tid; /* with CLONE_CHILD_CLEARTID: 0 when it has left this memory */
	bool quiet;     /* no exit signal: only waitpid(__WCLONE) sees its end */
	void *stack;
	size_t stack_bytes;
	int (*main)(void *); /* raw system calls only when CLONE_VM is set without CLONE_VFORK */
	void *argument;
};

/* The bare call: clone3 (its arguments and their size in a and b) or clone (flags and stack), then
 * fn(argument) in the child. */
long clone_call(long nr, long a, long b, long c, long d, int (*fn)(void *), void *argument);

/* Starts it with clone3, or with clone where an outer filter hides clone3. Returns the pid or
 * -errno. */
long clone_start(struct clone_child *c);

#endif
