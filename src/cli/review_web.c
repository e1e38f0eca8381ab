/*
 * ward diff --web. In: the changes of a review. Out: one page that needs nothing else: a tree of
 * what changed, what a person should know before an apply, and each file side by side. Runs with
 * the user's rights; the page is the user's alone (0600). Where there is a desktop xdg-open shows
 * it. All of its text was chosen by an agent: see review_web_page.c.
 */
#include "cli/review_web.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/diff.h"
#include "host/program.h"
#include "policy/units.h"

#define SHUT_LINES 40
#define FILE_ROWS 4000
#define PAGE_BYTES (24u << 20) /* behind that, files are named only */

static void put_string(struct buf *out, const char *s)
{
	web_put_text(out, s, strlen(s));
}

static char letter_of(const struct change *c)
{
	static const char letters[] = { 'A', 'M', 'X', 'T', 'D' };

	return c->twin != CHANGE_NONE ? 'R' : letters[c->kind];
}

/* What the page is about. */
struct web {
	const struct review *review;
	const struct review_asked *asked;
	const struct changes *all;
	const struct folds *folds;
};

static bool is_shown(const struct web *w, size_t i)
{
	const struct change *c = &w->all->items[i];
	const struct folds *folds = w->folds;

	return apply_is_selected(&w->asked->paths, c->path) && !c->implied &&
	       !(c->twin != CHANGE_NONE && c->kind == CHANGE_DELETED) &&
	       (!folds->of || folds->of[i] == FOLD_NONE);
}

/* ---- the tree ---- */

#define DEPTH_MAX (PATH_MAX / 2)

struct tree {
	const struct web *web;
	size_t open[DEPTH_MAX]; /* how much of the path is in the directories that are open */
	size_t depth;
};

/* How much of a path, whose first n bytes name a directory, is directories that all shown paths
 * beneath that one share: a chain of them is one line. */
static size_t shared_dirs(const struct web *w, size_t at, size_t n)
{
	const char *path = w->all->items[at].path;
	size_t shared = (size_t)(strrchr(path, '/') + 1 - path);

	for (size_t i = at + 1; i < w->all->len && shared > n; i++) {
		const char *other = w->all->items[i].path;
		size_t same = n;

		if (!is_shown(w, i))
			continue;
		if (strncmp(other, path, n) != 0)
			break;
		for (size_t k = n; k < shared && other[k] == path[k]; k++)
			if (path[k] == '/')
				same = k + 1;
		shared = same;
	}
	return shared;
}

/* Closes and opens directories on the way from one path to the next (NULL: the end). */
static void put_dirs(struct buf *out, struct tree *t, const char *before, size_t at, bool end)
{
	const char *path = end ? "" : t->web->all->items[at].path, *slash;

	while (t->depth && (end || strncmp(before, path, t->open[t->depth - 1]) != 0)) {
		buf_puts(out, "</ul></details></li>\n");
		t->depth--;
	}
	for (size_t n = t->depth ? t->open[t->depth - 1] : 0;
	     (slash = strchr(path + n, '/')) && t->depth < DEPTH_MAX;) {
		size_t shared = shared_dirs(t->web, at, (size_t)(slash + 1 - path));

		buf_puts(out, "<li><details open><summary>");
		web_put_text(out, path + n, shared - n);
		buf_puts(out, "</summary><ul>\n");
		t->open[t->depth++] = shared;
		n = shared;
	}
}

static void put_tree(struct buf *out, const struct web *w)
{
	const struct changes *all = w->all;
	const struct folds *folds = w->folds;
	struct tree t = { .web = w };
	const char *before = "";

	buf_puts(out, "<nav aria-label=\"Changed files\"><ul>\n");
	for (size_t i = 0; i < all->len; i++) {
		const struct change *c = &all->items[i];
		const char *slash = strrchr(c->path, '/');

		if (!is_shown(w, i))
			continue;
		put_dirs(out, &t, before, i, false);
		before = c->path;
		buf_printf(out,
			   "<li><span class=\"l l%c\">%c</span><a class=\"path\" href=\"#f%zu\">",
			   letter_of(c), letter_of(c), i);
		put_string(out, slash ? slash + 1 : c->path);
		buf_puts(out, "</a></li>\n");
	}
	put_dirs(out, &t, before, 0, true);
	for (size_t i = 0; i < folds->len; i++) {
		buf_puts(out, "<li><span class=\"l\">&middot;</span><span class=\"path\">");
		put_string(out, folds->items[i].path);
		buf_printf(out, "/</span> <span class=\"note\">%zu</span></li>\n",
			   folds->items[i].added + folds->items[i].changed +
				   folds->items[i].deleted);
	}
	buf_puts(out, "</ul></nav>\n");
}

/* ---- findings ---- */

