/*
 * What git takes for a repository. In: names seen in a directory, or a workspace's .git file. Out:
 * whether it is a git directory; which directories outside the workspace its git needs. Runs in the
 * supervisor with the user's rights, on files that a hostile project may have brought.
 *
 * A directory outside the workspace is let in for git only if it says itself that it belongs to
 * this workspace, and the workspace's owner owns it: a .git file is a text that anybody may have
 * written.
 *
 * A repository is known by its parts, as git knows it, not by the name ".git": a bare one in any
 * directory has a configuration and hooks that git reads once somebody stands in it.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "policy/gitconfig.h"

#define WORD_MAX (1u << 20)

static const char *const parts[GIT_PARTS] = {
#define GIT_PART(id, name, why) [GIT_##id] = name,
#include "protect.def"
	[GIT_HEAD] = "HEAD",
	[GIT_OBJECTS] = "objects",
	[GIT_REFS] = "refs",
	[GIT_LOGS] = "logs",
};

const char *guard_git_name(enum git_part part)
{
	return parts[part];
}

void guard_git_note(struct git_seen *s, const struct walk_entry *entry)
{
	for (size_t i = 0; i < GIT_PARTS; i++)
		if (parts[i][0] == entry->name[0] && strcmp(parts[i], entry->name) == 0) {
			s->type[i] = entry->type;
			s->any = true;
		}
}

bool guard_is_git_dir(const struct git_seen *s, const char *path, size_t path_len)
{
	if (path_len >= 4 && memcmp(path + path_len - 4, ".git", 4) == 0 &&
	    (path_len == 4 || path[path_len - 5] == '/'))
		return true;
	return s->type[GIT_HEAD] &&
	       ((s->type[GIT_OBJECTS] && s->type[GIT_REFS]) || s->type[GIT_commondir]);
}

bool guard_in_view(const struct guard_root *g, const char *path, size_t n)
{
	for (size_t i = 0; i < g->views.len; i++) {
		const char *view = g->views.items[i];
		size_t len = strlen(view);

		if (strcmp(view, ".") == 0 ||
		    (n >= len && strncmp(path, view, len) == 0 && (n == len || path[len] == '/')))
			return true;
	}
	return false;
}

bool guard_is_in_git(const char *path, size_t n)
{
	for (size_t at = 0; at + 4 <= n; at++) {
		if (memcmp(path + at, ".git", 4) == 0 && (at == 0 || path[at - 1] == '/') &&
		    (at + 4 == n || path[at + 4] == '/'))
			return true;
	}
	return false;
}

bool guard_is_git_data(const struct guard_root *g, const struct walk_dir *d, const char *name)
{
	if (!guard_is_in_git(d->path, d->path_len) && !guard_is_in_git(g->path, strlen(g->path)))
		return false;
	return strcmp(name, parts[GIT_OBJECTS]) == 0 || strcmp(name, parts[GIT_REFS]) == 0 ||
	       strcmp(name, parts[GIT_LOGS]) == 0;
}

/* The text of a small file of a git directory, its line end cut off; NULL: none. */
static char *read_word(const char *dir, const char *name)
{
	auto_buf path = { 0 };
	auto_buf text = { 0 };
	auto_fd fd = -1;
	struct stat st;

	buf_printf(&path, "%s/%s", dir, name);
	if (path.failed)
		return NULL;
	fd = open(path.data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, WORD_MAX, &text) < 0 || memchr(text.data, '\0', text.len))
		return NULL;
	while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.data[--text.len] = '\0';
	return buf_take(&text);
}

/* Where value leads from dir, links resolved; NULL: nowhere. */
static char *real_from(const char *dir, const char *value)
{
	auto_buf path = { 0 };

	if (*value == '/')
		return realpath(value, NULL);
	buf_printf(&path, "%s/%s", dir, value);
	return path.failed ? NULL : realpath(path.data, NULL);
}

static bool has_parts(const char *dir, uid_t owner)
{
	static const char *const names[] = { ".", "HEAD", "objects", "refs" };
	auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (fd < 0 || fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_uid != owner)
			return false;
	return true;
}

/* What is wrong with a linked worktree's directory; NULL: nothing, and *ret_dir is what its git
 * needs. */
