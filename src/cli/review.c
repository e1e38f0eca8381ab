/*
 * The run and the paths that a review verb means. In: words. Out: an open review. A first word that
 * looks like the id of a run is one; without it the last review is meant whose workspace holds the
 * current directory. Paths are taken by their letters and must lie in the workspace; whether there
 * is a change at one is the verb's business. Names come from an agent: all are escaped here.
 */
#include "cli/review.h"
#include "cli/review_who.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/text.h"
#include "recover/recover.h"
#include "review/apply.h"
#include "state/store.h"

static int add_path(struct review_asked *a, const char *word, const char *here,
		    const char *workspace, struct ward_err *e)
{
	auto_free char *full = path_join(path_is_beneath(here, workspace) ? here : workspace, word);
	const char *rest;

	if (!full)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!path_is_beneath(full, workspace)) {
		ward_fail(e, EINVAL, "%.300s is not in the workspace %s", word, workspace);
		return ward_remedy(
			e, "name paths of the workspace, relative to the current directory");
	}
	rest = full + strlen(workspace);
	strv_add(&a->paths, *rest ? rest + 1 : "");
	return a->paths.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int fail_none(const char *here, struct ward_err *e)
{
	ward_fail(e, ENOENT, "there is no review of this directory (%s)", here);
	return ward_remedy(e, "to make one: ward run --review -- CMD; ward diff --list shows those "
			      "of other directories");
}

int review_ask(const struct options *o, enum review_lock lock, struct review_asked *ret_asked,
	       struct review *ret_review, struct ward_err *e)
{
	bool named = o->word_count && review_is_id(o->words[0]);
	auto_free char *here = realpath(".", NULL);
	int status = 0;

	*ret_asked = (struct review_asked){ 0 };
	if (!here)
		return ward_fail_errno(e, "cannot determine the current directory");
	if (named)
		snprintf(ret_asked->id, sizeof(ret_asked->id), "%.23s", o->words[0]);
	else
		status = review_last(here, ret_asked->id, e);
	if (status == 0 && !ret_asked->id[0])
		status = fail_none(here, e);
	if (status == 0)
		status = review_open(ret_asked->id, lock, ret_review, e);
	if (status < 0)
		return status;
	for (size_t i = named; i < o->word_count && status == 0; i++)
		status = add_path(ret_asked, o->words[i], here, ret_review->record.workspace, e);
	if (status < 0) {
		review_close(ret_review);
		review_asked_clear(ret_asked);
	}
	return status;
}

void review_asked_clear(struct review_asked *a)
{
	strv_free(&a->paths);
}

void review_finish_killed(void)
{
	struct ward_err e = { 0 };
	auto_strv notes = { 0 };

	/* a run's processes must be dead before any process touches its changes */
	if (recover_runs_noting(&notes, &e) < 0)
		say_error(&e, false, 0);
	say_notes(&notes);
	review_tidy();
	if (apply_recover(&e) < 0)
		say_error(&e, false, 0);
}

const char *review_kind_name(const struct change *c)
{
	static const char *const names[] = { "added", "content", "mode", "type", "deleted" };

	return c->twin != CHANGE_NONE ? "renamed" : names[c->kind];
}

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	case S_IFIFO:
		return "pipe";
	case S_IFSOCK:
		return "socket";
	default:
		return mode ? "device" : NULL;
	}
}

static void put_note(struct buf *out, const char *note, const char **before)
{
	buf_puts(out, *before);
	buf_puts(out, note);
	*before = ", ";
}

