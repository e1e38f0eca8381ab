/*
 * Limits held by the kernel for a whole sandbox. In: a plan whose limits are HELD_CGROUP*. Out:
 * directories named ward-<run id> below the caller's own cgroups, with the limits written, and
 * processes put into them. Runs in the supervisor with the user's rights, and in the process that
 * finishes what a killed supervisor left.
 *
 * This file is the table of kinds and what they share; cgroup1.c and cgroup2.c are the kinds.
 * v2 is tried first: on a hybrid host, where it is mounted without controllers, its probe says
 * no and v1 is taken.
 *
 * Removal is the dangerous part, for the paths may come from a record on disk: a directory is
 * only touched when its name is one that ward gives, no symbolic link lies on its way, and it
 * is in a cgroup file system; processes are killed by pidfd after a second look at the list, so
 * that a reused pid is never hit.
 */
#include "limit/cgroup_kind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"

#define FREEZE_TRIES 200 /* of 1 ms */
#define NAME_PREFIX "ward-"
#define DEPTH_MAX 32      /* of directories that are looked through */
#define KILL_TRIES 200    /* of 5 ms */
#define REMOVE_TRIES 1000 /* of 2 ms: exiting processes linger where the machine is busy */

static const struct cgroup_ops *const kinds[] = { &cgroup2_ops, &cgroup1_ops };

static void sleep_ms(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000L };

	nanosleep(&t, NULL);
}

/* ---- probing and the run's directories ---- */

void cgroup_probe_info(struct cgroup_info *info)
{
	struct ward_err e = { 0 };
	struct cgroup_map map;

	memset(info, 0, sizeof(*info));
	if (cgroup_map_read(&map, &e) < 0) {
		snprintf(info->why, sizeof(info->why), "%.250s", e.why);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i]->probe(&map, info)) {
			info->kind = kinds[i]->kind;
			info->why[0] = info->remedy[0] = '\0';
			break;
		}
	}
	if (info->kind == CGROUP_NONE && !info->why[0])
		snprintf(info->why, sizeof(info->why), "no cgroup file system is mounted here");
	cgroup_map_clear(&map);
}

enum cgroup_kind cgroup_probe(void)
{
	enum cgroup_kind kind = CGROUP_NONE;
	struct ward_err e = { 0 };
	struct cgroup_map map;

	if (cgroup_map_read(&map, &e) < 0)
		return CGROUP_NONE;
	for (size_t i = 0; i < ARRAY_LEN(kinds) && kind == CGROUP_NONE; i++)
		if (kinds[i]->probe(&map, NULL))
			kind = kinds[i]->kind;
	cgroup_map_clear(&map);
	return kind;
}

static void dir_init(struct cgroup_dir *d)
{
	*d = (struct cgroup_dir){ .fd = -1, .join_fd = -1 };
}

static struct cgroup *cgroup_new(const struct cgroup_ops *ops)
{
	struct cgroup *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->ops = ops;
	c->event_fd = -1;
	for (unsigned i = 0; i < CG_PLACES; i++)
		dir_init(&c->dirs[i]);
	dir_init(&c->inner);
	dir_init(&c->own);
	return c;
}

static const struct cgroup_ops *ops_of_plan(const struct plan *p)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i]->kind == p->facts.cgroup)
			return kinds[i];
	return NULL;
}

int cgroup_create(const struct plan *p, struct cgroup **ret_cgroup, struct ward_err *e)
{
	const struct cgroup_ops *ops = ops_of_plan(p);
	struct cgroup_map map;
	struct cgroup *c;
	int r;

	if (!ops)
		return ward_fail(e, ENOTSUP,
				 "the plan has limits for a cgroup, but this host has none");
	r = cgroup_map_read(&map, e);
	if (r < 0)
		return r;
	c = cgroup_new(ops);
	if (c)
		c->pids_limit = limits_host_pids(p);
	r = c ? ops->create(c, &map, p, e) : ward_fail(e, ENOMEM, "out of memory");
	cgroup_map_clear(&map);
	if (r < 0) {
		cgroup_destroy(c);
		return ward_wrap(e, "setting up the cgroup");
	}
	*ret_cgroup = c;
	return 0;
}

struct cgroup *cgroup_begin(void)
{
	struct ward_err ignored = { 0 };
	struct cgroup_map map;
	struct cgroup *c;
	struct statfs fs;

