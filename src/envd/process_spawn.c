/*
 * Starting a process in the sandbox. In: what a client asked for. Out: a process in a session of
 * its own, with pipes or a terminal. It gets nothing of ward-envd's but its environment: all other
 * descriptors are closed on exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "envd/process.h"
#include "envd/launch.h"

static void set_env(struct strv *env, const char *line)
{
	size_t n = strcspn(line, "=") + 1;

	for (size_t i = 0; i < env->len; i++)
		if (strncmp(env->items[i], line, n) == 0) {
			char *copy = strdup(line);

			if (!copy) {
				env->failed = true;
				return;
			}
			free(env->items[i]);
			env->items[i] = copy;
			return;
		}
	strv_add(env, line);
}

static const char *get_env(const struct strv *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < env->len; i++)
		if (strncmp(env->items[i], name, n) == 0 && env->items[i][n] == '=')
			return env->items[i] + n + 1;
	return NULL;
}

/* ward-envd's own, the user's, the sandbox's, the request's: the last one counts. */
static void make_env(const struct call *c, const struct strv *wanted, struct strv *out)
{
	auto_strv mine = { 0 };

	for (char **e = environ; *e; e++)
		strv_add(out, *e);
	strv_addf(&mine, "HOME=%s", c->person.home);
	strv_addf(&mine, "USER=%s", c->person.name);
	strv_addf(&mine, "LOGNAME=%s", c->person.name);
	session_config(&mine);
	for (size_t i = 0; i < mine.len; i++)
		set_env(out, mine.items[i]);
	for (size_t i = 0; i < wanted->len; i++)
		set_env(out, wanted->items[i]);
	out->failed |= mine.failed;
}

/* Where the program is, as the shell finds it. */
static int find_program(struct call *c, const char *name, const char *path, char ret[PATH_MAX])
{
	bool denied = false;

	if (strchr(name, '/')) {
		snprintf(ret, PATH_MAX, "%s", name);
		return 0;
	}
	for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path;) {
		size_t n = strcspn(path, ":");
		struct stat st;

		snprintf(ret, PATH_MAX, "%.*s/%s", (int)n, path, name);
		if (*path == '/' && stat(ret, &st) == 0 && S_ISREG(st.st_mode)) {
			if (access(ret, X_OK) == 0)
				return 0;
			denied = true;
		}
		path += n + (path[n] == ':');
	}
	return denied ? call_fail(c, RPC_PERMISSION_DENIED, "'%s' is not executable", name)
		      : call_fail(c, RPC_INVALID_ARGUMENT,
				  "exec: \"%s\": executable file not found in $PATH", name);
}

struct ends {
	int inner[3], outer[3];
	char terminal[64];
};

static bool make_pipe(int *inner, int *outer, bool write_outer)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	*inner = fds[write_outer ? 0 : 1];
	*outer = fds[write_outer ? 1 : 0];
	return true;
}

static int open_ends(const struct process_spec *s, struct ends *e)
{
	struct winsize size = { .ws_row = (unsigned short)s->rows,
				.ws_col = (unsigned short)s->columns };
	int zero = 0;
	unsigned number;

	if (!s->pty) {
		if (!s->no_stdin && !make_pipe(&e->inner[0], &e->outer[0], true))
			return -errno;
		if (s->no_stdin)
			e->inner[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (!make_pipe(&e->inner[1], &e->outer[1], false) ||
		    !make_pipe(&e->inner[2], &e->outer[2], false))
			return -errno;
		return e->inner[0] < 0 ? -errno : 0;
	}
	e->outer[0] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (e->outer[0] < 0 || ioctl(e->outer[0], TIOCSPTLCK, &zero) < 0 ||
	    ioctl(e->outer[0], TIOCGPTN, &number) < 0 || ioctl(e->outer[0], TIOCSWINSZ, &size) < 0)
		return -errno;
	snprintf(e->terminal, sizeof(e->terminal), "/dev/pts/%u", number);
	return 0;
}

static int spawn(const struct process_spec *s, const struct ends *e, const char *program,
		 const char *cwd, const struct strv *env, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	int r = posix_spawn_file_actions_init(&files);

	for (int i = 0; i < 3 && r == 0; i++)
		if (!s->pty)
			r = posix_spawn_file_actions_adddup2(&files, e->inner[i], i);
		else if (i == 0) /* the first terminal of a session is the one that controls it */
			r = posix_spawn_file_actions_addopen(&files, 0, e->terminal, O_RDWR, 0);
		else
			r = posix_spawn_file_actions_adddup2(&files, 0, i);
	if (r == 0)
		r = posix_spawn_file_actions_addchdir_np(&files, cwd);
	r = r == 0 ? launch(program, &files, &s->argv, env->items, ret_pid) : -r;
	posix_spawn_file_actions_destroy(&files);
	return r;
}

static void keep_ends(struct process *p, struct ends *e)
{
	fcntl(e->outer[0], F_SETFL, O_NONBLOCK);
	if (p->pty) {
		p->pty_fd = take_fd(&e->outer[0]);
		p->out_fds[0] = fcntl(p->pty_fd, F_DUPFD_CLOEXEC, 3);
		return;
	}
	p->stdin_fd = take_fd(&e->outer[0]);
	for (int i = 1; i < 3; i++) {
		fcntl(e->outer[i], F_SETFL, O_NONBLOCK);
		p->out_fds[i - 1] = take_fd(&e->outer[i]);
	}
}

static int check_cwd(struct call *c, const char *cwd)
{
	struct stat st;

	if (stat(cwd, &st) < 0 && errno == ENOENT)
		return call_fail(c, RPC_INVALID_ARGUMENT, "cwd '%s' does not exist", cwd);
	if (stat(cwd, &st) == 0 && !S_ISDIR(st.st_mode))
		return call_fail(c, RPC_INVALID_ARGUMENT, "cwd '%s' is not a directory", cwd);
	return 0;
}

int process_spawn(struct call *c, const struct process_spec *s, struct process *p)
{
	struct ends e = { .inner = { -1, -1, -1 }, .outer = { -1, -1, -1 } };
	char cwd[PATH_MAX], program[PATH_MAX];
	auto_strv env = { 0 };
	int r = person_path(&c->person, s->has_cwd ? buf_text(&s->cwd) : "~", cwd);

	if (r < 0)
		return call_fail(c, RPC_INVALID_ARGUMENT, "cwd: %s", strerror(-r));
	if (check_cwd(c, cwd) < 0)
		return -1;
	make_env(c, &s->env, &env);
	if (env.failed)
		return call_fail(c, RPC_INTERNAL, "out of memory");
	if (find_program(c, s->argv.items[0], get_env(&env, "PATH"), program) < 0)
		return -1;
	r = open_ends(s, &e);
	if (r == 0)
		r = spawn(s, &e, program, cwd, &env, &p->pid);
	if (r == 0) {
		p->pid_fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
		r = p->pid_fd < 0 ? -errno : 0;
		keep_ends(p, &e);
	}
	for (int i = 0; i < 3; i++) {
		own_close_fd(&e.inner[i]);
		own_close_fd(&e.outer[i]);
	}
	if (r == -EAGAIN || r == -ENOMEM || r == -EMFILE)
		return call_fail(c, RPC_RESOURCE_EXHAUSTED, "cannot start %s: %s", program,
				 strerror(-r));
	return r < 0 ? call_fail(c, RPC_INVALID_ARGUMENT, "cannot start %s: %s", program,
				 strerror(-r))
		     : 0;
}
