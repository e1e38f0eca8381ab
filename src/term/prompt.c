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
#include "term/prompt_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_MS 1000
#define PASTE_MARKED "\x1b[?2004h" /* of ward's own: what is pasted answers nothing */

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
	strv_free(&p->change.lines);
	buf_free(&p->replay);
	buf_free(&p->rest);
	free(p);
}

/* ---- showing and hiding ---- */

static void show_bar(struct prompt *p, uint64_t now_ms, struct buf *out)
{
	struct bar bar = prompt_bar(p, now_ms);

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
	prompt_change_drop(p);
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
	if (p->keys.state == KEYS_LOOK)
		prompt_change_read(p, now_ms);
	p->dirty = true;
	p->frame_ms = 0;
}

void prompt_written(struct prompt *p, uint64_t now_ms)
{
	char digits[2];

	if (p->shown && p->change.composed && p->keys.state == KEYS_LOOK) {
		keys_sure(&p->keys, now_ms);
		p->dirty = true;
	}
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

static void give(struct prompt *p, const struct question *q, enum question_answer answer,
		 uint64_t now_ms)
{
	struct ward_err e = { 0 };
	char digits[2];

	if (p->ops->answer(p->context, q, answer, answer == QUESTION_TIME ? PROMPT_TIME_SECONDS : 0,
			   &e) < 0)
		snprintf(p->message, sizeof(p->message), "that did not count: %.250s", e.why);
	/* where it goes on to wait, from the beginning */
	p->ops->digits(p->context, digits);
	keys_open(&p->keys, now_ms, digits);
	p->dirty = true;
}

/* First the policy file, then the answer: keys are the program's meanwhile. */
static void begin_always(struct prompt *p, uint64_t now_ms)
{
	char digits[2];

	p->ops->digits(p->context, digits);
	keys_open(&p->keys, now_ms, digits);
	snprintf(p->message, sizeof(p->message), "writing the policy ...");
	prompt_change_write(p, now_ms);
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
	if (answer == QUESTION_ALWAYS)
		begin_always(p, now_ms);
	else if (answer)
		give(p, &p->question, answer, now_ms);
	if (prompt_change_look(p, now_ms))
		give(p, &p->change.question, QUESTION_ALWAYS, now_ms);
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
		struct bar bar = prompt_bar(p, now_ms);

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
	bool looks = p->change.state == CHANGE_READING || p->change.state == CHANGE_WRITING;

	if (looks && (!due || p->change.look_ms < due))
		due = p->change.look_ms;
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
