/* Canary files of a run: made before it starts, gone with it. */
#ifndef WARD_PLAN_PLAN_CANARY_H
#define WARD_PLAN_PLAN_CANARY_H

#include "alarm/canary.h"
#include "model/plan.h"
#include "policy/policy_watch.h"

struct canary_file {
	char target[WATCH_CANARY_PATH + 16]; /* inside */
	char name[8];                        /* in dir_fd */
	char token[CANARY_TOKEN + 1];        /* in its content */
};

struct canaries {
	struct canary_file files[WATCH_CANARIES_MAX];
	size_t count;
	int parent_fd, dir_fd; /* the runtime directory, and one of this run's in it */
	char dir[32];
};

/* Makes the files of a plan that will be started. */
must_check int canary_start(struct plan *p, struct ward_err *e);
/* Removes them. */
void canary_end(struct plan *p);

#endif
