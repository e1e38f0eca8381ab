/*
 * Which directories of a review are shown as one line. In: the changes, the .gitignore files. Out:
 * folds. Runs in ward diff with the user's rights.
 *
 * Ignored is what the workspace's own .gitignore files and .git/info/exclude say. The run's own
 * .gitignore counts only in directories that the run made: otherwise an agent could fold its
 * changes to a directory that it does not like to be looked at. A file that git tracks is never
 * ignored.
 */
#include "cli/review_fold.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/text.h"
#include "policy/ignore.h"

#define IGNORE_MAX (1u << 20)

/* The patterns of one directory, in one of the two trees. */
struct patterns {
	char *dir; /* owned */
	struct ignore *workspace, *run;
};

struct folding {
	const struct review *review;
	const struct review_asked *asked;
	const struct changes *all;
	struct folds *folds;
	struct patterns *lists; /* by directory, as they were needed */
	size_t list_count, list_cap;
	struct strv tracked; /* sorted */
	struct ignore *exclude;
	char *last_dir; /* the answer for the directory that was asked for last; owned */
	uint32_t last_fold;
};

static int read_patterns(int root_fd, const char *path, struct ignore **ret)
{
	const char *name;
	auto_fd dir = changes_open_parent(root_fd, path, &name), fd = -1;
	auto_buf text = { 0 };
	struct stat st;

	if (dir >= 0)
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_all(fd, IGNORE_MAX, &text) < 0)
		return 0;
	return ignore_add(ret, buf_text(&text), text.len);
}

/* The patterns of a directory, read once. NULL: out of memory. */
static const struct patterns *patterns_of(struct folding *f, const char *dir, size_t n)
{
	auto_buf path = { 0 };
	struct patterns *p;

	for (size_t i = 0; i < f->list_count; i++)
		if (strlen(f->lists[i].dir) == n && strncmp(f->lists[i].dir, dir, n) == 0)
			return &f->lists[i];
	if (f->list_count == f->list_cap) {
		size_t cap = f->list_cap ? f->list_cap * 2 : 16;
		struct patterns *grown = reallocarray(f->lists, cap, sizeof(*grown));

		if (!grown)
			return NULL;
		f->lists = grown;
		f->list_cap = cap;
	}
	p = &f->lists[f->list_count];
	*p = (struct patterns){ .dir = strndup(dir, n) };
	if (!p->dir)
		return NULL;
	f->list_count++;
	buf_printf(&path, "%s%s.gitignore", p->dir, n ? "/" : "");
	if (path.failed || read_patterns(f->review->workspace_fd, path.data, &p->workspace) < 0 ||
	    read_patterns(f->review->upper_fd, path.data, &p->run) < 0)
		return NULL;
	return p;
}

/* What the .gitignore files of one tree say about the directory that is the first n bytes of
 * path: the innermost that says something counts. */
static int is_ignored(struct folding *f, const char *path, size_t n, bool of_run)
{
	auto_free char *dir = strndup(path, n);
	enum ignore_verdict v = IGNORE_NONE;
	size_t above = n;

	if (!dir)
		return -ENOMEM;
	do {
		const struct patterns *p;

		while (above && path[above - 1] != '/')
			above--;
		p = patterns_of(f, path, above ? above - 1 : 0);
		if (!p)
			return -ENOMEM;
		v = ignore_decide(of_run ? p->run : p->workspace, dir + above, true);
		above = above ? above - 1 : 0;
	} while (v == IGNORE_NONE && above);
	if (v == IGNORE_NONE && !of_run)
		v = ignore_decide(f->exclude, dir, true);
	return v == IGNORE_EXCLUDED;
}

