/* Real addresses of allowed names: the host's table, what is still known, then DNS. dial's
 * alone. */
#ifndef WARD_GATEWAY_LOOKUP_H
#define WARD_GATEWAY_LOOKUP_H

#include "base/err.h"
#include "policy/hostname.h"

#define LOOKUP_IPS_MAX 16

struct lookup;

/* Called once for each lookup_find(), at once or later; no addresses: there are none, or no server
 * answered. */
typedef void (*lookup_found)(void *context, uint32_t id, const struct ip *ips, size_t count);

/* Reads the host's resolver settings now, before files are out of reach. Its sockets are waited for
 * in epoll_fd with data.u64 = tag << 32 | fd. hosts_fd is borrowed, -1: none. */
must_check int lookup_new(int epoll_fd, uint32_t tag, int hosts_fd, lookup_found found,
			  void *context, struct lookup **ret, struct ward_err *e);
/* The host's files have changed: another table of names (takes the descriptor), other name servers.
 * Questions on their way are asked anew. */
void lookup_hosts(struct lookup *l, int hosts_fd);
void lookup_settings(struct lookup *l, int resolver_fd);
void lookup_find(struct lookup *l, const struct host *name, uint32_t id);
/* Something happened on its socket. */
void lookup_ready(struct lookup *l, int fd, uint32_t epoll_events);
/* Milliseconds until lookup_tick() wants to be called, at most max. */
int lookup_wait_ms(struct lookup *l, int max);
void lookup_tick(struct lookup *l);

#endif
