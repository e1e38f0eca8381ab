/* Unit test of lib/etc_names: a listing is believed for as long as the directory is the same and unchanged, and not if it had just changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/etc_names.h"

static char state[] = "/tmp/ward-etc-names.XXXXXX";

static struct stat changed(time_t ago_s)
{
	struct stat st = { .st_dev = 5, .st_ino = 77 };

	st.st_mtim.tv_sec = st.st_ctim.tv_sec = time(NULL) - ago_s;
	st.st_mtim.tv_nsec = 1;
	return st;
}

static void keep(const struct stat *st, const char *names)
{
	auto_buf list = { 0 };

	etc_names_begin(st, &list);
	if (list.len)
		buf_puts(&list, names);
	etc_names_keep(&list);
}

static void forget(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/etc", state);
	unlink(path);
}

static void test_kept(void **unused unused_arg)
{
	struct stat st = changed(60), other;
	char text[4096];

	assert_false(etc_names_recall(&st, text, sizeof(text)));
	keep(&st, "perl/java-17/");
	assert_true(etc_names_recall(&st, text, sizeof(text)));
	assert_string_equal(text, "perl/java-17/");
	keep(&st, "");
	assert_true(etc_names_recall(&st, text, sizeof(text)));
	assert_string_equal(text, "");
	for (int i = 0; i < 4; i++) {
		other = st;
		other.st_dev += i == 0;
		other.st_ino += i == 1;
		other.st_mtim.tv_nsec += i == 2;
		other.st_ctim.tv_sec += i == 3;
		assert_false(etc_names_recall(&other, text, sizeof(text)));
	}
	forget();
}

static void test_just_changed(void **unused unused_arg)
{
	struct stat st = changed(0);
	char text[4096];

	keep(&st, "perl/");
	assert_false(etc_names_recall(&st, text, sizeof(text)));
}

static void test_too_long_or_cut_off(void **unused unused_arg)
{
	struct stat st = changed(60);
	char text[4096], path[64], names[5000];

	memset(names, 'n', sizeof(names));
	names[sizeof(names) - 2] = '/';
	names[sizeof(names) - 1] = '\0';
	keep(&st, names);
	assert_false(etc_names_recall(&st, text, sizeof(text)));
	keep(&st, "perl/");
	assert_false(etc_names_recall(&st, text, 40));	/* less than there is */
	assert_false(etc_names_recall(&st, text, 71));
	snprintf(path, sizeof(path), "%s/etc", state);
	unlink(path);
	assert_int_equal(symlink("short", path), 0);
	assert_false(etc_names_recall(&st, text, sizeof(text)));
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_just_changed),
		cmocka_unit_test(test_too_long_or_cut_off),
	};
	int failed;

	if (!mkdtemp(state) || setenv("WARD_STATE_DIR", state, 1) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(state);
	return failed;
}
