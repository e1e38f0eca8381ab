/* The strict reader of the index (src/rules/git_index.c): what git writes passes, and what git
 * would act on outside of its work tree does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/sha1.h"
#include "rules/git_index.h"

/* An index in the making. */
static void put32(struct buf *b, uint32_t value)
{
	uint8_t bytes[4] = { value >> 24, value >> 16 & 255, value >> 8 & 255, value & 255 };

	buf_add(b, bytes, 4);
}

static void index_begin(struct buf *b, uint32_t version, uint32_t entries)
{
	b->len = 0;
	buf_puts(b, "DIRC");
	put32(b, version);
	put32(b, entries);
}

static void index_entry(struct buf *b, unsigned version, uint32_t mode, unsigned flags,
			unsigned strip, const char *path, size_t said)
{
	size_t start = b->len;
	uint8_t two[2] = { (flags | said) >> 8, (flags | said) & 255 };
	uint8_t varint = strip;

	for (int i = 0; i < 10; i++)
		put32(b, i == 6 ? mode : 0);
	buf_add(b, "01234567890123456789", 20);
	buf_add(b, two, 2);
	if (version == 4)
		buf_add(b, &varint, 1);
	buf_puts(b, path);
	buf_add(b, "\0\0\0\0\0\0\0\0", version == 4 ? 1 : 8 - (b->len - start) % 8);
}

static void index_ext(struct buf *b, const char *name, const void *bytes, size_t n)
{
	buf_puts(b, name);
	put32(b, n);
	buf_add(b, bytes, n);
}

static int index_end(struct buf *b, struct git_index_info *info)
{
	uint8_t digest[SHA1_BYTES];
	const char *why = NULL;
	struct sha1 s;
	int status;

	sha1_begin(&s);
	sha1_add(&s, b->data, b->len);
	sha1_end(&s, digest);
	buf_add(b, digest, sizeof(digest));
	status = git_index_read((const uint8_t *)b->data, b->len, GIT_SHA1, NULL, NULL, info, &why);
	assert_true(status == 0 || (status == -EINVAL && why));
	return status;
}

/* One entry of version 2 alone. */
static int alone(uint32_t mode, unsigned flags, const char *path, size_t said)
{
	struct git_index_info info;
	auto_buf b = { 0 };

	index_begin(&b, 2, 1);
	index_entry(&b, 2, mode, flags, 0, path, said);
	return index_end(&b, &info);
}

static void an_index_that_git_would_act_on_is_refused(void **state unused_arg)
{
	struct git_index_info info;
	auto_buf b = { 0 };
	const char *why;

	assert_int_equal(alone(GIT_MODE_FILE, 0, "a", 1), 0);
	assert_int_equal(alone(GIT_MODE_FILE, 0, ".git/hooks/post-checkout", 24), -EINVAL);
	assert_int_equal(alone(GIT_MODE_FILE, 0, "../x", 4), -EINVAL);
	assert_int_equal(alone(GIT_MODE_FILE, 0, "/x", 2), -EINVAL);
	assert_int_equal(alone(0, 0, "a", 1), -EINVAL);
	assert_int_equal(alone(0100664, 0, "a", 1), -EINVAL);
	assert_int_equal(alone(GIT_MODE_TREE, 0, "a/", 2), -EINVAL);
	assert_int_equal(alone(GIT_MODE_LINK, 0, ".gitmodules", 11), -EINVAL);
	assert_int_equal(alone(GIT_MODE_FILE, 0x4000, "a", 1), -EINVAL);
	assert_int_equal(alone(GIT_MODE_FILE, 0, "ab", 1), -EINVAL);
	assert_int_equal(alone(GIT_MODE_FILE, 0, "ab", 0xfff), -EINVAL);
	assert_int_equal(alone(GIT_MODE_FILE, 0, "", 0), -EINVAL);
	index_begin(&b, 4, 2); /* "a/.gix", of which ".gi" stays: ".git" */
	index_entry(&b, 4, GIT_MODE_FILE, 0, 0, ".gix", 4);
	index_entry(&b, 4, GIT_MODE_FILE, 0, 1, "zz", 5);
	assert_int_equal(index_end(&b, &info), 0);
	index_begin(&b, 4, 2);
	index_entry(&b, 4, GIT_MODE_FILE, 0, 0, ".gis", 4);
	index_entry(&b, 4, GIT_MODE_FILE, 0, 1, "t", 4);
	assert_int_equal(index_end(&b, &info), -EINVAL);
	index_begin(&b, 4, 1);
	index_entry(&b, 4, GIT_MODE_FILE, 0, 1, "a", 1);
	assert_int_equal(index_end(&b, &info), -EINVAL);
	index_begin(&b, 2, 1); /* the trailer */
	index_entry(&b, 2, GIT_MODE_FILE, 0, 0, "a", 1);
	assert_int_equal(index_end(&b, &info), 0);
	b.data[b.len - 1] ^= 1;
	assert_int_equal(
		git_index_read((const uint8_t *)b.data, b.len, GIT_SHA1, NULL, NULL, &info, &why),
		-EINVAL);
	b.data[b.len - 1] ^= 1;
	assert_int_equal(
		git_index_read((const uint8_t *)b.data, b.len, GIT_SHA256, NULL, NULL, &info, &why),
		-EINVAL);
}

