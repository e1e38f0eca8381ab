/* The parts of the watch: the processes of a sandbox as /proc shows them, and what its writable
 * trees hold. */
#ifndef WARD_LIMIT_WATCH_PARTS_H
#define WARD_LIMIT_WATCH_PARTS_H

#include <sched.h>
#include <time.h>

#include "limit/limits.h"

/* ---- processes: watch_proc.c ---- */

struct proc_info {
	pid_t pid, ppid;
	char state;
	bool inside; /* belongs to the sandbox */
	uint32_t threads;
	uint64_t cpu_ticks;   /* own, and of the children that it waited for */
	uint64_t start_ticks; /* since boot */
	uint64_t virtual_bytes, resident_pages;
};

struct proc_table {
	struct proc_info *items; /* by pid; owned */
	size_t len, cap;
};

/* Which processes are the sandbox's: all of its own /proc, or the descendants of root in
 * somebody's. */
struct proc_view {
	int fd;     /* borrowed */
	int own_fd; /* -1, or opened for this view */
	pid_t root; /* 0: all */
};

/* The line of /proc/PID/stat. The name in it is the sandbox's to choose. A pure function. */
bool proc_parse_stat(const char *text, struct proc_info *ret_info);
/* The number behind "key:" at the start of a line ("RssAnon:   12 kB" -> 12), 0 when there is
 * none. A pure function. */
uint64_t proc_parse_key(const char *text, const char *key);

/* Decides how to see the sandbox: through proc_fd if its process 1 is init_pid, else through
 * the caller's own /proc. */
must_check int proc_view_open(struct proc_view *v, int proc_fd, pid_t init_pid, struct ward_err *e);
void proc_view_close(struct proc_view *v);
/* Lists the processes; those of others are left out. Returns 0 or -errno. */
must_check int proc_list(const struct proc_view *v, struct proc_table *t);
/* Lists the processes and kills each. */
void proc_kill(const struct proc_view *v, struct proc_table *t);
/* Reads /proc/PID/file as text into out (cut at n - 1 bytes). Returns the length or -errno. */
must_check ssize_t proc_read(const struct proc_view *v, pid_t pid, const char *file, char *out,
			     size_t n);

/* What the processes hold at most: private, shared and swapped memory and page tables, and how
 * many slots their tables of descriptors have, from /proc/PID/status. */
uint64_t proc_memory_upper(const struct proc_view *v, const struct proc_table *t,
			   uint64_t *ret_slots);
/* The same with shared pages divided by their users. tmpfs_devs: devices whose pages are counted
 * elsewhere (tmpfs_bytes of them); looked into only when that decides whether the limit is passed.
 * only_files: the processes share nothing but those (an inner runtime's memory files), so that what
 * is mapped adds nothing. */
uint64_t proc_memory_exact(const struct proc_view *v, const struct proc_table *t,
			   const dev_t *tmpfs_devs, size_t dev_count, uint64_t tmpfs_bytes,
			   uint64_t limit, bool only_files);

/* What these processes have written to disk so far, as each one's counters say; those of processes
 * that ended are lost. */
uint64_t proc_written(const struct proc_view *v, const struct proc_table *t);

/* ---- what the kernel holds: watch_kernel.c ---- */

/* The text of /proc/PID/net/sockstat: how many sockets, and what they hold when full. A pure
 * function. */
uint64_t sock_parse_full(const char *sockstat, uint64_t *ret_count);
/* What the sockets could hold at most, and how many there are. nesting: the processes may have
 * several network namespaces. */
uint64_t sock_memory_upper(const struct proc_view *v, const struct proc_table *t, bool nesting,
			   uint64_t *ret_count);
/* What descriptors and pipes in so many slots of tables could hold at most. A pure function. */
uint64_t fd_memory_upper(uint64_t slots);
struct foreign_fds;
/* What all of them hold; of so many sockets those that cannot be asked count as full. False
 * when it took too long: then there is more. foreign: closes what is borrowed. */