static bool put_finding(struct buf *out, size_t i, const struct change *c, const char *what,
			const char *detail)
{
	buf_printf(out, "<li><a class=\"path\" href=\"#f%zu\">", i);
	put_string(out, c->path);
	buf_printf(out, "</a>: %s", what);
	if (detail)
		put_string(out, detail);
	buf_puts(out, "</li>\n");
	return true;
}

static void put_findings(struct buf *out, const struct web *w)
{
	const struct changes *all = w->all;
	auto_buf list = { 0 };

	for (size_t i = 0; i < all->len; i++) {
		const struct change *c = &all->items[i];

		if (c->implied || !apply_is_selected(&w->asked->paths, c->path))
			continue;
		if (c->refused)
			put_finding(&list, i, c, "never applied: ", c->refused);
		if (c->is_protected)
			put_finding(&list, i, c, "protected: applied only with --protected", NULL);
		if (c->conflict)
			put_finding(&list, i, c, "changed outside since the run began", NULL);
		if (c->merged)
			put_finding(&list, i, c,
				    "changed outside since the run began; both edits merge", NULL);
		if (c->steers)
			put_finding(&list, i, c, "affects tools that you may run: ", c->steers);
		if (c->leads_to)
			put_finding(&list, i, c, "a link out of the workspace, to ", c->leads_to);
	}
	if (all->hidden)
		buf_printf(&list, "<li>%zu changes to hidden files are not shown</li>\n",
			   all->hidden);
	if (list.len) {
		buf_puts(out, "<section class=\"find\"><h2>Look at these first</h2><ul>\n");
		buf_add(out, list.data, list.len);
		buf_puts(out, "</ul></section>\n");
	}
	out->failed |= list.failed;
}

static void put_git(struct buf *out, const struct changes *all)
{
	if (!all->git.len)
		return;
	buf_puts(out, "<section class=\"git\"><h2>Repository</h2><ul>\n");
	for (size_t i = 0; i < all->git.len; i++) {
		const char *line = all->git.items[i];

		buf_puts(out, "<li>");
		put_string(out, strncmp(line, "git: ", 5) == 0 ? line + 5 : line);
		buf_puts(out, "</li>\n");
	}
	buf_puts(out, "</ul></section>\n");
}

/* ---- files ---- */

static void put_sizes(struct buf *out, const struct patch_side *a, const struct patch_side *b)
{
	char old_size[32], new_size[32];

	units_format_size(a->size, old_size, sizeof(old_size));
	units_format_size(b->size, new_size, sizeof(new_size));
	if (!a->there)
		buf_printf(out, "<p>Binary file, new: %s.</p>\n", new_size);
	else if (!b->there)
		buf_printf(out, "<p>Binary file, deleted: %s.</p>\n", old_size);
	else
		buf_printf(out, "<p>Binary file: %s, before %s.</p>\n", new_size, old_size);
}

static int put_content(struct buf *out, const struct patch_side *a, const struct patch_side *b)
{
	bool cut = false;
	int status = 0;

	if (a->why || b->why) {
		buf_puts(out, "<p>The content cannot be read.</p>\n");
	} else if (!a->text || !b->text) {
		put_sizes(out, a, b);
	} else if (out->len > PAGE_BYTES) {
		buf_puts(out, "<p>The page is full; ward diff -p PATH shows it.</p>\n");
	} else if (a->bytes.len == b->bytes.len &&
		   (!a->bytes.len || memcmp(a->bytes.data, b->bytes.data, a->bytes.len) == 0)) {
		buf_puts(out, a->bytes.len ? "<p>The content is the same.</p>\n"
					   : "<p>The file is empty.</p>\n");
	} else {
		status = web_put_sides(out, &a->bytes, &b->bytes, FILE_ROWS, &cut);
	}
	if (cut)
		buf_puts(out, "<p>There is more; ward diff -p PATH shows it.</p>\n");
	return status;
}

static void put_title(struct buf *out, const struct changes *all, const struct change *c, size_t i,
		      const struct diff_counts *counts)
{
	mode_t mode = c->new_mode ? c->new_mode : c->old_mode;
	/* a long file that goes is named; who wants to read it opens it */
	bool shut = c->kind == CHANGE_DELETED && counts->removed > SHUT_LINES;

	buf_printf(out,
		   "<details class=\"file\" id=\"f%zu\"%s><summary>"
		   "<a class=\"top\" href=\"#top\">top</a><span class=\"l l%c\">%c</span>"
		   "<span class=\"path\">",
		   i, shut ? "" : " open", letter_of(c), letter_of(c));
	if (c->twin != CHANGE_NONE) {
		put_string(out, all->items[c->twin].path);
		buf_puts(out, " &rarr; ");
	}
	put_string(out, c->path);
	buf_puts(out, S_ISDIR(mode) ? "/</span>" : "</span>");
	if (counts->added || counts->removed)
		buf_printf(out,
			   " <span class=\"plus\">+%zu</span> <span class=\"minus\">-%zu</span>",
			   counts->added, counts->removed);
	if (c->old_mode && c->new_mode && (c->old_mode & 07777) != (c->new_mode & 07777))
		buf_printf(out, " <span class=\"note\">mode %04o &rarr; %04o</span>",
			   c->old_mode & 07777, c->new_mode & 07777);
	if (S_ISLNK(mode))
		buf_puts(out, " <span class=\"note\">link</span>");
	buf_puts(out, "</summary>\n");
}

