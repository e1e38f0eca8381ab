/* ward's own files: state directory, run records, the quarantine, and what a killed run left
 * behind. */
#ifndef WARD_STATE_STORE_H
#define WARD_STATE_STORE_H

#include <sys/stat.h>

#include "guard/guard.h"
#include "guard/guard_sweep.h"
#include "host/state_dir.h"
#include "limit/limits.h"

struct store_run; /* an open, locked record */

/* Opens (and makes, 0700) the state directory: WARD_STATE_DIR, /var/lib/ward as root,
 * $XDG_STATE_HOME/ward or ~/.local/state/ward. Refuses one that another user owns or can write.
 * Returns the descriptor. */
must_check int store_open(struct ward_err *e);
/* A fresh run id: the time to the microsecond, and randomness. Ids sort by time. */
void store_new_id(char *ret_id, size_t n);
/* When an id was made, in ns of the real-time clock; ids that differ never have the same time. 0:
 * it is no id. Pure. */
uint64_t store_id_ns(const char *id);

/* Writes and locks the record of a run: its roots with baselines, its cgroup directories. One file,
 * no fsync. Refuses a state directory that lies in a writable root, and one of which a part is such
 * a root or among the files that the sandbox may write (NULL: none). */
must_check int store_begin(const char *run_id, const char *workspace,
			   const struct guard_root *roots, size_t root_count,
			   const struct strv *files, const struct strv *cgroup_dirs,
			   struct store_run **ret_run, struct ward_err *e);
/* Adds the sandbox's first process to the record, so that the process that finishes a killed run
 * can be sure that it is dead. */
must_check int store_started(struct store_run *r, pid_t init_pid, int pid_fd, struct ward_err *e);
/* Refuses the run while `ward panic` is in force (state/panic.h). To be asked when the run is on
 * record with its first process, and before its command runs: a panic sets its mark first and reads
 * the records then, so it finds the run, or the run finds the mark. One fstat(). */
must_check int store_check_panic(const struct store_run *r, struct ward_err *e);
/* Adds what the roots have lost since to the record, as far as it is not there yet. */
must_check int store_lost(struct store_run *r, struct guard_root *roots, size_t root_count);
/* Sweeps the roots into the run's quarantine. Appends to *moved and *news (NULL: not wanted). The
 * sandbox must be dead. After a failure the record outlives store_end(), and the next
 * recover_runs() tries again. */
must_check int store_sweep(struct store_run *r, const struct guard_root *roots, size_t root_count,
			   struct strv *moved, struct guard_news *news, struct ward_err *e);
/* Ends the run: the record goes, only a quarantine stays. Frees r; NULL is fine. */
void store_end(struct store_run *r);

/* Whether a run of that id has a record: it goes on, or was killed and is not finished yet. */
bool store_has_record(const char *run_id);
/* The records of all runs that are not finished, at one moment. */
struct store_live;
/* NULL: there are none. */
must_check int store_live_read(struct store_live **ret_live, struct ward_err *e);
void store_live_free(struct store_live *l);
/* Applies guard_taint() for each of their trees. */
must_check int store_live_taint(const struct store_live *l, struct guard_root *g,
				struct ward_err *e);
/* Whether a run may have begun and ended between the two moments, so that neither shows it. */
bool store_live_missed(const struct store_live *before, const struct store_live *after);

/* When a process was started, in ticks since boot: no other one of its number has the same. 0:
 * there is none. */
uint64_t store_process_start(pid_t pid);

/* One thing in the quarantine. */
struct store_item {
	char *run;       /* id of the run that it was moved after */
	char *workspace; /* of that run */
	char *root;      /* the tree it was in, absolute */
	char *path;      /* where it was, relative to root */
	char *stored;    /* where it is, relative to the run's quarantine */
	char *why;
};

struct store_items {
	struct store_item *items;
	size_t len;
};

/* Lists what is in the quarantine, oldest run first. The caller frees with store_items_clear(). */
must_check int store_list(struct store_items *ret_items, struct ward_err *e);
void store_items_clear(struct store_items *v);
/* Moves an item back to where it was, or beneath the directory `to` (NULL: where it was). Nothing
 * is overwritten, no link is followed, and `to` is refused where the thing would be another
 * protected thing than it was (guard_gate.h). *ret_where is where it lies now; the caller frees. */
must_check int store_restore(const struct store_item *item, const char *to, char **ret_where,
			     struct ward_err *e);

/* Opens a quarantined thing with O_PATH, or what lies at `below` ("": itself) beneath it; *ret_st
 * says what it is. No link is followed. Returns the descriptor. */
must_check int store_open_item(const struct store_item *item, const char *below,
			       struct stat *ret_st, struct ward_err *e);

/* Opens the directory dir_fd/name of the state directory, making it where it is missing. */
must_check int store_open_dir(int dir_fd, const char *name, struct ward_err *e);

#endif
