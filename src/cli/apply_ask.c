/*
 * ward apply --patch. In: the changes of a review, answers on standard input. Out: which of them
 * are wanted, for a changed text file hunk by hunk. Runs with the user's rights; nothing of the
 * workspace changes here, and apply_run() does only what was answered for files that are still as
 * they were shown.
 *
 * The letters are those of git add --patch: y n q a d s ?. The end of the input is q: what was
 * answered before counts.
 */
#include "cli/apply_ask.h"

#include <errno.h>
#include <string.h>

#include "base/diff.h"
#include "base/io.h"
#include "base/text.h"

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_QUIT, ANSWER_ALL, ANSWER_DROP, ANSWER_SPLIT };

struct asking {
	const struct options *options;
	const struct review *review;
	struct changes all;
	struct apply_answers *answers;
	bool terminal, colour;
	bool over; /* q, or the end of the input */
	struct ward_err *e;
};

void apply_answers_clear(struct apply_answers *a)
{
	for (size_t i = 0; i < a->len; i++)
		if (a->contents[i]) {
			buf_free(a->contents[i]);
			free(a->contents[i]);
		}
	free(a->picks);
	free(a->contents);
	strv_free(&a->paths);
	strv_free(&a->names);
	*a = (struct apply_answers){ 0 };
}

static int add_pick(struct asking *s, const struct change *c, struct buf *content)
{
	struct apply_answers *a = s->answers;

	if (a->len == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 16;
		struct apply_pick *picks = reallocarray(a->picks, cap, sizeof(*picks));
		struct buf **contents;

		if (picks)
			a->picks = picks;
		contents = picks ? reallocarray(a->contents, cap, sizeof(*contents)) : NULL;
		if (!contents)
			return -ENOMEM;
		a->contents = contents;
		a->cap = cap;
	}
	strv_add(&a->names, c->path);
	if (a->names.failed)
		return -ENOMEM;
	a->contents[a->len] = content;
	a->picks[a->len++] = (struct apply_pick){ .path = a->names.items[a->names.len - 1],
						  .inode = c->inode,
						  .ctime_ns = c->ctime_ns,
						  .content = content };
	return 0;
}

/* ---- questions ---- */

/* One line of standard input, at most as long as an answer is; false: it ends. */
static bool read_answer(char *ret, size_t n)
{
	size_t len = 0;
	bool any = false;
	char c;

	for (;;) {
		ssize_t got = read(STDIN_FILENO, &c, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		any = true;
		if (c == '\n')
			break;
		if (len + 1 < n)
			ret[len++] = c;
	}
	ret[len] = '\0';
	return any;
}

static const char help[] = "y - apply it\n"
			   "n - do not; it stays in the review\n"
			   "q - quit; do not apply it or anything behind it\n"
			   "a - apply it and the rest of this file\n"
			   "d - do not apply it or the rest of this file\n"
			   "s - split it into smaller hunks\n"
			   "? - this list\n";

/* Prints what it is about and asks until there is an answer. */
static enum answer ask(struct asking *s, const struct buf *shown, const char *question, bool splits)
{
	static const char letters[] = "ynqads";

	for (bool again = false;; again = true) {
		auto_buf out = { 0 };
		char word[8];
		const char *found;

		if (!again)
			buf_add(&out, buf_text(shown), shown->len);
		buf_printf(&out, "%s%s [y,n,q,a,d%s,?]? %s", s->colour ? "\033[1;34m" : "",
			   question, splits ? ",s" : "", s->colour ? "\033[0m" : "");
		if (say_out(&out, EXIT_FINE) != EXIT_FINE || !read_answer(word, sizeof(word))) {
			s->over = true;
			return ANSWER_QUIT;
		}
		found = word[0] && !word[1] ? strchr(letters, word[0]) : NULL;
		if (found && (word[0] != 's' || splits)) {
			s->over = word[0] == 'q';
			return (enum answer)(found - letters);
		}
		buf_free(&out);
		buf_puts(&out, help);
		if (say_out(&out, EXIT_FINE) != EXIT_FINE)
			return ANSWER_QUIT;
	}
}

/* ---- hunks ---- */

/* Regions [from, to) of a file that are shown together. */
struct hunk {
	size_t from, to;
};

static void put_lines(struct asking *s, struct buf *out, char sign, const char *text,
		      const size_t *starts, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		size_t n = starts[i + 1] - starts[i];
		bool whole = n && text[starts[i + 1] - 1] == '\n';

		review_put_line(out, sign, text + starts[i], n - whole, whole, s->terminal,
				s->colour);
	}
}

