/*
 * cgroup v2. In: a plan with limits that are HELD_CGROUP2. Out: one directory ward-<run id>, into
 * which the child is cloned at once (CLONE_INTO_CGROUP), or writes itself. Runs in the supervisor
 * with the user's rights.
 *
 * Where the directory may be: cloning into it needs the right to write cgroup.procs of it and
 * of the nearest common ancestor, so it must lie in the caller's own cgroup or one of its
 * ancestors that the caller may write. From a login session's scope none is: it belongs to
 * root. And that ancestor must have memory and pids in cgroup.subtree_control, or be one where
 * they can be put there: a cgroup with processes of its own refuses it, except the root of the
 * whole tree. If the only process is we ourselves (ward started in a delegated scope of its
 * own), we move to a leaf ward-<run id>-self, and back at the end.
 *
 * A start does not wait for the plan where a directory is all that it needs: cgroup2_begin() makes
 * one before the policy is read, the child is born in it and builds, and cgroup2_limit() writes the
 * limits once the plan is there; the exec is allowed after that. Until the run is on record, what
 * shows that the directory is in use is its maker's lock on it: `ward recover` removes those that
 * are not locked (cgroup_remove_orphans()).
 *
 * memory.oom.group makes one OOM kill end the whole sandbox; swap is not a way out. With
 * process.nesting the processes are put one level deeper ("box"): they may mount a cgroup file
 * system there and own what they see, and must not see the limits.
 */
#include "limit/cgroup_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/io.h"

#define PERIOD_US 100000u
#define QUOTA_MIN_US 1000
#define KILL_TRIES 200 /* of 5 ms */
#define LEAF_PIDS 64

enum { CAN_MEMORY = 1, CAN_PIDS = 2, CAN_CPU = 4, CAN_LIMIT = CAN_MEMORY | CAN_PIDS };

_Static_assert(CGROUP2_LIMITS == CAN_LIMIT, "the controllers of a start without a plan");

static const struct {
	const char *name;
	unsigned bit;
} controllers[] = { { "memory", CAN_MEMORY }, { "pids", CAN_PIDS }, { "cpu", CAN_CPU } };

/* A directory that could be the parent of the run's. */
struct place {
	char *dir;          /* owned */
	unsigned enabled;   /* for its children */
	unsigned available; /* could be enabled */
	bool move_self;     /* we are its only process and must make room */
};

static unsigned read_controllers(int dir_fd, const char *file)
{
	auto_buf text = { 0 };
	unsigned bits = 0;
	char *rest, *word, *save = NULL;

	if (io_read_file(dir_fd, file, 4096, &text) < 0 || !text.data)
		return 0;
	for (rest = text.data; (word = strtok_r(rest, " \n", &save)); rest = NULL)
		for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
			if (strcmp(word, controllers[i].name) == 0)
				bits |= controllers[i].bit;
	return bits;
}

/* Whether controllers can be enabled for the children: no process may be in the way. */
static bool can_enable(int dir_fd, bool *ret_move_self)
{
	auto_buf all = { 0 };
	char own[16];

	*ret_move_self = false;
	if (faccessat(dir_fd, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0)
		return false;
	if (faccessat(dir_fd, "cgroup.events", F_OK, 0) < 0)
		return true; /* the root of the tree has no such file, and no such rule */
	if (io_read_file(dir_fd, "cgroup.procs", 64u << 20, &all) < 0)
		return false;
	/* as text: a process outside of our pid namespace is a 0 there, and in the way like any
	 * other */
	snprintf(own, sizeof(own), "%d\n", getpid());
	*ret_move_self = strcmp(buf_text(&all), own) == 0;
	return *ret_move_self || all.len == 0;
}

/* Looks at one directory; true when the wanted controllers can be had below it. */
static bool look_at(const char *dir, unsigned wanted, struct place *place)
{
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || !cgroup_may_create(dir))
		return false;
	place->move_self = false;
	place->enabled = place->available = read_controllers(fd, "cgroup.subtree_control");
	if ((place->enabled & wanted) == wanted)
		return true;
	if (can_enable(fd, &place->move_self))
		place->available |= read_controllers(fd, "cgroup.controllers");
	return (place->available & wanted) == wanted;
}

