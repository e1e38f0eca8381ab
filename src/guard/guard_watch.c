/*
 * Watching what the guard's mounts lie on. In: the steps of all roots. Out: which of them the host
 * undid. Runs in the supervisor while the sandbox runs.
 *
 * A mount on a name dies in every namespace when somebody outside renames another thing over that
 * name or removes it, as every editor does when it saves. So the directory above each step is
 * watched with inotify, opened through a descriptor and without links; an event for a step's name
 * makes the step, and all steps beneath it, due again. When the kernel's queue overflows everything
 * is due, and what is no longer the file that was covered last counts as taken away. Directories
 * that were replaced are watched anew.
 *
 * The watch begins before anything is mounted, so whatever happens to a name from then on is
 * reported by an event. What has gone since the tree was looked through counts as taken away, too.
 *
 * A name that is taken away, and not by the rename that editors make a backup with, is lost: the
 * sandbox can put something of its own there before anybody has looked. What the sweep finds there
 * is new to it, no matter which process made it.
 *
 * A lock of git's that is removed beside a protected name tells that git wanted to write that one:
 * the run's result explains it.
 *
 * The sandbox itself cannot create or remove these names, they are mount points to it; what else it
 * does in those directories makes events that are read and dropped. With process.nesting it can
 * (guard_hold.c): there a replacement is covered, too, but lost.
 */
#include "guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"

#define WATCHES_MAX 4096
#define EVENTS (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR)
#define TAKEN (IN_DELETE | IN_MOVED_FROM)

/* A directory that is watched: the parent of some steps of one root. */
struct watched {
	int wd; /* -1: not watched at the moment */
	size_t root;
	char *dir; /* relative to the root, "" is the root itself */
};

/* Which file a name stands for; a number alone is given out again. */
struct identity {
	uint64_t dev, ino;
	int64_t born_ns; /* since the epoch; 0: the file system does not say */
};

struct steps_state {
	bool *due;                /* to be mounted again */
	struct identity *covered; /* what the mount lies on; zeroed: nothing is there */
};

struct guard_watch {
	int fd;
	struct guard_root *roots; /* borrowed */
	size_t root_count;
	struct watched *dirs;
	size_t dir_count, dir_cap;
	struct steps_state *states; /* of each root's steps */
};

