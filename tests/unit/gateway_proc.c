/* The gateway's processes really cannot what tables/procs.def does not give them; each tries it in
 * a child of its own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "gateway/proc.h"

/* Set before the process locks itself up. */
static int file_fd;

static long try_open(void)
{
	return open("/etc/passwd", O_RDONLY);
}

static long try_open_proc(void)
{
	return (long)syscall(SYS_openat2, AT_FDCWD, "/proc/self/status", NULL, 0);
}

static long try_stat(void)
{
	struct stat st;

	return stat("/etc/passwd", &st);
}

static long try_create(void)
{
	return open("/tmp/.ward-gateway-test", O_WRONLY | O_CREAT, 0600);
}

static long try_exec(void)
{
	char *const argv[] = { (char *)(uintptr_t) "true", NULL };

	return execve("/bin/true", argv, argv + 1);
}

static long try_exec_fd(void)
{
	char *const argv[] = { (char *)(uintptr_t) "true", NULL };

	return execveat(file_fd, "", argv, argv + 1, AT_EMPTY_PATH);
}

static long try_fork(void)
{
	return (long)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long try_fork3(void)
{
	uint64_t args[11] = { 0 };

	return (long)syscall(SYS_clone3, args, sizeof(args));
}

static long try_inet(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long try_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long try_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 0);
}

static long try_packet(void)
{
	return socket(AF_PACKET, SOCK_DGRAM, 0);
}

static long try_vsock(void)
{
	return socket(AF_VSOCK, SOCK_STREAM, 0);
}

static long try_connect(void)
{
	struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(9) };

	/* ECONNREFUSED is what dial gets */
	return connect(file_fd, (struct sockaddr *)&there, sizeof(there)) < 0 && errno == EPERM ? -1
												: 0;
}

/* A listening socket that stops listening can be made to connect without connect(). */
static long try_fast_open(void)
{
	struct sockaddr_in there = { .sin_family = AF_INET,
				     .sin_port = htons(9),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };

	shutdown(file_fd, SHUT_RD);
	return sendto(file_fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&there,
		      sizeof(there)) < 0 &&
			       errno == EPERM
		       ? -1
		       : 0;
}

static long try_fast_open_message(void)
{
	struct sockaddr_in there = { .sin_family = AF_INET,
				     .sin_port = htons(9),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct iovec iov = { .iov_base = &there, .iov_len = 1 };
	struct msghdr m = {
		.msg_name = &there, .msg_namelen = sizeof(there), .msg_iov = &iov, .msg_iovlen = 1
	};

	shutdown(file_fd, SHUT_RD);
	return sendmsg(file_fd, &m, MSG_FASTOPEN | MSG_NOSIGNAL) < 0 && errno == EPERM ? -1 : 0;
}

/* What front does all the time. */
static long try_send(void)
{
	struct msghdr m = { 0 };

	return (send(file_fd, "x", 1, MSG_NOSIGNAL | MSG_MORE) < 0 && errno == EPERM) ||
			       (sendmsg(file_fd, &m, MSG_NOSIGNAL) < 0 && errno == EPERM)
		       ? -1
		       : 0;
}

static long try_trace(void)
{
	return ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static long try_kill(void)
{
	return kill(getppid(), 0);
}

static long try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? -1
		       : 0;
}

static long try_limits(void)
{
	struct rlimit more = { 1 << 20, 1 << 20 };

	return setrlimit(RLIMIT_NOFILE, &more);
}

static long try_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static long try_uring(void)
{
	char params[120] = { 0 };

	return (long)syscall(SYS_io_uring_setup, 1, params);
}

static long try_memfd(void)
{
	return memfd_create("x", 0);
}

static long try_getfd(void)
{
	return (long)syscall(SYS_pidfd_open, 1, 0);
}

static const struct row {
	const char *name;
	long (*run)(void);
	bool front, dial; /* which may */
	bool socket;      /* is tried on one */
} rows[] = {
	{ "open", try_open, false, false, false },
	{ "stat", try_stat, false, false, false },
	{ "openat2", try_open_proc, false, false, false },
	{ "create", try_create, false, false, false },
	{ "execve", try_exec, false, false, false },
	{ "execveat", try_exec_fd, false, false, false },
	{ "clone", try_fork, false, false, false },
	{ "clone3", try_fork3, false, false, false },
	{ "inet socket", try_inet, false, true, false },
	{ "unix socket", try_unix, false, false, false },
	{ "netlink socket", try_netlink, false, false, false },
	{ "packet socket", try_packet, false, false, false },
	{ "vsock socket", try_vsock, false, false, false },
	{ "connect", try_connect, false, true, true },
	{ "connect by sending", try_fast_open, false, true, true },
	{ "connect by a message", try_fast_open_message, false, true, true },
	{ "send", try_send, true, true, true },
	{ "ptrace", try_trace, false, false, false },
	{ "kill", try_kill, false, false, false },
	{ "executable memory", try_code, false, false, false },
	{ "limits", try_limits, false, false, false },
	{ "dumpable", try_dumpable, false, false, false },
	{ "io_uring", try_uring, false, false, false },
	{ "memfd", try_memfd, false, false, false },
	{ "pidfd", try_getfd, false, false, false },
};

static int socket_for(const struct row *row)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (row->run == try_fast_open || row->run == try_fast_open_message)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* 0: as the row says; 1: not; 2: could not be confined. */
static int in_child(enum proc p, const struct row *row)
{
	/* the others may what front may; record and waf only read and write */
	bool may = p == PROC_DIAL
			   ? row->dial
			   : row->front && !((p == PROC_RECORD || p == PROC_WAF) && row->socket);
	struct ward_err e = { 0 };
	int status;
	pid_t pid;

	file_fd = row->socket ? socket_for(row) : open("/bin/true", O_RDONLY);
	pid = fork();
	if (pid == 0) {
		int result = proc_confine(p, &e) < 0 ? 2 : (row->run() >= 0) == may ? 0 : 1;

		/* before _exit() a sanitizer calls what a confined process may not */
		for (;;)
			syscall(SYS_exit_group, result);
	}
	close(file_fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

static void test_rights(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (enum proc p = 0; p < PROCS; p++) {
			int r = in_child(p, &rows[i]);

			if (r)
				fail_msg("%s of process %d: %d", rows[i].name, (int)p, r);
		}
}

/* Without being confined each of these works here, or the rows prove nothing. */
static void test_controls(void **state)
{
	static long (*const works[])(void) = { try_open, try_fork,     try_inet,
					       try_unix, try_netlink,  try_kill,
					       try_code, try_dumpable, try_memfd };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(works); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(works[i]() >= 0 ? 0 : 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_controls),
					    cmocka_unit_test(test_rights) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
