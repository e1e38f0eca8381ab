/* Connections into the sandbox: sockets of its network namespace, as many as are needed. dial's
 * alone. */
#ifndef WARD_GATEWAY_PUBLISHED_H
#define WARD_GATEWAY_PUBLISHED_H

#include "rules/net.h"

/* Two sockets of the sandbox's namespace for each family; -1: none. */
struct published {
	int seeds[2], makers[2]; /* IPv4, IPv6 */
};

void published_init(struct published *w);
/* Takes one of the sockets that came. */
void published_take(struct published *w, enum net_socket kind, int fd);
/* Begins a connection to a port of the sandbox's own loopback. The caller owns the descriptor;
 * *ret_done: it is connected. -errno: no process listens, or there are no sockets. */
int published_connect(const struct published *w, bool v6, uint16_t port, bool *ret_done);

#endif
