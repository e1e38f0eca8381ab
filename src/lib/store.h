/* ward's own files: state directory, run records, the quarantine, and what a killed run left behind. */
#ifndef WARD_LIB_STORE_H
#define WARD_LIB_STORE_H

#include "lib/guard.h"

struct store_run;	/* an open, locked record */

/* Opens (and makes, 0700) the state directory: WARD_STATE_DIR, /var/lib/ward as root, $XDG_STATE_HOME/ward or
 * ~/.local/state/ward. Refuses one that another user owns or can write. Returns the descriptor. */
must_check int store_open(struct ward_err *e);
/* A fresh run id: time and randomness, sorts by time. */
void store_new_id(char *ret_id, size_t n);

/* Writes and locks the record of a run: its roots with baselines, its cgroup directories. One file, no fsync. */
must_check int store_begin(const char *run_id, const char *workspace, const struct guard_root *roots, size_t root_count,
			   const struct strv *cgroup_dirs, struct store_run **ret_run, struct ward_err *e);
/* Sweeps the roots into the run's quarantine. Appends to *moved. The sandbox must be dead. */
must_check int store_sweep(struct store_run *r, const struct guard_root *roots, size_t root_count,
			   struct strv *moved, struct ward_err *e);
/* Ends the run: the record goes, the directory stays only if it has a quarantine. Frees r; NULL is fine. */
void store_end(struct store_run *r);

/* Finishes what dead runs (their records are unlocked) left: cgroup directories, sweep, record. Returns how many. */
must_check int store_recover(struct ward_err *e);

#endif
