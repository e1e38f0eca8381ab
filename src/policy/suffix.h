/* The public suffix list: under which names anyone can register one. */
#ifndef WARD_POLICY_SUFFIX_H
#define WARD_POLICY_SUFFIX_H

#include <stdbool.h>
#include <stddef.h>

#define SUFFIX_LIST "/usr/share/publicsuffix/public_suffix_list.dat"
#define SUFFIX_LIST_MAX (4 * 1024 * 1024)

/* Whether name (canonical) is a public suffix by the list (n bytes in the format of
 * publicsuffix.org, n 0: none): then *.name is everybody's. A name of one label always is. A pure
 * function. */
bool suffix_is_public(const char *list, size_t n, const char *name);

#endif
