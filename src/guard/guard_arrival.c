/*
 * The judge of what arrives (guard_arrival.h). In: one thing of a sandbox's making, the directory
 * it lies in, the tree that it is in or comes to. Out: whether it may be there, and why not. Runs
 * in the supervisor at the sweep and in the verbs; changes nothing.
 *
 * In order: a .git file (only to a place that points back), a .gitmodules (by the allow-list of its
 * keys), a protected name, what git would go on with, a version file (by its content), a link (not
 * into git's data, where names are not checked, nor to where ward keeps its own). The parts of git
 * directories are judged as a whole (guard_repository.c), because what they are depends on what
 * lies beside them.
 */
#include "guard/guard_arrival.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "guard/guard_dirs.h"
#include "guard/guard_judge.h"
#include "guard/guard_trail.h"
#include "guard/guard_worktrees.h"

static int out_of_memory(struct ward_err *e)
{
	return ward_fail(e, ENOMEM, "out of memory");
}

static int refuse(struct buf *why, const char *text, struct ward_err *e)
{
	buf_puts(why, text);
	return why->failed ? out_of_memory(e) : 1;
}

/* The directory as text of its own: d->path goes on behind its length. */
static char *dir_path(const struct walk_dir *d)
{
	return strndup(d->path, d->path_len);
}

static bool is_old(const struct guard_arrival *a)
{
	struct stat st;

	return fstatat(a->d->fd, a->entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	       guard_ctime_ns(&st) < a->since_ns;
}

/* A .git file or a .gitmodules. What was judged stays as it was judged: one with a second name
 * could be changed later through that. */
static int judge_pointer(const struct guard_arrival *a, bool gitlink, struct buf *why,
			 struct ward_err *e)
{
	auto_free char *dir = dir_path(a->d);
	int status;

	if (!dir)
		return out_of_memory(e);
	status = gitlink ? judge_gitlink(a->g, a->root_fd, a->d->fd, dir, a->entry->name, why)
			 : judge_modules(a->g, a->d->fd, dir, a->entry->name, why);
	if (status < 0)
		return out_of_memory(e);
	if (status == 0 && guard_has_twin(a->d->fd, a->entry->name))
		return refuse(why,
			      "a git file with a second hard link, through which it could be "
			      "changed later",
			      e);
	return status;
}

int guard_judge_task(const struct guard_root *g, const struct walk_dir *d,
		     const struct walk_entry *entry, struct buf *why, struct ward_err *e)
{
	auto_strv tasks = { 0 };
	int status = guard_git_tasks(d, entry, &tasks, e);

	for (size_t i = 0; i < tasks.len && status == 0; i++)
		status = !guard_list_has(&g->tasks, tasks.items[i], strlen(tasks.items[i]), '\0');
	return status == 1 ? refuse(why,
				    "would run commands when git continues a rebase or the like", e)
			   : status;
}

struct link_way {
	const struct guard_root *g;
	bool leaves, enters_git, enters_own;
};

static int see_way(void *ctx, const struct trail_place *place)
{
	struct link_way *w = ctx;

	w->enters_git |= guard_is_in_git(place->path, strlen(place->path));
	if (path_is_beneath(place->path, w->g->path))
		return 0;
	w->leaves = true;
	w->enters_own |= guard_is_own(w->g->path, place->path);
	return 0;
}

static int judge_link(struct guard_arrival *a, struct buf *why, struct ward_err *e)
{
	struct link_way way = { .g = a->g };
	struct trail_root root = trail_root_at(a->g->path, a->root_fd);
	auto_free char *dir = dir_path(a->d),
		       *full = dir ? path_join(a->g->path, *dir ? dir : ".") : NULL;
	char target[PATH_MAX];
	ssize_t n = readlinkat(a->d->fd, a->entry->name, target, sizeof(target) - 1);

	if (!full)
		return out_of_memory(e);
	if (n < 0 || guard_is_in_git(full, strlen(full)))
		return 0; /* gone, or git's own */
	target[n] = '\0';
	if (trail_follow(full, target, &root, see_way, &way) < 0)
		return out_of_memory(e);
	if (way.enters_git || guard_is_in_git(target, (size_t)n))
		return refuse(why, "a link into a git directory, where names are not checked", e);
	if (way.enters_own)
		return refuse(why, "a link into ward's state directory or into another process", e);
	if (way.leaves) {
		auto_free char *own = path_join(full, a->entry->name);

		if (!own)
			return out_of_memory(e);
		if (guard_is_worktree_place(a->g, a->root_fd, own))
			return refuse(why,
				      "a link in place of a git work tree, behind which "
				      "git would write",
				      e);
	}
	a->leaves = way.leaves;
	return 0;
}

/* A name that tells nothing by itself: the content does. */
static int judge_content(struct guard_arrival *a, struct buf *why, struct ward_err *e)
{
	const struct walk_entry *entry = a->entry;
	bool link = entry->type == DT_LNK;
	int status = guard_judge_task(a->g, a->d, entry, why, e);

	if (status != 0 || entry->type == DT_DIR)
		return status;
	if ((link || guard_is_version_file(entry->path)) && is_old(a))
		return 0;
	if (!guard_is_released(a->g, entry->path, false))
		status = guard_judge_version(a->d->fd, entry, why);
	if (status < 0)
		return out_of_memory(e);
	return status == 0 && link ? judge_link(a, why, e) : status;
}

int guard_judge_arrival(struct guard_arrival *a, struct buf *why, struct ward_err *e)
{
	const struct walk_entry *entry = a->entry;
	bool file = entry->type == DT_REG || entry->type == DT_LNK;
	bool gitlink = file && guard_is_gitlink(a->g, entry);
	int status = 0;

	if (gitlink || (file && strcmp(entry->name, ".gitmodules") == 0 &&
			!guard_steer_known(a->g, entry->path)))
		status = judge_pointer(a, gitlink, why, e);
	else if (guard_is_protected(a->g, entry))
		return refuse(why, guard_reason(a->g, entry), e);
	return status ? status : judge_content(a, why, e);
}
