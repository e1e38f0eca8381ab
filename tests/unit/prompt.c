/* Questions over a program's screen: a second model plays the operator's terminal, a third one a
 * terminal on which nothing was asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "term/prompt.h"

#define WORD "brisk otter"
#define ESC "\x1b"
#define CHORD "\x1e"

struct scene {
	struct prompt *p;
	struct terminal filter;
	struct screen *terminal, *plain;
	struct question q; /* id 0: none waits */
	struct buf in;
	size_t waiting;
	enum question_answer answer;
	uint64_t answered_id, seconds, now;
	int refuse;
	/* what the policy file would become; NULL: not known yet */
	const char *difference;
	unsigned read, written;
};

static const struct question *first(void *context, size_t *ret_count)
{
	struct scene *s = context;

	*ret_count = s->waiting;
	return s->q.id ? &s->q : NULL;
}

static int answer(void *context, const struct question *q, enum question_answer answer,
		  uint64_t seconds, struct ward_err *e)
{
	struct scene *s = context;

	s->answer = answer;
	s->seconds = seconds;
	s->answered_id = q->id;
	if (s->refuse)
		return ward_fail(e, s->refuse, "the gateway is gone");
	if (s->q.id == q->id)
		s->q.id = 0;
	return 0;
}

static void digits(void *context, char ret[2])
{
	(void)context;
	memcpy(ret, "47", 2);
}

static int change(void *context, const struct question *q, bool write, struct ward_err *e)
{
	struct scene *s = context;

	(void)q;
	(void)e;
	if (write)
		s->written++;
	else
		s->read++;
	return 0;
}

static int changed(void *context, const char **ret_text, struct ward_err *e)
{
	struct scene *s = context;

	*ret_text = s->difference;
	return s->refuse ? ward_fail(e, s->refuse, "another one has changed it")
			 : s->difference != NULL;
}

static void feed(struct screen *s, const struct buf *out)
{
	assert_false(out->failed);
	s->hold_switch = false;
	assert_int_equal(screen_feed(s, buf_text(out), out->len), out->len);
}

static void setup(struct scene *s, unsigned rows, unsigned cols)
{
	static const struct prompt_ops ops = { .first = first,
					       .answer = answer,
					       .digits = digits,
					       .change = change,
					       .changed = changed };
	struct ward_err e;

	*s = (struct scene){ .now = 1000 };
	s->p = prompt_create(&ops, s, &s->filter, WORD);
	s->terminal = screen_create(rows, cols);
	s->plain = screen_create(rows, cols);
	assert_non_null(s->p);
	assert_int_equal(prompt_begin(s->p, rows, cols, 0, 0, &e), 0);
}

static void teardown(struct scene *s)
{
	prompt_destroy(s->p);
	screen_destroy(s->terminal);
	screen_destroy(s->plain);
	buf_free(&s->in);
}

static void later(struct scene *s, uint64_t ms)
{
	auto_buf out = { 0 };

	s->now += ms;
	prompt_written(s->p, s->now);
	prompt_on_time(s->p, s->now, &out, &s->in);
	feed(s->terminal, &out);
	prompt_written(s->p, s->now);
}

static void program(struct scene *s, const char *text)
{
	auto_buf out = { 0 }, passed = { 0 };

	terminal_filter(&s->filter, text, strlen(text), &passed);
	prompt_show(s->p, buf_text(&passed), passed.len, s->now, &out);
	feed(s->terminal, &out);
	feed(s->plain, &passed);
}

static void type(struct scene *s, const char *keys)
{
	prompt_keys(s->p, keys, strlen(keys), s->now, &s->in);
}

static void ask(struct scene *s, uint64_t id)
{
	s->q = (struct question){ .id = id,
				  .count = 1,
				  .deadline_ms = s->now + 60000,
				  .subject = "db.example:5432",
				  .rule = "*",
				  .details = { "a warning" } };
	s->waiting = 1;
	prompt_changed(s->p);
	later(s, 0);
}

/* Answers as a person does. */
static void decide(struct scene *s, const char *keys)
{
	later(s, 600);
	type(s, CHORD);
	later(s, 500);
	for (; *keys; keys++) {
		char key[2] = { *keys, '\0' };

		type(s, key);
		later(s, 50);
	}
	later(s, 300);
}