static int put_file(struct buf *out, const struct review *r, const struct changes *all, size_t i)
{
	const struct change *c = &all->items[i];
	struct patch_side a = { .fd = -1 }, b = { .fd = -1 };
	struct diff_counts counts = { 0 };
	int status = review_sides(r, all, c, &a, &b);

	if (status == 0 && a.text && b.text && !a.why && !b.why)
		status = diff_texts(buf_text(&a.bytes), a.bytes.len, buf_text(&b.bytes),
				    b.bytes.len, NULL, NULL, &counts);
	if (status == 0) {
		put_title(out, all, c, i, &counts);
		if (a.there || b.there)
			status = put_content(out, &a, &b);
		else
			buf_puts(out, "<p>A directory, or something that has no content.</p>\n");
		buf_puts(out, "</details>\n");
	}
	review_side_clear(&a);
	review_side_clear(&b);
	return status;
}

static int make_page(const struct web *w, struct buf *out)
{
	const struct review *r = w->review;
	const struct changes *all = w->all;
	auto_buf counts = { 0 };
	int status = 0;

	web_put_head(out, r->id);
	review_put_counts(all, &counts);
	buf_puts(out, "<header><h1>Review of <code>");
	put_string(out, r->id);
	buf_puts(out, "</code></h1><p><span class=\"path\">");
	put_string(out, r->record.workspace);
	buf_puts(out, "</span> &middot; ");
	put_string(out, buf_text(&counts));
	buf_puts(out, "</p></header>\n<div class=\"page\">\n");
	put_tree(out, w);
	buf_puts(out, "<main>\n");
	put_findings(out, w);
	put_git(out, all);
	for (size_t i = 0; i < all->len && status == 0; i++)
		if (is_shown(w, i))
			status = put_file(out, r, all, i);
	buf_puts(out, "</main>\n</div>\n");
	web_put_tail(out);
	return status < 0 ? status : out->failed ? -ENOMEM : 0;
}

/* ---- the file ---- */

/* The path is written into `path`; the descriptor, or -errno. */
static int open_page(const char *asked, const char *id, char path[PATH_MAX])
{
	const char *dir = getenv("TMPDIR");
	int fd;

	if (*asked) {
		snprintf(path, PATH_MAX, "%s", asked);
		fd = open(asked, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			  0600);
		return fd < 0 ? -errno : fd;
	}
	snprintf(path, PATH_MAX, "%s/ward-diff-%s-XXXXXX.html", dir && *dir == '/' ? dir : "/tmp",
		 id);
	fd = mkostemps(path, 5, O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Shows it where there is a desktop; that it does not is no failure. */
static void open_browser(const char *path)
{
	char program[PATH_MAX];
	struct ward_err ignored = { 0 };
	pid_t pid;

	if ((!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) ||
	    program_find_system("xdg-open", program, &ignored) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 ||
		    dup2(null_fd, 2) < 0 || setsid() < 0)
			_exit(1);
		execl(program, "xdg-open", path, (char *)NULL);
		_exit(127);
	}
}

int review_web(const struct options *o, const struct review *r, const struct review_asked *asked,
	       const struct changes *all, const struct folds *folds, struct ward_err *e)
{
	const struct web w = { r, asked, all, folds };
	auto_buf page = { 0 }, line = { 0 };
	char path[PATH_MAX];
	auto_fd fd = -1;
	int status = make_page(&w, &page);

	if (status < 0) {
		ward_fail(e, -status, "cannot make the page: %s", strerror(-status));
		return say_error(e, false, EXIT_REFUSED);
	}
	fd = open_page(o->web, r->id, path);
	status = fd < 0 ? fd : io_write_all(fd, page.data, page.len);
	if (status < 0) {
		ward_fail(e, -status, "cannot write the page to %s: %s", path, strerror(-status));
		ward_remedy(e, "name another place: ward diff --web=FILE");
		return say_error(e, false, EXIT_REFUSED);
	}
	buf_printf(&line, "%s\n", path);
	if (!*o->web)
		open_browser(path);
	return say_out(&line, EXIT_FINE);
}
