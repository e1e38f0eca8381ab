/* The talk with an upstream proxy on its socket. dial's alone. */
#ifndef WARD_GATEWAY_PROXY_TALK_H
#define WARD_GATEWAY_PROXY_TALK_H

#include "rules/upstream.h"

/* Begins on a connected socket. -errno: it cannot be sent. */
must_check int proxy_talk_begin(int fd, struct upstream_talk *t, const struct upstream *u,
				const struct host *target, uint16_t port);
/* Goes on as far as the proxy has answered. 1: the way is open, and what comes next is the
 * server's; 0: it has to say more; -EACCES: it refuses (t->status); other -errno: it is gone. */
must_check int proxy_talk_step(int fd, struct upstream_talk *t, const struct upstream *u);

#endif
