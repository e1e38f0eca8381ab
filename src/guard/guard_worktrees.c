/*
 * Where git believes work trees to be. In: the git directories of a tree that were there when the
 * run began, a path. Out: whether one of them has a work tree there or below. Runs in the
 * supervisor at the sweep and in the verbs; changes nothing.
 *
 * git writes into a work tree that it knows: `git worktree repair` a .git file, `git submodule
 * update` a whole checkout. Where the user removed the directory, a link in its place makes git
 * write behind it. Places are in worktrees/ID/gitdir and in core.worktree of the repository, and
 * of each submodule below modules/, to any depth. What cannot be read or is too much to read counts
 * as such a place.
 */
#include "guard/guard_worktrees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "guard/guard_judge.h"
#include "policy/gitconfig.h"
#include "rules/git_link.h"

#define GITDIR_MAX 8192u
#define CONFIG_MAX (1u << 20)
#define DEPTH_MAX 32
#define ENTRIES_MAX 100000

struct places {
	const char *path; /* that is looked for, absolute */
	size_t entries;   /* looked at so far */
};

static int open_dir(int dir_fd, const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Whether worktrees/ID names a work tree at the path or below it. */
static bool is_worktree(const struct places *p, int worktrees_fd, const char *id)
{
	auto_fd dir = open_dir(worktrees_fd, id);
	auto_buf bytes = { 0 };
	auto_free char *place = NULL;
	const char *at;
	size_t n;

	if (dir < 0 || !judge_read_regular(dir, "gitdir", GITDIR_MAX, &bytes) ||
	    !git_worktree_gitdir_read(buf_text(&bytes), bytes.len, &at, &n))
		return false;
	place = strndup(at, n);
	return !place || path_is_beneath(place, p->path);
}

static bool any_worktree(struct places *p, int git_fd)
{
	int fd = open_dir(git_fd, "worktrees");
	auto_dir list = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;

	if (!list) {
		bool unread = fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP);

		own_close_fd(&fd);
		return unread;
	}
	for (struct dirent *i = readdir(list); i && !found; i = readdir(list))
		found = ++p->entries > ENTRIES_MAX ||
			(i->d_name[0] != '.' && is_worktree(p, dirfd(list), i->d_name));
	return found;
}

struct setting {
	const struct places *p;
	const char *git_dir; /* absolute */
};

static int see_setting(void *ctx, const struct gitconfig_entry *entry)
{
	const struct setting *s = ctx;
	auto_free char *place = NULL;

	if (strcasecmp(entry->section, "core") != 0 || *entry->subsection ||
	    strcasecmp(entry->key, "worktree") != 0 || !entry->value)
		return 0;
	place = path_join(s->git_dir, entry->value);
	return !place || path_is_beneath(place, s->p->path);
}

/* Whether the repository's own work tree is there. A configuration that git refuses says
 * nothing. */
static bool is_own_tree(const struct places *p, int git_fd, const char *git_dir)
{
	struct setting s = { .p = p, .git_dir = git_dir };
	auto_buf text = { 0 };
	int status;

	if (!judge_read_regular(git_fd, "config", CONFIG_MAX, &text))
		return false;
	status = gitconfig_read(buf_text(&text), text.len, see_setting, &s);
	return status == 1 || status == -ENOMEM;
}

static bool any_module(struct places *p, int dir_fd, const char *dir, unsigned depth);

/* The repository at git_fd and those of its submodules. */
static bool any_place(struct places *p, int git_fd, const char *git_dir, unsigned depth)
{
	auto_free char *modules = path_join(git_dir, "modules");
	auto_fd fd = -1;

	if (!modules || any_worktree(p, git_fd) || is_own_tree(p, git_fd, git_dir))
		return true;
	fd = open_dir(git_fd, "modules");
	return fd >= 0 && any_module(p, fd, modules, depth);
}

/* What lies in modules/: repositories, or directories on the way to those whose names have
 * slashes. */
static bool any_module(struct places *p, int dir_fd, const char *dir, unsigned depth)
{
	int copy = open_dir(dir_fd, ".");
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);
	bool found = false;

	if (!list || depth > DEPTH_MAX) {
		if (!list)
			own_close_fd(&copy);
		return true;
	}
	for (struct dirent *i = readdir(list); i && !found; i = readdir(list)) {
		bool dots = strcmp(i->d_name, ".") == 0 || strcmp(i->d_name, "..") == 0;
		auto_fd fd = dots ? -1 : open_dir(dir_fd, i->d_name);
		auto_free char *inner = fd < 0 ? NULL : path_join(dir, i->d_name);

		if (++p->entries > ENTRIES_MAX)
			return true;
		if (fd < 0)
			continue;
		found = !inner || (faccessat(fd, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0
					   ? any_place(p, fd, inner, depth + 1)
					   : any_module(p, fd, inner, depth + 1));
	}
	return found;
}

/* The git directory called name in the tree. */
static bool is_in_repository(const struct guard_root *g, int root_fd, const char *name,
			     struct places *p)
{
	struct ward_err gone;
	auto_fd fd = path_open_nolink(root_fd, name, O_RDONLY | O_DIRECTORY, &gone);
	auto_free char *git_dir = fd < 0 ? NULL : path_join(g->path, name);

	return fd >= 0 && (!git_dir || any_place(p, fd, git_dir, 0));
}

bool guard_is_worktree_place(const struct guard_root *g, int root_fd, const char *path)
{
	struct places p = { .path = path };

	/* where no repository has a private copy, the list is empty */
	if (is_in_repository(g, root_fd, ".git", &p))
		return true;
	for (size_t i = 0; i < g->views.len; i++)
		if (strcmp(g->views.items[i], ".git") != 0 &&
		    is_in_repository(g, root_fd, g->views.items[i], &p))
			return true;
	return false;
}
