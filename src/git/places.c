/*
 * Work trees and submodules that the sandbox made. In: worktrees/ID and modules/NAME of a view that
 * the host does not have. Out: they stay in the list only if their work tree lies in the same tree
 * and its .git file points back; for a submodule an empty repository is made on the host. Runs in
 * ward-git with the rights of the repository's owner.
 *
 * Paths are followed through no link: what is a directory now must be one on the way, too. While
 * the sandbox runs it can replace a directory by a link right after the look, and `git worktree
 * repair` on the host would write behind that link: so nothing is taken over before the end, and at
 * the end a work tree that a new link leads to is forgotten.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "policy/gitconfig.h"
#include "rules/git_link.h"

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

static bool host_has(const struct take *t, const char *dir)
{
	struct stat st;

	return fstatat(t->host_fd, dir, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* work trees and submodules that one taking makes: git is called for each */
#define BORN_MAX 300

/* Takes every file beneath prefix off the list. */
static void drop_all(struct take *t, const char *prefix)
{
	size_t n = strlen(prefix);

	files_drop_all(&t->view, prefix);
	for (size_t i = 0; i < t->objects.len; i++)
		if (strncmp(t->objects.items[i], prefix, n) == 0)
			t->objects.items[i][0] = '\n'; /* of no repository */
}

static int refuse_place(struct take *t, const char *prefix, const char *why)
{
	auto_free char *dir = strndup(prefix, strlen(prefix) - 1);

	if (!dir)
		return out_of_memory(t);
	if (!t->live)
		say(t, "refused", dir, why);
	drop_all(t, prefix);
	return 0;
}

/* Opens a directory of the tree by its absolute path inside; -1: it is not in the tree, or a link
 * leads there. */
