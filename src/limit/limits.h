/* Holding limits: by cgroup v1, by cgroup v2, by rlimits, or by looking (watch). */
#ifndef WARD_LIMIT_LIMITS_H
#define WARD_LIMIT_LIMITS_H

#include "model/plan.h"

/* Decides what holds each limit of the plan: fills p->limits and p->watch from p's spec, facts,
 * ids and level. A limit that nothing can hold here is an error where the policy names it or
 * require.limits asks for it, else a note. */
must_check int limits_assign(struct plan *p, struct ward_err *e);
/* What limits_assign() asks the host beyond the facts, apart so that the decision can be tested. */
struct limits_host {
	bool cgroup_cpu;    /* the cgroup can hold the cpu limit too */
	bool counts_inodes; /* the workspace's file system says how many it has */
	const char *cgroup_why, *cgroup_remedy; /* for messages; NULL: not known */
};
must_check int limits_decide(struct plan *p, const struct limits_host *h, struct ward_err *e);

struct limits_rlimit {
	int resource;
	uint64_t soft, hard;
};
#define LIMITS_RLIMITS 16
/* The rlimits of the sandbox, never above the caller's own hard ones; RLIMIT_NPROC must be set
 * inside the new user namespace. Returns how many were written to out (at most cap;
 * LIMITS_RLIMITS is enough). */
size_t limits_rlimits(const struct plan *p, struct limits_rlimit *out, size_t cap);
/* The longest file that a process may write where the watch holds the disk limit: one call could
 * pass that before it looks. 0: any. */
uint64_t limits_file_bytes(const struct plan *p);

/* The most processes and threads that the host's kernel lets the sandbox have: in an inner runtime
 * that holds the limit itself, its own come on top. */
uint64_t limits_host_pids(const struct plan *p);

/* How far beyond the disk limit a sandbox may come before it is stopped: a look finds what was
 * written before it. */
uint64_t limits_disk_margin(uint64_t limit);

/* Whether usage calls for the end of the sandbox now, and by which limit. A refused fork alone
 * does not (the command sees EAGAIN and may cope), a storm of them does. */
bool limits_stop(const struct plan *p, const struct usage *u, enum limit *ret_limit);

/* What makes many refused forks a storm: very many within some seconds, or the limit reached
 * for seconds on end. */
struct pids_storm {
	uint64_t last_ms, at_limit_ms;
	uint64_t window_ms, window_refused;
};
/* One look: whether the limit is reached, and how many forks were refused so far. Returns
 * whether it is a storm now. A pure function of its arguments. */
bool limits_pids_storm(struct pids_storm *s, bool at_limit, uint64_t refused, uint64_t now_ms);

struct cgroup; /* the directories of one run, in v1 one per controller */

/* What cgroup_probe() found, in words for `ward doctor`. */
struct cgroup_info {
	enum cgroup_kind kind;
	bool cpu, freezer;
	char why[256]; /* kind is none: the reason */
	char remedy[256];
};

/* Which kind can hold limits for this caller: v2 where a child directory can be made and memory
 * and pids be enabled in it, v1 where the caller may create in the controllers' hierarchies.
 * Changes nothing. */
enum cgroup_kind cgroup_probe(void);
void cgroup_probe_info(struct cgroup_info *info);
/* Makes the run's directories and writes the plan's limits that are HELD_CGROUP*. */
must_check int cgroup_create(const struct plan *p, struct cgroup **ret_cgroup, struct ward_err *e);
/* v2, before there is a plan: makes a directory without limits that a child can be cloned into at
 * once, where that takes no more than the directory. NULL: not here. `ward recover` finds it if the
 * caller is killed. */
struct cgroup *cgroup_begin(void);
/* Whether it can be the plan's. If so, cgroup_limit() writes the limits, which must be done before
 * anything of the sandbox's is executed. */
bool cgroup_suits(const struct cgroup *c, const struct plan *p);
must_check int cgroup_limit(struct cgroup *c, const struct plan *p, struct ward_err *e);
/* v2: directory for CLONE_INTO_CGROUP, borrowed; v1, and v2 where clone3 cannot be called: -1, use
 * cgroup_self_fds() or cgroup_attach(), and unshare the cgroup namespace after that: its root is
 * where its maker is (CLONE_INTO_CGROUP takes care of that by itself). */
int cgroup_clone_fd(const struct cgroup *c);
/* v1: descriptors into each of which the child writes the one byte "0" to put itself there
 * while it has one thread: 50 us together, where cgroup_attach() after idling waits 7-14 ms for
 * every processor. Borrowed, close-on-exec. Returns how many, at most cap (4 is enough); 0 where
 * cgroup_clone_fd() is the way. */
size_t cgroup_self_fds(const struct cgroup *c, int *fds, size_t cap);
/* Puts a process into the directories; nothing to do on v2. */
must_check int cgroup_attach(struct cgroup *c, pid_t pid, struct ward_err *e);
/* Stops or continues every process; -ENOTSUP where it cannot. */
must_check int cgroup_freeze(struct cgroup *c, bool frozen);
/* The same as a stop that may take long: a process stands still when the call ends that it is in.
 * enough: asked each millisecond; true gives up with -EBUSY, and the caller continues them. */
