/* Which engine carries out a plan. */
#ifndef WARD_ENGINE_ENGINES_H
#define WARD_ENGINE_ENGINES_H

#include "model/running.h"

/* The engine of the plan's name and level; never NULL for a plan that plan_compile() made. Static.
 */
const struct engine *engine_choose(const struct plan *p);

/* The first of the policy's engines that can be used here and is as strong as the policy requires.
 * Sets s->engine, or says of each why not. */
must_check int engine_pick(struct spec *s, struct ward_err *e);

/* One engine as `ward doctor` shows it. */
struct engine_state {
	const char *name;
	bool usable;
	char about[320];     /* where it is usable: what there is of it; "": nothing to say */
	struct ward_err why; /* where it is not */
	const char *inner;   /* what stands inside a native sandbox; NULL: nothing */
};

#define ENGINES_MAX 8
/* Tries every engine that a policy can name. Returns how many there are. */
size_t engines_look(struct engine_state states[ENGINES_MAX]);

#endif