/* Whether v2 has the controllers at all: on a hybrid host they are with v1. */
static bool has_controllers(const struct cgroup_map *m)
{
	auto_fd top = open(m->mount[CG_UNIFIED], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return top >= 0 && (read_controllers(top, "cgroup.controllers") & CAN_LIMIT) == CAN_LIMIT;
}

static void explain(const struct cgroup_map *m, struct cgroup_info *info)
{
	const char *dir = m->dir[CG_UNIFIED];

	if (!has_controllers(m)) {
		snprintf(info->why, sizeof(info->why),
			 "cgroup v2 is mounted without the memory and pids controllers");
		return;
	}
	if (cgroup_may_create(dir)) {
		snprintf(info->why, sizeof(info->why),
			 "%.120s contains processes itself, so its children cannot have a memory "
			 "limit",
			 dir);
	} else {
		snprintf(info->why, sizeof(info->why),
			 "this session's cgroup %.120s belongs to another user", dir);
	}
	snprintf(info->remedy, sizeof(info->remedy),
		 "systemd-run --user --scope -p Delegate=yes ward run ...");
}

/* The nearest directory from the caller's own cgroup upwards below which the wanted controllers
 * can be had. */
static bool find_place(const struct cgroup_map *m, unsigned wanted, struct place *place)
{
	const char *top = m->mount[CG_UNIFIED];
	char *cut;

	place->dir = m->dir[CG_UNIFIED] ? strdup(m->dir[CG_UNIFIED]) : NULL;
	while (place->dir) {
		if (look_at(place->dir, wanted, place))
			return true;
		cut = strrchr(place->dir, '/');
		if (!cut || strlen(place->dir) <= strlen(top))
			break;
		*cut = '\0';
	}
	free(place->dir);
	place->dir = NULL;
	return false;
}

static bool probe(const struct cgroup_map *m, struct cgroup_info *info)
{
	struct place place = { 0 };

	if (!m->dir[CG_UNIFIED])
		return false;
	if (!has_controllers(m) || !find_place(m, CAN_LIMIT, &place)) {
		if (info)
			explain(m, info);
		return false;
	}
	if (info) {
		free(place.dir);
		info->cpu = find_place(m, CAN_LIMIT | CAN_CPU, &place);
		info->freezer = true;
	}
	free(place.dir);
	return true;
}

/* ---- creating ---- */

static int write_or_fail(int fd, const char *dir, const char *file, const char *text,
			 struct ward_err *e)
{
	int r = io_write_file(fd, file, text);

	if (r == 0)
		return 0;
	errno = -r;
	return ward_fail_errno(e, "cannot write %s to %s/%s", text, dir, file);
}

/* Moves ward itself to a leaf, so that its cgroup may have children with limits. */
static int make_room(struct cgroup *c, const struct place *place, const char *run_id,
		     struct ward_err *e)
{
	int r;

	if (asprintf(&c->own.path, "%s/ward-%s-self", place->dir, run_id) < 0) {
		c->own.path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	r = cgroup_dir_make(&c->own, e);
	return r < 0 ? r : write_or_fail(c->own.fd, c->own.path, "cgroup.procs", "0", e);
}

static int enable(const struct place *place, unsigned wanted, struct ward_err *e)
{
	auto_fd fd = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[64] = "";

	if (fd < 0)
		return ward_fail_errno(e, "cannot open %s", place->dir);
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		size_t n = strlen(text);

		if (wanted & controllers[i].bit & ~place->enabled)
			snprintf(text + n, sizeof(text) - n, "%s+%s", n ? " " : "",
				 controllers[i].name);
	}
	return text[0] ? write_or_fail(fd, place->dir, "cgroup.subtree_control", text, e) : 0;
}

static unsigned wanted_controllers(const struct plan *p)
{
	unsigned wanted = 0;

	if (p->limits[LIMIT_MEMORY].held_by == HELD_CGROUP2)
		wanted |= CAN_MEMORY;
	if (p->limits[LIMIT_PIDS].held_by == HELD_CGROUP2)
		wanted |= CAN_PIDS;
	if (p->limits[LIMIT_CPU].held_by == HELD_CGROUP2)
		wanted |= CAN_CPU;
	return wanted;
}

static int write_memory(const struct cgroup_dir *d, uint64_t value, struct ward_err *e)
{
	char text[32];
	int r;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	r = write_or_fail(d->fd, d->path, "memory.max", text, e);
	if (r < 0)
		return r;
	r = io_write_file(d->fd, "memory.swap.max", "0");
	if (r < 0 && r != -ENOENT) { /* ENOENT: the kernel accounts no swap */
		errno = -r;
		return ward_fail_errno(e, "cannot write 0 to %s/memory.swap.max", d->path);
	}
	return write_or_fail(d->fd, d->path, "memory.oom.group", "1", e);
}

static int write_limits(const struct cgroup_dir *d, const struct plan *p, struct ward_err *e)
{
	const struct plan_limit *memory = &p->limits[LIMIT_MEMORY], *pids = &p->limits[LIMIT_PIDS];
	const struct plan_limit *cpu = &p->limits[LIMIT_CPU];
	char text[48];
	int r = 0;

	if (memory->held_by == HELD_CGROUP2 && memory->value != POLICY_NONE)
		r = write_memory(d, memory->value, e);
	if (r == 0 && pids->held_by == HELD_CGROUP2 && pids->value != POLICY_NONE) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)limits_host_pids(p));
		r = write_or_fail(d->fd, d->path, "pids.max", text, e);
	}
	if (r == 0 && cpu->held_by == HELD_CGROUP2 && cpu->value != POLICY_NONE) {
		uint64_t quota = cpu->value > INT64_MAX / PERIOD_US ? INT64_MAX
								    : cpu->value * PERIOD_US / 1000;

		snprintf(text, sizeof(text), "%llu %u",
			 (unsigned long long)(quota < QUOTA_MIN_US ? QUOTA_MIN_US : quota),
			 PERIOD_US);
		r = write_or_fail(d->fd, d->path, "cpu.max", text, e);
	}
	return r;
}

