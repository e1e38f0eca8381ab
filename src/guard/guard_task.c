/*
 * What git goes on with. In: a file that says how a rebase, a cherry-pick or a series of patches
 * under way goes on. Out: what git would run for it, or write anywhere. Runs in the supervisor, at
 * the scan and at the sweep, on hostile files: they are opened by one name, without following
 * links, and only regular files are read, up to a bound.
 *
 * A rebase runs the commands of its list. A merge strategy is a program, "git-merge-NAME": one with
 * a slash in its name lies in the worktree; "index" runs what its options name, and "resolve" and
 * "octopus" hand theirs on to what writes files. The options of a series of patches can name a file
 * to write. Each task is one text, so that those from before the run are known again.
 */
#include "guard/guard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "policy/gitconfig.h"

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

static int read_list(const struct tasks *t, const char *text, size_t n)
{
	const char *command;
	size_t at = 0, len;

	while ((command = gitconfig_todo_next(text, n, &at, &len)))
		add_task(t, "exec", command, len);
	return 0;
}

static int read_strategy(const struct tasks *t, const char *text, size_t n)
{
	static const char *const harmless[] = { "", "ort", "ours", "recursive", "subtree" };

	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		if (strlen(harmless[i]) == n && memcmp(harmless[i], text, n) == 0)
			return 0;
	add_task(t, "strategy", text, n);
	return 0;
}

static int see_option(void *ctx, const struct gitconfig_entry *entry)
{
	if (strcmp(entry->section, "options") != 0 || strcmp(entry->key, "strategy") != 0 ||
	    !entry->value)
		return 0;
	return read_strategy(ctx, entry->value, strlen(entry->value));
}

static int read_options(const struct tasks *t, const char *text, size_t n)
{
	struct tasks copy = *t;
	int status = gitconfig_read(text, n, see_option, &copy);

	return status == -EINVAL ? 0 : status; /* git refuses it, too */
}

/* --build-fake-ancestor=FILE, however it is shortened. */
static int read_apply(const struct tasks *t, const char *text, size_t n)
{
	if (memmem(text, n, "--b", 3))
		add_task(t, "apply", text, n);
	return 0;
}

static const struct {
	const char *dir, *name; /* dir NULL: any */
	int (*read)(const struct tasks *t, const char *text, size_t n);
} files[] = {
	{ NULL, "git-rebase-todo", read_list },
	{ "rebase-merge", "strategy", read_strategy },
	{ "sequencer", "opts", read_options },
	{ "rebase-apply", "apply-opt", read_apply },
};

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
	if (path.failed || files[which].read(&t, buf_text(&text), text.len) < 0 || list->failed)
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
