/*
 * What of a review is protected, and what can never be applied. In: the list of changes, the
 * record's rules, the workspace as it is. Out: marks. Runs in the verbs with the user's rights. In
 * review mode nothing inside is read-only, so this is where protection holds: each changed thing is
 * judged as everywhere (guard/guard_arrival.c); what a review adds is that a path lies in what is
 * protected or leads to it, and that the parts of every directory count that git would take for a
 * repository once the changes are there. What was applied passes the sweep in addition (apply.c).
 *
 * What makes a repository of a directory that has hooks or a configuration from an earlier review
 * is protected like these. A repository that the run made itself is judged as the sweep does:
 * sample hooks and plain settings are harmless.
 */
#include "review/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/path.h"
#include "review/apply_internal.h"
#include "guard/guard_arrival.h"
#include "guard/guard_judge.h"

struct judging {
	const struct review *review;
	struct guard_root root;
	struct ward_err *e;
	char *dir; /* the directory that is_git is about; owned */
	bool is_git;
	char *clean;   /* a directory that is not protected, nor any above it; owned */
	bool bad_link; /* the change is a link that leads where no link may */
};

int changes_load_guard(const struct review *r, struct guard_root *ret_root, struct ward_err *e)
{
	const struct review_record *record = &r->record;
	auto_strv policy = { 0 };
	int status;

	for (size_t i = 0; i < record->rules.len; i++)
		strv_add(&policy, record->rules.items[i]);
	ret_root->path = strdup(record->workspace);
	ret_root->target = strdup(record->workspace);
	ret_root->writable = true;
	if (policy.failed || !ret_root->path || !ret_root->target)
		return ward_fail(e, ENOMEM, "out of memory");
	status = guard_compile(ret_root, &record->hide, &policy, e);
	return status < 0 ? status : guard_scan(ret_root, r->workspace_fd, e);
}

/* Notes every name of the directory at path that git knows, in all of the trees together. */
static void note_parts(const int *roots, size_t root_count, const char *path, size_t n,
		       struct git_seen *seen)
{
	for (size_t part = 0; part < GIT_PARTS; part++) {
		auto_free char *full = NULL;
		const char *at = guard_git_name((enum git_part)part);

		if (asprintf(&full, "%.*s%s%s", (int)n, path, n ? "/" : "", at) < 0) {
			full = NULL;
			continue;
		}
		for (size_t i = 0; i < root_count; i++) {
			struct walk_entry entry = { .name = at };
			const char *name;
			auto_fd dir = changes_open_parent(roots[i], full, &name);
			struct stat st;

			if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			    S_ISCHR(st.st_mode))
				continue;
			entry.type = (unsigned char)IFTODT(st.st_mode);
			guard_git_note(seen, &entry);
		}
	}
}

/* Whether git would take the directory (path of length n) for a repository; the last answer is
 * kept. */
static bool is_git_dir(struct judging *j, const char *path, size_t n)
{
	const int both[] = { j->review->workspace_fd, j->review->upper_fd };
	struct git_seen seen = { 0 };

	if (j->dir && strlen(j->dir) == n && strncmp(j->dir, path, n) == 0)
		return j->is_git;
	free(j->dir);
	j->dir = strndup(path, n);
	note_parts(both, ARRAY_LEN(both), path, n, &seen);
	j->is_git = guard_is_git_dir(&seen, path, n);
	return j->is_git;
}

/* Whether the new file of a repository that the run made may stay, as the sweep sees it. */
static bool is_harmless(struct judging *j, const struct change *c, const char *dir_path,
			enum git_part part)
{
	const char *name;
	auto_fd dir = changes_open_parent(j->review->upper_fd, c->path, &name);
	auto_buf why = { 0 };

	if (dir < 0 || c->kind != CHANGE_ADDED || !S_ISREG(c->new_mode) || part == GIT_commondir)
		return false;
	return judge_config(&j->root, j->review->workspace_fd, dir, dir_path, name, &why) == 0;
}

static bool is_sample(const char *name)
{
	size_t n = strlen(name);

	return n > 7 && strcmp(name + n - 7, ".sample") == 0 && !strchr(name, '/');
}

