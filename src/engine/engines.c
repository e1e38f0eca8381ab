/* The engines of this build: one row for each name and rung. The planner has decided, this finds.
 */
#include "engine/engines.h"

#include <string.h>

#include "engine/landlock/rung.h"
#include "engine/native/native.h"

static const struct {
	enum rung rung;
	const struct engine *engine;
} engines[] = {
	{ RUNG_NAMESPACES, &engine_native },
	{ RUNG_LANDLOCK, &engine_landlock },
};

const struct engine *engine_choose(const struct plan *p)
{
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		if (engines[i].rung == p->rung && strcmp(engines[i].engine->name, p->engine) == 0)
			return engines[i].engine;
	return NULL;
}
