/*
 * ward diff: what a review holds. In: [RUN] [PATH...]. Out: names with letters, lines per file,
 * unified text or JSON. Runs with the user's rights, changes nothing, and looks at a run that still
 * goes on, too. Everything shown was chosen by an agent, see review_patch.c.
 */
#include "cli/review.h"
#include "cli/review_who.h"

#include <errno.h>
#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "review/apply.h"

#define RENAME_BUDGET (4ull << 30) /* bytes that are read to find renames */

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

/* Whether the change is one of those asked for, and worth a line. */
static bool is_shown(const struct review_asked *asked, const struct changes *all,
		     const struct change *c)
{
	if (c->implied || (c->twin != CHANGE_NONE && c->kind == CHANGE_DELETED &&
			   apply_is_selected(&asked->paths, all->items[c->twin].path)))
		return false;
	return apply_is_selected(&asked->paths, c->path);
}

static int show_json(const struct review *r, const struct review_asked *asked,
		     const struct changes *all, const struct who *who, int code)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_object(&j, NULL);
	json_string(&j, "run", r->id);
	json_string(&j, "workspace", r->record.workspace);
	json_begin_array(&j, "changes");
	for (size_t i = 0; i < all->len; i++)
		if (is_shown(asked, all, &all->items[i]))
			review_json_change(all, &all->items[i], who, &j);
	json_end_array(&j);
	json_begin_array(&j, "git");
	for (size_t i = 0; i < all->git.len; i++)
		json_string(&j, NULL, all->git.items[i]);
	json_end_array(&j);
	json_uint(&j, "hidden", all->hidden);
	json_end_object(&j);
	buf_puts(&out, "\n");
	return say_out(&out, code);
}

static void show_names(const struct review_asked *asked, const struct changes *all, bool colour,
		       struct buf *out)
{
	for (size_t i = 0; i < all->len; i++)
		if (is_shown(asked, all, &all->items[i]))
			review_put_change(all, &all->items[i], colour, out);
}

/* Text is written as it is made: a hundred thousand files are no reason to hold them all. */
static int show_patch(const struct review *r, const struct review_asked *asked,
		      const struct changes *all, bool terminal, bool colour, struct ward_err *e)
{
	size_t added = 0, removed = 0;

	for (size_t i = 0; i < all->len; i++) {
		auto_buf out = { 0 };

		if (!is_shown(asked, all, &all->items[i]))
			continue;
		if (review_patch(r, all, &all->items[i], terminal, colour, &out, &added, &removed,
				 e) < 0)
			return say_error(e, false, EXIT_REFUSED);
		if (say_out(&out, EXIT_FINE) != EXIT_FINE)
			return EXIT_REFUSED;
	}
	return EXIT_FINE;
}

static int show_stat(const struct review *r, const struct review_asked *asked,
		     const struct changes *all, struct progress *progress, struct ward_err *e)
{
	size_t added = 0, removed = 0, files = 0;
	auto_buf out = { 0 };

	for (size_t i = 0; i < all->len; i++) {
		size_t plus = 0, minus = 0;

		if (!is_shown(asked, all, &all->items[i]))
			continue;
		if (review_patch(r, all, &all->items[i], false, false, NULL, &plus, &minus, e) < 0)
			return say_error(e, false, EXIT_REFUSED);
		files++;
		added += plus;
		removed += minus;
		buf_printf(&out, "%6zu+ %6zu-  ", plus, minus);
		review_put_change(all, &all->items[i], false, &out);
		progress_step(progress, "files compared");
	}
	progress_end(progress);
	buf_printf(&out, "%zu file%s changed, %zu line%s added, %zu removed\n", files,
		   files == 1 ? "" : "s", added, added == 1 ? "" : "s", removed);
	return say_out(&out, EXIT_FINE);
}

static int show_summary(const struct review *r, const struct review_asked *asked,
			const struct changes *all, bool colour, bool terminal)
{
	auto_buf out = { 0 }, notes = { 0 };

	show_names(asked, all, colour, &out);
	for (size_t i = 0; i < all->git.len; i++) {
		text_escape(&out, all->git.items[i]);
		buf_puts(&out, "\n");
	}
	if (!all->len && !all->git.len)
		buf_puts(&notes, "no changes\n");
	if (all->hidden)
		buf_printf(&notes, "%zu change%s to hidden files %s not shown\n", all->hidden,
			   all->hidden == 1 ? "" : "s", all->hidden == 1 ? "is" : "are");
	if (terminal && (all->len || all->git.len)) {
		review_put_counts(all, &notes);
		buf_printf(&notes, "; ward apply %s, or ward discard %s\n", r->id, r->id);
	}
	say_err(&notes);
	return say_out(&out, EXIT_FINE);
}

static int show_who(const struct review *r, const struct review_asked *asked,
		    const struct changes *all, const struct who *who, bool trailer, bool colour)
{
	auto_buf out = { 0 };

	if (trailer)
		buf_printf(&out, "Ward-Run: %s\n", r->id);
	for (size_t i = 0; i < all->len; i++) {
		if (!is_shown(asked, all, &all->items[i]))
			continue;
		if (trailer) {
			who_trailer(who, all->items[i].path, &out);
			continue;
		}
		review_put_change(all, &all->items[i], colour, &out);
		who_put(who, all->items[i].path, &out);
	}
	return say_out(&out, EXIT_FINE);
}

static int show(const struct options *o, const struct review *r, const struct review_asked *asked,
		struct changes *all, struct progress *progress, struct ward_err *e)
{
	bool terminal = isatty(STDOUT_FILENO), colour = terminal && !getenv("NO_COLOR");
	int found = o->exit_code && all->len ? EXIT_FINDINGS : EXIT_FINE, code;

	struct who who = { 0 };

	if ((o->who || o->trailer) && who_read(r, &who, e) < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (o->json)
		code = show_json(r, asked, all, o->who ? &who : NULL, EXIT_FINE);
	else if (o->who || o->trailer)
		code = show_who(r, asked, all, &who, o->trailer, colour);
	else if (o->patch)
		code = show_patch(r, asked, all, terminal, colour, e);
	else if (o->stat)
		code = show_stat(r, asked, all, progress, e);
	else
		code = show_summary(r, asked, all, colour, terminal);
	who_clear(&who);
	return code == EXIT_FINE ? found : code;
}

int verb_diff(struct options *o)
{
	struct progress shown, *progress = progress_for_terminal(&shown, !o->json);
	struct review_asked asked;
	struct changes all = { 0 };
	struct ward_err e = { 0 };
	struct review r;
	int code;

	review_finish_killed();
	if (o->list)
		return list_reviews(o);
	if (review_ask(o, REVIEW_READ, &asked, &r, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (changes_read(&r, &all, progress, &e) < 0 ||
	    review_check_paths(&r, &all, &asked.paths, &e) < 0 || changes_judge(&r, &all, &e) < 0 ||
	    changes_find_news(&r, &all, &e) < 0 ||
	    changes_find_renames(&r, &all, RENAME_BUDGET, &e) < 0) {
		progress_end(progress);
		code = say_error(&e, o->json, EXIT_REFUSED);
	} else {
		progress_end(progress);
		code = show(o, &r, &asked, &all, progress, &e);
	}
	changes_clear(&all);
	review_asked_clear(&asked);
	review_close(&r);
	return code;
}
