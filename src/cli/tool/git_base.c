/*
 * The tools.yaml of another revision. In: a file on disk and a revision. Out: the bytes that the
 * revision has, or none where it has no such file. git is the system's own, never one from PATH,
 * and reads one blob: no hook, filter or program that the repository's configuration names is
 * started for that.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/tool/check_parts.h"
#include "host/program.h"

static int run_git(const char *git, char *const *argv, struct buf *ret, int *ret_code)
{
	char no_config[] = "GIT_CONFIG_NOSYSTEM=1", no_prompt[] = "GIT_TERMINAL_PROMPT=0",
	     no_lazy[] = "GIT_NO_LAZY_FETCH=1", path[] = "PATH=/usr/bin:/bin", home[] = "HOME=/";
	char *const envp[] = { no_config, no_prompt, no_lazy, path, home, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2], status = 0, r;
	pid_t pid = -1;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	r = posix_spawn_file_actions_init(&actions);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (r == 0)
		r = posix_spawn(&pid, git, &actions, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	r = r == 0 ? io_read_all(fds[0], TOOLS_BYTES_MAX, ret) : -r;
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	return r;
}

/* One word of git's answer in the directory of the file. */
static int ask_git(const struct tools_source *s, const char *git, const char *verb,
		   const char *option, const char *object, struct buf *ret, int *ret_code)
{
	char *argv[] = { strdup("git"),  strdup("-c"),   strdup("safe.directory=*"),
			 strdup("-C"),   strdup(s->dir), strdup(verb),
			 strdup(option), strdup(object), NULL };
	int r = run_git(git, argv, ret, ret_code);

	for (size_t i = 0; argv[i]; i++)
		free(argv[i]);
	return r;
}

int check_read_base(const struct tools_source *s, const char *path, const char *revision,
		    struct buf *ret, struct ward_err *e)
{
	auto_free char *object = NULL;
	auto_free char *commit = NULL;
	char git[PATH_MAX];
	auto_buf ignored = { 0 };
	int code = 0, r;

	if (*revision == '-' || strpbrk(revision, " :\n\t"))
		return ward_fail(e, EINVAL, "--base %.100s: expected a revision", revision);
	if (asprintf(&object, "%s:./%s", revision, path) < 0)
		object = NULL;
	if (asprintf(&commit, "%s^{commit}", revision) < 0)
		commit = NULL;
	if (!object || !commit)
		return ward_fail(e, ENOMEM, "out of memory");
	r = program_find_system("git", git, e);
	if (r < 0)
		return r;
	r = ask_git(s, git, "cat-file", "-t", commit, &ignored, &code);
	if (r < 0 || code != 0)
		return ward_fail(e, ENOENT, "--base %.100s: there is no such revision", revision);
	r = ask_git(s, git, "cat-file", "blob", object, ret, &code);
	if (r < 0)
		return ward_fail(e, -r, "cannot read %.200s: %s", object, strerror(-r));
	return code == 0; /* 0: the revision has no such file */
}
