/*
 * Starts wardd-tls (tls_main.c). In: the directory of the certificate, the socket that listens.
 * Out: a socket from which the front receives connections whose TLS is taken off. Run by wardd
 * before its processes part, so each of them has nothing but its own end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/tls.h"
#include "host/program.h"

/* In the child: its two descriptors are 3 and 4, and it has no other. */
static void become(const char *program, const char *dir, bool clients, int listen_fd, int front_fd)
{
	char *const argv[] = { (char[]){ "wardd-tls" }, strdup(dir),
			       clients ? (char[]){ TLS_CLIENTS } : NULL, NULL };
	char *const env[] = { NULL };
	int a = fcntl(listen_fd, F_DUPFD, 10), b = fcntl(front_fd, F_DUPFD, 10);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (a < 0 || b < 0 || dup2(a, 3) < 0 || dup2(b, 4) < 0 || close_range(5, ~0U, 0) < 0 ||
	    !argv[1])
		_exit(127);
	execve(program, argv, env);
	_exit(127);
}

int tls_start(const char *dir, bool clients, int listen_fd, int *ret_fd, pid_t *ret_pid,
	      struct ward_err *e)
{
	auto_free char *program = NULL;
	int pair[2], big = 1 << 20, r = program_path("wardd-tls", &program, e);
	char ready;
	pid_t pid;

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make a socket pair");
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	pid = fork();
	if (pid == 0)
		become(program, dir, clients, listen_fd, pair[1]);
	close(pair[1]);
	close(listen_fd);
	if (pid < 0) {
		close(pair[0]);
		return ward_fail_errno(e, "cannot start a process");
	}
	if (recv(pair[0], &ready, 1, 0) != 1) { /* it has said why */
		close(pair[0]);
		(void)waitpid(pid, NULL, 0);
		return ward_fail(e, EINVAL, "TLS could not be started with %s", dir);
	}
	*ret_fd = pair[0];
	*ret_pid = pid;
	return 0;
}
