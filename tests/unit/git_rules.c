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
		cmocka_unit_test(todo_lists_run_nothing),
		cmocka_unit_test(state_files_have_their_forms),
		cmocka_unit_test(objects_begin_as_git_writes_them),
		cmocka_unit_test(the_table_knows_every_place),
		cmocka_unit_test(a_file_is_judged_by_name_type_and_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
