/*
 * ward exec --forensic: looking at a sandbox that stands still. In: a sandbox, which is frozen
 * first and stays so; a command. Out: the command, in a view of the sandbox's own files in which
 * nothing can be written. No process of the sandbox runs on, and none sees this one.
 *
 *   1. a helper enters the user and mount namespaces of the sandbox's first process, held by a
 *      pidfd, takes a mount namespace of its own, and makes every mount in it read-only;
 *   2. it takes pid, net, ipc, uts and cgroup namespaces of its own: no network, not even the
 *      sandbox's, and no process but the command's;
 *   3. its child becomes the sandbox's user, drops every capability, gets no_new_privs and the
 *      default system call filter, and behind it one without sockets: pathname sockets of the view,
 *      ward's own among them, are out of reach.
 *
 * The command is a program of the view: as hostile as the sandbox, as little as it may do. Its
 * output goes through pipes and the terminal's filter (exec.c). /proc is the sandbox's: it shows
 * the frozen processes, and the command itself is not in it. When this process ends, so do the
 * helper and, as pid 1 of a namespace, the command.
 */
#include "cli/forensic.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/boxes.h"
#include "engine/native/seccomp.h"
#include "recover/process_tree.h"

#define PATH_INSIDE "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* What the helper is sent. */
struct job {
	int init_fd;  /* pidfd */
	pid_t parent; /* of the helper */
	/* of the helper: ends with it, which a parent in another pid namespace does not tell */
	int alive_fds[2];
	uid_t uid; /* as the sandbox's user namespace has them */
	gid_t gid;
	int fds[3], outer_fds[3];
	const char *cwd;
	char **argv, **env;
	struct sock_filter filter[SECCOMP_PROGRAM_MAX];
	size_t filter_len;
};

/* -- the sandbox's first process */

static int find_init(pid_t supervisor, pid_t *ret, struct ward_err *e)
{
	char path[64];
	auto_buf text = { 0 };

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", supervisor, supervisor);
	if (supervisor > 1 && io_read_file(AT_FDCWD, path, 1 << 16, &text) == 0)
		for (char *at = text.data, *end; at && *at; at = end) {
			long child = strtol(at, &end, 10);

			if (end == at || child <= 0)
				break;
			if (process_is_namespace_init((pid_t)child)) {
				*ret = (pid_t)child;
				return 0;
			}
		}
	ward_fail(e, ENOTSUP, "the sandbox has no pid namespace to look at from outside");
	return ward_remedy(e, "ward evidence collects its files; --forensic needs isolation with "
			      "namespaces");
}

/* What an id of ours is in that user namespace. */
static int map_id(pid_t pid, const char *map, const char *key, unsigned *ret, struct ward_err *e)
{
	unsigned inside, outside, count;
	char path[64];
	auto_buf text = { 0 }, status = { 0 };
	long id = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (io_read_file(AT_FDCWD, path, 16384, &status) < 0 ||
	    !text_number_after(buf_text(&status), key, 0, &id))
		return ward_fail(e, ESRCH, "the sandbox is gone");
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, map);
	if (io_read_file(AT_FDCWD, path, 16384, &text) < 0)
		return ward_fail(e, ESRCH, "the sandbox is gone");
	for (const char *line = buf_text(&text); *line; line += strcspn(line, "\n") + 1)
		if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 &&
		    (unsigned long)id - outside < count) {
			*ret = inside + (unsigned)((unsigned long)id - outside);
			return 0;
		} else if (!strchr(line, '\n'))
			break;
	return ward_fail(e, EPERM, "the sandbox's user has no id inside");
}

/* -- the helper, and the command; both only leave by _exit() */

static _Noreturn void fail(const char *what)
{
	auto_buf out = { 0 };

	buf_printf(&out, "ward: looking at the sandbox: %s: %s\n", what, strerror(errno));
	say_err(&out);
	_exit(EXIT_REFUSED);
}

static int refuse_sockets(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return seccomp_install(code, ARRAY_LEN(code), false);
}

static void drop_rights(const struct job *j)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	const struct rlimit no_cores = { 0, 0 };

	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) < 0 ||
	    syscall(SYS_setresgid, j->gid, j->gid, j->gid) < 0 ||
	    syscall(SYS_setresuid, j->uid, j->uid, j->uid) < 0)
		fail("becoming its user");
	if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail("dropping rights");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setrlimit(RLIMIT_CORE, &no_cores) < 0)
		fail("dropping rights");
}

static _Noreturn void become_command(const struct job *j)
{
	sigset_t none;
	char byte;

	sigemptyset(&none);
	drop_rights(j);
	close(j->alive_fds[1]);
	if (read(j->alive_fds[0], &byte, 1) == 0)
		_exit(EXIT_REFUSED);
	for (int i = 0; i < 3; i++)
		if (dup2(j->fds[i], i) < 0)
			fail("its standard streams");
	if (syscall(SYS_close_range, 3, ~0U, 0) < 0)
		fail("closing descriptors");
	if (chdir(j->cwd) < 0)
		fail(j->cwd);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (refuse_sockets() < 0 || seccomp_install(j->filter, j->filter_len, false) < 0)
		fail("the filter of system calls");
	environ = j->env;
	execvp(j->argv[0], j->argv);
	{
		int code = errno == ENOENT ? 127 : 126;
		auto_buf out = { 0 };

		buf_printf(&out, "ward: %s: %s\n", j->argv[0], strerror(errno));
		say_err(&out);
		_exit(code);
	}
}

