/* Following paths: as the kernel resolves them, and what of that the scan guards. */
#include "guard_help.h"

#include <limits.h>

#include "guard/guard.h"
#include "guard/guard_trail.h"
#include "policy/command.h"

struct trail {
	struct buf text;
	size_t skip; /* of each path: the root */
};

static int tell(void *ctx, const struct trail_place *place)
{
	struct trail *trail = ctx;

	buf_printf(&trail->text, "%c%s", "LBEM"[place->kind],
		   strlen(place->path) > trail -> skip ? place -> path + trail -> skip : "/");
	if (*place->text)
		buf_printf(&trail->text, ">%s", place->text);
	buf_puts(&trail->text, " ");
	return 0;
}

static void assert_trail(struct tree *t, const char *from, const char *path, const char *wanted)
{
	struct trail trail = { .skip = strlen(t->path) };
	struct trail_root root = trail_root_at(t->path, t->fd);
	char dir[512];

	snprintf(dir, sizeof(dir), "%s%s%s", t->path, *from ? "/" : "", from);
	assert_int_equal(trail_follow(dir, path, &root, tell, &trail), 0);
	assert_string_equal(buf_text(&trail.text), wanted);
	buf_free(&trail.text);
}

static void paths_are_followed_as_the_kernel_does(void **state unused_arg)
{
	struct tree t;
	char absolute[512], wanted[1200];

	tree_make(&t);
	tree_put(&t, "real/deep/file", "x");
	tree_put(&t, "other", "x");
	tree_link(&t, "l", "real/deep");
	tree_link(&t, "chain", "l");
	tree_link(&t, "loop", "loop");
	tree_link(&t, "dangling", "real/none/x");
	tree_link(&t, "real/up", "../..//./");
	snprintf(absolute, sizeof(absolute), "%s/real/deep/file", t.path);
	tree_link(&t, "absolute", absolute);
	assert_trail(&t, "", "other", "E/other ");
	assert_trail(&t, "", ".//real/./deep/file", "E/real/deep/file ");
	assert_trail(&t, "", "l/file", "L/l>real/deep E/real/deep/file ");
	/* ".." goes up from where the link led */
	assert_trail(&t, "", "l/../deep/file", "L/l>real/deep B/real/deep E/real/deep/file ");
	assert_trail(&t, "", "chain/../../other",
		     "L/chain>l L/l>real/deep B/real/deep B/real E/other ");
	assert_trail(&t, "", "loop",
		     "L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop L/loop>loop "
		     "L/loop>loop L/loop>loop ");
	assert_trail(&t, "", "dangling", "L/dangling>real/none/x M/real/none>x ");
	assert_trail(&t, "", "none/../other", "M/none>../other ");
	assert_trail(&t, "", "other/x",
		     "M/other>x "); /* a file where a directory is wanted can be replaced */
	snprintf(wanted, sizeof(wanted), "L/absolute>%s E/real/deep/file ", absolute);
	assert_trail(&t, "", "absolute", wanted);
	tree_remove(&t);
}

/* The kernel's own answer is the measure: whatever it opens is where the trail ends. */
static int note_end(void *ctx, const struct trail_place *place)
{
	if (place->kind == TRAIL_END)
		snprintf(ctx, PATH_MAX, "%s", place->path);
	return 0;
}

static void random_links_end_where_the_kernel_ends(void **state unused_arg)
{
	static const char *const words[] = { "a", "b",  "c",  "d/e", "..", ".",  "a/..",
					     "d", "l0", "l1", "l2",  "l3", "l4", "l5" };
	unsigned seed = 7;

	for (int round = 0; round < 60; round++) {
		struct tree t;
		struct trail_root root;

		tree_make(&t);
		root = trail_root_at(t.path, t.fd);
		tree_put(&t, "a/b/c/file", "x");
		tree_put(&t, "b/d/e/file", "x");
		tree_put(&t, "d/e/a/file", "x");
		for (int i = 0; i < 6; i++) {
			char name[8], target[256] = "";

			snprintf(name, sizeof(name), "l%d", i);
			if (rand_r(&seed) % 4 == 0)
				snprintf(target, sizeof(target), "%s/", t.path);
			for (int k = rand_r(&seed) % 4; k >= 0; k--) {
				strcat(target, words[rand_r(&seed) % ARRAY_LEN(words)]);
				strcat(target, k ? "/" : "");
			}
			tree_link(&t, name, target);
		}
		for (int i = 0; i < 200; i++) {
			char path[256] = "", full[512], end[PATH_MAX] = "", *real;

			for (int k = rand_r(&seed) % 5; k >= 0; k--) {
				strcat(path, words[rand_r(&seed) % ARRAY_LEN(words)]);
				strcat(path, k ? "/" : "");
			}
			snprintf(full, sizeof(full), "%s/%s", t.path, path);
			real = realpath(full, NULL);
			assert_int_equal(trail_follow(t.path, path, &root, note_end, end), 0);
			assert_string_equal(end, real ? real : "");
			free(real);
		}
		tree_remove(&t);
	}
}

