/* Parts of the supervisor that stand in files of their own. */
#ifndef WARD_RUN_BOX_H
#define WARD_RUN_BOX_H

#include "model/running.h"

/* A command was not found inside: where the host has it, and the option that would show it, into
 * e's remedy. Whether the host has it. */
bool box_suggest_mount(const struct plan *p, const char *name, struct ward_err *e);
/* Appends how a program in a directory of the host's PATH is started where nothing can be mounted
 * (isolation level landlock). */
void box_put_path(const char *dir, const char *name, struct buf *out);

/* Begins with the engine that a run most likely takes; unlimited: there will be no limit that a
 * cgroup holds, as far as can be told. timing is borrowed for the whole run. */
void box_begin(struct box_early *early, const struct engine *engine, bool unlimited,
	       struct timing *timing);
/* Ends what has begun; nothing else was started. Fine after box_run() too, and frees what the plan
 * borrowed. */
void box_abandon(struct box_early *early);
/* Runs the plan to its end: starts it, relays, watches limits, signals and the deadline, sweeps.
 * The result is filled whatever happens; a refusal is result.refused. */
void box_run(const struct engine *engine, const struct plan *p, struct box_early *early,
	     struct result *r);

#endif
