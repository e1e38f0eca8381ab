/* Secrets that this process knows are not put on record. */
#ifndef WARD_AUDIT_MASK_H
#define WARD_AUDIT_MASK_H

#include "model/event.h"
#include "policy/policy.h"

struct mask;

/* A sink in front of another: the values of the policy's env: grants are taken out of every text.
 * NULL: there is nothing to look for, or (*ret_failed) no memory. */
struct mask *mask_create(const struct policy *p, struct event_sink *behind, bool *ret_failed);
struct event_sink *mask_events(struct mask *m);
void mask_free(struct mask *m);

#endif
