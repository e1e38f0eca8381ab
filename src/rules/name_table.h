/*
 * Synthetic addresses. Every name that the resolver answers gets an address of 198.18.0.0/15 that
 * stands for it from then on: which name a connection is for is told by its destination. An address
 * is never given to a second name in a sandbox's life. Bounded: the names that rules list as such
 * always find room; those under wildcards share NAMES_WILD, so that a flood of them closes nothing
 * but its own door. One allocation at the start, untouched memory costs nothing. Only the hash is
 * keyed: the names are the sandbox's choice.
 */
#ifndef WARD_RULES_NAME_TABLE_H
#define WARD_RULES_NAME_TABLE_H

#include "rules/net.h"
#include "policy/hostname.h"

#define NAMES_WILD 57000 /* names under wildcards and in mode open */
/* names that stand in rules, services included, over all generations */
#define NAMES_LISTED 8192
#define NAMES_MAX (NAMES_WILD + NAMES_LISTED)

struct names;

/* seed: 16 random bytes. NULL: out of memory. */
must_check struct names *names_new(const uint8_t seed[16]);
void names_free(struct names *n);

/* The address of a name (HOST_NAME), a new one if it has none yet or is of another class now
 * (NET_CLASSES_MAX: of none). listed: a rule has exactly this name. False: no room. */
must_check bool names_give(struct names *n, const struct host *host, bool listed, unsigned class,
			   struct ip *ret);
/* The classes that the resolver gives addresses by; borrowed, NULL: none. */
void names_use_classes(struct names *n, const struct net_classes *classes);
const struct net_classes *names_classes(const struct names *n);
/* The name of an address; false if it has none. */
must_check bool names_find(const struct names *n, const struct ip *ip, struct host *ret);
/* Whether an address is of the synthetic range. */
bool names_is_synthetic(const struct ip *ip);
/* How many names there are. */
uint32_t names_count(const struct names *n);

#endif
