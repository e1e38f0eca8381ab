/*
 * Runs that overlap in a workspace. In: a tree as the scan of a new run found it, and the same tree
 * (or one around it, or one in it) as it was when another run began that is not finished yet. Out:
 * what came since is not among the things that the new run found there. Runs in the supervisor, on
 * lists only.
 *
 * Such a thing may be the other run's work, which nothing has judged so far. It stays covered by
 * the new run's mounts, but it counts as new: it is swept, it is never put back, and a repository
 * gets no private copy but is judged as a whole. That holds for every run that begins until one
 * of the sweeps has judged the name, because each of them writes the shorter list into its record.
 *
 * Only what the other run would have listed counts: a name that its policy does not protect is not
 * in its list although it was there.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "guard/guard_dirs.h"

struct taint {
	struct guard_root *g;
	const struct guard_root *other;
	struct strv gone; /* repositories that were taken off the list, relative to g */
	bool any;
};

/* Whether the first n bytes of path are `above`, or lie in it. */
static bool lies_in(const char *path, size_t n, const char *above, size_t len)
{
	return n >= len && strncmp(path, above, len) == 0 && (n == len || path[len] == '/');
}

/* The path in the other tree of a path of ours; NULL: it does not lie there. The caller frees. */
static char *path_there(const struct taint *t, const char *path)
{
	auto_free char *full = path_join(t->g->path, strcmp(path, ".") == 0 ? "." : path);
	size_t n = strlen(t->other->path);

	if (!full || !path_is_beneath(full, t->other->path))
		return NULL;
	return strdup(full[n] ? full + n + (n > 1) : ".");
}

/* Whether the other run found it, or found a directory or repository that it lies in. */
static bool was_known(const struct guard_root *o, const char *path)
{
	size_t n = strlen(path);

	if (guard_list_has(&o->baseline, path, n, '\0') || guard_in_view(o, path, n))
		return true;
	for (size_t i = 0; i < o->repositories.len; i++) {
		const char *one = o->repositories.items[i];

		if (strcmp(path, one) == 0 ||
		    (strcmp(one, ".") != 0 && lies_in(path, n, one, strlen(one))))
			return true;
	}
	for (size_t end = strcspn(path, "/"); end <= n; end += 1 + strcspn(path + end + 1, "/")) {
		if (guard_list_has(&o->baseline, path, end, '/'))
			return true;
		if (end == n)
			break;
	}
	return false;
}

/* Whether the other run's scan would have listed a thing of that type. */
static bool would_list(const struct guard_root *o, const char *path, unsigned char type)
{
	const char *slash = strrchr(path, '/');
	struct walk_entry entry = { .name = slash ? slash + 1 : path,
				    .path = path,
				    .path_len = strlen(path),
				    .type = type,
				    .name_at = slash ? (size_t)(slash + 1 - path) : 0 };

	if (type != DT_DIR && strcmp(entry.name, ".git") == 0 && !guard_is_released(o, path, false))
		return true;
	return guard_is_protected(o, &entry);
}

static bool is_in_gone(const struct taint *t, const char *path)
{
	for (size_t i = 0; i < t->gone.len; i++)
		if (lies_in(path, strlen(path), t->gone.items[i], strlen(t->gone.items[i])))
			return true;
	return false;
}

/* Takes every entry off the list that `is_new` says so of. */
static void filter(struct taint *t, struct strv *list, bool (*is_new)(struct taint *t, char *item))
{
	size_t kept = 0;

	for (size_t i = 0; i < list->len; i++) {
		if (is_new(t, list->items[i])) {
			free(list->items[i]);
			t->any = true;
		} else {
			list->items[kept++] = list->items[i];
		}
	}
	list->len = kept;
}

static bool is_new_repository(struct taint *t, char *path)
{
	auto_free char *there = path_there(t, path);

	if (!there || was_known(t->other, there) || guard_is_released(t->other, there, true))
		return false;
	strv_add(&t->gone, path);
	return true;
}

static bool is_new_name(struct taint *t, char *item)
{
	size_t n = strlen(item);
	bool is_dir = n && item[n - 1] == '/', is_new;
	auto_free char *path = strndup(item, n - is_dir),
		       *there = path ? path_there(t, path) : NULL;

	if (!there || was_known(t->other, there))
		return false;
	is_new = is_in_gone(t, path) || would_list(t->other, there, is_dir ? DT_DIR : DT_REG);
	if (is_new)
		strv_add(&t->g->tainted, path);
	return is_new;
}

/* "PATH\nTARGET", both escaped */
static bool is_new_link(struct taint *t, char *item)
{
	const char *target = strchr(item, '\n');
	auto_free char *path = strndup(item, target ? (size_t)(target - item) : 0), *there = NULL;
	auto_buf text = { 0 };

	if (!path || !target)
		return false;
	guard_unescape(path);
	there = path_there(t, path);
	if (!there)
		return false;
	guard_escape(&text, there);
	buf_puts(&text, target);
	if (text.failed || guard_list_has(&t->other->links, text.data, text.len, '\0') ||
	    (was_known(t->other, there) &&
	     !guard_list_has(&t->other->baseline, there, strlen(there), '\0')))
		return false;
	return is_in_gone(t, path) || would_list(t->other, there, DT_LNK);
}

/* "PATH\nTASK" of a repository that is not known any more. */
static bool is_new_task(struct taint *t, char *item)
{
	const char *task = strchr(item, '\n');
	auto_free char *path = strndup(item, task ? (size_t)(task - item) : 0);

	if (!path)
		return false;
	guard_unescape(path);
	return is_in_gone(t, path);
}

static bool is_new_view(struct taint *t, char *path)
{
	return is_in_gone(t, path);
}

/* A private copy is not made of such a repository: what would be mounted over it goes. */
static void drop_views(struct taint *t)
{
	struct guard_root *g = t->g;
	size_t kept = 0;

	for (size_t i = 0; i < g->step_count; i++)
		if (g->steps[i].action == GUARD_VIEW && is_in_gone(t, g->steps[i].path))
			free(g->steps[i].path);
		else
			g->steps[kept++] = g->steps[i];
	g->step_count = kept;
}

int guard_taint(struct guard_root *g, const struct guard_root *other, struct ward_err *e)
{
	struct taint t = { .g = g, .other = other };

	if (!path_is_beneath(g->path, other->path) && !path_is_beneath(other->path, g->path))
		return 0;
	filter(&t, &g->repositories, is_new_repository);
	filter(&t, &g->baseline, is_new_name);
	filter(&t, &g->links, is_new_link);
	filter(&t, &g->tasks, is_new_task);
	filter(&t, &g->views, is_new_view);
	drop_views(&t);
	/* a directory in which nothing changed since may hold it: the sweep reads all */
	if (t.any) {
		guard_dirs_free(g->dirs);
		g->dirs = NULL;
	}
	if (t.gone.failed || g->tainted.failed) {
		strv_free(&t.gone);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	strv_free(&t.gone);
	return 0;
}
