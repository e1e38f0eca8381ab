/* The scan: what it hides, protects and pins, and what it leaves alone. */
#include "guard_help.h"

#include "guard/guard.h"
#include "model/guard.h"

static void plain_tree_has_no_steps(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, "src/main.c", "x");
	tree_put(&t, "config", "x");
	tree_put(&t, "hooks/a", "x");
	tree_put(&t, "CLAUDE.md", "x");
	tree_put(&t, ".claude/CLAUDE.md", "x");
	tree_put(&t, "sub/tools.yaml", "x");
	tree_scan(&t, &g, list_of(NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b), "");
	assert_int_equal(g.baseline.len, 0);
	assert_true(g.since_ns > 0);
	guard_clear(&g);
	tree_remove(&t);
}

static void protected_names_are_readonly(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, ".git/config", "x");
	tree_put(&t, ".git/HEAD", "x");
	tree_put(&t, ".git/hooks/pre-commit", "x");
	tree_put(&t, ".git/refs/heads/ward.yaml", "x");
	tree_put(&t, ".envrc", "x");
	tree_put(&t, "a/b/.vscode/settings.json", "x");
	tree_put(&t, "a/c/.claude/settings.json", "x");
	tree_put(&t, "ward.yaml", "x");
	tree_scan(&t, &g, list_of(NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b), "R .envrc P .git/ R .git/config R .git/hooks/ P a/ "
						"P a/b/ R a/b/.vscode/ P a/c/ P a/c/.claude/ "
						"R a/c/.claude/settings.json R ward.yaml ");
	assert_string_equal(
		list_text(&g.baseline, &b),
		".envrc .git/config .git/hooks/ a/b/.vscode/ a/c/.claude/settings.json ward.yaml ");
	assert_string_equal(list_text(&g.repositories, &b), ".git ");
	guard_clear(&g);
	tree_remove(&t);
}

/* Names such as "d-x" sort between "d" and "d/x": each is found by its own name, and by no part of
 * it. */
static void a_step_is_found_among_its_likes(void **state unused_arg)
{
	static const char *const paths[] = { "a",   "d",     "d-1",   "d-1/x", "d-2",  "d.c",
					     "d/x", "d/x-1", "d/x/y", "dd",    "dd/d", "e/d" };
	struct guard_root g = { 0 };
	auto_buf b = { 0 };
	struct ward_err e = { 0 };

	for (size_t i = ARRAY_LEN(paths); i-- > 0;)
		assert_int_equal(guard_add_step(&g, GUARD_READONLY, paths[i], false, &e), 0);
	for (size_t i = 0; i < g.step_count / 2; i++) { /* sorted, as they are looked for */
		struct guard_step swap = g.steps[i];

		g.steps[i] = g.steps[g.step_count - 1 - i];
		g.steps[g.step_count - 1 - i] = swap;
	}
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char longer[16];

		snprintf(longer, sizeof(longer), "%s/z", paths[i]);
		assert_ptr_equal(guard_find_step(&g, g.step_count, longer, strlen(paths[i])),
				 &g.steps[i]);
		assert_null(guard_find_step(&g, g.step_count, longer, strlen(longer)));
		assert_null(guard_find_step(&g, i, longer, strlen(paths[i])));
	}
	assert_null(guard_find_step(&g, g.step_count, "d-", 2));
	assert_null(guard_find_step(&g, g.step_count, "e", 1));
	assert_int_equal(guard_finish_steps(&g, &e), 0);
	assert_string_equal(steps_text(&g, &b), "R a R d R d-1 R d-2 R d.c R dd R e/d ");
	guard_clear(&g);
}

static void policy_adds_and_takes_out(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, ".git/config", "x");
	tree_put(&t, ".git/hooks/a", "x");
	tree_put(&t, ".envrc", "x");
	tree_put(&t, "keep/a", "x");
	tree_put(&t, ".vscode/a", "x");
	tree_scan(&t, &g, list_of(NULL), list_of("keep/", "!.git/config", "!.vscode", NULL));
	assert_string_equal(steps_text(&g, &b), "R .envrc P .git/ R .git/hooks/ R keep/ ");
	guard_clear(&g);
	tree_scan(&t, &g, list_of(NULL), list_of("!.git", "!.*", NULL));
	assert_string_equal(steps_text(&g, &b), "");
	guard_clear(&g);
	tree_remove(&t);
}

