/* Name lookups of a sandbox without a network: answered at once, and recorded. */
#ifndef WARD_OBSERVE_NAMES_H
#define WARD_OBSERVE_NAMES_H

#include "model/result.h"

struct names;

/* Takes fd: a UDP socket of the sandbox's network namespace. NULL: out of memory, fd is closed. */
struct names *names_create(int fd);
void names_destroy(struct names *n);
/* What to poll for POLLIN; -1: nothing now (n may be NULL). */
int names_fd(const struct names *n);
/* Answers what waits: each name but localhost does not exist. Each name is recorded once in *r.
 * Never blocks. */
void names_handle(struct names *n, uint64_t now_ms, struct result *r);
/* Records a name that the command's own words complain about, unless it is on record or none that
 * could be allowed. */
void names_heard(const char *name, struct result *r);
/* When to call names_handle() again because a flood made it rest; 0: not for that. */
uint64_t names_due_ms(const struct names *n);

#endif
