/* The host's own table of names (/etc/hosts). */
#ifndef WARD_GATEWAY_HOSTS_H
#define WARD_GATEWAY_HOSTS_H

#include "policy/hostname.h"

/* The addresses of a name (canonical) in the text of a hosts file, at most max, in the file's order. Lines that cannot be read
 * are passed over. A pure function, fuzzed (fuzz/hosts.c). */
size_t hosts_find(const char *text, size_t n, const struct host *name, struct ip *ret, size_t max);

#endif
