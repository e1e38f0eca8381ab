/*
 * Files that stand for themselves: HEAD, what a merge, rebase or bisect leaves while it is under
 * way. In: the files of both sides, as they had them last and have them now. Out: replaced files,
 * written as git writes them. Runs in ward-git with the rights of the repository's owner.
 *
 * What only the sandbox changed goes to the host, what only the host changed goes to the view while
 * the sandbox runs. Where both changed a file the host's stays. index.c decides about indexes
 * before refs are moved.
 */
#include "git/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "rules/git_ref.h"

#define FILE_MAX (64u << 20)

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

bool read_host(struct take *t, const char *path, struct buf *bytes, struct file *ret_file)
{
	if (file_read(t->host_fd, path, FILE_MAX, bytes) < 0)
		return false;
	*ret_file = (struct file){ .bytes = bytes->data, .n = bytes->len };
	return true;
}

int agree(struct take *t, const char *path, const struct file *f)
{
	if (!f) {
		files_drop(&t->base, path);
		return 0;
	}
	return files_set(&t->base, path, f->bytes ? f->bytes : "", f->n) < 0 ? out_of_memory(t) : 0;
}

/* Directories in which git keeps nothing but state: an empty one would look like an operation under
 * way. */
static void remove_empty(struct take *t, const char *path)
{
	static const char *const states[] = { "rebase-merge", "rebase-apply", "sequencer",
					      "NOTES_MERGE_WORKTREE" };
	auto_free char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	const char *name;

	if (!slash)
		return;
	*slash = '\0';
	name = strrchr(dir, '/');
	name = name ? name + 1 : dir;
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (strcmp(name, states[i]) == 0)
			(void)unlinkat(t->host_fd, dir, AT_REMOVEDIR);
	if (strncmp(dir, "worktrees/", 10) == 0) {
		static const char *const subs[] = { "logs",          "refs/bisect",
						    "refs/worktree", "refs/rewritten",
						    "refs",          "" };

		slash = strchr(dir + 10, '/');
		if (slash)
			*slash = '\0';
		for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
			auto_buf one = { 0 };

			buf_printf(&one, "%s%s%s", dir, *subs[i] ? "/" : "", subs[i]);
			if (!one.failed)
				(void)unlinkat(t->host_fd, one.data, AT_REMOVEDIR);
		}
		(void)unlinkat(t->host_fd, "worktrees", AT_REMOVEDIR);
	}
}

/* Whether trying again later may help. Anything else is a name that the sandbox chose, and is not
 * worth keeping the view for. */
static bool is_host_trouble(int status)
{
	return status == -ENOSPC || status == -EDQUOT || status == -EIO || status == -EROFS ||
	       status == -EACCES || status == -EBUSY;
}

int write_host(struct take *t, const char *path, const struct file *f)
{
	int status = file_write(t->host_fd, path, f ? (f->bytes ? f->bytes : "") : NULL,
				f ? f->n : 0, &t->wait_ms);

	if (status < 0) {
		say_lost(t, "git: cannot write %s on the host: %s", path, strerror(-status));
		t->failed |= is_host_trouble(status) && !t->live;
		return 1;
	}
	if (!f)
		remove_empty(t, path);
	return agree(t, path, f);
}

int pull(struct take *t, const char *path, const struct file *theirs)
{
	if (!t->live)
		return 0;
	if (file_write(t->view_fd, path, theirs ? (theirs->bytes ? theirs->bytes : "") : NULL,
		       theirs ? theirs->n : 0, NULL) < 0)
		return 0; /* the sandbox is in the way; the end of the run decides */
	return agree(t, path, theirs);
}

static bool is_elsewhere(const struct git_place *place)
{
	return (place->form == GIT_FORM_REF && place->kind != GIT_DIR_WORKTREE) ||
	       place->form == GIT_FORM_PACKED_REFS || place->form == GIT_FORM_REFLOG ||
	       place->form == GIT_FORM_INDEX || place->form == GIT_FORM_CONFIG;
}

static bool is_taken(const struct take *t, const char *path, const struct git_place *place)
{
	if (t->record.free_hooks && strncmp(path, "hooks/", 6) == 0)
		return true;
	return place->treat == GIT_TREAT_ADMIT || place->treat == GIT_TREAT_REPORT ||
	       (place->treat == GIT_TREAT_MERGE && place->form == GIT_FORM_TEXT);
}

/* Whether a branch that HEAD would name is not there because its commits are held. */
static bool is_held_back(const struct take *t, const char *git_dir, const char *name, size_t n)
{
	auto_free char *ref = strndup(name, n);
	const char *words[] = { "show-ref", "--verify", "--quiet", "--", ref, NULL };
	struct git_call call = { .git_dir = git_dir, .words = words };

	return t->held.len && (!ref || git_call(&call, NULL) != 0);
}

/* Whether the host's ref of that name is a symbolic one. */
static bool is_symbolic_there(const char *git_dir, const char *name, size_t n)
{
	auto_free char *ref = strndup(name, n);
	const char *words[] = { "symbolic-ref", "-q", ref, NULL };
	struct git_call call = { .git_dir = git_dir, .words = words };

	return !ref || git_call(&call, NULL) != 1;
}

/* A HEAD that holds an id must hold one that is there, and one that names a branch must not name a
 * symbolic ref: git refuses to work otherwise. */
