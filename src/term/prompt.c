/*
 * A question on the terminal that a program uses. In: what the program shows, behind the filter;
 * keys; the questions that wait; the time. Out: bytes for the terminal and for the program, and
 * answers. All that the program shows goes into the model of the screen, so that the bar can be
 * painted over it at any moment. While the bar is shown the terminal gets nothing but frames
 * composed from the model (bar.c): no byte of the program reaches it, so it can neither draw on the
 * bar nor move it. What a program writes to the normal screen meanwhile is kept and sent behind the
 * bar, so that the scrollback is complete; a program that writes more than PROMPT_REPLAY_MAX waits
 * for the answer. When the program switches between its screens, the bar goes, the switch passes,
 * and the bar comes again, at most once a frame. Nothing typed answers but through keys.c, and an
 * answer is one to the question that was shown then, whatever waits by now. Pure; runs in ward, and
 * only where the policy can ask.
 */
#include "term/prompt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

#define LINE_BYTES 320
#define SECOND_MS 1000
#define PASTE_MARKED "\x1b[?2004h" /* of ward's own: what is pasted answers nothing */

struct prompt {
	const struct prompt_ops *ops;
	void *context;
	const struct terminal *filter;
	char word[PROMPT_WORD_MAX];
	struct screen *screen; /* NULL: before the first prompt_begin() */
	bool begun, shown, visible, dirty, all;
	bool moved;               /* the size has changed since it is shown */
	struct question question; /* that is shown */
	size_t waiting;
	struct bar_before before;
	struct keys keys;
	uint64_t frame_ms, switch_ms; /* of the last ones */
	struct buf replay;            /* written to the normal screen meanwhile */
	struct buf rest;              /* behind a switch that has to wait */
	char message[LINE_BYTES];
	char lines[BAR_ROWS][LINE_BYTES], one[LINE_BYTES];
};

struct prompt *prompt_create(const struct prompt_ops *ops, void *context,
			     const struct terminal *filter, const char *word)
{
	struct prompt *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->ops = ops;
	p->context = context;
	p->filter = filter;
	p->keys.chord = KEYS_CHORD;
	snprintf(p->word, sizeof(p->word), "%s", word);
	return p;
}

void prompt_destroy(struct prompt *p)
{
	if (!p)
		return;
	screen_destroy(p->screen);
	buf_free(&p->replay);
	buf_free(&p->rest);
	free(p);
}

/* ---- what the bar says ---- */

/* Fits a text into so many columns: a long one loses its middle, and gets a hash of all of it. */
static void fit(char out[LINE_BYTES], const char *text, size_t room)
{
	char hash[SHA256_HEX];
	size_t n = strlen(text), head;

	room = room < LINE_BYTES ? room : LINE_BYTES - 1;
	if (n <= room || room < 24) {
		snprintf(out, LINE_BYTES, "%s", n <= room ? text : text + n - room);
		return;
	}
	sha256_hex(text, n, hash);
	room -= strlen("... (#12345678)");
	head = room / 3;
	snprintf(out, LINE_BYTES, "%.*s...%s (#%.8s)", (int)head, text, text + n - (room - head),
		 hash);
}

/* What is asked for: "connect to db.test:5432". A kind without a row says it in its subject. */
static void put_what(const struct prompt *p, char out[LINE_BYTES], size_t room)
{
	static const char *const verbs[QUESTION_KINDS] = { [QUESTION_CONNECT] = "connect to " };
	const struct question *q = &p->question;
	const char *verb = q->kind < QUESTION_KINDS && verbs[q->kind] ? verbs[q->kind] : "";
	char subject[LINE_BYTES];
	size_t n = strlen(verb);

	if (n + strlen(q->subject) > room) { /* what is asked for counts more */
		verb = "";
		n = 0;
	}
	fit(subject, q->subject, room > n ? room - n : 0);
	snprintf(out, LINE_BYTES, "%.16s%.280s", verb, subject);
}

