/* What is said to the kernel over netlink to give a network namespace its addresses, routes and
 * rules. */
#ifndef WARD_ENGINE_NATIVE_NET_BATCH_H
#define WARD_ENGINE_NATIVE_NET_BATCH_H

#include "base/buf.h"
#include "rules/net.h"

/* Addresses and local default routes of loopback. Two batches: without IPv6 the second is
 * refused. */
must_check int net_batch_routes(bool v6, struct buf *out);
/* One table: PREROUTING brings what the matches name to the gateway's sockets, INPUT takes that and
 * what is the sandbox's own, and refuses the rest at once. Returns 0 or -ENOMEM. */
must_check int net_batch_rules(const struct net_match *matches, size_t count, struct buf *out);

/* The same table with other matches, in one step. */
must_check int net_batch_bring(const struct net_match *matches, size_t count, struct buf *out);

/* Asks for what the rules refuse, one message a packet, its first bytes. */
must_check int net_batch_log(struct buf *out);

#endif
