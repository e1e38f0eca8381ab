/* Shared by the store's own files. */
#ifndef WARD_STATE_STORE_INTERNAL_H
#define WARD_STATE_STORE_INTERNAL_H

#include "guard/guard_sweep.h"
#include "state/store.h"

/* The mark of a panic: a bit of the state directory's mode. It needs no space on a disk, it stays
 * over a reboot, and one fstat() of a directory that is open anyway finds it. */
#define STORE_PANIC S_ISVTX
#define STORE_LIVE "live"             /* one record a run */
#define STORE_QUARANTINE "quarantine" /* one directory a run: index, and one directory a root */

/* A record that was read again. */
struct dead_run {
	char id[32]; /* "": the record's name is the run's */
	char *workspace;
	struct strv cgroups;
	struct guard_root *roots;
	size_t root_count;
	pid_t init_pid;
	uint64_t init_start;
	bool numbered; /* it is not when that began, but its number */
	char init_boot[64];
	bool complete;
};

/* Reads the record that is open as fd into *d, which is empty; dead_run_clear() in any case. */
must_check int store_read_record(int fd, struct dead_run *d);
/* The same without the trees, which may be large: id, workspace, cgroups, first process (0: not
 * started yet). -ENODATA: no run uses the file now. */
must_check int store_read_brief(int fd, struct dead_run *d);
void dead_run_clear(struct dead_run *d);

/* Records lie in files that are used again: whether a name is one of those, and of those that are
 * kept when they are empty. */
bool store_is_slot(const char *name);
bool store_is_slot_kept(const char *name);
/* Gives the file back that a record was in. */
int store_leave_slot(int live_fd, int record_fd, const char *name);
/* What no other process of this boot has; 0: the kernel (before Linux 6.9) has no such number. */
uint64_t store_process_number(int pid_fd);

/* The quarantine of one root of one run, made when the first thing comes. */
struct store_sink {
	int state_fd;                          /* borrowed */
	const char *run_id, *workspace, *root; /* borrowed */
	size_t root_index;
	uint64_t since_ns;    /* when the run's scan of the root began */
	int dir_fd, index_fd; /* owned; -1: not made yet */
};

/* The sink's face for the sweep; borrows s. */
struct guard_sink store_sink_face(struct store_sink *s);
void store_sink_close(struct store_sink *s);
/* Sweeps one root; one that is gone is fine. news may be NULL. */
must_check int store_sweep_root(int state_fd, const char *run_id, const char *workspace,
				const struct guard_root *g, size_t index, struct strv *moved,
				struct guard_news *news, struct ward_err *e);

#endif
