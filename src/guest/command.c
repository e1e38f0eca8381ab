/*
 * From the words of a command to a program that runs: the directories of PATH, scripts without a
 * first line. Freestanding, because it is a part of ward-init and of what the native engine's child
 * does before there is one; it needs less than GUEST_EXEC_STACK bytes of stack.
 */
#include "guest/command.h"

#include <errno.h>

#include "base/raw.h"

#define SCRIPT_WORDS_MAX 4096

static const char *find_env(char **envp, const char *name)
{
	size_t n = raw_strlen(name);

	for (; *envp; envp++) {
		size_t i = 0;

		while (i < n && (*envp)[i] == name[i])
			i++;
		if (i == n && (*envp)[n] == '=')
			return *envp + n + 1;
	}
	return "";
}

/* A file without a format that the kernel knows is a shell script, as every shell and execvp(3)
 * treat it. A function of its own: what it takes of the stack is not touched for others. */
__attribute__((noinline)) static long exec_script(const char *path, char **argv, size_t argc,
						  char **envp)
{
	const char *shell[SCRIPT_WORDS_MAX + 3]; /* argc + sh + NULL */

	shell[0] = "/bin/sh";
	shell[1] = path;
	for (size_t i = 1; i <= argc; i++)
		shell[i + 1] = argv[i];
	return raw_call(SYS_execve, shell[0], shell, envp);
}

static long exec_one(const char *path, char **argv, size_t argc, char **envp)
{
	long err = raw_call(SYS_execve, path, argv, envp);

	return err == -ENOEXEC && argc < SCRIPT_WORDS_MAX ? exec_script(path, argv, argc, envp)
							  : err;
}

/* Tries the directories of PATH; a name with a slash is taken as it is. */
long guest_exec_words(char **argv, size_t argc, char **envp)
{
	const char *dirs = find_env(envp, "PATH"), *name = argv[0];
	long result = ENOENT;
	char path[4096];
	size_t len = raw_strlen(name);

	for (size_t i = 0; i < len; i++)
		if (name[i] == '/')
			return -exec_one(name, argv, argc, envp);
	if (len == 0 || len >= 256)
		return ENOENT;
	while (*dirs) {
		size_t n = 0;
		long err;

		for (; *dirs && *dirs != ':'; dirs++)
			if (n < sizeof(path) - 258)
				path[n++] = *dirs;
		dirs += *dirs == ':';
		if (n == 0 || path[0] != '/')
			continue; /* an empty or relative entry would mean the workspace */
		path[n++] = '/';
		for (size_t i = 0; i <= len; i++)
			path[n + i] = name[i];
		err = -exec_one(path, argv, argc, envp);
		if (err != ENOENT && err != ENOTDIR)
			result = err;
		if (err != ENOENT && err != ENOTDIR && err != EACCES)
			break;
	}
	return result;
}
