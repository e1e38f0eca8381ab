/* The keys that answer a question: the ways that answer, and that nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "term/keys.h"

struct desk {
	struct keys keys;
	struct buf out;
	uint64_t now_ms;
	enum question_answer answer;
};

static void sit(struct desk *d)
{
	*d = (struct desk){ .keys = { .chord = KEYS_CHORD }, .now_ms = 1000000 };
	keys_open(&d->keys, d->now_ms, "47");
	d->now_ms += 1000;
}

/* Lets time pass, in steps of a millisecond. */
static void wait_ms(struct desk *d, unsigned ms)
{
	for (unsigned i = 0; i < ms && !d->answer; i++) {
		bool changed;

		d->now_ms++;
		d->answer = keys_on_time(&d->keys, d->now_ms, &changed, &d->out);
	}
}

static void type(struct desk *d, const char *text)
{
	keys_take(&d->keys, text, strlen(text), d->now_ms, &d->out);
}

/* Types keys one by one, 100 ms apart. */
static void type_slowly(struct desk *d, const char *text)
{
	for (; *text && !d->answer; text++) {
		char key[2] = { *text, 0 };

		type(d, key);
		wait_ms(d, 100);
	}
}

static void leave(struct desk *d, const char *wanted)
{
	assert_string_equal(buf_text(&d->out), wanted);
	buf_free(&d->out);
}

static void expect_answer(const char *keys, enum question_answer wanted)
{
	struct desk d;

	sit(&d);
	type(&d, "\x1e");
	wait_ms(&d, 500);
	assert_int_equal(d.keys.state, KEYS_ANSWER);
	type_slowly(&d, keys);
	wait_ms(&d, 1000);
	assert_int_equal(d.answer, wanted);
	leave(&d, ""); /* no key went to the program */
}

static void test_answers(void **state)
{
	(void)state;
	expect_answer("d", QUESTION_DENY);
	expect_answer("\x1b", QUESTION_DENY);
	expect_answer("47a", QUESTION_ONCE);
	expect_answer("47s", QUESTION_RUN);
	expect_answer("4d", QUESTION_DENY);
	expect_answer("a", 0);
	expect_answer("48", 0);
	expect_answer("47A", 0);
	expect_answer("4", 0);
}

