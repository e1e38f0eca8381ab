/* Entries of approvals.never: KIND:PATTERN. What they match: rules/never.h. */
#ifndef WARD_POLICY_POLICY_NEVER_H
#define WARD_POLICY_POLICY_NEVER_H

#include <stdbool.h>

/* Whether it is an entry; if not, what would be one. Pure. */
bool never_has_shape(const char *text, const char **ret_expected, const char **ret_hint);
/* The canonical host of an entry for hosts. False: it is for something else. Pure. */
bool never_host(const char *entry, char ret_host[256]);

#endif