	/* elsewhere v2 is not what holds limits; the child of a v1 host joins its cgroups later */
	if (statfs("/sys/fs/cgroup", &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC ||
	    cgroup_map_read(&map, &ignored) < 0)
		return NULL;
	c = cgroup_new(&cgroup2_ops);
	if (c && cgroup2_begin(c, &map, CGROUP2_LIMITS) < 0) {
		cgroup_destroy(c);
		c = NULL;
	}
	cgroup_map_clear(&map);
	return c;
}

bool cgroup_suits(const struct cgroup *c, const struct plan *p)
{
	return p->facts.cgroup == CGROUP_V2 && cgroup2_suits(c, p);
}

int cgroup_limit(struct cgroup *c, const struct plan *p, struct ward_err *e)
{
	int r = cgroup2_limit(c, p, e);

	c->pids_limit = limits_host_pids(p);
	return r < 0 ? ward_wrap(e, "setting up the cgroup") : 0;
}

int cgroup_clone_fd(const struct cgroup *c)
{
	if (c->ops->kind != CGROUP_V2 || c->dirs[CG_UNIFIED].join_fd >= 0)
		return -1;
	return c->inner.fd >= 0 ? c->inner.fd : c->dirs[CG_UNIFIED].fd;
}

size_t cgroup_self_fds(const struct cgroup *c, int *fds, size_t cap)
{
	size_t n = 0;

	for (unsigned i = 0; i < CG_PLACES; i++)
		if (c->dirs[i].join_fd >= 0 && n < cap)
			fds[n++] = c->dirs[i].join_fd;
	return n;
}

int cgroup_attach(struct cgroup *c, pid_t pid, struct ward_err *e)
{
	return c->ops->attach(c, pid, e);
}

int cgroup_freeze_unless(struct cgroup *c, bool (*enough)(void *arg), void *arg)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	int r = c->ops->freeze(c, true);

	for (int i = 0; r >= 0 && i < FREEZE_TRIES; i++) {
		r = c->ops->is_still(c);
		c->frozen = r > 0;
		if (r != 0)
			return r < 0 ? r : 0;
		if (enough && enough(arg))
			break;
		nanosleep(&moment, NULL);
	}
	return r < 0 ? r : -EBUSY;
}

int cgroup_freeze(struct cgroup *c, bool frozen)
{
	int r = frozen ? cgroup_freeze_unless(c, NULL, NULL) : c->ops->freeze(c, false);

	if (r >= 0)
		c->frozen = frozen;
	return r;
}

int cgroup_kill(struct cgroup *c)
{
	return c->ops->kill(c);
}

void cgroup_usage(struct cgroup *c, struct usage *u)
{
	c->ops->usage(c, u);
	if (c->pids_limit == POLICY_NONE)
		return;
	u->hit[LIMIT_PIDS] |= u->pids_refused > 0;
	u->pids_storm |=
		limits_pids_storm(&c->storm, u->pids_refused > 0 && u->pids >= c->pids_limit,
				  u->pids_refused, io_now_ms());
}

int cgroup_event_fd(struct cgroup *c)
{
	if (c->event_fd < 0) {
		int fd = c->ops->event_open(c);

		c->event_fd = fd < 0 ? -1 : fd;
	}
	return c->event_fd;
}

void cgroup_event_read(struct cgroup *c, struct usage *u)
{
	struct pollfd ready = { .fd = c->event_fd, .events = POLLIN };
	char bytes[4096];

	while (c->event_fd >= 0 && poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN))
		if (read(c->event_fd, bytes, sizeof(bytes)) <= 0)
			break;
	cgroup_usage(c, u);
}

void cgroup_dirs(const struct cgroup *c, struct strv *dirs)
{
	if (c->inner.path)
		strv_add(dirs, c->inner.path);
	for (unsigned i = 0; i < CG_PLACES; i++)
		if (c->dirs[i].path && !c->dirs[i].joined)
			strv_add(dirs, c->dirs[i].path);
	if (c->own.path)
		strv_add(dirs, c->own.path);
}

static void add_planned(const char *below, size_t n, const struct plan *p, struct strv *dirs)
{
	strv_addf(dirs, "%.*s/ward-%s/box", (int)n, below, p->spec->run_id);
	strv_addf(dirs, "%.*s/ward-%s", (int)n, below, p->spec->run_id);
	strv_addf(dirs, "%.*s/ward-%s-self", (int)n, below, p->spec->run_id);
}

void cgroup_planned_dirs(const struct plan *p, struct strv *dirs)
{
	struct cgroup_map map;
	struct ward_err ignored = { 0 }; /* cgroup_create() says it */

	if (!ops_of_plan(p) || cgroup_map_read(&map, &ignored) < 0)
		return;
	for (unsigned i = 0; i < CG_PLACES; i++) {
		const char *dir = map.dir[i];

		if (!dir)
			continue;
		add_planned(dir, strlen(dir), p, dirs);
		/* v2 may put it beside our own; a name that is not there is skipped when it is
		 * removed */
		if (i == CG_UNIFIED && strcmp(dir, map.mount[i]) != 0)
			add_planned(dir, (size_t)(strrchr(dir, '/') - dir), p, dirs);
	}
	cgroup_map_clear(&map);
}

