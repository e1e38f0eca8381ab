/*
 * From "this path was missing" to "this is what may be shown". In: a path of the host that a
 * command asked for, chosen by a sandbox. Out: the smallest thing that makes sense to mount
 * read-only, or why it is not given. Runs in `ward learn` with the user's rights; nothing is
 * changed.
 *
 * Judged are the path as it was asked for and what it really is behind every link: a link called
 * notes.txt that leads to ~/.ssh/id_rsa is a secret. What is not listed in tables/learn.def and not
 * readable for everybody is a secret too, unless it lies in the user's own home. A directory is
 * looked through for secrets before it is given.
 */
#include "observe/learn_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "policy/secret_path.h"

#define LOOK_ENTRIES 20000 /* of a directory: more is too broad */
#define LOOK_DEPTH 16
/* the same for what is only advised, by a supervisor that has other things to do */
#define ADVICE_ENTRIES 2000

static const char *const broad_home[] = {
#define BROAD_HOME(path) path,
#include "learn.def"
};
static const char *const install[] = {
#define INSTALL(name) name,
#include "learn.def"
};

static bool is_broad(const char *path, const char *home)
{
	const char *rest = secret_within(path, home);

	if (!path[1] || !strchr(path + 1, '/')) /* a directory of the root */
		return true;
	if (home && path_is_beneath(home, path))
		return true;
	for (size_t i = 0; rest && i < ARRAY_LEN(broad_home); i++)
		if (strcmp(rest, broad_home[i]) == 0)
			return true;
	return false;
}

static bool is_settings(const char *path, const char *home)
{
	const char *rest = secret_within(path, home);
	size_t n = rest ? strcspn(rest, "/") : 0;

	if (path_is_beneath(path, "/etc"))
		return true;
	if (!rest || *rest != '.')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(install); i++)
		if (strlen(install[i]) == n && strncmp(rest, install[i], n) == 0)
			return false;
	return true;
}

enum learn_verdict learn_judge(const char *path, const char *home)
{
	if (secret_is_path(path, home))
		return LEARN_SECRET;
	if (is_broad(path, home))
		return LEARN_BROAD;
	return is_settings(path, home) ? LEARN_SETTINGS : LEARN_GIVE;
}

/* The package that a path is part of: up to node_modules or site-packages, or the directory with
 * pyvenv.cfg. NULL: none. */
static char *find_package(const char *path)
{
	static const char *const names[] = { "/node_modules", "/site-packages", "/dist-packages" };
	auto_free char *dir = strdup(path);
	char *slash;

	while (dir && (slash = strrchr(dir, '/')) && slash != dir) {
		auto_free char *mark = NULL;

		*slash = '\0';
		mark = path_join(dir, "pyvenv.cfg");
		if (mark && access(mark, F_OK) == 0)
			return take_ptr(dir);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *at = strstr(path, names[i]);
		size_t n = strlen(names[i]);

		if (at && (at[n] == '/' || !at[n]))
			return strndup(path, (size_t)(at - path) + n);
	}
	return NULL;
}

