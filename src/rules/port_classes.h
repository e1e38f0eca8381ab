/*
 * Port classes: names with the same allowed ports get their synthetic addresses from one block, so
 * that the kernel can refuse every other port of them at once (ECONNREFUSED) without knowing a
 * name. Blocks: class k has 198.18.(16*k).0/20, what fits into none has 198.19.0.0/16, for which
 * the ports of all rules are brought and the gateway resets what is not allowed.
 *
 * Classes are only ever added while a sandbox lives: addresses that programs have keep the meaning
 * they had. Whether a port is brought decides nothing: the gateway does, in every case.
 */
#ifndef WARD_RULES_PORT_CLASSES_H
#define WARD_RULES_PORT_CLASSES_H

#include "rules/egress_rules.h"
#include "rules/net.h"

/* Adds what these rules need and *c has not yet. */
void classes_extend(const struct rules *r, struct net_classes *c);
/* The class of a name; NET_CLASSES_MAX: none of its own. c may be NULL. */
unsigned classes_of(const struct rules *r, const struct net_classes *c, const struct host *host);

#endif
