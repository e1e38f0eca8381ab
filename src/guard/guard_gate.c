/*
 * The gate. In: a directory of the host, and things of a sandbox's making that are about to get
 * names in it (ward cp, ward quarantine restore --to). Out: which of them may. Runs in the verbs
 * with the user's rights.
 *
 * The sweep judges a tree in which a run has written; here there is no run and no baseline, so all
 * is new. What counts is the place where a thing arrives, by the path that the kernel has for it:
 * links and ".." on the way have been walked before. Three questions are asked.
 *
 * - The place: a directory that is itself protected, lies in one, or lies in a git directory takes
 *   nothing.
 * - The name: the tables' protected names, counted from the top of the file system, and the
 * policy's
 *   own, counted from the top of the sandbox's trees, too; what protected names and git's
 *   configuration in these trees and in the surrounding work tree lead to (hooks in a directory of
 *   the project, a link in .vscode).
 * - The content: the sweep itself runs over the tree before it gets its name: repositories by the
 *   allow-list of what git writes, .git files, .gitmodules, links into git directories, set-id
 *   bits.
 */
#include "guard/guard_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "guard/guard_sweep.h"

/* What git knows in the directory. */
static struct git_seen see_parts(int dir_fd)
{
	struct git_seen seen = { 0 };

	for (size_t part = 0; part < GIT_PARTS; part++) {
		struct walk_entry entry = { .name = guard_git_name((enum git_part)part) };
		struct stat st;

		if (fstatat(dir_fd, entry.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		entry.type = (unsigned char)IFTODT(st.st_mode);
		guard_git_note(&seen, &entry);
	}
	return seen;
}

static char *path_of(int fd)
{
	char link[32], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	return n <= 0 || n == (ssize_t)sizeof(path) || path[0] != '/' ? NULL
								      : strndup(path, (size_t)n);
}

/* Asks the rules about the first n bytes of path (without a slash in front). */
static const char *ask_rules(const struct guard_root *rules, const char *path, size_t n,
			     unsigned char type)
{
	auto_free char *part = strndup(path, n);
	char *slash = part ? strrchr(part, '/') : NULL;
	size_t name_at = slash ? (size_t)(slash + 1 - part) : 0;
	struct walk_entry whole = { .name = part ? part + name_at : "",
				    .path = part,
				    .path_len = n,
				    .name_at = name_at,
				    .type = type };

	if (!part)
		return "out of memory";
	return guard_is_protected(rules, &whole) ? guard_reason(rules, &whole) : NULL;
}

const char *guard_ask_way(const struct guard_root *rules, const char *path, unsigned char type)
{
	size_t n = strlen(path);

	for (size_t end = strcspn(path, "/"); end <= n; end += 1 + strcspn(path + end + 1, "/")) {
		const char *why = end ? ask_rules(rules, path, end, end < n ? DT_DIR : type) : NULL;

		if (why || end == n)
			return why;
	}
	return NULL;
}

/* Whether one of the directories from the top to path is a git directory. */
static bool is_in_repository(const char *path)
{
	auto_free char *part = strdup(path);

	if (!part || guard_is_in_git(path, strlen(path)))
		return true;
	for (size_t n = strlen(part); n; n = (size_t)(strrchr(part, '/') - part)) {
		auto_fd fd = -1;
		struct git_seen seen;

		part[n] = '\0';
		fd = open(part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue; /* it cannot be looked into, and so git cannot either */
		seen = see_parts(fd);
		if (guard_is_git_dir(&seen, part, n))
			return true;
	}
	return false;
}

/* The work tree that path lies in, or else path/name if that is a directory; NULL: neither. */
static char *find_around(const char *path, const char *name)
{
	auto_free char *inner = path_join(path, name), *part = strdup(path);
	struct stat st;

	for (size_t n = part ? strlen(part) : 0; n > 1; n = (size_t)(strrchr(part, '/') - part)) {
		auto_free char *git = NULL;

		part[n] = '\0';
		git = path_join(part, ".git");
		if (git && lstat(git, &st) == 0)
			return take_ptr(part);
	}
	return inner && lstat(inner, &st) == 0 && S_ISDIR(st.st_mode) ? take_ptr(inner) : NULL;
}

/* Scans one of the trees around the place. */
static int look_at(struct guard_root *around, const char *path, const struct strv *rules,
		   struct ward_err *e)
{
	auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return ward_fail_errno(e, "cannot read %s", path);
	around->path = strdup(path);
	around->target = strdup(path);
	around->writable = around->shares_git = true;
	if (!around->path || !around->target)
		return ward_fail(e, ENOMEM, "out of memory");
	r = guard_compile(around, NULL, rules, e);
	return r < 0 ? r : guard_scan(around, fd, e);
}

static int look_around(struct sniff *g, const char *name, const struct gate_policy *policy,
		       struct ward_err *e)
{
	const struct strv *trees = policy ? policy->trees : NULL;
	const struct strv *rules = policy ? policy->protect : NULL;
	auto_free char *git = find_around(g->tree.path, name);
	int r = 0;

	g->around = calloc((trees ? trees->len : 0) + 1, sizeof(*g->around));
	if (!g->around)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; trees && i < trees->len && r == 0; i++) {
		const char *tree = trees->items[i];

		if (!path_is_beneath(g->tree.path, tree) || strcmp(tree, "/") == 0)
			continue;
		r = look_at(&g->around[g->around_count++], tree, rules, e);
		if (git && path_is_beneath(git, tree))
			free(take_ptr(git)); /* the tree holds it */
	}
	return r == 0 && git ? look_at(&g->around[g->around_count++], git, rules, e) : r;
}

/* The rules, and the rows for the top of a tree as rows for every directory: each of them may be
 * somebody's workspace. */
static bool add_top_rows(struct strv *out, const struct strv *rules)
{
	static const char *const rows[] = {
#define PROTECT(pattern, why, source, checked) pattern,
#include "protect.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i][0] == '/')
			strv_add(out, rows[i] + 1);
	for (size_t i = 0; rules && i < rules->len; i++)
		strv_add(out, rules->items[i]);
	return !out->failed;
}

int gate_open(struct sniff *g, int dir_fd, const char *name, const struct gate_policy *policy,
	      struct ward_err *e)
{
	auto_strv all = { 0 };
	const char *why;
	int r;

	*g = (struct sniff){ .dir_fd = dir_fd };
	g->tree.path = path_of(dir_fd);
	g->tree.target = g->tree.path ? strdup(g->tree.path) : NULL;
	if (!g->tree.target || !add_top_rows(&all, policy ? policy->protect : NULL))
		return ward_fail(e, ENOENT, "cannot determine where the copy would go");
	g->tree.writable = true;
	r = guard_compile(&g->tree, NULL, &all, e);
	if (r < 0)
		return r;
	why = guard_ask_way(&g->tree, g->tree.path + 1, DT_DIR);
	if (is_in_repository(g->tree.path))
		buf_puts(&g->closed, "it would be in a git directory");
	else if (why)
		buf_printf(&g->closed, "it would be in a protected directory: %s", why);
	if (g->closed.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return g->closed.len ? 0 : look_around(g, name, policy, e);
}

void gate_close(struct sniff *g)
{
	guard_clear(&g->tree);
	for (size_t i = 0; i < g->around_count; i++)
		guard_clear(&g->around[i]);
	free(g->around);
	buf_free(&g->closed);
}

/* Whether one of the trees has a step for the path or for a directory that it lies in, or protects
 * its name. */
static const char *ask_tree(const struct guard_root *around, const char *path, unsigned char type)
{
	const char *inner;
	size_t n;

	if (!path_is_beneath(path, around->path) || strlen(path) == strlen(around->path))
		return NULL;
	inner = path + strlen(around->path) + 1;
	n = strlen(inner);
	for (size_t end = strcspn(inner, "/"); end <= n; end += 1 + strcspn(inner + end + 1, "/")) {
		const struct guard_step *s =
			guard_find_step(around, around->step_count, inner, end);

		if (s && s->action == GUARD_HIDE)
			return "it is hidden from sandboxes";
		if (s && s->action != GUARD_PIN)
			return "a protected file of the work tree, or one that git's configuration "
			       "or a hook refers to";
		if (end == n)
			break;
	}
	return guard_ask_way(around, inner, type);
}

const char *gate_refuses(const struct sniff *g, const char *path, unsigned char type)
{
	auto_free char *full = path_join(g->tree.path, path);
	const char *why;

	if (g->closed.len)
		return g->closed.data;
	if (!full)
		return "out of memory";
	why = guard_ask_way(&g->tree, path, type);
	if (!why)
		why = guard_ask_way(&g->tree, full + 1, type);
	for (size_t i = 0; i < g->around_count && !why; i++)
		why = ask_tree(&g->around[i], full, type);
	return why;
}

const char *gate_refuses_union(const char *path, int to_fd, int from_fd)
{
	struct git_seen before = see_parts(to_fd), after = see_parts(from_fd);
	bool had_parts = false;

	if (guard_is_git_dir(&before, path, strlen(path)))
		return "it would be in a git directory";
	for (size_t part = 0; part < GIT_PARTS; part++) {
		had_parts |= before.type[part] != 0;
		if (before.type[part])
			after.type[part] = before.type[part];
	}
	return had_parts && guard_is_git_dir(&after, path, strlen(path))
		       ? "it would turn a directory with unchecked files into a git directory"
		       : NULL;
}

static int refused_open(void *ctx, struct ward_err *e unused_arg)
{
	return *(int *)ctx;
}

int gate_judge_tree(const struct sniff *g, int from_fd, int refused_fd, struct strv *refused,
		    struct ward_err *e)
{
	struct guard_sink sink = { .open = refused_open, .ctx = &refused_fd };

	return guard_sweep_into(&g->tree, from_fd, &sink, refused, e);
}