/* Directories of a home that hold nothing but secrets: a copy of a home has them, too. */
static bool is_secret_entry(const char *name)
{
	static const char names[][16] = { ".ssh",        ".aws",    ".gnupg",   ".azure",
					  ".kube",       ".docker", ".mozilla", ".password-store",
					  ".thunderbird" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Whether nothing in the directory looks like a secret. What cannot be looked through counts as
 * one. */
static bool is_harmless(int dir_fd, unsigned depth, unsigned *entries)
{
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	struct dirent *d;
	bool fine = dir != NULL;

	if (!dir) {
		if (dir_fd >= 0)
			close(dir_fd);
		return false;
	}
	while (fine && (errno = 0, d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		fine = ++*entries <= LOOK_ENTRIES && !secret_is_name(d->d_name) &&
		       !is_secret_entry(d->d_name);
		if (fine && d->d_type == DT_DIR)
			fine = depth &&
			       is_harmless(openat(dirfd(dir), d->d_name,
						  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
					   depth - 1, entries);
		else if (fine && d->d_type != DT_REG && d->d_type != DT_LNK)
			fine = false; /* a socket, a device, or a file system that does not say */
	}
	closedir(dir);
	return fine;
}

/* Whether a secret of the home's list lies beneath dir. */
static bool holds_secret(const char *dir, const char *home)
{
	for (size_t i = 0; home && secret_home_row(i); i++) {
		auto_free char *path = path_join(home, secret_home_row(i));

		if (!path ||
		    (path_is_beneath(path, dir) && (strpbrk(path, "*") || access(path, F_OK) == 0)))
			return true;
	}
	return false;
}

/* Whether the directory is somebody's home, or holds one. */
static bool holds_home(const char *dir)
{
	FILE *users = fopen("/etc/passwd", "re");
	struct passwd *user;
	bool found = !users;

	while (!found && (user = fgetpwent(users)))
		found = user->pw_dir && path_is_beneath(user->pw_dir, dir);
	if (users)
		fclose(users);
	return found;
}

/* Every path beneath which the user's secrets lie, as far as names tell. */
bool learn_holds_secrets(const char *path, const char *home)
{
	auto_free char *real = realpath(path, NULL);
	const char *both[] = { path, real };

	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		const char *p = both[i];
		struct stat st;

		if (!p)
			continue;
		if (secret_is_path(p, home) || (home && path_is_beneath(home, p)))
			return true;
		if (stat(p, &st) == 0 && S_ISDIR(st.st_mode) &&
		    (holds_secret(p, home) || holds_home(p)))
			return true;
	}
	return false;
}

bool learn_may_advise(const char *path, const char *home, bool own)
{
	auto_free char *real = realpath(path, NULL);
	unsigned entries = LOOK_ENTRIES - ADVICE_ENTRIES;
	struct stat st;

	if (!real || learn_holds_secrets(path, home) || learn_holds_secrets(real, home) ||
	    is_broad(path, home) || is_broad(real, home))
		return false;
	if (stat(real, &st) < 0 || (!own && !secret_within(real, home) && !(st.st_mode & S_IROTH)))
		return false;
	if (S_ISREG(st.st_mode))
		return true;
	return S_ISDIR(st.st_mode) &&
	       is_harmless(open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC), LOOK_DEPTH, &entries);
}

static bool may_be_given(const char *path, bool package, const char *home, const char *workspace)
{
	struct stat st;
	unsigned entries = 0;

	if (stat(path, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return false;
	if (S_ISREG(st.st_mode))
		return true;
	if (path_is_beneath(workspace, path) || is_broad(path, home) || holds_secret(path, home) ||
	    holds_home(path))
		return false;
	return package ||
	       is_harmless(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), LOOK_DEPTH, &entries);
}

enum learn_verdict learn_generalise(const char *path, const char *home, const char *workspace,
				    char **ret_path)
{
	auto_free char *real = realpath(path, NULL), *package = NULL;
	enum learn_verdict verdict = learn_judge(path, home);
	struct stat st;

	if (secret_is_path(path, home) || (real && secret_is_path(real, home)))
		return LEARN_SECRET;
	if (!real || stat(real, &st) < 0)
		return LEARN_GONE;
	if (!secret_within(real, home) &&
	    !(st.st_mode & S_IROTH)) /* its owner shows it to no other user */
		return LEARN_SECRET;
	package = find_package(path);
	if (package && !secret_is_path(package, home) &&
	    may_be_given(package, true, home, workspace)) {
		*ret_path = take_ptr(package);
		return is_settings(path, home) ? LEARN_SETTINGS : LEARN_GIVE;
	}
	if (S_ISDIR(st.st_mode) && (verdict == LEARN_BROAD || is_broad(real, home)))
		return LEARN_BROAD;
	if (!may_be_given(real, false, home, workspace))
		return S_ISDIR(st.st_mode) ? LEARN_BROAD : LEARN_SECRET;
	*ret_path = strdup(path);
	return !*ret_path ? LEARN_SECRET : is_settings(path, home) ? LEARN_SETTINGS : LEARN_GIVE;
}
