/* Names of limits, layers and mechanisms, as reports, plans and messages have them. Static text. */
#ifndef WARD_EVENT_TABLE_NAMES_H
#define WARD_EVENT_TABLE_NAMES_H

#include "model/limits.h"

const char *limit_name(enum limit l);
const char *limit_option(enum limit l); /* that moves it */
const char *layer_name(enum layer l);
const char *held_by_name(enum held_by h); /* none cgroup1 cgroup2 rlimit tmpfs watch */

/* What ward is not shown of a run under an engine, and what would show it ("": nothing does). NULL:
 * it is shown all that the tables have. */
struct unseen {
	const char *what, *next;
};
const struct unseen *unseen_behind(const char *engine);

#endif
