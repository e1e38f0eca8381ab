/*
 * Holding what the guard's mounts lie on. In: the steps of a writable tree, before the run; after
 * it, the tree. Out: each thing stands where it stood. Runs in the supervisor, and only where
 * process.nesting lets the command make mount namespaces.
 *
 * A process in a mount namespace of its own can leave every mount behind: what it reaches through a
 * descriptor is no mount point to it any more, and it may rename and remove what the guard covers
 * (not read or write it: those mounts are locked, and follow the name). So nothing that happened to
 * such a name during the run is believed to be the operator's. A descriptor keeps each thing alive.
 * After the last process is dead what is not in its place is taken out of whatever it was put into
 * first, then what stands in its place goes to the quarantine, and then it is put back, parents
 * before children. A file without a name is copied from its descriptor; a directory without one was
 * empty, and is made anew.
 *
 * Descriptors are bounded; what is beyond the bound is known by number: a replacement goes to the
 * quarantine, and that nothing was put back is said.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/path.h"
#include "guard/guard_internal.h"
#include "guard/guard_move.h"

/* the highest descriptor; at most half of those that the process may have */
#define HELD_MAX 4096
#define TAKEN "replaced a protected or hidden file, which ward restored (process.nesting)"

/* What a step stood for when the plan was made. */
struct guard_held {
	/* O_RDONLY of a regular file, else O_PATH; -1: known by number only */
	int fd;
	uint64_t device, inode;
	int64_t born_ns;
};

struct back {
	const struct guard_root *g;
	int root_fd;
	const struct guard_taker *taker;
	unsigned *rescued; /* of each step: the number of its name at the top; 0: none */
	unsigned last;
	struct strv *told;
	struct ward_err *e;
	int failure;
};

/* The number of dir_fd/name ("": dir_fd itself). */
static bool number_of(int dir_fd, const char *name, struct guard_held *ret)
{
	struct statx st;

	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH),
		  STATX_INO | STATX_BTIME, &st) < 0)
		return false;
	*ret = (struct guard_held){ .fd = -1,
				    .device = makedev(st.stx_dev_major, st.stx_dev_minor),
				    .inode = st.stx_ino };
	if (st.stx_mask & STATX_BTIME)
		ret->born_ns = st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
	return true;
}

/* Whether dir_fd/name is what is held. */
static bool is_it(const struct guard_held *h, int dir_fd, const char *name)
{
	struct guard_held was = *h, now;

	if (h->fd >= 0 && !number_of(h->fd, "", &was))
		return false;
	return number_of(dir_fd, name, &now) && now.inode && now.inode == was.inode &&
	       now.device == was.device && now.born_ns == was.born_ns;
}

static int hold_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur / 2 > HELD_MAX)
		return HELD_MAX;
	return (int)(files.rlim_cur / 2);
}

/* Holds one step. Returns whether there was a descriptor for it. */
static bool hold(struct guard_held *h, int root_fd, const char *path, int limit)
{
	struct ward_err gone;
	auto_fd at = path_open_nolink(root_fd, path, O_PATH | O_NOFOLLOW, &gone);
	char link[32];
	struct stat st;
	int fd;

	*h = (struct guard_held){ .fd = -1 };
	if (at < 0 || fstat(at, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) ||
	    !number_of(at, "", h))
		return true; /* gone this moment, or a socket: its owner may remove it */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	fd = S_ISREG(st.st_mode) ? open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	if (fd < 0)
		fd = take_fd(&at);
	if (fd < limit) {
		h->fd = fd;
		return true;
	}
	close(fd);
	return false;
}

int guard_hold(struct guard_root *g, int root_fd, struct strv *notes, struct ward_err *e)
{
	int limit = hold_limit();
	size_t missed = 0;

	g->held = calloc(g->step_count + 1, sizeof(*g->held));
	if (!g->held)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < g->step_count; i++) {
		if (strv_has(&g->tainted, g->steps[i].path))
			/* another run's, perhaps: never put back */
			g->held[i] = (struct guard_held){ .fd = -1 };
		else
			missed += !hold(&g->held[i], root_fd, g->steps[i].path, limit);
	}
	if (missed)
		strv_addf(notes,
			  "process.nesting: %zu protected or hidden names in %s are too many to "
			  "hold; if the run replaces one, the new file is quarantined, but the old "
			  "one is not restored; raise ulimit -n",
			  missed, g->path);
	return notes->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

