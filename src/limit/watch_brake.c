/*
 * Holding a sandbox back while its disk fills. In: the sandbox's first process, whether the disk
 * limit can be passed before the next look. Out: the sandbox's threads run on one processor, and
 * this process is scheduled before them. Runs in the supervisor, called by the watch.
 *
 * A write that is under way cannot be interrupted but by the death of its process, so what a
 * sandbox can write beyond its limit is its rate times the time until the supervisor has looked and
 * killed. Many writers keep every processor busy, and then that time is long: the supervisor gets a
 * processor after all of them, for tens of milliseconds each. On one processor they write no faster
 * than one of them does, and the others are the supervisor's. This holds within a write, too: the
 * kernel moves a thread whatever it does.
 *
 * No wall: a process may choose other processors for itself, so each pass does it again. A thread
 * that has chosen a single processor keeps it. Beside that this process asks for a real-time
 * policy, which root has, or for a short slice of time, which is everybody's from Linux 6.12 on.
 */
#include "limit/watch_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"

#define CALM_MS 1000 /* so long after it was wanted last */
#define PASS_MS 20   /* between two passes, or ten times what one takes */
#define CHILDREN_MAX 65536
#define DEPTH_MAX 200
#define SLICE_NS 100000 /* the shortest that the kernel gives */
#define RESET_ON_FORK 1 /* SCHED_FLAG_RESET_ON_FORK: no child has it */

/* struct sched_attr, as far as it is needed: first version */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static bool be_scheduled(uint32_t policy, uint32_t priority, uint64_t runtime)
{
	struct attributes a = { .size = sizeof(a),
				.policy = policy,
				.flags = RESET_ON_FORK,
				.nice = getpriority(PRIO_PROCESS, 0),
				.priority = priority,
				.runtime = runtime };

	if (policy != SCHED_OTHER)
		a.nice = 0;
	return syscall(SYS_sched_setattr, 0, &a, 0) == 0;
}

void brake_hurry(struct disk_brake *b, bool wanted)
{
	if (b->hurries == wanted)
		return;
	b->hurries = wanted;
	/* where neither is to be had the looks come as they come */
	if (!wanted)
		(void)be_scheduled(SCHED_OTHER, 0, 0);
	else if (!be_scheduled(SCHED_RR, 1, 0))
		(void)be_scheduled(SCHED_OTHER, 0, SLICE_NS);
}

/* The processor that the sandbox gets: not the one where this process runs, if it has another. */
static size_t choose_processor(const cpu_set_t *usual, pid_t pid)
{
	int own = sched_getcpu();
	size_t busy = own < 0 ? CPU_SETSIZE : (size_t)own,
	       others = (size_t)CPU_COUNT(usual) - (own >= 0 && CPU_ISSET(busy, usual)),
	       nth = others ? (size_t)pid % others : 0;

	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, usual) && (!others || cpu != busy) && nth-- == 0)
			return cpu;
	return 0;
}

/* One pass over the sandbox's threads. */
struct pass {
	const struct disk_brake *brake;
	bool hold, ended;
	uint64_t ask_ms; /* when to ask whether it is to end */
};

/* To move a thread that is writing takes up to a millisecond, in which the others write on: so it
 * is asked between two. */
static bool is_over(struct pass *p)
{
	const struct disk_brake *b = p->brake;
	uint64_t now;

	if (p->ended || !p->hold || !b->enough)
		return p->ended;
	now = io_now_ms();
	if (now < p->ask_ms)
		return false;
	p->ended = b->enough(b->enough_arg);
	p->ask_ms = io_now_ms() + 1 + (io_now_ms() - now) * 2;
	return p->ended;
}

static void set_one(const struct pass *p, pid_t tid)
{
	const struct disk_brake *b = p->brake;
	cpu_set_t now, only;

	CPU_ZERO(&only);
	CPU_SET(b->processor, &only);
	if (sched_getaffinity(tid, sizeof(now), &now) < 0)
		return;
	if (p->hold && CPU_COUNT(&now) > 1)
		(void)!sched_setaffinity(tid, sizeof(only), &only);
	else if (!p->hold && CPU_EQUAL(&now, &only))
		(void)!sched_setaffinity(tid, sizeof(b->usual), &b->usual);
}

static void set_family(struct pass *p, pid_t pid, unsigned depth);

/* The children that one thread has made. */
static void set_children(struct pass *p, int task_fd, pid_t tid, unsigned depth)
{
	char name[32];
	auto_fd fd = -1;
	auto_buf text = { 0 };

	snprintf(name, sizeof(name), "%d/children", tid);
	fd = openat(task_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || io_read_all(fd, CHILDREN_MAX, &text) < 0)
		return;
	for (char *at = text.data, *end; at && *at && !is_over(p); at = end) {
		pid_t child = (pid_t)strtol(at, &end, 10);

		if (end == at)
			return;
		set_family(p, child, depth + 1);
	}
}

/* All threads of a process but ward-init's, which stops and kills, and of its descendants. */
static void set_family(struct pass *p, pid_t pid, unsigned depth)
{
	char path[32];
	auto_dir dir = NULL;

	if (depth > DEPTH_MAX)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && !is_over(p);
	     entry = readdir(dir)) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (depth)
			set_one(p, tid);
		set_children(p, dirfd(dir), tid, depth);
	}
}

/* Returns whether it was to end. */
static bool pass_once(const struct disk_brake *b, pid_t init_pid)
{
	struct pass p = { .brake = b, .hold = b->on };

	set_family(&p, init_pid, 0);
	return p.ended;
}

void brake_tick(struct disk_brake *b, pid_t init_pid, bool wanted)
{
	uint64_t now = io_now_ms(), took;
	bool begins = wanted && !b->on;

	if (wanted)
		b->until_ms = now + CALM_MS;
	if (begins && (sched_getaffinity(init_pid, sizeof(b->usual), &b->usual) < 0 ||
		       CPU_COUNT(&b->usual) < 2))
		return;
	if (begins) {
		b->processor = choose_processor(&b->usual, init_pid);
		b->on = true;
		b->pass_ms = 0;
	}
	if (!b->on || (now < b->pass_ms && now < b->until_ms))
		return;
	b->on = now < b->until_ms;
	if (!pass_once(b, init_pid) && (begins || !b->on)) /* what was being forked meanwhile */
		(void)pass_once(b, init_pid);
	took = io_now_ms() - now;
	b->pass_ms = now + (took * 10 > PASS_MS ? took * 10 : PASS_MS);
}