static size_t parent_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/* Watches dirs[i], or says why not: -errno. */
static int add_watch(struct guard_watch *w, struct watched *d)
{
	const char *root = w->roots[d->root].path;
	auto_fd top = open(root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct ward_err e;
	auto_fd fd =
		top < 0 ? -1
			: path_open_nolink(top, *d->dir ? d->dir : ".", O_PATH | O_DIRECTORY, &e);
	char link[32];

	if (fd < 0)
		return -ENOENT;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	d->wd = inotify_add_watch(w->fd, link, EVENTS);
	return d->wd < 0 ? -errno : 0;
}

static int add_dir(struct guard_watch *w, size_t root, const char *path)
{
	size_t n = parent_len(path);

	for (size_t i = w->dir_count; i-- > 0;)
		if (w->dirs[i].root == root && strlen(w->dirs[i].dir) == n &&
		    memcmp(w->dirs[i].dir, path, n) == 0)
			return 0;
	if (w->dir_count >= WATCHES_MAX)
		return -ENOSPC;
	if (w->dir_count == w->dir_cap) {
		size_t cap = w->dir_cap ? w->dir_cap * 2 : 8;
		struct watched *grown = reallocarray(w->dirs, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->dirs = grown;
		w->dir_cap = cap;
	}
	w->dirs[w->dir_count] = (struct watched){ -1, root, strndup(path, n) };
	if (!w->dirs[w->dir_count].dir)
		return -ENOMEM;
	return add_watch(w, &w->dirs[w->dir_count++]);
}

/* What stands at path now; 0, or -errno. */
static int identify(const struct guard_root *g, const char *path, struct identity *ret)
{
	auto_fd top = open(g->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct ward_err e;
	auto_fd fd = top < 0 ? -1 : path_open_nolink(top, path, O_PATH | O_NOFOLLOW, &e);
	struct statx st;

	*ret = (struct identity){ 0 };
	if (fd < 0)
		return top < 0 ? -EIO : fd;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0)
		return 0;
	*ret = (struct identity){ .dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
				  .ino = st.stx_ino };
	if (st.stx_mask & STATX_BTIME)
		ret->born_ns = st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
	return 0;
}

static void lose(struct guard_root *g, const char *path)
{
	for (size_t i = 0; i < g->lost.len; i++)
		if (strcmp(g->lost.items[i], path) == 0)
			return;
	strv_add(&g->lost, path);
}

static int add_roots(struct guard_watch *w)
{
	int failure = 0;

	w->states = calloc(w->root_count, sizeof(*w->states));
	if (!w->states)
		return -ENOMEM;
	for (size_t r = 0; r < w->root_count; r++) {
		w->states[r].due = calloc(w->roots[r].step_count + 1, sizeof(bool));
		w->states[r].covered = calloc(w->roots[r].step_count + 1, sizeof(struct identity));
		if (!w->states[r].due || !w->states[r].covered)
			return -ENOMEM;
		for (size_t i = 0; i < w->roots[r].step_count; i++) {
			const struct guard_step *step = &w->roots[r].steps[i];
			int status = add_dir(w, r, step->path);
			int found = identify(&w->roots[r], step->path, &w->states[r].covered[i]);

			if ((found == -ENOENT || found == -ENOTDIR) &&
			    step->action == GUARD_READONLY)
				lose(&w->roots[r], step->path);
			if (status == -ENOMEM)
				return status;
			if (status < 0 && status != -ENOENT && !failure)
				failure = status;
		}
	}
	return failure;
}

int guard_watch_create(struct guard_root *roots, size_t count, struct guard_watch **ret_watch,
		       struct strv *notes, struct ward_err *e)
{
	struct guard_watch *w;
	size_t steps = 0;
	int status;

	*ret_watch = NULL;
	for (size_t i = 0; i < count; i++)
		steps += roots[i].step_count;
	if (!steps)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return ward_fail(e, ENOMEM, "out of memory");
	w->roots = roots;
	w->root_count = count;
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	status = w->fd < 0 ? -errno : add_roots(w);
	if (status == -ENOMEM) {
		guard_watch_destroy(w);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	if (status < 0)
		strv_addf(notes,
			  "some protected or hidden files are not watched (%s): if one is replaced "
			  "from outside during the run, it is no longer covered; raise "
			  "fs.inotify.max_user_%s",
			  strerror(-status), w->fd < 0 ? "instances" : "watches");
	if (w->fd < 0) {
		guard_watch_destroy(w);
		return 0;
	}
	*ret_watch = w;
	return 0;
}

int guard_watch_fd(const struct guard_watch *w)
{
	return w->fd;
}

/* Marks the step of that path and all beneath it, or notes that they were taken away. */
static void mark(struct guard_watch *w, size_t root, const char *dir, const char *name, bool taken)
{
	struct guard_root *g = &w->roots[root];
	size_t dir_len = strlen(dir), name_len = strlen(name),
	       n = dir_len + (dir_len ? 1 : 0) + name_len;

	for (size_t i = 0; i < g->step_count; i++) {
		const char *path = g->steps[i].path;

		if (strncmp(path, dir, dir_len) == 0 && (!dir_len || path[dir_len] == '/') &&
		    strlen(path) >= n && memcmp(path + n - name_len, name, name_len) == 0 &&
		    (path[n] == '\0' || path[n] == '/')) {
			if (!taken)
				w->states[root].due[i] = true;
			if ((taken || g->held) && g->steps[i].action == GUARD_READONLY)
				lose(g, path);
		}
	}
}

/* Whether two events are an editor's: it renames NAME to NAME~, and then writes NAME anew. */
static bool is_backup(const struct inotify_event *event, const struct inotify_event *next)
{
	size_t n = strlen(event->name);

	return next && event->mask & IN_MOVED_FROM && next->mask & IN_MOVED_TO &&
	       next->cookie == event->cookie && next->len &&
	       strncmp(next->name, event->name, n) == 0 && strcmp(next->name + n, "~") == 0;
}

/* Nobody knows what happened: all is due, and what another thing stands for was taken away. */
static void mark_all(struct guard_watch *w)
{
	for (size_t r = 0; r < w->root_count; r++) {
		struct guard_root *g = &w->roots[r];

		for (size_t i = 0; i < g->step_count; i++) {
			struct identity now;

			w->states[r].due[i] = true;
			(void)identify(g, g->steps[i].path, &now);
			if (g->steps[i].action == GUARD_READONLY &&
			    memcmp(&now, &w->states[r].covered[i], sizeof(now)) != 0)
				lose(g, g->steps[i].path);
		}
	}
}

/* git writes NAME.lock and renames it over NAME. Where NAME is protected that fails, and the lock
 * is removed. */
static void note_refused(struct guard_root *g, const char *dir, const char *name)
{
	static const char lock[] = ".lock";
	size_t n = strlen(name), dir_len = strlen(dir), suffix = strlen(lock);

	if (n <= suffix || strcmp(name + n - suffix, lock) != 0)
		return;
	for (size_t i = 0; i < g->step_count; i++) {
		const char *path = g->steps[i].path, *base = path + dir_len + (dir_len ? 1 : 0);

		if (g->steps[i].action == GUARD_READONLY && strncmp(path, dir, dir_len) == 0 &&
		    strlen(path) == (size_t)(base - path) + n - suffix &&
		    strncmp(base, name, n - suffix) == 0 && !strv_has(&g->refused, path))
			strv_add(&g->refused, path);
	}
}

static void handle_event(struct guard_watch *w, const struct inotify_event *event,
			 const struct inotify_event *next)
{
	if (event->mask & IN_Q_OVERFLOW)
		mark_all(w);
	for (size_t i = 0; i < w->dir_count; i++) {
		if (w->dirs[i].wd != event->wd)
			continue;
		if (event->mask & IN_IGNORED)
			w->dirs[i].wd = -1;
		else if (event->len && (w->roots[w->dirs[i].root].held || !is_backup(event, next)))
			mark(w, w->dirs[i].root, w->dirs[i].dir, event->name, event->mask & TAKEN);
		if (event->len && event->mask & IN_DELETE)
			note_refused(&w->roots[w->dirs[i].root], w->dirs[i].dir, event->name);
	}
}

/* False when there is nothing more to read. */
static bool read_events(struct guard_watch *w)
{
	char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));

	/* a storm must not hold up the supervisor */
	for (int rounds = 0; rounds < 8; rounds++) {
		ssize_t n = read(w->fd, buffer, sizeof(buffer));

		if (n <= 0)
			return false;
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const void *)(buffer + at);

			at += (ssize_t)(sizeof(*event) + event->len);
			handle_event(w, event, at < n ? (const void *)(buffer + at) : NULL);
		}
	}
	return true;
}

