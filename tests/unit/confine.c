/*
 * Each row of tables/procs.def, entered in a child. What a process may do and what it must not is
 * written down here a second time, by hand; what the rows say in numbers (limits, capabilities) is
 * read from the table and compared with what the kernel shows of the child.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
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

#include "base/io.h"
#include "confine/confine.h"

/* Set before the process locks itself up. */
static int file_fd;
static char new_file[64];

/* What a program that was executed exits with: an attempt that succeeds must not look like one that
 * was refused. */
#define EXECUTED 77

static bool is_refused(void)
{
	return errno == EPERM || errno == EACCES;
}

static long try_open(void)
{
	return open("/etc/passwd", O_RDONLY);
}

static long try_open_proc(void)
{
	struct open_how how = { .flags = O_RDONLY };

	return (long)syscall(SYS_openat2, AT_FDCWD, "/proc/self/status", &how, sizeof(how));
}

static long try_stat(void)
{
	struct stat st;

	return stat("/etc/passwd", &st);
}

static long try_create(void)
{
	return open(new_file, O_WRONLY | O_CREAT, 0600);
}

static long try_exec(void)
{
	char *const argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
			       (char *)(uintptr_t) "exit 77", NULL };

	return execve("/bin/sh", argv, argv + 3);
}

static long try_exec_fd(void)
{
	char *const argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
			       (char *)(uintptr_t) "exit 77", NULL };

	return execveat(file_fd, "", argv, argv + 3, AT_EMPTY_PATH);
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
	return connect(file_fd, (struct sockaddr *)&there, sizeof(there)) < 0 && is_refused() ? -1
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
			       is_refused()
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
	return sendmsg(file_fd, &m, MSG_FASTOPEN | MSG_NOSIGNAL) < 0 && is_refused() ? -1 : 0;
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

static long try_unshare(void)
{
	return unshare(0);
}

/* Arguments that no call takes: the filter answers before the kernel looks at them. */
static long try_number(int nr)
{
	return syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L) < 0 && errno == EPERM ? -1 : 0;
}

/* -- who may what */

#define BIT(p) (INT64_C(1) << (p))

__extension__ enum { /* wider than int */
#define PROC(id, ...) id = BIT(PROC_##id),
#define GROUP(id, procs) id = procs,
#include "procs.def"
		     EVERY = BIT(PROCS) - 1,
		     NONE = 0,
		     /* no filter, and no Landlock either */
		     FREE = SECRETS | SCANNER | SSH_KEYS | GIT | GIT_VIEW | CHILDREN | GOFER |
			    SENTRY | SENTRY_TRACER | GVISOR_AGENT,
		     SERVES = SERVE | SERVE_TLS,
		     LISTED = GATEWAY | SSH_AGENT | UNPACKS | WASMS | SCANS | SERVES | MCPS |
			      RECEIVER,           /* an allow-list */
		     OPEN = FREE | WASM_RUNTIMES, /* no filter */
		     SINKS_OUT = SINK_UNIX | SINK_NET | WEBHOOK | REMOTE,
		     SENDERS = SINKS | WEBHOOK | REMOTE,
};