static void row_of(const struct screen *s, unsigned row, char out[256])
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->cols && n < 255; i++)
		out[n++] = screen_row(s, row)[i].code > ' ' && screen_row(s, row)[i].code < 0x7f
				   ? (char)screen_row(s, row)[i].code
				   : ' ';
	out[n] = '\0';
}

static bool shows(const struct scene *s, const char *text)
{
	char row[256];

	for (unsigned i = 0; i < s->terminal->rows; i++) {
		row_of(s->terminal, i, row);
		if (strstr(row, text))
			return true;
	}
	return false;
}

/* The terminal is as if nothing had been asked. */
static void expect_plain(const struct scene *s)
{
	const struct screen *a = s->terminal, *b = s->plain;

	assert_int_equal(a->alternate, b->alternate);
	assert_int_equal(a->now.at.row, b->now.at.row);
	assert_int_equal(a->now.at.col, b->now.at.col);
	for (unsigned i = 0; i < a->rows; i++) {
		char left[256], right[256];

		row_of(a, i, left);
		row_of(b, i, right);
		assert_string_equal(left, right);
	}
}

static void test_shows_and_hides(void **state)
{
	static const char *const screens[] = { "one\r\ntwo\r\nthree",
					       ESC "[?1049h" ESC "[2J" ESC "[5;5Hinside",
					       "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nlow" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(screens); i++) {
		struct scene s;

		setup(&s, 12, 80);
		program(&s, screens[i]);
		ask(&s, 1);
		assert_true(shows(&s, "[" WORD "]"));
		assert_true(shows(&s, "db.example:5432"));
		assert_true(shows(&s, "a warning"));
		program(&s, "more\r\nand more");
		later(&s, 40);
		assert_true(shows(&s, "[" WORD "]"));
		decide(&s, "d");
		assert_int_equal(s.answer, QUESTION_DENY);
		expect_plain(&s);
		assert_int_equal(s.in.len, 0);
		teardown(&s);
	}
}

