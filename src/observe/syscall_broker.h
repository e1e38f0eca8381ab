/* What Landlock does not cover, done by the supervisor: modes, times and attributes of files in the
 * workspace. */
#ifndef WARD_OBSERVE_SYSCALL_BROKER_H
#define WARD_OBSERVE_SYSCALL_BROKER_H

#include <linux/seccomp.h>

#include "model/plan.h"

struct syscall_broker;

/* Opens the plan's writable trees; borrows the plan. */
must_check int syscall_broker_create(const struct plan *p, struct syscall_broker **ret_broker,
				     struct ward_err *e);
void syscall_broker_destroy(struct syscall_broker *b); /* NULL is fine */
/* Whether a call of this number is one that is made on behalf. */
bool syscall_broker_serves(int nr);
/* Makes the call that waits at notify_fd, if it is about a file of a writable tree that the
 * sandbox's user owns. Returns 0 or -errno for the caller; -EPERM: refused. */
must_check int syscall_broker_call(struct syscall_broker *b, int notify_fd,
				   const struct seccomp_notif *request);

#endif
