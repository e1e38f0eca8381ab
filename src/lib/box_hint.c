/*
 * "Not found" with a way on. In: a command's name. Out: a remedy that names the directory of the host's PATH which has
 * it. Only looks; runs in the supervisor after the sandbox is dead.
 */
#include "lib/box.h"

#include <string.h>

#include "base/path.h"

/* The directory to show for a program in dir: its installation, not just the bin directory. */
static void suggest_dir(const char *dir, const char *name, struct ward_err *e)
{
	auto_free char *file = path_join(dir, name);
	auto_free char *real = file ? realpath(file, NULL) : NULL;
	size_t n = strlen(dir);

	if (n > 4 && strcmp(dir + n - 4, "/bin") == 0)
		n -= 4;
	if (real && !path_is_beneath(real, "/usr") && strncmp(real, dir, n) != 0)
		ward_remedy(e, "the host has it as %s (a link to %s): show it with --set 'filesystem.programs=[%s]', or both places with "
			       "--ro %.*s --ro %s", file, real, name, (int)n, dir, real);
	else
		ward_remedy(e, "the host has it in %s: show it with --set 'filesystem.programs=[%s]', or all of that with --ro %.*s", dir, name,
			    (int)n, dir);
}

bool box_suggest_mount(const struct plan *p, const char *name, struct ward_err *e)
{
	const char *path = getenv("PATH");

	if (p->image.root) {
		ward_remedy(e, "the image has no such program; another image, or --ro DIR, may show one");
		return false;
	}
	ward_remedy(e, "install it below /usr, or show the directory that has it with --ro DIR");
	if (strchr(name, '/')) {
		if (access(name, X_OK) != 0)
			return false;
		ward_remedy(e, "the host has it: show it with --ro %s", name);
		return true;
	}
	while (path && *path) {
		size_t n = strcspn(path, ":");
		auto_free char *dir = strndup(path, n);
		auto_free char *file = dir && *dir == '/' ? path_join(dir, name) : NULL;

		if (file && access(file, X_OK) == 0) {
			suggest_dir(dir, name, e);
			return true;
		}
		path += n + (path[n] == ':');
	}
	return false;
}
