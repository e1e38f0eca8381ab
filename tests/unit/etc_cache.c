/* Unit test of plan/etc_cache: a list is believed only whole, and only by the build that wrote
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "plan/etc_cache.h"
#include "root-table.h"

struct list {
	struct etc_head head;
	struct etc_check check;
	struct etc_entry entry;
	char texts[24];
};

static struct list make(void)
{
	struct list l = { .head = { .magic = ETC_CACHE_MAGIC,
				    .table = ROOT_TABLE,
				    .boot = "b",
				    .id = "one-1",
				    .check_count = 1,
				    .entry_count = 1 },
			  .check = { .path = offsetof(struct list, texts) + 1 },
			  .entry = { .target = offsetof(struct list, texts) + 3,
				     .link = offsetof(struct list, texts) + 10 },
			  .texts = "\0a\0/etc/b\0c" };

	return l;
}

static bool is_fine(const struct list *l, size_t n)
{
	const struct etc_head *head = NULL;

	return etc_list_check(l, n, &head) && head == &l->head;
}

static void test_whole(void **unused_state)
{
	struct list l = make();

	(void)unused_state;
	assert_true(is_fine(&l, sizeof(l)));
	for (size_t n = 0; n < offsetof(struct list, texts) + 11; n++)
		assert_false(is_fine(&l, n));
	l.texts[sizeof(l.texts) - 1] = 'x';
	assert_false(is_fine(&l, sizeof(l)));
}

static void test_offsets(void **unused_state)
{
	(void)unused_state;
	for (uint32_t at = 0; at < sizeof(struct list) + 4; at++) {
		bool inside = at >= offsetof(struct list, texts) && at < sizeof(struct list);
		struct list l = make();

		l.check.path = at;
		assert_int_equal(is_fine(&l, sizeof(l)),
				 inside && strchr("abcet", *((const char *)&l + at)) &&
					 *((const char *)&l + at));
		l = make();
		l.entry.target = at;
		assert_int_equal(is_fine(&l, sizeof(l)), at == offsetof(struct list, texts) + 3);
		l = make();
		l.entry.link = at;
		assert_int_equal(is_fine(&l, sizeof(l)), inside || at == 0);
	}
}

static bool is_path_fine(const char *text, bool target)
{
	struct list l = make();

	if (target)
		snprintf(l.texts + 3, sizeof(l.texts) - 3, "%s", text);
	else
		l.check.path = offsetof(struct list, texts) + 12;
	if (!target)
		snprintf(l.texts + 12, sizeof(l.texts) - 12, "%s", text);
	l.entry.link = 0;
	return is_fine(&l, sizeof(l));
}

static void test_paths(void **unused_state)
{
	static const char *const targets[] = { "/etc/",     "/etc",      "/usr",    "/etc/..",
					       "/etc/../a", "/etc/a/..", "/etc//a", "/etc/a/",
					       "/etc/./a",  "etc/a",     "",        "/home/a" };
	static const char *const checks[] = { "",     "..",   "/",   "/a",     "a/",
					      "a//b", "a/..", "./a", "a/../b", "a/." };

	(void)unused_state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++)
		assert_false(is_path_fine(targets[i], true));
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
		assert_false(is_path_fine(checks[i], false));
	assert_true(is_path_fine("/etc/a/b", true) && is_path_fine("/etc/..a", true) &&
		    is_path_fine("/etc/a.", true));
	assert_true(is_path_fine(".", false) && is_path_fine("a", false) &&
		    is_path_fine("a/b", false) && is_path_fine("..a", false));
}

static void test_head(void **unused_state)
{
	static const char *const ids[] = { "", ".", "..", "../x", "a/b", "/" };
	struct list l = make();

	(void)unused_state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		l = make();
		snprintf(l.head.id, sizeof(l.head.id), "%s", ids[i]);
		assert_false(is_fine(&l, sizeof(l)));
	}
	l = make();
	memset(l.head.id, 'a', sizeof(l.head.id));
	assert_false(is_fine(&l, sizeof(l)));
	l = make();
	memset(l.head.boot, 'a', sizeof(l.head.boot));
	assert_false(is_fine(&l, sizeof(l)));
	l = make();
	l.head.table[0] ^= 1;
	assert_false(is_fine(&l, sizeof(l)));
	l = make();
	l.head.magic[9]++;
	assert_false(is_fine(&l, sizeof(l)));
	l = make();
	l.head.check_count = UINT32_MAX;
	assert_false(is_fine(&l, sizeof(l)));
	l = make();
	l.head.entry_count = UINT32_MAX;
	assert_false(is_fine(&l, sizeof(l)));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_whole),
					    cmocka_unit_test(test_offsets),
					    cmocka_unit_test(test_paths),
					    cmocka_unit_test(test_head) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
