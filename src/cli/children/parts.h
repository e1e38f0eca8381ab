/* Shared by the files of ward-children. */
#ifndef WARD_CLI_CHILDREN_PARTS_H
#define WARD_CLI_CHILDREN_PARTS_H

#include <sys/types.h>

#include "cli/children/narrow.h"
#include "protocol/command.h"
#include "tools/call.h"

/* A child that runs, and what it takes of all that children may use together. */
struct child {
	pid_t pid; /* 0: none */
	struct call_place place;
	int channel_fd;                           /* its socket for messages; -1: none */
	uint64_t memory, pids, cpu, disk, inodes; /* POLICY_NONE: no limit */
	bool writes;                              /* it has a writable mount: what it wrote stays */
};

/* Starts a child with these descriptors (borrowed, all above 2) as 0-2; channel: with a
 * socket for messages. It dies with this process. ret->place is for child_finish() in any case. */
must_check int child_start(const struct child_request *q, const struct policy *policy,
			   const int fds[3], bool channel, struct child *ret, struct ward_err *e);
/* What its report says; its files go. */
void child_finish(struct child *c, struct call_result *ret);
/* Asks it to end; at once: whatever it does. */
void child_end(const struct child *c);

/* What all children may use now, and what those before may have left on the disk. */
struct ledger {
	uint64_t memory, pids, cpu, disk, inodes;
	unsigned running, started;
};
/* Books a child, if it and all others together stay below the parent's own limits. */
must_check int ledger_add(struct ledger *l, const struct parent *parent, const struct policy *p,
			  struct child *c, struct ward_err *e);
/* It has ended, or could not be started. */
void ledger_remove(struct ledger *l, const struct child *c);

#endif
