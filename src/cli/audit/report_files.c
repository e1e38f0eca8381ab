/*
 * The files of a run as a tree of directories. In: the paths of file events, and what was done to
 * each. Out: nested lists; a directory says how much beneath it was read, written and refused, and
 * large ones are closed at first. Every path was chosen by the sandbox: there are at most
 * REPORT_PATHS, beyond REPORT_DEPTH levels the rest of a path is one name, and all text is escaped.
 * Pure.
 */
#include "cli/audit/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_UP_TO 40 /* paths beneath a directory that is shown open */

static const struct {
	unsigned bit;
	const char *name, *colour;
} tags[] = {
	{ PATH_REFUSED, "refused", "bad" },           { PATH_QUARANTINED, "quarantined", "bad" },
	{ PATH_DELETED, "deleted", "warn" },          { PATH_CREATED, "created", "good" },
	{ PATH_WRITTEN, "written", "good" },          { PATH_RENAMED, "renamed", "good" },
	{ PATH_MODE, "permissions changed", "warn" }, { PATH_READ, "read", "dim" },
};

/* The order of a tree: what is in a directory comes right behind it. */
static int compare(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

void report_add_path(struct run_report *r, const char *path, unsigned what, const char *exe)
{
	struct report_paths *t = &r->paths;
	size_t low = 0, high = t->len;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = compare(t->rows[middle].path, path);

		if (order == 0) {
			t->rows[middle].what |= what;
			return;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (t->len == REPORT_PATHS) {
		t->more++;
		return;
	}
	if (!t->rows)
		t->rows = calloc(REPORT_PATHS, sizeof(*t->rows));
	if (!t->rows) {
		r->failed = true;
		return;
	}
	memmove(&t->rows[low + 1], &t->rows[low], (t->len - low) * sizeof(*t->rows));
	t->rows[low] = (struct report_path){ .path = strdup(path),
					     .exe = exe ? strdup(exe) : NULL,
					     .what = what };
	if (!t->rows[low].path) {
		t->rows[low].path = strdup(""); /* never shown: the report fails */
		r->failed = true;
	}
	t->len++;
}

void report_clear_paths(struct run_report *r)
{
	for (size_t i = 0; i < r->paths.len; i++) {
		free(r->paths.rows[i].path);
		free(r->paths.rows[i].exe);
	}
	free(r->paths.rows);
}

static void put_tags(unsigned what, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		if (what & tags[i].bit)
			buf_printf(out, " <span class=\"tag %s\">%s</span>", tags[i].colour,
				   tags[i].name);
}

static void put_file(const struct report_path *f, const char *name, struct buf *out)
{
	buf_puts(out, "<li><code>");
	report_put(out, name);
	buf_puts(out, "</code>");
	put_tags(f->what, out);
	if (f->exe && f->what & ~(unsigned)PATH_READ) {
		buf_puts(out, " <small>by ");
		report_put(out, f->exe);
		buf_puts(out, "</small>");
	}
	buf_puts(out, "</li>\n");
}

static void put_count(struct buf *out, size_t count, const char *what, const char **before)
{
	if (!count)
		return;
	buf_printf(out, "%s%zu %s", *before, count, what);
	*before = ", ";
}

static void put_summary(const struct report_path *rows, size_t count, struct buf *out)
{
	size_t read = 0, written = 0, deleted = 0, refused = 0;
	const char *before = " <small>";

	for (size_t i = 0; i < count; i++) {
		read += (rows[i].what & PATH_READ) != 0;
		written += (rows[i].what &
			    (PATH_WRITTEN | PATH_CREATED | PATH_RENAMED | PATH_MODE)) != 0;
		deleted += (rows[i].what & PATH_DELETED) != 0;
		refused += (rows[i].what & (PATH_REFUSED | PATH_QUARANTINED)) != 0;
	}
	put_count(out, read, "read", &before);
	put_count(out, written, "written", &before);
	put_count(out, deleted, "deleted", &before);
	put_count(out, refused, "refused", &before);
	if (before[0] == ',')
		buf_puts(out, "</small>");
}

/* How many of the rows lie beneath the directory that is the first len bytes of the first one. */
static size_t beneath(const struct report_path *rows, size_t count, size_t len)
{
	size_t n = 1;

	while (n < count && strncmp(rows[n].path, rows[0].path, len) == 0 &&
	       rows[n].path[len] == '/')
		n++;
	return n;
}

/* The end of the longest directory that all rows share, from one that they share. */
static size_t extend(const struct report_path *rows, size_t count, size_t len)
{
	for (;;) {
		const char *next = strchr(rows[0].path + len + 1, '/');
		size_t longer = next ? (size_t)(next - rows[0].path) : 0;

		if (!next || beneath(rows, count, longer) != count)
			return len;
		len = longer;
	}
}

/* Whether the second path lies directly or deeper beneath the first, which is shown with it. */
static bool is_above(const struct report_path *a, const struct report_path *b)
{
	size_t n = strlen(a->path);

	return n > 1 && strncmp(b->path, a->path, n) == 0 && b->path[n] == '/';
}

/* The rows, which share the directory that is their first len bytes. */
static void put_level(const struct report_path *rows, size_t count, size_t len, unsigned depth,
		      struct buf *out)
{
	buf_puts(out, "<ul>");
	for (size_t i = 0; i < count;) {
		/* a directory that was made itself stands before what is in it */
		bool made = i + 1 < count && !strchr(rows[i].path + len + 1, '/') &&
			    is_above(&rows[i], &rows[i + 1]);
		unsigned own = made && depth < REPORT_DEPTH ? rows[i++].what : 0;
		const char *name = rows[i].path + len + 1, *slash = strchr(name, '/');
		size_t end = slash ? (size_t)(slash - rows[i].path) : 0, n;

		if (!slash || depth == REPORT_DEPTH) {
			put_file(&rows[i], depth ? name : rows[i].path, out);
			i++;
			continue;
		}
		n = beneath(rows + i, count - i, end);
		end = own ? end : extend(rows + i, n, end);
		buf_printf(out, "<li><details%s><summary><code>",
			   !depth || n <= OPEN_UP_TO ? " open" : "");
		if (!depth)
			name = rows[i].path; /* with its slash */
		report_put_some(out, name, (size_t)(rows[i].path + end - name));
		buf_puts(out, "/</code>");
		put_tags(own, out);
		put_summary(rows + i, n, out);
		buf_puts(out, "</summary>");
		put_level(rows + i, n, end, depth + 1, out);
		buf_puts(out, "</details></li>\n");
		i += n;
	}
	buf_puts(out, "</ul>");
}

void report_files(const struct run_report *r, struct buf *out)
{
	const struct report_paths *t = &r->paths;
	bool full = r->level && strcmp(r->level, "full") == 0,
	     writes = r->level && strcmp(r->level, "writes") == 0;

	buf_puts(out, "<h2>Files</h2>\n");
	if (t->len) {
		buf_puts(out, "<div class=\"tree\">");
		put_level(t->rows, t->len, 0, 0, out);
		buf_puts(out, "</div>\n");
	}
	report_put_more(out, t->more);
	if (full)
		buf_printf(out,
			   "<p class=\"dim\">%sReads of the system's own files are not on "
			   "record; what was read was observed, not proven.</p>\n",
			   t->len ? "" : "No file was read or changed. ");
	else if (writes)
		buf_printf(out,
			   "<p class=\"dim\">%sFiles that are read are on record with <code>--set "
			   "audit.level=full</code> only.</p>\n",
			   t->len ? "" : "No file was changed. ");
	else
		buf_printf(out,
			   "<p class=\"dim\">%sEach file that is read or changed is on record "
			   "with <code>--set audit.level=full</code> only.</p>\n",
			   t->len ? "" : "No file was protected, quarantined or applied. ");
}