static void put_notes(const struct change *c, struct buf *out)
{
	const char *before = "  (";
	char text[64];

	if (c->kind == CHANGE_MODE ||
	    (c->kind == CHANGE_CONTENT && (c->old_mode & 0777) != (c->new_mode & 0777) &&
	     !S_ISLNK(c->new_mode))) {
		snprintf(text, sizeof(text), "mode %04o -> %04o", c->old_mode & 07777,
			 c->new_mode & 07777);
		put_note(out, text, &before);
	}
	if (c->kind == CHANGE_TYPE) {
		snprintf(text, sizeof(text), "%s -> %s", type_name(c->old_mode),
			 type_name(c->new_mode));
		put_note(out, text, &before);
	} else if (S_ISLNK(c->new_mode ? c->new_mode : c->old_mode)) {
		put_note(out, "link", &before);
	}
	if (c->is_protected)
		put_note(out, "protected", &before);
	if (c->conflict)
		put_note(out, "changed outside since", &before);
	if (c->merged)
		put_note(out, "changed outside since; both edits merge", &before);
	if (c->refused)
		put_note(out, c->refused, &before);
	if (c->steers) {
		put_note(out, "affects tools that you may run: ", &before);
		buf_puts(out, c->steers);
	}
	if (before[0] == ',')
		buf_puts(out, ")");
}

void review_put_change(const struct changes *all, const struct change *c, bool colour,
		       struct buf *out)
{
	static const char letters[] = { 'A', 'M', 'X', 'T', 'D' };
	static const char *const colours[] = { "\033[32m", "\033[33m", "\033[33m", "\033[33m",
					       "\033[31m" };
	bool renamed = c->twin != CHANGE_NONE,
	     directory = S_ISDIR(c->new_mode ? c->new_mode : c->old_mode);

	if (colour)
		buf_puts(out, renamed ? "\033[36m" : colours[c->kind]);
	buf_printf(out, "%c", renamed ? 'R' : letters[c->kind]);
	buf_puts(out, colour ? "\033[0m  " : "  ");
	if (renamed) {
		text_escape(out, all->items[c->twin].path);
		buf_puts(out, " -> ");
	}
	text_escape(out, c->path);
	buf_puts(out, directory ? "/" : "");
	put_notes(c, out);
	buf_puts(out, "\n");
}

static void json_mode(struct json *j, const char *key, mode_t mode)
{
	char text[8];

	snprintf(text, sizeof(text), "%04o", mode & 07777);
	json_string(j, key, mode ? text : NULL);
}

void review_json_change(const struct changes *all, const struct change *c, const struct who *who,
			struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "path", c->path);
	json_string(j, "change", review_kind_name(c));
	if (c->twin != CHANGE_NONE)
		json_string(j, "from", all->items[c->twin].path);
	json_string(j, "old_type", type_name(c->old_mode));
	json_string(j, "new_type", type_name(c->new_mode));
	json_mode(j, "old_mode", c->old_mode);
	json_mode(j, "new_mode", c->new_mode);
	json_uint(j, "old_size", c->old_size);
	json_uint(j, "new_size", c->new_size);
	json_bool(j, "conflict", c->conflict);
	json_bool(j, "merges", c->merged);
	json_bool(j, "protected", c->is_protected);
	json_string(j, "refused", c->refused);
	json_string(j, "steers", c->steers);
	json_string(j, "leads_out_to", c->leads_to);
	if (who)
		who_json(who, c->path, j);
	json_end_object(j);
}

void review_put_counts(const struct changes *c, struct buf *out)
{
	const struct {
		size_t n;
		const char *what;
	} rows[] = {
		{ c->counts[CHANGE_ADDED] - c->renames, "added" },
		{ c->counts[CHANGE_CONTENT] + c->counts[CHANGE_MODE] + c->counts[CHANGE_TYPE],
		  "changed" },
		{ c->counts[CHANGE_DELETED] - c->renames, "deleted" },
		{ c->renames, "renamed" },
	};
	size_t all = changes_count(c);
	const char *before = ": ";

	buf_printf(out, "%zu file%s changed", all, all == 1 ? "" : "s");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!rows[i].n)
			continue;
		buf_printf(out, "%s%zu %s", before, rows[i].n, rows[i].what);
		before = ", ";
	}
}