static int make_dirs(struct cgroup *c, const struct place *place, const struct plan *p,
		     struct ward_err *e)
{
	struct cgroup_dir *d = &c->dirs[CG_UNIFIED];
	int r;

	if (asprintf(&d->path, "%s/ward-%s", place->dir, p->spec->run_id) < 0) {
		d->path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	r = cgroup_dir_make(d, e);
	if (r < 0)
		return r;
	r = write_limits(d, p, e);
	if (r < 0 || !p->spec->policy.proc_nesting)
		return r;
	if (asprintf(&c->inner.path, "%s/box", d->path) < 0) {
		c->inner.path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	return cgroup_dir_make(&c->inner, e);
}

/* A container's filter may hide clone3 (older ones do), and with it the way to clone into a
 * cgroup. */
static bool has_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0) < 0 && errno == EINVAL;
}

/* Without clone3 the child writes itself there. */
static int open_way_in(struct cgroup *c, struct ward_err *e)
{
	struct cgroup_dir *d = &c->dirs[CG_UNIFIED];

	if (has_clone3())
		return 0;
	d->join_fd = openat(c->inner.fd >= 0 ? c->inner.fd : d->fd, "cgroup.procs",
			    O_WRONLY | O_CLOEXEC);
	return d->join_fd < 0 ? ward_fail_errno(e, "cannot open %s/cgroup.procs", d->path) : 0;
}

static int create(struct cgroup *c, const struct cgroup_map *m, const struct plan *p,
		  struct ward_err *e)
{
	unsigned wanted = wanted_controllers(p);
	struct place place = { 0 };
	int r = 0;

	if (!m->dir[CG_UNIFIED] || !find_place(m, wanted, &place))
		return ward_fail(e, ENOTSUP,
				 "no cgroup v2 directory has the controllers that the plan needs");
	if (place.move_self)
		r = make_room(c, &place, p->spec->run_id, e);
	if (r == 0)
		r = enable(&place, wanted, e);
	if (r == 0)
		r = make_dirs(c, &place, p, e);
	if (r == 0)
		r = open_way_in(c, e);
	free(place.dir);
	return r;
}