bool leads_somewhere(struct take *t, const char *path, const struct file *head)
{
	auto_free char *git_dir = NULL;
	enum git_ref_kind kind;
	const char *id;
	size_t n;

	kind = git_head_read(head->bytes, head->n, t->hash, &id, &n);
	if (repository_of(t, path, &git_dir) == 0 &&
	    (kind == GIT_REF_ID
		     ? ids_complete(git_dir, head->bytes)
		     : !is_symbolic_there(git_dir, id, n) && !is_held_back(t, git_dir, id, n)))
		return true;
	say_lost(t, "git: %s was not imported: it points nowhere", path);
	return false;
}

/* Whether a file names a commit that is held, or one beside it in the directory of an operation
 * that is under way: NULL, or what that commit brings. */
static const char *find_held(struct take *t, const char *path)
{
	static const char *const states[] = { "rebase-merge/", "rebase-apply/", "sequencer/" };
	const struct file *v = files_find(&t->view, path);
	const char *slash = strrchr(path, '/'), *why;
	size_t n = slash ? (size_t)(slash - path) + 1 : 0;
	bool state = false;

	if (!t->held.len || !v)
		return NULL;
	why = history_fault_in(t, v);
	for (size_t i = 0; i < ARRAY_LEN(states) && !state; i++) {
		size_t len = strlen(states[i]);

		state = n >= len && strncmp(path + n - len, states[i], len) == 0;
	}
	for (size_t i = 0; i < t->view.len && state && !why; i++) {
		const struct file *other = &t->view.items[i];

		if (strncmp(other->path, path, n) == 0 && !strchr(other->path + n, '/') &&
		    !files_equal(other, files_find(&t->base, other->path)))
			why = history_fault_in(t, other);
	}
	return why;
}

/* Whether a file is of a `git am` under way: its patches are text, and --skip would write whatever
 * they say. A rebase in the same directory is made of commits, which were examined. */
static bool is_patch_series(const struct take *t, const char *path)
{
	static const char dir[] = "rebase-apply/";
	const char *at = strstr(path, dir);
	auto_buf above = { 0 }, rebasing = { 0 };

	if (!at || (at > path && at[-1] != '/'))
		return false;
	buf_printf(&above, "%.*srebase-apply", (int)(at - path), path);
	buf_printf(&rebasing, "%.*s%srebasing", (int)(at - path), path, dir);
	if (above.failed || rebasing.failed)
		return true;
	return files_any_beneath(&t->view, above.data) && !files_find(&t->view, rebasing.data);
}

static int merge_file(struct take *t, const char *path)
{
	struct git_place place = git_path_find(path, GIT_DIR_MAIN, t->hash, false);
	const struct file *b = files_find(&t->base, path), *v = files_find(&t->view, path);
	auto_buf bytes = { 0 };
	struct file now;
	const char *why;
	bool there;
	const struct file *h;
	int status;

	if (is_elsewhere(&place) || strstr(path, ".ward-refs"))
		return 0;
	there = read_host(t, path, &bytes, &now);
	h = there ? &now : NULL;
	if (files_equal(v, b))
		return files_equal(h, b) ? 0 : pull(t, path, h);
	if (!is_taken(t, path, &place))
		return 0;
	if (files_equal(h, v))
		return agree(t, path, v);
	if (!files_equal(h, b)) {
		if (place.treat != GIT_TREAT_ADMIT || place.form == GIT_FORM_HEAD)
			say_lost(t,
				 "git: %s changed on the host and in the sandbox; the host's "
				 "version stays",
				 path);
		return 0;
	}
	if (sparse_differs(t, path, v)) {
		say_lost(t,
			 "git: %s was not imported: the host's keeps protected files of the "
			 "commits out of the work tree",
			 path);
		return 0;
	}
	if (place.form == GIT_FORM_HEAD && v && !leads_somewhere(t, path, v))
		return 0;
	if (is_patch_series(t, path)) {
		if (strstr(path, "rebase-apply/next"))
			say_lost(t, "git: the git am under way was not imported: its patches could "
				    "write protected files");
		return 0;
	}
	if (v && (why = find_held(t, path))) {
		say_lost(t, "git: %s was not imported: its commits bring %s, which is protected",
			 path, *why ? why : "objects that are missing");
		return 0;
	}
	status = write_host(t, path, v);
	return status < 0 ? status : 0;
}

int for_each_path(struct take *t, int (*fn)(struct take *t, const char *path), bool logs)
{
	auto_strv paths = { 0 };
	int status = 0;

	for (size_t i = 0; i < t->base.len; i++)
		strv_add(&paths, t->base.items[i].path);
	for (size_t i = 0; i < t->view.len; i++)
		if (!files_find(&t->base, t->view.items[i].path))
			strv_add(&paths, t->view.items[i].path);
	if (paths.failed)
		return out_of_memory(t);
	for (size_t i = 0; i < paths.len && status >= 0; i++) {
		struct git_place place =
			git_path_find(paths.items[i], GIT_DIR_MAIN, t->hash, false);

		if ((place.form == GIT_FORM_REFLOG) == logs)
			status = fn(t, paths.items[i]);
	}
	return status < 0 ? status : 0;
}

int take_state(struct take *t)
{
	int status = for_each_path(t, merge_file, false);

	/* a split index is read with its shared part */
	for (size_t i = 0; i < t->view.len && status >= 0; i++)
		if (strstr(t->view.items[i].path, "sharedindex.") && t->indexes.len &&
		    !files_find(&t->base, t->view.items[i].path))
			status = write_host(t, t->view.items[i].path, &t->view.items[i]);
	for (size_t i = 0; i < t->indexes.len && status >= 0; i++) {
		const struct file *v = files_find(&t->view, t->indexes.items[i]);

		if (v || files_find(&t->base, t->indexes.items[i]))
			status = write_host(t, t->indexes.items[i], v);
	}
	return status < 0 ? status : 0;
}
