/* Killing a process with everything below it, by /proc. */
#ifndef WARD_RECOVER_PROCESS_TREE_H
#define WARD_RECOVER_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Which of the processes below are meant. */
typedef bool process_tree_wanted(pid_t pid);

/* Sends SIGKILL to the descendants of top, which the caller holds as top_fd. Never to top itself or
 * to the caller, and to none once top is dead. Returns how many got it. */
unsigned process_tree_kill(pid_t top, int top_fd);
/* The same for those of the descendants that are wanted, at most 64; returns when they are dead or
 * wait_ms have passed. */
void process_tree_end(pid_t top, int top_fd, process_tree_wanted *wanted, int wait_ms);
/* The parent's number, 0 where there is none. */
pid_t process_parent(pid_t pid);
/* Whether the process is the first of a pid namespace below the caller's: what is in there ends
 * with it. */
bool process_is_namespace_init(pid_t pid);

#endif