static void end_with_parent(const struct job *j)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		fail("ending with ward");
	if (getppid() != j->parent)
		_exit(EXIT_REFUSED);
}

static _Noreturn void help(struct job *j)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
	int status = 0;
	pid_t pid;

	for (int i = 0; i < 3; i++) /* else its input would never end */
		if (j->outer_fds[i] >= 0)
			close(j->outer_fds[i]);
	/* standard error is the command's from here on: nothing else would pass the filter */
	if (dup2(j->fds[2], STDERR_FILENO) < 0 || pipe2(j->alive_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		fail("its standard error");
	end_with_parent(j);
	if (geteuid() == 0 && syscall(SYS_setgroups, 0, NULL) < 0)
		fail("leaving groups");
	if (setns(j->init_fd, CLONE_NEWUSER | CLONE_NEWNS) < 0)
		fail("entering its namespaces");
	if (unshare(NAMESPACES) < 0)
		fail("namespaces of its own");
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		fail("a read-only view");
	end_with_parent(j); /* entering another user namespace has cleared it */
	pid = fork();
	if (pid == 0)
		become_command(j);
	if (pid < 0)
		fail("another process");
	for (int i = 0; i < 3; i++)
		close(j->fds[i]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* -- this process */

static int open_pipes(const struct options *o, struct job *j, struct forensic *f,
		      struct ward_err *e)
{
	for (int i = 0; i < 3; i++) {
		int ends[2];

		if (i == 0 && !o->input) {
			j->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
			if (j->fds[0] < 0)
				return ward_fail_errno(e, "cannot open /dev/null");
			continue;
		}
		if (pipe2(ends, O_CLOEXEC) < 0)
			return ward_fail_errno(e, "cannot make a pipe");
		j->fds[i] = ends[i == 0 ? 0 : 1];
		f->fds[i] = ends[i == 0 ? 1 : 0];
	}
	return 0;
}

static int fill_job(const struct options *o, pid_t init, struct job *j, struct ward_err *e)
{
	int r = map_id(init, "uid_map", "\nUid:", &j->uid, e);

	if (r == 0)
		r = map_id(init, "gid_map", "\nGid:", &j->gid, e);
	if (r < 0)
		return r;
	j->argv = o->words + 1;
	j->cwd = o->cwd ? o->cwd : "/";
	j->init_fd = (int)syscall(SYS_pidfd_open, init, 0);
	if (j->init_fd < 0)
		return ward_fail_errno(e, "cannot hold the sandbox's first process");
	r = seccomp_program(SYSCALLS_DEFAULT, SECCOMP_NO_LISTENER, j->filter, ARRAY_LEN(j->filter),
			    &j->filter_len);
	return r < 0 ? ward_fail(e, -r, "cannot make the filter of system calls") : 0;
}

static int start(struct job *j, struct forensic *f, struct ward_err *e)
{
	j->parent = getpid();
	memcpy(j->outer_fds, f->fds, sizeof(j->outer_fds));
	f->pid = fork();
	if (f->pid == 0)
		help(j);
	if (f->pid < 0) {
		f->pid = 0;
		return ward_fail_errno(e, "cannot start a process");
	}
	f->pid_fd = (int)syscall(SYS_pidfd_open, f->pid, 0);
	return f->pid_fd < 0 ? ward_fail_errno(e, "cannot hold the process") : 0;
}

int forensic_start(const struct options *o, const struct box_info *box, const struct strv *env,
		   struct forensic *ret, struct ward_err *e)
{
	struct job *j = calloc(1, sizeof(*j));
	auto_strv all = { 0 };
	pid_t init = 0;
	int r;

	if (!j)
		return ward_fail(e, ENOMEM, "out of memory");
	j->init_fd = j->fds[0] = j->fds[1] = j->fds[2] = -1;
	strv_add(&all, PATH_INSIDE);
	strv_add(&all, "HOME=/home/agent");
	for (size_t i = 0; i < env->len; i++)
		strv_add(&all, env->items[i]);
	j->env = all.items;
	r = all.failed ? ward_fail(e, ENOMEM, "out of memory") : boxes_freeze(box, e);
	if (r == 0)
		r = find_init(box->pid, &init, e);
	if (r == 0)
		r = fill_job(o, init, j, e);
	if (r == 0)
		r = open_pipes(o, j, ret, e);
	if (r == 0)
		r = start(j, ret, e);
	own_close_fd(&j->init_fd);
	for (int i = 0; i < 3; i++)
		own_close_fd(&j->fds[i]);
	free(j);
	return r;
}

int forensic_end(struct forensic *f)
{
	int status = 0;

	if (f->pid <= 0)
		return EXIT_REFUSED;
	(void)kill(f->pid, SIGKILL);
	while (waitpid(f->pid, &status, 0) < 0 && errno == EINTR)
		;
	own_close_fd(&f->pid_fd);
	f->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
