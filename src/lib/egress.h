/* The gateway as the supervisor sees it: started with the rules, given the sandbox's sockets, heard, ended. */
#ifndef WARD_LIB_EGRESS_H
#define WARD_LIB_EGRESS_H

#include "lib/engine.h"

struct egress;

/* Starts ward-gateway for a plan with a network. Nobody waits for it: what the sandbox connects to waits in the sockets. */
must_check int egress_begin(const struct plan *p, struct egress **ret, struct ward_err *e);
/* Hands over the sockets that were made in the sandbox, and closes them here: nobody else has them from now on. */
must_check int egress_give(struct egress *g, struct running *run, struct ward_err *e);
/* What to poll; -1: the gateway is gone. */
int egress_fd(const struct egress *g);
/* Takes what the gateway says. */
void egress_handle(struct egress *g, struct result *r);
/* Asks for the totals and ends it. NULL is fine. */
void egress_end(struct egress *g, struct result *r);

#endif
