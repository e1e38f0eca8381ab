/* The file of a recording in a plan. */
#ifndef WARD_PLAN_PLAN_TAPE_H
#define WARD_PLAN_PLAN_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct plan;
struct policy;
struct rules;

struct plan_tape {
	bool replay; /* else it is recorded into */
	char *path;  /* absolute; owned */
	int fd;      /* owned; -1: nothing starts */
	int dir_fd;  /* of one that was made here; owned; -1: none was */
	/* of one that is replayed: */
	uint32_t exchanges;
	uint64_t bytes;
	uint8_t hash[16];
};

/* What a policy with a recording must have; rules NULL: no network. Pure. */
must_check int plan_tape_check(const struct policy *policy, const struct rules *rules,
			       struct ward_err *e);
/* A step of plan_compile(), behind the network. */
must_check int plan_add_tape(struct plan *p, struct ward_err *e);
void plan_tape_free(struct plan_tape *t);

#endif
