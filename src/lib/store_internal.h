/* Shared by the store's own files. */
#ifndef WARD_LIB_STORE_INTERNAL_H
#define WARD_LIB_STORE_INTERNAL_H

#include "lib/guard_sweep.h"
#include "lib/store.h"

#define STORE_LIVE "live"		/* one record a run */
#define STORE_QUARANTINE "quarantine"	/* one directory a run: index, and one directory a root */


/* The quarantine of one root of one run, made when the first thing comes. */
struct store_sink {
	int state_fd;		/* borrowed */
	const char *run_id, *workspace, *root;	/* borrowed */
	size_t root_index;
	int dir_fd, index_fd;	/* owned; -1: not made yet */
};

/* The sink's face for the sweep; borrows s. */
struct guard_sink store_sink_face(struct store_sink *s);
void store_sink_close(struct store_sink *s);
/* Sweeps one root; one that is gone is fine. news may be NULL. */
must_check int store_sweep_root(int state_fd, const char *run_id, const char *workspace, const struct guard_root *g,
				size_t index, struct strv *moved, struct guard_news *news, struct ward_err *e);

#endif
