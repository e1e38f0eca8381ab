/*
 * Pools: sandboxes of a template that are started ahead of their clients. One that waits has no
 * owner, and for requests of clients it does not exist; it is handed over once, and never comes
 * back.
 */
#ifndef WARD_DAEMON_POOL_H
#define WARD_DAEMON_POOL_H

#include <limits.h>
#include <sys/stat.h>

#include "daemon/front.h"

#define POOLS_MAX 16
#define POOL_CLAIMS 64 /* that are remembered for sharing */

struct pool_claim {
	uint64_t when_ms;
	uint64_t owner; /* a hash of the name */
};

struct pool {
	char template[TEMPLATE_MAX + 1];
	unsigned size;    /* 0: it has only something to have ready */
	struct buf ready; /* settings of ward-envd, each with a NUL (protocol/envd.h) */
	char policy[PATH_MAX + TEMPLATE_MAX + 8]; /* the file, if there is one */
	struct stat seen;                         /* what it was when the sandboxes were started */
	char version[65];                         /* of the policy, as the keeper reads it */
	unsigned epoch;                           /* counts changes of that */
	bool looking;                             /* the keeper is asked for the version */
	uint64_t look_ms, retry_ms;
	struct pool_claim claims[POOL_CLAIMS];
	size_t next_claim;
	uint64_t hits, misses, held_back, drained, filled, failed;
};

/* The pool of that template; NULL: none. */
struct pool *pool_find(struct front *f, const char *template);
/* Takes a sandbox for the owner out of the pool; NULL: it is to be started. The caller fills in
 * whose it is. */
struct sandbox *pool_take(struct front *f, const char *owner, const char *template,
			  bool no_network);
/* A sandbox of the pool has started, or has not. */
void pool_started(struct front *f, struct sandbox *s, int result, const char *why);
/* Ends one that waits, where the server has as many sandboxes as it may have. False: none waits. */
bool pool_give_way(struct front *f);
/* Fills pools, and ends what is of an older policy. */
void pool_tick(struct front *f);
/* Ends all that wait. */
void pool_end_all(struct front *f);
/* Appends what ward-envd of that template shall have ready. */
void pool_settings(struct front *f, const char *template, struct buf *out);
/* Numbers for Prometheus, appended. */
void pool_metrics(const struct front *f, struct buf *out);

#endif
