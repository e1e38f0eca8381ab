/*
 * The judgement over git's files. In: a file of a repository that was made while an agent ran. Out: whether it may stay.
 * Runs in the supervisor at the sweep, on hostile files: they are opened by one name, without following links, and
 * only regular files are read, up to a bound.
 *
 * A repository may point at directories inside its tree, where the sweep judges them too, and nowhere else. A path is
 * taken by its letters, so one that goes up again after it went down (a/../b) is refused: the kernel may see a link in "a".
 */
#include "lib/guard_judge.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "policy/gitconfig.h"

#define CONFIG_MAX (1u << 20)
#define PATH_FILE_MAX 8192u

/* Reads a regular file; false: it is not one, or it cannot be read. */
static bool read_regular(int dir_fd, const char *name, size_t max, struct buf *b)
{
	auto_fd fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && io_read_all(fd, max, b) == 0;
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

static bool has_name(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Why the directory that value leads to may not be git's: static text, NULL when it may. */
static const char *judge_git_dir(const struct guard_root *g, int root_fd, const char *dir_path,
				 const char *value, bool common)
{
	auto_free char *inside = judge_resolve(g, dir_path, value);
	struct ward_err e;
	int fd;
	bool known;

	if (!inside)
		return "leads git to a directory outside the tree";
	fd = path_open_nolink(root_fd, *inside ? inside : ".", O_PATH | O_DIRECTORY, &e);
	if (fd == -ENOENT)
		return common ? "leads git to a directory that is not there" : NULL;
	if (fd < 0)
		return "leads git through a link";
	known = has_name(fd, "HEAD") && has_name(fd, "objects") && has_name(fd, "refs");
	if (!common)
		known = known || (has_name(fd, "HEAD") && has_name(fd, "commondir"));
	close(fd);
	return known ? NULL : "leads git to a directory that is no repository";
}

static int refuse(struct buf *why, const char *text)
{
	buf_puts(why, text);
	return why->failed ? -ENOMEM : 1;
}

struct config {
	const struct guard_root *g;
	const char *dir_path;
	struct buf *why;
	bool modules;
};

static int judge_setting(void *ctx, const struct gitconfig_entry *entry)
{
	struct config *c = ctx;
	const char *why = "is not a setting of a submodule";
	enum gitconfig_verdict v = GITCONFIG_REFUSED;

	if (!c->modules || strcmp(entry->section, "submodule") == 0)
		v = gitconfig_judge(entry, &why);
	if (v == GITCONFIG_WORKTREE) {
		auto_free char *inside = judge_resolve(c->g, c->dir_path, entry->value ? entry->value : "");

		if (inside)
			return 0;
		v = GITCONFIG_REFUSED;
	}
	if (v == GITCONFIG_PLAIN)
		return 0;
	buf_printf(c->why, "git configuration whose %s.%s%s%.100s %s", entry->section, entry->subsection,
		   *entry->subsection ? "." : "", entry->key, why);
	return c->why->failed ? -ENOMEM : 1;
}

static int judge_settings(struct config *c, int dir_fd, const char *name)
{
	auto_buf text = { 0 };
	int status;

	if (!read_regular(dir_fd, name, CONFIG_MAX, &text))
		return refuse(c->why, "git configuration that cannot be read");
	status = gitconfig_read(text.data, text.len, judge_setting, c);
	return status == -EINVAL ? refuse(c->why, "git configuration that git itself would refuse") : status;
}

int judge_config(const struct guard_root *g, int dir_fd, const char *dir_path, const char *name,
		 struct buf *why)
{
	struct config c = { .g = g, .dir_path = dir_path, .why = why };

	return judge_settings(&c, dir_fd, name);
}

int judge_modules(const struct guard_root *g, int dir_fd, const char *dir_path, const char *name,
		  struct buf *why)
{
	struct config c = { .g = g, .dir_path = dir_path, .why = why, .modules = true };

	return judge_settings(&c, dir_fd, name);
}

int judge_gitlink(const struct guard_root *g, int root_fd, int dir_fd, const char *dir_path,
		  const char *name, struct buf *why)
{
	auto_buf text = { 0 };
	auto_free char *value = NULL;
	const char *reason;

	if (!read_regular(dir_fd, name, PATH_FILE_MAX, &text))
		return refuse(why, "a .git that is no plain file");
	value = gitconfig_gitdir(text.data, text.len);
	if (!value)
		return 0;	/* git finds nothing in it either */
	reason = judge_git_dir(g, root_fd, dir_path, value, false);
	return reason ? refuse(why, reason) : 0;
}

int judge_commondir(const struct guard_root *g, int root_fd, int dir_fd, const char *dir_path,
		    const char *name, struct buf *why)
{
	auto_buf text = { 0 };
	const char *reason;

	if (!read_regular(dir_fd, name, PATH_FILE_MAX, &text) || memchr(text.data, '\0', text.len))
		return refuse(why, "a commondir that cannot be read");
	while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.data[--text.len] = '\0';
	reason = judge_git_dir(g, root_fd, dir_path, text.data, true);
	return reason ? refuse(why, reason) : 0;
}