void guard_hold_end(struct guard_root *g)
{
	for (size_t i = 0; g->held && i < g->step_count; i++)
		if (g->held[i].fd >= 0)
			close(g->held[i].fd);
	free(g->held);
	g->held = NULL;
}

bool guard_is_held(const struct guard_root *g, const char *path, size_t len)
{
	const struct guard_step *step =
		g->held ? guard_find_step(g, g->step_count, path, len) : NULL;

	return step && g->held[step - g->steps].fd >= 0;
}

/* Lifts the owner's own lack of rights on a directory; returns the mode to put back, 0: none. */
static mode_t lift(int fd)
{
	char link[32];
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode) || (st.st_mode & 0700) == 0700)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return chmod(link, (st.st_mode & 07777) | 0700) < 0 ? 0 : st.st_mode & 07777;
}

static void lower(int fd, mode_t mode)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (mode)
		(void)!chmod(link, mode); /* it was ours a moment ago */
}

/* The directory that step i lies in, by descriptor wherever that is now; *ret_name is the step's
 * name there. */
static int open_above(const struct back *b, size_t i, const char **ret_name)
{
	const char *path = b->g->steps[i].path, *slash = strrchr(path, '/');
	const struct guard_step *above = NULL;
	auto_free char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	struct ward_err gone;

	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return fcntl(b->root_fd, F_DUPFD_CLOEXEC, 3);
	above = guard_find_step(b->g, b->g->step_count, path, (size_t)(slash - path));
	if (above && b->g->held[above - b->g->steps].fd >= 0)
		return fcntl(b->g->held[above - b->g->steps].fd, F_DUPFD_CLOEXEC, 3);
	return dir ? path_open_nolink(b->root_fd, dir, O_PATH | O_DIRECTORY, &gone) : -1;
}

/* Where a held directory lies now: its parent, and its name there. No path is asked: it may be
 * longer than any call takes. */
