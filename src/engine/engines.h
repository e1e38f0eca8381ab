/* Which engine carries out a plan. */
#ifndef WARD_ENGINE_ENGINES_H
#define WARD_ENGINE_ENGINES_H

#include "lib/engine.h"

/* The engine of the plan's name and rung; never NULL for a plan that plan_compile() made. Static.
 */
const struct engine *engine_choose(const struct plan *p);

#endif
