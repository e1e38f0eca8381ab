/*
 * ward diff: what a review holds. In: [RUN] [PATH...]. Out: names with letters, lines per file,
 * unified text or JSON. Runs with the user's rights, changes nothing, and looks at a run that still
 * goes on, too. Everything shown was chosen by an agent, see review_patch.c.
 */
#include "cli/look.h"
#include "cli/look_outside.h"
#include "cli/pager.h"
#include "cli/review_fold.h"
#include "cli/review_web.h"
#include "cli/review_who.h"

#include <errno.h>
#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "review/apply.h"

static int list_reviews(const struct options *o)
{
	struct review_items items;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (review_list(NULL, &items, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json)
		json_begin_list(&j, "reviews");
	for (size_t i = 0; i < items.len; i++) {
		if (o->json) {
			json_begin_object(&j, NULL);
			json_string(&j, "run", items.items[i].id);
			json_string(&j, "workspace", items.items[i].workspace);
			json_end_object(&j);
			continue;
		}
		buf_printf(&out, "%s  ", items.items[i].id);
		text_escape(&out, items.items[i].workspace);
		buf_puts(&out, "\n");
	}
	if (o->json) {
		json_end_list(&j);
	} else if (!items.len) {
		buf_puts(&out, "there are no reviews\n");
	}
	review_items_clear(&items);
	return say_out(&out, EXIT_FINE);
}

/* What is shown, and how. */
struct showing {
	const struct review *review;
	const struct review_asked *asked;
	const struct changes *all;
	const struct look_findings *found; /* NULL: nobody has looked */
	struct folds folds;
	struct pager pager;
};

/* Whether the change is one of those asked for, and worth a line. */
static bool is_wanted(const struct showing *s, const struct change *c)
{
	const struct changes *all = s->all;

	if (c->implied || (c->twin != CHANGE_NONE && c->kind == CHANGE_DELETED &&
			   apply_is_selected(&s->asked->paths, all->items[c->twin].path)))
		return false;
	return apply_is_selected(&s->asked->paths, c->path);
}

/* And is not in a directory that has one line for all. */
static bool is_shown(const struct showing *s, size_t i)
{
	return is_wanted(s, &s->all->items[i]) && (!s->folds.of || s->folds.of[i] == FOLD_NONE);
}

static int show_json(const struct showing *s, const struct who *who)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	const struct changes *all = s->all;

	json_begin_object(&j, NULL);
	json_string(&j, "run", s->review->id);
	json_string(&j, "workspace", s->review->record.workspace);
	json_begin_array(&j, "changes");
	for (size_t i = 0; i < all->len; i++)
		if (is_wanted(s, &all->items[i]))
			review_json_change(all, &all->items[i], who, &j);
	json_end_array(&j);
	json_begin_array(&j, "git");
	for (size_t i = 0; i < all->git.len; i++)
		json_string(&j, NULL, all->git.items[i]);
	json_end_array(&j);
	json_uint(&j, "hidden", all->hidden);
	if (s->found)
		look_json(s->found, &j);
	json_end_object(&j);
	buf_puts(&out, "\n");
	return say_out(&out, EXIT_FINE);
}

/* Names in order; a directory of which one line is enough stands where its first change would. */
static void show_names(const struct showing *s, struct buf *out)
{
	size_t next = 0;

	for (size_t i = 0; i < s->all->len; i++) {
		if (s->folds.of && s->folds.of[i] == next && s->folds.of[i] != FOLD_NONE &&
		    is_wanted(s, &s->all->items[i]))
			folds_put(&s->folds.items[next++], s->pager.colour, out);
		if (is_shown(s, i))
			review_put_change(s->all, &s->all->items[i], s->pager.colour, out);
	}
}

/* A change that no patch can hold: named on standard error, and the exit status says it. */
static void tell_too_large(const char *path, const struct ward_err *e)
{
	auto_buf note = { 0 };

	buf_puts(&note, "ward: not in the patch: ");
	text_escape(&note, path);
	buf_printf(&note, ": %s; ward apply copies it\n", e->why);
	say_err(&note);
}