must_check bool kernel_memory_exact(pid_t init_pid, uint64_t sockets, struct foreign_fds *foreign,
				    uint64_t *ret_bytes);

/* ---- what the kernel holds and no cgroup counts: watch_unaccounted.c ---- */

struct beyond_machine {
	uint64_t total_bytes, available_bytes;
	uint64_t kernel_bytes; /* that cannot be reclaimed */
	uint64_t file_bytes;   /* of file systems in memory */
	uint64_t locked_bytes; /* of those and others, locked */
	/* neither free nor on any account: pages that were cut off while a pipe or a socket had
	 * them */
	uint64_t lost_bytes;
};
enum beyond_alarm { BEYOND_QUIET, BEYOND_LOOK, BEYOND_MACHINE };

/* A line of /proc/PID/net/netlink: what waits in that socket. A pure function. */
uint64_t beyond_parse_netlink(const char *line);
/* /proc/meminfo. A pure function. */
bool beyond_parse_meminfo(const char *text, struct beyond_machine *ret_machine);
struct beyond_growth {
	uint64_t start_bytes, last_bytes; /* 0: not begun */
	uint64_t start_file_bytes, last_file_bytes, start_locked_bytes, start_lost_bytes;
	/* shared memory that no process has mapped, and lost pages, count, too: no cgroup does it
	 */
	bool files;
	uint64_t rise_bytes; /* every rise since the last acquittal */
};
/* What to make of the kernel's memory now: nothing, a close look, or the end (the machine itself is
 * at stake). nesting: it may have file systems that cannot be seen from outside. A pure function.
 */
enum beyond_alarm beyond_judge(struct beyond_growth *g, const struct beyond_machine *now,
			       uint64_t limit, bool nesting);
bool beyond_machine(struct beyond_machine *ret_machine);

#define BEYOND_NETWORKS_MAX 32

/* A process of each network namespace. */
struct beyond_networks {
	pid_t pids[BEYOND_NETWORKS_MAX];
	size_t count;
};
/* nesting: the sandbox may have several. */
void beyond_find_networks(const struct proc_view *v, const struct proc_table *t, bool nesting,
			  struct beyond_networks *ret_networks);
/* What waits in their netlink sockets. */
uint64_t beyond_netlink(const struct proc_view *v, const struct beyond_networks *networks);

/* A look at the processes in steps. Zeroed: none under way. */
struct beyond_look {
	bool under_way;
	/* also epoll sets, mappings and Landlock's rules, which a cgroup counts */
	bool all;
	uint64_t bytes, limit; /* found so far; it ends when there is more than the limit */
	unsigned rulesets;     /* of Landlock */
	/* mappings of shared memory, each once; more than that the machine's has not grown by */
	uint64_t shared_bytes, shared_max;
	dev_t shared_dev;
	void *shared; /* those that were counted: a tree; owned */
	/* by our own numbers; owned. At the end: those that had nothing */
	struct proc_table table;
	size_t next, light; /* the process to look at; how many had nothing */
	unsigned at_task;   /* where in it to go on */
	int at_fd;
	bool heavy; /* it has something */
	void *seen; /* open files that were counted: a tree; owned */
	size_t seen_count;
	uint64_t until_ms;
};
/* light: processes to leave out, or NULL. shared_max: what shared memory can hold at most. */
void beyond_start(struct beyond_look *k, pid_t init_pid, bool all, uint64_t limit,
		  uint64_t shared_max, const struct proc_table *light);
/* A line of /proc/PID/maps: how large the mapping is, if it is of shared memory on this device; 0:
 * it is not. A pure function. */
uint64_t beyond_parse_shared(const char *line, dev_t dev, uint64_t *ret_inode,
			     uint64_t *ret_offset);
/* Goes on for some time; true: it is over, k->bytes is what there is. */
must_check bool beyond_go_on(struct beyond_look *k, uint64_t budget_ms);
void beyond_end(struct beyond_look *k);

