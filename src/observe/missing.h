/* Files that a sandbox asks for and does not have, though the host has them: what `ward learn` and
 * `ward explain` go by. */
#ifndef WARD_OBSERVE_MISSING_H
#define WARD_OBSERVE_MISSING_H

#include "model/result.h"
#include "observe/observe.h"

struct missing;

must_check struct missing *missing_create(void);
void missing_destroy(struct missing *m);
/* Looks at a call that waits: whether its path is one that the host has and the sandbox has not.
 * Each path is looked at once. */
void missing_look(struct missing *m, const struct observation *o);
/* Reports what the last look has found: one event, file.missing. */
void missing_report(struct missing *m, struct result *r);
/* Reports how many were not looked at because there were too many. */
void missing_finish(struct missing *m, struct result *r);
/* Whether the path is one that the C library asks for in every program and no process needs. A pure
 * function. */
bool missing_is_noise(const char *path);

#endif
