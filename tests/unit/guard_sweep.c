/* The sweep: what is planted goes to the quarantine, what was there or is harmless stays, hostile
 * trees do not stop it. */
#include "guard_help.h"

#include <sys/mount.h>
#include <sys/resource.h>

#include "guard/guard_judge.h"
#include "guard/guard_move.h"

struct place {
	struct tree t, q; /* the tree and the quarantine */
	struct guard_root g;
	struct strv moved;
};

static int begin(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	tree_make(&p->t);
	tree_make(&p->q);
	*state = p;
	return 0;
}

static int end(void **state)
{
	struct place *p = *state;

	guard_clear(&p->g);
	strv_free(&p->moved);
	tree_remove(&p->t);
	tree_remove(&p->q);
	free(p);
	return 0;
}

static void scan(struct place *p)
{
	tree_scan(&p->t, &p->g, list_of(NULL), list_of(NULL));
}

static void sweep(struct place *p)
{
	struct ward_err e = { 0 };

	if (guard_sweep(&p->g, p->t.fd, p->q.fd, &p->moved, &e) < 0)
		fail_msg("%s: %s", e.what, e.why);
}

static void assert_moved(struct place *p, const char *path, const char *why)
{
	for (size_t i = 0; i < p->moved.len; i++)
		if (strncmp(p->moved.items[i], path, strlen(path)) == 0 &&
		    p->moved.items[i][strlen(path)] == ':') {
			assert_non_null(strstr(p->moved.items[i], why));
			assert_false(tree_has(&p->t, path));
			assert_true(tree_has(&p->q, path));
			return;
		}
	fail_msg("%s was not moved", path);
}

static void new_repo(struct place *p, const char *dir, const char *config)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/HEAD", dir);
	tree_put(&p->t, path, "ref: refs/heads/main\n");
	snprintf(path, sizeof(path), "%s/objects/info/", dir);
	tree_put(&p->t, path, "");
	snprintf(path, sizeof(path), "%s/refs/heads/", dir);
	tree_put(&p->t, path, "");
	snprintf(path, sizeof(path), "%s/hooks/pre-commit.sample", dir);
	tree_put(&p->t, path, "#!/bin/sh\n");
	snprintf(path, sizeof(path), "%s/config", dir);
	tree_put(&p->t, path, config);
}

static void planted_names_are_moved(void **state)
{
	struct place *p = *state;

	tree_put(&p->t, ".envrc", "mine");
	tree_put(&p->t, "old/a", "x");
	scan(p);
	tree_put(&p->t, ".bashrc", "evil");
	tree_put(&p->t, "old/.vscode/tasks.json", "evil");
	tree_put(&p->t, "new/deep/.claude/settings.json", "evil");
	tree_put(&p->t, "new/deep/.claude/CLAUDE.md", "fine");
	tree_put(&p->t, "odd\nname/.mcp.json", "evil");
	tree_put(&p->t, "plain.c", "fine");
	sweep(p);
	assert_int_equal(p->moved.len, 4);
	assert_moved(p, ".bashrc", "bash");
	assert_moved(p, "old/.vscode", "opened");
	assert_true(tree_has(&p->q, "old/.vscode/tasks.json"));
	assert_moved(p, "new/deep/.claude/settings.json", "Claude");
	assert_moved(p, "odd\nname/.mcp.json", "tool servers");
	assert_true(tree_has(&p->t, ".envrc"));
	assert_true(tree_has(&p->t, "new/deep/.claude/CLAUDE.md"));
	assert_true(tree_has(&p->t, "plain.c"));
}

