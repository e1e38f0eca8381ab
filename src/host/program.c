/*
 * Starting ward's own programs. In: a name and descriptors. Out: a process that shares nothing with
 * the caller but those. Runs in the supervisor as the user. Memory is shared only until the child
 * executes.
 */
#include "host/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/raw.h"
#include "host/gpus.h"

#define FIRST_FD 16 /* above all that the child overwrites */

static const char *const places[] = {
/* clang-format off */
#define PROGRAM(name, built) name, "../libexec/ward/" name, "../" built "/" name,
	PROGRAM("ward-gateway", "gateway")
	PROGRAM("ward-gateway-tls", "inspect")
	PROGRAM("ward-waf", "inspect")
	PROGRAM("ward-secrets", "creds")
	PROGRAM("ward-secret-http", "creds")
	PROGRAM("ward-webhook", "hook")
	PROGRAM("ward-audit", "cli")
	PROGRAM("ward-explain", "cli")
	PROGRAM("ward-children", "cli")
	PROGRAM("ward-tool", "cli")
	PROGRAM("ward-mcp", "cli")
	PROGRAM("ward-ssh-agent", "ssh")
	PROGRAM("ward-gpg", "ssh")
	PROGRAM("ward-git", "git")
	PROGRAM("ward-image", "image")
	PROGRAM("ward-pretend.so", "image")
	PROGRAM("ward-remote", "remote")
	PROGRAM("ward-scan", "scan")
	PROGRAM("wardd", "daemon")
	PROGRAM("wardd-tls", "daemon")
	PROGRAM("ward-envd", "envd")
	PROGRAM("ward-wasm", "wasm")
	PROGRAM("ward-gvisor", "gvisor")
	PROGRAM("ward-vm-tool", "vmtool")
	PROGRAM("ward-vm", "vm")
	PROGRAM("ward-vm-init", "vm")
	PROGRAM("ward-vm-ram.so", "vm")
#undef PROGRAM
	/* clang-format on */
};

/* ward itself, from where its programs lie. */
static const char *const ward_places[] = { "ward", "../../bin/ward", "../cli/ward" };

const char *program_place(size_t i)
{
	return i < ARRAY_LEN(places) ? places[i] : NULL;
}

static int move_up(int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);

	own_close_fd(&fd);
	return moved;
}

int program_own_dir(char ret[PATH_MAX], struct ward_err *e)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return ward_fail_errno(e, "cannot find ward's own file");
	path[n] = '\0';
	*(strrchr(path, '/') + 1) = '\0';
	memcpy(ret, path, strlen(path) + 1);
	return 0;
}

static int not_there(const char *name, struct ward_err *e)
{
	ward_fail(e, ENOENT, "%s is neither next to ward nor in ../libexec/ward", name);
	return ward_remedy(e, "install all files of ward (make install)");
}

static bool is_place_of(const char *place, const char *name)
{
	const char *base = strrchr(place, '/');

	return strcmp(base ? base + 1 : place, name) == 0;
}

int program_open(const char *name, struct ward_err *e)
{
	char self[PATH_MAX];
	auto_fd dir = -1;
	int r = program_own_dir(self, e);

	if (r < 0)
		return r;
	dir = open(self, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(places) && dir >= 0; i++) {
		int fd = is_place_of(places[i], name)
				 ? move_up(openat(dir, places[i], O_PATH | O_CLOEXEC))
				 : -1;

		if (fd >= 0)
			return fd;
	}
	return not_there(name, e);
}

int program_path(const char *name, char **ret_path, struct ward_err *e)
{
	bool ward = strcmp(name, "ward") == 0;
	const char *const *all = ward ? ward_places : places;
	char self[PATH_MAX];
	int r = program_own_dir(self, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < (ward ? ARRAY_LEN(ward_places) : ARRAY_LEN(places)); i++) {
		char path[PATH_MAX + 64];

		if (!is_place_of(all[i], name))
			continue;
		snprintf(path, sizeof(path), "%s%s", self, all[i]);
		*ret_path = realpath(path, NULL);
		if (*ret_path)
			return 0;
	}
	return not_there(name, e);
}

