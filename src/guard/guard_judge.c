/*
 * The judgement over git's files. In: a file of a repository that was made while an agent ran. Out:
 * whether it may stay. Runs in the supervisor at the sweep, on hostile files: they are opened by
 * one name, without following links, and only regular files are read, up to a bound.
 *
 * A repository may point at directories inside its tree, where the sweep judges them too, and
 * nowhere else. A path is taken by its letters, so one that goes up again after it went down
 * (a/../b) is refused: the kernel may see a link in "a".
 */
#include "guard/guard_judge.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "rules/git_config.h"
#include "rules/git_link.h"

#define CONFIG_MAX (1u << 20)
#define PATH_FILE_MAX 8192u

bool judge_read_regular(int dir_fd, const char *name, size_t max, struct buf *b)
{
	auto_fd fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       io_read_all(fd, max, b) == 0;
}

/* Whether a path goes up after it went down. */
static bool goes_back(const char *path)
{
	bool down = *path == '/';

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && strncmp(path, "..", 2) == 0) {
			if (down)
				return true;
		} else if (n && !(n == 1 && *path == '.')) {
			down = true;
		}
		path += n + strspn(path + n, "/");
	}
	return false;
}

char *judge_resolve(const struct guard_root *g, const char *dir_path, const char *value)
{
	auto_free char *base = NULL, *full = NULL;

	if (!*value || goes_back(value))
		return NULL;
	base = path_join(g->path, *dir_path ? dir_path : ".");
	full = base ? path_join(base, value) : NULL;
	if (!full || !path_is_beneath(full, g->path))
		return NULL;
	if (g->path[1] == '\0')
		return strdup(full + 1);
	return strdup(full[strlen(g->path)] ? full + strlen(g->path) + 1 : "");
}

static int refuse(struct buf *why, const char *text)
{
	buf_puts(why, text);
	return why->failed ? -ENOMEM : 1;
}

bool judge_is_behind_link(int root_fd, const char *inside)
{
	struct ward_err ignored;
	auto_fd fd =
		path_open_nolink(root_fd, *inside ? inside : ".", O_PATH | O_DIRECTORY, &ignored);

	return fd == -ELOOP || fd == -ENOTDIR;
}

struct config {
	const struct guard_root *g;
	int root_fd;
	const char *dir_path;
	struct buf *why;
	bool modules;
};

static int judge_setting(void *ctx, const struct gitconfig_entry *entry)
{
	struct config *c = ctx;
	const char *why = "";
	enum git_config_verdict v = c->modules ? git_modules_allowed(entry, &why)
					       : git_config_allowed(entry, GIT_DIR_MODULE, &why);

	if (v == GIT_CONFIG_WORKTREE) {
		auto_free char *inside = judge_resolve(c->g, c->dir_path, entry->value);

		if (inside && !judge_is_behind_link(c->root_fd, inside))
			return 0;
		why = inside ? "names a work tree behind a link" : why;
		v = GIT_CONFIG_REFUSED;
	}
	if (v != GIT_CONFIG_REFUSED)
		return 0;
	buf_printf(c->why, "git configuration whose %s.%s%s%.100s %s", entry->section,
		   entry->subsection, *entry->subsection ? "." : "", entry->key, why);
	return c->why->failed ? -ENOMEM : 1;
}

static int judge_settings(struct config *c, int dir_fd, const char *name)
{
	auto_buf text = { 0 };
	const char *why = "";
	size_t line = 0;
	int status;

	if (!judge_read_regular(dir_fd, name, CONFIG_MAX, &text))
		return refuse(c->why, "git configuration that cannot be read");
	status = git_config_read(buf_text(&text), text.len, judge_setting, c, &why, &line);
	if (status != -EINVAL)
		return status;
	buf_printf(c->why, "git configuration that git does not write like this: line %zu has %s",
		   line, why);
	return c->why->failed ? -ENOMEM : 1;
}

