/*
 * Synthetic addresses. Every name that the resolver answers gets an address of 198.18.0.0/15 that
 * stands for it from then on: the destination of a connection says which name it is for. An address
 * is never given to a second name in a sandbox's life. Bounded: the names that rules list as such
 * always find room; those under wildcards share NAME_TABLE_WILD, so that a flood of them closes
 * nothing but its own door. One allocation at the start, untouched memory costs nothing. Only the
 * hash is keyed: the names are the sandbox's choice.
 */
#ifndef WARD_RULES_NAME_TABLE_H
#define WARD_RULES_NAME_TABLE_H

#include "policy/hostname.h"
#include "rules/net.h"

#define NAME_TABLE_WILD 57000 /* names under wildcards and in mode open */
/* names that stand in rules, services included, over all generations */
#define NAME_TABLE_LISTED 8192
#define NAME_TABLE_MAX (NAME_TABLE_WILD + NAME_TABLE_LISTED)

struct name_table;

/* seed: 16 random bytes. NULL: out of memory. */
must_check struct name_table *name_table_new(const uint8_t seed[16]);
void name_table_free(struct name_table *n);

/* The address of a name (HOST_NAME), a new one if it has none yet or is of another class now
 * (NET_CLASSES_MAX: of none). listed: a rule has exactly this name. False: no room. */
must_check bool name_table_give(struct name_table *n, const struct host *host, bool listed,
				unsigned class, struct ip *ret);
/* The classes that the resolver gives addresses by; borrowed, NULL: none. */
void name_table_use_classes(struct name_table *n, const struct net_classes *classes);
const struct net_classes *name_table_classes(const struct name_table *n);
/* The name of an address; false if it has none. */
must_check bool name_table_find(const struct name_table *n, const struct ip *ip, struct host *ret);
/* Whether an address is of the synthetic range. */
bool name_table_is_synthetic(const struct ip *ip);
/* How many names there are. */
uint32_t name_table_count(const struct name_table *n);

#endif