/* ALWAYS is typed twice, the second time after all of the change was on the screen. */
static void test_always(void **state)
{
	static const struct {
		bool known, seen;
		unsigned pause_ms;
		const char *then;
		enum question_answer wanted;
	} rows[] = { { true, true, 600, "A", QUESTION_ALWAYS },
		     { true, true, 600, "?A", 0 },
		     { true, true, 100, "A", 0 },
		     { true, false, 600, "A", 0 },
		     { false, true, 600, "A", 0 },
		     { true, true, 600, "s", 0 },
		     { true, true, 600, "d", 0 },
		     { true, true, 600, "Ax", 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct desk d;

		sit(&d);
		d.keys.always = true;
		type(&d, "\x1e");
		wait_ms(&d, 500);
		type_slowly(&d, "47A");
		assert_int_equal(d.keys.state, KEYS_LOOK);
		if (rows[i].known)
			keys_sure(&d.keys, d.now_ms);
		d.keys.seen_all = rows[i].seen;
		wait_ms(&d, rows[i].pause_ms);
		type_slowly(&d, rows[i].then);
		wait_ms(&d, 1000);
		assert_int_equal(d.answer, rows[i].wanted);
		leave(&d, "");
	}
}

static void test_not_an_answer(void **state)
{
	struct desk d;

	(void)state;
	/* the chord with other keys, and soon after another key */
	sit(&d);
	type(&d, "x\x1e");
	wait_ms(&d, 500);
	type(&d, "x");
	type(&d, "\x1e");
	wait_ms(&d, 600);
	assert_int_equal(d.keys.state, KEYS_NOTICE);
	leave(&d, "x\x1ex\x1e");
	/* a key soon after the chord: both go to the program */
	sit(&d);
	type(&d, "\x1e");
	wait_ms(&d, 100);
	type(&d, "y");
	assert_int_equal(d.keys.state, KEYS_NOTICE);
	leave(&d, "\x1ey");
	/* soon after the question */
	sit(&d);
	d.keys.visible_ms = d.now_ms - 100;
	type(&d, "\x1e");
	assert_int_equal(d.keys.state, KEYS_NOTICE);
	leave(&d, "\x1e");
	/* a key after the answer: it was not meant */
	sit(&d);
	type(&d, "\x1e");
	wait_ms(&d, 500);
	type_slowly(&d, "47");
	type(&d, "a");
	wait_ms(&d, 50);
	type(&d, "b");
	wait_ms(&d, 1000);
	assert_int_equal(d.answer, 0);
	leave(&d, "");
	/* silence gives the keys back */
	sit(&d);
	type(&d, "\x1e");
	wait_ms(&d, 500 + KEYS_ANSWER_MS);
	type(&d, "k");
	leave(&d, "k");
	/* several keys in one read are no answer */
	sit(&d);
	type(&d, "\x1e");
	wait_ms(&d, 500);
	type(&d, "47a");
	wait_ms(&d, 1000);
	assert_int_equal(d.answer, 0);
	leave(&d, "");
}

static void test_paste(void **state)
{
	struct desk d;

	(void)state;
	/* marks only for who asked */
	sit(&d);
	type(&d, "\x1b[200~\x1e\x1b[201~");
	wait_ms(&d, 600);
	type(&d, "\x1b[200~");
	wait_ms(&d, 600);
	type(&d, "\x1e");
	wait_ms(&d, 600);
	assert_int_equal(d.keys.state, KEYS_NOTICE);
	type(&d, "47a\x1b[201~");
	d.keys.program_marks = true;
	type(&d, "\x1b[200~x\x1b[201~");
	leave(&d, "\x1e\x1e"
		  "47a\x1b[200~x\x1b[201~");
	/* a mark in pieces */
	sit(&d);
	type(&d, "a\x1b[20");
	type(&d, "0~b\x1b[2");
	wait_ms(&d, 100);
	leave(&d, "ab\x1b[2");
	/* pasted into an answer: nothing of it counts, nor reaches the program */
	sit(&d);
	type(&d, "\x1e");
	wait_ms(&d, 500);
	type(&d, "\x1b[200~");
	type_slowly(&d, "47a");
	type(&d, "\x1b[201~");
	wait_ms(&d, 1000);
	assert_int_equal(d.answer, 0);
	leave(&d, "");
}

static void test_gone(void **state)
{
	struct desk d;

	(void)state;
	sit(&d);
	type(&d, "\x1e");
	keys_close(&d.keys, &d.out); /* answered elsewhere: the chord was not for ward */
	type(&d, "\x1e"
		 "47a");
	wait_ms(&d, 1000);
	assert_int_equal(d.answer, 0);
	leave(&d, "\x1e\x1e"
		  "47a");
}

static unsigned next(uint64_t *seed, unsigned limit)
{
	*seed = *seed * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(*seed >> 33) % limit;
}

/* Somebody types fast for the program while questions come, chords among the keys: every key
 * arrives in order until he stops, and no yes is given. */
static void test_fast_typing(void **state)
{
	static const char set[] = "abcdefghijklmnopqrs 0123456789\r";
	uint64_t seed = 7;
	unsigned yes = 0;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		struct desk d;

		sit(&d);
		d.keys.visible_ms = d.now_ms;
		for (unsigned i = 0; i < 40 && !d.answer; i++) {
			char key[2] = { set[next(&seed, sizeof(set) - 1)], 0 };

			if (next(&seed, 50) == 0)
				key[0] = KEYS_CHORD;
			type(&d, key);
			wait_ms(&d, 20 + next(&seed, 260));
		}
		yes += d.answer == QUESTION_ONCE || d.answer == QUESTION_RUN;
		assert_int_equal(d.answer, 0); /* gaps are below the time that arms */
		assert_int_equal(d.out.len + (d.keys.state == KEYS_ARMING), 40);
		buf_free(&d.out);
	}
	assert_int_equal(yes, 0);
}

/* The same with gaps of up to 700 ms: keys may land in an answer, but the digits stop a yes. */
static void test_slow_typing(void **state)
{
	static const char set[] = "abcdefghijklmnopqrs 0123456789\r";
	uint64_t seed = 11;
	unsigned yes = 0;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		struct desk d;

		sit(&d);
		for (unsigned i = 0; i < 40 && !d.answer; i++) {
			char key[2] = { set[next(&seed, sizeof(set) - 1)], 0 };

			if (next(&seed, 50) == 0)
				key[0] = KEYS_CHORD;
			type(&d, key);
			wait_ms(&d, 20 + next(&seed, 680));
		}
		yes += d.answer == QUESTION_ONCE || d.answer == QUESTION_RUN;
		buf_free(&d.out);
	}
	assert_true(yes <= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),       cmocka_unit_test(test_always),
		cmocka_unit_test(test_not_an_answer), cmocka_unit_test(test_paste),
		cmocka_unit_test(test_gone),          cmocka_unit_test(test_fast_typing),
		cmocka_unit_test(test_slow_typing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
