/* Holding limits: by cgroup v1, by cgroup v2, or by looking (watch). */
#ifndef WARD_LIB_LIMITS_H
#define WARD_LIB_LIMITS_H

#include "lib/plan.h"

struct usage {
	uint64_t memory_bytes, memory_peak_bytes;
	uint64_t cpu_ms;
	uint64_t pids;
	uint64_t disk_bytes, inodes;
	bool hit[LIMITS];	/* the limit was reached; OOM kills and failed forks count */
};

struct cgroup;	/* the directories of one run, in v1 one per controller */

/* Which kind can hold limits for this caller: v2 where a child directory can be made and memory and pids be enabled in it, v1 where
 * the caller may create in the controllers' hierarchies. */
enum cgroup_kind cgroup_probe(void);
/* Makes the run's directories and writes the plan's limits that are HELD_CGROUP*. */
must_check int cgroup_create(const struct plan *p, struct cgroup **ret_cgroup, struct ward_err *e);
/* v2: directory for CLONE_INTO_CGROUP, borrowed; v1: -1, use cgroup_attach(). */
int cgroup_clone_fd(const struct cgroup *c);
must_check int cgroup_attach(struct cgroup *c, pid_t pid, struct ward_err *e);
/* Stops or continues every process; -ENOTSUP where it cannot. */
must_check int cgroup_freeze(struct cgroup *c, bool frozen);
must_check int cgroup_kill(struct cgroup *c);
/* Adds what the kernel counted. */
void cgroup_usage(struct cgroup *c, struct usage *u);
/* Appends the absolute paths of the directories, for the run's record. */
void cgroup_dirs(const struct cgroup *c, struct strv *dirs);
/* Removes the directories (they must be empty of processes) and frees c; NULL is fine. */
void cgroup_destroy(struct cgroup *c);
/* Removes directories by path after checking that they are ward's own names below a cgroup mount; kills what is left inside first. */
void cgroup_remove_dirs(const struct strv *dirs);

struct watch;	/* the looking kind */

/* proc_fd: the sandbox's own /proc; init_pid: ward-init as the caller's /proc names it; tree_fds: file systems whose
 * use counts as memory (tmpfs) and as disk (workspace), all borrowed for the life of w. */
struct watch_config {
	const struct plan *plan;
	pid_t init_pid;
	int proc_fd;
	const int *tmpfs_fds;
	size_t tmpfs_count;
	const int *disk_fds;
	size_t disk_count;
};
must_check int watch_create(const struct watch_config *c, struct watch **ret_watch, struct ward_err *e);
/* One look (each 20 ms): updates *u; u->hit[] is set where a limit is passed. */
void watch_tick(struct watch *w, struct usage *u);
void watch_destroy(struct watch *w);

#endif