static void every_part_of_a_chain_is_guarded(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, ".vscode/settings.json", "x");
	tree_put(&t, "end/tasks.json", "x");
	tree_put(&t, "side/way/x", "x");
	tree_link(&t, "side/one", "way/../../two");
	tree_link(&t, "two", "end/tasks.json");
	tree_link(&t, ".vscode/tasks.json", "../side/one");
	tree_link(&t, ".vscode/late.json", "../gone/away/late.json");
	tree_link(&t, ".mcp.json", "odd/../x");
	tree_scan(&t, &g, list_of(NULL), list_of(NULL));
	assert_string_equal(steps_text(&g, &b),
			    "R .vscode/ P end/ R end/tasks.json P side/ P side/way/ ");
	assert_string_equal(list_text(&g.links, &b),
			    ".mcp.json\nodd/../x side/one\nway/../../two two\nend/tasks.json ");
	assert_true(ignore_match(g.protect, "gone/away/late.json", false));
	assert_true(ignore_match(g.protect_links, "gone/away", true));
	assert_true(ignore_match(g.protect, "odd", true));
	assert_true(ignore_match(g.protect_links, "side/way", true));
	assert_false(ignore_match(g.protect, "side/way", true));
	guard_clear(&g);
	tree_remove(&t);
}

static void exceptions_are_for_one_name(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	struct walk_entry entry = { .name = "worktrees",
				    .path = ".claude/worktrees",
				    .path_len = 17,
				    .name_at = 8,
				    .type = DT_DIR };

	tree_make(&t);
	tree_scan(&t, &g, list_of(NULL), list_of(NULL));
	assert_false(guard_is_protected(&g, &entry));
	assert_false(guard_is_released(&g, ".claude/worktrees",
				       true)); /* git directories there are looked at */
	entry.type = DT_LNK;
	assert_true(guard_is_protected(&g, &entry));
	guard_clear(&g);
	tree_scan(&t, &g, list_of(NULL), list_of(".claude/worktrees/", NULL));
	entry.type = DT_DIR;
	assert_true(guard_is_protected(&g, &entry)); /* the policy has the last word */
	guard_clear(&g);
	tree_remove(&t);
}

static int add_word(void *ctx, const struct command_word *word)
{
	buf_printf(ctx, "%s%s%s%s%s ", word->is_expanded ? "$" : "", word->is_directory ? "@" : "",
		   word->is_script ? "#" : "", word->text, word->is_first ? "!" : "");
	return 0;
}

static void assert_words(const char *text, const char *wanted, bool opaque)
{
	auto_buf b = { 0 };
	bool is_opaque = !opaque;

	assert_int_equal(command_words(text, strlen(text), add_word, &b, &is_opaque), 0);
	assert_string_equal(buf_text(&b), wanted);
	assert_int_equal(is_opaque, opaque);
}

static void words_of_commands(void **state unused_arg)
{
	assert_words("tools/clean %f", "tools/clean! %f ", false);
	assert_words("cd tools && ./clean", "cd! @tools ./clean! ", true);
	assert_words("timeout 5 tools/clean", "timeout! 5! tools/clean ", false);
	assert_words("env X=1 python3.11 -E tools/f.py", "env! X! 1 python3.11 #-E #tools/f.py ",
		     false);
	assert_words("$(git rev-parse --show-toplevel)/x", "git! rev-parse --show-toplevel $/x ",
		     true);
	assert_words("\"$PWD\"/x", "$PWD! $/x ", true);
	assert_words("sh -c 'a/b c'", "sh! #-c #a/b c #a/b c ", false);
	assert_words("a\\ b/c", "a b/c! ", false);
	assert_words("", "", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_followed_as_the_kernel_does),
		cmocka_unit_test(random_links_end_where_the_kernel_ends),
		cmocka_unit_test(every_part_of_a_chain_is_guarded),
		cmocka_unit_test(exceptions_are_for_one_name),
		cmocka_unit_test(words_of_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
