/* The pure parts of a review: records, intent logs, renames, links that leave, mounts in the
 * way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rename.h"
#include "plan/plan_root.h"
#include "review/apply.h"
#include "review/changes_internal.h"

#define ID "20261115-121257-xvsdp3"

static int read_record(const char *text, struct review_record *r)
{
	return review_record_read(text, strlen(text), r);
}

static void test_record(void **state)
{
	uint64_t starts[] = { 5, 18446744073709551615u };
	struct review_record r = { .device = 7,
				   .inode = 9,
				   .owner_uid = 1,
				   .owner_gid = 2,
				   .starts = starts,
				   .start_count = 2 },
			     back;
	char workspace[] = "/a b\n\t\\c";
	struct buf text = { 0 };

	(void)state;
	r.workspace = workspace;
	strv_add(&r.hide, "*.key");
	strv_add(&r.hidden, "x\ny/");
	strv_add(&r.rules, "!/z");
	review_record_write(&r, &text);
	assert_int_equal(review_record_read(text.data, text.len, &back), 0);
	assert_string_equal(back.workspace, workspace);
	assert_int_equal(back.start_count, 2);
	assert_true(back.starts[1] == starts[1] && back.device == 7 && back.inode == 9 &&
		    back.owner_gid == 2);
	assert_string_equal(back.hidden.items[0], "x\ny/");
	assert_string_equal(back.rules.items[0], "!/z");
	review_record_clear(&back);
	for (size_t n = 0; n < text.len; n++) /* cut off anywhere it is none */
		assert_int_equal(review_record_read(text.data, n, &back), -EINVAL);
	buf_free(&text);
	strv_free(&r.hide);
	strv_free(&r.hidden);
	strv_free(&r.rules);
}

static void test_record_refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"x\n",
		"ward-review 2\nworkspace /a\nstart 1\ncomplete\n",
		"ward-review 1\nstart 1\ncomplete\n",
		"ward-review 1\nworkspace /a\ncomplete\n",
		"ward-review 1\nworkspace a\nstart 1\ncomplete\n",
		"ward-review 1\nworkspace /a\nstart -1\ncomplete\n",
		"ward-review 1\nworkspace /a\nstart 18446744073709551616\ncomplete\n",
		"ward-review 1\nworkspace /a\nstart 1\nother x\ncomplete\n",
		"ward-review 1\nworkspace /a\nstart 1\ncomplete",
	};
	struct review_record r;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(read_record(bad[i], &r), -EINVAL);
}

static void test_intent(void **state)
{
	static const char text[] =
		"ward-apply 1\nrun " ID "\ntoken 0123456789abcdef\nwith force\nwith "
		"protected\npath a/b\npath c\\nd\ncomplete\n"
		"at a/b/x\nat c\\nd\nat cut of";
	struct apply_intent i;

	(void)state;
	assert_int_equal(apply_intent_read(text, strlen(text), &i), 0);
	assert_string_equal(i.id, ID);
	assert_string_equal(i.token, "0123456789abcdef");
	assert_true(i.with_protected && i.force);
	assert_int_equal(i.paths.len, 2);
	assert_string_equal(i.paths.items[1], "c\nd");
	assert_string_equal(i.at, "c\nd"); /* the cut line was never begun */
	apply_intent_clear(&i);
}

static void test_intent_refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"ward-apply 1\n",
		"ward-apply 1\nrun " ID "\ntoken 0123456789abcdef\n",
		"ward-apply 1\nrun ../../x\ntoken 0123456789abcdef\ncomplete\n",
		"ward-apply 1\nrun " ID "\ntoken ../../../../x\ncomplete\n",
		"ward-apply 1\nrun " ID "\ntoken 0123456789abcdef\npath ../x\ncomplete\n",
		"ward-apply 1\nrun " ID "\ntoken 0123456789abcdef\npath /x\ncomplete\n",
		"ward-apply 1\nrun " ID "\ntoken 0123456789abcdef\npath a/./b\ncomplete\n",
		"ward-apply 1\nrun " ID "\ntoken 0123456789abcdef\ncomplete\nat ../x\n",
		"ward-apply 1\nrun " ID "\ntoken 0123456789abcdef\ncomplete\npath late\n",
		"ward-apply 1\nrun " ID "\ntoken 0123456789abcdef\nwith magic\ncomplete\n",
	};
	struct apply_intent i;

	(void)state;
	for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]); n++)
		assert_int_equal(apply_intent_read(bad[n], strlen(bad[n]), &i), -EINVAL);
}

static void test_ids(void **state)
{
	(void)state;
	assert_true(review_is_id(ID));
	assert_false(review_is_id("20261115-121257-xvsdp"));
	assert_false(review_is_id("20261115-121257-xvsdp33"));
	assert_false(review_is_id("20261115-121257-../dp3"));
	assert_false(review_is_id("src"));
	assert_false(review_is_id(""));
}

