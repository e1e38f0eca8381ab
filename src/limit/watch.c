/*
 * Limits held by looking, where no cgroup holds them, and the disk limits everywhere. In: a
 * plan, ward-init's pid, the sandbox's /proc, its tmpfs mounts and writable trees. Out:
 * numbers, suspicion, and after a close look a verdict. Runs in the supervisor's loop, one
 * watch_tick() each 20 ms; reads only, changes nothing.
 *
 * What it costs: a statfs per file system each tick (1 us), and a list of the processes (7 us
 * each). The list is read as often as it can matter: memory that is far from its limit cannot
 * get there within the next ticks, whatever the sandbox does (FILL_RATE per processor); the
 * time that one list took is waited four times before the next, so that thousands of processes
 * cost the supervisor a fifth of a processor at most.
 *
 * Memory: see watch_proc.c. A suspicion is settled by shared pages divided by their users, and
 * must be found twice in a row, for a process between vfork and exec counts its parent's memory
 * a second time; when the machine itself is nearly out of memory once is enough. After an
 * acquittal the next close look waits, a tenth of the time is spent on them at most. What
 * sockets and pipes hold is on no process's account: see watch_kernel.c.
 *
 * Processes: RLIMIT_NPROC holds them at one more than the limit and reports nothing (limits.c); the
 * limit found passed is a hit, and for seconds on end a fork bomb. Where it does not bind (uid 0 of
 * the host) more processes than allowed are the end.
 *
 * Cpu: processor time is a budget that fills at the rate of the limit; when it is used up the
 * processes are to stand still until it is positive again. Time of children that no process waited
 * for is lost to the counters: while new processes appear, those seen running count as well.
 *
 * Disk: see watch_trees.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>

#include "base/io.h"
#include "host/foreign_fds.h"
#include "limit/watch_parts.h"
#include "model/inner.h"

#define MAX_TMPFS 16
#define FILL_RATE (8u << 20) /* bytes that one processor can fill in a millisecond, generously */
#define SCAN_MAX_MS 200
#define SCAN_IDLE_MS 1000  /* when only usage is wanted */
#define LOOK_PAUSE_MS 1000 /* most that an acquittal delays the next close look */
#define CPU_BURST_MS 100
#define PAGE 4096
/* names, inodes and attributes of a tmpfs: memory that is in none of its blocks */
#define TMPFS_INODE 1024
#define BEYOND_MS 200
#define ROUND_MS 2000
#define LOOK_MS 100 /* a look that is not older is new enough */
#define STEP_MS 10  /* of a look at the processes each tick */
#define CONFIRM_MS 5000
#define MAX_SLOTS 65536  /* of descriptors, where the plan has no limit */
#define SETTLE_TRIES 250 /* of 2 ms */
#define SCAN_LATE_MS 500
#define LONG_MS 5     /* after which the disk is measured again within a tick */
#define QUICK_TRIES 5 /* before a look at what is there while some still move */

struct watch {
	const struct plan *plan;
	struct proc_view view;
	struct proc_table table;
	int tmpfs_fds[MAX_TMPFS];        /* borrowed */
	dev_t tmpfs_devs[MAX_TMPFS + 1]; /* behind the last: of memory files */
	size_t tmpfs_count;
	struct memfds memfds;
	struct tree_watch trees;

	uint64_t last_ms, scan_ms; /* the last scan, the next one */
	uint64_t look_ms;          /* no close look at memory before */
	uint64_t ticks_per_second;
	uint64_t cpu_ms; /* at the last scan */
	int64_t cpu_budget_us;
	uint64_t scan_ticks; /* when that was, since boot */
	bool pause;
	pid_t init_pid;
	uint64_t memory_upper;
	uint64_t sock_count; /* at the last scan */
	bool own_network;    /* so that its sockets can be told from others' */
	unsigned memory_strikes;
	bool memory_suspect;
	struct beyond_growth kernel;     /* of the machine's */
	uint64_t beyond_ms;              /* when to look at the machine again */
	struct beyond_networks networks; /* at the last scan */
	uint64_t netlink_ms;             /* when to look at their sockets */
	/* where a cgroup holds the memory limit: what waits beside it */
	uint64_t netlink_bytes;
	/* and at the processes, whatever the machine says; 0: not begun */
	uint64_t round_ms;
	uint64_t alarm_ms; /* and when it gives the alarm */
	struct beyond_look round;
	uint64_t round_rise, round_cost_ms; /* the machine's when it began; what it took */
	bool beyond_alarm, beyond_suspect;
	bool at_pids_limit; /* at the last scan */
	struct pids_storm storm;
	struct foreign_fds *foreign; /* owned; NULL: not needed yet */
};