static void hidden_names_and_what_is_beneath(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, ".env", "x");
	tree_put(&t, "a/b.key", "x");
	tree_put(&t, "secret/.git/config", "x");
	tree_put(&t, "secret/b.key", "x");
	tree_put(&t, ".vscode/my.key", "x");
	tree_scan(&t, &g, list_of(".env", "*.key", "secret/", NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b),
			    "H .env R .vscode/ H .vscode/my.key P a/ H a/b.key H secret/ ");
	guard_clear(&g);
	tree_remove(&t);
}

static void aiignore_adds_but_takes_nothing_away(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, ".aiignore", "!.env\nprivate\n");
	tree_put(&t, ".env", "x");
	tree_put(&t, "private", "x");
	tree_put(&t, "sub/.aiignore", "/only\n!private\n");
	tree_put(&t, "sub/only", "x");
	tree_put(&t, "sub/private", "x");
	tree_put(&t, "sub/deeper/only", "x");
	tree_put(&t, "sub/deeper/private", "x");
	tree_put(&t, "only", "x");
	tree_scan(&t, &g, list_of(".env", NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b),
			    "R .aiignore H .env H private P sub/ R sub/.aiignore H sub/only ");
	guard_clear(&g);
	tree_remove(&t);
}

static void bad_aiignore_is_an_error(void **state unused_arg)
{
	struct strv none = { 0 };
	struct ward_err e = { 0 };
	struct guard_root g = { .writable = true, .shares_git = true };
	struct tree t;

	tree_make(&t);
	assert_int_equal(mkfifoat(t.fd, ".aiignore", 0600), 0);
	g.path = strdup(t.path);
	assert_true(guard_compile(&g, &none, &none, &e) < 0);
	assert_non_null(strstr(e.why, "not a regular file"));
	assert_true(e.remedy[0]);
	assert_int_equal(unlinkat(t.fd, ".aiignore", 0), 0);
	tree_link(&t, ".aiignore", "/etc/passwd");
	assert_true(guard_compile(&g, &none, &none, &e) < 0);
	guard_clear(&g);
	tree_remove(&t);
}

static void links_are_not_followed_but_their_targets_are_guarded(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, "conf/prod", "x");
	tree_link(&t, ".env", "conf/prod");
	tree_put(&t, "shared/vs/settings.json", "x");
	tree_link(&t, "sub/.vscode", "../shared/vs");
	tree_link(&t, ".claude", "shared/claude");
	tree_put(&t, "shared/claude/settings.json", "x");
	tree_link(&t, ".envrc", "/etc/passwd");
	tree_scan(&t, &g, list_of(".env", NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b),
			    "P conf/ H conf/prod P shared/ R shared/claude/ R shared/vs/ P sub/ ");
	assert_string_equal(
		list_text(&g.links, &b),
		".claude\nshared/claude .envrc\n/etc/passwd sub/.vscode\n../shared/vs ");
	guard_clear(&g);
	tree_remove(&t);
}

static void repositories_are_known_by_their_parts(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, "bare/HEAD", "x");
	tree_put(&t, "bare/objects/pack/", "");
	tree_put(&t, "bare/refs/heads/", "");
	tree_put(&t, "bare/config", "x");
	tree_put(&t, ".git/HEAD", "x");
	tree_put(&t, ".git/modules/a/b/HEAD", "x");
	tree_put(&t, ".git/modules/a/b/objects/x", "x");
	tree_put(&t, ".git/modules/a/b/refs/config", "x");
	tree_put(&t, ".git/modules/a/b/config", "x");
	tree_put(&t, ".git/modules/a/b/hooks/x", "x");
	tree_put(&t, ".git/worktrees/w/HEAD", "x");
	tree_put(&t, ".git/worktrees/w/commondir", "../..\n");
	tree_put(&t, ".git/worktrees/w/config.worktree", "");
	tree_put(&t, "w/.git", "gitdir: x\n");
	tree_scan(&t, &g, list_of(NULL), list_of(NULL));
	assert_string_equal(
		steps_text(&g, &b),
		"P .git/ P .git/modules/ P .git/modules/a/ P .git/modules/a/b/ R "
		".git/modules/a/b/config "
		"R .git/modules/a/b/hooks/ P .git/worktrees/ P .git/worktrees/w/ R "
		".git/worktrees/w/commondir "
		"R .git/worktrees/w/config.worktree P bare/ R bare/config P w/ R w/.git ");
	assert_string_equal(list_text(&g.repositories, &b),
			    ".git .git/modules/a/b .git/worktrees/w bare ");
	guard_clear(&g);
	tree_remove(&t);
}

