/*
 * The pager. In: the user's environment and git's global configuration. Out: standard output goes
 * to the program that git would use: GIT_PAGER, core.pager, PAGER, less. Runs with the user's
 * rights, on a terminal only.
 *
 * The repository's own configuration is never read: it may be a sandbox's work, and a pager is a
 * command for the shell. So git is asked for the global file alone, from the root directory. A
 * less that nobody configured gets LESS=FRX, as from git.
 */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"
#include "host/program.h"

#define CONFIG_MAX 65536
#define KEYS "^(core\\.pager|pager\\.diff|color\\.(ui|diff|pager))$"

/* In the child: git that prints what the user's own configuration says. */
static void become_config(const char *program, int out_fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (chdir("/") < 0 || null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 ||
	    dup2(null_fd, 2) < 0)
		_exit(1);
	unsetenv("GIT_DIR");
	unsetenv("GIT_CONFIG");
	execl(program, "git", "config", "--global", "--null", "--get-regexp", KEYS, (char *)NULL);
	_exit(127);
}

static void read_config(struct buf *ret)
{
	char program[PATH_MAX];
	struct ward_err ignored = { 0 };
	int ends[2];
	pid_t pid;

	if (program_find_system("git", program, &ignored) < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0)
		become_config(program, ends[1]);
	close(ends[1]);
	if (pid < 0 || io_read_all(ends[0], CONFIG_MAX, ret) < 0)
		ret->len = 0;
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool is_no(const char *value)
{
	return strcasecmp(value, "false") == 0 || strcasecmp(value, "never") == 0 ||
	       strcasecmp(value, "no") == 0 || strcasecmp(value, "off") == 0 ||
	       strcmp(value, "0") == 0;
}

char *pager_choose(const char *git_pager, const char *pager, const char *config, size_t n,
		   bool *ret_colour)
{
	const char *core = NULL, *of_diff = NULL, *chosen;
	bool ui = true, diff_said = false, diff_colour = true;

	/* "KEY\nVALUE\0"; a key without a value has no newline and means true */
	for (size_t at = 0; at < n && memchr(config + at, '\0', n - at);
	     at += strlen(config + at) + 1) {
		const char *key = config + at, *newline = strchr(key, '\n'),
			   *value = newline ? newline + 1 : "true";
		size_t len = newline ? (size_t)(newline - key) : strlen(key);

		if (len == 10 && strncmp(key, "core.pager", len) == 0)
			core = value;
		else if (len == 10 && strncmp(key, "pager.diff", len) == 0)
			of_diff = value;
		else if (len == 8 && strncmp(key, "color.ui", len) == 0)
			ui = !is_no(value);
		else if (len == 10 && strncmp(key, "color.diff", len) == 0)
			diff_said = true, diff_colour = !is_no(value);
		else if (len == 11 && strncmp(key, "color.pager", len) == 0 && is_no(value))
			*ret_colour = false;
	}
	if (!(diff_said ? diff_colour : ui))
		*ret_colour = false;
	if (of_diff && is_no(of_diff))
		return NULL;
	/* pager.diff is a command, or only says yes */
	if (of_diff && (strcasecmp(of_diff, "true") == 0 || strcasecmp(of_diff, "yes") == 0 ||
			strcasecmp(of_diff, "on") == 0 || strcmp(of_diff, "1") == 0))
		of_diff = NULL;
	chosen = git_pager ? git_pager : of_diff ? of_diff : core ? core : pager ? pager : "less";
	return !*chosen || strcmp(chosen, "cat") == 0 ? NULL : strdup(chosen);
}

/* In the child. */
static void become_pager(const char *command, int in_fd)
{
	if (dup2(in_fd, 0) < 0)
		_exit(127);
	if (!getenv("LESS"))
		setenv("LESS", "FRX", 1);
	if (!getenv("LV"))
		setenv("LV", "-c", 1);
	signal(SIGPIPE, SIG_DFL);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static void start(struct pager *p, const char *command)
{
	char program[PATH_MAX];
	struct ward_err ignored = { 0 };
	int ends[2];

	if (strcmp(command, "less") == 0 && program_find_system("less", program, &ignored) < 0)
		return; /* nobody asked for it */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	p->pid = fork();
	if (p->pid == 0)
		become_pager(command, ends[0]);
	close(ends[0]);
	if (p->pid > 0 && dup2(ends[1], STDOUT_FILENO) >= 0) {
		signal(SIGPIPE, SIG_IGN);
		/* keys are the pager's: it decides when it is enough */
		signal(SIGINT, SIG_IGN);
	} else {
		p->pid = 0;
	}
	close(ends[1]);
}

void pager_begin(struct pager *p, bool wanted)
{
	const char *term = getenv("TERM");
	auto_free char *command = NULL;
	auto_buf config = { 0 };

	*p = (struct pager){ .terminal = isatty(STDOUT_FILENO) };
	if (!p->terminal)
		return;
	p->colour = !getenv("NO_COLOR") && !(term && strcmp(term, "dumb") == 0);
	read_config(&config);
	command = pager_choose(getenv("GIT_PAGER"), getenv("PAGER"), buf_text(&config), config.len,
			       &p->colour);
	if (wanted && command)
		start(p, command);
}

int pager_out(struct pager *p, const struct buf *out)
{
	int status;

	if (!p->pid)
		return say_out(out, EXIT_FINE);
	status = out->failed ? -ENOMEM : io_write_all(STDOUT_FILENO, buf_text(out), out->len);
	p->left |= status == -EPIPE;
	return status < 0 ? EXIT_REFUSED : EXIT_FINE;
}

int pager_end(struct pager *p, int code)
{
	int null_fd = p->pid ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

	if (!p->pid)
		return code;
	/* the pager reads to the end of the pipe */
	if (null_fd >= 0)
		dup2(null_fd, STDOUT_FILENO);
	own_close_fd(&null_fd);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
	return p->left && code == EXIT_REFUSED ? EXIT_FINE : code;
}