/* Whether the component [at, end) of the path is a protected part of a git directory. */
static bool is_git_part(struct judging *j, const struct change *c, size_t at, size_t end)
{
	size_t dir_len = at ? at - 1 : 0;

	for (size_t part = 0; part < GIT_PROTECTED; part++) {
		const char *name = guard_git_name((enum git_part)part);
		auto_free char *dir = NULL;

		if (strlen(name) != end - at || strncmp(c->path + at, name, end - at) != 0 ||
		    !is_git_dir(j, c->path, dir_len))
			continue;
		if (guard_is_released(&j->root, c->path,
				      S_ISDIR(c->new_mode ? c->new_mode : c->old_mode)))
			return false;
		if (part == GIT_hooks && !c->path[end])
			/* the directory itself */
			return !S_ISDIR(c->new_mode) || c->kind != CHANGE_ADDED;
		if (part == GIT_hooks)
			return c->kind != CHANGE_ADDED || !S_ISREG(c->new_mode) ||
			       !is_sample(c->path + end + 1);
		dir = strndup(c->path, dir_len);
		return !dir || c->path[end] || !is_harmless(j, c, dir, (enum git_part)part);
	}
	return false;
}

/* Whether the component [at, end) is what a directory of the workspace lacks to be a repository,
 * while its hooks or its configuration lie there already: nobody looked at those as git will, for
 * they were an ordinary directory's when they came. */
static bool completes_git_dir(struct judging *j, const struct change *c, size_t at, size_t end)
{
	size_t dir_len = at ? at - 1 : 0, part = GIT_PROTECTED;
	struct git_seen before = { 0 };

	while (part < GIT_PARTS &&
	       (strlen(guard_git_name((enum git_part)part)) != end - at ||
		strncmp(c->path + at, guard_git_name((enum git_part)part), end - at) != 0))
		part++;
	if (part == GIT_PARTS || c->kind == CHANGE_DELETED || !is_git_dir(j, c->path, dir_len))
		return false;
	note_parts(&j->review->workspace_fd, 1, c->path, dir_len, &before);
	if (before.type[part] || guard_is_git_dir(&before, c->path, dir_len))
		return false;
	for (part = 0; part < GIT_PROTECTED; part++)
		if (before.type[part])
			return true;
	return false;
}

/* A .git file that goes, or becomes something else. */
static bool is_old_gitlink(const struct judging *j, const struct change *c, size_t at)
{
	struct walk_entry old = { .name = c->path + at,
				  .path = c->path,
				  .type = (unsigned char)IFTODT(c->old_mode) };

	return c->old_mode && guard_is_gitlink(&j->root, &old);
}

/* The thing itself, by the judge of all that arrives. */
static bool is_refused(struct judging *j, const struct change *c, size_t at)
{
	const char *name;
	auto_fd dir = changes_open_parent(j->review->upper_fd, c->path, &name);
	struct walk_entry entry = { .name = c->path + at,
				    .path = c->path,
				    .path_len = strlen(c->path),
				    .name_at = at,
				    .type = (unsigned char)IFTODT(c->new_mode) };
	struct walk_dir d = { .fd = dir, .path = c->path, .path_len = at ? at - 1 : 0 };
	struct guard_arrival a = {
		.g = &j->root, .root_fd = j->review->workspace_fd, .d = &d, .entry = &entry
	};
	auto_buf why = { 0 };

	int status;

	if (c->kind == CHANGE_DELETED || (c->kind == CHANGE_MODE && !S_ISDIR(c->new_mode)))
		return false;
	if (dir < 0) /* closed by its owner: by the names whose content would count */
		return guard_is_gitlink(&j->root, &entry) || guard_is_version_file(c->path) ||
		       strcmp(entry.name, ".gitmodules") == 0 || S_ISLNK(c->new_mode);
	status = guard_judge_arrival(&a, &why, j->e);
	j->bad_link = status == 1 && S_ISLNK(c->new_mode) && !guard_is_gitlink(&j->root, &entry) &&
		      !guard_is_protected(&j->root, &entry) && !guard_is_version_file(c->path);
	return status != 0;
}

/* Whether a component has the name of a part of git's, wherever it stands. */
static bool has_part_name(const char *name, size_t n)
{
	for (size_t part = 0; part < GIT_PROTECTED; part++)
		if (strlen(guard_git_name((enum git_part)part)) == n &&
		    strncmp(name, guard_git_name((enum git_part)part), n) == 0)
			return true;
	return false;
}