static int pair(const char *first, uint32_t mode, unsigned stage, const char *second,
		unsigned second_stage)
{
	struct git_index_info info;
	auto_buf b = { 0 };

	index_begin(&b, 2, 2);
	index_entry(&b, 2, mode, stage << 12, 0, first, strlen(first));
	index_entry(&b, 2, GIT_MODE_FILE, second_stage << 12, 0, second, strlen(second));
	return index_end(&b, &info);
}

static void entries_are_in_order_and_apart(void **state unused_arg)
{
	struct git_index_info info;
	auto_buf b = { 0 };

	assert_int_equal(pair("a", GIT_MODE_FILE, 0, "b", 0), 0);
	assert_int_equal(pair("b", GIT_MODE_FILE, 0, "a", 0), -EINVAL);
	assert_int_equal(pair("a", GIT_MODE_FILE, 0, "a", 0), -EINVAL);
	assert_int_equal(pair("a", GIT_MODE_FILE, 1, "a", 2), 0);
	assert_int_equal(pair("a", GIT_MODE_FILE, 2, "a", 1), -EINVAL);
	assert_int_equal(pair("a", GIT_MODE_FILE, 0, "a", 1), -EINVAL);
	assert_int_equal(pair("a", GIT_MODE_LINK, 0, "a/b", 0), -EINVAL);
	assert_int_equal(pair("a", GIT_MODE_FILE, 2, "a/b", 0), 0);
	assert_int_equal(pair("a", GIT_MODE_FILE, 0, "ab", 0), 0);
	index_begin(&b, 2, 3);
	index_entry(&b, 2, GIT_MODE_LINK, 0, 0, "a", 1);
	index_entry(&b, 2, GIT_MODE_FILE, 0, 0, "a-x", 3);
	index_entry(&b, 2, GIT_MODE_FILE, 0, 0, "a/hook", 6);
	assert_int_equal(index_end(&b, &info), -EINVAL);
}

static void put_block(struct buf *b, uint32_t offset, uint32_t count)
{
	put32(b, offset);
	put32(b, count);
}

/* Two entries, the second one at `at`, and blocks for threads: the second begins at `said` with
 * `count` entries. */
static int threads(unsigned strip, uint32_t said, uint32_t count)
{
	struct git_index_info info;
	auto_buf b = { 0 }, blocks = { 0 };

	index_begin(&b, 4, 2);
	index_entry(&b, 4, GIT_MODE_FILE, 0, 0, "ab", 2);
	index_entry(&b, 4, GIT_MODE_FILE, 0, strip, strip == 2 ? "ac" : "c", 2);
	put32(&blocks, 1);
	put_block(&blocks, 12, 1);
	put_block(&blocks, said, count);
	index_ext(&b, "IEOT", blocks.data, blocks.len);
	return index_end(&b, &info);
}

