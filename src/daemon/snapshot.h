/*
 * Snapshots: the files of a sandbox at one moment, in a file of the keeper's, and a row of the
 * registry. A fork is a hidden snapshot, and sandboxes that begin with it; it is removed
 * when all of them have begun.
 */
#ifndef WARD_DAEMON_SNAPSHOT_H
#define WARD_DAEMON_SNAPSHOT_H

#include "daemon/front.h"

#define SNAPSHOTS_OF_OWNER 256
#define SNAPSHOTS_MOST 8192 /* of all owners: fewer ids than a text of the keeper has room for */
#define FORKS_MOST 20       /* of one request, as at E2B */

enum snapshot_state { SNAPSHOT_QUEUED, SNAPSHOT_SAVING, SNAPSHOT_READY };

/* Called with the result. */
typedef void snapshot_done(struct front *f, struct snapshot *n, int result, const char *text);

struct snapshot {
	struct snapshot *next;
	char id[SANDBOX_ID + 1];
	char owner[OWNER_MAX + 1];
	char template[TEMPLATE_MAX + 1];
	char source[SANDBOX_ID + 1];
	char name[TEMPLATE_MAX + 1]; /* "": none */
	enum snapshot_state state;
	int64_t made_ms;
	uint64_t bytes; /* until it is ready: what is set aside for it */
	bool no_network, missing;
	uint32_t listed_after; /* lists that were asked for later know it */
	struct buf config;
	struct conn *conn; /* who asked; NULL: it has gone */
	snapshot_done *done;
	struct fork *fork; /* NULL: it is one that its owner sees */
};

/* Begins to make one of a running sandbox. NULL: *ret_status and *ret_why say why not. */
struct snapshot *snapshot_make(struct front *f, struct sandbox *s, const char *name, struct conn *c,
			       snapshot_done *done, unsigned *ret_status, const char **ret_why);
/* Puts it at the end of the list: those in front are begun first. */
void snapshot_add(struct front *f, struct snapshot *n);
/* What the owner calls so: its id, its name, or the name with ":latest". NULL: there is none. */
struct snapshot *snapshot_find(const struct front *f, const char *owner, const char *text);
/* Removes it for good. */
void snapshot_drop(struct front *f, struct snapshot *n);
/* Begins what is queued, and finds what the keeper has and the registry lacks, or the reverse. */
void snapshot_tick(struct front *f);

/* The status of an answer that says why there is none. */
unsigned snapshot_status(int result);

/* -- fork.c */

/* Forks a running sandbox of the connection's; answers by and by. */
void fork_begin(struct conn *c, struct sandbox *s, unsigned count, int64_t timeout_s);
/* One of a fork has started, or has not. */
void fork_started(struct front *f, struct fork *k, const struct sandbox *s, int result,
		  const char *text);
void fork_forget(struct front *f, const struct conn *c);

/* -- registry_snapshot.c */

must_check int registry_load_snapshots(struct front *f, struct ward_err *e);
must_check int registry_put_snapshot(struct front *f, const struct snapshot *n);
void registry_drop_snapshot(struct front *f, const char *id);

#endif
