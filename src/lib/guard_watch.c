/*
 * Watching over-mounted files. In: the steps of the roots. Out: which of them the host undid. A mount on a file or
 * directory dies when somebody outside puts another one in its place, as every editor does on saving; the supervisor
 * then has them mounted again. Runs in the supervisor. Only names that appear matter (created, or renamed to), and
 * only where a step covers that very name: what the agent itself does in the same directories is read and forgotten.
 */
#include "lib/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/path.h"

#define WATCHED_MAX 65536	/* entries: replacing directories for ever must not fill memory */

struct watched {
	int wd;
	size_t root;
	const char *path;	/* a step's path: its parent is what is watched */
	size_t parent_len;
};

struct guard_watch {
	int fd;
	const struct guard_root *roots;	/* borrowed */
	size_t root_count;
	struct watched *watched;
	size_t count, cap;
};

static size_t parent_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/* inotify takes names only: the directory is opened through no link, and the name is that of our descriptor. */
static int watch_dir(struct guard_watch *w, const struct guard_root *g, const char *path, size_t n)
{
	struct ward_err ignored = { 0 };
	auto_fd root = open(g->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_free char *parent = strndup(path, n);
	auto_fd dir = -1;
	char name[32];
	int wd;

	if (root < 0 || !parent)
		return root < 0 ? -errno : -ENOMEM;
	dir = path_open_nolink(root, n ? parent : ".", O_PATH | O_DIRECTORY, &ignored);
	if (dir < 0)
		return dir;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", dir);
	wd = inotify_add_watch(w->fd, name, IN_MOVED_TO | IN_CREATE | IN_ONLYDIR);
	return wd < 0 ? -errno : wd;
}

static int remember(struct guard_watch *w, int wd, size_t root, const char *path, size_t n)
{
	if (w->count == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 16;
		struct watched *grown = reallocarray(w->watched, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->watched = grown;
		w->cap = cap;
	}
	w->watched[w->count++] = (struct watched){ wd, root, path, n };
	return 0;
}

/* Steps come in the order of the walk, so those of one directory mostly stand together. */
static bool same_parent(const struct guard_watch *w, size_t root, const char *path, size_t n)
{
	const struct watched *last = w->count ? &w->watched[w->count - 1] : NULL;

	return last && last->root == root && last->parent_len == n && strncmp(last->path, path, n) == 0;
}

/* Watches the parents of the steps first to last. */
static void watch_steps(struct guard_watch *w, size_t root, size_t first, size_t last, size_t *unwatched)
{
	const struct guard_root *g = &w->roots[root];

	for (size_t i = first; i <= last && i < g->step_count; i++) {
		const char *path = g->steps[i].path;
		size_t n = parent_length(path);
		int r;

		if (same_parent(w, root, path, n))
			continue;
		r = watch_dir(w, g, path, n);
		if (r >= 0)
			r = remember(w, r, root, path, n);
		if (r == -ENOENT || r == -ENOTDIR)
			continue;	/* gone meanwhile: nothing to watch */
		if (r < 0)
			++*unwatched;
	}
}

int guard_watch_create(const struct guard_root *roots, size_t count, struct guard_watch **ret_watch,
		       struct strv *notes, struct ward_err *e)
{
	size_t steps = 0, unwatched = 0;
	struct guard_watch *w;

	*ret_watch = NULL;
	for (size_t i = 0; i < count; i++)
		steps += roots[i].step_count;
	if (steps == 0)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return ward_fail(e, ENOMEM, "out of memory");
	w->roots = roots;
	w->root_count = count;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0) {
		strv_addf(notes, "protected files are not watched for replacement from outside: %s",
			  strerror(errno));
		free(w);
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		watch_steps(w, i, 0, SIZE_MAX, &unwatched);
	if (unwatched)
		strv_addf(notes, "%zu directories with protected files are not watched for replacement from outside "
				 "(raise fs.inotify.max_user_watches)", unwatched);
	*ret_watch = w;
	return 0;
}

int guard_watch_fd(const struct guard_watch *w)
{
	return w->fd;
}

/* Adds the step and everything beneath it: the mounts there went with it. */
static void undo_steps(const struct guard_root *g, size_t first, struct guard_undone *u)
{
	size_t n = strlen(g->steps[first].path);

	for (size_t i = first; i < g->step_count && u->count < ARRAY_LEN(u->steps); i++) {
		const char *path = g->steps[i].path;
		bool there = false;

		if (i != first && !(strncmp(path, g->steps[first].path, n) == 0 && path[n] == '/'))
			continue;
		for (size_t k = 0; k < u->count; k++)
			there |= u->steps[k] == i;
		if (!there)
			u->steps[u->count++] = i;
	}
}

static struct guard_undone *entry_for(struct guard_undone *undone, size_t *count, size_t cap, size_t root)
{
	for (size_t i = 0; i < *count; i++)
		if (undone[i].root == root && undone[i].count < ARRAY_LEN(undone[i].steps))
			return &undone[i];
	if (*count == cap)
		return NULL;
	undone[*count] = (struct guard_undone){ .root = root };
	return &undone[(*count)++];
}

/* What appeared as name in the directory wd; NULL: anything anywhere (the kernel's queue overflowed). */
static void match(const struct guard_watch *w, int wd, const char *name, struct guard_undone *undone,
		  size_t *count, size_t cap)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct watched *at = &w->watched[i];
		const struct guard_root *g = &w->roots[at->root];

		if (name && at->wd != wd)
			continue;
		for (size_t s = 0; s < g->step_count; s++) {
			const char *path = g->steps[s].path;
			struct guard_undone *u;

			if (parent_length(path) != at->parent_len || strncmp(path, at->path, at->parent_len) != 0)
				continue;
			if (name && strcmp(path + at->parent_len + (at->parent_len > 0), name) != 0)
				continue;
			u = entry_for(undone, count, cap, at->root);
			if (u)
				undo_steps(g, s, u);
		}
	}
}

size_t guard_watch_read(struct guard_watch *w, struct guard_undone *undone, size_t cap)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	size_t count = 0, unwatched = 0;
	ssize_t n = read(w->fd, events, sizeof(events));

	for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
		const struct inotify_event *event = (const void *)(events + at);

		if (event->mask & IN_Q_OVERFLOW)
			match(w, -1, NULL, undone, &count, cap);
		else if (event->len)
			match(w, event->wd, event->name, undone, &count, cap);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	/* a directory that was replaced has to be watched under its new inode */
	for (size_t i = 0; i < count; i++)
		for (size_t s = 1; s < undone[i].count && w->count < WATCHED_MAX; s++)
			watch_steps(w, undone[i].root, undone[i].steps[s], undone[i].steps[s], &unwatched);
	return count;
}

void guard_watch_destroy(struct guard_watch *w)
{
	if (!w)
		return;
	close(w->fd);
	free(w->watched);
	free(w);
}
