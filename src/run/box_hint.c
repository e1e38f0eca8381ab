/*
 * "Not found" with a way on. In: a command's name. Out: a remedy that names the directory of the
 * host's PATH which has it, and never one that holds credentials (learn_path.h). Only looks; runs
 * in the supervisor after the sandbox is dead.
 */
#include "run/box.h"

#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "observe/learn_path.h"
#include "plan/toolchains.h"

/* "--ro DIR" for a directory that may be named: nothing in it looks like a secret. False: it may
 * not. */
static bool put_show(struct buf *out, const char *before, const char *dir)
{
	if (!text_is_plain(dir) || !learn_may_advise(dir, getenv("HOME"), true))
		return false;
	buf_printf(out, "%s--ro %s", before, dir);
	return true;
}

/* How to show a program in dir: itself, and, where that holds no secrets, its installation or at
 * least its directory. */
static void suggest_dir(const char *dir, const char *name, struct ward_err *e)
{
	auto_free char *file = path_join(dir, name), *top = NULL;
	auto_free char *real = file ? realpath(file, NULL) : NULL;
	size_t n = strlen(dir);
	auto_buf more = { 0 };

	top = strndup(dir, n > 4 && strcmp(dir + n - 4, "/bin") == 0 ? n - 4 : n);
	if (!text_is_plain(name) || !top)
		return;
	if (real && !path_is_beneath(real, "/usr") && !path_is_beneath(real, top)) {
		if (put_show(&more, ", or show both with ", top) ||
		    put_show(&more, ", or show both with ", dir))
			(void)(put_show(&more, " ", real) || (more.len = 0));
		ward_remedy(e,
			    "--add filesystem.programs=%s (the host has it as %s, a link to "
			    "%s)%s",
			    name, file, real, buf_text(&more));
		return;
	}
	if (!put_show(&more, ", or show all of it with ", top))
		(void)put_show(&more, ", or show all of it with ", dir);
	ward_remedy(e, "--add filesystem.programs=%s (the host has it in %s)%s", name, dir,
		    buf_text(&more));
}

void box_put_path(const char *dir, const char *name, struct buf *out)
{
	auto_free char *file = path_join(dir, name);

	if (file && text_is_plain(file) && learn_may_advise(file, getenv("HOME"), true))
		buf_printf(out, "--ro %s --env PATH=%s:/usr/local/bin:/usr/bin:/bin", file, dir);
	else
		buf_puts(out, "mount its directory with --ro DIR and name it by its path");
}

/* At isolation level landlock nothing can be put in front of PATH. */
static void suggest_path(const char *dir, const char *name, struct ward_err *e)
{
	auto_buf words = { 0 };

	box_put_path(dir, name, &words);
	ward_remedy(e, "%s", buf_text(&words));
}

bool box_suggest_mount(const struct plan *p, const char *name, struct ward_err *e)
{
	const char *path = getenv("PATH");

	if (p->image.root) {
		ward_remedy(e, "the image has no such program; use another image, or mount it with "
			       "--ro DIR");
		return false;
	}
	if (strchr(name, '/'))
		ward_remedy(e, "the host does not have it either: check its name");
	else
		ward_remedy(e, "it is not on your PATH either: check its name, install it, or "
			       "mount its directory with --ro DIR");
	if (strchr(name, '/')) {
		if (access(name, X_OK) != 0)
			return false;
		if (text_is_plain(name) && learn_may_advise(name, getenv("HOME"), true))
			ward_remedy(e, "--ro %s (the host has it)", name);
		return true;
	}
	while (path && *path) {
		size_t n = strcspn(path, ":");
		auto_free char *dir = strndup(path, n);
		auto_free char *file = dir && *dir == '/' ? path_join(dir, name) : NULL;

		if (file && access(file, X_OK) == 0) {
			const char *preset = toolchain_of(file);

			if (p->level == LEVEL_LANDLOCK)
				suggest_path(dir, name, e);
			else if (preset && !strv_has(&p->toolchains, preset))
				ward_remedy(e,
					    "the host has it in %s, part of the toolchain %s: use "
					    "--set toolchains=%s",
					    dir, preset, preset);
			else
				suggest_dir(dir, name, e);
			return true;
		}
		path += n + (path[n] == ':');
	}
	return false;
}
