/*
 * Starting other programs for ward vm. In: argv. Out: how it ended, and what it said where that
 * matters. With the user's rights, from the system's own directories, no shell, no input; standard
 * error of what fails is quoted in the error.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/text.h"
#include "vmtool/tool.h"

#define SAID_MAX (1 << 16)

/* The way out, which apt-get may need. */
static bool is_proxy(const char *line)
{
	const char *end = strchr(line, '=');

	return end && end - line > 6 && strncasecmp(end - 6, "_proxy", 6) == 0;
}

static void fill_environment(bool ward, struct strv *envp)
{
	for (char *const *line = environ; *line; line++)
		if (ward ? strncmp(*line, "LC_", 3) != 0 && strncmp(*line, "LANG", 4) != 0
			 : is_proxy(*line))
			strv_add(envp, *line);
	if (!ward)
		strv_add(envp, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	strv_add(envp, "LC_ALL=C");
}

/* Reads both pipes to their ends. */
static int read_both(const int fds[2], struct buf *out, size_t max, struct buf *said)
{
	struct pollfd p[2] = { { .fd = fds[0], .events = POLLIN },
			       { .fd = fds[1], .events = POLLIN } };
	char bytes[8192];

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < 2; i++) {
			struct buf *to = i ? said : out;
			size_t room = i ? SAID_MAX : max;
			ssize_t n = p[i].fd >= 0 && p[i].revents
					    ? read(p[i].fd, bytes, sizeof(bytes))
					    : -2;

			if (n == 0 || (n == -1 && errno != EINTR))
				p[i].fd = -1;
			else if (n > 0 && to->len + (size_t)n <= room)
				buf_add(to, bytes, (size_t)n);
		}
	}
	return 0;
}

/* In the child. It ends with the process that started it, and so does a sandbox, whose guardian
 * ends the rest: what a stranger's image has broken does not go on alone. */
static _Noreturn void become(const char *path, char *const *argv, char *const *envp,
			     const char *cwd, const int fds[2], pid_t parent)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (dup2(fds[1], STDERR_FILENO) >= 0 && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(fds[0], STDOUT_FILENO) >= 0 && (!cwd || chdir(cwd) == 0) &&
	    prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
		execve(path, argv, envp);
	dprintf(STDERR_FILENO, "it cannot be started: %s\n", strerror(errno));
	_exit(127);
}

/* program: the file of ward itself, which has the user's environment; NULL: it is the system's, of
 * the name that the first word is. */
static int start(const char *program, char *const *argv, const char *cwd, int out, int err,
		 pid_t *ret, struct ward_err *e)
{
	auto_strv envp = { 0 };
	char path[PATH_MAX];
	pid_t parent = getpid();
	int r = program ? 0 : program_find_system(argv[0], path, e);

	if (r < 0)
		return r;
	fill_environment(program != NULL, &envp);
	if (envp.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	*ret = fork();
	if (*ret == 0)
		become(program ? program : path, argv, envp.items, cwd, (const int[]){ out, err },
		       parent);
	return *ret < 0 ? ward_fail_errno(e, "cannot start %s", argv[0]) : 0;
}

/* sandboxed: it ran in a sandbox, and ward says how it ended as a shell does. */
static int judge(const char *name, bool sandboxed, int status, struct buf *said, struct ward_err *e)
{
	int number = WIFSIGNALED(status)                      ? WTERMSIG(status)
		     : sandboxed && WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
							      : 0;
	auto_buf safe = { 0 };

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	while (said->len && said->data[said->len - 1] == '\n')
		said->data[--said->len] = '\0';
	if (said->len)
		buf_puts(&safe, ": ");
	text_escape(&safe, buf_text(said) + (said->len > 400 ? said->len - 400 : 0));
	if (number)
		return ward_fail(e, EIO, "%s was ended by signal %d (%s)%s", name, number,
				 strsignal(number), buf_text(&safe));
	return ward_fail(e, EIO, "%s failed with exit status %d%s", name, WEXITSTATUS(status),
			 buf_text(&safe));
}

/* name: what it is called where it fails. */
static int run_read(const char *program, const char *name, char *const *argv, const char *cwd,
		    size_t max, struct buf *out, struct ward_err *e)
{
	int a[2] = { -1, -1 }, b[2] = { -1, -1 }, status = 0, r;
	auto_buf said = { 0 };
	pid_t pid = -1;

	if (pipe2(a, O_CLOEXEC) < 0 || pipe2(b, O_CLOEXEC) < 0)
		r = ward_fail_errno(e, "cannot make a pipe");
	else
		r = start(program, argv, cwd, a[1], b[1], &pid, e);
	own_close_fd(&a[1]);
	own_close_fd(&b[1]);
	if (r == 0) {
		r = read_both((const int[]){ a[0], b[0] }, out, max, &said);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		r = r < 0 ? ward_fail(e, -r, "cannot read from %s", name)
			  : judge(name, program, status, &said, e);
	}
	own_close_fd(&a[0]);
	own_close_fd(&b[0]);
	return r;
}

int tool_run_read(char *const *argv, const char *cwd, size_t max, struct buf *out,
		  struct ward_err *e)
{
	return run_read(NULL, argv[0], argv, cwd, max, out, e);
}

int tool_run(char *const *argv, const char *cwd, struct ward_err *e)
{
	auto_buf unused = { 0 };

	return tool_run_read(argv, cwd, 0, &unused, e);
}

int tool_run_ward(const char *name, char *const *argv, struct ward_err *e)
{
	auto_free char *path = NULL;
	auto_buf unused = { 0 };
	int r = program_path("ward", &path, e);

	return r < 0 ? r : run_read(path, name, argv, NULL, 0, &unused, e);
}
