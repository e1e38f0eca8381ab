/*
 * The three-way merge of texts, line by line. In: the text that both sides began with, and what
 * each made of it. Out: one text with the edits of both. A pure function; the texts may be an
 * agent's, and time and memory are bounded by those of two comparisons (diff.c).
 *
 * The regions in which each side differs from the base are walked in order. Regions of the two
 * sides that overlap or touch become one: if both sides have the same text there it is taken once,
 * else it is a conflict, as for git.
 */
#include "base/merge.h"

#include <errno.h>
#include <string.h>

#include "base/diff.h"

struct edits {
	const struct merge_text *text;
	struct diff_regions found;
	size_t next; /* the region that comes next */
};

/* A piece of the base, [from, to) in lines, with the regions of each side in it. */
struct piece {
	size_t from, to;
	size_t ours_end, theirs_end;
};

static const struct diff_region *peek(const struct edits *e, size_t at)
{
	return at < e->found.len ? &e->found.items[at] : NULL;
}

/* Takes regions of one side into the piece as long as they overlap or touch it. */
static bool widen(const struct edits *e, size_t *end, struct piece *p)
{
	const struct diff_region *r = peek(e, *end);

	if (!r || r->old_from > p->to)
		return false;
	p->to = r->old_to > p->to ? r->old_to : p->to;
	++*end;
	return true;
}

/* The lines of one side that stand where the piece of the base was. */
static struct merge_text side_of(const struct edits *e, size_t first, size_t end,
				 const struct piece *p)
{
	const struct diff_regions *f = &e->found;
	size_t from, to;

	if (first == end) { /* unchanged: as far from the last region as in the base */
		ptrdiff_t shift = first ? (ptrdiff_t)f->items[first - 1].new_to -
						  (ptrdiff_t)f->items[first - 1].old_to
					: 0;

		from = (size_t)((ptrdiff_t)p->from + shift);
		to = (size_t)((ptrdiff_t)p->to + shift);
	} else {
		from = f->items[first].new_from - (f->items[first].old_from - p->from);
		to = f->items[end - 1].new_to + (p->to - f->items[end - 1].old_to);
	}
	return (struct merge_text){ e->text->text + f->new_starts[from],
				    f->new_starts[to] - f->new_starts[from], e->text->label };
}

static bool is_same(const struct merge_text *a, const struct merge_text *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->text, b->text, a->len) == 0);
}

static void put_block(struct buf *out, const char *marker, const struct merge_text *t)
{
	buf_puts(out, marker);
	if (t->label)
		buf_printf(out, " %s", t->label);
	buf_puts(out, "\n");
	buf_add(out, t->text, t->len);
	if (t->len && t->text[t->len - 1] != '\n')
		buf_puts(out, "\n");
}

/* Both differ: markers as git writes them in the style diff3. */
static void put_conflict(struct buf *out, const struct merge_text *base,
			 const struct merge_text *ours, const struct merge_text *theirs)
{
	put_block(out, "<<<<<<<", ours);
	put_block(out, "|||||||", base);
	put_block(out, "=======", &(struct merge_text){ theirs->text, theirs->len, NULL });
	buf_printf(out, ">>>>>>>%s%s\n", theirs->label ? " " : "",
		   theirs->label ? theirs->label : "");
}

static void put_piece(struct edits *a, struct edits *b, const struct merge_text *base,
		      const struct piece *p, struct buf *out, size_t *conflicts)
{
	const size_t *starts = a->found.old_starts;
	struct merge_text ours = side_of(a, a->next, p->ours_end, p),
			  theirs = side_of(b, b->next, p->theirs_end, p);

	if (p->theirs_end == b->next || is_same(&ours, &theirs)) {
		buf_add(out, ours.text, ours.len);
	} else if (p->ours_end == a->next) {
		buf_add(out, theirs.text, theirs.len);
	} else {
		++*conflicts;
		put_conflict(out,
			     &(struct merge_text){ base->text + starts[p->from],
						   starts[p->to] - starts[p->from], base->label },
			     &ours, &theirs);
	}
	a->next = p->ours_end;
	b->next = p->theirs_end;
}

static size_t merge_edits(struct edits *a, struct edits *b, const struct merge_text *base,
			  struct buf *out)
{
	const size_t *starts = a->found.old_starts;
	size_t at = 0, conflicts = 0;

	for (;;) {
		const struct diff_region *r = peek(a, a->next), *s = peek(b, b->next);
		const struct diff_region *first = !r ? s : !s || r->old_from <= s->old_from ? r : s;
		struct piece p;

		if (!first)
			break;
		p = (struct piece){ first->old_from, first->old_to, a->next, b->next };
		while (widen(a, &p.ours_end, &p) || widen(b, &p.theirs_end, &p))
			;
		buf_add(out, base->text + starts[at], starts[p.from] - starts[at]);
		put_piece(a, b, base, &p, out, &conflicts);
		at = p.to;
	}
	buf_add(out, base->text + starts[at], starts[a->found.old_count] - starts[at]);
	return conflicts;
}

int merge_texts(const struct merge_text *base, const struct merge_text *ours,
		const struct merge_text *theirs, struct buf *out, size_t *ret_conflicts)
{
	struct edits a = { .text = ours }, b = { .text = theirs };
	int status = diff_find_regions(base->text, base->len, ours->text, ours->len, &a.found);

	if (status == 0)
		status = diff_find_regions(base->text, base->len, theirs->text, theirs->len,
					   &b.found);
	if (status == 0) {
		*ret_conflicts = merge_edits(&a, &b, base, out);
		status = out->failed ? -ENOMEM : 0;
	}
	diff_regions_clear(&a.found);
	diff_regions_clear(&b.found);
	return status;
}
