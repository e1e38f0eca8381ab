/*
 * Guarding what a protected name leads to. In: links that the scan found at protected names or
 * inside protected directories, and paths that configuration names. Out: steps and rules of the
 * tree. Runs in the supervisor before the sandbox starts; changes nothing.
 *
 * A protected link is worth as much as what it leads to. So whatever it ends at becomes read-only;
 * each link on the way is remembered for the sweep, which puts it back if it was taken away and
 * takes away what stands in its place; each directory on the way is pinned. A directory that
 * becomes read-only in this way can hold links itself, and files with a second name: they are
 * followed, too. A name on the way that is missing must not be made by the run: it gets a rule, and
 * the sweep takes away what was put there.
 *
 * What lies in another tree that the sandbox writes to is handed on (guard_root.beyond), and
 * guarded once all trees are known.
 */
#include "guard/guard_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/path.h"

#define PLACES_MAX 4096
#define CALLERS_MAX 512

static int out_of_memory(struct follow *f)
{
	return ward_fail(f->e, ENOMEM, "out of memory");
}

struct follow follow_begin(struct guard_root *g, int root_fd, struct guard_hardlinks *twins,
			   struct ward_err *e)
{
	return (struct follow){ .g = g,
				.root_fd = root_fd,
				.root = trail_root_at(g->path, root_fd),
				.twins = twins,
				.e = e };
}

void follow_end(struct follow *f)
{
	strv_free(&f->queue);
	strv_free(&f->dirs);
	strv_free(&f->callers);
	strv_free(&f->seen);
	free(f->above);
}

int follow_caller(struct follow *f, const char *path)
{
	if (f->callers.len < CALLERS_MAX && !strv_has(&f->callers, path))
		strv_add(&f->callers, path);
	return f->callers.failed ? out_of_memory(f) : 0;
}

int follow_link(struct follow *f, const char *path)
{
	strv_add(&f->queue, path);
	return f->queue.failed ? out_of_memory(f) : 0;
}

/* The part of an absolute path beneath the root; NULL: it lies elsewhere. */
static const char *beneath(const struct guard_root *g, const char *path)
{
	size_t n = strlen(g->path);

	if (!path_is_beneath(path, g->path))
		return NULL;
	return path[n] == '/' ? path + n + 1 : n == 1 ? path + 1 : path + n;
}

/* Whether the place was dealt with before; it is from now on. */
static int is_new(struct follow *f, const char *path)
{
	if (strv_has(&f->seen, path))
		return 0;
	if (f->seen.len >= PLACES_MAX) {
		ward_fail(f->e, E2BIG, "links and configuration in %s lead to more than %d places",
			  f->g->path, PLACES_MAX);
		return ward_remedy(f->e, "exclude the names that lead to so many with "
					 "filesystem.protect: [\"!NAME\"]");
	}
	strv_add(&f->seen, path);
	return f->seen.failed ? out_of_memory(f) : 1;
}

/* Whether a directory above the path is read-only since the walk: nothing there can be changed. */
static bool is_covered(const struct guard_root *g, const char *path)
{
	for (size_t i = 0; i < g->step_count; i++) {
		size_t n = strlen(g->steps[i].path);

		if (g->steps[i].action == GUARD_READONLY &&
		    strncmp(g->steps[i].path, path, n) == 0 && path[n] == '/')
			return true;
	}
	return false;
}

/* Pins the directory that path lies in. */
static int pin_parent(struct follow *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path)) : NULL;

	if (!slash)
		return 0;
	return dir ? guard_add_step(f->g, GUARD_PIN, dir, true, f->e) : out_of_memory(f);
}

static int keep_link(struct follow *f, const char *path, const char *target)
{
	auto_buf text = { 0 };
	int status = guard_is_released(f->g, path, false) || is_covered(f->g, path)
			     ? 0
			     : is_new(f, path);

	if (status <= 0)
		return status;
	guard_escape(&text, path);
	buf_puts(&text, "\n");
	guard_escape(&text, target);
	if (text.failed)
		return out_of_memory(f);
	strv_add(&f->g->links, text.data);
	if (f->g->links.failed)
		return out_of_memory(f);
	status = guard_add_path_rule(f->g, path, false, f->e);
	return status < 0 || f->how == FOLLOW_NAMED ? status : pin_parent(f, path);
}