/* Whether the run made the directory. */
static bool is_made(const struct folding *f, const char *path, size_t n)
{
	size_t low = 0, high = f->all->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct change *c = &f->all->items[middle];
		int order = strncmp(c->path, path, n);

		if (order == 0 && c->path[n])
			order = 1;
		if (order == 0)
			return c->kind == CHANGE_ADDED && S_ISDIR(c->new_mode);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* 1 with *why: the directory is shown as one line; 0; -ENOMEM. */
static int is_folded(struct folding *f, const char *path, size_t n, enum fold_why *why)
{
	int status;

	if (n >= 4 && strncmp(path + n - 4, ".git", 4) == 0 && (n == 4 || path[n - 5] == '/')) {
		*why = FOLD_GIT;
		return 1;
	}
	status = is_ignored(f, path, n, false);
	*why = FOLD_IGNORED;
	if (status == 0 && is_made(f, path, n)) {
		status = is_ignored(f, path, n, true);
		*why = FOLD_IGNORED_NEW;
	}
	return status;
}

/* Whether somebody asked for the directory itself, or for something in it. */
static bool is_asked_for(const struct folding *f, const char *path, size_t n)
{
	for (size_t i = 0; i < f->asked->paths.len; i++) {
		const char *asked = f->asked->paths.items[i];

		if (strncmp(asked, path, n) == 0 && (!asked[n] || asked[n] == '/'))
			return true;
	}
	return false;
}

static uint32_t add_fold(struct folds *f, const char *path, size_t n, enum fold_why why)
{
	for (size_t i = f->len; i-- > 0;)
		if (strlen(f->items[i].path) == n && strncmp(f->items[i].path, path, n) == 0)
			return (uint32_t)i;
	if (f->len == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 8;
		struct fold *grown = reallocarray(f->items, cap, sizeof(*grown));

		if (!grown)
			return FOLD_NONE;
		f->items = grown;
		f->cap = cap;
	}
	f->items[f->len] = (struct fold){ .path = strndup(path, n), .why = why };
	return f->items[f->len].path ? (uint32_t)f->len++ : FOLD_NONE;
}

/* The fold of the directory that path lies in, from the top down. */
static int find_fold(struct folding *f, const char *path, uint32_t *ret)
{
	*ret = FOLD_NONE;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);
		enum fold_why why = FOLD_GIT;
		int status;

		if (is_asked_for(f, path, n))
			continue;
		status = is_folded(f, path, n, &why);
		if (status < 0)
			return status;
		if (status) {
			*ret = add_fold(f->folds, path, n, why);
			return *ret == FOLD_NONE ? -ENOMEM : 0;
		}
	}
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_tracked(const struct folding *f, const char *path)
{
	return f->tracked.len &&
	       bsearch(&path, f->tracked.items, f->tracked.len, sizeof(*f->tracked.items), by_text);
}

/* A person must see it. */
static bool stands_out(const struct folding *f, const struct change *c)
{
	return c->is_protected || c->refused || c->conflict || c->merged || c->steers ||
	       c->leads_to || (c->old_mode && is_tracked(f, c->path));
}

static int fold_change(struct folding *f, size_t i)
{
	const struct change *c = &f->all->items[i];
	const char *slash = strrchr(c->path, '/');
	size_t n = slash ? (size_t)(slash - c->path) : 0;
	struct fold *fold;
	int status = 0;

	f->folds->of[i] = FOLD_NONE;
	if (!n || c->implied || stands_out(f, c))
		return 0;
	if (!f->last_dir || strlen(f->last_dir) != n || strncmp(f->last_dir, c->path, n) != 0) {
		free(f->last_dir);
		f->last_dir = strndup(c->path, n);
		status = f->last_dir ? find_fold(f, c->path, &f->last_fold) : -ENOMEM;
	}
	if (status < 0 || f->last_fold == FOLD_NONE)
		return status;
	f->folds->of[i] = f->last_fold;
	fold = &f->folds->items[f->last_fold];
	if (c->kind == CHANGE_ADDED)
		fold->added++;
	else if (c->kind == CHANGE_DELETED)
		fold->deleted++;
	else
		fold->changed++;
	return 0;
}

static void folding_clear(struct folding *f)
{
	for (size_t i = 0; i < f->list_count; i++) {
		free(f->lists[i].dir);
		ignore_free(f->lists[i].workspace);
		ignore_free(f->lists[i].run);
	}
	free(f->lists);
	free(f->last_dir);
	strv_free(&f->tracked);
	ignore_free(f->exclude);
}

int folds_find(const struct review *r, const struct review_asked *asked, const struct changes *all,
	       struct folds *ret, struct ward_err *e)
{
	struct folding f = { .review = r, .asked = asked, .all = all, .folds = ret };
	int status;

	*ret = (struct folds){ .of = calloc(all->len + 1, sizeof(*ret->of)) };
	status = ret->of ? changes_list_tracked(r, &f.tracked) : -ENOMEM;
	if (status == 0)
		status = read_patterns(r->workspace_fd, ".git/info/exclude", &f.exclude);
	for (size_t i = 0; i < all->len && status >= 0; i++)
		status = fold_change(&f, i);
	folding_clear(&f);
	if (status >= 0)
		return 0;
	folds_clear(ret);
	return ward_fail(e, -status, "out of memory");
}

void folds_clear(struct folds *f)
{
	for (size_t i = 0; i < f->len; i++)
		free(f->items[i].path);
	free(f->items);
	free(f->of);
	*f = (struct folds){ 0 };
}

const char *folds_why(const struct fold *f)
{
	static const char *const why[] = { "git's own data", "ignored by git",
					   "ignored by the run's own .gitignore" };

	return why[f->why];
}

void folds_put(const struct fold *f, bool colour, struct buf *out)
{
	size_t n = f->added + f->changed + f->deleted;
	char letter = f->added == n ? 'A' : f->deleted == n ? 'D' : 'M';

	if (colour)
		buf_puts(out, letter == 'A' ? "\033[32m" : letter == 'D' ? "\033[31m" : "\033[33m");
	buf_printf(out, "%c%s  ", letter, colour ? "\033[0m" : "");
	text_escape(out, f->path);
	buf_printf(out, "/  (%zu file%s, %s)\n", n, n == 1 ? "" : "s", folds_why(f));
}
