/*
 * cgroup v1. In: a plan with limits that are HELD_CGROUP1. Out: one directory ward-<run id> per
 * hierarchy that holds a limit, below the caller's own cgroup there. Runs in the supervisor, as
 * root (or as a user to whom the directories were given).
 *
 * Putting a process in from outside (cgroup.procs) takes a lock that waits for every processor:
 * 7-14 ms after idling. A thread that writes "0" to tasks moves itself and needs no such lock:
 * 10-30 us. So the descriptors of tasks are opened here, with our rights, and the child between
 * clone and exec does the writing; the kernel checks the rights of the process that opened them.
 *
 * memory.memsw is set beside memory.limit where the kernel accounts swap, or swapping would be
 * a way out. An OOM kill takes one process only: the eventfd on memory.oom_control tells the
 * supervisor, who ends the sandbox.
 *
 * The freezer holds no limit, so its directory is made at the first freeze, off the start path:
 * it is set frozen first, then every process of the run is moved in until a look finds none
 * outside. Killing needs no freezer: with pids.max at 0 nothing new can start.
 */
#include "limit/cgroup_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/io.h"

#define PERIOD_US 100000 /* the kernel's default cpu.cfs_period_us */
#define QUOTA_MIN_US 1000
#define FREEZE_PASSES 64
#define MAX_PIDS 65536

/* Which hierarchy holds which limit, and by which file. */
static const struct {
	enum limit limit;
	enum cgroup_place place;
	const char *file;
	uint64_t scale, divide; /* value * scale / divide is written */
	bool optional;
} limit_files[] = {
	{ LIMIT_MEMORY, CG_MEMORY, "memory.limit_in_bytes", 1, 1, false },
	{ LIMIT_MEMORY, CG_MEMORY, "memory.memsw.limit_in_bytes", 1, 1, true },
	{ LIMIT_PIDS, CG_PIDS, "pids.max", 1, 1, false },
	{ LIMIT_CPU, CG_CPU, "cpu.cfs_quota_us", PERIOD_US, 1000, false },
};

static bool probe(const struct cgroup_map *m, struct cgroup_info *info)
{
	static const enum cgroup_place must[] = { CG_MEMORY, CG_PIDS };

	for (size_t i = 0; i < ARRAY_LEN(must); i++) {
		const char *dir = m->dir[must[i]];

		if (!dir)
			return false;
		if (cgroup_may_create(dir))
			continue;
		if (info) {
			snprintf(info->why, sizeof(info->why),
				 "%.180s (cgroup v1) cannot be written by this user", dir);
			snprintf(info->remedy, sizeof(info->remedy),
				 "run ward as root, or boot with cgroup v2 "
				 "(systemd.unified_cgroup_hierarchy=1)");
		}
		return false;
	}
	if (!info)
		return true;
	info->cpu = m->dir[CG_CPU] && cgroup_may_create(m->dir[CG_CPU]);
	info->freezer = m->dir[CG_FREEZER] && cgroup_may_create(m->dir[CG_FREEZER]);
	return true;
}

/* The place whose directory this one shares because both controllers are mounted together, or
 * the place itself. */
static enum cgroup_place same_dir(const struct cgroup *c, const char *path, enum cgroup_place place)
{
	for (unsigned i = 0; i < CG_PLACES; i++)
		if (c->dirs[i].path && !c->dirs[i].joined && strcmp(c->dirs[i].path, path) == 0)
			return (enum cgroup_place)i;
	return place;
}