static void test_links(void **state)
{
	static const struct {
		const char *path, *target;
		bool leaves;
	} cases[] = {
		{ "l", "a", false },           { "l", "./a/b", false },
		{ "l", "..", true },           { "d/l", "..", false },
		{ "d/l", "../a", false },      { "d/l", "../..", true },
		{ "l", "a/..", true },         { "d/l", "a/../b", true },
		{ "l", "/ws", false },         { "l", "/ws/a", false },
		{ "l", "/wsx", true },         { "l", "/etc/passwd", true },
		{ "l", "/ws/../etc", true },   { "l", "/ws/a/..", true },
		{ "d/e/l", "../../x", false }, { "d/e/l", "../x/../..", true },
		{ "l", "//ws/a", true },       { "l", "...", false },
		{ "l", "a//b", false },        { "d/l", ".././a", false },
		{ "d/l", "./../..", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(changes_link_leaves("/ws", cases[i].path, cases[i].target),
				 cases[i].leaves);
}

static void test_selected(void **state)
{
	struct strv none = { 0 }, some = { 0 };

	(void)state;
	strv_add(&some, "a/b");
	strv_add(&some, "c");
	assert_true(apply_is_selected(&none, "x"));
	assert_true(apply_is_selected(&some, "a/b"));
	assert_true(apply_is_selected(&some, "a/b/x"));
	assert_true(apply_is_selected(&some, "c/d"));
	assert_false(apply_is_selected(&some, "a"));
	assert_false(apply_is_selected(&some, "a/bc"));
	strv_free(&some);
}

static void test_mounts(void **state)
{
	static const char table[] =
		"22 1 8:1 / / rw - ext4 /dev/sda rw\n30 22 0:5 / /proc rw - proc proc rw\n"
		"31 22 0:6 / /home/a\\040b/ws/mnt\\134x rw,x shared:1 - tmpfs tmpfs rw\n32 "
		"22\nbroken";
	char *found = plan_mount_beneath(table, strlen(table), "/home/a b/ws");

	(void)state;
	assert_non_null(found);
	assert_string_equal(found, "/home/a b/ws/mnt\\x");
	free(found);
	assert_null(plan_mount_beneath(table, strlen(table), "/home/a b/w"));
	assert_null(plan_mount_beneath(table, strlen(table), "/proc"));
	assert_null(plan_mount_beneath("", 0, "/"));
}

static void test_applied(void **state)
{
	struct buf text = { 0 };
	struct applied_list l;

	(void)state;
	changes_applied_line(&text, "d/x", 7);
	changes_applied_line(&text, "a\nb", 3);
	changes_applied_line(&text, "d/x", 5);
	buf_puts(&text, "nonsense\n9\n 9 x\n8 cut of");
	assert_int_equal(changes_applied_read(text.data, text.len, &l), 0);
	assert_int_equal(changes_applied_at(&l, "d/x"), 7);
	assert_int_equal(changes_applied_at(&l, "a\nb"), 3);
	assert_int_equal(changes_applied_at(&l, "cut of"), 0);
	assert_int_equal(changes_applied_at(&l, "d"), 0);
	changes_applied_clear(&l);
	buf_free(&text);
	assert_int_equal(changes_applied_read("", 0, &l), 0);
	assert_int_equal(changes_applied_at(&l, "x"), 0);
}

static struct rename_file file(uint64_t size, uint64_t hash, const char *name, size_t index,
			       bool deleted)
{
	return (struct rename_file){
		.size = size, .hash = hash, .name = name, .index = index, .deleted = deleted
	};
}

static size_t twin_of(const struct rename_file *files, size_t n, size_t index)
{
	for (size_t i = 0; i < n; i++)
		if (files[i].index == index)
			return files[i].twin;
	return 12345;
}

static void test_renames(void **state)
{
	struct rename_file f[] = {
		file(5, 1, "a", 0, true),  file(5, 1, "b", 1, false),   file(5, 1, "a", 2, false),
		file(5, 1, "z", 3, true),  file(5, 2, "a", 4, false),   file(9, 3, "q", 5, true),
		file(9, 4, "q", 6, false), file(7, 7, "only", 7, true),
	};
	size_t n = rename_narrow(f, 8);

	(void)state;
	assert_int_equal(n, 7); /* nothing added has the size 7 */
	rename_pair(f, n);
	assert_int_equal(twin_of(f, n, 0), 2); /* the name is kept */
	assert_int_equal(twin_of(f, n, 2), 0);
	assert_int_equal(twin_of(f, n, 3), 1);
	assert_true(twin_of(f, n, 4) == RENAME_NONE && twin_of(f, n, 5) == RENAME_NONE &&
		    twin_of(f, n, 6) == RENAME_NONE);
	rename_pair(f, 0);
	assert_int_equal(rename_narrow(f, 0), 0);
}

/* A hundred thousand equal files: each in one pair at most, and in no time. */
static void test_many_renames(void **state)
{
	enum { COUNT = 100000 };
	struct rename_file *f = calloc(COUNT, sizeof(*f));
	size_t pairs = 0;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		f[i] = file(1, 1, i % 3 ? "same" : "other", i, i % 2);
	rename_pair(f, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		pairs += f[i].twin != RENAME_NONE;
	assert_int_equal(pairs, COUNT);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record),       cmocka_unit_test(test_record_refuses),
		cmocka_unit_test(test_intent),       cmocka_unit_test(test_intent_refuses),
		cmocka_unit_test(test_ids),          cmocka_unit_test(test_links),
		cmocka_unit_test(test_selected),     cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_applied),      cmocka_unit_test(test_renames),
		cmocka_unit_test(test_many_renames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