static const struct attempt {
	const char *name;
	long (*run)(void);
	int nr;           /* where run is NULL */
	int64_t may;      /* these may */
	int64_t landlock; /* these may where the kernel has no Landlock */
	int64_t either;   /* depends on the machine and the user */
	bool socket;      /* is tried on one */
} attempts[] = {
	{ "open", try_open, 0, FREE | BOX | WASM_RUNTIMES | SINKS_OUT,
	  SINK_FILE | UNPACKS | WASMS | SCAN | SCAN_LOOK | SERVES, NONE, false },
	{ "stat", try_stat, 0, EVERY & ~(GATEWAY | SSH_AGENT | SCAN_STREAM | MCPS | RECEIVER), NONE,
	  NONE, false },
	{ "openat2", try_open_proc, 0, OPEN | BOX, SENDERS | UNPACKS | SCAN | SCAN_LOOK, NONE,
	  false },
	{ "create", try_create, 0, FREE | BOX,
	  SENDERS | UNPACKS | WASMS | WASM_RUNTIMES | SCAN | SCAN_LOOK | SERVE, NONE, false },
	{ "execve", try_exec, 0, OPEN, NONE, NONE, false },
	{ "execveat", try_exec_fd, 0, OPEN, NONE, NONE, false },
	{ "clone", try_fork, 0, OPEN | BOX | SENDERS, NONE, NONE, false },
	{ "clone3", try_fork3, 0, OPEN | BOX | WEBHOOK | REMOTE, NONE, NONE, false },
	{ "inet socket", try_inet, 0, DIAL | OPEN | SINKS_OUT | WASM_NET, NONE, NONE, false },
	{ "unix socket", try_unix, 0, OPEN | SINKS_OUT | WASM_NET, NONE, NONE, false },
	{ "netlink socket", try_netlink, 0, OPEN | SINKS_OUT | WASM_NET, NONE, NONE, false },
	{ "packet socket", try_packet, 0, NONE, NONE,
	  SECRETS | SCANNER | SSH_KEYS | GIT | GIT_VIEW | CHILDREN | WASM_RUNTIMES | WASM_NET,
	  false },
	{ "vsock socket", try_vsock, 0, NONE, NONE, OPEN | SINKS_OUT | WASM_NET, false },
	{ "connect", try_connect, 0, DIAL | OPEN | WASM_NET, SENDERS, NONE, true },
	{ "connect by sending", try_fast_open, 0, DIAL | OPEN | WASM_NET | BOX, NONE, SENDERS,
	  true },
	{ "connect by a message", try_fast_open_message, 0, DIAL | OPEN | WASM_NET | BOX, NONE,
	  SENDERS, true },
	{ "send", try_send, 0,
	  EVERY & ~(RECORD | WAF | SSH_AGENT | UNPACKS | WASM | SCANS | SERVE | MCPS | RECEIVER),
	  NONE, NONE, true },
	{ "ptrace", try_trace, 0, OPEN, NONE, NONE, false },
	{ "kill", try_kill, 0, OPEN | BOX, NONE, NONE, false },
	{ "executable memory", try_code, 0,
	  EVERY & ~(GATEWAY | SSH_AGENT | SCANS | SERVES | MCPS | RECEIVER), NONE, NONE, false },
	{ "limits", try_limits, 0, NONE, NONE, OPEN | BOX | SENDERS | WASMS, false },
	{ "dumpable", try_dumpable, 0, OPEN | BOX | SENDERS, NONE, NONE, false },
	{ "io_uring", try_uring, 0, NONE, NONE, OPEN, false },
	{ "memfd", try_memfd, 0, OPEN | BOX | SENDERS, NONE, NONE, false },
	{ "pidfd", try_getfd, 0, OPEN | BOX, NONE, NONE, false },
	{ "unshare", try_unshare, 0, OPEN | BOX, NONE, NONE, false },
	{ "bind", NULL, SYS_bind, OPEN | WASM_NET, NONE, NONE, false },
	{ "listen", NULL, SYS_listen, OPEN | WASM_NET, NONE, NONE, false },
	{ "chmod", NULL, SYS_fchmod, OPEN | BOX | UNPACKS, NONE, NONE, false },
	{ "chown", NULL, SYS_fchown, OPEN | BOX, NONE, NONE, false },
	{ "mount", NULL, SYS_mount, NONE, NONE, OPEN | BOX, false },
	{ "module", NULL, SYS_finit_module, NONE, NONE, OPEN, false },
	{ "bpf", NULL, SYS_bpf, NONE, NONE, OPEN, false },
	{ "keyring", NULL, SYS_keyctl, NONE, NONE, OPEN, false },
	{ "another's memory", NULL, SYS_process_vm_writev, NONE, NONE, OPEN, false },
	{ "another's descriptors", NULL, SYS_pidfd_getfd, NONE, NONE, OPEN, false },
	{ "handles of files", NULL, SYS_open_by_handle_at, NONE, NONE, OPEN, false },
};

