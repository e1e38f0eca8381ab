/* When the steps of a run happened and how long they took, for `--verbose`. Off unless asked for:
 * then it costs nothing. */
#ifndef WARD_BASE_TIMING_H
#define WARD_BASE_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMING_STEPS_MAX 48

struct timing_step {
	const char *name; /* static */
	uint64_t began_ns, ended_ns;
	bool inside; /* done by the sandbox's first process, beside the supervisor */
};

struct timing {
	bool on;
	uint64_t origin_ns;
	struct timing_step steps[TIMING_STEPS_MAX];
	size_t count;
};

/* The monotonic clock; 0 when t is NULL or off. */
uint64_t timing_now(const struct timing *t);
/* A step that began at began_ns has ended now. Nothing happens when t is NULL or off. */
void timing_end(struct timing *t, const char *name, uint64_t began_ns);
/* A step inside, with both its times. */
void timing_inside(struct timing *t, const char *name, uint64_t began_ns, uint64_t ended_ns);
/* Brings the steps into the order in which they began. */
void timing_sort(struct timing *t);

#endif
