/*
 * The project around the current directory. In: where the caller stands. Out: the directory whose
 * ward.yaml counts, which then is the workspace, as git finds its root: the current directory, or
 * the nearest one above it that has a policy. The search ends at a git repository's root, at the
 * home directory, at another file system and at directories that are nobody's project.
 *
 * A policy further up counts only if nobody else can have put it there: directory and file belong
 * to the user or root, and no other user can write to them. One that does not count is said, never
 * passed over in silence. Whether its content is accepted is decided later, as for one in the
 * current directory (spec.c). Runs in `ward` with the user's rights.
 */
#include "plan/project.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/text.h"
#include "plan/spec.h"

static const char names[][12] = { "ward.yaml", "ward.json" };

static bool has(const char *dir, const char *name)
{
	auto_free char *path = path_join(dir, name);

	return path && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static const char *policy_in(const char *dir)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (has(dir, names[i]))
			return names[i];
	return NULL;
}

/* Whether only the user and root can change it. A group of the user's own (the same number, as
 * distributions make them) is nobody else. */
static bool is_ours(const struct stat *st)
{
	bool group = st->st_mode & S_IWGRP && (st->st_gid != getegid() || getegid() != geteuid());

	return (st->st_uid == geteuid() || st->st_uid == 0) && !group && !(st->st_mode & S_IWOTH);
}

/* Why a policy in a directory above does not count; NULL: it does. */
static const char *why_not(const char *dir, const char *name, dev_t here)
{
	auto_free char *path = path_join(dir, name);
	struct ward_err ignored = { 0 };
	struct stat st;

	if (!path || stat(dir, &st) < 0)
		return "it cannot be looked at";
	if (st.st_dev != here)
		return "it is on another file system";
	if (!is_ours(&st))
		return "another user could have put it there";
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return "it is not a regular file";
	if (!is_ours(&st))
		return "another user could have written it";
	return workspace_check(dir, &ignored) < 0 ? "its directory cannot be a workspace" : NULL;
}

static bool is_home(const char *dir)
{
	const char *home = getenv("HOME");
	char resolved[PATH_MAX];

	return home && *home == '/' && realpath(home, resolved) && strcmp(dir, resolved) == 0;
}

int project_find(const char *here, char **ret_dir, struct strv *said, struct ward_err *e)
{
	auto_free char *dir = strdup(here);
	const char *name, *why;
	struct stat st;

	*ret_dir = NULL;
	if (dir && policy_in(dir))
		goto found;
	while (dir && strcmp(dir, "/") != 0 && !has(dir, ".git") && !is_home(dir)) {
		char *slash = strrchr(dir, '/');

		slash[slash == dir] = '\0';
		name = policy_in(dir);
		if (!name)
			continue;
		why = stat(here, &st) < 0 ? "it cannot be looked at"
					  : why_not(dir, name, st.st_dev);
		if (!why)
			goto found;
		if (said) {
			auto_buf note = { 0 };

			text_escape(&note, dir);
			buf_printf(&note, "%s%s is not used: %s; name it with -p to use it",
				   strcmp(dir, "/") == 0 ? "" : "/", name, why);
			strv_add(said, buf_text(&note));
		}
		return 0;
	}
	return dir ? 0 : ward_fail(e, ENOMEM, "out of memory");
found:
	*ret_dir = take_ptr(dir);
	return 0;
}