static long landlock_version(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* As in the sandbox, where new privileges are gone already; as the plan would have it. */
static int enter(enum proc p, struct confine_own own, struct ward_err *e)
{
	own.no_landlock |= landlock_version() < 2;
	if (BIT(p) & (WASMS | WASM_RUNTIMES) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return confine_enter(p, &own, e);
}

/* Before a function that never returns a sanitizer calls what a confined process may not: the
 * compiler must not find out that this is one. */
static void end(int code)
{
	volatile bool is_alive = true;

	while (is_alive)
		syscall(SYS_exit_group, code);
}

static int exit_code(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int socket_for(const struct attempt *a)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (a->run == try_fast_open || a->run == try_fast_open_message)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

enum { DONE, REFUSED, NOT_CONFINED };

static int in_child(enum proc p, const struct attempt *a)
{
	struct ward_err e = { 0 };
	pid_t pid;
	int code;

	file_fd = a->socket ? socket_for(a) : open("/bin/sh", O_RDONLY | O_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		if (enter(p, (struct confine_own){ 0 }, &e) < 0)
			end(NOT_CONFINED);
		end((a->run ? a->run() : try_number(a->nr)) >= 0 ? DONE : REFUSED);
	}
	close(file_fd);
	code = exit_code(pid);
	unlink(new_file);
	return code == EXECUTED ? DONE : code;
}

static void test_rights(void **state)
{
	bool without = landlock_version() < 4; /* the first that knows ports */

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
		for (enum proc p = 0; p < PROCS; p++) {
			const struct attempt *a = &attempts[i];
			int r = in_child(p, a);

			if ((a->either | (without ? a->landlock : NONE)) & BIT(p) && r <= REFUSED)
				continue;
			if (r != (a->may & BIT(p) ? DONE : REFUSED))
				fail_msg("%s of %s: %d", a->name, confine_name(p), r);
		}
}

/* Without being confined each of these works here, or the rows prove nothing. */
static void test_controls(void **state)
{
	static long (*const works[])(void) = { try_open, try_open_proc, try_create,  try_fork,
					       try_inet, try_unix,      try_netlink, try_kill,
					       try_code, try_dumpable,  try_memfd,   try_unshare };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(works); i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(works[i]() >= 0 ? 0 : 1);
		assert_int_equal(exit_code(pid), 0);
	}
	unlink(new_file);
}

/* -- what the kernel shows of a confined process */

struct shown {
	struct buf status, limits;
	uid_t owner;
};

/* Of a child that has confined itself and waits. */
static void look_at(enum proc p, struct shown *ret)
{
	int ready[2], go[2];
	struct ward_err e = { 0 };
	char path[64], byte = 0;
	struct stat st;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (enter(p, (struct confine_own){ 0 }, &e) < 0)
			end(NOT_CONFINED);
		if (write(ready[1], "r", 1) == 1)
			(void)!read(go[0], &byte, 1);
		end(DONE);
	}
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	assert_int_equal(stat(path, &st), 0);
	ret->owner = st.st_uid;
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 16, &ret->status), 0);
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 16, &ret->limits), 0);
	close(ready[0]);
	close(go[1]);
	assert_int_equal(exit_code(pid), DONE);
}

static unsigned long long field(const struct buf *text, const char *name, int base)
{
	const char *at = strstr(text->data, name);

	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, base);
}

/* The hard limit is the second number behind the name. */
static unsigned long long hard_limit(const struct buf *text, const char *name)
{
	const char *at = strstr(text->data, name);
	char *end_of_soft;

	assert_non_null(at);
	(void)strtoull(at + strlen(name), &end_of_soft, 10);
	return strtoull(end_of_soft, NULL, 10);
}