static void links_are_moved_as_links(void **state)
{
	struct place *p = *state;
	char target[64] = { 0 };

	tree_put(&p->t, "evil/settings.json", "x");
	tree_link(&p->t, "sub/.idea", "../evil");
	scan(p);
	tree_link(&p->t, ".claude", "evil");
	tree_link(&p->t, ".vscode", "/etc");
	tree_link(&p->t, "harmless", "/etc");
	assert_int_equal(unlinkat(p->t.fd, "sub/.idea", 0), 0);
	tree_link(&p->t, "sub/.idea", "../evil2");
	sweep(p);
	assert_int_equal(p->moved.len, 3);
	assert_moved(p, ".claude", "link");
	assert_moved(p, ".vscode", "opened");
	/* the new one is gone, and the old one back */
	assert_true(readlinkat(p->q.fd, "sub/.idea", target, sizeof(target)) == 8);
	assert_true(readlinkat(p->t.fd, "sub/.idea", target, sizeof(target)) == 7);
	assert_memory_equal(target, "../evil", 7);
	assert_true(readlinkat(p->q.fd, ".vscode", target, sizeof(target)) == 4);
	assert_true(tree_has(&p->t, "harmless"));
	assert_true(tree_has(&p->t, "evil/settings.json"));
}

static void unchanged_links_stay(void **state)
{
	struct place *p = *state;

	tree_put(&p->t, "real/a", "x");
	tree_link(&p->t, ".vscode", "real");
	tree_link(&p->t, ".git", "elsewhere");
	scan(p);
	sweep(p);
	assert_int_equal(p->moved.len, 0);
}

static void new_repositories_are_judged(void **state)
{
	struct place *p = *state;

	scan(p);
	new_repo(p, "good/.git",
		 "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/x\n"
		 "[user]\n\tname = x\n");
	new_repo(p, "hook/.git", "[core]\n\tbare = false\n");
	tree_put(&p->t, "hook/.git/hooks/pre-commit", "evil");
	new_repo(p, "config/.git", "[core]\n\tfsmonitor = /tmp/evil\n");
	new_repo(p, "bare", "[include]\n\tpath = ../x\n");
	new_repo(p, "common/.git", "");
	tree_put(&p->t, "common/.git/commondir", "../../half\n");
	tree_put(&p->t, "half/objects/a", "x");
	tree_put(&p->t, "half/refs/a", "x");
	tree_put(&p->t, "half/config", "[core]\n\tpager = evil\n");
	sweep(p);
	assert_int_equal(p->moved.len, 5);
	assert_moved(p, "bare/config", "another file");
	assert_moved(p, "hook/.git/hooks/pre-commit", "program that git runs");
	assert_true(tree_has(&p->t, "hook/.git/hooks/pre-commit.sample"));
	/* in its place is what keeps protected files of the commits away */
	assert_true(tree_has(&p->q, "config/.git/config"));
	assert_true(tree_has(&p->t, "config/.git/info/sparse-checkout"));
	assert_int_equal(unlinkat(p->t.fd, "config/.git/config", 0), 0);
	assert_moved(p, "config/.git/config", "core.fsmonitor");
	assert_moved(p, "bare/HEAD", "as a repository");
	assert_moved(p, "common/.git/commondir", "another directory");
	assert_true(tree_has(&p->t, "good/.git/config"));
}

static void old_repositories_get_no_new_parts(void **state)
{
	struct place *p = *state;

	new_repo(p, ".git", "[core]\n\tsshCommand = mine\n");
	tree_put(&p->t, "second/.git/HEAD", "ref: refs/heads/main\n");
	scan(p);
	tree_put(&p->t, ".git/commondir", "/tmp\n");
	tree_put(&p->t, ".git/config.worktree", "[core]\n\teditor = evil\n");
	tree_put(&p->t, "second/.git/hooks/post-checkout", "evil");
	/* a branch of that name */
	tree_put(&p->t, ".git/refs/heads/ward.yaml", "0123456789012345678901234567890123456789\n");
	tree_put(&p->t, ".git/logs/refs/heads/x/.git/config", "[core]\n\tfsmonitor = evil\n");
	sweep(p);
	assert_int_equal(p->moved.len, 4);
	assert_moved(p, ".git/logs/refs/heads/x/.git", "");
	assert_moved(p, ".git/commondir", "another directory");
	assert_moved(p, ".git/config.worktree", "core.editor");
	assert_moved(p, "second/.git/hooks/post-checkout", "program that git runs");
	assert_true(tree_has(&p->t, ".git/config"));
	assert_true(tree_has(&p->t, ".git/refs/heads/ward.yaml"));
}

