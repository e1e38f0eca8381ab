/* The options of `ward serve`, and what it keeps in its directory. */
#ifndef WARD_DAEMON_SETUP_H
#define WARD_DAEMON_SETUP_H

#include "daemon/pool.h"

#include <limits.h>

struct setup {
	char dir[PATH_MAX]; /* registry.db, secret, tag, lock, base.yaml, workspace,
			      * snapshots */
	char base[PATH_MAX], workspace[PATH_MAX];
	const char *templates;     /* NULL: only "base" */
	const char *tls_dir;       /* of cert.pem and key.pem; NULL: no TLS */
	bool tls_clients;          /* clients need a certificate, of clients.pem there */
	const char *add_key;       /* owner of a new key: no server is started */
	const char *role, *limits; /* of the new key; NULL: admin, and none */
	const char *key_name;      /* of the new key; NULL: none */
	unsigned ttl_s;            /* of the new key; 0: it has no end */
	const char *list_keys;     /* the owner whose keys are listed, "": of all */
	const char *drop_key;      /* the id of one to revoke */
	bool json;
	char address[64];
	uint16_t port;
	unsigned most, quota, snapshot_mib, rate;
	uint64_t least_memory;
	struct pool pools[POOLS_MAX];
	size_t pool_count;
	bool dev, debug;
	uint8_t secret[32];
	char tag[TAG + 1];
	char dev_key[80];
	int lock_fd, snapshots_fd;
};

must_check int setup_read(int argc, char **argv, struct setup *ret, struct ward_err *e);
/* Makes what is missing in the directory, and takes its lock unless a key is to be added. */
must_check int setup_prepare(struct setup *s, struct ward_err *e);
/* The options --pool and --warm (setup_pools.c); NULL: not given. */
must_check int setup_read_pools(struct setup *s, const char *sizes, const char *warm,
				struct ward_err *e);
must_check int setup_add_key(struct setup *s, struct ward_err *e);
/* Whether no server is to be started: keys are made, listed or revoked. */
bool setup_is_about_keys(const struct setup *s);
/* Lists keys and tokens, or revokes one (setup_keys.c). */
must_check int setup_keys(struct setup *s, struct ward_err *e);

#endif
