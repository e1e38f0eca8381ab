/*
 * Starting ward's other programs. In: argv, whose first word is the program's name. Out: its exit
 * status. It is looked for beside ward and in ../libexec/ward, never in PATH, where any process
 * could have put one.
 */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "host/program.h"

static const char *const places[] = { "", "../libexec/ward/" };

int program_run(char *const *argv)
{
	char self[PATH_MAX], path[PATH_MAX + 64];
	posix_spawn_file_actions_t actions;
	struct ward_err ignored = { 0 };
	int r = program_own_dir(self, &ignored), status = 0;
	pid_t pid = -1;

	if (r < 0)
		return r;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	for (int fd = 0; fd <= STDERR_FILENO && r == 0; fd++)
		r = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	for (size_t i = 0; i < ARRAY_LEN(places) && r == 0 && pid < 0; i++) {
		snprintf(path, sizeof(path), "%s%s%.32s", self, places[i], argv[0]);
		if (access(path, X_OK) == 0)
			r = posix_spawn(&pid, path, &actions, NULL, argv, environ);
	}
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0 || pid < 0)
		return r ? -r : -ENOENT;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}
