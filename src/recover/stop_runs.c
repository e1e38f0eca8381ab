/*
 * The emergency stop. In: the records of runs (state/store.h), which name the cgroups and the first
 * process of each sandbox. Out: none of them runs a further instruction, then all are dead. Runs in
 * `ward kill --all` and `ward panic` with the caller's rights, which are those of the supervisors.
 * No supervisor is asked, because one may hang, be stopped, or wait for a full disk or a dead
 * journal; nothing is written to a disk; nothing is allocated that grows with a sandbox's files.
 *
 *	halt	each sandbox as soon as its record is read: the freezer of cgroup v2; else
 *		SIGKILL to the first process and to every one that the cgroup, or /proc, lists
 *	end	when all of them stand still: cgroup.kill, thaw, and SIGKILL once more
 *	wait	until each first process is dead, which it is after all others of its namespace
 *
 * A first process is used only if it has the number (of pidfs, or of the time of its start) that
 * the record says, so a number that was used again is never hit. What is listed comes after the
 * first process was killed: a child that is forked in between dies with the namespace.
 */
#include "recover/stop_runs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <time.h>

#include "base/io.h"
#include "limit/limits.h"
#include "recover/process_tree.h"
#include "state/store_internal.h"

#define DYING_MS 10000   /* a process may wait for a disk */
#define AGAIN_MS 20      /* between two tries to kill */
#define STARTING_MS 2000 /* from a record to its first process */
#define STARTING_LOOK_MS 2

struct target {
	struct stopped_run run;
	struct dead_run record;
	int pid_fd;  /* -1: it was dead when its record was read, or is */
	bool inside; /* the first of a namespace: all others end with it */
	bool seen;   /* it has a first process, or had */
};

struct targets {
	struct target *items;
	size_t len, cap;
};

/* ---- one sandbox ---- */

/* Holds the sandbox's first process; -1: it is dead, or was never there. */
static int hold_first(const struct dead_run *d)
{
	auto_fd fd = -1;

	if (d->init_pid <= 1 || strcmp(io_boot_id(), d->init_boot) != 0)
		return -1;
	fd = pidfd_open(d->init_pid, 0);
	if (fd < 0 || (d->numbered ? store_process_number(fd) : store_process_start(d->init_pid)) !=
			      d->init_start)
		return -1;
	return take_fd(&fd);
}

/* By the first directory that holds processes; those beside it hold the same. */
static bool halt_cgroup(const struct strv *dirs)
{
	for (size_t i = 0; i < dirs->len; i++) {
		size_t n = strlen(dirs->items[i]);
		auto_fd fd = -1;

		if (cgroup_is_leaf(dirs->items[i]) ||
		    (n > 4 && strcmp(dirs->items[i] + n - 4, "/box") == 0))
			continue; /* what is below is halted with the directory above */
		fd = cgroup_open_named(dirs->items[i]);
		if (fd >= 0 && cgroup_halt(fd) > 0)
			return true;
	}
	return false;
}

static void halt(struct target *t)
{
	if (t->pid_fd < 0)
		return;
	if (halt_cgroup(&t->record.cgroups))
		return;
	if (t->inside)
		(void)!pidfd_send_signal(t->pid_fd, SIGKILL, NULL, 0);
	(void)!process_tree_kill(t->record.init_pid, t->pid_fd);
}

/* Without a namespace, a first process that dies before the others leaves them to their
 * supervisor: it goes last. */
static void end(struct target *t)
{
	if (t->pid_fd < 0)
		return;
	if (t->inside)
		(void)!pidfd_send_signal(t->pid_fd, SIGKILL, NULL, 0);
	for (size_t i = 0; i < t->record.cgroups.len; i++) {
		auto_fd fd = cgroup_is_leaf(t->record.cgroups.items[i])
				     ? -1
				     : cgroup_open_named(t->record.cgroups.items[i]);

		if (fd >= 0)
			cgroup_end(fd);
	}
	if (process_tree_kill(t->record.init_pid, t->pid_fd) == 0)
		(void)!pidfd_send_signal(t->pid_fd, SIGKILL, NULL, 0);
}

/* ---- all of them ---- */

static struct target *find(struct targets *v, const char *id)
{
	for (size_t i = 0; i < v->len; i++)
		if (strcmp(v->items[i].run.id, id) == 0)
			return &v->items[i];
	return NULL;
}

static struct target *add(struct targets *v, const char *id, const char *slot)
{
	struct target *t;

	if (v->len == v->cap) {
		size_t cap = v->cap ? v->cap * 2 : 64;
		struct target *grown = reallocarray(v->items, cap, sizeof(*grown));

		if (!grown)
			return NULL;
		v->items = grown;
		v->cap = cap;
	}
	t = &v->items[v->len++];
	*t = (struct target){ .pid_fd = -1 };
	snprintf(t->run.id, sizeof(t->run.id), "%.31s", id);
	snprintf(t->run.slot, sizeof(t->run.slot), "%.31s", slot);
	return t;
}

/* A run in the foreground has no entry in its first moments. One whose ward is dead has another
 * parent. */
static void note_supervisor(struct target *t)
{
	pid_t pid = process_parent(t->record.init_pid);
	auto_buf name = { 0 };
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (pid <= 1 || io_read_file(AT_FDCWD, path, 64, &name) < 0 ||
	    strncmp(buf_text(&name), "ward", 4) != 0)
		return;
	t->run.supervisor_start = store_process_start(pid);
	t->run.supervisor = pid;
}