/* How much of the path is known to be clean: where its first component begins that is not. */
static size_t clean_prefix(const struct judging *j, const char *path)
{
	size_t same = 0;

	for (size_t i = 0; j->clean && path[i] && path[i] == j->clean[i]; i++)
		if (path[i + 1] == '/' && (j->clean[i + 1] == '/' || !j->clean[i + 1]))
			same = i + 2;
	return same;
}

/* Remembers the directory of path, which was found clean up to the component that begins at
 * `until`. */
static void note_clean(struct judging *j, const char *path, size_t until)
{
	free(j->clean);
	j->clean = until ? strndup(path, until - 1) : NULL;
}

static bool is_protected(struct judging *j, const struct change *c)
{
	size_t n = strlen(c->path), clean = clean_prefix(j, c->path);
	bool still = true;

	for (size_t at = clean, end; at < n; at = end + 1) {
		const mode_t modes[] = { c->new_mode, c->old_mode };
		const struct guard_step *step;
		auto_free char *part = NULL;

		end = at + strcspn(c->path + at, "/");
		part = strndup(c->path, end);
		if (!part)
			return true;
		step = guard_find_step(&j->root, j->root.step_count, c->path, end);
		if (step && step->action != GUARD_PIN)
			return true;
		for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
			struct walk_entry entry = {
				.name = part + at,
				.path = part,
				.path_len = end,
				.name_at = at,
				.type = end < n ? DT_DIR : (unsigned char)IFTODT(modes[i])
			};

			if ((end < n || modes[i]) && guard_is_protected(&j->root, &entry))
				return true;
		}
		if (is_git_part(j, c, at, end) || completes_git_dir(j, c, at, end) ||
		    (end == n && (is_old_gitlink(j, c, at) || is_refused(j, c, at))))
			return true;
		still = still && end < n && !has_part_name(c->path + at, end - at);
		clean = still ? end + 1 : clean;
	}
	note_clean(j, c->path, clean);
	return false;
}

bool changes_link_leaves(const char *workspace, const char *path, const char *target)
{
	size_t up = 0, depth = 0;
	bool down = false;

	if (*target == '/') {
		size_t n = strlen(workspace);

		if (strncmp(target, workspace, n) != 0 || (target[n] != '/' && target[n] != '\0'))
			return true;
		target += n;
		down = true; /* no way up from there */
	}
	for (const char *s = path; *s; s++)
		depth += *s == '/';
	while (*target) {
		size_t n = strcspn(target, "/");

		if (n == 2 && target[0] == '.' && target[1] == '.') {
			if (down || ++up > depth)
				return true; /* behind a name it depends on what stands there */
		} else if (n && !(n == 1 && *target == '.')) {
			down = true;
		}
		target += n + strspn(target + n, "/");
	}
	return false;
}

static void judge_link(const struct judging *j, const struct review *r, struct change *c)
{
	const char *name;
	auto_fd dir = -1;
	char target[4096];
	ssize_t n;

	if (!S_ISLNK(c->new_mode) || c->refused)
		return;
	dir = changes_open_parent(r->upper_fd, c->path, &name);
	n = dir < 0 ? -1 : readlinkat(dir, name, target, sizeof(target) - 1);
	if (n < 0) {
		c->refused = "a link that cannot be read";
		return;
	}
	target[n] = '\0';
	if (changes_link_leaves(r->record.workspace, c->path, target))
		c->refused = "a link that leads out of the workspace";
	else if (j->bad_link)
		c->refused = "a link into a git directory, or to ward's own state";
}

static void judge_name(struct change *c)
{
	const char *slash = strrchr(c->path, '/');

	if (strncmp(slash ? slash + 1 : c->path, APPLY_TEMP, sizeof(APPLY_TEMP) - 1) == 0)
		c->refused = "the name is reserved for ward";
}

int changes_judge(const struct review *r, struct changes *c, struct ward_err *e)
{
	struct judging j = { .review = r, .e = e };
	int status = changes_load_guard(r, &j.root, e);

	for (size_t i = 0; status >= 0 && i < c->len; i++) {
		j.bad_link = false;
		c->items[i].is_protected = is_protected(&j, &c->items[i]);
		judge_link(&j, r, &c->items[i]);
		judge_name(&c->items[i]);
	}
	free(j.dir);
	free(j.clean);
	guard_clear(&j.root);
	return status < 0 ? status : 0;
}