static void the_root_may_be_a_repository(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, "HEAD", "x");
	tree_put(&t, "objects/a", "x");
	tree_put(&t, "refs/a", "x");
	tree_put(&t, "config", "x");
	tree_put(&t, "hooks/a", "x");
	tree_scan(&t, &g, list_of("config", NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b), "H config R hooks/ ");
	assert_string_equal(list_text(&g.repositories, &b), ". ");
	guard_clear(&g);
	tree_remove(&t);
}

static void second_names_share_the_lot(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, ".env", "x");
	tree_put(&t, ".envrc", "x");
	tree_put(&t, "a/x", "x");
	assert_int_equal(linkat(t.fd, ".env", t.fd, "a/secret", 0), 0);
	assert_int_equal(linkat(t.fd, ".envrc", t.fd, "a/script", 0), 0);
	tree_scan(&t, &g, list_of(".env", NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b), "H .env R .envrc P a/ R a/script H a/secret ");
	guard_clear(&g);
	tree_remove(&t);
}

static void git_leads_to_protected_places(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, "sub/.git/HEAD", "x");
	tree_put(&t, "sub/.git/config",
		 "[core]\n\thooksPath = .githooks\n[include]\n\tpath = ../team/gitconfig\n"
		 "\tpath = ~/.gitconfig\n\tpath = /etc/gitconfig\n");
	tree_put(&t, "sub/.githooks/pre-commit", "x");
	tree_put(&t, "sub/team/gitconfig",
		 "[core]\n\tfsmonitor = tools/monitor\n[include]\n\tpath = missing\n\tpath = "
		 "gitconfig\n");
	tree_put(&t, "sub/tools/monitor", "x");
	tree_scan(&t, &g, list_of(NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b),
			    "P sub/ P sub/.git/ R sub/.git/config R sub/.githooks/ P sub/team/ "
			    "R sub/team/gitconfig P sub/tools/ R sub/tools/monitor ");
	assert_true(strv_has(&g.rules, "/sub/team/missing"));
	assert_true(ignore_match(g.protect, "sub/team/missing", false));
	assert_true(strv_has(&g.baseline, "sub/.githooks/"));
	guard_clear(&g);
	tree_scan(&t, &g, list_of(NULL), list_of("!.githooks", NULL));
	assert_null(strstr(steps_text(&g, &b), "githooks"));
	guard_clear(&g);
	tree_remove(&t);
}

static void unreadable_directories_become_readonly(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, "a/closed/.env", "x");
	assert_int_equal(fchmodat(t.fd, "a/closed", 0, 0), 0);
	tree_scan(&t, &g, list_of(".env", NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b), geteuid() == 0 ? "P a/ P a/closed/ H a/closed/.env "
							       : "P a/ R a/closed/ ");
	guard_clear(&g);
	tree_remove(&t);
}

static void many_names_are_an_error(void **state unused_arg)
{
	struct strv hide = list_of("*", NULL), none = { 0 };
	struct ward_err e = { 0 };
	struct guard_root g = { .writable = true, .shares_git = true };
	struct tree t;
	char name[32];

	tree_make(&t);
	for (int i = 0; i < 8200; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(mknodat(t.fd, name, S_IFREG | 0600, 0), 0);
	}
	g.path = strdup(t.path);
	assert_int_equal(guard_compile(&g, &hide, &none, &e), 0);
	assert_int_equal(guard_scan(&g, t.fd, &e), -E2BIG);
	assert_non_null(strstr(e.remedy, "protect"));
	strv_free(&hide);
	guard_clear(&g);
	tree_remove(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_tree_has_no_steps),
		cmocka_unit_test(protected_names_are_readonly),
		cmocka_unit_test(a_step_is_found_among_its_likes),
		cmocka_unit_test(policy_adds_and_takes_out),
		cmocka_unit_test(hidden_names_and_what_is_beneath),
		cmocka_unit_test(aiignore_adds_but_takes_nothing_away),
		cmocka_unit_test(bad_aiignore_is_an_error),
		cmocka_unit_test(links_are_not_followed_but_their_targets_are_guarded),
		cmocka_unit_test(repositories_are_known_by_their_parts),
		cmocka_unit_test(the_root_may_be_a_repository),
		cmocka_unit_test(second_names_share_the_lot),
		cmocka_unit_test(git_leads_to_protected_places),
		cmocka_unit_test(unreadable_directories_become_readonly),
		cmocka_unit_test(many_names_are_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