/* Reads one record and halts its sandbox. 1: it has no first process yet; 0; -errno. */
static int take_one(struct targets *v, int live_fd, const char *slot)
{
	auto_fd fd = openat(live_fd, slot, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct dead_run d = { 0 };
	struct target *t;
	int r = fd < 0 ? -errno : store_read_brief(fd, &d);
	const char *id = d.id[0] ? d.id : slot;

	if (r < 0) {
		dead_run_clear(&d);
		return r == -ENOENT || r == -ENODATA ? 0 : r;
	}
	t = find(v, id);
	if (!t)
		t = add(v, id, slot);
	if (!t || t->seen) {
		dead_run_clear(&d);
		return t ? 0 : -ENOMEM;
	}
	dead_run_clear(&t->record);
	t->record = d;
	t->seen = d.init_pid > 0;
	t->pid_fd = hold_first(&d);
	t->inside = t->pid_fd >= 0 && process_is_namespace_init(d.init_pid);
	halt(t);
	if (t->pid_fd >= 0)
		note_supervisor(t);
	return !t->seen;
}

/* One pass over the records. Returns how many runs have no process yet, or -errno. */
static int take_all(struct targets *v, struct ward_err *e)
{
	auto_fd state = store_open(e);
	auto_dir list = NULL;
	int live, starting = 0;

	if (state < 0)
		return state;
	live = openat(state, STORE_LIVE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (live < 0)
		return errno == ENOENT ? 0 : ward_fail_errno(e, "cannot open the records of runs");
	list = fdopendir(live);
	if (!list) {
		close(live);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
		int r = entry->d_name[0] == '.' ? 0 : take_one(v, live, entry->d_name);

		starting += r > 0;
		if (r < 0 && e->code == 0) { /* the others are stopped all the same */
			ward_fail(e, -r, "cannot read the record %s of a run: %s", entry->d_name,
				  strerror(-r));
			ward_remedy(e, "ward ps lists the runs; kill that one's supervisor");
		}
	}
	return starting;
}

static bool is_dead(struct target *t, int wait_ms)
{
	struct pollfd p = { .fd = t->pid_fd, .events = POLLIN };

	if (t->pid_fd >= 0 && poll(&p, 1, wait_ms) == 1)
		close(take_fd(&t->pid_fd));
	return t->pid_fd < 0;
}

/* Until all are dead; kills again what was forked while it was listed. */
static size_t wait_dead(struct targets *v)
{
	uint64_t until = io_now_ms() + DYING_MS, again = io_now_ms() + AGAIN_MS;
	size_t alive = v->len;

	while (alive && io_now_ms() < until) {
		bool kill_again = io_now_ms() >= again;

		if (kill_again)
			again = io_now_ms() + AGAIN_MS;
		alive = 0;
		for (size_t i = 0; i < v->len; i++) {
			struct target *t = &v->items[i];

			/* one wait a round, for the first that lives */
			if (t->pid_fd < 0 || is_dead(t, alive ? 0 : AGAIN_MS))
				continue;
			alive++;
			if (kill_again)
				end(t);
		}
	}
	return alive;
}

static int give(struct targets *v, struct stopped_runs *ret_runs, struct ward_err *e)
{
	struct stopped_runs out = { .items = calloc(v->len + 1, sizeof(*out.items)) };

	for (size_t i = 0; i < v->len; i++) {
		struct target *t = &v->items[i];

		t->run.dead = t->pid_fd < 0;
		if (out.items)
			out.items[out.len++] = t->run;
		if (t->pid_fd >= 0)
			close(t->pid_fd);
		dead_run_clear(&t->record);
	}
	free(v->items);
	*ret_runs = out;
	return out.items ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

/* One descriptor for each sandbox, and some more. */
static void allow_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

int stop_runs(bool starts, struct stopped_runs *ret_runs, struct ward_err *e)
{
	const struct timespec moment = { .tv_nsec = STARTING_LOOK_MS * 1000000L };
	uint64_t until = io_now_ms() + STARTING_MS;
	struct targets v = { 0 };
	size_t alive;
	int starting, r;

	*ret_runs = (struct stopped_runs){ 0 };
	allow_descriptors();
	starting = take_all(&v, e);
	for (size_t i = 0; i < v.len; i++)
		end(&v.items[i]);
	while (starts && starting > 0 && io_now_ms() < until) {
		nanosleep(&moment, NULL);
		starting = take_all(&v, e);
		for (size_t i = 0; i < v.len; i++)
			end(&v.items[i]);
	}
	alive = wait_dead(&v);
	r = give(&v, ret_runs, e);
	if (alive && r == 0) {
		ward_fail(e, ETIMEDOUT,
			  "%zu sandboxes are killed but not gone yet: they wait for the kernel",
			  alive);
		r = ward_remedy(e, "ward ps lists them; a disk or network mount may hang");
	}
	return r < 0 ? r : starting < 0 || e->code ? -e->code : 0;
}

bool stopped_run_is_over(const struct stopped_run *r)
{
	struct ward_err ignored = { 0 };
	auto_fd state = store_open(&ignored), live = -1, fd = -1;
	struct dead_run d = { 0 };
	bool same;

	if (state < 0)
		return false;
	live = openat(state, STORE_LIVE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = live < 0 ? -1 : openat(live, r->slot, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return true;
	same = store_read_brief(fd, &d) == 0 && strcmp(d.id[0] ? d.id : r->slot, r->id) == 0;
	dead_run_clear(&d);
	return !same || flock(fd, LOCK_SH | LOCK_NB) == 0;
}
