/* Records of checkpoints, their names, and what is said about a plan that is another one. */
#include "state/checkpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD                                                                                       \
	"ward checkpoint 1\nimage a.image\nsha256 " DIGEST                                         \
	"\nbox 20261116-040846-952hra\nbytes 77\ncreated 5\n"

static int parse(const char *text, size_t n, struct checkpoint *c)
{
	*c = (struct checkpoint){ 0 };
	return checkpoint_parse(text, n, c);
}

static void test_a_record_and_back(void **state)
{
	static const char text[] =
		HEAD "words 2\n\n/w\0python3\0a\nb\0isolation: gvisor\nlimit memory: 1\n";
	auto_buf again = { 0 };
	struct checkpoint c;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, &c), 0);
	assert_string_equal(c.image, "a.image");
	assert_string_equal(c.workspace, "/w");
	assert_int_equal(c.bytes, 77);
	assert_int_equal(c.command.len, 2);
	assert_string_equal(c.command.items[1], "a\nb");
	assert_string_equal(c.same, "isolation: gvisor\nlimit memory: 1\n");
	checkpoint_write(&c, &again);
	assert_int_equal(again.len, sizeof(text) - 1);
	assert_memory_equal(again.data, text, again.len);
	checkpoint_clear(&c);
}

static void test_what_is_no_record(void **state)
{
	static const struct {
		const char *text;
		size_t n;
	} bad[] = {
#define BAD(t) { t, sizeof(t) - 1 }
		BAD(""),
		BAD("ward checkpoint 1\n"),
		BAD("ward checkpoint 2\nimage a\n\n"),
		BAD(HEAD),
		BAD(HEAD "words 1\n\n/w\0"),
		BAD(HEAD "words 1\n\n/w\0a"),
		BAD(HEAD "words 99999999999999999999\n\n/w\0a\0"),
		BAD(HEAD "words 0\n\nw\0"),
		BAD(HEAD "words 0\n\n/w\0x\0y"),
		BAD(HEAD "words 0\nimage ../x\n\n/w\0"),
		BAD(HEAD "sha256 zz\n\n/w\0"),
		BAD(HEAD "bytes -1\n\n/w\0"),
		BAD(HEAD "other 1\n\n/w\0"),
		BAD("ward checkpoint 1\nimage a\nbox b\n\n/w\0"),
		BAD(HEAD "words\n\n/w\0"),
#undef BAD
	};
	struct checkpoint c;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i].text, bad[i].n, &c), -EINVAL);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(checkpoint_is_name("before-merge_2.1"));
	assert_false(checkpoint_is_name("ls"));
	assert_false(checkpoint_is_name("rm"));
	assert_false(checkpoint_is_name(""));
	assert_false(checkpoint_is_name(".."));
	assert_false(checkpoint_is_name("a/b"));
	assert_false(checkpoint_is_name("-x"));
}

static void says(const char *then, const char *now, const char *wanted)
{
	auto_buf out = { 0 };

	checkpoint_difference(then, now, &out);
	assert_string_equal(buf_text(&out), wanted);
}

static void test_the_first_difference(void **state)
{
	(void)state;
	says("a: 1\nb: 2\n", "a: 1\nb: 3\n", "b was 2 at the checkpoint and is 3 now");
	says("a: 1\nmount /x: 1\nc: 2\n", "a: 1\nc: 2\n",
	     "mount /x was 1 at the checkpoint and is not there now");
	says("a: 1\n", "a: 1\nmount /x: 1 rw\n",
	     "mount /x was not there at the checkpoint and is 1 rw now");
	says("a: 1\nmount /x: 1 rw\n", "a: 1\n",
	     "mount /x was 1 rw at the checkpoint and is not there now");
}

static void put_file(const char *dir, const char *name, const char *text, size_t n)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/checkpoints/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static bool there(const char *dir, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/checkpoints/%s", dir, name);
	return access(path, F_OK) == 0;
}

/* In a store of its own: what is swept, what is not, and an image that went before it was kept. */
static void test_the_store(void **state)
{
	static const char good[] = HEAD "words 0\n\n/w\0a: 1\n",
			  other[] = "ward checkpoint 2\nimage b.image\n";
	char dir[] = "/tmp/ward-unit.XXXXXX", done[] = "some" CHECKPOINT_DONE, command[64];
	struct checkpoint c = { .name = "two", .box = "b", .workspace = dir, .same = dir };
	struct checkpoints all = { 0 };
	struct checkpoint_file f;
	struct ward_err e = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(setenv("WARD_STATE_DIR", dir, 1), 0);
	assert_int_equal(checkpoint_begin("two", 100, &f, &e), 0);
	put_file(dir, "a.image", "x", 1);
	put_file(dir, "b.image", "x", 1);
	put_file(dir, "nobodys.image", "x", 1);
	put_file(dir, "a.record", good, sizeof(good) - 1);
	put_file(dir, "b.record", other, sizeof(other) - 1);
	assert_int_equal(checkpoint_list(&all, &e), 0);
	assert_int_equal(all.len, 2);
	checkpoints_clear(&all);
	assert_true(there(dir, "a.image") && there(dir, "b.image") && there(dir, "nobodys.image"));
	assert_int_equal(checkpoint_remove("a", &e), 0);
	assert_false(there(dir, "a.image"));
	assert_true(there(dir, "b.image"));
	assert_int_equal(checkpoint_remove("b", &e), 0);
	assert_false(there(dir, "b.image") || there(dir, "nobodys.image"));
	/* as where files have names from the beginning */
	snprintf(f.temporary, sizeof(f.temporary), "gone.image");
	assert_int_equal(checkpoint_add(&f, done, sizeof(done) - 1, &e), 0);
	assert_int_equal(checkpoint_keep(&f, &c, &e), -ENOENT);
	checkpoint_end(&f);
	assert_false(there(dir, "two.record"));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_record_and_back),
		cmocka_unit_test(test_what_is_no_record),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_the_first_difference),
		cmocka_unit_test(test_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
