/*
 * Starting ward-box. In: a request. Out: a socket to a fresh process that has it. The host program
 * may have any number of threads, handlers, descriptors and a SIGCHLD disposition of its own, so
 * nothing of it may go on in the child: the calling thread blocks its signals, makes a child that
 * shares its memory and does raw system calls only, and that one makes a second one which becomes
 * `ward` and dies with the first: the program is not the caller's child and leaves no zombie, the
 * first is ours, has no exit signal, and is reaped here. ward-box gets a session of its own,
 * default signals, /dev/null as 0-2, its socket as 3, and nothing else.
 */
#include "api/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/io.h"
#include "base/raw.h"

#define STACK_BYTES 16384
#define LAST_SIGNAL 64

struct child {
	const char *path;
	char *const *envp;
	int null_fd, sock_fd; /* both above REQUEST_FD */
	bool keep_stdio;
	char *stack; /* of the second child */
	long error;  /* negative: what went wrong */
	const char *where;
};

/* As the kernel has it. */
struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static int fail_child(struct child *c, const char *where, long error)
{
	c->where = where;
	c->error = error;
	return 125;
}

/* The second child: becomes ward-box. */
static int become_box(void *argument)
{
	static const char *const argv[] = { "ward-box", NULL };
	const struct kernel_sigaction plain = { 0 };
	const uint64_t no_signals = 0;
	struct child *c = argument;
	long r;

	raw_call(SYS_setsid);
	for (int i = 1; i <= LAST_SIGNAL; i++)
		raw_call(SYS_rt_sigaction, i, &plain, 0, 8); /* SIGKILL and SIGSTOP say no */
	for (int i = 0; i < REQUEST_FD && !c->keep_stdio; i++) {
		r = raw_call(SYS_dup3, c->null_fd, i, 0);
		if (r < 0)
			return fail_child(c, "dup3", r);
	}
	r = raw_call(SYS_dup3, c->sock_fd, REQUEST_FD, 0);
	if (r < 0)
		return fail_child(c, "dup3", r);
	r = raw_call(SYS_close_range, REQUEST_FD + 1, ~0U, 0);
	if (r < 0)
		return fail_child(c, "close_range", r);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, 0, 8);
	r = raw_call(SYS_execve, c->path, argv, c->envp);
	return fail_child(c, "execve", r);
}

/* The first child: is gone as soon as the second one is ward-box. */
static int make_box(void *argument)
{
	struct child *c = argument;
	struct clone_child second = { .flags = CLONE_VM | CLONE_VFORK,
				      .stack = c->stack,
				      .stack_bytes = STACK_BYTES,
				      .main = become_box,
				      .argument = c };
	long pid = clone_start(&second);

	return pid < 0 ? fail_child(c, "clone", pid) : 0;
}

static int run_children(struct child *c, struct ward_err *e)
{
	char *stacks = mmap(NULL, 2 * (size_t)STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct clone_child first = { .flags = CLONE_VM | CLONE_VFORK,
				     .quiet = true,
				     .stack = stacks,
				     .stack_bytes = STACK_BYTES,
				     .main = make_box,
				     .argument = c };
	sigset_t all, before;
	long pid;

	if (stacks == MAP_FAILED)
		return ward_fail_errno(e, "out of memory for a process");
	c->stack = stacks + STACK_BYTES;
	sigfillset(&all);
	/* no handler of the host program may run in a child */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone_start(&first);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (pid > 0 && waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	munmap(stacks, 2 * (size_t)STACK_BYTES);
	if (pid < 0) {
		errno = (int)-pid;
		return ward_fail_errno(e, "cannot create a process");
	}
	if (c->error < 0) {
		errno = (int)-c->error;
		ward_fail_errno(e, "cannot start %.400s (%s)", c->path, c->where);
		return ward_remedy(e, "set the path of the program with ward_spec_program()");
	}
	return 0;
}

/* Descriptors that the child puts in their places must not be in one. */
static int above(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, REQUEST_FD + 1);

	close(fd);
	return moved;
}

static int start_box(const char *path, bool keep_stdio, int *ret_fd, struct ward_err *e)
{
	auto_fd null_fd = above(open("/dev/null", O_RDWR | O_CLOEXEC));
	auto_fd ours = -1, theirs = -1;
	struct child c = { .path = path, .envp = environ, .keep_stdio = keep_stdio };
	int pair[2];
	int r;

	if (null_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot get a file descriptor for a new process");
	ours = pair[0];
	theirs = above(pair[1]);
	if (theirs < 0)
		return ward_fail_errno(e, "cannot get a file descriptor for a new process");
	c.null_fd = null_fd;
	c.sock_fd = theirs;
	r = run_children(&c, e);
	if (r == 0)
		*ret_fd = take_fd(&ours);
	return r;
}

/* The request as a descriptor whose content cannot change any more. */
static int seal_request(uint32_t flags, const struct strv *words, uint32_t *ret_bytes,
			struct ward_err *e)
{
	auto_fd fd = memfd_create("ward-request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	auto_buf bytes = { 0 };

	if (request_write(flags, words, &bytes, e) < 0)
		return -e->code;
	if (fd < 0 || io_write_all(fd, bytes.data, bytes.len) < 0 || lseek(fd, 0, SEEK_SET) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return ward_fail_errno(e, "cannot encode the request");
	*ret_bytes = (uint32_t)bytes.len;
	return take_fd(&fd);
}

int launch(const char *program, uint32_t flags, const struct strv *words, bool keep_stdio,
	   int *ret_fd, struct ward_err *e)
{
	struct request_call call = { .magic = DETACH_MAGIC };
	auto_fd request_fd = seal_request(flags, words, &call.bytes, e);
	auto_free char *path = NULL;
	auto_fd sock_fd = -1;
	int r;

	if (request_fd < 0)
		return request_fd;
	r = launch_find(program, &path, e);
	if (r == 0)
		r = start_box(path, keep_stdio, &sock_fd, e);
	if (r < 0)
		return r;
	r = io_send_fds(sock_fd, &call, sizeof(call), &request_fd, 1);
	if (r < 0 && r != -EPIPE) /* EPIPE: it is gone already; launch_answer() says so */
		return ward_fail(e, -r, "cannot send the request: %s", strerror(-r));
	*ret_fd = take_fd(&sock_fd);
	return 0;
}

int launch_answer(int sock_fd, enum detach_kind expected, struct detach_answer *ret_answer,
		  int *fds, size_t max_fds, size_t *ret_fds, struct ward_err *e)
{
	ssize_t n = io_recv_fds(sock_fd, ret_answer, sizeof(*ret_answer), fds, max_fds, ret_fds);
	bool known = n == (ssize_t)sizeof(*ret_answer) && ret_answer->magic == DETACH_MAGIC;

	if (known && ret_answer->kind == expected) {
		ret_answer->id[sizeof(ret_answer->id) - 1] = '\0';
		return 0;
	}
	while (*ret_fds) {
		close(fds[--*ret_fds]);
		fds[*ret_fds] = -1; /* the caller's variables are closed by scope */
	}
	if (!known || ret_answer->kind != DETACH_REFUSED || ret_answer->error.code <= 0) {
		ward_fail(e, EPROTO,
			  "the program `ward` exited without an answer, or its version differs "
			  "from libward " WARD_VERSION);
		return ward_remedy(e, "install both from the same source, or set the path of the "
				      "program with ward_spec_program()");
	}
	*e = ret_answer->error;
	e->what[sizeof(e->what) - 1] = e->why[sizeof(e->why) - 1] =
		e->remedy[sizeof(e->remedy) - 1] = '\0';
	return -e->code;
}