static int find_dir(const struct guard_held *h, char *name)
{
	mode_t mode = lift(h->fd), above = 0;
	auto_fd up = openat(h->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_dir list = NULL;
	bool found = false;
	int fd;

	lower(h->fd, mode);
	if (up < 0)
		return -1;
	above = lift(up);
	fd = openat(up, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list = fd < 0 ? NULL : fdopendir(fd);
	if (!list && fd >= 0)
		close(fd);
	for (struct dirent *entry = list ? readdir(list) : NULL; entry && !found;
	     entry = readdir(list)) {
		if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
		    strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		found = is_it(h, up, entry->d_name);
		if (found)
			snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	lower(up, above);
	return found ? take_fd(&up) : -1;
}

/* The same for what is no directory: by the path that the kernel tells, if that leads to it. */
static int find_file(const struct guard_held *h, char *name)
{
	char link[32], *slash;
	auto_free char *path = malloc(PATH_MAX);
	auto_fd top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), up = -1;
	struct ward_err gone;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", h->fd);
	n = path ? readlink(link, path, PATH_MAX - 1) : -1;
	if (n <= 0 || *path != '/')
		return -1;
	path[n] = '\0';
	slash = strrchr(path, '/');
	*slash = '\0';
	up = path_open_nolink(top, *path ? path + 1 : ".", O_PATH | O_DIRECTORY, &gone);
	snprintf(name, NAME_MAX + 1, "%s", slash + 1);
	return up >= 0 && is_it(h, up, name) ? take_fd(&up) : -1;
}

/* If the held thing is not in its directory any more but somewhere else, takes it to the top of the
 * tree. */
static void rescue(struct back *b, size_t i)
{
	const struct guard_held *h = &b->g->held[i];
	const char *own;
	char name[NAME_MAX + 1], top[40];
	auto_fd above = open_above(b, i, &own), at = -1;
	mode_t mode = above < 0 ? 0 : lift(above);
	bool in_place = above >= 0 && is_it(h, above, own);
	struct ward_err ignored;
	int status = -EEXIST;

	lower(above, mode);
	if (h->fd < 0 || in_place)
		return;
	at = b->g->steps[i].is_dir ? find_dir(h, name) : find_file(h, name);
	if (at < 0)
		return;
	mode = lift(at);
	while (status == -EEXIST && b->last < 100000) {
		snprintf(top, sizeof(top), ".ward-put-back.%u", ++b->last);
		status = guard_move(at, name, b->root_fd, top, &ignored);
	}
	lower(at, mode);
	if (status >= 0)
		b->rescued[i] = b->last;
}

/* Makes a directory that had to be empty to be removed; it is what is held from now on. */
static int make_dir(struct guard_held *h, const struct stat *st, int dir_fd, const char *name,
		    struct ward_err *e)
{
	char link[32];
	int fd;

	if (mkdirat(dir_fd, name, 0700) < 0)
		return ward_fail_errno(e, "cannot make it");
	fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd < 0 || (geteuid() == 0 && chown(link, st->st_uid, st->st_gid) < 0) ||
	    chmod(link, st->st_mode & 0777) < 0) {
		if (fd >= 0)
			close(fd);
		return ward_fail_errno(e, "cannot make it");
	}
	close(h->fd);
	h->fd = fd;
	return 0;
}

/* Puts the held thing where it was; nothing stands there. */
static int bring(struct back *b, size_t i, int dir_fd, const char *name, struct ward_err *e)
{
	struct guard_held *h = &b->g->held[i];
	char top[40];
	struct stat st;
	int status;

	snprintf(top, sizeof(top), ".ward-put-back.%u", b->rescued[i]);
	if (b->rescued[i])
		return guard_move(b->root_fd, top, dir_fd, name, e);
	if (h->fd < 0 || fstat(h->fd, &st) < 0)
		return ward_fail(e, ENOENT, "ward did not hold it open");
	if (S_ISDIR(st.st_mode))
		return make_dir(h, &st, dir_fd, name, e);
	status = S_ISREG(st.st_mode) ? guard_copy_held(h->fd, &st, dir_fd, name) : -ENOTSUP;
	return status < 0 ? ward_fail(e, -status, "cannot copy it: %s", strerror(-status)) : 0;
}

/* Step i: what stands in its place goes, the thing itself comes back. */
static int put_back(struct back *b, size_t i)
{
	const char *path = b->g->steps[i].path, *name;
	struct guard_held *h = &b->g->held[i];
	auto_fd above = open_above(b, i, &name);
	struct ward_err e = { 0 };
	mode_t mode = above < 0 ? 0 : lift(above);
	struct stat st;
	bool stands;
	int status = 0;

	if ((h->fd < 0 && !h->inode) || (above >= 0 && !b->rescued[i] && is_it(h, above, name))) {
		lower(above, mode);
		return 0;
	}
	stands = above >= 0 && fstatat(above, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (stands)
		status = b->taker->take(b->taker->ctx, above, name, path, TAKEN);
	if (status >= 0)
		status = above < 0 ? ward_fail(&e, ENOENT, "its directory is gone")
				   : bring(b, i, above, name, &e);
	lower(above, mode);
	if (status < 0)
		strv_addf(b->told, "%s: NOT RESTORED, the run had removed it: %s", path, e.why);
	else if (!stands)
		strv_addf(b->told,
			  "%s: not quarantined but restored: the run had removed it "
			  "(process.nesting)",
			  path);
	if (status < 0 && !b->failure) {
		*b->e = e;
		b->failure = ward_wrap(b->e, "restoring %s, which the run had removed", path);
	}
	return b->told->failed ? ward_fail(b->e, ENOMEM, "out of memory") : 0;
}

int guard_put_back(const struct guard_root *g, int root_fd, const struct guard_taker *taker,
		   struct strv *told, struct ward_err *e)
{
	auto_free unsigned *rescued = calloc(g->step_count + 1, sizeof(*rescued));
	struct back b = {
		.g = g, .root_fd = root_fd, .taker = taker, .rescued = rescued, .told = told, .e = e
	};

	if (!rescued)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < g->step_count; i++)
		rescue(&b, i);
	for (size_t i = 0; i < g->step_count; i++) {
		int status = put_back(&b, i);

		if (status < 0)
			return status;
	}
	return b.failure;
}
