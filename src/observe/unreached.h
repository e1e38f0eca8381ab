/* Connections that a sandbox without a network asks for: what the summary and `ward explain` go
 * by. */
#ifndef WARD_OBSERVE_UNREACHED_H
#define WARD_OBSERVE_UNREACHED_H

#include "model/result.h"
#include "observe/observe.h"

#define UNREACHED_MAX 64 /* addresses that are looked at, each once */

struct unreached {
	uint64_t seen[UNREACHED_MAX]; /* hashes */
	size_t count;
	int root_fd; /* of the process that asks, for as long as one is looked at; -1: none */
};

/* Before the call goes on: the process may be dead a moment later. */
void unreached_prepare(struct unreached *u, const struct observation *o);

/* What to do instead of using a socket of the host's (tables/sockets.def): "" where nobody misses
 * it, NULL where the table has none of that name. Static text. */
const char *unreached_socket_advice(const char *path);

/* Reports a connection that was seen, if it leads out or to something of the host's: one event,
 * net.connect, and one denial. The sandbox has no network. */
void unreached_report(struct unreached *u, const struct observation *o, struct result *r);

/* The same for an IPv4 address and a port ("192.0.2.1:443") that the command's own words complain
 * about, unless it is on record or leads nowhere outside. */
void unreached_heard(const char *address, struct result *r);
/* The same where the words name no address. */
void unreached_somewhere(struct result *r);

#endif