enum { NOBODY = 1, NO_CAPS = 2, NO_BOUNDING = 4, NO_DUMP = 8, NO_NEW_PRIVS = 16 };
enum { NO_FILTER, ALLOW_LIST, DENY_LIST };

static const struct {
	int steps, filter;
} rows[] = {
#define PROC(id, name, program, steps, landlock, filter, help) { steps, filter },
#include "procs.def"
};

static uint64_t kept_by(enum proc p)
{
	uint64_t set = 0;

#define KEEP(procs, name) set |= (procs)&BIT(p) ? 1ULL << CAP_##name : 0;
#include "procs.def"
	return set;
}

static void check_limits(enum proc p, const struct buf *text)
{
	static const struct {
		int resource;
		const char *name;
	} names[] = {
		{ RLIMIT_NOFILE, "Max open files" },     { RLIMIT_CORE, "Max core file size" },
		{ RLIMIT_FSIZE, "Max file size" },       { RLIMIT_NPROC, "Max processes" },
		{ RLIMIT_MEMLOCK, "Max locked memory" }, { RLIMIT_CPU, "Max cpu time" },
#ifndef __SANITIZE_ADDRESS__
		{ RLIMIT_DATA, "Max data size" },
#endif
	};
#define ONE 1ULL
#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
	static const struct {
		int64_t procs;
		int resource;
		unsigned long long most;
	} limits[] = {
#define LIMIT(procs, name, n, unit) { procs, RLIMIT_##name, (n)*unit },
#include "procs.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		for (size_t n = 0; limits[i].procs & BIT(p) && n < ARRAY_LEN(names); n++)
			if (names[n].resource == limits[i].resource &&
			    hard_limit(text, names[n].name) > limits[i].most)
				fail_msg("%s: %s", confine_name(p), names[n].name);
}

/* Steps and capabilities of each row, written down a second time. */
static void test_steps(void **state)
{
	static const struct {
		int64_t procs;
		int steps;
	} expected[] = {
		{ GATEWAY | SSH_AGENT | SCAN_STREAM | MCPS,
		  NOBODY | NO_CAPS | NO_DUMP | NO_NEW_PRIVS },
		{ UNPACKS | SENDERS | BOX | SCAN | SCAN_LOOK | SERVES,
		  NO_CAPS | NO_DUMP | NO_NEW_PRIVS },
		{ GOFER | SENTRY | SENTRY_TRACER, NO_CAPS | NO_BOUNDING },
		{ GVISOR_AGENT, NO_CAPS | NO_BOUNDING | NO_DUMP | NO_NEW_PRIVS },
		{ RECEIVER, NO_CAPS | NO_NEW_PRIVS },
		{ SECRETS | SCANNER | SSH_KEYS | GIT | CHILDREN, NO_DUMP },
		{ GIT_VIEW | WASMS | WASM_RUNTIMES, 0 },
	};
	int64_t seen = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		for (enum proc p = 0; p < PROCS; p++)
			if (expected[i].procs & BIT(p)) {
				assert_int_equal(rows[p].steps, expected[i].steps);
				seen |= BIT(p);
			}
	assert_int_equal(seen, EVERY);
	for (enum proc p = 0; p < PROCS; p++)
		if (!(BIT(p) & (UNPACK_DIR | SCAN | SCAN_LOOK | BOX | GOFER | SENTRY_TRACER)))
			assert_int_equal(kept_by(p), 0);
	assert_int_equal(kept_by(PROC_SCAN), 1ULL << CAP_DAC_READ_SEARCH);
	assert_int_equal(kept_by(PROC_SCAN_LOOK), 1ULL << CAP_DAC_READ_SEARCH);
	assert_int_equal(kept_by(PROC_UNPACK_DIR), 1ULL << CAP_DAC_READ_SEARCH);
	assert_int_equal(kept_by(PROC_SENTRY_TRACER), 1ULL << CAP_SYS_PTRACE);
	assert_int_equal((kept_by(PROC_BOX) | kept_by(PROC_GOFER)) &
				 (1ULL << CAP_SYS_MODULE | 1ULL << CAP_SYS_RAWIO |
				  1ULL << CAP_SYS_BOOT | 1ULL << CAP_SETPCAP | 1ULL << CAP_NET_RAW |
				  1ULL << CAP_NET_ADMIN | 1ULL << CAP_MKNOD | 1ULL << CAP_BPF),
			 0);
}

static void test_state(void **state)
{
	(void)state;
	for (enum proc p = 0; p < PROCS; p++) {
		const int steps = rows[p].steps;
		uint64_t kept = steps & NO_CAPS ? kept_by(p) : ~0ULL;
		struct shown s = { 0 };

		look_at(p, &s);
		assert_int_equal(field(&s.status, "CapPrm:", 16) & ~kept, 0);
		assert_int_equal(field(&s.status, "CapEff:", 16) & ~kept, 0);
		if (steps & NO_CAPS)
			assert_int_equal(field(&s.status, "CapInh:", 16), 0);
		if (geteuid() == 0) {
			uint64_t has = steps & NO_BOUNDING ? ~kept : 0;

			assert_int_equal(field(&s.status, "CapBnd:", 16) & has, 0);
			if (steps & NOBODY)
				assert_int_equal(field(&s.status, "Uid:", 10), 65534);
		} else {
			assert_int_equal(s.owner == geteuid(), !(steps & NO_DUMP));
		}
		if (steps & NO_NEW_PRIVS)
			assert_int_equal(field(&s.status, "NoNewPrivs:", 10), 1);
		assert_int_equal(field(&s.status, "Seccomp:", 10), rows[p].filter ? 2 : 0);
		check_limits(p, &s.limits);
		buf_free(&s.status);
		buf_free(&s.limits);
	}
}

/* -- files and ports of the caller's */

struct place {
	char dir[64], shown[80], own[80], other[80];
};

static int write_new(const char *dir, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

/* 0: all as it should be, otherwise what is not. */
static int use_trees(const struct place *at)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/file", at->shown);
	if (open(path, O_RDONLY) < 0)
		return 10;
	if (open(path, O_WRONLY) >= 0 || write_new(at->shown, "new") >= 0)
		return 11;
	if (write_new(at->own, "new") < 0)
		return 12;
	if (write_new(at->other, "new") >= 0)
		return 13;
	snprintf(path, sizeof(path), "%s/file", at->other);
	return open(path, O_RDONLY) >= 0 ? 14 : 0;
}

static void make_place(struct place *at)
{
	int fd;

	snprintf(at->dir, sizeof(at->dir), "/tmp/ward-confine-XXXXXX");
	assert_non_null(mkdtemp(at->dir));
	snprintf(at->shown, sizeof(at->shown), "%s/shown", at->dir);
	snprintf(at->own, sizeof(at->own), "%s/own", at->dir);
	snprintf(at->other, sizeof(at->other), "%s/other", at->dir);
	assert_int_equal(mkdir(at->shown, 0700) | mkdir(at->own, 0700) | mkdir(at->other, 0700), 0);
	fd = write_new(at->shown, "file");
	close(fd);
	fd = write_new(at->other, "file");
	close(fd);
}

static void remove_place(const struct place *at)
{
	static const char *const files[] = { "shown/file", "own/new", "other/file" };
	char path[128];

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", at->dir, files[i]);
		unlink(path);
	}
	rmdir(at->shown);
	rmdir(at->own);
	rmdir(at->other);
	assert_int_equal(rmdir(at->dir), 0);
}