static void gitlinks_may_point_inside_only(void **state)
{
	struct place *p = *state;
	char text[256], back[256];

	scan(p);
	new_repo(p, ".git/modules/sub", "[core]\n\tworktree = ../../../sub\n");
	tree_put(&p->t, "sub/.git", "gitdir: ../.git/modules/sub\n");
	snprintf(text, sizeof(text), "gitdir: %s/.git/worktrees/w\n", p->t.path);
	tree_put(&p->t, ".git/worktrees/w/HEAD", "ref: refs/heads/w\n");
	tree_put(&p->t, ".git/worktrees/w/commondir", "../..\n");
	snprintf(back, sizeof(back), "%s/w/.git\n", p->t.path);
	tree_put(&p->t, ".git/worktrees/w/gitdir", back);
	new_repo(p, ".git", "");
	tree_put(&p->t, "w/.git", text);
	tree_put(&p->t, "a/.git", "gitdir: /etc\n");
	tree_put(&p->t, "b/.git", "gitdir: ../../outside\n");
	tree_put(&p->t, "c/.git", "gitdir: ../.git/../../outside\n");
	tree_link(&p->t, "way", "/etc");
	tree_put(&p->t, "d/.git", "gitdir: ../way/x\n");
	tree_link(&p->t, "e/.git", "../.git");
	tree_put(&p->t, "f/.git", "no link at all");
	sweep(p);
	assert_int_equal(p->moved.len, 6);
	assert_moved(p, "f/.git", "does not write like this");
	assert_moved(p, "a/.git", "outside");
	assert_moved(p, "b/.git", "outside");
	assert_moved(p, "c/.git", "outside");
	assert_moved(p, "d/.git", "through a link");
	assert_moved(p, "e/.git", "not a regular file");
	assert_true(tree_has(&p->t, "sub/.git"));
	assert_true(tree_has(&p->t, "w/.git"));
}

static void gitmodules_is_judged(void **state)
{
	struct place *p = *state;

	scan(p);
	tree_put(&p->t, ".gitmodules",
		 "[submodule \"x\"]\n\tpath = x\n\turl = https://example.com/x\n");
	tree_put(&p->t, "a/.gitmodules", "[submodule \"x\"]\n\tupdate = !evil\n");
	tree_put(&p->t, "b/.gitmodules", "[core]\n\tbare = false\n");
	sweep(p);
	assert_int_equal(p->moved.len, 2);
	assert_moved(p, "a/.gitmodules", "command");
	assert_moved(p, "b/.gitmodules", "submodule");
	assert_true(tree_has(&p->t, ".gitmodules"));
}

