/*
 * The workspace. In: a path from the command line or the policy. Out: the directory that the
 * sandbox may use, absolute and with links resolved, or a refusal. Refused is what would hand over
 * the machine or the user at once: the root, system directories, the home directory or one that
 * holds it, kernel file systems. Runs with the user's rights before anything starts; the engine
 * opens the directory again and compares.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/text.h"
#include "plan/spec.h"

/* Directories that are nobody's project. */
static const char system_dirs[][16] = {
	"/",          "/bin",         "/boot",       "/dev",       "/etc",      "/home",
	"/lib",       "/lib32",       "/lib64",      "/libx32",    "/media",    "/mnt",
	"/opt",       "/proc",        "/root",       "/run",       "/sbin",     "/srv",
	"/sys",       "/tmp",         "/usr",        "/usr/bin",   "/usr/lib",  "/usr/lib32",
	"/usr/lib64", "/usr/libexec", "/usr/libx32", "/usr/local", "/usr/sbin", "/usr/share",
	"/var",       "/var/cache",   "/var/lib",    "/var/log",   "/var/run",  "/var/spool",
	"/var/tmp",   "/dev/shm",     "/run/user",
};

/* Trees of the kernel: nothing in them is a project. */
static const char kernel_trees[][8] = { "/proc", "/sys", "/dev" };

int workspace_here(char **ret_path, struct ward_err *e)
{
	char *here = getcwd(NULL, 0);

	if (here && *here == '/') {
		*ret_path = here;
		return 0;
	}
	free(here);
	if (!here && errno != ENOENT)
		return ward_fail_errno(e, "cannot determine the current directory");
	ward_fail(e, ENOENT, "the current directory no longer exists");
	return ward_remedy(e, "cd to a directory that exists, or name the workspace with -w DIR");
}

static int refuse(const char *path, const char *what, struct ward_err *e)
{
	auto_buf shown = { 0 };

	text_escape(&shown, path);
	ward_fail(e, EPERM, "the workspace %s is %s: the sandbox would contain everything in it",
		  buf_text(&shown), what);
	return ward_remedy(e, "create a directory for the task and use -w DIR, or cd into it");
}

static int check_home(const char *path, struct ward_err *e)
{
	const char *home = getenv("HOME");
	char resolved[PATH_MAX];

	if (!home || *home != '/' || !realpath(home, resolved) || strcmp(resolved, "/") == 0)
		return 0;
	if (strcmp(path, resolved) == 0)
		return refuse(path, "the home directory", e);
	return path_is_beneath(resolved, path) ? refuse(path, "above the home directory", e) : 0;
}

static int check_place(const char *path, struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(system_dirs); i++)
		if (strcmp(path, system_dirs[i]) == 0)
			return refuse(path, "a system directory", e);
	for (size_t i = 0; i < ARRAY_LEN(kernel_trees); i++)
		if (path_is_beneath(path, kernel_trees[i]) && !path_is_beneath(path, "/dev/shm"))
			return refuse(path, "part of a kernel file system", e);
	return check_home(path, e);
}

int workspace_check(const char *resolved, struct ward_err *e)
{
	auto_buf shown = { 0 };
	struct stat st;

	if (stat(resolved, &st) == 0 && S_ISDIR(st.st_mode))
		return check_place(resolved, e);
	text_escape(&shown, resolved);
	ward_fail(e, ENOTDIR, "the workspace %s is not a directory", buf_text(&shown));
	return ward_remedy(e, "name a directory with -w DIR");
}

int workspace_resolve(const char *path, char **ret_path, struct ward_err *e)
{
	auto_free char *resolved = NULL;
	auto_buf shown = { 0 };
	int r;

	text_escape(&shown, path);
	resolved = realpath(path, NULL);
	if (!resolved) {
		r = ward_fail_errno(e, "the workspace %s cannot be used", buf_text(&shown));
		return e->code == ENOENT
			       ? ward_remedy(e, "mkdir -p %s, or name another with -w DIR",
					     buf_text(&shown))
			       : r;
	}
	r = workspace_check(resolved, e);
	if (r < 0)
		return r;
	*ret_path = take_ptr(resolved);
	return 0;
}

/* A directory that the user named: inside the workspace it must be there; elsewhere it is looked
 * for in the sandbox. */
static int named_cwd(const char *workspace, const char *wanted, char **ret_path, struct ward_err *e)
{
	auto_free char *path = path_join(workspace, wanted);
	auto_fd root = -1, dir = -1;
	auto_buf shown = { 0 };

	text_escape(&shown, wanted);
	if (!path)
		return ward_fail(e, ENOMEM, "out of memory");
	if (*wanted != '/' && !path_is_beneath(path, workspace)) {
		ward_fail(e, EXDEV, "-C %s leaves the workspace", buf_text(&shown));
		return ward_remedy(e, "name the workspace with -w DIR, or mount the directory and "
				      "give its whole path");
	}
	if (path_is_beneath(path, workspace)) {
		const char *rest = path + strlen(workspace);

		root = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return ward_fail_errno(e, "cannot open the workspace");
		dir = path_open_beneath(root, *rest ? rest + 1 : ".", O_PATH | O_DIRECTORY, e);
		if (dir < 0) {
			ward_wrap(e, "-C %s", buf_text(&shown));
			return ward_remedy(e, "make it, or name a directory of the workspace");
		}
	}
	*ret_path = take_ptr(path);
	return 0;
}

int workspace_cwd(const char *workspace, const char *here, const char *wanted, char **ret_path,
		  struct ward_err *e)
{
	if (wanted)
		return named_cwd(workspace, wanted, ret_path, e);
	*ret_path = strdup(here && path_is_beneath(here, workspace) ? here : workspace);
	return *ret_path ? 0 : ward_fail(e, ENOMEM, "out of memory");
}