void cgroup_destroy(struct cgroup *c)
{
	if (!c)
		return;
	if (c->frozen && c->ops->freeze(c, false) < 0)
		c->frozen = true; /* what is inside dies frozen where the kernel allows that;
				     removal says */
	if (c->ops->kind == CGROUP_V2)
		io_close_later(c->event_fd); /* inotify */
	else
		own_close_fd(&c->event_fd);
	cgroup_dir_drop(&c->inner);
	for (unsigned i = 0; i < CG_PLACES; i++)
		cgroup_dir_drop(&c->dirs[i]);
	if (c->ops->leave)
		c->ops->leave(c);
	cgroup_dir_drop(&c->own);
	free(c);
}

/* ---- small files ---- */

uint64_t cgroup_read_number(int dir_fd, const char *file)
{
	auto_buf text = { 0 };

	if (io_read_file(dir_fd, file, 64, &text) < 0)
		return 0;
	return strtoull(buf_text(&text), NULL, 10);
}

uint64_t cgroup_read_key(int dir_fd, const char *file, const char *key)
{
	auto_buf text = { 0 };

	return io_read_file(dir_fd, file, 1u << 16, &text) < 0
		       ? 0
		       : cgroup_text_key(buf_text(&text), key);
}

uint64_t cgroup_text_key(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, key, n) == 0 && at[n] == ' ')
			return strtoull(at + n + 1, NULL, 10);
	}
	return 0;
}

ssize_t cgroup_read_pids(int dir_fd, pid_t *pids, size_t cap)
{
	auto_buf text = { 0 };
	size_t count = 0;
	char *at;
	int r = io_read_file(dir_fd, "cgroup.procs", 64u << 20, &text);

	if (r < 0)
		return r;
	for (at = text.data; at && *at;) {
		char *end;
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		if (pid > 0 && count++ < cap) /* 0: outside of our pid namespace */
			pids[count - 1] = (pid_t)pid;
		at = *end == '\n' ? end + 1 : end;
	}
	return (ssize_t)count;
}

/* ---- making ---- */

