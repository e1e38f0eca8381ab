/* Groups of hosts that one answer may be about. */
#ifndef WARD_APPROVE_GROUP_H
#define WARD_APPROVE_GROUP_H

#include <stdbool.h>
#include <stddef.h>

/* "*.npmjs.org" for registry.npmjs.org: all that one registrant has, by the public suffix list (n
 * bytes). False: there is no such group: an address, a name that is itself the whole, a public
 * suffix, or no list to tell. A pure function. */
bool group_of(const char *list, size_t n, const char *host, char *ret, size_t cap);

#endif
