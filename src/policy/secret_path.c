/*
 * Where secrets lie, by name. In: an absolute path that was cleaned, the home directory. Out:
 * whether tables/learn.def knows it as a place of secrets. `ward learn`, advice and toolchains ask
 * before they show anything of the host. Pure functions, no rights: no file is looked at.
 */
#include "policy/secret_path.h"

#include <fnmatch.h>
#include <string.h>

#include "base/own.h"
#include "base/path.h"

static const char *const secret_home[] = {
#define SECRET_HOME(pattern, source) pattern,
#include "learn.def"
};
static const char *const secret_name[] = {
#define SECRET_NAME(pattern) pattern,
#include "learn.def"
};
static const char *const secret_path[] = {
#define SECRET_PATH(path) path,
#include "learn.def"
};

/* What of path lies beneath home, NULL: it does not. "" is the home itself. */
const char *secret_within(const char *path, const char *home)
{
	size_t n = home ? strlen(home) : 0;

	if (n < 2 || !path_is_beneath(path, home))
		return NULL;
	return path[n] ? path + n + 1 : "";
}

/* Whether a pattern fits the path, or one of the directories that it lies in. */
static bool fits(const char *pattern, const char *path)
{
	return fnmatch(pattern, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0;
}

bool secret_is_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(secret_name); i++)
		if (fnmatch(secret_name[i], name, 0) == 0)
			return true;
	return false;
}

bool secret_is_word(const char *text)
{
	static const char *const words[] = { "secret", "token",   "passw",  "key",     "credential",
					     "auth",   ".ssh",    ".aws",   ".gnupg",  ".netrc",
					     ".kube",  ".docker", ".npmrc", ".pypirc", ".pgpass" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(text, words[i]))
			return true;
	return false;
}

bool secret_is_path(const char *path, const char *home)
{
	const char *rest = secret_within(path, home), *at = path;

	for (size_t i = 0; i < ARRAY_LEN(secret_path); i++)
		if (path_is_beneath(path, secret_path[i]))
			return true;
	for (size_t i = 0; rest && i < ARRAY_LEN(secret_home); i++)
		if (fits(secret_home[i], rest))
			return true;
	/* another user's home */
	if (!rest &&
	    (path_is_beneath(path, "/root") ||
	     (path_is_beneath(path, "/home") && path[strlen("/home")])) &&
	    !(home && path_is_beneath(home, path)))
		return true;
	/* each component: a directory can be called like that, too */
	while ((at = strchr(at, '/'))) {
		char name[256];
		size_t n = strcspn(++at, "/");

		if (n >= sizeof(name))
			return true; /* no file system has that */
		memcpy(name, at, n);
		name[n] = '\0';
		if (secret_is_name(name))
			return true;
	}
	return false;
}

const char *secret_home_row(size_t i)
{
	return i < ARRAY_LEN(secret_home) ? secret_home[i] : NULL;
}