/* A directory that ".." left: a link in its place would lead the rest of the way elsewhere. */
static int keep_directory(struct follow *f, const char *path)
{
	auto_buf below = { 0 };
	int status = *path && !is_covered(f->g, path)
			     ? guard_add_step(f->g, GUARD_PIN, path, true, f->e)
			     : 0;

	if (status < 0 || !*path)
		return status;
	buf_printf(&below, "%s/..",
		   path); /* no such entry: the rule is about the directories above it, as links */
	return below.failed ? out_of_memory(f) : guard_add_path_rule(f->g, below.data, false, f->e);
}

static int keep_missing(struct follow *f, const char *path, const char *rest)
{
	auto_buf all = { 0 };
	bool climbs =
		strcmp(rest, "..") == 0 || strncmp(rest, "../", 3) == 0 || strstr(rest, "/..");
	int status;

	buf_puts(&all, path);
	while (!climbs && *rest) { /* behind ".." nobody knows where it leads: then the name itself
				      must not be made */
		size_t n = strcspn(rest, "/");

		if (n && !(n == 1 && *rest == '.'))
			buf_printf(&all, "/%.*s", (int)n, rest);
		rest += n + strspn(rest + n, "/");
	}
	if (all.failed)
		return out_of_memory(f);
	status = guard_is_released(f->g, all.data, false) || is_covered(f->g, all.data)
			 ? 0
			 : is_new(f, all.data);
	return status <= 0 ? status : guard_add_path_rule(f->g, all.data, false, f->e);
}

/* A file's other names, or a directory's links, share its lot. */
static int look_behind(struct follow *f, const char *path, bool is_dir)
{
	struct ward_err gone;
	auto_fd fd = is_dir ? -1 : path_open_nolink(f->root_fd, path, O_PATH | O_NOFOLLOW, &gone);

	if (is_dir)
		strv_add(&f->dirs, path);
	if (f->dirs.failed || (!is_dir && follow_caller(f, path) < 0))
		return out_of_memory(f);
	return fd < 0 || !f->twins ? 0 : guard_hardlink_note(f->twins, fd, "", false, f->e);
}

static int keep_end(struct follow *f, const char *path, const struct stat *st)
{
	bool is_dir = S_ISDIR(st->st_mode);
	size_t n = strlen(path);
	bool covered;
	int status;

	if (is_dir && (!n || (strncmp(f->origin, path, n) == 0 && f->origin[n] == '/'))) {
		if (f->how != FOLLOW_PIN)
			strv_addf(&f->g->notes,
				  "%s leads to %s, a parent directory: the command can write to "
				  "what is in it",
				  f->origin, n ? path : f->g->path);
		return f->g->notes.failed ? out_of_memory(f) : 0;
	}
	covered = is_covered(f->g, path);
	if (guard_is_released(f->g, path, is_dir) || (covered && f->how == FOLLOW_PIN))
		return 0;
	status = is_new(f, path);
	if (status <= 0)
		return status;
	if (covered) /* but not what the scripts there call */
		return look_behind(f, path, is_dir);
	if (f->how == FOLLOW_PIN && is_dir)
		return guard_add_step(f->g, GUARD_PIN, path, true, f->e);
	strv_addf(&f->g->baseline, "%s%s", path, is_dir ? "/" : "");
	if (f->g->baseline.failed)
		return out_of_memory(f);
	status = guard_add_step(f->g, GUARD_READONLY, path, is_dir, f->e);
	if (status >= 0)
		status = guard_add_path_rule(f->g, path, false, f->e);
	return status < 0 ? status : look_behind(f, path, is_dir);
}

/* A place outside this tree: "KIND PATH\nTEXT", both escaped. */
static int hand_on(struct follow *f, const struct trail_place *place)
{
	auto_buf line = { 0 };

	if (place->kind == TRAIL_BACK || (place->kind == TRAIL_END && f->how == FOLLOW_PIN))
		return 0;
	buf_add(&line, &"lbem"[place->kind], 1);
	guard_escape(&line, place->path);
	buf_puts(&line, "\n");
	guard_escape(&line, place->text);
	if (!line.failed && !strv_has(&f->g->beyond, line.data))
		strv_add(&f->g->beyond, line.data);
	return line.failed || f->g->beyond.failed ? out_of_memory(f) : 0;
}