static void put_hunk(struct asking *s, struct buf *out, const struct diff_regions *d,
		     const char *old_text, const char *new_text, const struct hunk *h)
{
	const struct diff_region *first = &d->items[h->from], *last = &d->items[h->to - 1];
	size_t before = first->old_from < DIFF_CONTEXT ? first->old_from : DIFF_CONTEXT,
	       left = d->old_count - last->old_to,
	       after = left < DIFF_CONTEXT ? left : DIFF_CONTEXT, at = first->old_from - before;

	buf_printf(out, "%s@@ -%zu,%zu +%zu,%zu @@%s\n", s->colour ? "\033[36m" : "", at + 1,
		   last->old_to + after - at, first->new_from - before + 1,
		   last->new_to + after - (first->new_from - before), s->colour ? "\033[0m" : "");
	for (size_t i = h->from; i < h->to; i++) {
		const struct diff_region *r = &d->items[i];

		put_lines(s, out, ' ', old_text, d->old_starts, at, r->old_from);
		put_lines(s, out, '-', old_text, d->old_starts, r->old_from, r->old_to);
		put_lines(s, out, '+', new_text, d->new_starts, r->new_from, r->new_to);
		at = r->old_to;
	}
	put_lines(s, out, ' ', old_text, d->old_starts, at, at + after);
}

/* Where the hunk that begins with a region ends: regions whose contexts meet stand together. */
static size_t end_of_hunk(const struct diff_regions *d, size_t from)
{
	size_t to = from + 1;

	while (to < d->len && d->items[to].old_from - d->items[to - 1].old_to <= 2 * DIFF_CONTEXT)
		to++;
	return to;
}

/* Asks for each hunk; chosen gets a mark for each region. */
static void ask_hunks(struct asking *s, struct buf *head, const struct diff_regions *d,
		      const char *old_text, const char *new_text, bool *chosen)
{
	enum answer last = ANSWER_NO;
	size_t limit = 0; /* up to there hunks are single regions: a split one */

	for (size_t from = 0, to; from < d->len && !s->over; from = to) {
		struct hunk h;
		auto_buf shown = { 0 };

		to = from < limit ? from + 1 : end_of_hunk(d, from);
		h = (struct hunk){ from, to };
		if (last != ANSWER_ALL && last != ANSWER_DROP) {
			buf_add(&shown, buf_text(head), head->len);
			head->len = 0;
			put_hunk(s, &shown, d, old_text, new_text, &h);
			last = ask(s, &shown, "Apply this hunk", to - from > 1);
		}
		if (last == ANSWER_SPLIT) {
			limit = to;
			to = from;
			continue;
		}
		for (size_t i = from; i < to; i++)
			chosen[i] = last == ANSWER_YES || last == ANSWER_ALL;
	}
}

/* The old text with the regions that were chosen. */
static struct buf *put_together(const struct diff_regions *d, const char *old_text,
				const char *new_text, const bool *chosen)
{
	struct buf *out = calloc(1, sizeof(*out));
	size_t at = 0;

	for (size_t i = 0; out && i < d->len; i++) {
		const struct diff_region *r = &d->items[i];

		buf_add(out, old_text + d->old_starts[at],
			d->old_starts[r->old_from] - d->old_starts[at]);
		if (chosen[i])
			buf_add(out, new_text + d->new_starts[r->new_from],
				d->new_starts[r->new_to] - d->new_starts[r->new_from]);
		else
			buf_add(out, old_text + d->old_starts[r->old_from],
				d->old_starts[r->old_to] - d->old_starts[r->old_from]);
		at = r->old_to;
	}
	if (out)
		buf_add(out, old_text + d->old_starts[at],
			d->old_starts[d->old_count] - d->old_starts[at]);
	if (out && out->failed) {
		buf_free(out);
		free(take_ptr(out));
	}
	return out;
}

static void put_head(struct asking *s, const struct change *c, struct buf *out)
{
	review_put_change(&s->all, c, s->colour, out);
}

static int ask_text(struct asking *s, const struct change *c, const struct patch_side *a,
		    const struct patch_side *b)
{
	const char *old_text = buf_text(&a->bytes), *new_text = buf_text(&b->bytes);
	struct diff_regions d = { 0 };
	int status = diff_find_regions(old_text, a->bytes.len, new_text, b->bytes.len, &d);
	auto_free bool *chosen = status == 0 ? calloc(d.len + 1, sizeof(*chosen)) : NULL;
	auto_buf head = { 0 };
	size_t count = 0;

	if (!chosen)
		status = -ENOMEM;
	if (status == 0) {
		put_head(s, c, &head);
		ask_hunks(s, &head, &d, old_text, new_text, chosen);
		for (size_t i = 0; i < d.len; i++)
			count += chosen[i];
	}
	if (status == 0 && count == d.len) {
		status = add_pick(s, c, NULL);
	} else if (status == 0 && count) {
		struct buf *content = put_together(&d, old_text, new_text, chosen);

		status = content ? add_pick(s, c, content) : -ENOMEM;
	}
	diff_regions_clear(&d);
	return status;
}

