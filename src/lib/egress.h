/* The gateway as the supervisor sees it: started with the rules, given the sandbox's sockets, heard, ended. */
#ifndef WARD_LIB_EGRESS_H
#define WARD_LIB_EGRESS_H

#include "lib/engine.h"

/* Where ward-gateway may lie, from the directory of ward's own program. */
#define EGRESS_PLACES 3
extern const char *const egress_places[EGRESS_PLACES];

struct egress;

/* Makes sure that there is a gateway for a plan with a network. It is started when the sandbox first wants something of it:
 * what wants it waits in the sockets. p is borrowed. */
must_check int egress_begin(const struct plan *p, struct egress **ret, struct ward_err *e);
/* Takes the sockets that were made in the sandbox. */
must_check int egress_take(struct egress *g, struct running *run, struct ward_err *e);
/* What to poll; -1: nothing. */
int egress_fd(const struct egress *g);
/* Whether the gateway has yet to be started. NULL is fine. */
bool egress_is_waiting(const struct egress *g);
/* Starts the gateway and hands it the sockets (nobody else has them from then on), or takes what it says. */
void egress_handle(struct egress *g, struct result *r);
/* Asks for the totals and ends it. NULL is fine. */
void egress_end(struct egress *g, struct result *r);

#endif
