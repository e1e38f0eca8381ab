/* Names of limits, layers and mechanisms, from the tables: what reports, plans and messages call
 * them. Static text. */
#include "event/table_names.h"

#include <string.h>

#include "model/plan.h"

const char *limit_option(enum limit l)
{
	switch (l) {
#define LIMIT(id, name, unit, member, option, message)                                             \
	case LIMIT_##id:                                                                           \
		return option;
#include "limits.def"
	case LIMITS:
		break;
	}
	return "";
}

const struct unseen *unseen_behind(const char *engine)
{
	static const struct {
		const char *engine;
		struct unseen u;
	} rows[] = {
#define UNSEEN(engine, what, next) { engine, { what, next } },
#include "unseen.def"
	};

	for (size_t i = 0; engine && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(engine, rows[i].engine) == 0)
			return &rows[i].u;
	return NULL;
}

const char *limit_name(enum limit l)
{
	switch (l) {
#define LIMIT(id, name, ...)                                                                       \
	case LIMIT_##id:                                                                           \
		return name;
#include "limits.def"
	case LIMITS:
		break;
	}
	return "";
}

const char *layer_name(enum layer l)
{
	switch (l) {
#define LAYER(id, name, ...)                                                                       \
	case LAYER_##id:                                                                           \
		return name;
#include "layers.def"
	case LAYERS:
		break;
	}
	return "";
}

const char *held_by_name(enum held_by h)
{
	switch (h) {
	case HELD_NONE:
		return "none";
	case HELD_CGROUP1:
		return "cgroup1";
	case HELD_CGROUP2:
		return "cgroup2";
	case HELD_RLIMIT:
		return "rlimit";
	case HELD_TMPFS:
		return "tmpfs";
	case HELD_WATCH:
		return "watch";
	}
	return "";
}
