/* The strict readers of git data (src/rules): forms that git writes pass, and what git or another
 * reader might take otherwise does not. */
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
#include "base/sha256.h"
#include "rules/git_config.h"
#include "rules/git_index.h"
#include "rules/git_judge.h"
#include "rules/git_link.h"
#include "rules/git_object.h"
#include "rules/git_ref.h"
#include "rules/git_reflog.h"
#include "rules/git_state.h"

#define ID "0123456789abcdef0123456789abcdef01234567"
#define ID2 "89abcdef0123456789abcdef0123456789abcdef"

#define SHA1_HEX (2 * SHA1_BYTES + 1)

static void sha1_hex(const void *bytes, size_t n, char ret_hex[SHA1_HEX])
{
	uint8_t digest[SHA1_BYTES];
	struct sha1 s;

	sha1_begin(&s);
	sha1_add(&s, bytes, n);
	sha1_end(&s, digest);
	for (size_t i = 0; i < SHA1_BYTES; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

static void sha1_is_the_standard_s(void **state unused_arg)
{
	static const struct {
		const char *text, *hex;
	} cases[] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
	};
	auto_buf million = { 0 };
	struct sha1 s;
	uint8_t one[SHA1_BYTES];
	char hex[SHA1_HEX];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		sha1_hex(cases[i].text, strlen(cases[i].text), hex);
		assert_string_equal(hex, cases[i].hex);
	}
	for (size_t i = 0; i < 1000000; i++)
		buf_add(&million, "a", 1);
	sha1_hex(million.data, million.len, hex);
	assert_string_equal(hex, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	sha1_begin(&s);
	for (size_t i = 0, n = 1; i < million.len; i += n, n = n % 131 + 1)
		sha1_add(&s, million.data + i, n < million.len - i ? n : million.len - i);
	sha1_end(&s, one);
	assert_int_equal(one[0], 0x34);
	assert_int_equal(one[19], 0x6f);
}

static void paths_into_git_directories_are_refused(void **state unused_arg)
{
	static const char *const bad[] = {
		"",
		"/",
		"/a",
		"a/",
		"a//b",
		".",
		"..",
		"./a",
		"a/.",
		"a/../b",
		".git",
		".git/hooks/x",
		"a/.git",
		"a/.git/b",
		".GIT/x",
		".gIt",
		"git~1",
		"GIT~1/x",
		"git~12",
		".git.",
		".git ",
		".git. .",
		".git:x",
		".git::$INDEX_ALLOCATION",
		"git~1:x",
		"git~1 .",
		".g\xe2\x80\x8cit",
		"\xef\xbb\xbf.git",
		".git\xe2\x80\x8f",
		".\xe2\x81\xaagit",
		".gi\xc2\xadt",
		".git\xf3\xa0\x80\x81",
		"x\\.git\\y",
		".git\\x",
		"a\\GIT~1",
	};
	static const char *const good[] = { "a",   ".gitignore",   ".gitmodules", "a/.gitkeep",
					    "git", "git~",         "git~x",       "..a",
					    "a..", "...",          ".gita",       "x.git",
					    "a b", "\xe2\x80\x8c", "\xff\xfe",    "a:b",
					    "-x",  "git~1x" };
	auto_buf longest = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (!git_path_refused(bad[i], strlen(bad[i]), false))
			fail_msg("%s is accepted", bad[i]);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (git_path_refused(good[i], strlen(good[i]), false))
			fail_msg("%s: %s", good[i],
				 git_path_refused(good[i], strlen(good[i]), false));
	assert_non_null(git_path_refused("a\0b", 3, false));
	assert_non_null(git_path_refused(".gitmodules", 11, true));
	assert_non_null(git_path_refused(".GITmodules ", 12, true));
	assert_null(git_path_refused("a", 1, true));
	for (size_t i = 0; i < 4096; i++)
		buf_add(&longest, "a", 1);
	assert_non_null(git_path_refused(longest.data, 4096, false));
	assert_null(git_path_refused(longest.data, 4095, false));
}

static void names_of_refs_are_checked(void **state unused_arg)
{
	static const char *const bad[] = { "",
					   "refs",
					   "refs/",
					   "heads/x",
					   "refs/heads/",
					   "refs//x",
					   "refs/heads/-x",
					   "refs/heads/--upload-pack=x",
					   "refs/heads/.x",
					   "refs/heads/x.",
					   "refs/heads/x.lock",
					   "refs/a.lock/b",
					   "refs/heads/a..b",
					   "refs/heads/a b",
					   "refs/heads/a~b",
					   "refs/heads/a^b",
					   "refs/heads/a:b",
					   "refs/heads/a?b",
					   "refs/heads/a*b",
					   "refs/heads/a[b",
					   "refs/heads/a\\b",
					   "refs/heads/a@{b",
					   "refs/heads/@",
					   "refs/heads/a\x7f",
					   "refs/heads/a\nb",
					   "refs/heads/../x" };
	static const char *const good[] = { "refs/stash",     "refs/heads/main",
					    "refs/heads/a/b", "refs/remotes/o/HEAD",
					    "refs/heads/a-b", "refs/heads/\xc3\xa9",
					    "refs/heads/a@b", "refs/heads/a{b",
					    "refs/heads/a.b" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (git_ref_name_ok(bad[i], strlen(bad[i])))
			fail_msg("%s is accepted", bad[i]);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!git_ref_name_ok(good[i], strlen(good[i])))
			fail_msg("%s is refused", good[i]);
	assert_false(git_ref_name_ok("refs/heads/a\0b", 14));
}

#define SIZED(text) text, sizeof(text) - 1

static void files_of_refs_are_an_id_or_a_name(void **state unused_arg)
{
	static const struct {
		const char *text;
		size_t n;
		enum git_ref_kind ref, head;
	} cases[] = {
		{ SIZED(ID "\n"), GIT_REF_ID, GIT_REF_ID },
		{ SIZED("ref: refs/heads/main\n"), GIT_REF_SYMBOLIC, GIT_REF_SYMBOLIC },
		{ SIZED("ref: refs/remotes/o/x\n"), GIT_REF_SYMBOLIC, GIT_REF_BAD },
		{ SIZED(""), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED(ID), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED(ID " junk\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED(ID "\r\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED(ID "\0\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED(ID "\n\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("0123\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("ref:refs/heads/x\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("ref: \trefs/heads/x\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("ref: refs/heads/x \n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("ref: refs/heads/../../config\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("ref: HEAD\n"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("ref: refs/heads/x\nx"), GIT_REF_BAD, GIT_REF_BAD },
		{ SIZED("0123456789ABCDEF0123456789abcdef01234567\n"), GIT_REF_BAD, GIT_REF_BAD },
	};
	const char *at;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (git_ref_read(cases[i].text, cases[i].n, GIT_SHA1, &at, &n) != cases[i].ref ||
		    git_head_read(cases[i].text, cases[i].n, GIT_SHA1, &at, &n) != cases[i].head)
			fail_msg("case %zu: %s", i, cases[i].text);
	}
	assert_int_equal(git_ref_read(SIZED(ID "\n"), GIT_SHA256, &at, &n), GIT_REF_BAD);
}

static int count_packed(void *ctx, const struct git_packed_ref *ref)
{
	buf_printf(ctx, "%.4s %.*s%s;", ref->id, (int)ref->name_n, ref->name,
		   ref->peeled ? "^" : "");
	return 0;
}

static void packed_refs_and_reflogs_are_read(void **state unused_arg)
{
	static const char packed[] = "# pack-refs with: peeled fully-peeled sorted \n" ID
				     " refs/heads/a\n" ID2 " refs/tags/b\n^" ID "\n";
	static const char *const bad[] = {
		ID " ../x\n",          ID " refs/heads/x",
		"^" ID "\n",           ID " refs/heads/a\n^" ID "\n^" ID "\n",
		"# other\n",           ID "\n",
		ID "  refs/heads/x\n", ID " refs/heads/x\r\n"
	};
	static const char *const logs[] = { ID " " ID2 " a b <c@d> 1 +0000\tmessage\n",
					    ID " " ID2 " a <> 1 -1130\n", "" };
	static const char *const no_logs[] = { ID " " ID2 "\n",
					       ID " " ID2 " a <c@d> x +0000\tm\n",
					       ID " " ID2 " a <c@d> 1 +0000\tm",
					       "x\n",
					       ID " " ID2 " a <c@d> 1 0000\tm\n",
					       ID " " ID2 " a <c@d>> 1 +0000\tm\r\n",
					       ID " x a <c@d> 1 +0000\tm\n" };
	auto_buf got = { 0 };
	const char *why;

	assert_int_equal(git_packed_read(SIZED(packed), GIT_SHA1, count_packed, &got, &why), 0);
	assert_string_equal(buf_text(&got), "0123 refs/heads/a;89ab refs/tags/b^;");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
			git_packed_read(bad[i], strlen(bad[i]), GIT_SHA1, NULL, NULL, &why),
			-EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(logs); i++)
		assert_int_equal(
			git_reflog_read(logs[i], strlen(logs[i]), GIT_SHA1, NULL, NULL, &why), 0);
	for (size_t i = 0; i < ARRAY_LEN(no_logs); i++)
		assert_int_equal(
			git_reflog_read(no_logs[i], strlen(no_logs[i]), GIT_SHA1, NULL, NULL, &why),
			-EINVAL);
}

static void pointers_have_one_form(void **state unused_arg)
{
	static const struct {
		const char *text;
		size_t n;
		bool ok;
	} cases[] = {
		{ SIZED("gitdir: ../.git/modules/x\n"), true },
		{ SIZED("gitdir: /a b/c\n"), true },
		{ SIZED("gitdir: /x\0junk\n"), false },
		{ SIZED("gitdir: /x"), false },
		{ SIZED("gitdir: /x\r\n"), false },
		{ SIZED("gitdir: /x\n\n"), false },
		{ SIZED("gitdir: /x \n"), false },
		{ SIZED("gitdir:/x\n"), false },
		{ SIZED("GITDIR: /x\n"), false },
		{ SIZED("\xef\xbb\xbfgitdir: /x\n"), false },
		{ SIZED("gitdir: \n"), false },
		{ SIZED("gitdir:  /x\n"), false },
		{ SIZED("gitdir: /x\ny\n"), false },
		{ SIZED(""), false },
		{ SIZED("gitdir: /x\t\n"), false },
	};
	const char *at;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (git_link_read(cases[i].text, cases[i].n, &at, &n) != cases[i].ok)
			fail_msg("case %zu: %s", i, cases[i].text);
	assert_true(git_commondir_ok(SIZED("../..\n")));
	assert_false(git_commondir_ok(SIZED("../..")));
	assert_false(git_commondir_ok(SIZED("../..\0")));
	assert_false(git_commondir_ok(SIZED("../../\n")));
	assert_true(git_worktree_gitdir_read(SIZED("/a/b/.git\n"), &at, &n));
	assert_int_equal(n, 4);
	assert_false(git_worktree_gitdir_read(SIZED("../b/.git\n"), &at, &n));
	assert_false(git_worktree_gitdir_read(SIZED("/b\0/.git\n"), &at, &n));
	assert_false(git_worktree_gitdir_read(SIZED("/b/.git"), &at, &n));
	assert_false(git_worktree_gitdir_read(SIZED("/b/x\n"), &at, &n));
}

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

static void todo_lists_run_nothing(void **state unused_arg)
{
	static const char *const good[] = {
		"",
		"\n",
		"# comment\n",
		"pick 0123 subject exec x\n",
		"p " ID " x\n",
		"edit 01234\n",
		"fixup -C " ID " x\n",
		"drop " ID "\n",
		"break\n",
		"noop\n",
		"label onto\n",
		"reset [new root]\n",
		"reset branch-x # subject\n",
		"merge -C 0123 topic # Merge x\n",
		"merge a b\n",
		"update-ref refs/heads/x\n",
		"u refs/heads/x\n",
		"revert 0123456 x\n",
		" \tpick 0123\n",
	};
	static const char *const bad[] = {
		"exec x\n",
		"x x\n",
		"x\n",
		"exec",
		" \t x y\n",
		"pick 0123\nexec\ty\n",
		"exec\r\n",
		"pick main\n",
		"pick --x\n",
		"execute x\n",
		"Pick 0123\n",
		"\rexec x\n",
		"merge -s evil x\n",
		"merge --x\n",
		"label -x\n",
		"label ../x\n",
		"update-ref HEAD\n",
		"update-ref refs/heads/../x\n",
		"break x\n",
		"fixup -x 0123\n",
		"merge -C x y\n",
		"pick 0123\v\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (git_todo_refused((const uint8_t *)good[i], strlen(good[i]), GIT_SHA1))
			fail_msg("%s: %s", good[i],
				 git_todo_refused((const uint8_t *)good[i], strlen(good[i]),
						  GIT_SHA1));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (!git_todo_refused((const uint8_t *)bad[i], strlen(bad[i]), GIT_SHA1))
			fail_msg("%s is accepted", bad[i]);
	assert_non_null(git_todo_refused((const uint8_t *)"# \0exec x\n", 10, GIT_SHA1));
}

static void state_files_have_their_forms(void **state unused_arg)
{
	static const struct {
		enum git_form form;
		const char *text;
		bool ok;
	} cases[] = {
		{ GIT_FORM_AUTHOR,
		  "GIT_AUTHOR_NAME='a'\\''b'\nGIT_AUTHOR_EMAIL='c'\nGIT_AUTHOR_DATE='@1 +0000'\n",
		  true },
		{ GIT_FORM_AUTHOR,
		  "GIT_AUTHOR_NAME='a'; x\nGIT_AUTHOR_EMAIL='c'\nGIT_AUTHOR_DATE='@1 +0000'\n",
		  false },
		{ GIT_FORM_AUTHOR,
		  "GIT_AUTHOR_NAME='$(x)\nGIT_AUTHOR_EMAIL='c'\nGIT_AUTHOR_DATE='@1 +0000'\n",
		  false },
		{ GIT_FORM_AUTHOR, "PATH='x'\n", false },
		{ GIT_FORM_STRATEGY, "ort\n", true },
		{ GIT_FORM_STRATEGY, "../x\n", false },
		{ GIT_FORM_STRATEGY, "index\n", false },
		{ GIT_FORM_STRATEGY_OPTS, " --ours --patience\n", true },
		{ GIT_FORM_STRATEGY_OPTS, " '--find-renames=40%'\n", true },
		{ GIT_FORM_STRATEGY_OPTS, " --x\n", false },
		{ GIT_FORM_STRATEGY_OPTS, " 'ours\n", false },
		{ GIT_FORM_APPLY_OPTS, "\n", true },
		{ GIT_FORM_APPLY_OPTS, " '--whitespace=fix' '-p1'\n", true },
		{ GIT_FORM_APPLY_OPTS, " '--build-fake-ancestor=x'\n", false },
		{ GIT_FORM_APPLY_OPTS, " '--directory=x'\n", false },
		{ GIT_FORM_SIGN_OPT, "-S\n", true },
		{ GIT_FORM_SIGN_OPT, "-SAB12\n", true },
		{ GIT_FORM_SIGN_OPT, "-S --x\n", false },
		{ GIT_FORM_SEQUENCER_OPTS, "[options]\n\tedit = true\n\tmainline = 1\n", true },
		{ GIT_FORM_SEQUENCER_OPTS, "[options]\n\tstrategy = evil\n", false },
		{ GIT_FORM_SEQUENCER_OPTS, "[core]\n\tpager = x\n", false },
		{ GIT_FORM_BISECT_START, "main\n", true },
		{ GIT_FORM_BISECT_START, "--x\n", false },
		{ GIT_FORM_BISECT_LOG, "# x\ngit bisect start\n", true },
		{ GIT_FORM_BISECT_LOG, "sh x\n", false },
		{ GIT_FORM_BISECT_TERMS, "bad\ngood\n", true },
		{ GIT_FORM_BISECT_TERMS, "-x\ngood\n", false },
		{ GIT_FORM_HEAD_NAME, "refs/heads/x\n", true },
		{ GIT_FORM_HEAD_NAME, "detached HEAD\n", true },
		{ GIT_FORM_HEAD_NAME, "refs/tags/x\n", false },
		{ GIT_FORM_UPDATE_REFS, "refs/heads/x\n" ID "\n" ID "\n", true },
		{ GIT_FORM_UPDATE_REFS, "HEAD\n" ID "\n" ID "\n", false },
		{ GIT_FORM_NUMBER, "12\n", true },
		{ GIT_FORM_NUMBER, "-1\n", false },
		{ GIT_FORM_FLAG, "--signoff\n", true },
		{ GIT_FORM_FLAG, "a b\n", false },
		{ GIT_FORM_FIXUPS, "fixup " ID "\nsquash " ID, true },
		{ GIT_FORM_FIXUPS, "exec " ID, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (!git_state_refused(cases[i].form, (const uint8_t *)cases[i].text,
				       strlen(cases[i].text), GIT_SHA1) != cases[i].ok)
			fail_msg("case %zu: %s", i, cases[i].text);
	assert_non_null(git_state_refused(GIT_FORM_TEXT, (const uint8_t *)"a\0b", 3, GIT_SHA1));
}

static void objects_begin_as_git_writes_them(void **state unused_arg)
{
	uint64_t size;
	uint32_t count;
	size_t head;
	const char *why;

	assert_true(git_loose_ok((const uint8_t *)"\x78\x01", 2));
	assert_false(git_loose_ok((const uint8_t *)"\x78\x02", 2));
	assert_false(git_loose_ok((const uint8_t *)"#!/bin/sh", 9));
	assert_int_equal(git_loose_header((const uint8_t *)"blob 12\0x", 9, &size, &head),
			 GIT_BLOB);
	assert_int_equal(size, 12);
	assert_int_equal(head, 8);
	assert_int_equal(git_loose_header((const uint8_t *)"blob 012\0", 9, &size, &head),
			 GIT_OBJECT_BAD);
	assert_int_equal(git_loose_header((const uint8_t *)"blob 12", 7, &size, &head),
			 GIT_OBJECT_BAD);
	assert_int_equal(git_loose_header((const uint8_t *)"link 12\0", 8, &size, &head),
			 GIT_OBJECT_BAD);
	assert_true(git_pack_ok((const uint8_t *)"PACK\0\0\0\2\0\0\0\5", 12, &count));
	assert_int_equal(count, 5);
	assert_false(git_pack_ok((const uint8_t *)"PACK\0\0\0\3\0\0\0\5", 12, &count));
	assert_int_equal(git_tree_read((const uint8_t *)"100644 a\0"
							"01234567890123456789",
				       29, GIT_SHA1, NULL, NULL, &why),
			 0);
	assert_int_equal(git_tree_read((const uint8_t *)"40000 .git\0"
							"01234567890123456789",
				       31, GIT_SHA1, NULL, NULL, &why),
			 -EINVAL);
	assert_int_equal(git_tree_read((const uint8_t *)"100644 a/b\0"
							"01234567890123456789",
				       31, GIT_SHA1, NULL, NULL, &why),
			 -EINVAL);
	assert_int_equal(git_tree_read((const uint8_t *)"100644 a\0"
							"0123",
				       13, GIT_SHA1, NULL, NULL, &why),
			 -EINVAL);
}

static void the_table_knows_every_place(void **state unused_arg)
{
	static const struct {
		const char *path;
		enum git_dir_kind kind;
		bool dir;
		enum git_treat treat;
	} cases[] = {
		{ "HEAD", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "head", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "refs/heads/a/b", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "refs/heads/tmp_x", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "objects/ab/tmp_obj_x", GIT_DIR_MAIN, false, GIT_TREAT_DROP },
		{ "refs/heads/-x", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "refs/heads", GIT_DIR_MAIN, true, GIT_TREAT_ADMIT },
		{ "refs/replace", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
		{ "refs/heads/x", GIT_DIR_WORKTREE, false, GIT_TREAT_REFUSE },
		{ "refs/bisect/bad", GIT_DIR_WORKTREE, false, GIT_TREAT_ADMIT },
		{ "objects/ab/cdef0123456789abcdef0123456789abcdef01", GIT_DIR_MAIN, false,
		  GIT_TREAT_ADMIT },
		{ "objects/ab/cdef", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "objects/ab", GIT_DIR_MAIN, true, GIT_TREAT_ADMIT },
		{ "objects/abc", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
		{ "objects/pack/pack-" ID ".pack", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "objects/pack/pack-" ID ".idx", GIT_DIR_MAIN, false, GIT_TREAT_DERIVED },
		{ "objects/pack/pack-" ID ".promisor", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "index.lock", GIT_DIR_MAIN, false, GIT_TREAT_DROP },
		{ "refs/heads/x.lock", GIT_DIR_MAIN, false, GIT_TREAT_DROP },
		{ "x.lock", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
		{ "tmp_x", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
		{ "hooks/pre-commit", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "hooks/pre-commit.sample", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "hooks", GIT_DIR_MAIN, true, GIT_TREAT_ADMIT },
		{ "hooks/x", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
		{ "branches", GIT_DIR_MAIN, true, GIT_TREAT_ADMIT },
		{ "commondir", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "commondir", GIT_DIR_MODULE, false, GIT_TREAT_REFUSE },
		{ "commondir", GIT_DIR_WORKTREE, false, GIT_TREAT_ADMIT },
		{ "config", GIT_DIR_WORKTREE, false, GIT_TREAT_REFUSE },
		{ "worktrees/a/commondir", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "worktrees/a/config", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "worktrees/.x/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "worktrees/a", GIT_DIR_MAIN, true, GIT_TREAT_ADMIT },
		{ "worktrees/a/worktrees/b/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "worktrees/a/hooks", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
		{ "modules/a/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "modules/a/b/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "modules/a/modules/b/config", GIT_DIR_MAIN, false, GIT_TREAT_MERGE },
		{ "modules/hooks/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "modules/a/hooks/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "modules/a/config/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "modules/a/evil", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "modules/-a/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "modules/a/../HEAD", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "modules/.git/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "modules/a/hooks/pre-commit", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "modules/a/worktrees/b/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "rebase-merge/evil", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "rebase-merge", GIT_DIR_MAIN, true, GIT_TREAT_ADMIT },
		{ "logs/refs/heads/x/.git", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
		{ "unknown", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
		{ "", GIT_DIR_MAIN, true, GIT_TREAT_ADMIT },
		{ "/HEAD", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "refs//x", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "lfs/objects/ab/cd/"
		  "abcd456789012345678901234567890123456789012345678901234567890123",
		  GIT_DIR_MAIN, false, GIT_TREAT_ADMIT },
		{ "lfs/objects/ab/cd/"
		  "ffff456789012345678901234567890123456789012345678901234567890123",
		  GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "info/attributes", GIT_DIR_MAIN, false, GIT_TREAT_REFUSE },
		{ "rr-cache", GIT_DIR_MAIN, true, GIT_TREAT_REFUSE },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct git_place place =
			git_path_find(cases[i].path, cases[i].kind, GIT_SHA1, cases[i].dir);

		if (place.treat != cases[i].treat)
			fail_msg("%s: %d, %s", cases[i].path, (int)place.treat, place.why);
	}
	assert_int_equal(git_path_find("modules/a/b/HEAD", GIT_DIR_MAIN, GIT_SHA1, false).inner,
			 12);
	assert_int_equal(
		git_path_find("modules/a/modules/b/HEAD", GIT_DIR_MAIN, GIT_SHA1, false).inner, 20);
	assert_int_equal(git_path_find("worktrees/a/HEAD", GIT_DIR_MAIN, GIT_SHA1, false).inner,
			 12);
	assert_int_equal(git_path_find("worktrees/a/HEAD", GIT_DIR_MAIN, GIT_SHA1, false).kind,
			 GIT_DIR_WORKTREE);
}

struct setting {
	enum git_config_verdict verdict;
	size_t count;
};

static int judge(void *ctx, const struct gitconfig_entry *entry)
{
	struct setting *s = ctx;
	const char *why = NULL;

	s->verdict = git_config_allowed(entry, GIT_DIR_MODULE, &why);
	s->count++;
	assert_true(s->verdict == GIT_CONFIG_PLAIN || (why && *why));
	return 0;
}

static const struct {
	const char *text;
	enum git_config_verdict expect;
} keys[] = {
	{ "[core]\n\tbare=false\n", GIT_CONFIG_PLAIN },
	{ "[user]\n\temail=a@b\n", GIT_CONFIG_PLAIN },
	{ "[remote \"o\"]\n\turl=git@example.com:x/y.git\n", GIT_CONFIG_URL },
	{ "[remote \"o\"]\n\turl=ssh://[::1]/x\n", GIT_CONFIG_URL },
	{ "[remote \"o\"]\n\tfetch=+refs/heads/*:refs/remotes/o/*\n", GIT_CONFIG_PLAIN },
	{ "[branch \"main\"]\n\tmerge=refs/heads/main\n", GIT_CONFIG_PLAIN },
	{ "[alias]\n\tco=checkout\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tfsmonitor=true\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"x\"]\n\tupdate=rebase\n", GIT_CONFIG_PLAIN },
	{ "[commit]\n\tgpgsign=false\n", GIT_CONFIG_PLAIN },
	{ "[core]\n\tworktree=../x\n", GIT_CONFIG_WORKTREE },
	{ "[core]\n\thooksPath=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tfsmonitor=/x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tsshCommand=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tpager=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\teditor=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\taskPass=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tgitProxy=x\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\tattributesFile=x\n", GIT_CONFIG_REFUSED },
	{ "[sequence]\n\teditor=x\n", GIT_CONFIG_REFUSED },
	{ "[diff]\n\texternal=x\n", GIT_CONFIG_REFUSED },
	{ "[diff \"x\"]\n\tcommand=x\n", GIT_CONFIG_REFUSED },
	{ "[diff \"x\"]\n\ttextconv=x\n", GIT_CONFIG_REFUSED },
	{ "[merge \"x\"]\n\tdriver=x\n", GIT_CONFIG_REFUSED },
	{ "[filter \"x\"]\n\tclean=x\n", GIT_CONFIG_REFUSED },
	{ "[filter \"x\"]\n\tsmudge=x\n", GIT_CONFIG_REFUSED },
	{ "[filter \"x\"]\n\tprocess=x\n", GIT_CONFIG_REFUSED },
	{ "[alias]\n\tx=!sh\n", GIT_CONFIG_REFUSED },
	{ "[alias]\n\tx=-c core.pager=x log\n", GIT_CONFIG_REFUSED },
	{ "[credential]\n\thelper=x\n", GIT_CONFIG_REFUSED },
	{ "[credential \"https://x\"]\n\thelper=x\n", GIT_CONFIG_REFUSED },
	{ "[include]\n\tpath=x\n", GIT_CONFIG_REFUSED },
	{ "[includeIf \"gitdir:x\"]\n\tpath=x\n", GIT_CONFIG_REFUSED },
	{ "[gpg]\n\tprogram=x\n", GIT_CONFIG_REFUSED },
	{ "[gpg \"ssh\"]\n\tprogram=x\n", GIT_CONFIG_REFUSED },
	{ "[uploadpack]\n\tpackObjectsHook=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\tuploadpack=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\treceivepack=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl=ext::sh -c x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl=-oProxyCommand=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\tvcs=x\n", GIT_CONFIG_REFUSED },
	{ "[http]\n\tproxy=x\n", GIT_CONFIG_REFUSED },
	{ "[pager]\n\tlog=x\n", GIT_CONFIG_REFUSED },
	{ "[interactive]\n\tdiffFilter=x\n", GIT_CONFIG_REFUSED },
	{ "[browser \"x\"]\n\tcmd=x\n", GIT_CONFIG_REFUSED },
	{ "[man \"x\"]\n\tcmd=x\n", GIT_CONFIG_REFUSED },
	{ "[difftool \"x\"]\n\tcmd=x\n", GIT_CONFIG_REFUSED },
	{ "[mergetool \"x\"]\n\tcmd=x\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"x\"]\n\tupdate=!x\n", GIT_CONFIG_REFUSED },
	{ "[alias]\n\tst=rebase --exec x\n", GIT_CONFIG_REFUSED },
	{ "[alias]\n\tst= !x\n", GIT_CONFIG_REFUSED },
	{ "[rebase]\n\tinstructionFormat=%s%nexec x\n", GIT_CONFIG_REFUSED },
	{ "[rebase]\n\tautoStash=true\n", GIT_CONFIG_PLAIN },
	{ "[gc]\n\trecentObjectsHook=x\n", GIT_CONFIG_REFUSED },
	{ "[gc]\n\tauto=1\n", GIT_CONFIG_PLAIN },
	{ "[branch \"m\"]\n\tremote=ext::x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tremote=origin\n", GIT_CONFIG_REMOTE },
	{ "[remote]\n\tpushDefault=ext::x\n", GIT_CONFIG_REFUSED },
	{ "[init]\n\ttemplateDir=x\n", GIT_CONFIG_REFUSED },
	{ "[url \"x\"]\n\tinsteadOf=y\n", GIT_CONFIG_REFUSED },
	{ "[protocol \"ext\"]\n\tallow=always\n", GIT_CONFIG_REFUSED },
	{ "[future]\n\tkey=x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tremote = https://x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tremote = ../x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tremote = .\n", GIT_CONFIG_PLAIN },
	{ "[branch \"-m\"]\n\tmerge = refs/heads/x\n", GIT_CONFIG_REFUSED },
	{ "[branch \"m\"]\n\tdescription = a\\nb\n", GIT_CONFIG_PLAIN },
	{ "[user]\n\tname = a\\nb\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = http://x/y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = file:///x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ssh://-oProxyCommand=x/y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ssh://a@-x/y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ssh://%2dx/y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = a@-x:y\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = host:-x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ~/x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\turl = ../x\n", GIT_CONFIG_URL },
	{ "[remote \"o\"]\n\turl = https://user:pa%40ss@x/y\n", GIT_CONFIG_URL },
	{ "[remote \"o\"]\n\tpromisor = true\n", GIT_CONFIG_REFUSED },
	{ "[remote]\n\turl = https://x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\tfetch = +refs/*:refs/*\n", GIT_CONFIG_PLAIN },
	{ "[remote \"o\"]\n\tfetch = --upload-pack=x\n", GIT_CONFIG_REFUSED },
	{ "[remote \"o\"]\n\ttagOpt = --upload-pack=x\n", GIT_CONFIG_REFUSED },
	{ "[extensions]\n\tobjectFormat = sha256\n", GIT_CONFIG_PLAIN },
	{ "[extensions]\n\tpartialClone = o\n", GIT_CONFIG_REFUSED },
	{ "[extensions]\n\trefStorage = reftable\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\trepositoryFormatVersion = 2\n", GIT_CONFIG_REFUSED },
	{ "[core \"x\"]\n\tbare = true\n", GIT_CONFIG_REFUSED },
	{ "[core]\n\teol = -x\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"a/hooks\"]\n\tactive = true\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"../a\"]\n\tactive = true\n", GIT_CONFIG_REFUSED },
	{ "[submodule \"a\"]\n\tpath = .git/x\n", GIT_CONFIG_REFUSED },
	{ "[commit]\n\tgpgSign = true\n", GIT_CONFIG_REFUSED },
	{ "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n", GIT_CONFIG_REFUSED },
	{ "[trailer \"x\"]\n\tcmd = x\n", GIT_CONFIG_REFUSED },
};

static void settings_are_allowed_by_key_and_value(void **state unused_arg)
{
	const struct gitconfig_entry worktree = {
		.section = "core", .subsection = "", .key = "worktree", .value = "../x"
	};
	const char *why = NULL;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct setting s = { .verdict = (enum git_config_verdict)99 };
		int status =
			git_config_read(keys[i].text, strlen(keys[i].text), judge, &s, &why, NULL);

		if (status != 0 || s.count != 1 || s.verdict != keys[i].expect)
			fail_msg("%s: %d %d %s", keys[i].text, status, (int)s.verdict, why);
	}
	assert_int_equal(git_config_allowed(&worktree, GIT_DIR_MAIN, &why), GIT_CONFIG_REFUSED);
	assert_int_equal(git_modules_allowed(&worktree, &why), GIT_CONFIG_REFUSED);
}

static void configuration_has_one_form(void **state unused_arg)
{
	static const struct {
		const char *text;
		size_t n;
		size_t count; /* 99: it is refused */
	} cases[] = {
		{ SIZED(""), 0 },
		{ SIZED("\n\n"), 0 },
		{ SIZED("[a]\n\tb = c\n"), 1 },
		{ SIZED("[a]\nb=c"), 1 },
		{ SIZED("[a \"x\\\"y\\\\\"]\n\tb = \n"), 1 },
		{ SIZED("# c\n ; c\n[a]\n\tb = \" x;#\\\"\\n \"\n\tB = c\n"), 2 },
		{ SIZED("b = c\n"), 99 },
		{ SIZED("[a]b = c\n"), 99 },
		{ SIZED("[a]\n\tb\n"), 99 },
		{ SIZED("[a]\r\n\tb = c\n"), 99 },
		{ SIZED("[a]\rb=c\n"), 99 },
		{ SIZED("[a]\n\tb = c\\\n\td = e\n"), 99 },
		{ SIZED("[a \"x\0y\"]\n\tb = c\n"), 99 },
		{ SIZED("# \0\n[a]\n"), 99 },
		{ SIZED("[a]\n\tb = c\0\n"), 99 },
		{ SIZED("\xef\xbb\xbf[a]\n"), 99 },
		{ SIZED("[a.b]\n\tc = d\n"), 99 },
		{ SIZED("[a \"\"]\n"), 99 },
		{ SIZED("[ a]\n"), 99 },
		{ SIZED("[a ]\n"), 99 },
		{ SIZED("[a]x\n"), 99 },
		{ SIZED("[a] # c\n"), 99 },
		{ SIZED("[a][b]\n"), 99 },
		{ SIZED("[a  \"x\"]\n"), 99 },
		{ SIZED("[a \"x\" ]\n"), 99 },
		{ SIZED("[a \"x\\n\"]\n"), 99 },
		{ SIZED("[a]\n\tb = c # d\n"), 99 },
		{ SIZED("[a]\n\tb = c;d\n"), 99 },
		{ SIZED("[a]\n\tb = c\"d\"\n"), 99 },
		{ SIZED("[a]\n\tb = \"c\"d\n"), 99 },
		{ SIZED("[a]\n\tb = \"c\n"), 99 },
		{ SIZED("[a]\n\tb = c\\bd\n"), 99 },
		{ SIZED("[a]\n\tb = c \n"), 99 },
		{ SIZED("[a]\n\tb = c\td\n"), 99 },
		{ SIZED("[a]\n\tb_c = d\n"), 99 },
		{ SIZED("[a]\n\t1b = d\n"), 99 },
		{ SIZED("[a\n]\n"), 99 },
		{ SIZED("[a \"x\n\"]\n"), 99 },
		{ SIZED("[a]\v\n"), 99 },
		{ SIZED("# c \\\n[a]\n\tb = c\n"), 99 },
		{ SIZED("[\n"), 99 },
		{ SIZED("[a \"\n"), 99 },
		{ SIZED("[a \"x\"\n"), 99 },
	};
	const char *why;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct setting s = { 0 };
		int status = git_config_read(cases[i].text, cases[i].n, judge, &s, &why, NULL);

		if (cases[i].count == 99 ? status != -EINVAL
					 : status != 0 || s.count != cases[i].count)
			fail_msg("case %zu: %s: %d, %zu", i, cases[i].text, status, s.count);
	}
	assert_int_equal(git_config_hash(SIZED("[core]\n\tbare = false\n")), GIT_SHA1);
	assert_int_equal(git_config_hash(SIZED("[extensions]\n\tobjectformat = sha256\n")),
			 GIT_SHA256);
	assert_int_equal(git_config_hash(SIZED("[extensions]\n\tobjectformat = x\n")), 0);
	assert_int_equal(git_config_hash(SIZED("[extensions]\r\n")), 0);
}

static enum git_verdict verdict(const char *path, mode_t mode, nlink_t links, const char *text,
				size_t n)
{
	struct git_file f = { .path = path,
			      .hash = GIT_SHA1,
			      .mode = mode,
			      .links = links,
			      .size = n,
			      .bytes = (const uint8_t *)text,
			      .n = n };
	struct git_judged j = git_judge(&f);

	assert_true(j.verdict == GIT_ADMIT || j.why[0]);
	return j.verdict;
}

static void a_file_is_judged_by_name_type_and_content(void **state unused_arg)
{
	static const char config[] =
		"[remote \"o\"]\n\turl = https://x\n[branch \"m\"]\n\tremote = o\n";

	assert_int_equal(verdict("HEAD", S_IFREG | 0644, 1, SIZED(ID "\n")), GIT_ADMIT);
	assert_int_equal(verdict("HEAD", S_IFREG | 0644, 2, SIZED(ID "\n")), GIT_REFUSE);
	assert_int_equal(verdict("HEAD", S_IFREG | 04644, 1, SIZED(ID "\n")), GIT_REFUSE);
	assert_int_equal(verdict("HEAD", S_IFLNK | 0777, 1, SIZED(ID "\n")), GIT_REFUSE);
	assert_int_equal(verdict("HEAD", S_IFIFO | 0644, 1, NULL, 0), GIT_REFUSE);
	assert_int_equal(verdict("HEAD", S_IFDIR | 0755, 2, NULL, 0), GIT_REFUSE);
	assert_int_equal(verdict("refs", S_IFDIR | 0755, 2, NULL, 0), GIT_ADMIT);
	assert_int_equal(verdict("refs", S_IFLNK | 0777, 1, NULL, 0), GIT_REFUSE);
	assert_int_equal(verdict("x.lock", S_IFREG | 0644, 1, NULL, 0), GIT_DROP);
	assert_int_equal(verdict("x.lock", S_IFLNK | 0777, 1, NULL, 0), GIT_REFUSE);
	assert_int_equal(verdict("MERGE_HEAD", S_IFREG | 0644, 1, SIZED(ID "\n")), GIT_REPORT);
	assert_int_equal(verdict("objects/ab/cdef0123456789abcdef0123456789abcdef01",
				 S_IFREG | 0444, 2, SIZED("\x78\x01")),
			 GIT_COPY);
	assert_int_equal(verdict("objects/ab/cdef0123456789abcdef0123456789abcdef01",
				 S_IFREG | 0444, 2, SIZED("abc")),
			 GIT_REFUSE);
	assert_int_equal(verdict("config", S_IFREG | 0644, 1, SIZED(config)), GIT_CONFIRM);
	assert_int_equal(
		verdict("config", S_IFREG | 0644, 1, SIZED("[branch \"m\"]\n\tremote = o\n")),
		GIT_REFUSE);
	assert_int_equal(verdict("index", S_IFREG | 0644, 1, NULL, 0), GIT_REFUSE);
	assert_int_equal(git_judge(&(struct git_file){ .path = "HEAD",
						       .mode = S_IFREG | 0644,
						       .links = 1,
						       .bytes = (const uint8_t *)ID "\n",
						       .n = 41,
						       .size = 41 })
				 .verdict,
			 GIT_REFUSE); /* no size of ids */
	assert_int_equal(git_judge(&(struct git_file){ .path = "HEAD",
						       .hash = GIT_SHA1,
						       .mode = S_IFREG | 0644,
						       .links = 1,
						       .bytes = (const uint8_t *)ID "\n",
						       .n = 41,
						       .size = 42 })
				 .verdict,
			 GIT_REFUSE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha1_is_the_standard_s),
		cmocka_unit_test(paths_into_git_directories_are_refused),
		cmocka_unit_test(names_of_refs_are_checked),
		cmocka_unit_test(files_of_refs_are_an_id_or_a_name),
		cmocka_unit_test(packed_refs_and_reflogs_are_read),
		cmocka_unit_test(pointers_have_one_form),
		cmocka_unit_test(an_index_that_git_would_act_on_is_refused),
		cmocka_unit_test(entries_are_in_order_and_apart),
		cmocka_unit_test(extensions_say_what_the_entries_say),
		cmocka_unit_test(todo_lists_run_nothing),
		cmocka_unit_test(state_files_have_their_forms),
		cmocka_unit_test(objects_begin_as_git_writes_them),
		cmocka_unit_test(the_table_knows_every_place),
		cmocka_unit_test(settings_are_allowed_by_key_and_value),
		cmocka_unit_test(configuration_has_one_form),
		cmocka_unit_test(a_file_is_judged_by_name_type_and_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