static int on_place(void *ctx, const struct trail_place *place)
{
	struct follow *f = ctx;
	const char *path = beneath(f->g, place->path);

	if (!path)
		return hand_on(f, place);
	f->found |= place->kind != TRAIL_BACK;
	switch (place->kind) {
	case TRAIL_LINK:
		return keep_link(f, path, place->text);
	case TRAIL_BACK:
		return keep_directory(f, path);
	case TRAIL_MISSING:
		return keep_missing(f, path, place->text);
	case TRAIL_END:
		return keep_end(f, path, place->st);
	}
	return 0;
}

int follow_path(struct follow *f, const char *from, const char *path, enum follow_how how,
		const char *origin)
{
	int status;

	f->how = how;
	f->origin = origin;
	status = trail_follow(from, path, &f->root, on_place, f);
	return status == -ENOMEM ? out_of_memory(f) : status;
}

static int follow_queued(struct follow *f, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	auto_free char *dir = NULL;

	if (asprintf(&dir, "%s%s%.*s", f->g->path[1] ? f->g->path : "",
		     slash || !f->g->path[1] ? "/" : "", slash ? (int)(slash - path) : 0,
		     path) < 0) {
		dir = NULL;
		return out_of_memory(f);
	}
	return follow_path(f, dir, name, strcmp(name, ".git") == 0 ? FOLLOW_PIN : FOLLOW_PROTECT,
			   path);
}

static int see_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct follow *f = ctx;
	int status = 0;

	if (entry->type == DT_LNK)
		status = follow_link(f, entry->path);
	else if (entry->type == DT_REG)
		status = follow_caller(f, entry->path);
	if (status >= 0 && entry->type == DT_REG && f->twins)
		status = guard_hardlink_note(f->twins, d->fd, entry->name, false, f->e);
	return status < 0 ? status : 1;
}

static int look_through(struct follow *f, const char *path)
{
	static const struct walk_ops ops = { .entry = see_entry };
	struct ward_err gone;
	auto_fd fd = path_open_nolink(f->root_fd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, &gone);

	return fd < 0 ? 0 : walk_tree_at(fd, path, &ops, f, 0, f->e);
}

int follow_all(struct follow *f)
{
	int status = 0;

	while (status >= 0 && (f->queue_done < f->queue.len || f->dirs_done < f->dirs.len)) {
		bool is_link = f->queue_done < f->queue.len;
		const char *next =
			is_link ? f->queue.items[f->queue_done++] : f->dirs.items[f->dirs_done++];
		auto_free char *path = strdup(next); /* the lists may move */

		if (!path)
			return out_of_memory(f);
		status = is_link ? follow_queued(f, path) : look_through(f, path);
	}
	return status < 0 ? status : 0;
}

/* One place that another tree's links led to. */
static int add_place(struct follow *f, const char *line)
{
	const char *end = strchr(line, '\n');
	auto_free char *path = end ? strndup(line + 1, (size_t)(end - line - 1)) : NULL,
		       *text = end ? strdup(end + 1) : NULL;
	const char *inside = NULL;
	struct stat st;

	if (!path || !text)
		return out_of_memory(f);
	guard_unescape(path);
	guard_unescape(text);
	inside = beneath(f->g, path);
	if (!inside || !*inside)
		return 0;
	f->found = true;
	if (*line == 'l')
		return keep_link(f, inside, text);
	if (*line == 'm')
		return keep_missing(f, inside, text);
	return lstat(path, &st) < 0 ? 0 : keep_end(f, inside, &st);
}

int guard_add_beyond(struct guard_root *g, const struct guard_root *other, struct ward_err *e)
{
	auto_fd fd = other->beyond.len ? open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct follow f = follow_begin(g, fd, NULL, e);
	int status = 0;

	f.origin = "";
	for (size_t i = 0; fd >= 0 && i < other->beyond.len && status >= 0; i++)
		status = add_place(&f, other->beyond.items[i]);
	if (status >= 0 && f.found)
		status = follow_all(&f);
	if (status >= 0 && f.found)
		status = guard_finish_steps(g, e);
	if (f.found) {
		strv_sort(&g->baseline);
		strv_sort(&g->links);
	}
	follow_end(&f);
	return status;
}
