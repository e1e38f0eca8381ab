/*
 * The first process of a command inside the inner runtime. In: a file in a directory that both
 * sides see. Runs in gVisor's kernel as its uid 0, which is the agent's one id on the other side,
 * without capabilities (the first has CAP_CHOWN until /dev belongs to no user). It makes a user
 * namespace of gVisor's in which that id has the agent's number, so that whoami, stat and files
 * look as in every sandbox; there is no way to a second id. Then it starts the command in a process
 * group, passes signals to that group (or to the terminal's foreground group), collects orphans,
 * and tells how the command ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "confine/confine.h"
#include "gvisor/gvisor.h"

#define START_MAX (16 * 1024 * 1024)
#define NOBODY 65534

/* What is in gVisor's /dev belongs to no user: it has no limit of names, and read-only it would be
 * so for writes to devices, too. The first command's enter has the one capability for it, and no
 * other process comes before. */
static int close_dev(void)
{
	static const char *const dirs[] = { "/dev/net", "/dev" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (lchown(dirs[i], NOBODY, NOBODY) < 0 && errno != ENOENT)
			return -errno;
	return 0;
}

/* The command has the same id: it must not see this process's memory, hence NO_DUMP in the row. */
static int become_agent(const struct start *s)
{
	struct ward_err e;
	char uids[32], gids[32];

	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	snprintf(uids, sizeof(uids), "%u 0 1\n", s->uid);
	snprintf(gids, sizeof(gids), "%u 0 1\n", s->gid);
	if (io_write_file(AT_FDCWD, "/proc/self/uid_map", uids) < 0)
		return -EPERM;
	if (io_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
		errno = 0; /* gVisor of 2022 has no such file and needs none */
	if (io_write_file(AT_FDCWD, "/proc/self/gid_map", gids) < 0)
		return -EPERM;
	return confine_enter(PROC_GVISOR_AGENT, NULL, &e);
}

static const char *variable(char **envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static int exec_one(const char *path, const struct start *s)
{
	int err;

	execve(path, s->argv, s->envp);
	err = errno;
	if (err == ENOEXEC) { /* a shell script without a first line */
		char **words = calloc((size_t)s->argc + 2, sizeof(*words));

		if (!words)
			return ENOMEM;
		words[0] = strdup("/bin/sh");
		words[1] = strdup(path);
		memcpy(words + 2, s->argv + 1, s->argc * sizeof(*words));
		execve("/bin/sh", words, s->envp);
		free(words);
	}
	return err;
}

/* As ward-init does: absolute directories of PATH only. */
static int exec_command(const struct start *s)
{
	const char *path = variable(s->envp, "PATH"), *name = s->argv[0];
	int result = ENOENT;

	if (strchr(name, '/'))
		return exec_one(name, s);
	while (path && *path) {
		size_t n = strcspn(path, ":");
		char file[4096];
		int err = ENOENT;

		if (*path == '/' &&
		    snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, name) < (int)sizeof(file))
			err = exec_one(file, s);
		if (err != ENOENT && err != ENOTDIR)
			result = err;
		if (err != ENOENT && err != ENOTDIR && err != EACCES)
			break;
		path += n + (path[n] == ':');
	}
	return result;
}

static _Noreturn void be_command(const struct start *s, bool terminal)
{
	sigset_t none;
	int err;

	setpgid(0, 0);
	if (terminal)
		tcsetpgrp(0, getpid());
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	err = exec_command(s);
	dprintf(2, "ward: cannot start %s: %s\n", s->argv[0], strerror(err));
	_exit(err == ENOENT || err == ENOTDIR ? 127 : 126);
}

static void pass_on(pid_t command, bool terminal, int sig)
{
	pid_t group = terminal ? tcgetpgrp(0) : command;

	if (sig == GVISOR_END) {
		kill(-command, SIGKILL);
		return;
	}
	if (group <= 1 || kill(-group, sig) < 0)
		kill(command, sig);
}

/* Until the command ends: its status. */
static int supervise(pid_t command, bool terminal)
{
	sigset_t all;

	sigfillset(&all);
	for (;;) {
		int sig = sigwaitinfo(&all, NULL), status;
		pid_t pid;

		if (sig > 0 && sig != SIGCHLD) {
			pass_on(command, terminal, sig);
			continue;
		}
		while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
			if (pid == command && !WIFSTOPPED(status))
				return status;
			if (pid == command && terminal)
				/* there is no shell that could bring it back */
				kill(-command, SIGCONT);
		}
	}
}

static int tell(int fd, int status)
{
	bool killed = WIFSIGNALED(status);
	int value = killed ? WTERMSIG(status) : WEXITSTATUS(status);

	dprintf(fd, "%c%d", killed ? 's' : 'e', value);
	return killed ? 128 + value : value;
}

static int start_command(const struct start *s, int report_fd)
{
	bool terminal = isatty(0) == 1;
	sigset_t all;
	pid_t pid;

	if (chdir(s->cwd) < 0) {
		dprintf(2, "ward: cannot enter %s: %s\n", s->cwd, strerror(errno));
		return 126;
	}
	signal(SIGCHLD, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* where there is no such file, or no room in it, runsc's status has to do */
	dprintf(report_fd, "b");
	/* in gVisor a copy of an address space costs as much as a program's start; the child only
	 * calls the kernel */
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (pid == 0)
		/* NOLINT(clang-analyzer-unix.Vfork): it does not come back */
		be_command(s, terminal);
	if (pid < 0) {
		dprintf(2, "ward: cannot start %s: %s\n", s->argv[0], strerror(errno));
		return tell(report_fd, 126 << 8);
	}
	setpgid(pid, pid);
	return tell(report_fd, supervise(pid, terminal));
}

int gvisor_enter(int argc, char **argv)
{
	char path[96];
	auto_buf bytes = { 0 };
	auto_fd report_fd = -1;
	struct start s = { 0 };
	int r;

	if (argc != 1 || strchr(argv[0], '/') || strlen(argv[0]) > 32)
		return 125;
	snprintf(path, sizeof(path), GVISOR_IO "/%s", argv[0]);
	/* another command may have put anything there */
	report_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (strcmp(argv[0], "run") != 0)
		/* a checkpoint has this one open by its name; there are none while another command
		 * runs */
		unlink(path);
	snprintf(path, sizeof(path), GVISOR_START_INSIDE "/%s", argv[0]);
	r = io_read_file(AT_FDCWD, path, START_MAX, &bytes);
	if (r == 0)
		r = start_parse(buf_text(&bytes), bytes.len, &s);
	if (r == 0 && strcmp(argv[0], "run") == 0)
		r = close_dev();
	if (r == 0)
		r = become_agent(&s);
	if (r != 0) {
		gvisor_say("cannot take the command: %s", strerror(-r));
		return 125;
	}
	r = start_command(&s, report_fd);
	start_free(&s);
	return r;
}

int gvisor_idle(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (;;)
		pause();
}
