/*
 * The group of a host: the widest set of names that belongs to one registrant, which is one label
 * more than a public suffix. In: the public suffix list, a canonical host. Out: a wildcard, or
 * none. Never wider: without the list there is no group, for then *.github.io would look like one.
 * Pure.
 */
#include "approve/group.h"

#include <stdio.h>
#include <string.h>

#include "policy/suffix.h"

bool group_of(const char *list, size_t n, const char *host, char *ret, size_t cap)
{
	const char *last = strrchr(host, '.');
	const char *name = host;

	if (!n || !last || strchr(host, ':') || (last[1] >= '0' && last[1] <= '9'))
		return false;
	if (suffix_is_public(list, n, host))
		return false;
	/* the shortest name that is no public suffix */
	for (const char *dot = strchr(host, '.'); dot; dot = strchr(dot + 1, '.')) {
		if (suffix_is_public(list, n, dot + 1))
			break;
		name = dot + 1;
	}
	if (name == host || strchr(name, '.') == NULL)
		return false; /* it is the whole already */
	return (size_t)snprintf(ret, cap, "*.%s", name) < cap;
}
