/*
 * The steps of a run with their times. The supervisor adds its own as they end; the engine adds
 * those of the sandbox's first process, which runs beside it, when it has them. Nothing is kept,
 * and no clock is read, unless it was asked for.
 */
#include "base/timing.h"

#include <stdlib.h>
#include <time.h>

uint64_t timing_now(const struct timing *t)
{
	struct timespec now;

	if (!t || !t->on)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void add(struct timing *t, struct timing_step step)
{
	if (t->count < TIMING_STEPS_MAX)
		t->steps[t->count++] = step;
}

void timing_end(struct timing *t, const char *name, uint64_t began_ns)
{
	uint64_t now = timing_now(t);

	if (now)
		add(t, (struct timing_step){ .name = name, .began_ns = began_ns, .ended_ns = now });
}

void timing_inside(struct timing *t, const char *name, uint64_t began_ns, uint64_t ended_ns)
{
	if (t && t->on)
		add(t, (struct timing_step){ .name = name,
					     .began_ns = began_ns,
					     .ended_ns = ended_ns,
					     .inside = true });
}

static int by_begin(const void *a, const void *b)
{
	const struct timing_step *x = a, *y = b;

	return x->began_ns < y->began_ns ? -1 : x->began_ns > y->began_ns;
}

void timing_sort(struct timing *t)
{
	qsort(t->steps, t->count, sizeof(t->steps[0]), by_begin);
}
