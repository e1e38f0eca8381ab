/*
 * Protected names in the commits of a repository that a run made. In: a git directory that passed
 * the judge. Out: git on the host does not write these names, until a person says so. Runs in the
 * supervisor at the sweep, with the user's rights; opens each file by one name and no link.
 *
 * What the run put into the work tree under such a name lies in the quarantine, but the commits
 * have it, too, and any checkout, stash or reset would write it from there. The commits of an
 * ordinary clone cannot be refused: nothing would be left of it. So git gets a sparse checkout that
 * leaves the protected names out: patterns in info/sparse-checkout for what it checks out later,
 * and the flag skip-worktree on the entries that the index has now. `git sparse-checkout disable`
 * ends it. A link in place of a directory that leads to protected names is left out, too, and where
 * the repository itself lies in such a directory its names count from there.
 *
 * The sandbox's own patterns would count beside ours, so they do not stay, and neither do settings
 * that switch sparse checkouts off for one work tree.
 */
#include "guard/guard_sparse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "guard/guard_judge.h"
#include "policy/gitconfig.h"
#include "rules/git_index.h"
#include "rules/git_link.h"

#define TEXT_MAX (1u << 20)
#define INDEX_MAX ((size_t)1 << 30)
#define PATTERNS "sparse-checkout"

struct keeping {
	const struct guard_root *g;
	const char *path; /* of the git directory in the tree */
	const char *dir;  /* the part of it that is worked on: "", "worktrees/ID", "modules/NAME" */
	const char *tree; /* where its files lie in the tree of the run */
	unsigned hash;
	struct buf patterns;
	const struct guard_taker *taker;
	struct ward_err *e;
};

static int out_of_memory(struct keeping *k)
{
	return ward_fail(k->e, ENOMEM, "out of memory");
}

/* ---- the patterns ---- */

static const char *const names[] = {
#define PROTECT(pattern, why, source, checked) pattern,
#include "protect.def"
};
static const char *const exceptions[] = {
#define PROTECT_NOT(pattern, why) pattern,
#include "protect.def"
};

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

/* Leaves a name out, whatever is there: a slash at the end would mean a directory alone, and git
 * would write a link. */
static void leave_out(struct keeping *k, const char *pattern)
{
	buf_printf(&k->patterns, "!%.*s\n", (int)(strlen(pattern) - ends_in(pattern, "/")),
		   pattern);
}

/* What leads to a protected name may be a directory and nothing else: through a link the name would
 * be found elsewhere. */
static void add_way(struct keeping *k, const char *pattern)
{
	for (const char *slash = strchr(pattern + 3, '/'); slash && slash[1];
	     slash = strchr(slash + 1, '/')) {
		int n = (int)(slash - pattern);
		auto_buf line = { 0 };

		buf_printf(&line, "!%.*s\n%.*s/\n", n, pattern, n, pattern);
		k->patterns.failed |= line.failed;
		if (!line.failed && !strstr(buf_text(&k->patterns), line.data))
			buf_add(&k->patterns, line.data, line.len);
	}
}

/* The lines of add_way() hold in protected directories, too. There nothing counts but that. */
static void add_inner(struct keeping *k, const char *pattern)
{
	bool deep = strncmp(pattern, "**/", 3) == 0;

	if (ends_in(pattern, "/"))
		buf_printf(&k->patterns, "!%s%s**\n", deep ? "" : "**/", pattern);
	for (size_t i = 0; ends_in(pattern, "/*") && i < ARRAY_LEN(names); i++) {
		const char *slash =
			strncmp(names[i], "**/", 3) == 0 ? strchr(names[i] + 3, '/') : NULL;
		int n = slash && slash[1] ? (int)(slash - names[i]) : 0;
		auto_buf line = { 0 };

		buf_printf(&line, "!%s*%.*s\n!%s*%.*s/**\n", pattern, n - 2, names[i] + 2, pattern,
			   n - 2, names[i] + 2);
		k->patterns.failed |= line.failed;
		if (n && !line.failed && !strstr(buf_text(&k->patterns), line.data))
			buf_add(&k->patterns, line.data, line.len);
	}
}

/* "**" "/mise/config.toml" in a repository that lies in a directory mise is "/config.toml". */
static void add_rooted(struct keeping *k, const char *pattern)
{
	auto_free char *top = path_join(k->g->path, *k->tree ? k->tree : ".");

	k->patterns.failed |= !top;
	for (const char *slash = top ? strchr(pattern + 3, '/') : NULL; slash && slash[1];
	     slash = strchr(slash + 1, '/')) {
		auto_buf part = { 0 };

		buf_add(&part, pattern + 2, (size_t)(slash - pattern) - 2);
		k->patterns.failed |= part.failed;
		if (!part.failed && ends_in(top, part.data))
			leave_out(k, slash);
	}
}

/* A rule of the policy or the scan. One with a place counts from the top of the tree, which may be
 * above the top of this repository. */
