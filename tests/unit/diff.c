/* The line difference: applied to the old text it must give the new one; small cases are minimal;
 * big ones end in time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/diff.h"

struct patch {
	struct buf text; /* as unified text */
	struct buf made; /* the new text, made of the old one and the hunks */
	const char *old;
	size_t old_len, old_at; /* bytes of the old text that were used */
	size_t line;            /* the next line of the old text, from 1 */
};

static void copy_line(struct patch *p)
{
	const char *newline = memchr(p->old + p->old_at, '\n', p->old_len - p->old_at);
	size_t n = newline ? (size_t)(newline - (p->old + p->old_at)) + 1 : p->old_len - p->old_at;

	buf_add(&p->made, p->old + p->old_at, n);
	p->old_at += n;
	p->line++;
}

static int on_hunk(void *ctx, size_t old_line, size_t old_count, size_t new_line, size_t new_count)
{
	struct patch *p = ctx;

	while (p->line < old_line + (old_count ? 0 : 1))
		copy_line(p);
	buf_printf(&p->text, "@@ -%zu,%zu +%zu,%zu @@\n", old_line, old_count, new_line, new_count);
	return 0;
}

static int on_line(void *ctx, char sign, const char *text, size_t n, bool whole)
{
	struct patch *p = ctx;

	buf_printf(&p->text, "%c%.*s%s", sign, (int)n, text, whole ? "\n" : "$\n");
	if (sign != '+') {
		assert_memory_equal(p->old + p->old_at, text, n);
		p->old_at += n + whole;
		p->line++;
	}
	if (sign != '-') {
		buf_add(&p->made, text, n);
		buf_add(&p->made, "\n", whole);
	}
	return 0;
}

static const struct diff_ops ops = { on_hunk, on_line };

static struct diff_counts check(const char *old, size_t n, const char *new_text, size_t m,
				const char *wanted)
{
	struct patch p = { .old = old, .old_len = n, .line = 1 };
	struct diff_counts counts;

	assert_int_equal(diff_texts(old, n, new_text, m, &ops, &p, &counts), 0);
	while (p.old_at < n)
		copy_line(&p);
	assert_int_equal(p.made.len, m);
	if (m)
		assert_memory_equal(p.made.data, new_text, m);
	if (wanted)
		assert_string_equal(buf_text(&p.text), wanted);
	buf_free(&p.text);
	buf_free(&p.made);
	return counts;
}

static struct diff_counts check_text(const char *old, const char *new_text, const char *wanted)
{
	return check(old, strlen(old), new_text, strlen(new_text), wanted);
}

static void test_small(void **state)
{
	(void)state;
	check_text("", "", "");
	check_text("a\n", "a\n", "");
	check_text("", "a\n", "@@ -0,0 +1,1 @@\n+a\n");
	check_text("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
	check_text("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
	check_text("a", "a\n", "@@ -1,1 +1,1 @@\n-a$\n+a\n");
	check_text("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
		   "@@ -7,3 +7,4 @@\n 7\n 8\n 9\n+10\n");
}

static void test_two_hunks(void **state)
{
	(void)state;
	check_text("a\n1\n2\n3\n4\n5\n6\n7\n8\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\n8\nB\n",
		   "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -7,4 +7,4 @@\n 6\n 7\n 8\n-b\n+B\n");
	/* six equal lines between: one hunk */
	check_text("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
		   "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

/* The classic of the paper: five edits, no fewer. */
static void test_minimal(void **state)
{
	struct diff_counts c = check_text("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", NULL);

	(void)state;
	assert_int_equal(c.added + c.removed, 5);
}

static void random_text(struct buf *b, unsigned lines, unsigned kinds)
{
	for (unsigned i = 0; i < lines; i++)
		buf_printf(b, "%u\n", (unsigned)rand() % kinds);
	if (lines && rand() % 3 == 0)
		b->len--; /* no newline at the end */
}

static void test_random(void **state)
{
	(void)state;
	srand(7);
	for (unsigned i = 0; i < 3000; i++) {
		struct buf a = { 0 }, b = { 0 };

		random_text(&a, (unsigned)rand() % 40, 1 + (unsigned)rand() % 8);
		random_text(&b, (unsigned)rand() % 40, 1 + (unsigned)rand() % 8);
		check(a.data, a.len, b.data, b.len, NULL);
		buf_free(&a);
		buf_free(&b);
	}
}

/* Nothing in common, many lines: bounded, and still right. */
static void test_bounded(void **state)
{
	struct buf a = { 0 }, b = { 0 };
	struct timespec from, to;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		buf_printf(&a, "%u\n", i);
		buf_printf(&b, "%u\n", i % 2 ? i : i + 1000000);
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	check(a.data, a.len, b.data, b.len, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_true(to.tv_sec - from.tv_sec < 20);
	buf_free(&a);
	buf_free(&b);
}

static void test_is_text(void **state)
{
	(void)state;
	assert_true(diff_is_text("", 0));
	assert_true(diff_is_text("a\xff\n", 3));
	assert_false(diff_is_text("a\0b", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),   cmocka_unit_test(test_two_hunks),
		cmocka_unit_test(test_minimal), cmocka_unit_test(test_random),
		cmocka_unit_test(test_bounded), cmocka_unit_test(test_is_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