/* ---- memory files, where an inner runtime has some: watch_memfd.c ---- */

#define MEMFDS_MAX 64

struct memfd_place {
	pid_t pid;
	int fd;
	ino_t ino;
	bool seen; /* in the round that is under way */
};

struct memfds {
	bool on;
	dev_t dev;         /* of all memory files */
	uint64_t again_ms; /* when to look for others */
	pid_t at_pid;      /* where in it to go on; 0: at the beginning */
	long at_entry;     /* of that process's descriptors; 0: at the first */
	uint64_t cost_ms;  /* of the round so far */
	struct memfd_place items[MEMFDS_MAX];
	size_t len;
};

void memfds_open(struct memfds *m);
/* What the memory files of these processes hold, each counted once; 0 where it is not on. */
uint64_t memfds_bytes(struct memfds *m, const struct proc_view *v, const struct proc_table *t);

/* ---- trees: watch_disk.c ---- */

/* What a close look finds. */
struct disk_look {
	struct timespec since;         /* by the clock that stamps files */
	struct timespec deadline;      /* monotonic: what takes longer counts as hidden */
	uint64_t new_bytes, new_files; /* born since */
	uint64_t old_bytes;            /* of older files that were touched since */
	bool hidden;                   /* something could not be looked into */
	bool moving;                   /* the processes go on meanwhile */
	/* asked now and then: whether the look is to end at once; NULL: never */
	bool (*enough)(void *arg);
	void *enough_arg;
	bool ended;               /* it did */
	const dev_t *memory_devs; /* file systems that count as memory; borrowed */
	size_t memory_dev_count;
	/* and the one of memory files; disk_look_open() asks for it */
	struct memfds memory_files;
};

/* One file system with writable trees on it. */
struct disk {
	int fd;                              /* borrowed */
	uint64_t start_bytes, start_files;   /* used at the start */
	uint64_t credit_bytes, credit_files; /* growth that was found to be others' */
	uint64_t grown_bytes, grown_files;   /* beyond the credit */
	uint64_t last_bytes, last_files;     /* used at the last look */
	uint64_t gross_bytes, gross_files;   /* every rise from one look to the next */
	bool counts_files;
	uint64_t id[2]; /* of the file system */
};

/* Reads what is used now. *d is one file system's first tree. */
must_check int disk_start(struct disk *d, int fd, struct ward_err *e);
bool disk_same(const struct disk *a, const struct disk *b);
void disk_measure(struct disk *d);
/* Takes the growth beyond own_bytes and own_files as others' from now on. */
void disk_forgive(struct disk *d, uint64_t own_bytes, uint64_t own_files);

/* Adds every file beneath fd that was born or touched since. Never follows a link. */
void disk_look_tree(struct disk_look *k, int fd);
/* Adds the files without a name that the processes hold open or mapped; notes what may hide
 * more. */
void disk_look_open(struct disk_look *k, pid_t init_pid);

/* ---- how fast it grows: watch_pace.c ---- */

#define DISK_MARGIN (256ULL << 20)

struct disk_pace {
	uint64_t last_ms, last_gross;
	uint64_t rate; /* bytes in a millisecond, the highest of late */
};
/* The file systems have risen by so much until now, all rises added. */
void disk_pace_note(struct disk_pace *p, uint64_t gross_bytes, uint64_t now_ms);
/* How many milliseconds the next look may wait, when the trees have grown by grown_bytes. A pure
 * function. */
uint64_t disk_pace_wait(const struct disk_pace *p, uint64_t limit, uint64_t grown_bytes,
			unsigned cpus);

/* ---- holding back who fills the disk: watch_brake.c ---- */