/* Makes the run's directory in one hierarchy, or shares the one that is there. */
static int make_place(struct cgroup *c, const struct cgroup_map *m, enum cgroup_place place,
		      const char *run_id, struct ward_err *e)
{
	struct cgroup_dir *d = &c->dirs[place];
	auto_free char *path = NULL;
	enum cgroup_place same;
	int r;

	if (!m->dir[place])
		return ward_fail(e, ENOTSUP,
				 "a cgroup hierarchy that the plan needs is not mounted");
	if (asprintf(&path, "%s/ward-%s", m->dir[place], run_id) < 0) {
		path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	same = same_dir(c, path, place);
	d->path = take_ptr(path);
	if (same != place) {
		d->joined = true;
		d->fd = fcntl(c->dirs[same].fd, F_DUPFD_CLOEXEC, 0);
		return d->fd < 0 ? ward_fail_errno(e, "cannot copy a descriptor") : 0;
	}
	r = cgroup_dir_make(d, e);
	if (r < 0)
		return r;
	d->join_fd = openat(d->fd, "tasks", O_WRONLY | O_CLOEXEC);
	return d->join_fd < 0 ? ward_fail_errno(e, "cannot open %s/tasks", d->path) : 0;
}

static int write_limit(struct cgroup *c, size_t row, uint64_t value, struct ward_err *e)
{
	const char *file = limit_files[row].file;
	struct cgroup_dir *d = &c->dirs[limit_files[row].place];
	uint64_t number;
	char text[32];
	int r;

	if (__builtin_mul_overflow(value, limit_files[row].scale, &number))
		number = INT64_MAX;
	number /= limit_files[row].divide;
	if (limit_files[row].limit == LIMIT_CPU && number < QUOTA_MIN_US)
		number = QUOTA_MIN_US;
	if (number > INT64_MAX)
		number = INT64_MAX;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	r = io_write_file(d->fd, file, text);
	if (r == 0 || (limit_files[row].optional && r == -ENOENT))
		return 0;
	errno = -r;
	return ward_fail_errno(e, "cannot write %s to %s/%s", text, d->path, file);
}

static int create(struct cgroup *c, const struct cgroup_map *m, const struct plan *p,
		  struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(limit_files) && r == 0; i++) {
		const struct plan_limit *l = &p->limits[limit_files[i].limit];
		enum cgroup_place place = limit_files[i].place;

		if (l->value == POLICY_NONE || l->held_by != HELD_CGROUP1)
			continue;
		if (!c->dirs[place].path)
			r = make_place(c, m, place, p->spec->run_id, e);
		if (r == 0)
			r = write_limit(c, i,
					limit_files[i].limit == LIMIT_PIDS ? limits_host_pids(p)
									   : l->value,
					e);
	}
	if (r == 0 && m->dir[CG_FREEZER] &&
	    asprintf(&c->dirs[CG_FREEZER].path, "%s/ward-%s", m->dir[CG_FREEZER], p->spec->run_id) <
		    0) {
		c->dirs[CG_FREEZER].path = NULL;
		r = ward_fail(e, ENOMEM, "out of memory");
	}
	if (r == 0 && c->dirs[CG_FREEZER].path)
		c->dirs[CG_FREEZER].joined =
			same_dir(c, c->dirs[CG_FREEZER].path, CG_FREEZER) != CG_FREEZER;
	return r;
}

static int attach(struct cgroup *c, pid_t pid, struct ward_err *e)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	for (unsigned i = 0; i < CG_PLACES; i++) {
		const struct cgroup_dir *d = &c->dirs[i];
		int r;

		if (d->join_fd < 0)
			continue;
		r = io_write_file(d->fd, "cgroup.procs", text);
		if (r < 0) {
			errno = -r;
			return ward_fail_errno(e, "cannot put process %d into %s", pid, d->path);
		}
	}
	return 0;
}

/* Any directory that the run's processes are in. */
static int member_fd(const struct cgroup *c)
{
	for (unsigned i = 0; i < CG_PLACES; i++)
		if (c->dirs[i].join_fd >= 0)
			return c->dirs[i].fd;
	return -1;
}

/* ---- freezing ---- */