static void set_id_files_are_moved_without_their_bits(void **state)
{
	struct place *p = *state;
	struct stat st;

	tree_put(&p->t, "old", "x");
	assert_int_equal(fchmodat(p->t.fd, "old", 04755, 0), 0);
	usleep(20000);
	scan(p);
	usleep(20000);
	tree_put(&p->t, "a/new", "x");
	assert_int_equal(fchmodat(p->t.fd, "a/new", 04755, 0), 0);
	tree_put(&p->t, "group", "x");
	assert_int_equal(fchmodat(p->t.fd, "group", 02755, 0), 0);
	sweep(p);
	assert_int_equal(p->moved.len, 2);
	assert_moved(p, "a/new", "set-user-id file (mode 4755");
	assert_moved(p, "group", "set-group-id");
	assert_int_equal(fstatat(p->q.fd, "a/new", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_true(tree_has(&p->t, "old"));
}

static void closed_directories_are_looked_into(void **state)
{
	struct place *p = *state;
	struct stat st;

	scan(p);
	tree_put(&p->t, "a/closed/.envrc", "evil");
	tree_put(&p->t, "a/closed/in/.bashrc", "evil");
	tree_put(&p->t, "a/.vscode/x", "evil");
	assert_int_equal(fchmodat(p->t.fd, "a/closed/in", 0, 0), 0);
	assert_int_equal(fchmodat(p->t.fd, "a/closed", 0, 0), 0);
	assert_int_equal(fchmodat(p->t.fd, "a/.vscode", 0, 0), 0);
	assert_int_equal(fchmodat(p->t.fd, "a", 0555, 0), 0);
	sweep(p);
	assert_int_equal(p->moved.len, 3);
	assert_int_equal(fstatat(p->t.fd, "a", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0555);
	assert_int_equal(fstatat(p->t.fd, "a/closed", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0);
	assert_int_equal(fchmodat(p->t.fd, "a", 0755, 0), 0);
	assert_int_equal(fchmodat(p->t.fd, "a/closed", 0755, 0), 0);
	assert_false(tree_has(&p->t, "a/closed/.envrc"));
	assert_int_equal(fchmodat(p->t.fd, "a/closed/in", 0755, 0), 0);
	assert_false(tree_has(&p->t, "a/closed/in/.bashrc"));
}

/* Makes `levels` directories d in each other below fd. Returns the deepest. */
static int dig(int fd, int levels)
{
	int at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0755), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	return at;
}

static void deep_trees_are_no_hiding_place(void **state)
{
	struct place *p = *state;
	const struct rlimit few = { 128, 128 };
	struct rlimit before;
	int deepest;

	scan(p);
	deepest = dig(p->t.fd, 10000);
	assert_int_equal(mknodat(deepest, ".envrc", S_IFREG | 0644, 0), 0);
	getrlimit(RLIMIT_NOFILE, &before);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ few.rlim_cur, before.rlim_max });
	sweep(p);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(p->moved.len, 1);
	assert_int_equal(faccessat(deepest, ".envrc", F_OK, 0), -1);
	close(deepest);
}

/* Enough files that only directories which changed are read again. */
static void big_trees_are_swept_by_what_changed(void **state)
{
	struct place *p = *state;
	struct stat st;
	char path[64];

	for (int i = 0; i < 1200; i++) {
		snprintf(path, sizeof(path), "d%d/s%d/f%d", i % 10, i % 100, i);
		tree_put(&p->t, path, "x");
	}
	tree_put(&p->t, "moved/conf/x", "x");
	new_repo(p, ".git", "");
	tree_put(&p->t, ".git/rebase-merge/git-rebase-todo", "exec mine\n");
	usleep(20000);
	tree_scan(&p->t, &p->g, list_of(NULL), list_of("/renamed/conf/", NULL));
	assert_true(p->g.file_count > 1000);
	sweep(p);
	assert_int_equal(p->moved.len, 0);
	usleep(20000);
	tree_put(&p->t, "d1/s1/.envrc", "evil"); /* in an old directory */
	tree_put(&p->t, ".git/rebase-merge/git-rebase-todo", "exec evil\n"); /* in place */
	tree_put(&p->t, "d2/new/er/.vscode/x", "evil");                      /* in a new one */
	tree_put(&p->t, "d3/s3/suid", "evil");
	assert_int_equal(fchmodat(p->t.fd, "d3/s3/suid", 04755, 0), 0);
	/* an old directory gets a new name */
	assert_int_equal(renameat(p->t.fd, "moved", p->t.fd, "renamed"), 0);
	/* another takes its place */
	assert_int_equal(renameat(p->t.fd, "d4", p->t.fd, "d4.old"), 0);
	tree_put(&p->t, "d4/s4/.bashrc", "evil");
	tree_put(&p->t, "d5/s5/closed/.zshrc", "evil");
	tree_put(&p->t, ".git/objects/deep/suid", "evil");
	tree_link(&p->t, "d6/.claude", "s6");
	new_repo(p, "d7/s7", "[core]\n\tpager = evil\n");
	sweep(p);
	assert_moved(p, "d1/s1/.envrc", "direnv");
	assert_moved(p, "d2/new/er/.vscode", "opened");
	assert_moved(p, "d3/s3/suid", "set-user-id");
	assert_moved(p, "renamed/conf", "policy");
	assert_moved(p, "d4/s4/.bashrc", "bash");
	assert_moved(p, "d5/s5/closed/.zshrc", "zsh");
	assert_moved(p, ".git/objects/deep", "not a file that git keeps");
	assert_moved(p, "d6/.claude", "link");
	assert_moved(p, "d7/s7/HEAD", "as a repository");
	assert_moved(p, "d7/s7/config", "core.pager");
	assert_moved(p, ".git/rebase-merge/git-rebase-todo", "git continues");
	assert_int_equal(p->moved.len, 11);
	/* an old directory that its owner closed makes the sweep read everything */
	tree_put(&p->t, "d8/s8/.envrc", "evil");
	assert_int_equal(fchmodat(p->t.fd, "d8/s8", 0, 0), 0);
	assert_int_equal(fchmodat(p->t.fd, "d8", 0, 0), 0);
	sweep(p);
	assert_int_equal(p->moved.len, 12);
	assert_int_equal(fstatat(p->t.fd, "d8", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0);
}

/* A rebase of the user's goes on; what the agent adds to one, or leaves under way itself, runs
 * nothing. */
static void what_git_goes_on_with_runs_nothing_new(void **state)
{
	static const char *const gone[] = { ".git/rebase-merge/todo",
					    ".git/rebase-merge/git-rebase-todo",
					    ".git/rebase-merge/strategy",
					    ".git/sequencer/opts",
					    ".git/rebase-apply/apply-opt",
					    ".git/worktrees/w/rebase-merge",
					    "two/.git/rebase-merge/git-rebase-todo",
					    "three/.git/rebase-merge/git-rebase-todo",
					    "four/rebase-merge/git-rebase-todo",
					    "six/.git/rebase-apply/0001" };
	struct place *p = *state;

	new_repo(p, ".git", "");
	new_repo(p, "mine/.git", "");
	tree_put(&p->t, "mine/.git/rebase-merge/git-rebase-todo",
		 "pick 1\nx make test\nexec make lint\n");
	tree_put(&p->t, "mine/.git/rebase-merge/strategy", "resolve\n");
	tree_link(&p->t, "mine/.git/sequencer", "elsewhere");
	tree_put(&p->t, ".git/worktrees/w/HEAD", "ref: refs/heads/w\n");
	tree_put(&p->t, "lists/git-rebase-todo", "exec evil\n");
	tree_link(&p->t, "links/git-rebase-todo", "todo");
	usleep(20000); /* what was there before is older than the scan */
	scan(p);
	usleep(20000);
	tree_put(&p->t, ".git/rebase-merge/todo", "exec evil\n");
	tree_link(&p->t, ".git/rebase-merge/git-rebase-todo", "todo");
	tree_put(&p->t, ".git/rebase-merge/strategy", "x/y\n");
	tree_put(&p->t, ".git/sequencer/opts", "[options]\n\tstrategy = index\n");
	tree_put(&p->t, ".git/rebase-apply/apply-opt", " '--build-fake-ancestor=/x'\n");
	tree_link(&p->t, ".git/worktrees/w/rebase-merge", "/elsewhere");
	new_repo(p, "two/.git", "");
	new_repo(p, "three/.git", "");
	assert_int_equal(renameat(p->t.fd, "lists", p->t.fd, "two/.git/rebase-merge"), 0);
	assert_int_equal(renameat(p->t.fd, "links", p->t.fd, "three/.git/rebase-merge"), 0);
	tree_put(&p->t, "four/rebase-merge/git-rebase-todo", "x evil\n");
	tree_put(&p->t, "five/.git/rebase-merge/git-rebase-todo", "pick 0123456 one\n");
	tree_put(&p->t, "five/.git/rebase-merge/strategy", "ort\n");
	tree_put(&p->t, "five/.git/rebase-apply/apply-opt", " '--whitespace=nowarn'\n");
	tree_put(&p->t, "five/.git/rebase-apply/rebasing", "");
	new_repo(p, "six/.git", "");
	tree_put(&p->t, "six/.git/rebase-apply/0001", "any patch");
	tree_put(&p->t, "five/.git/sequencer/opts", "[options]\n\tstrategy = ort\n\tedit = true\n");
	tree_link(&p->t, "code/sequencer", "/elsewhere");
	tree_put(&p->t, "code/strategy", "x/y\n");
	sweep(p);
	for (size_t i = 0; i < ARRAY_LEN(gone); i++)
		assert_moved(p, gone[i], "");
	assert_int_equal(p->moved.len, ARRAY_LEN(gone));
}

static void hidden_things_stay(void **state)
{
	struct place *p = *state;

	tree_put(&p->t, ".envrc", "mine");
	tree_put(&p->t, ".vscode/tasks.json", "mine");
	tree_put(&p->t, "secret/deep/.bashrc", "mine");
	tree_put(&p->t, "secret/.git/rebase-merge/git-rebase-todo", "exec mine\n");
	tree_link(&p->t, ".mcp.json", "secret/mcp.json");
	new_repo(p, ".git", "[core]\n\tpager = mine\n");
	tree_scan(&p->t, &p->g,
		  list_of(".envrc", ".vscode/", "secret/", ".mcp.json", ".git/config", NULL),
		  list_of(NULL));
	sweep(p);
	assert_int_equal(p->moved.len, 0);
	strv_add(&p->g.lost, "secret");
	sweep(p);
	assert_moved(p, "secret/deep/.bashrc", "bash");
	assert_moved(p, "secret/.git/rebase-merge/git-rebase-todo", "exec");
	assert_int_equal(p->moved.len, 2);
}

static void same_name_twice_keeps_both(void **state)
{
	struct place *p = *state;

	scan(p);
	tree_put(&p->t, ".envrc", "one");
	sweep(p);
	tree_put(&p->t, ".envrc", "two");
	sweep(p);
	assert_int_equal(p->moved.len, 2);
	assert_true(tree_has(&p->q, ".envrc"));
	assert_true(tree_has(&p->q, ".envrc.1"));
}

static void policy_can_allow_and_forbid(void **state)
{
	struct place *p = *state;

	tree_scan(&p->t, &p->g, list_of(NULL), list_of("!.vscode", "*.lock", "/conf/", NULL));
	tree_put(&p->t, ".vscode/x", "x");
	tree_put(&p->t, "a/b.lock", "x");
	tree_put(&p->t, "conf/x", "x");
	tree_put(&p->t, "a/conf/x", "x");
	sweep(p);
	assert_int_equal(p->moved.len, 2);
	assert_moved(p, "a/b.lock", "policy");
	assert_moved(p, "conf", "policy");
	assert_true(tree_has(&p->t, ".vscode/x"));
}

/* Another file system: everything is copied, holes stay holes, and nothing is lost. */
static void copies_over_file_systems(void **state)
{
	struct place *p = *state;
	struct ward_err e = { 0 };
	struct stat st;
	char text[8] = { 0 };
	int fd, deepest;

	tree_put(&p->t, "dir/sub/file", "text");
	tree_put(&p->t, "dir/closed/file", "x");
	tree_link(&p->t, "dir/link", "/etc/passwd");
	assert_int_equal(mkfifoat(p->t.fd, "dir/fifo", 0600), 0);
	fd = openat(p->t.fd, "dir/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	assert_int_equal(pwrite(fd, "end", 3, (1LL << 40) - 3), 3);
	close(fd);
	assert_int_equal(fchmodat(p->t.fd, "dir/sub/file", 04711, 0), 0);
	assert_int_equal(fchmodat(p->t.fd, "dir/closed/file", 0, 0), 0);
	assert_int_equal(fchmodat(p->t.fd, "dir/closed", 0, 0), 0);
	fd = openat(p->t.fd, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	deepest = dig(fd, 2000);
	close(deepest);
	close(fd);
	if (guard_copy_move(p->t.fd, "dir", p->q.fd, "dir", &e) < 0)
		fail_msg("%s", e.why);
	assert_false(tree_has(&p->t, "dir"));
	assert_int_equal(fstatat(p->q.fd, "dir/sub/file", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	assert_int_equal(fstatat(p->q.fd, "dir/sparse", &st, 0), 0);
	assert_true(st.st_size == 1LL << 40 && st.st_blocks < 1000);
	fd = openat(p->q.fd, "dir/sparse", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, text, 3, (1LL << 40) - 3), 3);
	assert_string_equal(text, "end");
	close(fd);
	assert_true(tree_has(&p->q, "dir/link"));
	assert_true(tree_has(&p->q, "dir/fifo"));
	assert_true(tree_has(&p->q, "dir/closed/file"));
}

static void nothing_is_overwritten(void **state)
{
	struct place *p = *state;
	struct ward_err e = { 0 };

	tree_put(&p->t, "a", "one");
	tree_put(&p->q, "a", "two");
	assert_int_equal(guard_move(p->t.fd, "a", p->q.fd, "a", &e), -EEXIST);
	assert_int_equal(guard_copy_move(p->t.fd, "a", p->q.fd, "a", &e), -EEXIST);
	assert_true(tree_has(&p->t, "a"));
}

/* A thing that cannot be moved away loses its name, and the others are moved all the same. */
static void what_cannot_be_moved_is_renamed(void **state)
{
	struct place *p = *state;

	scan(p);
	tree_put(&p->t, "a/.envrc", "evil");
	tree_put(&p->t, "a/.envrc.quarantined", "of an earlier time");
	tree_put(&p->t, "b/.envrc", "evil");
	tree_put(&p->q, "a", "a file where a directory must be");
	sweep(p);
	assert_int_equal(p->moved.len, 2);
	assert_false(tree_has(&p->t, "a/.envrc"));
	assert_true(tree_has(&p->t, "a/.envrc.quarantined.1"));
	assert_false(tree_has(&p->t, "b/.envrc"));
}

static void hold(struct place *p, struct strv hide)
{
	auto_strv notes = { 0 };
	struct ward_err e = { 0 };

	tree_scan(&p->t, &p->g, hide, list_of(NULL));
	assert_int_equal(guard_hold(&p->g, p->t.fd, &notes, &e), 0);
}

static void move(struct place *p, const char *from, const char *to)
{
	assert_int_equal(renameat(p->t.fd, from, p->t.fd, to), 0);
}

static void assert_text(struct place *p, const char *path, const char *text)
{
	char got[256] = "";
	int fd = openat(p->t.fd, path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, text);
}

static void held_files_are_put_back(void **state)
{
	struct place *p = *state;
	struct stat before, after;

	tree_put(&p->t, ".envrc", "mine");
	tree_put(&p->t, "a/.envrc", "moved");
	tree_put(&p->t, "b/.envrc", "removed");
	tree_put(&p->t, "c/.envrc", "untouched");
	tree_put(&p->t, ".env", "secret");
	tree_put(&p->t, "normal", "");
	assert_int_equal(fchmodat(p->t.fd, ".envrc", 0640, 0), 0);
	hold(p, list_of("/.env", NULL));
	assert_int_equal(fstatat(p->t.fd, "a/.envrc", &before, 0), 0);
	tree_put(&p->t, "evil", "evil");
	move(p, "evil", ".envrc");
	move(p, "a/.envrc", "normal");
	assert_int_equal(unlinkat(p->t.fd, ".env", 0), 0);
	assert_int_equal(unlinkat(p->t.fd, "b/.envrc", 0), 0);
	assert_int_equal(unlinkat(p->t.fd, "b", AT_REMOVEDIR), 0);
	strv_add(&p->g.lost, "b/.envrc"); /* the watch saw it */
	sweep(p);
	assert_text(p, ".envrc", "mine");
	assert_text(p, "a/.envrc", "moved");
	assert_text(p, "b/.envrc", "removed");
	assert_text(p, ".env", "secret");
	assert_false(tree_has(&p->t, "normal"));
	assert_int_equal(fstatat(p->t.fd, "a/.envrc", &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(fstatat(p->t.fd, ".envrc", &after, 0), 0);
	assert_int_equal(after.st_mode & 07777, 0640);
	assert_true(tree_has(&p->q, ".envrc"));
	assert_int_equal(p->moved.len, 5); /* b is one of them */
}

static void held_directories_are_put_back(void **state)
{
	struct place *p = *state;
	struct stat before, after;

	new_repo(p, ".git", "[core]\n\tbare = false\n");
	tree_put(&p->t, "sub/.vscode/tasks.json", "{}");
	tree_put(&p->t, ".ssh/config", "mine");
	hold(p, list_of(NULL));
	assert_int_equal(fstatat(p->t.fd, ".git", &before, 0), 0);
	tree_put(&p->t, "x/y/", "");
	move(p, ".git/hooks", "x/y/h");
	assert_int_equal(fchmodat(p->t.fd, "x/y", 0, 0), 0);
	move(p, ".git", "away");
	new_repo(p, ".git", "[core]\n\tfsmonitor = evil\n");
	tree_put(&p->t, ".git/hooks/pre-commit", "evil");
	move(p, "away", ".git/away");
	move(p, "x", ".git/x");
	move(p, "sub", "other");
	tree_put(&p->t, "sub/.vscode/tasks.json", "evil");
	move(p, ".ssh", ".git/ssh");
	sweep(p);
	assert_int_equal(fstatat(p->t.fd, ".git", &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_text(p, ".git/config", "[core]\n\tbare = false\n");
	assert_text(p, ".git/hooks/pre-commit.sample", "#!/bin/sh\n");
	assert_false(tree_has(&p->t, ".git/hooks/pre-commit"));
	assert_text(p, "sub/.vscode/tasks.json", "{}");
	assert_text(p, ".ssh/config", "mine");
	assert_false(tree_has(&p->t, "other"));
	assert_false(tree_has(&p->t, ".ward-put-back.1"));
	assert_true(tree_has(&p->q, ".git/hooks/pre-commit"));
	assert_true(tree_has(&p->q, "sub/.vscode/tasks.json"));
}

static void held_beyond_the_bound_is_quarantined(void **state)
{
	struct place *p = *state;
	struct rlimit old, few = { .rlim_cur = 8 };
	auto_strv notes = { 0 };
	struct ward_err e = { 0 };

	tree_put(&p->t, ".envrc", "mine");
	scan(p);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(guard_hold(&p->g, p->t.fd, &notes, &e), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(notes.len, 1);
	tree_put(&p->t, "evil", "evil");
	move(p, "evil", ".envrc");
	assert_true(guard_sweep(&p->g, p->t.fd, p->q.fd, &p->moved, &e) < 0);
	assert_false(tree_has(&p->t, ".envrc"));
	assert_true(tree_has(&p->q, ".envrc"));
	assert_int_equal(p->moved.len, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
		CASE(planted_names_are_moved),
		CASE(links_are_moved_as_links),
		CASE(unchanged_links_stay),
		CASE(new_repositories_are_judged),
		CASE(old_repositories_get_no_new_parts),
		CASE(gitlinks_may_point_inside_only),
		CASE(gitmodules_is_judged),
		CASE(set_id_files_are_moved_without_their_bits),
		CASE(closed_directories_are_looked_into),
		CASE(deep_trees_are_no_hiding_place),
		CASE(big_trees_are_swept_by_what_changed),
		CASE(what_git_goes_on_with_runs_nothing_new),
		CASE(hidden_things_stay),
		CASE(same_name_twice_keeps_both),
		CASE(policy_can_allow_and_forbid),
		CASE(copies_over_file_systems),
		CASE(nothing_is_overwritten),
		CASE(what_cannot_be_moved_is_renamed),
		CASE(held_files_are_put_back),
		CASE(held_directories_are_put_back),
		CASE(held_beyond_the_bound_is_quarantined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