/* Zeroed: nothing is held. */
struct disk_brake {
	bool on, hurries;
	size_t processor; /* the one that the sandbox has */
	cpu_set_t usual;  /* what ward-init has, and the others had */
	uint64_t pass_ms, until_ms;
	/* asked while threads are moved, which may take long: whether to end that at once, because
	 * the sandbox is about to be killed; NULL: never */
	bool (*enough)(void *arg);
	void *enough_arg;
};
/* Whether this process is to be scheduled before others. */
void brake_hurry(struct disk_brake *b, bool wanted);
/* Holds the threads of the sandbox on one processor while that is wanted and for a second more. */
void brake_tick(struct disk_brake *b, pid_t init_pid, bool wanted);

/* ---- what is too much: watch_excess.c ---- */

/* Removes files beneath the roots that were born since, the last change first, until so many bytes
 * are gone or none is left. Returns how many bytes that were. */
uint64_t disk_remove_excess(const int *root_fds, size_t count, const struct timespec *since,
			    uint64_t excess, size_t *ret_files);

/* ---- the disk limits: watch_trees.c ---- */

#define WATCH_TREES_MAX 64

/* The caller sets what is borrowed before tree_watch_start(). */
struct tree_watch {
	const struct proc_view *view; /* borrowed */
	struct proc_table *table;     /* borrowed; a look lists the processes again */
	const dev_t *memory_devs;     /* borrowed: see struct disk_look */
	size_t memory_dev_count;

	const struct plan *plan;
	pid_t init_pid;
	int fds[WATCH_TREES_MAX];  /* borrowed */
	bool own[WATCH_TREES_MAX]; /* ward's own */
	size_t count;
	struct disk disks[WATCH_TREES_MAX]; /* one per file system */
	size_t disk_count;
	struct timespec start;        /* of the clock that stamps files */
	struct timespec start_offset; /* that clock less the monotonic one */
	bool suspect;                 /* a close look is due */
	uint64_t prove_ms;            /* no proof by names before */
	/* until when it waits, because measuring is quicker; 0: it does not */
	uint64_t put_off_ms;
	uint64_t over_look_ms; /* no close look before, because they are too large */
	uint64_t rise_look_ms; /* or because they grew */
	bool over;             /* the last look was after a limit was passed */
	uint64_t look_bytes;   /* how far the trees had grown then */
	struct disk_pace pace;
	struct disk_brake brake;
	bool ended; /* the processes are dead */
	/* for those who ask: what the sandbox has on disk; when to count again */
	uint64_t own_bytes, own_ms;
	/* of the sandbox's own, by the last look that came to an end */
	uint64_t found_bytes;
	uint64_t found_written;            /* and what the processes had written by then */
	unsigned hidden_looks;             /* at moving processes, in a row */
	uint64_t gross_bytes, gross_files; /* all that the file systems rose by */
	uint64_t next_bytes, next_files;   /* at which the trees are looked at */
};

/* What the trees hold now is the start. */
must_check int tree_watch_start(struct tree_watch *t, const struct watch_config *c,
				struct ward_err *e);
/* One measurement: sets t->suspect, and u->hit[LIMIT_DISK] where the sandbox outruns the looks. */
void tree_watch_tick(struct tree_watch *t, struct usage *u);
/* Whether the trees grow past half of the margin by what the processes have written. */
must_check bool tree_watch_is_outrun(struct tree_watch *t, struct usage *u);
/* The close look: moving: the processes go on meanwhile; settled: every one was seen to stand
 * still. */
void tree_watch_confirm(struct tree_watch *t, struct usage *u, bool moving, bool settled);
/* For watch_is_urgent(), watch_wait_ms(), watch_prove_disk() and watch_own_disk() of limits.h. */
must_check bool tree_watch_is_urgent(const struct tree_watch *t, const struct usage *u);
must_check uint64_t tree_watch_wait_ms(const struct tree_watch *t, const struct usage *u);
must_check bool tree_watch_prove(struct tree_watch *t, struct usage *u);
must_check uint64_t tree_watch_own_bytes(struct tree_watch *t, struct usage *u);
/* At the end: counts what is left, and removes what is too much of ward's own trees. */
void tree_watch_remove_excess(struct tree_watch *t, struct usage *u);

#endif
