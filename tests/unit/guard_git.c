/* Git's directories outside the workspace, and the judgement over git configuration. */
#include "guard_help.h"

#include "guard/guard.h"
#include "policy/gitconfig.h"
#include "rules/git_state.h"

static void put_repo(struct tree *t, const char *dir)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/HEAD", dir);
	tree_put(t, path, "ref: refs/heads/main\n");
	snprintf(path, sizeof(path), "%s/objects/", dir);
	tree_put(t, path, "");
	snprintf(path, sizeof(path), "%s/refs/", dir);
	tree_put(t, path, "");
}

/* What guard_git_dirs() says about t/tree: 1 let in, 0 nothing, -1 refused with a note. */
static int ask(struct tree *t, const char *expect)
{
	char workspace[128], want[256];
	struct strv dirs = { 0 }, notes = { 0 };
	struct ward_err e = { 0 };
	int answer;

	snprintf(workspace, sizeof(workspace), "%s/tree", t->path);
	assert_int_equal(guard_git_dirs(workspace, &dirs, &notes, &e), 0);
	answer = dirs.len ? 1 : notes.len ? -1 : 0;
	if (answer == 1) {
		snprintf(want, sizeof(want), "%s/%s", t->path, expect);
		assert_string_equal(dirs.items[0], want);
	} else if (answer == -1) {
		assert_non_null(strstr(notes.items[0], expect));
	}
	strv_free(&dirs);
	strv_free(&notes);
	return answer;
}

static void linked_worktrees_are_let_in(void **state unused_arg)
{
	struct tree t;
	char text[256];

	tree_make(&t);
	put_repo(&t, "repo/.git");
	tree_put(&t, "repo/.git/worktrees/w/HEAD", "x");
	tree_put(&t, "repo/.git/worktrees/w/commondir", "../..\n");
	snprintf(text, sizeof(text), "%s/tree/.git\n", t.path);
	tree_put(&t, "repo/.git/worktrees/w/gitdir", text);
	snprintf(text, sizeof(text), "gitdir: %s/repo/.git/worktrees/w\n", t.path);
	tree_put(&t, "tree/.git", text);
	assert_int_equal(ask(&t, "repo/.git"), 1);
	tree_put(&t, "repo/.git/worktrees/w/gitdir", "/somewhere/else/.git\n");
	assert_int_equal(ask(&t, "does not point back"), -1);
	tree_put(&t, "repo/.git/worktrees/w/gitdir", "../../../../tree/.git\n");
	assert_int_equal(ask(&t, "repo/.git"), 1);
	tree_put(&t, "repo/.git/worktrees/w/commondir", "../../..\n");
	assert_int_equal(ask(&t, "no repository"), -1);
	put_repo(&t, "repo");
	assert_int_equal(ask(&t, "not among the worktrees"), -1);
	tree_remove(&t);
}

static void submodules_are_let_in(void **state unused_arg)
{
	struct tree t;

	tree_make(&t);
	put_repo(&t, "super/.git/modules/sub");
	tree_put(&t, "super/.git/modules/sub/config", "[core]\n\tworktree = ../../../../tree\n");
	tree_put(&t, "tree/.git", "gitdir: ../super/.git/modules/sub\n");
	assert_int_equal(ask(&t, "super/.git/modules/sub"), 1);
	tree_put(&t, "super/.git/modules/sub/config", "[core]\n\tworktree = ../../../../other\n");
	assert_int_equal(ask(&t, "does not point back"), -1);
	tree_put(&t, "super/.git/modules/sub/config", "[core\n");
	assert_int_equal(ask(&t, "configuration"), -1);
	if (geteuid() == 0) {
		tree_put(&t, "super/.git/modules/sub/config",
			 "[core]\n\tworktree = ../../../../tree\n");
		assert_int_equal(fchownat(t.fd, "super/.git/modules/sub", 12345, 0, 0), 0);
		assert_int_equal(ask(&t, "owner"), -1);
	}
	tree_remove(&t);
}