static bool watched(const struct watch *w, enum limit l)
{
	return w->plan->limits[l].held_by == HELD_WATCH && w->plan->limits[l].value != POLICY_NONE;
}

static uint64_t limit_of(const struct watch *w, enum limit l)
{
	return w->plan->limits[l].value;
}

static bool in_cgroup(const struct watch *w)
{
	return w->plan->limits[LIMIT_MEMORY].held_by == HELD_CGROUP1 ||
	       w->plan->limits[LIMIT_MEMORY].held_by == HELD_CGROUP2;
}

/* ---- creating ---- */

static int add_tmpfs(struct watch *w, const struct watch_config *c, struct ward_err *e)
{
	if (c->tmpfs_count > MAX_TMPFS)
		return ward_fail(e, E2BIG, "%zu tmpfs mounts, but ward can watch at most %d",
				 c->tmpfs_count, MAX_TMPFS);
	for (size_t i = 0; i < c->tmpfs_count; i++) {
		struct stat st;
		bool known = false;

		if (fstat(c->tmpfs_fds[i], &st) < 0)
			return ward_fail_errno(e, "cannot access a tmpfs of the sandbox");
		for (size_t k = 0; k < w->tmpfs_count; k++)
			known |= w->tmpfs_devs[k] == st.st_dev;
		if (known)
			continue;
		w->tmpfs_fds[w->tmpfs_count] = c->tmpfs_fds[i];
		w->tmpfs_devs[w->tmpfs_count++] = st.st_dev;
	}
	if (w->plan->spec->inner && w->plan->spec->inner->memory_files)
		memfds_open(&w->memfds);
	w->trees.memory_devs = w->tmpfs_devs;
	w->trees.memory_dev_count = w->tmpfs_count;
	return 0;
}

int watch_create(const struct watch_config *c, struct watch **ret_watch, struct ward_err *e)
{
	struct watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return ward_fail(e, ENOMEM, "out of memory");
	w->plan = c->plan;
	w->init_pid = c->init_pid;
	w->view.own_fd = -1;
	w->ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	w->last_ms = w->scan_ms = io_now_ms();
	w->kernel.files =
		!in_cgroup(w) && !(c->plan->spec->inner && c->plan->spec->inner->memory_files);
	w->own_network = c->own_network;
	w->trees.view = &w->view;
	w->trees.table = &w->table;
	r = proc_view_open(&w->view, c->proc_fd, c->init_pid, e);
	if (r == 0)
		r = add_tmpfs(w, c, e);
	if (r == 0)
		r = tree_watch_start(&w->trees, c, e);
	if (r < 0) {
		watch_destroy(w);
		return ward_wrap(e, "starting to watch the limits");
	}
	*ret_watch = w;
	return 0;
}

void watch_destroy(struct watch *w)
{
	if (!w)
		return;
	proc_view_close(&w->view);
	beyond_end(&w->round);
	foreign_fds_end(w->foreign);
	free(w->table.items);
	free(w);
}

/* ---- each tick ---- */