static void extensions_say_what_the_entries_say(void **state unused_arg)
{
	const uint32_t second = 12 + 40 + 20 + 2 + 1 + 3;
	struct git_index_info info;
	auto_buf b = { 0 }, body = { 0 };

	assert_int_equal(threads(2, second, 1), 0);
	assert_int_equal(threads(1, second, 1),
			 -EINVAL); /* a thread that begins there has no path before */
	assert_int_equal(threads(2, second + 1, 1), -EINVAL);
	assert_int_equal(threads(2, second, 2), -EINVAL);
	assert_int_equal(threads(2, second, 0), -EINVAL);
	for (int wrong = 0; wrong < 3; wrong++) { /* where the entries end */
		index_begin(&b, 2, 0);
		body.len = 0;
		put32(&body, wrong == 1 ? 13 : 12);
		buf_add(&body, "01234567890123456789", 20);
		if (wrong == 2)
			index_ext(&b, "REUC", "", 0);
		index_ext(&b, "EOIE", body.data, body.len);
		if (wrong == 2)
			index_ext(&b, "sdir", "", 0);
		assert_int_equal(index_end(&b, &info), wrong ? -EINVAL : 0);
	}
	for (int looks = 0; looks < 2;
	     looks++) { /* one in another extension, at the place where git looks */
		index_begin(&b, 2, 0);
		body.len = 0;
		buf_add(&body,
			"x\0"
			"100644\0"
			"100644\0"
			"0\0"
			"01234567",
			26);
		buf_add(&body, looks ? "EOIE" : "EOIX", 4);
		buf_add(&body,
			"\0\0\0\x18\0\0\0\x0c"
			"01234567890123456789",
			28);
		index_ext(&b, "REUC", body.data, body.len);
		assert_int_equal(index_end(&b, &info), looks ? -EINVAL : 0);
	}
	index_begin(&b, 2, 0);
	index_ext(&b, "ABCD", "", 0);
	assert_int_equal(index_end(&b, &info), -EINVAL);
	index_begin(&b, 2, 0);
	index_ext(&b, "REUC",
		  ".git/x\0"
		  "0\0"
		  "0\0"
		  "0\0",
		  13);
	assert_int_equal(index_end(&b, &info), -EINVAL);
	index_begin(&b, 2, 0);
	index_ext(&b, "TREE", "\0-1 1\n.git\0-1 0\n", 16);
	assert_int_equal(index_end(&b, &info), -EINVAL);
	index_begin(&b, 2, 0);
	index_ext(&b, "TREE", "\0-1 1\nsub\0-1 0\n", 15);
	assert_int_equal(index_end(&b, &info), 0);
	index_begin(&b, 2, 0);
	index_ext(&b, "link", "01234567890123456789", 20);
	assert_int_equal(index_end(&b, &info), 0);
	assert_true(info.split);
}

/* ---- git_index_skip.c ---- */

static int choose_second(void *ctx, const struct git_index_entry *entry unused_arg)
{
	return (*(int *)ctx)++ == 1;
}

/* The paths, "!" behind those that git leaves alone. */
static int list_flags(void *ctx, const struct git_index_entry *entry)
{
	buf_printf(ctx, "%s%s ", entry->path, entry->skip_worktree ? "!" : "");
	return 0;
}

static void flags_are_set_in_every_version(void **state unused_arg)
{
	for (unsigned version = 2; version <= 4; version++) {
		auto_buf b = { 0 }, out = { 0 }, list = { 0 };
		struct git_index_info info;
		const char *why;
		int at = 0;

		index_begin(&b, version, 3);
		index_entry(&b, version, GIT_MODE_FILE, 0, 0, "a", 1);
		index_entry(&b, version, GIT_MODE_FILE, 0, version == 4 ? 1 : 0, "bcdefgh", 7);
		index_entry(&b, version, GIT_MODE_LINK, 0, version == 4 ? 7 : 0, "c", 1);
		index_ext(&b, "TREE", "\0-1 0\n", 6);
		assert_int_equal(index_end(&b, &info), 0);
		assert_int_equal(git_index_skip((const uint8_t *)b.data, b.len, GIT_SHA1,
						choose_second, &at, &out, &why),
				 1);
		assert_int_equal(git_index_read((const uint8_t *)out.data, out.len, GIT_SHA1,
						list_flags, &list, &info, &why),
				 0);
		assert_string_equal(list.data, "a bcdefgh! c ");
		assert_int_equal(info.version, version < 3 ? 3 : version);
		assert_non_null(memmem(out.data, out.len, "TREE", 4));
		/* the flag is there: nothing to write */
		at = 1;
		assert_int_equal(git_index_skip((const uint8_t *)out.data, out.len, GIT_SHA1,
						choose_second, &at, &list, &why),
				 1);
		at = 2;
		assert_int_equal(git_index_skip((const uint8_t *)out.data, out.len, GIT_SHA1,
						choose_second, &at, &list, &why),
				 0);
		assert_int_equal(list.len, 0);
		b.data[b.len - 1] ^= 1;
		assert_int_equal(git_index_skip((const uint8_t *)b.data, b.len, GIT_SHA1,
						choose_second, &at, &out, &why),
				 -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_are_set_in_every_version),
		cmocka_unit_test(an_index_that_git_would_act_on_is_refused),
		cmocka_unit_test(entries_are_in_order_and_apart),
		cmocka_unit_test(extensions_say_what_the_entries_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
