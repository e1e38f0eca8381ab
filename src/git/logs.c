/*
 * Reflogs. In: the logs of both sides, as they had them last and have them now. Out: the host's
 * logs with the lines of both. Runs in ward-git with the rights of the repository's owner, after
 * the refs were moved.
 */
#include "git/protect.h"

#include <errno.h>
#include <string.h>

#include "guard/guard_internal.h"
#include "rules/git_reflog.h"

#define IMPORT_MARK                                                                                \
	"ward-import" /* the message of what update-ref writes into a reflog, which is not kept */

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

static int drop_marked(void *ctx, const struct git_reflog_line *line)
{
	struct buf *out = ctx;

	if (line->message_n == strlen(IMPORT_MARK) &&
	    memcmp(line->message, IMPORT_MARK, line->message_n) == 0)
		return 0;
	buf_printf(out, "%.*s", (int)(line->who - line->old_id), line->old_id);
	buf_add(out, line->who, line->who_n);
	if (line->message) {
		buf_puts(out, "\t");
		buf_add(out, line->message, line->message_n);
	}
	buf_puts(out, "\n");
	return out->failed ? -ENOMEM : 0;
}

/* The host's log without the lines that our own update-ref wrote. */
static int clean_log(struct take *t, const struct file *h, struct buf *ret)
{
	const char *why;

	if (!memmem(h->bytes, h->n, "\t" IMPORT_MARK "\n", strlen(IMPORT_MARK) + 2) ||
	    git_reflog_read(h->bytes, h->n, t->hash, drop_marked, ret, &why) != 0) {
		ret->len = 0;
		buf_add(ret, h->bytes ? h->bytes : "", h->n);
	}
	return ret->failed ? out_of_memory(t) : 0;
}

static bool begins_with(const struct file *f, const struct file *start)
{
	return f && (!start || (f->n >= start->n && memcmp(f->bytes, start->bytes, start->n) == 0));
}

struct line_filter {
	const struct take *t;
	struct buf *out;
	size_t dropped;
};

static bool is_lost(const struct take *t, const char *id)
{
	size_t n = (size_t)t->hash * 2;

	return guard_list_has(&t->lost, id, n, '\0') || history_fault(t, id, n);
}

static int drop_lost(void *ctx, const struct git_reflog_line *line)
{
	struct line_filter *f = ctx;
	const char *end = line->message ? line->message + line->message_n : line->who + line->who_n;

	if (is_lost(f->t, line->old_id) || is_lost(f->t, line->new_id)) {
		f->dropped++;
		return 0;
	}
	buf_add(f->out, line->old_id, (size_t)(end - line->old_id));
	buf_puts(f->out, "\n");
	return f->out->failed ? -ENOMEM : 0;
}

/* Takes out of the sandbox's log, which was judged, what leads to a commit that is held or to an
 * object that the host does not have: git fsck finds fault with it. What the base has is the
 * user's own. */
static int drop_lost_lines(struct take *t, const char *path)
{
	const struct file *b = files_find(&t->base, path), *v = files_find(&t->view, path);
	size_t own = v && b && begins_with(v, b) ? b->n : 0;
	auto_buf out = { 0 };
	struct line_filter f = { .t = t, .out = &out };
	const char *why;

	if (!v || files_equal(v, b) || (!t->lost.len && !t->held.len))
		return 0;
	buf_add(&out, v->bytes, own);
	if (git_reflog_read(v->bytes + own, v->n - own, t->hash, drop_lost, &f, &why) != 0 ||
	    out.failed)
		return out.failed ? out_of_memory(t) : 0;
	if (!f.dropped)
		return 0;
	if (out.len)
		return files_set(&t->view, path, out.data, out.len) < 0 ? out_of_memory(t) : 0;
	files_drop(&t->view, path);
	return 0;
}