/* What more is known, one line each; NULL: no more. */
static const char *more_about(const struct question *q, size_t at, char room[LINE_BYTES])
{
	const char *const names[] = { "asked by: ", "the rule that asks: ", "always would add: " },
			  *const texts[] = { q->process, q->rule, q->line };

	for (size_t i = 0; i < QUESTION_DETAILS_MAX; i++)
		if (*q->details[i] && at-- == 0)
			return q->details[i];
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (*texts[i] && at-- == 0) {
			snprintf(room, LINE_BYTES, "%s%s", names[i], texts[i]);
			return room;
		}
	return NULL;
}

static size_t count_more(const struct question *q)
{
	char room[LINE_BYTES];
	size_t n = 0;

	while (more_about(q, n, room))
		n++;
	return n;
}

/* What the keys do now. */
static void put_keys(const struct prompt *p, char out[LINE_BYTES], bool brief)
{
	const struct keys *k = &p->keys;
	/* nothing waits for a proposal: it cannot be allowed once */
	bool once = p->question.kind != QUESTION_PROPOSAL;

	switch (k->state) {
	case KEYS_ANSWER:
		if (k->digits_seen == 2)
			snprintf(out, LINE_BYTES,
				 brief ? "%.2ss t d" : "%.8ss this run  t 10 minutes  d deny",
				 !once   ? ""
				 : brief ? "a "
					 : "a once  ");
		else
			snprintf(out, LINE_BYTES,
				 brief ? "%.2s: %.8ss t; d ?"
				       : "allow: %.2s and %.8ss this run, t 10 minutes   "
					 "d deny  ? more",
				 k->digits,
				 !once   ? ""
				 : brief ? "a "
					 : "a once, ");
		break;
	case KEYS_SETTLE:
		snprintf(out, LINE_BYTES, "%s", k->answer == QUESTION_DENY ? "denied" : "allowed");
		break;
	case KEYS_ARMING:
		snprintf(out, LINE_BYTES, "...");
		break;
	case KEYS_NONE:
	case KEYS_NOTICE:
	default:
		snprintf(out, LINE_BYTES, "%s",
			 *p->message ? p->message
			 : brief     ? "Ctrl-^"
				     : "Ctrl-^ after a pause answers; all other keys go to the "
				       "program");
	}
}

static struct bar make_bar(struct prompt *p, uint64_t now_ms)
{
	struct bar bar = { .one = p->one };
	const struct question *q = &p->question;
	uint64_t left = q->deadline_ms > now_ms ? q->deadline_ms - now_ms : 0;
	char room[LINE_BYTES], keys[LINE_BYTES] = "", what[LINE_BYTES], count[40] = "";
	size_t cols = p->screen->cols, mores = count_more(q), at;
	const char *more;

	if (p->waiting > 1)
		snprintf(count, sizeof(count), ", %zu more wait", p->waiting - 1);
	snprintf(p->lines[0], LINE_BYTES, " ward [%s]  a question%s, %" PRIu64 " s left%s", p->word,
		 count, left / SECOND_MS,
		 p->replay.len >= PROMPT_REPLAY_MAX ? ", output waits" : "");
	put_what(p, p->lines[1], cols > 14 ? cols - 14 : cols);
	if (q->count > 1)
		snprintf(p->lines[1] + strlen(p->lines[1]), 16, " (%" PRIu32 "x)",
			 q->count < 1000000 ? q->count : 1000000);
	at = mores ? p->keys.more % mores : 0;
	more = more_about(q, at, room);
	fit(p->lines[2], more ? more : "", cols);
	put_keys(p, p->lines[3], false);
	for (size_t i = 0; i < BAR_ROWS; i++)
		bar.lines[i] = p->lines[i];
	/* one row: the word, what is asked for, and the keys, which are never cut off */
	put_keys(p, keys, true);
	at = strlen(p->word) + strlen(keys) + 4;
	put_what(p, what, cols > at ? cols - at : 0);
	snprintf(p->one, LINE_BYTES, "[%s] %.80s %.200s", p->word, keys, what);
	return bar;
}

/* ---- showing and hiding ---- */