static void test_trees(void **state)
{
	(void)state;
	if (landlock_version() < 2)
		skip();
	for (enum proc p = 0; p < PROCS; p++) {
		struct ward_err e = { 0 };
		struct place at;
		pid_t pid;
		int code;

		if (!(BIT(p) & (SENDERS | UNPACKS | WASMS | WASM_RUNTIMES)))
			continue;
		make_place(&at);
		pid = fork();
		if (pid == 0) {
			struct confine_tree trees[] = {
				{ .fd = open(at.shown, O_RDONLY), .rights = CONFINE_READ },
				{ .path = at.own, .rights = CONFINE_WRITE },
				{ .path = "/nonexistent", .rights = CONFINE_WRITE },
			};
			struct confine_own own = { .trees = trees, .tree_count = 3 };

			end(enter(p, own, &e) < 0 ? NOT_CONFINED : use_trees(&at));
		}
		code = exit_code(pid);
		remove_place(&at);
		if (code)
			fail_msg("%s: %d", confine_name(p), code);
	}
}

static bool may_connect(unsigned port)
{
	struct sockaddr_in there = { .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	return connect(fd, (struct sockaddr *)&there, sizeof(there)) == 0 || !is_refused();
}

static void test_ports(void **state)
{
	struct ward_err e = { 0 };
	pid_t pid;

	(void)state;
	if (landlock_version() < 4)
		skip();
	pid = fork();
	if (pid == 0) {
		if (enter(PROC_SINK_NET, (struct confine_own){ .port = 6514 }, &e) < 0)
			end(NOT_CONFINED);
		end(!may_connect(6514) ? 10 : !may_connect(53) ? 11 : may_connect(6515) ? 12 : 0);
	}
	assert_int_equal(exit_code(pid), 0);
}

/* -- the filters themselves, over every number */

static uint32_t run_filter(const struct sock_filter *code, uint32_t arch, uint32_t nr)
{
	uint32_t value = 0;

	for (size_t at = 0;; at++) {
		const struct sock_filter *i = &code[at];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			value = i->k == offsetof(struct seccomp_data, nr)     ? nr
				: i->k == offsetof(struct seccomp_data, arch) ? arch
									      : 0;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			at += value == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			at += value >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			at += value & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail();
		}
	}
}

