/*
 * Whom a sandbox with inspect rules trusts: what the host trusts, and its own authority, which is
 * made by its gateway. A directory of certificates takes the place of /etc/ssl/certs inside, and
 * variables name it for programs that look elsewhere.
 */
#ifndef WARD_PLAN_CERTS_H
#define WARD_PLAN_CERTS_H

#include "base/buf.h"

#define CERTS_DIR "/.ward/trust"
#define CERTS_SYSTEM "/etc/ssl/certs"
#define CERTS_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

/* A part of the directory. */
struct certs_entry {
	const char *name;
	const char *link; /* where it points; NULL: a file */
	const char *bytes;
	size_t n;
};

struct certs {
	struct certs_entry *entries;
	size_t count;
	struct strv strings; /* the host's links */
	char name[16];       /* HASH.0 */
	void *map;           /* what the gateway wrote */
	size_t map_bytes;
	struct buf browsers; /* the same certificate as a policy of Chromium's */
};

/* Opens the host's trust store: SSL_CERT_FILE, or where distributions have it. */
must_check int certs_open_store(struct ward_err *e);
/* Reads the host's links; before certs_fill(). */
must_check int certs_add_links(struct certs *t, struct ward_err *e);
/* Takes what the gateway says is to be trusted: fd is a sealed memory file (protocol/gateway.h),
 * borrowed. */
must_check int certs_fill(struct certs *t, int fd, struct ward_err *e);
void certs_free(struct certs *t);

/* NAME=VALUE for programs that do not look into /etc/ssl/certs, NULL-terminated. */
extern const char *const certs_env[];

/* Where parts of the directory are seen, too, if there is such a file. Both without the first
 * "/". */
struct certs_place {
	const char *source, *target;
};
/* Ends with NULLs. */
extern const struct certs_place certs_places[];

#endif
