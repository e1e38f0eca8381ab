/*
 * What git goes on with. In: a file that says how a rebase, a cherry-pick or a series of patches
 * under way goes on. Out: what git would run for it, or write anywhere. Runs in the supervisor, at
 * the scan and at the sweep, on hostile files: they are opened by one name, without following
 * links, and only regular files are read, up to a bound.
 *
 * A rebase runs the commands of its list. A merge strategy is a program, "git-merge-NAME": one with
 * a slash in its name lies in the worktree; "index" runs what its options name, and "resolve" and
 * "octopus" hand theirs on to what writes files. The options of a series of patches can name a file
 * to write. The strict readers of src/rules say what has the form that git writes; what has not is
 * a task. Each task is one text, so that those from before the run are known again.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "policy/gitconfig.h"
#include "rules/git_state.h"

#define FILE_MAX (16u << 20)
#define KEPT_MAX 1024u /* tasks of a root that are kept */
#define KEPT_LENGTH 4096u

static const char *const state_dirs[] = { "rebase-merge", "rebase-apply", "sequencer" };

struct tasks {
	const char *path; /* escaped */
	struct strv *list;
};

static void add_task(const struct tasks *t, const char *what, const char *text, size_t n)
{
	strv_addf(t->list, "%s\n%s %.*s", t->path, what, (int)n, text);
}

/* Each line that git would not write by itself in ordinary work. */
static int read_list(const struct tasks *t, const char *text, size_t n)
{
	const char *line;
	size_t at = 0, len;

	while ((line = git_todo_next_refused((const uint8_t *)text, n, &at, &len)))
		add_task(t, "exec", line, len);
	return 0;
}

static int ignore_setting(void *ctx unused_arg, const struct gitconfig_entry *entry unused_arg)
{
	return 0;
}

/* The options of a cherry-pick; where they are no configuration, git refuses them, too. */
static bool is_configuration(const char *text, size_t n)
{
	return gitconfig_read(text, n, ignore_setting, NULL) == 0;
}

static const struct {
	const char *dir, *name; /* dir NULL: any */
	enum git_form form;
} files[] = {
	{ NULL, "git-rebase-todo", GIT_FORM_TODO },
	{ "rebase-merge", "strategy", GIT_FORM_STRATEGY },
	{ "rebase-merge", "strategy_opts", GIT_FORM_STRATEGY_OPTS },
	{ "sequencer", "opts", GIT_FORM_SEQUENCER_OPTS },
	{ "rebase-apply", "apply-opt", GIT_FORM_APPLY_OPTS },
};

static int read_text(const struct tasks *t, size_t which, const char *text, size_t n)
{
	enum git_form form = files[which].form;

	if (form == GIT_FORM_TODO)
		return read_list(t, text, n);
	if (form == GIT_FORM_SEQUENCER_OPTS && !is_configuration(text, n))
		return 0;
	if (n && git_state_refused(form, (const uint8_t *)text, n, GIT_SHA1))
		add_task(t, files[which].name, text, n);
	return 0;
}

bool guard_is_state_dir(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(state_dirs); i++)
		if (strcmp(state_dirs[i], name) == 0)
			return true;
	return false;
}

/* Whether the last part of d's path is name. */
static bool is_called(const struct walk_dir *d, const char *name)
{
	size_t n = strlen(name);

	return d->path_len >= n && memcmp(d->path + d->path_len - n, name, n) == 0 &&
	       (d->path_len == n || d->path[d->path_len - n - 1] == '/');
}

/* A link that stands for a directory of git's: what lies behind it need not be in the tree. */
static bool is_state_link(const struct walk_dir *d, const struct walk_entry *entry)
{
	struct stat st;

	return entry->type == DT_LNK && guard_is_state_dir(entry->name) &&
	       fstatat(d->fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int read_file(const struct walk_dir *d, const struct walk_entry *entry, size_t which,
		     struct strv *list, struct ward_err *e)
{
	auto_fd fd = openat(d->fd, entry->name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf text = { 0 }, path = { 0 };
	struct tasks t = { .list = list };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, FILE_MAX, &text) < 0)
		return 1;
	guard_escape(&path, entry->path);
	t.path = buf_text(&path);
	if (path.failed || read_text(&t, which, buf_text(&text), text.len) < 0 || list->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return 0;
}

int guard_git_tasks(const struct walk_dir *d, const struct walk_entry *entry, struct strv *list,
		    struct ward_err *e)
{
	auto_buf link = { 0 };
	size_t i = 0;
	int status;

	while (i < ARRAY_LEN(files) && (strcmp(files[i].name, entry->name) != 0 ||
					(files[i].dir && !is_called(d, files[i].dir))))
		i++;
	if (entry->type == DT_DIR || (i == ARRAY_LEN(files) && !is_state_link(d, entry)))
		return 0;
	if (entry->type != DT_LNK)
		return read_file(d, entry, i, list, e);
	status = guard_link_text(d->fd, entry, &link, e);
	if (status < 0)
		return status;
	strv_add(list, link.data);
	return list->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int guard_note_tasks(struct guard_root *g, const struct walk_dir *d, const struct walk_entry *entry,
		     struct ward_err *e)
{
	auto_strv found = { 0 };
	int status = guard_git_tasks(d, entry, &found, e);

	for (size_t i = 0; i < found.len && g->tasks.len < KEPT_MAX && status >= 0; i++)
		if (strlen(found.items[i]) < KEPT_LENGTH && !strv_has(&g->tasks, found.items[i]))
			strv_add(&g->tasks, found.items[i]);
	if (g->tasks.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return status < 0 ? status : 0;
}