bool cgroup_may_create(const char *dir)
{
	auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

int cgroup_dir_make(struct cgroup_dir *d, struct ward_err *e)
{
	if (mkdir(d->path, 0755) < 0) {
		int r = ward_fail_errno(e, "cannot make %s", d->path);

		own_free(&d->path);
		d->path = NULL; /* not ours: never removed */
		return r;
	}
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return d->fd < 0 ? ward_fail_errno(e, "cannot open %s", d->path) : 0;
}

/* ---- killing and removing ---- */

#define KILL_BATCH 64

static bool pid_in(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* Kills the first few; returns how many processes are there, the caller itself not counted. */
static ssize_t kill_batch(int dir_fd)
{
	pid_t first[KILL_BATCH], again[4 * KILL_BATCH];
	int fds[KILL_BATCH];
	ssize_t n = cgroup_read_pids(dir_fd, first, KILL_BATCH), m;
	size_t count = n < 0 ? 0 : (size_t)n < KILL_BATCH ? (size_t)n : KILL_BATCH;

	if (n <= 0)
		return n;
	for (size_t i = 0; i < count; i++)
		fds[i] = first[i] == getpid() ? -1 : pidfd_open(first[i], 0);
	m = cgroup_read_pids(dir_fd, again, ARRAY_LEN(again));
	for (size_t i = 0; i < count; i++) {
		size_t listed = m < 0                          ? 0
				: (size_t)m < ARRAY_LEN(again) ? (size_t)m
							       : ARRAY_LEN(again);

		if (fds[i] >= 0 && pid_in(again, listed, first[i]))
			pidfd_send_signal(fds[i], SIGKILL, NULL, 0);
		own_close_fd(&fds[i]);
	}
	return n - (pid_in(first, count, getpid()) ? 1 : 0);
}

int cgroup_kill_pids(int dir_fd)
{
	for (int i = 0; i < KILL_TRIES; i++) {
		ssize_t n = kill_batch(dir_fd);

		if (n <= 0)
			return n < 0 ? (int)n : 0;
		if (n <= KILL_BATCH)
			sleep_ms(5); /* all were hit: give them time to go */
	}
	return -EBUSY;
}

/* Ends what is inside, by the means of the file system it is in. */
static void empty_dir(int dir_fd)
{
	pid_t pids[256];
	ssize_t n = cgroup_read_pids(dir_fd, pids, ARRAY_LEN(pids));

	if (n == 0)
		return;
	/* v1: what is frozen does not die; files that are not there are not meant */
	if (io_write_file(dir_fd, "freezer.state", "THAWED") == 0 || n < 0)
		sleep_ms(1);
	if (io_write_file(dir_fd, "cgroup.kill", "1") < 0 && cgroup_kill_pids(dir_fd) < 0)
		sleep_ms(1);
}

static void remove_dir(const char *path, int dir_fd)
{
	for (int i = 0; i < REMOVE_TRIES; i++) {
		if (rmdir(path) == 0 || errno != EBUSY)
			return;
		if (i == 0)
			empty_dir(dir_fd);
		sleep_ms(2);
	}
}

void cgroup_dir_drop(struct cgroup_dir *d)
{
	if (d->path && d->fd >= 0 && !d->joined)
		remove_dir(d->path, d->fd);
	own_close_fd(&d->join_fd);
	own_close_fd(&d->fd);
	free(d->path);
	dir_init(d);
}

/* ward-<letters, digits, dashes>, as cgroup_create() makes them; "box" may lie below. */
static bool is_ward_name(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t n;

	if (!name)
		return false;
	n = strlen(path);
	if (n > 4 && strcmp(path + n - 4, "/box") == 0) {
		do
			name--;
		while (name > path && *name != '/');
		n -= 4;
	}
	name++;
	if (strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
		return false;
	name += strlen(NAME_PREFIX);
	if (name >= path + n)
		return false;
	for (; name < path + n; name++)
		if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-",
			    *name))
			return false;
	return true;
}

/* Where ward itself went to make room, see cgroup2.c: never killed. */
bool cgroup_is_leaf(const char *path)
{
	size_t n = strlen(path);

	return n > 5 && strcmp(path + n - 5, "-self") == 0;
}

static bool is_cgroup_fs(int fd)
{
	struct statfs s;

	return fstatfs(fd, &s) == 0 &&
	       (s.f_type == CGROUP_SUPER_MAGIC || s.f_type == CGROUP2_SUPER_MAGIC);
}

int cgroup_open_named(const char *name)
{
	struct ward_err e = { 0 };
	auto_free char *path = path_clean(name);
	auto_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

	if (root < 0 || !path || strcmp(path, name) != 0 || !is_ward_name(path))
		return -EINVAL;
	fd = path_open_nolink(root, path + 1, O_RDONLY | O_DIRECTORY, &e);
	if (fd < 0)
		return fd;
	return is_cgroup_fs(fd) ? take_fd(&fd) : -EINVAL;
}

void cgroup_remove_dirs(const struct strv *dirs)
{
	for (size_t i = 0; i < dirs->len; i++) {
		const char *path = dirs->items[i];
		auto_fd fd = cgroup_open_named(path);

		if (fd < 0)
			continue;
		if (!cgroup_is_leaf(path))
			empty_dir(fd);
		else if (cgroup_leave_leaf(fd) < 0)
			continue;
		remove_dir(path, fd);
	}
}

/* ---- what a start that was killed before its record has left ---- */

/* Nobody else's, and its maker is dead: a live one has the lock. A start that has made it but not
 * locked it yet finds it gone, and goes on without an early child. */
static bool is_orphan(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Takes dir_fd, which is `path`. Other sandboxes' directories are not entered: what is called how
 * in there is their processes' choice. */
static unsigned remove_orphans_in(int dir_fd, const char *path, unsigned depth)
{
	auto_dir list = fdopendir(dir_fd);
	unsigned removed = 0;

	if (!list)
		close(dir_fd);
	for (struct dirent *d = list ? readdir(list) : NULL; d; d = readdir(list)) {
		bool early = begins_with(d->d_name, CGROUP_EARLY);
		auto_free char *below = NULL;
		int fd;

		if (d->d_type != DT_DIR || d->d_name[0] == '.' ||
		    (!early && begins_with(d->d_name, NAME_PREFIX)) ||
		    asprintf(&below, "%s/%s", path, d->d_name) < 0)
			continue;
		fd = openat(dirfd(list), d->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!early && depth < DEPTH_MAX) {
			removed += remove_orphans_in(fd, below, depth + 1);
			continue;
		}
		if (early && is_orphan(fd)) {
			empty_dir(fd);
			remove_dir(below, fd);
			removed++;
		}
		close(fd);
	}
	return removed;
}

unsigned cgroup_remove_orphans(void)
{
	struct ward_err ignored = { 0 };
	struct cgroup_map map;
	unsigned removed = 0;
	int fd;

	if (cgroup_map_read(&map, &ignored) < 0)
		return 0;
	fd = map.mount[CG_UNIFIED] ? open(map.mount[CG_UNIFIED], O_RDONLY | O_DIRECTORY | O_CLOEXEC)
				   : -1;
	if (fd >= 0)
		removed = remove_orphans_in(fd, map.mount[CG_UNIFIED], 0);
	cgroup_map_clear(&map);
	return removed;
}