static void add_rule(struct keeping *k, const char *rule)
{
	bool released = *rule == '!';
	const char *pattern = rule + released, *slash = strchr(pattern, '/');
	bool placed = slash && slash[1] && strncmp(pattern, "**/", 3) != 0;
	size_t n = strlen(k->tree);

	if (!*pattern || *pattern == '#' || strchr(pattern, '\n'))
		return;
	if (placed && strcmp(k->path, ".git") != 0) {
		pattern += *pattern == '/';
		if (!n || strncmp(pattern, k->tree, n) != 0 || pattern[n] != '/' || !pattern[n + 1])
			return;
		pattern += n;
	}
	if (released)
		buf_printf(&k->patterns, "%s\n", pattern);
	else
		leave_out(k, pattern);
}

static void add_patterns(struct keeping *k)
{
	buf_puts(&k->patterns, GUARD_SPARSE_MARK
		 "a sandbox made this repository. What its commits have under these\n"
		 "# names would run by merely using the project, so git does not "
		 "write it. To look:\n"
		 "# git show HEAD:NAME. To write all of it: git sparse-checkout "
		 "disable\n/*\n");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(names[i], "**/", 3) == 0)
			add_way(k, names[i]);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		leave_out(k, names[i]);
	for (size_t i = 0; i < ARRAY_LEN(exceptions); i++)
		buf_printf(&k->patterns, "%s\n", exceptions[i]);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		add_inner(k, names[i]);
		if (strncmp(names[i], "**/", 3) == 0)
			add_rooted(k, names[i]);
	}
	for (size_t i = 0; i < k->g->rules.len; i++)
		add_rule(k, k->g->rules.items[i]);
}

/* ---- files ---- */

