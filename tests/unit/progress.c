/* Unit test of base/progress: silent at first, then now and then, never without somebody who
 * looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/io.h"
#include "base/progress.h"

struct seen {
	struct progress p;
	unsigned calls;
	uint64_t done, total;
};

static void note(struct progress *p, const char *what, uint64_t done, uint64_t total)
{
	struct seen *s = (struct seen *)p;

	assert_string_equal(what, "work");
	s->calls++;
	s->done = done;
	s->total = total;
}

static void steps(struct progress *p, int n)
{
	for (int i = 0; i < n; i++)
		progress_step(p, "work");
}

static void test_quiet_at_first(void **state unused_arg)
{
	struct seen s = { .p.show = note };

	progress_begin(&s.p, 5000);
	steps(&s.p, 1000);
	assert_int_equal(s.calls, 0);
	assert_false(s.p.shown);
	assert_true(s.p.due_ms > io_now_ms());
}

static void test_shown_when_it_takes_long(void **state unused_arg)
{
	struct seen s = { .p.show = note };

	progress_begin(&s.p, 5000);
	s.p.due_ms = io_now_ms(); /* a second has gone by */
	steps(&s.p, 1000);
	assert_int_equal(s.calls, 1); /* not for each step */
	assert_int_equal(s.done, 256);
	assert_int_equal(s.total, 5000);
	assert_true(s.p.shown);
}

static void test_nobody_looks(void **state unused_arg)
{
	struct progress p = { 0 };

	progress_begin(NULL, 1);
	steps(NULL, 1000);
	p.due_ms = 1;
	steps(&p, 1000);
	assert_int_equal(p.done, 1000);
	assert_false(p.shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quiet_at_first),
		cmocka_unit_test(test_shown_when_it_takes_long),
		cmocka_unit_test(test_nobody_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