static uint64_t tmpfs_bytes(struct watch *w)
{
	uint64_t sum = memfds_bytes(&w->memfds, &w->view, &w->table);
	struct statfs s;

	for (size_t i = 0; i < w->tmpfs_count; i++)
		if (fstatfs(w->tmpfs_fds[i], &s) == 0)
			sum += (s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize +
			       (s.f_files - s.f_ffree) * TMPFS_INODE;
	return sum;
}

/* What the processes could hold, from the list alone. */
static uint64_t memory_bound(const struct watch *w)
{
	uint64_t sum = 0, slots = limit_of(w, LIMIT_OPEN_FILES);

	if (slots > MAX_SLOTS)
		slots = MAX_SLOTS;
	for (size_t i = 0; i < w->table.len; i++) {
		const struct proc_info *p = &w->table.items[i];

		sum += p->resident_pages * PAGE + p->virtual_bytes / 512 +
		       fd_memory_upper(slots * p->threads);
	}
	return sum;
}

static void scan_memory(struct watch *w, struct usage *u)
{
	uint64_t files = tmpfs_bytes(w), limit = limit_of(w, LIMIT_MEMORY), slots, hidden = 0;

	if (w->own_network)
		hidden = sock_memory_upper(&w->view, &w->table, w->plan->spec->policy.proc_nesting,
					   &w->sock_count);
	w->memory_upper = memory_bound(w) + files + hidden;
	if (w->memory_upper > limit / 4 * 3 || w->memory_upper > u->memory_peak_bytes) {
		u->memory_bytes = proc_memory_upper(&w->view, &w->table, &slots) + files;
		w->memory_upper = u->memory_bytes + hidden + fd_memory_upper(slots);
	}
	w->memory_suspect = watched(w, LIMIT_MEMORY) && w->memory_upper > limit;
	if (!w->memory_suspect)
		w->memory_strikes = 0;
	if (u->memory_bytes > u->memory_peak_bytes && !w->memory_suspect)
		u->memory_peak_bytes = u->memory_bytes;
}

static void scan_pids(struct watch *w, struct usage *u)
{
	const struct plan_limit *l = &w->plan->limits[LIMIT_PIDS];
	uint64_t most = limits_host_pids(w->plan);

	u->pids = 0;
	for (size_t i = 0; i < w->table.len; i++)
		u->pids += w->table.items[i].threads;
	if (l->value == POLICY_NONE || (l->held_by != HELD_RLIMIT && l->held_by != HELD_WATCH))
		return;
	if (u->pids > most)
		u->hit[LIMIT_PIDS] = true;
	if (l->held_by == HELD_RLIMIT)
		u->pids_storm |= limits_pids_storm(&w->storm, u->pids > most, 0, io_now_ms());
}

/* How many processes run now, and whether any is new since the last scan. */
static bool count_running(struct watch *w, uint64_t *ret_running)
{
	struct timespec now;
	bool any_new = false;

	*ret_running = 0;
	for (size_t i = 0; i < w->table.len; i++) {
		*ret_running += w->table.items[i].state == 'R';
		any_new |= w->table.items[i].start_ticks >= w->scan_ticks;
	}
	clock_gettime(CLOCK_BOOTTIME, &now);
	w->scan_ticks = (uint64_t)now.tv_sec * w->ticks_per_second +
			(uint64_t)now.tv_nsec / (1000000000 / w->ticks_per_second);
	return any_new;
}

static void scan_cpu(struct watch *w, struct usage *u, uint64_t elapsed_ms)
{
	uint64_t ticks = 0, cpu_ms, used_ms, running, limit = limit_of(w, LIMIT_CPU);
	int64_t burst;
	bool any_new;

	for (size_t i = 0; i < w->table.len; i++)
		ticks += w->table.items[i].cpu_ticks;
	cpu_ms = ticks * 1000 / w->ticks_per_second;
	used_ms = cpu_ms > w->cpu_ms ? cpu_ms - w->cpu_ms : 0;
	w->cpu_ms = cpu_ms;
	if (cpu_ms > u->cpu_ms)
		u->cpu_ms = cpu_ms;
	any_new = count_running(w, &running);
	if (!watched(w, LIMIT_CPU))
		return;
	if (running > w->plan->facts.cpus)
		running = w->plan->facts.cpus;
	if (any_new && !w->pause && running * elapsed_ms > used_ms)
		used_ms = running * elapsed_ms;
	burst = (int64_t)(limit * CPU_BURST_MS);
	w->cpu_budget_us += (int64_t)(elapsed_ms * limit) - (int64_t)(used_ms * 1000);
	if (w->cpu_budget_us > burst)
		w->cpu_budget_us = burst;
	if (w->pause)
		u->cpu_throttled_ms += elapsed_ms;
	/* once stopped, stand still until half of the burst is there again: fewer switches */
	w->pause = w->pause ? w->cpu_budget_us < burst / 2 : w->cpu_budget_us < 0;
}

/* How long until a list of the processes can matter again. */
static uint64_t next_scan(const struct watch *w, uint64_t cost_ms)
{
	uint64_t wait = SCAN_IDLE_MS;

	if (watched(w, LIMIT_MEMORY)) {
		uint64_t limit = limit_of(w, LIMIT_MEMORY);
		uint64_t room = limit > w->memory_upper ? limit - w->memory_upper : 0;
		uint64_t ms = room / FILL_RATE / (w->plan->facts.cpus ? w->plan->facts.cpus : 1);

		wait = ms < SCAN_MAX_MS ? ms : SCAN_MAX_MS;
	}
	if (w->plan->limits[LIMIT_PIDS].held_by == HELD_RLIMIT && wait > SCAN_MAX_MS)
		wait = SCAN_MAX_MS;
	if (watched(w, LIMIT_CPU) || watched(w, LIMIT_PIDS) || w->at_pids_limit)
		wait = 0;
	return wait > cost_ms * 4 ? wait : cost_ms * 4;
}

static uint64_t later(uint64_t least_ms, uint64_t cost_ms)
{
	return io_now_ms() + (cost_ms > least_ms ? cost_ms : least_ms);
}

/* What rose before the look is others'. */
static void acquit_beyond(struct watch *w)
{
	w->kernel.rise_bytes -=
		w->round_rise < w->kernel.rise_bytes ? w->round_rise : w->kernel.rise_bytes;
	w->beyond_alarm = false;
}

/* What shared memory without a name can hold at most: as much as the machine's has grown by, less
 * what is in the sandbox's file systems. */
static uint64_t shared_growth(struct watch *w)
{
	uint64_t known = w->kernel.start_file_bytes + tmpfs_bytes(w);

	return w->kernel.files && w->kernel.last_file_bytes > known
		       ? w->kernel.last_file_bytes - known
		       : 0;
}

/* A look while the processes go on, a step each tick: whether a closer one is due. */
static bool tick_round(struct watch *w, uint64_t limit, uint64_t now)
{
	uint64_t began = io_now_ms();
	bool done;

	if (!w->round_ms)
		w->round_ms = now + ROUND_MS;
	if (!w->round.under_way) {
		if (now < (w->beyond_alarm ? w->alarm_ms : w->round_ms))
			return false;
		beyond_start(&w->round, w->init_pid, !in_cgroup(w), limit, shared_growth(w), NULL);
		w->round_rise = w->kernel.rise_bytes;
		w->round_cost_ms = 0;
	}
	done = beyond_go_on(&w->round, STEP_MS);
	w->round_cost_ms += io_now_ms() - began;
	if (!done)
		return false;
	w->alarm_ms = later(BEYOND_MS, w->round_cost_ms * 10);
	w->round_ms = later(ROUND_MS, w->round_cost_ms * 50);
	if (w->round.bytes + w->netlink_bytes > limit)
		return true;
	acquit_beyond(w);
	return false;
}

/* What is on no cgroup's account. */
static void tick_beyond(struct watch *w, struct usage *u, uint64_t now)
{
	uint64_t limit = limit_of(w, LIMIT_MEMORY);
	struct beyond_machine machine;

	if (limit == POLICY_NONE || (!in_cgroup(w) && !watched(w, LIMIT_MEMORY)))
		return;
	if (in_cgroup(w) && w->own_network && now >= w->netlink_ms) {
		uint64_t began = io_now_ms();

		w->netlink_bytes = beyond_netlink(&w->view, &w->networks);
		/* the kernel goes through all of the machine's */
		w->netlink_ms = later(0, (io_now_ms() - began) * 10);
		u->hit[LIMIT_MEMORY] |= w->netlink_bytes > limit;
	}
	if (now >= w->beyond_ms) {
		enum beyond_alarm alarm = beyond_machine(&machine)
						  ? beyond_judge(&w->kernel, &machine, limit,
								 w->plan->spec->policy.proc_nesting)
						  : BEYOND_QUIET;

		w->beyond_ms = now + BEYOND_MS;
		w->beyond_alarm = alarm == BEYOND_LOOK;
		if (alarm == BEYOND_MACHINE && !u->hit[LIMIT_MEMORY])
			u->machine_short = u->hit[LIMIT_MEMORY] = true;
	}
	w->beyond_suspect = tick_round(w, limit, now);
}

static void scan(struct watch *w, struct usage *u, uint64_t now)
{
	uint64_t elapsed = now - w->last_ms;

	if (proc_list(&w->view, &w->table) < 0)
		return;
	w->last_ms = now;
	/* what a cgroup counts, it counts better */
	if (!in_cgroup(w))
		scan_memory(w, u);
	else if (w->own_network)
		beyond_find_networks(&w->view, &w->table, w->plan->spec->policy.proc_nesting,
				     &w->networks);
	scan_pids(w, u);
	w->at_pids_limit = u->pids >= limits_host_pids(w->plan);
	scan_cpu(w, u, elapsed);
	w->scan_ms = now + next_scan(w, io_now_ms() - now);
}

void watch_look(struct watch *w, struct usage *u)
{
	uint64_t now = io_now_ms();

	if (now >= w->last_ms + LOOK_MS)
		scan(w, u, now);
}

/* File systems in memory and an inner runtime's memory files: the sandbox's own, each counted once.
 * More than the limit there needs no other proof. */
static bool tick_files(struct watch *w, struct usage *u)
{
	uint64_t bytes = watched(w, LIMIT_MEMORY) ? tmpfs_bytes(w) : 0;

	if (!bytes || bytes <= limit_of(w, LIMIT_MEMORY))
		return false;
	u->memory_bytes = bytes;
	if (bytes > u->memory_peak_bytes)
		u->memory_peak_bytes = bytes;
	u->hit[LIMIT_MEMORY] = true;
	return true;
}

/* Whether the disk has to be looked at before anything else. */
static bool disk_is_due(const struct watch *w, const struct usage *u)
{
	return u->hit[LIMIT_DISK] || (w->trees.suspect && watch_is_urgent(w, u));
}

bool watch_tick(struct watch *w, struct usage *u)
{
	uint64_t now = io_now_ms();

	tree_watch_tick(&w->trees, u);
	if (disk_is_due(w, u))
		/* the rest can wait: what follows may take long where the processors are busy */
		return true;
	if (tick_files(w, u))
		return true;
	/* an inner runtime's memory was counted just now: its many processes can wait while the
	 * disk fills */
	if (w->memfds.on && watch_is_urgent(w, u) && now < w->scan_ms + SCAN_LATE_MS)
		return w->trees.suspect;
	if (now >= w->scan_ms)
		scan(w, u, now);
	if (io_now_ms() - now > LONG_MS)
		tree_watch_tick(&w->trees, u);
	if (!disk_is_due(w, u))
		tick_beyond(w, u, now);
	if (io_now_ms() - now > LONG_MS)
		tree_watch_tick(&w->trees, u);
	return w->trees.suspect || w->beyond_suspect || (w->memory_suspect && now >= w->look_ms) ||
	       (watched(w, LIMIT_PIDS) && u->pids > limits_host_pids(w->plan));
}

bool watch_is_urgent(const struct watch *w, const struct usage *u)
{
	return tree_watch_is_urgent(&w->trees, u);
}

uint64_t watch_wait_ms(const struct watch *w, const struct usage *u)
{
	return tree_watch_wait_ms(&w->trees, u);
}

bool watch_prove_disk(struct watch *w, struct usage *u)
{
	return tree_watch_prove(&w->trees, u);
}

bool watch_fills_disk(struct watch *w, struct usage *u)
{
	u->hit[LIMIT_DISK] |= tree_watch_is_outrun(&w->trees, u);
	return u->hit[LIMIT_DISK];
}

void watch_kill(struct watch *w)
{
	proc_kill(&w->view, &w->table);
}

uint64_t watch_own_disk(struct watch *w, struct usage *u)
{
	return tree_watch_own_bytes(&w->trees, u);
}

bool watch_wants_pause(const struct watch *w)
{
	return w->pause;
}

/* ---- the close look ---- */

static bool machine_is_short(void)
{
	struct sysinfo s;

	return sysinfo(&s) == 0 && s.totalram && (s.freeram + s.bufferram) < s.totalram / 50 &&
	       s.freeswap < s.totalram / 50;
}

static void confirm_memory(struct watch *w, struct usage *u)
{
	uint64_t began = io_now_ms(), limit = limit_of(w, LIMIT_MEMORY), exact, pause, kernel = 0;
	struct ward_err e;

	if (!w->foreign)
		(void)!foreign_fds_start(0, &w->foreign, &e);
	w->tmpfs_devs[w->tmpfs_count] = w->memfds.dev;
	exact = proc_memory_exact(&w->view, &w->table, w->tmpfs_devs, w->tmpfs_count + w->memfds.on,
				  tmpfs_bytes(w), limit, w->memfds.on);
	if (exact <= limit && !kernel_memory_exact(w->init_pid, w->own_network ? w->sock_count : 0,
						   w->foreign, &kernel))
		kernel = limit + 1 - exact; /* more than can be looked through */
	exact += kernel;
	u->memory_bytes = exact;
	if (exact > u->memory_peak_bytes)
		u->memory_peak_bytes = exact;
	w->memory_suspect = false;
	if (exact <= limit) {
		w->memory_strikes = 0;
		pause = (io_now_ms() - began) * 10;
		w->look_ms = io_now_ms() + (pause < LOOK_PAUSE_MS ? pause : LOOK_PAUSE_MS);
		return;
	}
	/* a process that is being started in its parent's memory is counted twice for a moment:
	 * that is no more than double */
	if (++w->memory_strikes >= 2 || exact / 2 > limit || machine_is_short())
		u->hit[LIMIT_MEMORY] = true;
	w->scan_ms = 0; /* again at the next tick */
}

/* Locks and the like. What could not be looked through in time is no reason to end anything. */
static void confirm_beyond(struct watch *w, struct usage *u)
{
	uint64_t began = io_now_ms(), limit = limit_of(w, LIMIT_MEMORY);
	struct beyond_look look = { 0 };
	bool done;

	w->beyond_suspect = false;
	if (w->table.len == 0)
		return; /* all are dead */
	beyond_start(&look, w->init_pid, !in_cgroup(w), limit, shared_growth(w), &w->round.table);
	done = beyond_go_on(&look, CONFIRM_MS);
	/* not what the processes hold: that is known as an upper bound only */
	if (look.bytes + w->netlink_bytes > limit)
		u->hit[LIMIT_MEMORY] = true;
	else if (done)
		acquit_beyond(w);
	w->alarm_ms = w->round_ms = later(BEYOND_MS, (io_now_ms() - began) * 10);
	beyond_end(&look);
}

/* Reads the list again until every process stands still: a walk can be led round by one that
 * moves files. ward-init (the first) does the stopping and goes on. False when some never do, or
 * write on and on. */
static bool settle(struct watch *w, struct usage *u, enum watch_still still, int tries)
{
	const struct timespec moment = { .tv_nsec = 2000000 };

	for (int i = 0; i < tries; i++) {
		size_t moving = 0;

		if (proc_list(&w->view, &w->table) < 0)
			return false;
		if (w->table.len == 0 || still == WATCH_FROZEN)
			return true; /* dead, or stopped */
		if (still == WATCH_MOVING)
			return false;
		for (size_t k = 1; k < w->table.len; k++)
			moving += !strchr("TtZXD", w->table.items[k].state);
		if (!moving)
			return true;
		if (w->trees.suspect && tree_watch_is_outrun(&w->trees, u)) {
			u->hit[LIMIT_DISK] = true;
			return false;
		}
		nanosleep(&moment, NULL);
	}
	return false;
}

/* The same while the disk fills: what is there proves it as well as what stands still. */
static bool settle_or_prove(struct watch *w, struct usage *u)
{
	uint64_t until = io_now_ms() + SETTLE_TRIES * 2;

	do {
		/* first what waits for nothing: to read a directory may wait for who writes */
		if (u->hit[LIMIT_DISK] || settle(w, u, WATCH_SIGNALLED, QUICK_TRIES))
			return !u->hit[LIMIT_DISK];
		if (u->hit[LIMIT_DISK] || watch_prove_disk(w, u))
			return false;
	} while (io_now_ms() < until);
	return false;
}

void watch_confirm(struct watch *w, struct usage *u, enum watch_still still)
{
	bool settled = w->trees.suspect && still == WATCH_SIGNALLED
			       ? settle_or_prove(w, u)
			       : settle(w, u, still, SETTLE_TRIES);

	if (w->trees.suspect && (u->hit[LIMIT_DISK] || u->hit[LIMIT_INODES]))
		return; /* it is over */
	if (w->memory_suspect)
		confirm_memory(w, u);
	if (w->beyond_suspect)
		confirm_beyond(w, u);
	if (w->trees.suspect)
		tree_watch_confirm(&w->trees, u, still == WATCH_MOVING && !settled, settled);
}

/* ---- the end ---- */

void watch_end(struct watch *w, struct usage *u, enum watch_still still, bool limited)
{
	w->trees.over_look_ms = w->trees.rise_look_ms = 0;
	w->trees.ended = true;
	if (watch_tick(w, u) && (!limited || w->trees.suspect))
		watch_confirm(w, u, still);
	if (watched(w, LIMIT_DISK) && u->hit[LIMIT_DISK])
		tree_watch_remove_excess(&w->trees, u);
}