/* Replaces dir_fd/name at once. */
static int replace(struct keeping *k, int dir_fd, const char *name, const struct buf *bytes)
{
	auto_buf temp = { 0 };
	auto_fd fd = -1;
	struct stat st;
	bool ok;

	buf_printf(&temp, "%s.ward", name);
	if (temp.failed)
		return out_of_memory(k);
	unlinkat(dir_fd, temp.data, 0);
	fd = openat(dir_fd, temp.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	ok = fd >= 0 && fstat(dir_fd, &st) == 0 && io_write_all(fd, bytes->data, bytes->len) == 0 &&
	     (geteuid() != 0 || fchown(fd, st.st_uid, st.st_gid) == 0) &&
	     renameat(dir_fd, temp.data, dir_fd, name) == 0;
	if (ok)
		return 0;
	ward_fail_errno(k->e, "cannot write %s/%s%s%s, which keeps protected files away", k->path,
			k->dir, *k->dir ? "/" : "", name);
	unlinkat(dir_fd, temp.data, 0);
	return -k->e->code;
}

static int take(struct keeping *k, int dir_fd, const char *name, const char *where, const char *why)
{
	auto_buf path = { 0 };

	buf_printf(&path, "%s%s%s%s%s%s", k->path, *k->path && *k->dir ? "/" : "", k->dir,
		   *k->path || *k->dir ? "/" : "", where, name);
	return path.failed ? out_of_memory(k)
			   : k->taker->take(k->taker->ctx, dir_fd, name, path.data, why);
}

static int write_patterns(struct keeping *k, int dir_fd)
{
	auto_fd info = -1;
	auto_buf now = { 0 };
	struct stat st;

	if (fstat(dir_fd, &st) < 0 ||
	    (mkdirat(dir_fd, "info", st.st_mode & 0777) == 0 && geteuid() == 0 &&
	     fchownat(dir_fd, "info", st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0))
		return ward_fail_errno(k->e, "cannot make %s/info", k->path);
	info = openat(dir_fd, "info", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (info < 0)
		return ward_fail_errno(k->e, "cannot open %s/info", k->path);
	if (fstatat(info, PATTERNS, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (judge_read_regular(info, PATTERNS, TEXT_MAX, &now) &&
		    now.len == k->patterns.len && memcmp(now.data, k->patterns.data, now.len) == 0)
			return 0;
		if (take(k, info, PATTERNS, "info/",
			 "chooses which files git writes, as ward's own does, which keeps "
			 "protected names of the commits away") < 0)
			return -k->e->code;
	}
	return replace(k, info, PATTERNS, &k->patterns);
}

/* ---- settings ---- */

struct setting {
	bool any, on, cone;
};

static int see_setting(void *ctx, const struct gitconfig_entry *entry)
{
	struct setting *s = ctx;
	bool yes = !entry->value || strcasecmp(entry->value, "true") == 0;

	if (strcmp(entry->section, "core") != 0 || *entry->subsection ||
	    strncmp(entry->key, "sparsecheckout", 14) != 0)
		return 0;
	s->any = true;
	if (strcmp(entry->key, "sparsecheckout") == 0)
		s->on = yes;
	else
		s->cone = yes;
	return 0;
}

/* One work tree may have settings of its own, which count more. */
static int judge_own_settings(struct keeping *k, int dir_fd)
{
	static const char name[] = "config.worktree";
	struct setting s = { 0 };
	auto_buf text = { 0 };

	if (!judge_read_regular(dir_fd, name, TEXT_MAX, &text))
		return 0;
	if (gitconfig_read(buf_text(&text), text.len, see_setting, &s) == 0 && !s.any)
		return 0;
	return take(k, dir_fd, name, "",
		    "chooses which files git writes, while ward keeps protected names of the "
		    "commits away");
}

static int write_settings(struct keeping *k, int dir_fd)
{
	struct setting s = { .cone = true };
	auto_buf text = { 0 };

	if (!judge_read_regular(dir_fd, "config", TEXT_MAX, &text))
		text.len = 0;
	if (gitconfig_read(buf_text(&text), text.len, see_setting, &s) == 0 && s.on && !s.cone)
		return 0;
	buf_printf(&text, "%s[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = false\n",
		   text.len && text.data[text.len - 1] != '\n' ? "\n" : "");
	return text.failed ? out_of_memory(k) : replace(k, dir_fd, "config", &text);
}

/* ---- the index ---- */

static int is_kept_out(void *ctx, const struct git_index_entry *entry)
{
	struct keeping *k = ctx;
	auto_buf path = { 0 };
	unsigned char type = entry->mode == GIT_MODE_LINK      ? DT_LNK
			     : entry->mode == GIT_MODE_GITLINK ? DT_DIR
							       : DT_REG;

	buf_printf(&path, "%s%s%s", k->tree, *k->tree ? "/" : "", entry->path);
	return path.failed ? -ENOMEM : guard_ask_way(k->g, path.data, type) != NULL;
}

static int write_index(struct keeping *k, int dir_fd)
{
	auto_buf bytes = { 0 }, out = { 0 };
	const char *why = NULL;
	int status;

	if (!judge_read_regular(dir_fd, "index", INDEX_MAX, &bytes))
		return 0;
	status = git_index_skip((const uint8_t *)buf_text(&bytes), bytes.len, k->hash, is_kept_out,
				k, &out, &why);
	if (status == -EINVAL)
		return take(k, dir_fd, "index", "",
			    "is an index in which ward cannot mark the protected files");
	if (status < 0)
		return out_of_memory(k);
	return status ? replace(k, dir_fd, "index", &out) : 0;
}

/* ---- where files lie ---- */

static int see_worktree(void *ctx, const struct gitconfig_entry *entry)
{
	char **value = ctx;

	if (strcmp(entry->section, "core") != 0 || strcmp(entry->key, "worktree") != 0 ||
	    *entry->subsection || !entry->value)
		return 0;
	free(*value);
	*value = strdup(entry->value);
	return *value ? 0 : -ENOMEM;
}

/* Where the files of this part lie in the tree; "" where that is not to be found. */
static char *find_tree(const struct keeping *k, int dir_fd, bool worktree)
{
	auto_free char *value = NULL, *place = NULL, *own = NULL;
	auto_buf text = { 0 };
	const char *at;
	size_t n;

	if (asprintf(&own, "%s%s%s", k->path, *k->dir ? "/" : "", k->dir) < 0)
		return NULL;
	if (worktree && judge_read_regular(dir_fd, "gitdir", TEXT_MAX, &text) &&
	    git_worktree_gitdir_read(buf_text(&text), text.len, &at, &n))
		value = strndup(at, n);
	else if (!worktree && *k->dir && judge_read_regular(dir_fd, "config", TEXT_MAX, &text))
		(void)!gitconfig_read(buf_text(&text), text.len, see_worktree, &value);
	if (value) {
		place = judge_resolve(k->g, own, value);
		return place ? take_ptr(place) : strdup("");
	}
	n = strlen(own);
	if (!*k->dir && n > 5 && strcmp(own + n - 5, "/.git") == 0)
		return strndup(own, n - 5);
	return strdup("");
}

static int keep_out(struct keeping *k, int dir_fd)
{
	bool worktree = strncmp(k->dir, "worktrees/", 10) == 0 || strstr(k->dir, "/worktrees/");
	auto_free char *tree = find_tree(k, dir_fd, worktree);
	int status;

	if (!tree)
		return out_of_memory(k);
	k->tree = tree;
	add_patterns(k);
	status = k->patterns.failed ? out_of_memory(k) : write_patterns(k, dir_fd);
	buf_free(&k->patterns);
	if (status >= 0)
		status = judge_own_settings(k, dir_fd);
	if (status >= 0 && !worktree)
		status = write_settings(k, dir_fd);
	return status < 0 ? status : write_index(k, dir_fd);
}

int guard_keep_out(const struct guard_root *g, int git_fd, const char *path, unsigned hash,
		   const struct strv *dirs, const struct guard_taker *taker, struct ward_err *e)
{
	struct keeping k = { .g = g, .path = path, .hash = hash, .taker = taker, .e = e };
	int status = 0;

	for (size_t i = 0; i < dirs->len && status >= 0; i++) {
		auto_fd fd = -1;

		k.dir = dirs->items[i];
		fd = path_open_nolink(git_fd, *k.dir ? k.dir : ".", O_RDONLY | O_DIRECTORY, e);
		status = fd < 0 ? fd : keep_out(&k, fd);
	}
	return status < 0 ? status : 0;
}