must_check int cgroup_freeze_unless(struct cgroup *c, bool (*enough)(void *arg), void *arg);
/* Kills every process; -EBUSY when some are still there after a while. */
must_check int cgroup_kill(struct cgroup *c);
/* Adds what the kernel counted. */
void cgroup_usage(struct cgroup *c, struct usage *u);
/* Readable when the memory limit was hit (an OOM kill): call cgroup_event_read() then. Made at
 * the first call; borrowed; -1: none, look with cgroup_usage() now and then. Call it after the
 * start, off the fast path. */
int cgroup_event_fd(struct cgroup *c);
/* Empties the event descriptor and adds what the kernel counted. */
void cgroup_event_read(struct cgroup *c, struct usage *u);
/* Appends every directory that cgroup_create() could make for the plan, so that they are on
 * record before they exist. */
void cgroup_planned_dirs(const struct plan *p, struct strv *dirs);
/* Appends the absolute paths of the directories, also of those that are made only when needed,
 * for the run's record. */
void cgroup_dirs(const struct cgroup *c, struct strv *dirs);
/* Removes the directories (they must be empty of processes) and frees c; NULL is fine. */
void cgroup_destroy(struct cgroup *c);
/* Removes directories by path after checking that they are ward's own names in a cgroup file
 * system; kills what is left inside first. */
void cgroup_remove_dirs(const struct strv *dirs);
/* Opens a directory of a run's record after the same checks. Returns the descriptor or -errno. */
must_check int cgroup_open_named(const char *path);
/* Whether the directory is where ward itself went to make room: never stopped, never killed. */
bool cgroup_is_leaf(const char *path);
/* The emergency stop, from outside of the supervisor: no process beneath the directory executes
 * another instruction of its own. v2: by the freezer; v1: each has a SIGKILL pending, and nothing
 * can be started. The end of the sandbox must follow. Returns how many processes there were, at
 * least 1 for v2; 0: none; -errno. */
must_check ssize_t cgroup_halt(int dir_fd);
/* Kills what is beneath the directory, frozen or not. Does not wait. */
void cgroup_end(int dir_fd);
/* Removes the caller's directories that cgroup_begin() made for a start that was killed before it
 * was on record. Returns how many there were. */
unsigned cgroup_remove_orphans(void);

struct watch; /* the looking kind */

/* proc_fd: the sandbox's own /proc; init_pid: ward-init as the caller's /proc names it;
 * tmpfs_fds: file systems whose use counts as memory; disk_fds: the roots of the writable trees
 * as the host sees them. All borrowed for the life of w. */
struct watch_config {
	const struct plan *plan;
	pid_t init_pid;
	int proc_fd;
	const int *tmpfs_fds;
	size_t tmpfs_count;
	const int *disk_fds;
	/* which of them are ward's own: what is too much is removed there. Copied */
	const bool *disk_own;
	size_t disk_count;
	bool own_network; /* so that its sockets can be told from others' */
};
#define WATCH_TICK_MS 20
/* Begins to watch: what the trees hold now is the start. Call it before the command runs. */
must_check int watch_create(const struct watch_config *c, struct watch **ret_watch,
			    struct ward_err *e);
/* How long the next tick may wait at most, so that the disk limit holds between the two. */
uint64_t watch_wait_ms(const struct watch *w, const struct usage *u);
/* After a tick that found something: whether the disk fills so fast that the processes must be
 * stopped by what is quickest, though they may notice. */
bool watch_is_urgent(const struct watch *w, const struct usage *u);
/* Counts processor time, memory and processes now, for somebody who looks. */
void watch_look(struct watch *w, struct usage *u);
/* One look (each 20 ms, or as watch_wait_ms() says): updates *u. Returns true when a limit seems to
 * be passed: then stop every process, call watch_confirm(), and kill the sandbox if limits_stop()
 * says so, else let it go on. */
bool watch_tick(struct watch *w, struct usage *u);
/* Before anything is stopped, which may take long: whether files with a name are proof enough that
 * a disk limit was passed; *u says so then. */
bool watch_prove_disk(struct watch *w, struct usage *u);
/* Whether the sandbox has filled the disk beyond its limit while it is being stopped; then the
 * limit is hit. Measures only, and waits for nothing. */
bool watch_fills_disk(struct watch *w, struct usage *u);
/* Kills every process of the sandbox by itself: with their first one alone, the kernel would let
 * the others write on until that one has got a processor. */
void watch_kill(struct watch *w);
/* How the processes stand still: a freezer says when it is done, after signals each shows it. */
enum watch_still { WATCH_MOVING, WATCH_SIGNALLED, WATCH_FROZEN };
/* The close look, with every process stopped: sets u->hit[] where the sandbox itself passed a
 * limit, and forgives what others did to the same file system. While they move, nothing is
 * forgiven, and there is another look soon. */
void watch_confirm(struct watch *w, struct usage *u, enum watch_still still);
/* After a tick: whether the processes should stand still until the next one, so that the cpu
 * limit holds. False where the limit is off or held by a cgroup. */
bool watch_wants_pause(const struct watch *w);
/* What the sandbox has on disk of its own, counted file by file: others change how full the file
 * system is. Costs a walk of its trees, at most each twentieth of the time. */
uint64_t watch_own_disk(struct watch *w, struct usage *u);
/* Every process is dead: one last look. limited: the run was ended by a limit already. Where the
 * disk limit was passed it counts what is left, and removes what is too much of the trees that are
 * ward's own. */
void watch_end(struct watch *w, struct usage *u, enum watch_still still, bool limited);
void watch_destroy(struct watch *w);

#endif
