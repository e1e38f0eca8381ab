/* What no answer of a person can allow: approvals.never. Hosts: rules_never() in egress_rules.h. */
#ifndef WARD_RULES_NEVER_H
#define WARD_RULES_NEVER_H

#include "base/buf.h"

/* The entry that names this file of the host, or a directory around it; NULL: none does. path is
 * absolute, and so are the entries (spec_paths.c). Pure. */
const char *never_path(const struct strv *never, const char *path);
/* The same, or an entry that may name something below the path. */
const char *never_tree(const struct strv *never, const char *path);
/* The same for a program: its path, or its name alone. */
const char *never_program(const struct strv *never, const char *path);
/* The same for grants, "NAME, NAME". */
const char *never_grants(const struct strv *never, const char *names);

#endif