/* Whatever the list: none starts a program, looks into another process or changes the kernel; and
 * no other numbering of the same calls is a way around it. */
static void test_filters(void **state)
{
	static const uint32_t never[] = { SYS_execve,
					  SYS_execveat,
					  SYS_ptrace,
					  SYS_bpf,
					  SYS_init_module,
					  SYS_finit_module,
					  SYS_kexec_load,
					  SYS_process_vm_readv,
					  SYS_userfaultfd,
					  SYS_perf_event_open,
					  SYS_io_uring_setup,
					  SYS_keyctl,
					  SYS_open_by_handle_at,
					  SYS_pidfd_getfd };
	struct sock_filter code[CONFINE_FILTER_MAX];

	(void)state;
	for (enum proc p = 0; p < PROCS; p++) {
		int n = confine_filter(p, code);

		assert_int_equal(n > 0, rows[p].filter != NO_FILTER);
		for (uint32_t nr = 0; n > 0 && nr < 1024; nr++) {
			assert_int_equal(run_filter(code, AUDIT_ARCH_I386, nr),
					 SECCOMP_RET_KILL_PROCESS);
			assert_int_equal(run_filter(code, AUDIT_ARCH_X86_64, nr | 0x40000000),
					 SECCOMP_RET_ERRNO | EPERM);
		}
		for (size_t i = 0; n > 0 && i < ARRAY_LEN(never); i++)
			assert_int_equal(run_filter(code, AUDIT_ARCH_X86_64, never[i]),
					 SECCOMP_RET_ERRNO | EPERM);
		if (rows[p].filter == ALLOW_LIST) /* a call that no kernel has yet */
			assert_int_equal(run_filter(code, AUDIT_ARCH_X86_64, 1000),
					 SECCOMP_RET_ERRNO | EPERM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_controls), cmocka_unit_test(test_rights),
		cmocka_unit_test(test_steps),    cmocka_unit_test(test_state),
		cmocka_unit_test(test_trees),    cmocka_unit_test(test_ports),
		cmocka_unit_test(test_filters),
	};

	snprintf(new_file, sizeof(new_file), "/tmp/.ward-confine-%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