static void show_bar(struct prompt *p, uint64_t now_ms, struct buf *out)
{
	struct bar bar = make_bar(p, now_ms);

	bar_show(p->screen, &bar, &p->before, out);
	p->shown = true;
	p->moved = p->dirty = p->all = false;
	p->frame_ms = now_ms;
}

/* The screen as it was, and all that was written since then. */
static void hide_bar(struct prompt *p, struct buf *out)
{
	bar_hide(p->screen, &p->before, p->moved, out);
	terminal_redo_input(p->filter, out);
	buf_add(out, buf_text(&p->replay), p->replay.len);
	buf_puts(out, PASTE_MARKED);
	buf_free(&p->replay);
	p->replay = (struct buf){ 0 };
	p->shown = false;
}

static void close_question(struct prompt *p, struct buf *out, struct buf *in)
{
	keys_close(&p->keys, in);
	p->visible = false;
	*p->message = '\0';
	if (p->shown)
		hide_bar(p, out);
}

/* To the terminal as it is. */
static void pass(struct prompt *p, const char *bytes, size_t n, struct buf *out)
{
	p->screen->hold_switch = false;
	(void)screen_feed(p->screen, bytes, n);
	buf_add(out, bytes, n);
	/* a program that ends its own marks ends ward's */
	if (memmem(bytes, n, "2004", 4) || memmem(bytes, n, "!p", 2))
		buf_puts(out, PASTE_MARKED);
}

/* How long the sequence at the beginning is. */
static size_t sequence_len(const char *bytes, size_t n)
{
	size_t i = 2;

	while (i < n && (bytes[i] < 0x40 || bytes[i] == 0x7f))
		i++;
	return i < n ? i + 1 : n;
}

void prompt_show(struct prompt *p, const char *bytes, size_t n, uint64_t now_ms, struct buf *out)
{
	if (!p->screen) { /* never begun: there was no bar yet */
		buf_add(out, bytes, n);
		return;
	}
	if (p->rest.len) {
		buf_add(&p->rest, bytes, n);
		return;
	}
	while (p->shown && n > 0) {
		size_t took, switch_len;

		p->screen->hold_switch = true;
		took = screen_feed(p->screen, bytes, n);
		if (!p->screen->alternate)
			buf_add(&p->replay, bytes, took);
		p->dirty = true;
		bytes += took;
		n -= took;
		if (n > 0 && now_ms < p->switch_ms + PROMPT_FRAME_MS) {
			buf_add(&p->rest, bytes, n);
			return;
		}
		if (n == 0)
			return;
		p->switch_ms = now_ms;
		switch_len = sequence_len(bytes, n);
		hide_bar(p, out);
		pass(p, bytes, switch_len, out);
		bytes += switch_len;
		n -= switch_len;
		show_bar(p, now_ms, out);
	}
	if (n > 0)
		pass(p, bytes, n, out);
}

bool prompt_is_full(const struct prompt *p)
{
	return p->rest.len > 0 || (p->shown && p->replay.len >= PROMPT_REPLAY_MAX);
}

/* ---- the terminal ---- */

int prompt_begin(struct prompt *p, unsigned rows, unsigned cols, unsigned row, unsigned col,
		 struct ward_err *e)
{
	int r = 0;

	if (!p->screen)
		p->screen = screen_create(rows, cols);
	else if (p->screen->rows != rows || p->screen->cols != cols)
		r = screen_resize(p->screen, rows, cols, e);
	if (!p->screen || r < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!p->screen->alternate) {
		p->screen->now.at =
			(struct place){ .row = row < p->screen->rows ? row : p->screen->rows - 1,
					.col = col < p->screen->cols ? col : p->screen->cols - 1 };
	}
	p->begun = true;
	return 0;
}

void prompt_end(struct prompt *p, struct buf *out, struct buf *in)
{
	auto_buf rest = p->rest;

	close_question(p, out, in);
	p->begun = false;
	p->rest = (struct buf){ 0 };
	if (rest.len)
		pass(p, rest.data, rest.len, out);
}

