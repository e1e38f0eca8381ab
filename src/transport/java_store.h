/* The certificates that Java is to trust, in its own format (JKS), which every version of it
 * reads. */
#ifndef WARD_TRANSPORT_JAVA_STORE_H
#define WARD_TRANSPORT_JAVA_STORE_H

#include "base/buf.h"
#include "transport/ca.h"
#include "transport/tls_roots.h"

#define JAVA_STORE_PASSWORD                                                                        \
	"changeit" /* Java's own; it guards against mistakes, not against attackers */

/* Appends the store: the roots and the authority. False: out of memory. */
must_check bool java_store_write(const struct tls_roots *roots, const struct ca *ca,
				 struct buf *out);

#endif
