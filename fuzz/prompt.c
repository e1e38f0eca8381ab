/*
 * Questions over a program's screen. The input is a row of steps: a byte that says which, a byte
 * of length or time, and for some so many bytes. What holds: while a bar is shown its word stands
 * in the last rows of the terminal, whatever the program sends; once it is gone the terminal shows
 * what one shows on which nothing was asked; no key is lost or added while nobody answers; an
 * answer needs the digits, and always a change of the policy that was shown and then made.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "term/prompt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS 12
#define COLS 80
#define WORD "brisk otter"

struct scene {
	struct prompt *p;
	struct terminal filter;
	struct screen *terminal, *plain;
	struct question q;
	bool answered, yes, digits_typed, read, written;
	uint64_t changing_id;
	uint64_t now;
};

static const struct question *first(void *context, size_t *ret_count)
{
	struct scene *s = context;

	*ret_count = s->q.id != 0;
	return s->q.id ? &s->q : NULL;
}

static int answer(void *context, const struct question *q, enum question_answer answer,
		  uint64_t seconds, struct ward_err *e)
{
	struct scene *s = context;

	(void)q;
	(void)seconds;
	(void)e;
	if (answer != QUESTION_DENY && !s->digits_typed)
		abort();
	if (answer == QUESTION_ALWAYS && (!s->written || s->changing_id != q->id))
		abort();
	s->written = false;
	s->q.id = 0;
	return 0;
}

static int change(void *context, const struct question *q, bool write, struct ward_err *e)
{
	struct scene *s = context;

	(void)e;
	if (write && (!s->read || s->changing_id != q->id))
		abort();
	s->written = write;
	s->read = !write;
	s->changing_id = q->id;
	return 0;
}

static int changed(void *context, const char **ret_text, struct ward_err *e)
{
	struct scene *s = context;

	*ret_text = "+++ a.yaml\n@@ -1,1 +1,3 @@\n+network:\n-  a\n+  - db.example:5432\n";
	if (s->now % 5 == 0)
		return ward_fail(e, 1, "the disk is full");
	return s->now % 3 != 0;
}

static void digits(void *context, char ret[2])
{
	(void)context;
	memcpy(ret, "47", 2);
}

static void feed(struct screen *s, const struct buf *out)
{
	s->hold_switch = false;
	if (!out->failed)
		(void)screen_feed(s, buf_text(out), out->len);
}

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_bar(const struct scene *s)
{
	char row[COLS + 1] = { 0 };

	for (unsigned i = 0; i < COLS; i++) {
		uint32_t code = screen_row(s->terminal, ROWS - BAR_ROWS)[i].code;

		row[i] = code >= ' ' && code < 0x7f ? (char)code : '?';
	}
	require(strstr(row, "[" WORD "]"));
}

static void check_plain(const struct scene *s)
{
	const struct screen *a = s->terminal, *b = s->plain;

	require(a->alternate == b->alternate);
	require(a->now.at.row == b->now.at.row && a->now.at.col == b->now.at.col);
	for (unsigned row = 0; row < ROWS; row++)
		for (unsigned col = 0; col < COLS; col++) {
			uint32_t left = screen_row(a, row)[col].code,
				 right = screen_row(b, row)[col].code;

			require((left ? left : ' ') == (right ? right : ' '));
		}
}

static void later(struct scene *s, uint64_t ms, struct buf *in)
{
	auto_buf out = { 0 };
	bool alternate;

	s->now += ms;
	prompt_written(s->p, s->now);
	prompt_on_time(s->p, s->now, &out, in);
	feed(s->terminal, &out);
	prompt_written(s->p, s->now);
	if (prompt_is_shown(s->p, &alternate))
		check_bar(s);
	else if (!prompt_is_full(s->p))
		check_plain(s);
}

static void step(struct scene *s, uint8_t what, uint8_t n, const uint8_t *bytes)
{
	auto_buf out = { 0 }, in = { 0 }, passed = { 0 };
	const char *text = (const char *)bytes;
	bool alternate;

	switch (what % 4) {
	case 0:
		terminal_filter(&s->filter, text, n, &passed);
		/* CSI b straight after a bar repeats a character of the bar */
		for (size_t i = 0; i < passed.len; i++)
			passed.data[i] = passed.data[i] == 'b' ? 'B' : passed.data[i];
		prompt_show(s->p, buf_text(&passed), passed.len, s->now, &out);
		feed(s->terminal, &out);
		feed(s->plain, &passed);
		if (prompt_is_shown(s->p, &alternate))
			check_bar(s);
		break;
	case 1:
		s->digits_typed |= memchr(text, '4', n) != NULL || n == 1;
		prompt_keys(s->p, text, n, s->now, &in);
		break;
	case 2:
		s->q = (struct question){ .id = s->q.id ? 0 : n + 1U, .count = 1 };
		memcpy(s->q.subject, "db.example:5432", 16);
		if (n % 2)
			memcpy(s->q.line, "db.example:5432", 16);
		prompt_changed(s->p);
		later(s, 40, &in);
		break;
	default:
		later(s, (uint64_t)n * 8, &in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct prompt_ops ops = { .first = first,
					       .answer = answer,
					       .digits = digits,
					       .change = change,
					       .changed = changed };
	struct scene s = { .now = 1000 };
	struct ward_err e;
	auto_buf in = { 0 };

	if (size > 4096)
		return 0;
	s.p = prompt_create(&ops, &s, &s.filter, WORD);
	s.terminal = screen_create(ROWS, COLS);
	s.plain = screen_create(ROWS, COLS);
	require(s.p && s.terminal && s.plain && prompt_begin(s.p, ROWS, COLS, 0, 0, &e) == 0);
	/* a cursor that was never remembered is the one thing that the bar's own screen changes */
	step(&s, 0, 2,
	     (const uint8_t *)"\x1b"
			      "7");
	for (size_t i = 0; i + 2 <= size;) {
		uint8_t what = data[i], n = data[i + 1];
		size_t take = what % 4 < 2 ? n : 0;

		i += 2;
		take = take < size - i ? take : size - i;
		step(&s, what, what % 4 < 2 ? (uint8_t)take : n, data + i);
		i += take;
	}
	s.q.id = 0;
	prompt_changed(s.p);
	for (int i = 0; i < 4096 && (i == 0 || prompt_is_full(s.p)); i++)
		later(&s, 40, &in);
	prompt_destroy(s.p);
	screen_destroy(s.terminal);
	screen_destroy(s.plain);
	return 0;
}
