/*
 * The answer ALWAYS on a terminal. In: the question that is shown, what the caller finds out about
 * the policy file. Out: the lines of that file that would go or come, for the bar, and the order to
 * change it. A person sees all of the change before the key counts that makes it, and the caller
 * makes that very change or none. What takes the caller long is looked at once a frame; meanwhile
 * the question waits, and can be answered elsewhere. Pure.
 */
#include "term/prompt_internal.h"

#include <string.h>

#define LINES_MAX 64 /* a change that is longer is for ward approve */
#define WIDTH 72     /* longer lines go on in the next row: nothing of them is left out */

bool prompt_change_possible(const struct prompt *p)
{
	return p->ops->change && *p->question.line && bar_rows(p->screen) == BAR_ROWS &&
	       p->screen->cols >= WIDTH + 2;
}

size_t prompt_change_pages(const struct prompt *p)
{
	size_t pages = (p->change.lines.len + PROMPT_CHANGE_ROWS - 1) / PROMPT_CHANGE_ROWS;

	return pages ? pages : 1;
}

static void forget(struct prompt *p)
{
	strv_free(&p->change.lines);
	p->change.lines = (struct strv){ 0 };
	*p->change.file = '\0';
	p->change.composed = false;
	p->change.state = CHANGE_NONE;
}

void prompt_change_drop(struct prompt *p)
{
	if (p->change.state != CHANGE_WRITING)
		forget(p);
}

static void give_up(struct prompt *p, const char *why, uint64_t now_ms)
{
	forget(p);
	keys_unsure(&p->keys, now_ms);
	snprintf(p->message, sizeof(p->message), "not always: %.300s", why);
	p->dirty = true;
}

static void begin(struct prompt *p, const struct question *q, bool write, uint64_t now_ms)
{
	struct ward_err e = { 0 };

	p->change.look_ms = now_ms;
	p->change.state = write ? CHANGE_WRITING : CHANGE_READING;
	if (p->ops->change(p->context, q, write, &e) < 0)
		give_up(p, e.why, now_ms);
}

void prompt_change_read(struct prompt *p, uint64_t now_ms)
{
	if (p->change.state == CHANGE_WRITING)
		return; /* of another question: that one first */
	forget(p);
	p->change.question = p->question;
	begin(p, &p->change.question, false, now_ms);
}

void prompt_change_write(struct prompt *p, uint64_t now_ms)
{
	if (p->change.state != CHANGE_KNOWN || p->change.question.id != p->question.id)
		return; /* it is not what was shown */
	begin(p, &p->change.question, true, now_ms);
}

static void add_line(struct prompt_change *c, const char *text, int n)
{
	strv_addf(&c->lines, "%.*s", n < WIDTH ? n : WIDTH, text);
	for (int at = WIDTH; at < n && c->lines.len <= LINES_MAX; at += WIDTH)
		strv_addf(&c->lines, "| %.*s", n - at < WIDTH ? n - at : WIDTH, text + at);
}

/* Of a unified difference what goes and comes, and the name of the file. */
static bool take_lines(struct prompt_change *c, const char *text)
{
	bool inside = false;

	for (const char *end; *text; text = *end ? end + 1 : end) {
		int n = (int)strcspn(text, "\n");

		end = text + n;
		if (strncmp(text, "@@", 2) == 0)
			inside = true;
		else if (!inside && strncmp(text, "+++ ", 4) == 0)
			snprintf(c->file, sizeof(c->file), "%.*s", n - 4, text + 4);
		else if (inside ? *text == '+' || *text == '-' : strncmp(text, "--- ", 4) != 0 && n)
			add_line(c, text, n);
	}
	return !c->lines.failed && c->lines.len <= LINES_MAX;
}

bool prompt_change_look(struct prompt *p, uint64_t now_ms)
{
	struct prompt_change *c = &p->change;
	bool writes = c->state == CHANGE_WRITING;
	struct ward_err e = { 0 };
	const char *text = "";
	int r;

	if ((!writes && c->state != CHANGE_READING) || now_ms < c->look_ms)
		return false;
	c->look_ms = now_ms + PROMPT_FRAME_MS;
	r = p->ops->changed(p->context, &text, &e);
	if (r == 0)
		return false;
	p->dirty = true;
	if (r < 0) {
		give_up(p, e.why, now_ms);
		return false;
	}
	if (writes) {
		forget(p);
		return true;
	}
	if (!take_lines(c, text))
		give_up(p, "the change is too long for this bar; use ward approve", now_ms);
	else
		c->state = CHANGE_KNOWN;
	return false;
}