static void test_answers(void **state)
{
	static const struct {
		const char *keys;
		enum question_answer answer;
		uint64_t seconds;
	} rows[] = { { "47a", QUESTION_ONCE, 0 },
		     { "47s", QUESTION_RUN, 0 },
		     { "47t", QUESTION_TIME, PROMPT_TIME_SECONDS },
		     { "?47a", QUESTION_ONCE, 0 },
		     { "??d", QUESTION_DENY, 0 },
		     { "74a", 0, 0 },
		     { "a", 0, 0 },
		     { "4?7a", 0, 0 },
		     { "47A", 0, 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct scene s;

		setup(&s, 24, 80);
		ask(&s, 7);
		decide(&s, rows[i].keys);
		assert_int_equal(s.answer, rows[i].answer);
		assert_int_equal(s.seconds, rows[i].seconds);
		assert_int_equal(shows(&s, "[" WORD "]"), rows[i].answer == 0);
		teardown(&s);
	}
}

/* An answer is one to what was shown, and one that is refused says so. */
static void test_hits_no_other_question(void **state)
{
	struct scene s;

	(void)state;
	setup(&s, 24, 80);
	ask(&s, 1);
	later(&s, 600);
	type(&s, CHORD);
	later(&s, 500);
	type(&s, "4");
	type(&s, "7");
	type(&s, "a");
	s.q.id = 2; /* the first has gone within its pause */
	later(&s, 300);
	assert_int_equal(s.answered_id, 1);
	ask(&s, 3);
	assert_true(shows(&s, "Ctrl-^ after a pause"));
	s.refuse = EIO;
	decide(&s, "47a");
	assert_true(shows(&s, "that did not count: the gateway is gone"));
	teardown(&s);
}

#define DIFFERENCE                                                                                 \
	"--- a.yaml\n+++ a.yaml\n@@ -1,2 +1,4 @@\n version: 1\n+network:\n+  mode: restricted\n"   \
	"+  - db.example:5432\n"

static void begin_always(struct scene *s, const char *difference)
{
	setup(s, 24, 80);
	ask(s, 7);
	snprintf(s->q.line, sizeof(s->q.line), "db.example:5432");
	prompt_changed(s->p);
	later(s, 40);
	s->difference = difference;
	decide(s, "47A");
}

/* The change of the policy is shown page by page, and made before the answer counts. */
static void test_always(void **state)
{
	struct scene s;

	(void)state;
	begin_always(&s, DIFFERENCE);
	assert_int_equal(s.read, 1);
	assert_true(shows(&s, "always: a.yaml, page 1 of 2"));
	assert_true(shows(&s, "+network:"));
	assert_false(shows(&s, "db.example:5432"));
	later(&s, 600);
	type(&s, "A"); /* not all of it was shown */
	later(&s, 600);
	assert_int_equal(s.written, 0);
	type(&s, "?");
	later(&s, 600);
	assert_true(shows(&s, "page 2 of 2") && shows(&s, "+  - db.example:5432"));
	s.difference = NULL;
	type(&s, "A");
	later(&s, 300);
	assert_int_equal(s.written, 1);
	assert_int_equal(s.answer, 0); /* it is not written yet */
	assert_true(shows(&s, "writing the policy"));
	s.difference = DIFFERENCE;
	later(&s, 40);
	assert_int_equal(s.answer, QUESTION_ALWAYS);
	assert_int_equal(s.answered_id, 7);
	later(&s, 40);
	expect_plain(&s);
	assert_int_equal(s.in.len, 0);
	teardown(&s);
}

/* What cannot be changed says why, and a change is of the question that it was shown for. */
static void test_not_always(void **state)
{
	struct scene s;

	(void)state;
	begin_always(&s, DIFFERENCE);
	later(&s, 600);
	type(&s, "?");
	later(&s, 600);
	s.difference = NULL;
	type(&s, "A");
	later(&s, 300);
	s.refuse = EBUSY;
	later(&s, 40);
	later(&s, 40);
	assert_int_equal(s.answer, 0);
	assert_true(shows(&s, "not always: another one has changed it"));
	teardown(&s);
	begin_always(&s, DIFFERENCE);
	later(&s, 600);
	ask(&s, 8); /* the other one was answered elsewhere */
	later(&s, 600);
	type(&s, "?");
	type(&s, "A");
	later(&s, 600);
	assert_int_equal(s.written, 0);
	assert_int_equal(s.answer, 0);
	teardown(&s);
	begin_always(&s, NULL); /* it takes too long */
	later(&s, 31000);
	later(&s, 40);
	assert_true(shows(&s, "Ctrl-^ after a pause"));
	teardown(&s);
}

/* A program that brings the other screen back, as it was left, does not get the bar with it. */
static void test_bar_does_not_come_back(void **state)
{
	static const char *const switches[] = { ESC "[?47h", ESC "[?1047h" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
		struct scene s;

		setup(&s, 24, 80);
		ask(&s, 1);
		assert_true(shows(&s, WORD));
		decide(&s, "d");
		program(&s, switches[i]);
		assert_false(shows(&s, WORD));
		assert_false(shows(&s, "db.example"));
		teardown(&s);
	}
}

static void test_output_waits(void **state)
{
	static char line[1001];
	struct scene s;
	size_t i = 0;

	(void)state;
	memset(line, 'x', 1000);
	setup(&s, 24, 80);
	ask(&s, 1);
	for (; !prompt_is_full(s.p); i++)
		program(&s, line);
	assert_int_equal(i, PROMPT_REPLAY_MAX / 1000 + 1);
	later(&s, 40);
	assert_true(shows(&s, "output waits"));
	s.q.id = 0;
	prompt_changed(s.p);
	later(&s, 40);
	assert_false(prompt_is_full(s.p));
	expect_plain(&s);
	teardown(&s);
}

/* However often a program switches its screens, the terminal gets so much in a frame. */
static void test_screens_switched(void **state)
{
	static char flips[16 * 2000 + 1];
	struct scene s;
	size_t most = 0;

	(void)state;
	for (size_t i = 0; i < 2000; i++)
		memcpy(flips + 16 * i, ESC "[?1049h" ESC "[?1049l", 16);
	setup(&s, 24, 80);
	ask(&s, 1);
	for (unsigned i = 0; i < 20; i++) {
		auto_buf out = { 0 };

		s.now += 1;
		prompt_show(s.p, flips, i ? 0 : sizeof(flips) - 1, s.now, &out);
		prompt_on_time(s.p, s.now, &out, &s.in);
		most = out.len > most ? out.len : most;
	}
	assert_true(most < 20000);
	assert_true(prompt_is_full(s.p));
	later(&s, 40);
	assert_true(shows(&s, "[" WORD "]"));
	program(&s, "");
	{
		auto_buf out = { 0 };

		prompt_end(s.p, &out, &s.in);
		feed(s.terminal, &out);
		assert_false(s.terminal->alternate);
	}
	teardown(&s);
}

/* What is pasted is marked for ward all the time, and for the program when it has asked. */
static void test_pastes(void **state)
{
	struct scene s;

	(void)state;
	setup(&s, 24, 80);
	ask(&s, 1);
	later(&s, 600);
	type(&s, ESC "[200~" CHORD "47a" ESC "[201~");
	later(&s, 1000);
	assert_int_equal(s.answer, 0);
	assert_string_equal(buf_text(&s.in), CHORD "47a");
	program(&s, ESC "[?2004h" ESC "[?2004l");
	s.q.id = 0;
	prompt_changed(s.p);
	later(&s, 40);
	assert_true(s.terminal->now.modes & SCREEN_PASTE);
	program(&s, ESC "[?2004l");
	assert_true(s.terminal->now.modes & SCREEN_PASTE);
	teardown(&s);
}

static void test_sizes(void **state)
{
	static const unsigned sizes[][2] = { { 24, 80 }, { 8, 20 },  { 7, 40 }, { 2, 30 },
					     { 1, 1 },   { 1, 200 }, { 40, 5 } };
	struct scene s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct ward_err e;

		setup(&s, 10, 40);
		program(&s, "text\r\nof a program");
		ask(&s, 1);
		prompt_resize(s.p, sizes[i][0], sizes[i][1]);
		assert_int_equal(screen_resize(s.terminal, sizes[i][0], sizes[i][1], &e), 0);
		later(&s, 40);
		assert_int_equal(shows(&s, "[" WORD "]"), sizes[i][1] >= 20);
		if (sizes[i][1] >= 40) /* the word, what is asked, and the keys */
			assert_true(shows(&s, "db.example:5432") && shows(&s, "Ctrl-^"));
		decide(&s, "d");
		assert_int_equal(s.answer, QUESTION_DENY);
		teardown(&s);
	}
}