int cgroup2_begin(struct cgroup *c, const struct cgroup_map *m, unsigned wanted)
{
	struct cgroup_dir *d = &c->dirs[CG_UNIFIED];
	struct ward_err ignored = { 0 }; /* what is wrong is said by create() */
	struct place place = { 0 };
	struct timespec now = { 0 };
	int r = -ENOTSUP;

	if (!m->dir[CG_UNIFIED] || !has_clone3() || !find_place(m, wanted, &place))
		return r;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((place.enabled & wanted) == wanted &&
	    asprintf(&d->path, "%s/" CGROUP_EARLY "%d-%llx-%lx", place.dir, getpid(),
		     (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec) < 0)
		d->path = NULL;
	if (d->path)
		r = cgroup_dir_make(d, &ignored);
	if (r == 0 && flock(d->fd, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	c->enabled = place.enabled;
	free(place.dir);
	return r;
}

bool cgroup2_suits(const struct cgroup *c, const struct plan *p)
{
	unsigned wanted = wanted_controllers(p);

	return wanted && (c->enabled & wanted) == wanted && !p->spec->policy.proc_nesting;
}

int cgroup2_limit(const struct cgroup *c, const struct plan *p, struct ward_err *e)
{
	return write_limits(&c->dirs[CG_UNIFIED], p, e);
}

int cgroup_leave_leaf(int leaf_fd)
{
	static const char off[] = "-memory -pids -cpu";
	auto_fd parent = openat(leaf_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pids[LEAF_PIDS];
	ssize_t n = cgroup_read_pids(leaf_fd, pids, ARRAY_LEN(pids));
	int r;

	if (parent < 0)
		return -errno;
	if (n <= 0)
		return (int)n;
	/* a cgroup with processes has no controllers for children; where another run needs them
	 * this fails */
	r = io_write_file(parent, "cgroup.subtree_control", off);
	for (ssize_t i = 0; i < n && i < LEAF_PIDS && r == 0; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", pids[i]);
		r = io_write_file(parent, "cgroup.procs", text);
		if (r == -ESRCH)
			r = 0;
	}
	return r;
}

static void leave(struct cgroup *c)
{
	if (c->own.fd < 0 || cgroup_leave_leaf(c->own.fd) == 0)
		return;
	free(c->own.path);
	c->own.path = NULL; /* we are in it: it stays, and goes with the scope */
}

static int attach(unused_arg struct cgroup *c, unused_arg pid_t pid, unused_arg struct ward_err *e)
{
	return 0; /* cloned into it */
}

/* ---- freezing, killing ---- */

static int wait_key(int fd, const char *key, uint64_t value, int tries, long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000L };

	for (int i = 0; i < tries; i++) {
		if (cgroup_read_key(fd, "cgroup.events", key) == value)
			return 0;
		nanosleep(&t, NULL);
	}
	return -EBUSY;
}

static int freeze(struct cgroup *c, bool frozen)
{
	int r = io_write_file(c->dirs[CG_UNIFIED].fd, "cgroup.freeze", frozen ? "1" : "0");

	return r == -ENOENT ? -ENOTSUP : r;
}

static int is_still(struct cgroup *c)
{
	return cgroup_read_key(c->dirs[CG_UNIFIED].fd, "cgroup.events", "frozen") == 1;
}

static int kill_all(struct cgroup *c)
{
	int fd = c->dirs[CG_UNIFIED].fd;
	int r = io_write_file(fd, "cgroup.kill", "1");

	return r < 0 ? r : wait_key(fd, "populated", 0, KILL_TRIES, 5);
}

/* ---- counting ---- */

static void usage(struct cgroup *c, struct usage *u)
{
	int fd = c->dirs[CG_UNIFIED].fd;
	auto_buf cpu = { 0 };
	uint64_t number;

	u->memory_bytes = cgroup_read_number(fd, "memory.current");
	number = cgroup_read_number(fd, "memory.peak");
	if (number < u->memory_bytes) /* before Linux 5.19 there is no such file */
		number = u->memory_bytes;
	if (number > u->memory_peak_bytes)
		u->memory_peak_bytes = number;
	if (cgroup_read_key(fd, "memory.events", "oom_kill") > 0)
		u->hit[LIMIT_MEMORY] = true;
	number = cgroup_read_number(fd, "pids.current");
	if (number)
		u->pids = number;
	u->pids_refused = cgroup_read_key(fd, "pids.events", "max");
	if (io_read_file(fd, "cpu.stat", 1u << 16, &cpu) < 0)
		return;
	number = cgroup_text_key(buf_text(&cpu), "usage_usec") / 1000;
	if (number > u->cpu_ms)
		u->cpu_ms = number;
	u->cpu_throttled_ms = cgroup_text_key(buf_text(&cpu), "throttled_usec") / 1000;
}

static int event_open(struct cgroup *c)
{
	auto_fd fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[64];

	if (fd < 0)
		return -errno;
	/* by descriptor: the directory's name may be long */
	snprintf(path, sizeof(path), "/proc/self/fd/%d/memory.events", c->dirs[CG_UNIFIED].fd);
	if (inotify_add_watch(fd, path, IN_MODIFY) < 0)
		return -errno;
	return take_fd(&fd);
}

const struct cgroup_ops cgroup2_ops = {
	.kind = CGROUP_V2,
	.probe = probe,
	.create = create,
	.attach = attach,
	.freeze = freeze,
	.is_still = is_still,
	.kill = kill_all,
	.usage = usage,
	.event_open = event_open,
	.leave = leave,
};