static const char *check_worktree(const char *workspace, const char *gitdir,
				  const char *common_word, uid_t owner, char **ret_dir)
{
	auto_free char *common = real_from(gitdir, common_word),
		       *back_word = read_word(gitdir, "gitdir"), *back = NULL;
	auto_buf expected = { 0 };
	auto_buf worktrees = { 0 };
	const char *slash = strrchr(gitdir, '/');

	back = back_word ? real_from(gitdir, back_word) : NULL;
	buf_printf(&expected, "%s/.git", workspace);
	if (!back || strcmp(back, buf_text(&expected)) != 0)
		return "does not point back at the workspace";
	if (!common || !has_parts(common, owner))
		return "belongs to no repository of the workspace's owner";
	buf_printf(&worktrees, "%s/worktrees", common);
	if (!slash || strncmp(gitdir, buf_text(&worktrees), (size_t)(slash - gitdir)) != 0 ||
	    worktrees.len != (size_t)(slash - gitdir))
		return "is not among the worktrees of its repository";
	*ret_dir = take_ptr(common);
	return *ret_dir ? NULL : "cannot be read";
}

static int find_worktree(void *ctx, const struct gitconfig_entry *entry)
{
	char **value = ctx;

	if (strcmp(entry->section, "core") != 0 || strcmp(entry->key, "worktree") != 0 ||
	    *entry->subsection)
		return 0;
	free(*value);
	*value = strdup(entry->value ? entry->value : "");
	return *value ? 0 : -ENOMEM;
}

/* The same for a submodule's directory. */
static const char *check_submodule(const char *workspace, const char *gitdir, uid_t owner,
				   char **ret_dir)
{
	auto_free char *text = NULL, *value = NULL, *back = NULL;

	if (!has_parts(gitdir, owner))
		return "is not a repository of the workspace's owner";
	text = read_word(gitdir, "config");
	if (!text || gitconfig_read(text, strlen(text), find_worktree, &value) != 0)
		return "has no readable configuration";
	back = value ? real_from(gitdir, value) : NULL;
	if (!back || strcmp(back, workspace) != 0)
		return "does not point back at the workspace";
	*ret_dir = strdup(gitdir);
	return *ret_dir ? NULL : "cannot be read";
}

/* A directory of a repository as workspace: git looks above it, where nothing is. */
static void note_repository_above(const char *workspace, struct strv *notes)
{
	auto_buf path = { 0 };
	size_t n = strlen(workspace);
	struct stat st;

	for (;; n--) {
		if (n > 0 && workspace[n] && workspace[n] != '/')
			continue;
		path.len = 0;
		buf_printf(&path, "%.*s/.git", (int)n, workspace);
		if (path.failed || n == 0)
			return;
		if (lstat(path.data, &st) == 0)
			break;
	}
	if (workspace[n])
		strv_addf(notes,
			  "git will not work inside: the repository starts in %.*s, above the "
			  "workspace; to include it: --workspace %.*s --chdir %s",
			  (int)n, workspace, (int)n, workspace, workspace);
}

int guard_git_dirs(const char *workspace, struct strv *dirs, struct strv *notes, struct ward_err *e)
{
	auto_free char *text = read_word(workspace, ".git"), *real = realpath(workspace, NULL);
	auto_free char *value = text ? gitconfig_gitdir(text, strlen(text)) : NULL;
	auto_free char *gitdir = NULL, *common_word = NULL, *found = NULL;
	const char *wrong;
	struct stat root, st;

	if (!text && real)
		note_repository_above(real, notes);
	if (!value || !real)
		return notes->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
	gitdir = real_from(real, value);
	if (gitdir && path_is_beneath(gitdir, real))
		return 0;
	if (stat(real, &root) < 0)
		return ward_fail_errno(e, "cannot look at %s", real);
	if (!gitdir || stat(gitdir, &st) < 0 || !S_ISDIR(st.st_mode)) {
		wrong = "is not a directory";
	} else if (st.st_uid != root.st_uid) {
		wrong = "does not belong to the workspace's owner";
	} else {
		common_word = read_word(gitdir, "commondir");
		wrong = common_word ? check_worktree(real, gitdir, common_word, root.st_uid, &found)
				    : check_submodule(real, gitdir, root.st_uid, &found);
	}
	if (wrong)
		strv_addf(notes,
			  "git will not work inside: the .git file of the workspace points to %s, "
			  "which %s; if it is yours, mount it with --rw",
			  value, wrong);
	else
		strv_add(dirs, found);
	return dirs->failed || notes->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}