void prompt_resize(struct prompt *p, unsigned rows, unsigned cols)
{
	struct ward_err e;

	if (!p->screen || screen_resize(p->screen, rows, cols, &e) < 0)
		return; /* the old size: what is shown is cut off */
	p->moved = p->all = p->dirty = true;
	p->frame_ms = 0;
}

void prompt_repaint(struct prompt *p)
{
	p->all = p->dirty = true;
	p->frame_ms = 0;
}

/* ---- keys and time ---- */

void prompt_keys(struct prompt *p, const char *bytes, size_t n, uint64_t now_ms, struct buf *in)
{
	enum keys_state before = p->keys.state;

	p->keys.program_marks = p->screen && p->screen->now.modes & SCREEN_PASTE;
	if (!keys_take(&p->keys, bytes, n, now_ms, in))
		return;
	if (before == KEYS_NOTICE)
		*p->message = '\0';
	p->dirty = true;
	p->frame_ms = 0;
}

void prompt_written(struct prompt *p, uint64_t now_ms)
{
	char digits[2];

	if (!p->shown || p->visible)
		return;
	p->visible = true;
	p->ops->digits(p->context, digits);
	keys_open(&p->keys, now_ms, digits);
}

void prompt_changed(struct prompt *p)
{
	p->dirty = true;
}

static void give(struct prompt *p, enum question_answer answer, uint64_t now_ms)
{
	struct ward_err e = { 0 };
	char digits[2];

	if (p->ops->answer(p->context, &p->question, answer,
			   answer == QUESTION_TIME ? PROMPT_TIME_SECONDS : 0, &e) < 0)
		snprintf(p->message, sizeof(p->message), "that did not count: %.250s", e.why);
	/* where it goes on to wait, from the beginning */
	p->ops->digits(p->context, digits);
	keys_open(&p->keys, now_ms, digits);
	p->dirty = true;
}

/* Which question is to be shown; the bar of another one goes. */
static bool look(struct prompt *p, struct buf *out, struct buf *in)
{
	const struct question *q = p->ops->first(p->context, &p->waiting);

	if (p->shown && (!q || q->id != p->question.id))
		close_question(p, out, in);
	if (!q)
		return false;
	p->question = *q;
	return true;
}

void prompt_on_time(struct prompt *p, uint64_t now_ms, struct buf *out, struct buf *in)
{
	bool changed = false;
	enum question_answer answer = keys_on_time(&p->keys, now_ms, &changed, in);
	auto_buf rest = { 0 };

	if (changed) {
		p->dirty = true;
		p->frame_ms = 0;
	}
	if (answer)
		give(p, answer, now_ms);
	if (!p->begun || !out)
		return;
	if (p->rest.len && now_ms >= p->switch_ms + PROMPT_FRAME_MS) {
		rest = p->rest;
		p->rest = (struct buf){ 0 };
		prompt_show(p, rest.data, rest.len, now_ms, out);
	}
	if (!look(p, out, in)) {
		p->dirty = false;
		return;
	}
	if (!p->shown) {
		show_bar(p, now_ms, out);
	} else if (now_ms >= p->frame_ms + (p->dirty ? PROMPT_FRAME_MS : SECOND_MS)) {
		struct bar bar = make_bar(p, now_ms);

		if (p->all)
			bar_again(p->screen, &bar, out);
		else
			bar_repaint(p->screen, &bar, out);
		p->dirty = p->all = false;
		p->frame_ms = now_ms;
	}
}

uint64_t prompt_due_ms(const struct prompt *p, bool can_write)
{
	uint64_t due = keys_due_ms(&p->keys), frame = 0, rest = 0;

	if (!p->begun || !can_write)
		return due;
	if (p->shown)
		frame = p->frame_ms + (p->dirty ? PROMPT_FRAME_MS : SECOND_MS);
	else if (p->dirty)
		frame = 1;
	if (p->rest.len)
		rest = p->switch_ms + PROMPT_FRAME_MS;
	if (frame && (!due || frame < due))
		due = frame;
	return rest && (!due || rest < due) ? rest : due;
}

bool prompt_is_shown(const struct prompt *p, bool *ret_alternate)
{
	*ret_alternate = p->before.alternate;
	return p->shown;
}