int program_find_system(const char *name, char ret[PATH_MAX], struct ward_err *e)
{
	static const char *const system_places[] = { "/usr/sbin",       "/usr/bin",
						     "/usr/local/sbin", "/usr/local/bin",
						     "/sbin",           "/bin" };

	for (size_t i = 0; i < ARRAY_LEN(system_places); i++) {
		snprintf(ret, PATH_MAX, "%s/%s", system_places[i], name);
		if (access(ret, X_OK) == 0)
			return 0;
	}
	return ward_fail(e, ENOENT,
			 "cannot start %s: it is not in /usr/sbin, /usr/bin, /usr/local/sbin, "
			 "/usr/local/bin, /sbin or /bin",
			 name);
}

int program_become(char *const *argv, struct ward_err *e)
{
	auto_free char *path = NULL;
	int r = program_path(argv[0], &path, e);

	if (r < 0)
		return r;
	execv(path, argv);
	return ward_fail_errno(e, "cannot start %s", path);
}

struct starting {
	const struct program *program;
	int nothing_fd, out_fd, fds[PROGRAM_FDS]; /* all above what is overwritten */
	uint64_t no_signals;
	bool failed;
};

static int child_main(void *argument)
{
	struct starting *s = argument;
	const struct program *p = s->program;

	s->failed = true;
	raw_call(SYS_setsid);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &s->no_signals, 0, 8);
	for (int i = 0; i < 3; i++)
		if (raw_call(SYS_dup3, i ? s->out_fd : s->nothing_fd, i, 0) < 0)
			return 125;
	for (size_t i = 0; i < p->fd_count; i++)
		if (raw_call(SYS_dup3, s->fds[i], 3 + i, 0) < 0)
			return 125;
	if (raw_call(SYS_close_range, 3 + p->fd_count, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		return 125;
	if (p->dir && raw_call(SYS_chdir, p->dir) < 0)
		return 125;
	s->failed = false;
	raw_call(SYS_execveat, p->fd, "", p->argv, p->envp, AT_EMPTY_PATH);
	s->failed = true;
	return 125;
}

int program_start(const struct program *p, pid_t *ret_pid, struct ward_err *e)
{
	char stack[8192] __attribute__((aligned(16)));
	struct starting s = { .program = p,
			      .nothing_fd = move_up(open("/dev/null", O_RDWR | O_CLOEXEC)) };
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK,
				     .stack = stack,
				     .stack_bytes = sizeof(stack),
				     .main = child_main,
				     .argument = &s };
	bool ready = s.nothing_fd >= 0;
	long pid = -EMFILE;

	s.out_fd = p->out_fd ? fcntl(p->out_fd, F_DUPFD_CLOEXEC, FIRST_FD) : -1;
	ready &= !p->out_fd || s.out_fd >= 0;
	for (size_t i = 0; i < PROGRAM_FDS; i++) {
		s.fds[i] = i < p->fd_count ? fcntl(p->fds[i], F_DUPFD_CLOEXEC, FIRST_FD) : -1;
		ready &= i >= p->fd_count || s.fds[i] >= 0;
	}
	if (!p->out_fd)
		s.out_fd = s.nothing_fd;
	if (ready)
		pid = clone_start(&child);
	if (p->out_fd)
		own_close_fd(&s.out_fd);
	own_close_fd(&s.nothing_fd);
	for (size_t i = 0; i < PROGRAM_FDS; i++)
		own_close_fd(&s.fds[i]);
	if (pid < 0)
		return ward_fail(e, (int)-pid, "cannot start %s: %s", p->argv[0],
				 strerror((int)-pid));
	if (s.failed) {
		while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
			;
		return ward_fail(e, EIO, "%s could not be executed", p->argv[0]);
	}
	*ret_pid = (pid_t)pid;
	return 0;
}

#define NOT_LOADED 127 /* the dynamic loader's status */

int program_failed(const char *name, int status, struct ward_err *e)
{
	auto_free char *path = NULL;
	struct ward_err ignored;

	if (WIFSIGNALED(status))
		return ward_fail(e, EIO, "%s was killed by signal %d", name, WTERMSIG(status));
	ward_fail(e, EIO, "%s exited with status %d", name, WEXITSTATUS(status));
	if (WEXITSTATUS(status) != NOT_LOADED || program_path(name, &path, &ignored) < 0)
		return -EIO;
	return ward_remedy(e, "install the libraries that this names: ldd %s", path);
}
