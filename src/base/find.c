/*
 * Finding a program that is started outside of every sandbox. In: a word, the directories that a
 * sandbox has. Out: the file, without links, or a refusal: nothing that a sandbox could have
 * written is taken, whatever PATH says, and nothing is looked for in the current directory. Run
 * with the user's rights by ward and ward-secrets.
 */
#include "base/find.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool is_seen(const char *path, const struct strv *seen)
{
	for (size_t i = 0; i < seen->len; i++)
		if (path_is_beneath(path, seen->items[i]))
			return true;
	return false;
}

/* The word's file; *shadowed: there was one that the sandbox can see. */
static char *resolve(const char *candidate, const struct strv *seen, bool *shadowed)
{
	char *real = is_program(candidate) ? realpath(candidate, NULL) : NULL;

	if (real && is_seen(real, seen)) {
		*shadowed = true;
		free(real);
		return NULL;
	}
	return real;
}

int find_program(const char *word, const struct strv *seen, char **ret_path, struct ward_err *e)
{
	const char *path = getenv("PATH");
	bool shadowed = false;

	*ret_path = NULL;
	if (*word == '/')
		*ret_path = resolve(word, seen, &shadowed);
	while (*word != '/' && !strchr(word, '/') && path && *path && !*ret_path) {
		size_t n = strcspn(path, ":");
		auto_free char *candidate = NULL;

		if (*path == '/' && asprintf(&candidate, "%.*s/%s", (int)n, path, word) > 0)
			*ret_path = resolve(candidate, seen, &shadowed);
		path += n + (path[n] == ':');
	}
	if (*ret_path)
		return 0;
	if (shadowed) {
		ward_fail(e, EACCES, "%.200s is where the sandbox can see or change it", word);
		return ward_remedy(e, "give the absolute path of a program outside the workspace");
	}
	ward_fail(e, ENOENT, "there is no program %.200s", word);
	return ward_remedy(e, "give its absolute path: PATH may differ where ward runs");
}
