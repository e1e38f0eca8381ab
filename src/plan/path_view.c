/*
 * A path in the eyes of a plan. In: the plan's mounts in their order and its guards, an absolute
 * path. Out: absent, hidden, readable, protected or writable. The same rows and the same matchers
 * that the engine and the guards enforce with, asked about one path instead of carried out. It does
 * not look at any file: whether something exists there is not its question. Pure functions.
 */
#include "plan/path_view.h"

#include <dirent.h>
#include <string.h>

#include "base/path.h"
#include "guard/guard_internal.h"
#include "plan/level.h"

#define LINKS_MAX 8

struct path_view path_view_of(const struct plan *p)
{
	struct path_view w = { .mounts = p->mounts,
			       .mount_count = p->mount_count,
			       .roots = p->live->roots,
			       .root_count = p->live->root_count,
			       .image = p->image.root != NULL,
			       .unmounted = p->level == LEVEL_LANDLOCK };

	if (w.unmounted)
		level_tmp_path(p->spec->run_id, w.own_tmp, sizeof(w.own_tmp));
	return w;
}

/* The mount that has the path: the deepest one, of equal ones the last. */
static const struct plan_mount *find_mount(const struct path_view *w, const char *path)
{
	const struct plan_mount *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < w->mount_count; i++) {
		const struct plan_mount *m = &w->mounts[i];
		size_t n = strlen(m->target);
		bool single = m->kind == MOUNT_FILE || (m->kind == MOUNT_BIND && m->is_file);

		if (n < best_len || !path_is_beneath(path, m->target) ||
		    (single && strcmp(path, m->target) != 0))
			continue;
		best = m;
		best_len = n;
	}
	return best;
}

/* Where a link of the plan's own leads. The caller frees. */
static char *follow(const struct plan_mount *link, const char *path)
{
	auto_free char *dir = path_join(link->target, ".."),
		       *to = dir ? path_join(dir, link->source) : NULL;
	const char *rest = path + strlen(link->target);

	while (*rest == '/')
		rest++;
	return to ? path_join(to, *rest ? rest : ".") : NULL;
}

/* One path and each directory above it, from the top; len: of the part that is looked at. */
static enum path_view_access look_at(const struct guard_root *g, const char *path, size_t len,
				     bool is_dir, bool writable)
{
	auto_free char *part = strndup(path, len);
	const char *slash = part ? strrchr(part, '/') : NULL;
	const struct guard_step *step;
	struct walk_entry entry;

	if (!part)
		return PATH_VIEW_HIDDEN;
	entry = (struct walk_entry){ .name = slash ? slash + 1 : part,
				     .path = part,
				     .path_len = len,
				     .name_at = slash ? (size_t)(slash + 1 - part) : 0,
				     .type = is_dir ? DT_DIR : DT_REG };
	step = guard_find_step(g, g->step_count, part, len);
	if (ignore_match(g->hide, part, is_dir) || ignore_match(g->aiignore, part, is_dir) ||
	    (step && step->action == GUARD_HIDE))
		return PATH_VIEW_HIDDEN;
	if (writable && (guard_is_protected(g, &entry) || (step && step->action == GUARD_READONLY)))
		return PATH_VIEW_PROTECTED;
	return PATH_VIEW_WRITE;
}

static enum path_view_access ask_guards(const struct path_view *w, const char *path,
					enum path_view_access given)
{
	for (size_t i = 0; i < w->root_count; i++) {
		const struct guard_root *g = &w->roots[i];
		const char *rest;

		if (!path_is_beneath(path, g->target))
			continue;
		rest = path + strlen(g->target);
		rest += *rest == '/';
		for (size_t n = 0; *rest && n < strlen(rest);) {
			enum path_view_access here;

			n += strcspn(rest + n, "/");
			here = look_at(g, rest, n, rest[n] == '/', given == PATH_VIEW_WRITE);
			if (here != PATH_VIEW_WRITE)
				return here;
			n += rest[n] == '/';
		}
	}
	return given;
}

const struct plan_mount *path_view_mount(const struct path_view *w, const char *path, char **ret_at)
{
	char *at = path_clean(path);
	const struct plan_mount *m = NULL;

	for (int i = 0; at && i < LINKS_MAX; i++) {
		char *next;

		m = find_mount(w, at);
		if (!m || m->kind != MOUNT_LINK)
			break;
		next = follow(m, at);
		free(at);
		at = next;
	}
	*ret_at = at;
	return at ? m : NULL;
}

enum path_view_access path_view_find(const struct path_view *w, const char *path, bool *ret_noexec)
{
	auto_free char *at = NULL;
	const struct plan_mount *m = path_view_mount(w, path, &at);

	if (ret_noexec)
		*ret_noexec = false;
	if (!at || !m || m->kind == MOUNT_LINK)
		return w->image && at ? PATH_VIEW_READ : PATH_VIEW_ABSENT;
	if (ret_noexec)
		*ret_noexec = m->noexec;
	if (m->kind == MOUNT_TMPFS || m->kind == MOUNT_DEV)
		return w->unmounted && !path_is_beneath(at, w->own_tmp) ? PATH_VIEW_ABSENT
									: PATH_VIEW_PRIVATE;
	return ask_guards(w, at,
			  m->kind == MOUNT_BIND && m->writable ? PATH_VIEW_WRITE : PATH_VIEW_READ);
}

const char *path_view_access_text(enum path_view_access a)
{
	switch (a) {
	case PATH_VIEW_ABSENT:
		return "it does not exist inside";
	case PATH_VIEW_HIDDEN:
		return "it is hidden";
	case PATH_VIEW_READ:
		return "it is read-only";
	case PATH_VIEW_PROTECTED:
		return "it is protected";
	case PATH_VIEW_PRIVATE:
		return "it would exist only if the run itself created it";
	case PATH_VIEW_WRITE:
		break;
	}
	return "it may be written";
}