static void test_long_subjects(void **state)
{
	struct scene s;

	(void)state;
	setup(&s, 24, 60);
	ask(&s, 1);
	memset(s.q.subject, 'a', sizeof(s.q.subject) - 1);
	memcpy(s.q.subject + sizeof(s.q.subject) - 13, ".evil.net:443", 13);
	s.q.subject[sizeof(s.q.subject) - 1] = '\0';
	prompt_changed(s.p);
	later(&s, 40);
	assert_true(shows(&s, ".evil.net:44"));
	assert_true(shows(&s, " (#"));
	teardown(&s);
}

/* The clock jumps, and nothing can be written: no answer, no bytes, and no wait in a loop. */
static void test_clock_and_blocked_terminal(void **state)
{
	struct scene s;

	(void)state;
	setup(&s, 24, 80);
	ask(&s, 1);
	later(&s, 600);
	type(&s, CHORD);
	later(&s, 500);
	type(&s, "4");
	later(&s, 3600 * 1000); /* far too late: given up */
	type(&s, "7");
	type(&s, "a");
	later(&s, 3600 * 1000);
	assert_int_equal(s.answer, 0);
	assert_string_equal(buf_text(&s.in), "7a");
	prompt_changed(s.p);
	prompt_on_time(s.p, s.now, NULL, &s.in);
	assert_int_equal(prompt_due_ms(s.p, false), 0);
	assert_int_not_equal(prompt_due_ms(s.p, true), 0);
	teardown(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shows_and_hides),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_always),
		cmocka_unit_test(test_not_always),
		cmocka_unit_test(test_hits_no_other_question),
		cmocka_unit_test(test_bar_does_not_come_back),
		cmocka_unit_test(test_output_waits),
		cmocka_unit_test(test_screens_switched),
		cmocka_unit_test(test_pastes),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_long_subjects),
		cmocka_unit_test(test_clock_and_blocked_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