/* What a patch does not hold, on standard error: the patch itself must stay one. */
static void tell_left_out(const struct showing *s, size_t refused)
{
	auto_buf notes = { 0 };

	for (size_t i = 0; i < s->folds.len; i++) {
		const struct fold *f = &s->folds.items[i];

		buf_puts(&notes, "ward: not in the patch: ");
		text_escape(&notes, f->path);
		buf_printf(&notes, "/ (%zu files, %s)%s\n", f->added + f->changed + f->deleted,
			   folds_why(f), f->why == FOLD_GIT ? "" : "; --all includes it");
	}
	if (refused)
		buf_printf(&notes, "ward: not in the patch: %zu path%s that git does not accept\n",
			   refused, refused == 1 ? "" : "s");
	for (size_t i = 0; i < s->all->git.len; i++) {
		buf_puts(&notes, "ward: not in the patch: ");
		text_escape(&notes, s->all->git.items[i]);
		buf_puts(&notes, "\n");
	}
	if (!s->pager.pid)
		say_err(&notes);
}

/* Text is written as it is made: a hundred thousand files are no reason to hold them all. */
static int show_patch(struct showing *s, struct ward_err *e)
{
	size_t added = 0, removed = 0, refused = 0;
	int code = EXIT_FINE;

	for (size_t i = 0; i < s->all->len; i++) {
		const struct change *c = &s->all->items[i];
		auto_buf out = { 0 };
		int status;

		if (!is_shown(s, i))
			continue;
		if (!s->pager.terminal && !review_git_takes(s->all, c)) {
			refused++;
			continue;
		}
		status = review_patch(s->review, s->all, c, s->pager.terminal, s->pager.colour,
				      &out, &added, &removed, e);
		if (status == -EFBIG) {
			tell_too_large(c->path, e);
			*e = (struct ward_err){ 0 };
			code = EXIT_FINDINGS;
			continue;
		}
		if (status < 0)
			return say_error(e, false, EXIT_REFUSED);
		if (pager_out(&s->pager, &out) != EXIT_FINE)
			return EXIT_REFUSED;
	}
	tell_left_out(s, refused);
	return code;
}

static int show_stat(struct showing *s, struct progress *progress, struct ward_err *e)
{
	size_t added = 0, removed = 0, files = 0, next = 0;
	auto_buf out = { 0 };

	for (size_t i = 0; i < s->all->len; i++) {
		size_t plus = 0, minus = 0;

		if (s->folds.of && s->folds.of[i] == next && s->folds.of[i] != FOLD_NONE &&
		    is_wanted(s, &s->all->items[i])) {
			buf_printf(&out, "%6s  %6s   ", "-", "-");
			folds_put(&s->folds.items[next++], s->pager.colour, &out);
		}
		if (!is_shown(s, i))
			continue;
		if (review_patch(s->review, s->all, &s->all->items[i], false, false, NULL, &plus,
				 &minus, e) < 0)
			return say_error(e, false, EXIT_REFUSED);
		files++;
		added += plus;
		removed += minus;
		buf_printf(&out, "%6zu+ %6zu-  ", plus, minus);
		review_put_change(s->all, &s->all->items[i], s->pager.colour, &out);
		progress_step(progress, "files compared");
	}
	progress_end(progress);
	buf_printf(&out, "%zu file%s changed, %zu line%s added, %zu removed\n", files,
		   files == 1 ? "" : "s", added, added == 1 ? "" : "s", removed);
	return pager_out(&s->pager, &out);
}

static int show_summary(struct showing *s)
{
	const struct changes *all = s->all;
	auto_buf out = { 0 }, notes = { 0 };

	show_names(s, &out);
	for (size_t i = 0; i < all->git.len; i++) {
		text_escape(&out, all->git.items[i]);
		buf_puts(&out, "\n");
	}
	if (!all->len && !all->git.len)
		buf_puts(&notes, "no changes\n");
	if (all->hidden)
		buf_printf(&notes, "%zu change%s to hidden files %s not shown\n", all->hidden,
			   all->hidden == 1 ? "" : "s", all->hidden == 1 ? "is" : "are");
	if (s->found && s->found->len) {
		buf_puts(&notes, "look at this first:\n");
		look_put(s->found, &notes);
	}
	if (s->pager.terminal && (all->len || all->git.len)) {
		review_put_counts(all, &notes);
		buf_printf(&notes, "; ward apply %s, or ward discard %s\n", s->review->id,
			   s->review->id);
	}
	if (s->pager.pid) /* it would stand somewhere in the pager's screen */
		buf_add(&out, buf_text(&notes), notes.len);
	else
		say_err(&notes);
	return pager_out(&s->pager, &out);
}

