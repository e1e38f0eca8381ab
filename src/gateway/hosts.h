/* The host's own table of names (/etc/hosts), and its resolver settings (/etc/resolv.conf). */
#ifndef WARD_GATEWAY_HOSTS_H
#define WARD_GATEWAY_HOSTS_H

#include "base/buf.h"
#include "policy/hostname.h"

/* The addresses of a name (canonical) in the text of a hosts file, at most max, in the file's
 * order. Lines that cannot be read are passed over. A pure function, fuzzed (fuzz/hosts.c). */
size_t hosts_find(const char *text, size_t n, const struct host *name, struct ip *ret, size_t max);

/* The name servers in the text of a resolv.conf, separated by commas; the loopback's where it names
 * none. A pure function (settings.c). */
void settings_servers(const char *text, size_t n, struct buf *out);

#endif