void guard_watch_drain(struct guard_watch *w)
{
	for (int rounds = 0; w && rounds < 64 && read_events(w); rounds++)
		;
}

/* Watches the directories anew that are, or lie in, something that is due. */
static void watch_again(struct guard_watch *w)
{
	for (size_t d = 0; d < w->dir_count; d++) {
		const struct guard_root *g = &w->roots[w->dirs[d].root];
		bool again = w->dirs[d].wd < 0;

		for (size_t i = 0; i < g->step_count && !again; i++) {
			size_t n = strlen(g->steps[i].path);

			again = w->states[w->dirs[d].root].due[i] &&
				strncmp(w->dirs[d].dir, g->steps[i].path, n) == 0 &&
				(w->dirs[d].dir[n] == '\0' || w->dirs[d].dir[n] == '/');
		}
		if (again && add_watch(w, &w->dirs[d]) < 0)
			w->dirs[d].wd = -1;
	}
}

size_t guard_watch_read(struct guard_watch *w, struct guard_undone *undone, size_t cap)
{
	size_t count = 0;

	(void)read_events(w);
	watch_again(w);
	for (size_t r = 0; r < w->root_count; r++) {
		for (size_t i = 0; i < w->roots[r].step_count && count < cap; i++) {
			struct guard_undone *u = count ? &undone[count - 1] : NULL;

			if (!w->states[r].due[i])
				continue;
			if (identify(&w->roots[r], w->roots[r].steps[i].path,
				     &w->states[r].covered[i]) < 0) {
				/* it is due again once it is made */
				w->states[r].due[i] = false;
				continue;
			}
			if (!u || u->root != r || u->count == ARRAY_LEN(u->steps)) {
				if (count == cap)
					break;
				u = &undone[count++];
				*u = (struct guard_undone){ .root = r };
			}
			u->steps[u->count++] = i;
			w->states[r].due[i] = false;
		}
	}
	return count;
}

void guard_watch_destroy(struct guard_watch *w)
{
	if (!w)
		return;
	if (w->dir_count)
		io_close_later(w->fd);
	else
		own_close_fd(&w->fd);
	for (size_t i = 0; i < w->dir_count; i++)
		free(w->dirs[i].dir);
	for (size_t r = 0; w->states && r < w->root_count; r++) {
		free(w->states[r].due);
		free(w->states[r].covered);
	}
	free(w->states);
	free(w->dirs);
	free(w);
}