static int open_place(const struct take *t, const char *path)
{
	auto_fd root = open(t->record.host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t n = strlen(t->record.root);
	struct ward_err e = { 0 };

	if (root < 0 || !path_is_beneath(path, t->record.root))
		return -1;
	return path_open_nolink(root, path[n] ? path + n + 1 : ".", O_RDONLY | O_DIRECTORY, &e);
}

/* Whether the .git file in the work tree leads to the git directory at dir (in this one). */
static bool points_back(const struct take *t, int place_fd, const char *place, const char *dir)
{
	auto_buf bytes = { 0 }, expected = { 0 };
	auto_free char *target = NULL, *value = NULL;
	const char *at;
	size_t n;

	if (file_read(place_fd, ".git", 8192, &bytes) < 0 ||
	    !git_link_read(bytes.data, bytes.len, &at, &n))
		return false;
	value = strndup(at, n);
	target = value ? path_join(place, value) : NULL;
	/* the git directory as the sandbox saw it */
	buf_printf(&expected, "%s%s/%s", t->record.root,
		   t->record.git_dir + strlen(t->record.host_root), dir);
	return target && !expected.failed && strcmp(target, expected.data) == 0;
}

/* What is wrong with the place that worktrees/ID/gitdir names; NULL: nothing. */
static const char *find_wrong(const struct take *t, const struct file *gitdir, const char *dir)
{
	auto_free char *place = NULL;
	const char *at;
	auto_fd fd = -1;
	size_t n;

	if (!gitdir || !git_worktree_gitdir_read(gitdir->bytes, gitdir->n, &at, &n))
		return "is a work tree whose location is not in the usual form";
	place = strndup(at, n);
	fd = place ? open_place(t, place) : -1;
	if (fd < 0)
		return "belongs to a work tree outside the workspace";
	return points_back(t, fd, place, dir) ? NULL
					      : "belongs to a work tree that does not point back";
}

static int check_worktree(struct take *t, const char *prefix)
{
	auto_free char *dir = strndup(prefix, strlen(prefix) - 1);
	auto_buf path = { 0 };
	const char *why;

	buf_printf(&path, "%sgitdir", prefix);
	if (!dir || path.failed)
		return out_of_memory(t);
	why = find_wrong(t, files_find(&t->view, path.data), dir);
	return why ? refuse_place(t, prefix, why) : 0;
}

/* When the view was made; 0 where the file system does not tell: then every link is new. */
static int64_t view_birth(const struct take *t)
{
	struct statx x;

	if (statx(t->dir_fd, "", AT_EMPTY_PATH, STATX_BTIME, &x) < 0 || !(x.stx_mask & STATX_BTIME))
		return 0;
	return x.stx_btime.tv_sec;
}

/* Whether the path of a work tree in this tree leads through a link that was made since the view
 * was. A link that was there before is the user's own. */
static bool is_behind_new_link(const struct take *t, const char *place)
{
	auto_fd root = open(t->record.host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t n = strlen(t->record.root);
	auto_free char *path = NULL;

	if (root < 0 || !path_is_beneath(place, t->record.root) || !place[n])
		return false;
	path = strdup(place + n + 1);
	if (!path)
		return true;
	for (char *slash = path; slash;) {
		struct stat st;

		slash = strchr(slash, '/');
		if (slash)
			*slash = '\0';
		if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
		if (S_ISLNK(st.st_mode) && st.st_ctim.tv_sec >= view_birth(t))
			return true;
		if (slash)
			*slash++ = '/';
	}
	return false;
}

/* A work tree that both sides know, and whose directory may have become a link. */
static int check_kept(struct take *t, const struct file *gitdir, const char *dir)
{
	auto_free char *place = NULL, *prefix = NULL;
	const char *at;
	size_t n;

	if (t->live || !git_worktree_gitdir_read(gitdir->bytes, gitdir->n, &at, &n))
		return 0;
	place = strndup(at, n);
	if (!place || asprintf(&prefix, "%s/", dir) < 0)
		return out_of_memory(t);
	return is_behind_new_link(t, place)
		       ? refuse_place(t, prefix, "belongs to a work tree that is now a link")
		       : 0;
}

/* A work tree that the host has and that the sandbox says to have moved: only to a place that
 * points back, or `git worktree repair` and `remove` write and delete there. */
static int check_moved(struct take *t, const char *path)
{
	const struct file *now = files_find(&t->view, path), *old = files_find(&t->base, path);
	auto_free char *dir = strndup(path, strlen(path) - strlen("/gitdir"));
	const char *why;

	if (!dir)
		return out_of_memory(t);
	if (!now)
		return 0;
	if (files_equal(now, old))
		return check_kept(t, now, dir);
	why = find_wrong(t, now, dir);
	if (!why)
		return 0;
	if (!t->live)
		say(t, "refused", path, why);
	if (old)
		return files_set(&t->view, path, old->bytes, old->n) < 0 ? out_of_memory(t) : 0;
	files_drop(&t->view, path);
	return 0;
}

static int check_all_moved(struct take *t)
{
	auto_strv paths = { 0 };
	int status = 0;

	for (size_t i = 0; i < t->view.len; i++)
		if (git_path_find(t->view.items[i].path, GIT_DIR_MAIN, t->hash, false).form ==
		    GIT_FORM_GITDIR)
			strv_add(&paths, t->view.items[i].path);
	if (paths.failed)
		return out_of_memory(t);
	for (size_t i = 0; i < paths.len && status == 0; i++)
		status = check_moved(t, paths.items[i]);
	return status;
}

struct place_of {
	char *value;
};

static int find_worktree(void *ctx, const struct gitconfig_entry *entry)
{
	struct place_of *p = ctx;

	if (strcmp(entry->section, "core") != 0 || strcmp(entry->key, "worktree") != 0 ||
	    !entry->value)
		return 0;
	free(p->value);
	p->value = strdup(entry->value);
	return p->value ? 0 : -ENOMEM;
}

/* What git init wrote is what both sides begin with. */
static int agree_on_head(struct take *t, const char *prefix)
{
	auto_buf path = { 0 }, head = { 0 };

	buf_printf(&path, "%sHEAD", prefix);
	if (path.failed || file_read(t->host_fd, path.data, 4096, &head) < 0)
		return ward_fail(t->e, EIO, "cannot read %s of a new repository", buf_text(&path));
	return files_set(&t->base, path.data, buf_text(&head), head.len) < 0 ? out_of_memory(t) : 0;
}

/* A clone of a repository whose objects ward shows in a view borrows them from there: on the host
 * it borrows the same from the host's own repository. Any other place to borrow from is dropped. */
static int borrow_objects(struct take *t, const char *prefix)
{
	auto_buf path = { 0 }, text = { 0 }, line = { 0 };
	auto_free char *place = NULL;
	auto_fd fd = -1;
	int status;

	buf_printf(&path, "%sobjects/info/alternates", prefix);
	if (path.failed)
		return out_of_memory(t);
	if (file_read(t->view_fd, path.data, 8192, &text) < 0)
		return 0;
	place = git_view_borrowed(buf_text(&text), text.len);
	fd = place ? open_place(t, place) : -1;
	if (fd < 0)
		return 0;
	buf_printf(&line, "%s%s/objects\n", t->record.host_root, place + strlen(t->record.root));
	status = line.failed ? -ENOMEM
			     : file_write(t->host_fd, path.data, line.data, line.len, &t->wait_ms);
	return status < 0 ? ward_fail(t->e, -status, "cannot write %s", path.data) : 0;
}

/* The repository of a submodule on the host, empty, with its work tree set. */
static int make_module(struct take *t, const char *prefix, const char *worktree)
{
	auto_buf dir = { 0 }, file = { 0 };
	const char *init[] = { "init", "-q", "--bare", "--template=", NULL, NULL };
	const char *bare[] = { "config", "--file", NULL, "core.bare", "false", NULL };
	const char *tree[] = { "config", "--file", NULL, "core.worktree", worktree, NULL };
	struct git_call call = { .git_dir = t->record.git_dir };
	int status = 0;

	buf_printf(&dir, "%s/%.*s", t->record.git_dir, (int)strlen(prefix) - 1, prefix);
	buf_printf(&file, "%s/config", buf_text(&dir));
	if (dir.failed || file.failed)
		return out_of_memory(t);
	call.git_dir = init[4] = dir.data;
	bare[2] = tree[2] = file.data;
	for (size_t i = 0; i < 3 && status == 0; i++) {
		call.words = i == 0 ? init : i == 1 ? bare : tree;
		status = git_call(&call, NULL);
	}
	if (status)
		return refuse_place(t, prefix,
				    "is a submodule whose repository cannot be made on the host");
	return agree_on_head(t, prefix);
}

static int check_module(struct take *t, const char *prefix)
{
	auto_free char *dir = strndup(prefix, strlen(prefix) - 1), *inside = NULL, *place = NULL;
	struct place_of found = { 0 };
	auto_buf path = { 0 };
	const struct file *config;
	auto_fd fd = -1;
	int status;

	buf_printf(&path, "%sconfig", prefix);
	if (!dir || path.failed)
		return out_of_memory(t);
	config = files_find(&t->view, path.data);
	if (!config || gitconfig_read(config->bytes, config->n, find_worktree, &found) != 0 ||
	    !found.value) {
		free(found.value);
		return refuse_place(t, prefix,
				    "is a repository that no submodule of the workspace has");
	}
	if (asprintf(&inside, "%s%s/%s", t->record.root,
		     t->record.git_dir + strlen(t->record.host_root), dir) < 0)
		inside = NULL;
	place = inside ? path_join(inside, found.value) : NULL;
	fd = place ? open_place(t, place) : -1;
	if (fd < 0 || !points_back(t, fd, place, dir))
		status = refuse_place(t, prefix,
				      "is a repository that no submodule of the workspace has");
	else
		status = make_module(t, prefix, found.value);
	if (status == 0 && fd >= 0 && host_has(t, dir))
		status = borrow_objects(t, prefix);
	free(found.value);
	return status;
}

/* What the sandbox made and the host does not have: "modules/NAME/", "worktrees/ID/", sorted, a
 * submodule before what lies in it. */
static int find_born(struct take *t, struct strv *born)
{
	for (size_t i = 0; i < t->view.len; i++) {
		struct git_place p =
			git_path_find(t->view.items[i].path, GIT_DIR_MAIN, t->hash, false);
		const char *last = born->len ? born->items[born->len - 1] : "";
		auto_free char *prefix = NULL, *dir = NULL;

		if (p.inner == 0)
			continue;
		prefix = strndup(t->view.items[i].path, p.inner);
		dir = strndup(t->view.items[i].path, p.inner - 1);
		if (!prefix || !dir)
			return out_of_memory(t);
		if (strcmp(last, prefix) != 0 && !host_has(t, dir))
			strv_add(born, prefix);
	}
	strv_sort(born);
	return born->failed ? out_of_memory(t) : 0;
}

static bool path_is_worktree(const char *prefix)
{
	return strncmp(prefix, "modules/", 8) != 0 || strstr(prefix, "/worktrees/");
}

static int check_born(struct take *t, const char *prefix)
{
	if (t->live) {
		drop_all(t, prefix);
		return 0;
	}
	return path_is_worktree(prefix) ? check_worktree(t, prefix) : check_module(t, prefix);
}

int check_places(struct take *t)
{
	auto_strv born = { 0 };
	size_t checked = 0;
	int status = find_born(t, &born);

	for (size_t i = 0; i < born.len && status == 0; i++) {
		if (i && strcmp(born.items[i], born.items[i - 1]) == 0)
			continue;
		if (checked++ < BORN_MAX)
			status = check_born(t, born.items[i]);
		else
			drop_all(t, born.items[i]);
	}
	if (checked > BORN_MAX)
		say_lost(t,
			 "git: %zu new work trees and submodules were not imported: at most %d are",
			 checked - BORN_MAX, BORN_MAX);
	return status == 0 ? check_all_moved(t) : status;
}

/* Without a HEAD that leads somewhere, git fsck complains about a work tree of the host's. */
int check_heads(struct take *t)
{
	auto_strv born = { 0 };
	int status = find_born(t, &born);

	for (size_t i = 0; i < born.len && status == 0; i++) {
		const char *prefix = born.items[i];
		auto_buf path = { 0 }, patterns = { 0 };
		const struct file *head;

		if (!path_is_worktree(prefix) || (i && strcmp(prefix, born.items[i - 1]) == 0))
			continue;
		buf_printf(&path, "%sHEAD", prefix);
		buf_printf(&patterns, "%sinfo/sparse-checkout", prefix);
		if (path.failed || patterns.failed)
			return out_of_memory(t);
		head = files_find(&t->view, path.data);
		if (!head || !leads_somewhere(t, path.data, head))
			status = refuse_place(t, prefix,
					      "belongs to a work tree whose HEAD was not imported");
		else if (sparse_differs(t, patterns.data, files_find(&t->view, patterns.data)))
			status = refuse_place(t, prefix,
					      "belongs to a work tree without the sparse checkout "
					      "that keeps protected files away");
	}
	return status;
}

int list_repositories(struct take *t)
{
	auto_strv found = { 0 };

	strv_add(&t->repositories, "");
	for (size_t i = 0; i < t->view.len; i++) {
		struct git_place p =
			git_path_find(t->view.items[i].path, GIT_DIR_MAIN, t->hash, false);
		const char *last = found.len ? found.items[found.len - 1] : "";

		if (p.kind == GIT_DIR_MODULE &&
		    (strlen(last) != p.inner || strncmp(last, t->view.items[i].path, p.inner) != 0))
			strv_addf(&found, "%.*s", (int)p.inner, t->view.items[i].path);
	}
	strv_sort(&found);
	for (size_t i = 0; i < found.len; i++) {
		auto_free char *dir = strndup(found.items[i], strlen(found.items[i]) - 1);

		if (!dir)
			return out_of_memory(t);
		if ((i == 0 || strcmp(found.items[i], found.items[i - 1]) != 0) &&
		    (t->shows || host_has(t, dir)))
			strv_add(&t->repositories, found.items[i]);
	}
	return found.failed || t->repositories.failed ? out_of_memory(t) : 0;
}
