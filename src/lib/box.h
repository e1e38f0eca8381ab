/* Parts of the supervisor that stand in files of their own. */
#ifndef WARD_LIB_BOX_H
#define WARD_LIB_BOX_H

#include "lib/plan.h"

/* A command was not found inside: where the host has it, and the option that would show it, into e's remedy. Whether the host has it. */
bool box_suggest_mount(const struct plan *p, const char *name, struct ward_err *e);

#endif
