/* Canaries of a run: files, variables and git remotes, made before it starts, gone with it. */
#ifndef WARD_PLAN_PLAN_CANARY_H
#define WARD_PLAN_PLAN_CANARY_H

#include "alarm/canary.h"
#include "model/plan.h"
#include "policy/policy_watch.h"

struct canary_file {
	char target[WATCH_CANARY_PATH + 16]; /* inside */
	char name[8];                        /* in dir_fd */
};

/* A made-up secret: a file's (the first ones, as many as there are files), a variable's, a
 * remote's. */
struct canary_value {
	const char *field;                 /* of the policy, static */
	char name[WATCH_CANARY_PATH + 16]; /* the path inside, the variable, the remote */
};

#define CANARY_RUN_VALUES (3 * WATCH_CANARIES_MAX)

struct canaries {
	struct canary_file files[WATCH_CANARIES_MAX];
	size_t count;
	struct canary_value values[CANARY_RUN_VALUES];
	char tokens[CANARY_RUN_VALUES * CANARY_TOKEN]; /* of each value, one behind the other */
	size_t value_count;
	char hosts[WATCH_CANARIES_MAX][WATCH_CANARY_PATH]; /* of the remotes */
	size_t host_count;
	int parent_fd, dir_fd; /* the runtime directory, and one of this run's in it */
	char dir[32];
};

/* Makes the canaries of a plan that will be started. */
must_check int canary_start(struct plan *p, struct ward_err *e);
/* Removes them. */
void canary_end(struct plan *p);

#endif