static int compare_pids(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Moves what is in from_fd and not yet in to_fd; returns how many were outside. */
static ssize_t move_pass(int from_fd, int to_fd, pid_t *pids, pid_t *inside)
{
	ssize_t n = cgroup_read_pids(from_fd, pids, MAX_PIDS), m, moved = 0;

	if (n < 0)
		return n;
	m = cgroup_read_pids(to_fd, inside, MAX_PIDS);
	if (m < 0)
		return m;
	n = n > MAX_PIDS ? MAX_PIDS : n;
	m = m > MAX_PIDS ? MAX_PIDS : m;
	qsort(inside, (size_t)m, sizeof(*inside), compare_pids);
	for (ssize_t i = 0; i < n; i++) {
		char text[16];
		int r;

		if (bsearch(&pids[i], inside, (size_t)m, sizeof(*inside), compare_pids))
			continue;
		snprintf(text, sizeof(text), "%d", pids[i]);
		r = io_write_file(to_fd, "cgroup.procs", text);
		if (r < 0 && r != -ESRCH)
			return r;
		moved++;
	}
	return moved;
}

static int move_all(int from_fd, int to_fd)
{
	auto_free pid_t *pids = calloc(MAX_PIDS, sizeof(*pids));
	auto_free pid_t *inside = calloc(MAX_PIDS, sizeof(*inside));

	if (!pids || !inside)
		return -ENOMEM;
	for (int i = 0; i < FREEZE_PASSES; i++) {
		ssize_t n = move_pass(from_fd, to_fd, pids, inside);

		if (n <= 0)
			return (int)n;
	}
	return -EBUSY;
}

static int is_still(struct cgroup *c)
{
	auto_buf text = { 0 };
	int r = io_read_file(c->dirs[CG_FREEZER].fd, "freezer.state", 64, &text);

	return r < 0 ? r : strncmp(buf_text(&text), "FROZEN", 6) == 0;
}

static int freeze(struct cgroup *c, bool frozen)
{
	struct cgroup_dir *d = &c->dirs[CG_FREEZER];
	int from = member_fd(c), r;

	if (d->fd < 0 && !frozen)
		return 0;
	if (!d->path || from < 0)
		return -ENOTSUP;
	if (d->fd < 0 && d->joined) {
		d->fd = fcntl(from, F_DUPFD_CLOEXEC, 0);
	} else if (d->fd < 0) {
		struct ward_err e = { 0 };

		r = cgroup_dir_make(d, &e);
		if (r < 0)
			return r;
	}
	r = io_write_file(d->fd, "freezer.state", frozen ? "FROZEN" : "THAWED");
	if (r < 0 || !frozen)
		return r;
	return d->joined ? 0 : move_all(from, d->fd);
}

static int kill_all(struct cgroup *c)
{
	int fd = member_fd(c), r;

	if (fd < 0)
		return -ENOTSUP;
	if (c->dirs[CG_PIDS].fd >= 0) {
		r = io_write_file(c->dirs[CG_PIDS].fd, "pids.max", "0");
		if (r < 0)
			return r;
	}
	if (c->frozen) { /* a frozen process does not die */
		r = cgroup_freeze(c, false);
		if (r < 0)
			return r;
	}
	return cgroup_kill_pids(fd);
}

/* ---- counting ---- */

static void usage(struct cgroup *c, struct usage *u)
{
	const struct cgroup_dir *memory = &c->dirs[CG_MEMORY], *pids = &c->dirs[CG_PIDS];
	const struct cgroup_dir *cpu = &c->dirs[CG_CPU];
	uint64_t number;

	if (memory->fd >= 0) {
		u->memory_bytes = cgroup_read_number(memory->fd, "memory.usage_in_bytes");
		number = cgroup_read_number(memory->fd, "memory.max_usage_in_bytes");
		if (number > u->memory_peak_bytes)
			u->memory_peak_bytes = number;
		if (cgroup_read_key(memory->fd, "memory.oom_control", "oom_kill") > 0 ||
		    cgroup_read_key(memory->fd, "memory.oom_control", "under_oom") > 0)
			u->hit[LIMIT_MEMORY] = true;
	}
	if (pids->fd >= 0) {
		u->pids = cgroup_read_number(pids->fd, "pids.current");
		u->pids_refused = cgroup_read_key(pids->fd, "pids.events", "max");
	}
	if (cpu->fd >= 0) {
		u->cpu_throttled_ms =
			cgroup_read_key(cpu->fd, "cpu.stat", "throttled_time") / 1000000;
		number = cgroup_read_number(cpu->fd, "cpuacct.usage") / 1000000;
		if (number > u->cpu_ms)
			u->cpu_ms = number;
	}
}

static int event_open(struct cgroup *c)
{
	int dir = c->dirs[CG_MEMORY].fd;
	struct usage now = { 0 };
	char text[32];
	int r;

	if (dir < 0)
		return -ENOTSUP;

	auto_fd control = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	if (control < 0)
		return -errno;

	auto_fd event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event < 0)
		return -errno;

	snprintf(text, sizeof(text), "%d %d", event, control);
	r = io_write_file(dir, "cgroup.event_control", text);
	if (r < 0)
		return r;
	usage(c, &now);
	if (now.hit[LIMIT_MEMORY] && eventfd_write(event, 1) < 0) /* before we listened */
		return -errno;
	return take_fd(&event);
}

const struct cgroup_ops cgroup1_ops = {
	.kind = CGROUP_V1,
	.probe = probe,
	.create = create,
	.attach = attach,
	.freeze = freeze,
	.is_still = is_still,
	.kill = kill_all,
	.usage = usage,
	.event_open = event_open,
};