/* A change that is taken as a whole, or not. */
static int ask_whole(struct asking *s, const struct change *c)
{
	auto_buf shown = { 0 };
	size_t added = 0, removed = 0;
	enum answer got;
	int status;

	put_head(s, c, &shown);
	if (review_patch(s->review, &s->all, c, true, s->colour, &shown, &added, &removed, s->e) <
	    0)
		*s->e = (struct ward_err){ 0 }; /* what cannot be shown can be named */
	got = ask(s, &shown,
		  c->kind == CHANGE_DELETED ? "Apply this deletion"
		  : c->kind == CHANGE_ADDED ? "Apply this addition"
					    : "Apply this change",
		  false);
	if (got != ANSWER_YES && got != ANSWER_ALL)
		return 0;
	status = add_pick(s, c, NULL);
	if (status == 0 && c->twin != CHANGE_NONE)
		status = add_pick(s, &s->all.items[c->twin], NULL);
	return status;
}

/* Why it is not asked for, NULL: it is. */
static const char *why_not(const struct asking *s, const struct change *c)
{
	if (c->refused)
		return c->refused;
	if (c->is_protected && !s->options->with_protected)
		return "protected; --protected asks for it, too";
	return c->conflict && !s->options->force ? "changed outside since the run began" : NULL;
}

static int ask_one(struct asking *s, const struct change *c)
{
	const char *why = why_not(s, c);
	struct patch_side a = { .fd = -1 }, b = { .fd = -1 };
	int status;

	if (why) {
		auto_buf out = { 0 };

		buf_puts(&out, "left: ");
		text_escape(&out, c->path);
		buf_printf(&out, ": %s\n", why);
		return say_out(&out, EXIT_FINE) == EXIT_FINE ? 0 : -EIO;
	}
	if (c->kind != CHANGE_CONTENT || !S_ISREG(c->new_mode) || c->merged)
		return ask_whole(s, c);
	status = review_sides(s->review, &s->all, c, &a, &b);
	if (status == 0)
		status = a.text && b.text && !a.why && !b.why ? ask_text(s, c, &a, &b)
							      : ask_whole(s, c);
	review_side_clear(&a);
	review_side_clear(&b);
	return status;
}

/* What the run did with git is one question. */
static void ask_git(struct asking *s)
{
	auto_buf shown = { 0 };
	enum answer got;

	for (size_t i = 0; i < s->all.git.len; i++) {
		text_escape(&shown, s->all.git.items[i]);
		buf_puts(&shown, "\n");
	}
	got = ask(s, &shown, "Apply what the run did with git", false);
	strv_add(&s->answers->paths,
		 got == ANSWER_YES || got == ANSWER_ALL ? ".git" : ".ward-none");
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct apply_pick *)a)->path, ((const struct apply_pick *)b)->path);
}

int apply_ask(const struct options *o, const struct review *r, const struct review_asked *asked,
	      struct apply_answers *ret, struct ward_err *e)
{
	struct asking s = { .options = o, .review = r, .answers = ret, .e = e };
	bool all_paths = asked->paths.len == 0;
	int status;

	*ret = (struct apply_answers){ 0 };
	s.terminal = isatty(STDOUT_FILENO);
	s.colour = s.terminal && !getenv("NO_COLOR");
	status = changes_read(r, &s.all, NULL, e);
	if (status == 0)
		status = changes_judge(r, &s.all, e);
	if (status == 0)
		status = changes_find_news(r, &s.all, e);
	if (status == 0 && !o->force)
		status = changes_settle(r, &s.all, e);
	if (status == 0)
		status = changes_find_renames(r, &s.all, REVIEW_RENAME_BUDGET, e);
	for (size_t i = 0; i < s.all.len && status == 0 && !s.over; i++) {
		const struct change *c = &s.all.items[i];

		if (c->implied || (c->twin != CHANGE_NONE && c->kind == CHANGE_DELETED) ||
		    !apply_is_selected(&asked->paths, c->path))
			continue;
		status = ask_one(&s, c);
		if (status < 0 && !e->code)
			ward_fail(e, -status, "cannot ask about %s: %s", c->path,
				  strerror(-status));
	}
	if (status == 0 && s.all.git.len && all_paths && !s.over)
		ask_git(&s);
	else
		strv_add(&ret->paths, ".ward-none");
	if (ret->len)
		qsort(ret->picks, ret->len, sizeof(*ret->picks), by_path);
	changes_clear(&s.all);
	return status;
}