static int note_id(void *ctx, const struct git_reflog_line *line)
{
	struct line_filter *f = ctx;
	int n = (int)f->t->hash * 2;

	if (strspn(line->old_id, "0") < (size_t)n)
		buf_printf(f->out, "%.*s\n", n, line->old_id);
	if (strspn(line->new_id, "0") < (size_t)n)
		buf_printf(f->out, "%.*s\n", n, line->new_id);
	return f->out->failed ? -ENOMEM : 0;
}

/* Which ids of the logs that the sandbox changed the host does not have. */
static int find_lost(struct take *t, const char *prefix)
{
	auto_free char *git_dir = NULL;
	auto_buf ids = { 0 }, missing = { 0 };
	struct line_filter f = { .t = t, .out = &ids };
	const char *why;
	int status;

	for (size_t i = 0; i < t->view.len; i++) {
		const struct file *v = &t->view.items[i], *b = files_find(&t->base, v->path);
		size_t own = b && begins_with(v, b) ? b->n : 0;

		if (strncmp(v->path, prefix, strlen(prefix)) == 0 && !files_equal(v, b) &&
		    git_path_find(v->path, GIT_DIR_MAIN, t->hash, false).form == GIT_FORM_REFLOG)
			(void)!git_reflog_read(v->bytes + own, v->n - own, t->hash, note_id, &f,
					       &why);
	}
	if (ids.failed || asprintf(&git_dir, "%s/%s", t->record.git_dir, prefix) < 0) {
		git_dir = NULL;
		return out_of_memory(t);
	}
	status = ids_missing(git_dir, NULL, &ids, &missing);
	if (status)
		return ward_fail(t->e, status < 0 ? -status : EIO,
				 "git could not look for the objects of reflogs");
	for (const char *at = buf_text(&missing); *at; at = strchr(at, '\n') + 1)
		strv_addf(&t->lost, "%.*s", (int)strcspn(at, "\n"), at);
	return t->lost.failed ? out_of_memory(t) : 0;
}

static int merge_log(struct take *t, const char *path)
{
	const struct file *b = files_find(&t->base, path), *v;
	auto_buf bytes = { 0 }, clean = { 0 };
	struct file now = { 0 }, joined;
	bool there = read_host(t, path, &bytes, &now), marked;
	int status = drop_lost_lines(t, path);

	if (status < 0)
		return status;
	v = files_find(&t->view, path);
	if (files_equal(v, b) &&
	    (!there || !memmem(now.bytes, now.n, IMPORT_MARK, strlen(IMPORT_MARK))))
		return there && !files_equal(&now, b) ? pull(t, path, &now) : 0;
	status = there ? clean_log(t, &now, &clean) : 0;
	if (status < 0)
		return status;
	joined = (struct file){ .bytes = clean.data, .n = clean.len };
	marked = there && clean.len != now.n;
	if (files_equal(v, b))
		return marked ? write_host(t, path, &joined) : 0;
	if (!v)
		return there && files_equal(&joined, b) ? write_host(t, path, NULL)
							: agree(t, path, NULL);
	if (!there || files_equal(&joined, b))
		return write_host(t, path, v);
	if (begins_with(v, b)) { /* both went on: the sandbox's lines behind the host's */
		buf_add(&clean, v->bytes + (b ? b->n : 0), v->n - (b ? b->n : 0));
		if (clean.failed)
			return out_of_memory(t);
		joined = (struct file){ .bytes = clean.data, .n = clean.len };
		status = write_host(t, path, &joined);
		return status < 0 ? status : agree(t, path, v);
	}
	return marked ? write_host(t, path, &joined) : 0;
}

int take_logs(struct take *t)
{
	int status = 0;

	for (size_t i = 0; i < t->repositories.len && status >= 0; i++)
		status = go_on(t, t->repositories.items[i], find_lost(t, t->repositories.items[i]));
	if (status < 0)
		return status;
	strv_sort(&t->lost);
	return for_each_path(t, merge_log, true);
}