static int show_who(struct showing *s, const struct who *who, bool trailer)
{
	auto_buf out = { 0 };

	if (trailer)
		buf_printf(&out, "Ward-Run: %s\n", s->review->id);
	for (size_t i = 0; i < s->all->len; i++) {
		if (!is_shown(s, i))
			continue;
		if (trailer) {
			who_trailer(who, s->all->items[i].path, &out);
			continue;
		}
		review_put_change(s->all, &s->all->items[i], s->pager.colour, &out);
		who_put(who, s->all->items[i].path, &out);
	}
	return pager_out(&s->pager, &out);
}

/* Forms that a person or a program asks for in place of the list need no look unless they are about
 * findings. */
static bool wants_look(const struct options *o)
{
	return !o->no_look && (o->block_on || o->scan_sarif || o->scanner ||
			       !(o->patch || o->stat || o->web || o->who || o->trailer));
}

static int show(const struct options *o, const struct review *r, const struct review_asked *asked,
		struct changes *all, const struct look_findings *found, struct progress *progress,
		struct ward_err *e)
{
	int found_code = o->exit_code && (all->len || all->git.len) ? EXIT_FINDINGS : EXIT_FINE,
	    code;
	struct showing s = { .review = r, .asked = asked, .all = all, .found = found };
	struct who who = { 0 };

	if (o->scan_sarif) {
		auto_buf out = { 0 };

		look_sarif(found, &out);
		return say_out(&out, found_code);
	}
	if (((o->who || o->trailer) && who_read(r, &who, e) < 0) ||
	    (!o->all && !o->json && folds_find(r, asked, all, &s.folds, e) < 0))
		return say_error(e, o->json, EXIT_REFUSED);
	if (!o->json && !o->web)
		pager_begin(&s.pager, !o->no_pager && !o->trailer);
	if (o->json)
		code = show_json(&s, o->who ? &who : NULL);
	else if (o->web)
		code = review_web(o, r, asked, all, &s.folds, e);
	else if (o->who || o->trailer)
		code = show_who(&s, &who, o->trailer);
	else if (o->patch)
		code = show_patch(&s, e);
	else if (o->stat)
		code = show_stat(&s, progress, e);
	else
		code = show_summary(&s);
	code = pager_end(&s.pager, code);
	folds_clear(&s.folds);
	who_clear(&who);
	return code == EXIT_FINE ? found_code : code;
}

int verb_diff(struct options *o)
{
	struct progress shown, *progress = progress_for_terminal(&shown, !o->json);
	struct review_asked asked;
	struct changes all = { 0 };
	struct look_findings found = { 0 };
	enum look_severity least;
	struct ward_err e = { 0 };
	struct review r;
	bool blocks, looks = wants_look(o);
	int code;

	if (look_read_options(o, &blocks, &least, &e) < 0)
		return say_usage(&e, o);
	review_finish_killed();
	if (o->list)
		return list_reviews(o);
	if (review_ask(o, REVIEW_READ, &asked, &r, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (changes_read(&r, &all, progress, &e) < 0 ||
	    review_check_paths(&r, &all, &asked.paths, &e) < 0 || changes_judge(&r, &all, &e) < 0 ||
	    changes_find_news(&r, &all, &e) < 0 || changes_settle(&r, &all, &e) < 0 ||
	    changes_find_renames(&r, &all, REVIEW_RENAME_BUDGET, &e) < 0 ||
	    (looks && (look_review(&r, &all, &asked.paths, &found, &e) < 0 ||
		       look_outside(o, &r, &all, &asked.paths, &found, &e) < 0))) {
		progress_end(progress);
		code = say_error(&e, o->json, EXIT_REFUSED);
	} else {
		progress_end(progress);
		code = show(o, &r, &asked, &all, looks ? &found : NULL, progress, &e);
		if (code == EXIT_FINE && blocks && look_count(&found, least))
			code = EXIT_FINDINGS;
	}
	look_clear(&found);
	changes_clear(&all);
	review_asked_clear(&asked);
	review_close(&r);
	return code;
}
