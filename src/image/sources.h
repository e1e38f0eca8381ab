/* Where a package manager fetches from. A pure function over bytes of a file. */
#ifndef WARD_IMAGE_SOURCES_H
#define WARD_IMAGE_SOURCES_H

#include "base/buf.h"

#define SOURCES_HOSTS_MAX 32

/* Adds "HOST:PORT" of every http and https address in a list of apt's (one-line or deb822), each
 * once; lines that begin with # are not looked at, and what is no host name with a dot in it,
 * addresses among that, is left out. */
void sources_hosts(const char *bytes, size_t n, struct strv *out);

#endif