static void foreign_directories_are_not(void **state unused_arg)
{
	struct tree t;

	tree_make(&t);
	tree_put(&t, "keys/id_ed25519", "secret");
	tree_put(&t, "tree/.git", "gitdir: ../keys\n");
	assert_int_equal(ask(&t, "not a repository"), -1);
	tree_put(&t, "tree/.git", "gitdir: /nonexistent\n");
	assert_int_equal(ask(&t, "not a directory"), -1);
	put_repo(&t, "other/.git");
	tree_put(&t, "other/.git/config", "[core]\n\tbare = false\n");
	tree_put(&t, "tree/.git", "gitdir: ../other/.git\n");
	assert_int_equal(ask(&t, "does not point back"), -1);
	tree_put(&t, "tree/.git", "nothing of git's");
	assert_int_equal(ask(&t, ""), 0);
	assert_int_equal(unlinkat(t.fd, "tree/.git", 0), 0);
	assert_int_equal(ask(&t, ""), 0);
	tree_link(&t, "tree/.git", "../other/.git");
	assert_int_equal(ask(&t, ""), 0);
	tree_remove(&t);
}

static int collect(void *ctx, const struct gitconfig_entry *entry)
{
	buf_printf(ctx, "%s|%s|%s=%s;", entry->section, entry->subsection, entry->key,
		   entry->value ? entry->value : "(none)");
	return 0;
}

static void configuration_is_read_as_git_reads_it(void **state unused_arg)
{
	static const struct {
		const char *text, *expect; /* NULL: git would refuse it */
	} cases[] = {
		{ "[core]\n\tbare = false\n", "core||bare=false;" },
		{ "[CORE]Bare\n", "core||bare=(none);" },
		{ "[a \"B.c\"] k = v ; comment\n", "a|B.c|k=v;" },
		{ "[a.B] k = v # c\r\n", "a|b|k=v;" },
		{ "[a]k = \"x ; y\" z\n", "a||k=x ; y z;" },
		{ "[a]k = one\\\n two\n", "a||k=one two;" },
		{ "[a]k = x\\ty\\\\\\\"\n", "a||k=x\ty\\\";" },
		{ "[a \"x\\\"y\"]\nk=\n", "a|x\"y|k=;" },
		{ "# [x]\n;y\n[a]\n k=1\n k=2", "a||k=1;a||k=2;" },
		{ "\xef\xbb\xbf[a]k=v", "a||k=v;" },
		{ "k = v\n", "||k=v;" },
		{ "", "" },
		{ "[a\nk = v\n", NULL },
		{ "[a \"b]\nk = v\n", NULL },
		{ "[a \"b\" ]\nk = v\n", NULL },
		{ "[a]k = \"open\n", NULL },
		{ "[a]k = \\q\n", NULL },
		{ "[a]9 = x\n", NULL },
		{ "[a]k x\n", NULL },
		{ "]\n", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf b = { 0 };
		int status = gitconfig_read(cases[i].text, strlen(cases[i].text), collect, &b);

		assert_int_equal(status, cases[i].expect ? 0 : -EINVAL);
		if (cases[i].expect)
			assert_string_equal(buf_text(&b), cases[i].expect);
	}
	assert_int_equal(gitconfig_read("[a]\nk=\0\n", 8, collect, &(struct buf){ 0 }), -EINVAL);
}

static void lists_that_run_something_are_known(void **state unused_arg)
{
	static const struct {
		const char *text;
		const char *runs;
	} rows[] = {
		{ "", "" },
		{ "pick 1234 exec x\n# exec y\nfixup 1234 x\n", "" },
		{ "executor\nx1\n", "executor;x1;" },
		{ "exec touch x", "exec touch x;" },
		{ "pick 1234\n \t x touch y\n", " \t x touch y;" },
		{ "x", "x;" },
		{ "pick 1234\nexec\t\tx\n", "exec\t\tx;" },
		{ "exe", "exe;" },
		{ "exec\r\n", "exec\r;" },
		{ "exec a b\r\npick 1234\nx c\n", "exec a b\r;x c;" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf got = { 0 };
		const char *command;
		size_t at = 0, len;

		while ((command = git_todo_next_refused((const uint8_t *)rows[i].text,
							strlen(rows[i].text), &at, &len)))
			buf_printf(&got, "%.*s;", (int)len, command);
		assert_string_equal(buf_text(&got), rows[i].runs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linked_worktrees_are_let_in),
		cmocka_unit_test(submodules_are_let_in),
		cmocka_unit_test(foreign_directories_are_not),
		cmocka_unit_test(configuration_is_read_as_git_reads_it),
		cmocka_unit_test(lists_that_run_something_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
