/*
 * One command on the way to an image. In: a tree, words. Out: an exit status. The command runs in a
 * sandbox of its own (`ward run`): the new tree is its root and the one thing that it may write;
 * the recipe's directory, if it is given, is read-only. Runs in ward-image with the user's rights;
 * everything that holds for a run holds for it.
 */
#include "image/step.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "host/program.h"

/* What a command may write: every directory of the root but those that a sandbox has of its own. */
static const char *const own_dirs[] = { "proc", "dev", "sys", "tmp", "home", ".ward" };
static bool is_own(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(own_dirs); i++)
		if (strcmp(own_dirs[i], name) == 0)
			return true;
	return name[0] == '.';
}

static bool is_writable(int root_fd, const char *name)
{
	struct stat st;

	return !is_own(name) && fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

bool step_covers(int root_fd, const char *path)
{
	auto_free char *first = strndup(path + 1, strcspn(path + 1, "/"));

	return !first || is_writable(root_fd, first);
}

static int add_writable(const struct step *s, struct strv *argv, struct ward_err *e)
{
	int copy = openat(s->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir)
		return ward_fail_errno(e, "cannot read the new root");
	while ((entry = readdir(dir))) {
		if (!is_writable(copy, entry->d_name))
			continue;
		if (faccessat(copy, entry->d_name, R_OK | W_OK | X_OK, AT_EACCESS) < 0 &&
		    fchmodat(copy, entry->d_name, 0755, 0) < 0)
			return ward_fail_errno(
				e,
				"cannot open /%s of the new root, which a step made inaccessible",
				entry->d_name);
		strv_add(argv, "--rw");
		strv_addf(argv, "%s/%s:/%s", s->root, entry->d_name, entry->d_name);
	}
	return 0;
}

static int run_ward(char **argv, struct ward_err *e)
{
	auto_free char *path = NULL;
	pid_t pid, parent = getpid();
	int status = 0;

	if (program_path("ward", &path, e) < 0)
		return -e->code;
	pid = fork();

	if (pid == 0) {
		/* not a signal that the step may ignore; ward's guardian ends it */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(125);
		dup2(STDERR_FILENO, STDOUT_FILENO); /* what the build prints is the image */
		execv(path, argv);
		_exit(125);
	}
	if (pid < 0)
		return ward_fail_errno(e, "cannot start ward");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return ward_fail(e, EIO, "signal %d killed ward", WTERMSIG(status));
}

static void add_all(struct strv *argv, const struct strv *more)
{
	for (size_t i = 0; more && i < more->len; i++)
		strv_add(argv, more->items[i]);
}

int step_run(const struct step *s, const struct strv *options, const struct strv *words,
	     struct ward_err *e)
{
	auto_strv argv = { 0 };
	int r;

	strv_add(&argv, "ward");
	strv_add(&argv, "run");
	strv_addf(&argv, "--image=%s", s->root);
	/* no policy file lies there */
	strv_addf(&argv, "--workspace=%s", s->workspace);
	if (s->dir) {
		strv_addf(&argv, "--ro=%s:" STEP_RECIPE, s->dir);
		strv_add(&argv, "--chdir=" STEP_RECIPE);
	}
	for (size_t i = 0; i < s->env->len; i++) {
		strv_add(&argv, "--env");
		strv_add(&argv, s->env->items[i]);
	}
	r = add_writable(s, &argv, e);
	strv_add(&argv, "--set");
	strv_add(&argv, "filesystem.mode=read_only");
	strv_add(&argv, "--set");
	/* what is written is an image: nothing of it ever runs outside of a sandbox */
	strv_add(&argv, "filesystem.protect=[\"!*\"]");
	add_all(&argv, options);
	strv_add(&argv, "--");
	add_all(&argv, words);
	if (r == 0 && argv.failed)
		r = ward_fail(e, ENOMEM, "out of memory");
	return r < 0 ? r : run_ward(argv.items, e);
}