int judge_config(const struct guard_root *g, int root_fd, int dir_fd, const char *dir_path,
		 const char *name, struct buf *why)
{
	struct config c = { .g = g, .root_fd = root_fd, .dir_path = dir_path, .why = why };

	return judge_settings(&c, dir_fd, name);
}

int judge_modules(const struct guard_root *g, int dir_fd, const char *dir_path, const char *name,
		  struct buf *why)
{
	struct config c = {
		.g = g, .root_fd = -1, .dir_path = dir_path, .why = why, .modules = true
	};

	return judge_settings(&c, dir_fd, name);
}

/* Whether the path that a git directory says its work tree has, from the directory base, is the
 * directory dir_path of the tree. The sandbox may have seen the tree elsewhere. */
static bool is_work_tree(const struct guard_root *g, const char *base, const char *said,
			 const char *dir_path)
{
	const char *tops[] = { g->path, g->target ? g->target : g->path };

	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		auto_free char *git_dir = path_join(tops[i], *base ? base : "."),
			       *place = git_dir ? path_join(git_dir, said) : NULL;
		auto_free char *wanted = path_join(tops[i], *dir_path ? dir_path : ".");

		if (place && wanted && strcmp(place, wanted) == 0)
			return true;
	}
	return false;
}

static int find_worktree(void *ctx, const struct gitconfig_entry *entry)
{
	char **value = ctx;

	if (strcmp(entry->section, "core") != 0 || strcmp(entry->key, "worktree") != 0)
		return 0;
	free(*value);
	*value = strdup(entry->value);
	return *value ? 0 : -ENOMEM;
}

/* worktrees/ID says in `gitdir`, modules/NAME in its configuration, which work tree it is of. */
static bool points_back(const struct guard_root *g, int git_fd, const char *inside,
			const char *dir_path)
{
	auto_free char *value = NULL;
	auto_buf text = { 0 };
	const char *at, *why;
	size_t n;

	if (strstr(inside, "worktrees/") &&
	    judge_read_regular(git_fd, "gitdir", PATH_FILE_MAX, &text)) {
		if (!git_worktree_gitdir_read(buf_text(&text), text.len, &at, &n))
			return false;
		value = strndup(at, n);
		return value && is_work_tree(g, inside, value, dir_path);
	}
	if (!strstr(inside, "modules/") ||
	    !judge_read_regular(git_fd, "config", CONFIG_MAX, &text) ||
	    git_config_read(buf_text(&text), text.len, find_worktree, &value, &why, NULL) != 0 ||
	    !value)
		return false;
	return is_work_tree(g, inside, value, dir_path);
}

int judge_gitlink(const struct guard_root *g, int root_fd, int dir_fd, const char *dir_path,
		  const char *name, struct buf *why)
{
	auto_buf text = { 0 };
	auto_free char *value = NULL, *inside = NULL;
	struct ward_err e;
	const char *path;
	auto_fd fd = -1;
	size_t n;

	if (!judge_read_regular(dir_fd, name, PATH_FILE_MAX, &text))
		return refuse(why, "a .git that is not a regular file");
	if (!git_link_read(buf_text(&text), text.len, &path, &n))
		return refuse(why, "a .git file that git does not write like this");
	value = strndup(path, n);
	if (!value)
		return -ENOMEM;
	inside = judge_resolve(g, dir_path, value);
	if (!inside)
		return refuse(why, "a .git file that points git to a directory outside the tree");
	fd = path_open_nolink(root_fd, *inside ? inside : ".", O_RDONLY | O_DIRECTORY, &e);
	if (fd < 0)
		return refuse(
			why,
			fd == -ENOENT
				? "a .git file that points git to a directory that does not exist"
				: "a .git file that points git through a link");
	return points_back(g, fd, inside, dir_path)
		       ? 0
		       : refuse(why,
				"a .git file that points git to a directory of another work tree");
}
