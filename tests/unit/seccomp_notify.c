/*
 * Denied calls as events, with a real filter and listener in a child; and on the Landlock level the
 * calls that the supervisor makes on its behalf, each also in a form that must be refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>

#include "base/io.h"
#include "engine/native/seccomp.h"
#include "event/result.h"
#include "observe/notify.h"

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 250 + 1);                                                 \
	} while (0)
#define EXPECT_ERRNO(call, code) EXPECT((call) < 0 && errno == (code))

struct box {
	struct spec spec;
	struct plan plan;
	struct plan_mount mount;
	struct result result;
	struct notify *notify;
	pid_t pid;
	char dir[64]; /* holds ws/ and outside/ */
};

/* Sends the listener with MSG_NOSIGNAL; sendmsg is in every set. */
static void send_fd(int socket_fd, int fd)
{
	char word = 'l';
	struct iovec iov = { &word, 1 };
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	EXPECT(sendmsg(socket_fd, &m, MSG_NOSIGNAL) == 1);
}

static void start(struct box *b, unsigned set, unsigned flags, void (*body)(struct box *))
{
	struct sock_filter code[SECCOMP_PROGRAM_MAX];
	struct ward_err e = { 0 };
	size_t len, fds;
	int pair[2], fd;
	char word;

	b->spec.policy.proc_syscalls = set;
	b->plan.spec = &b->spec;
	b->plan.level = flags & SECCOMP_LANDLOCK ? LEVEL_LANDLOCK : LEVEL_NAMESPACES;
	b->plan.ids.host_uid = getuid();
	assert_int_equal(seccomp_program(set, flags, code, SECCOMP_PROGRAM_MAX, &len), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	b->pid = fork();
	assert_true(b->pid >= 0);
	if (b->pid == 0) {
		EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		fd = seccomp_install(code, len, true);
		EXPECT(fd >= 0);
		send_fd(pair[1], fd);
		close(fd);
		body(b);
		_exit(0);
	}
	close(pair[1]);
	assert_int_equal(io_recv_fds(pair[0], &word, 1, &fd, 1, &fds), 1);
	assert_int_equal(fds, 1);
	close(pair[0]);
	assert_int_equal(notify_create(fd, &b->plan, &b->notify, &e), 0);
}

/* Answers until the child is dead; its wait status. */
static int serve(struct box *b)
{
	int status;

	for (;;) {
		struct pollfd p = { .fd = notify_fd(b->notify), .events = POLLIN };
		unsigned wait_ms = 0;

		if (poll(&p, 1, 5) > 0 && p.revents & POLLIN)
			wait_ms = notify_handle(b->notify, &b->result);
		assert_in_range(wait_ms, 0, 100);
		if (wait_ms)
			poll(NULL, 0, (int)wait_ms);
		if (waitpid(b->pid, &status, WNOHANG) == b->pid)
			return status;
	}
}

static void end(struct box *b)
{
	notify_destroy(b->notify);
	result_clear(&b->result);
}

static const struct denial *find_denial(const struct result *r, const char *start)
{
	for (size_t i = 0; i < r->denial_count; i++)
		if (strncmp(r->denials[i].what, start, strlen(start)) == 0)
			return &r->denials[i];
	return NULL;
}

/* ---- denials ---- */

static void denied_calls(struct box *b)
{
	(void)b;
	EXPECT_ERRNO(mount("none", "/mnt", "tmpfs", 0, NULL), EPERM);
	EXPECT_ERRNO(mount("none", "/mnt", "tmpfs", 0, NULL), EPERM);
	EXPECT_ERRNO(syscall(SYS_ptrace, 0, 0, 0, 0), EPERM);
	EXPECT_ERRNO(syscall(SYS_bpf, 0, NULL, 0), EPERM);
	EXPECT_ERRNO(chmod("/tmp", 06777), EPERM);
	EXPECT_ERRNO(syscall(SYS_unshare, 0x10000000), EPERM);
}

static void check_denial(const struct result *r, const char *call, const char *why,
			 const char *remedy, uint64_t count)
{
	auto_buf text = { 0 };
	const struct denial *d;

	buf_printf(&text, "system call %s by pid ", call);
	d = find_denial(r, text.data);
	if (!d) {
		fail_msg("no denial of %s", call);
		return;
	}
	assert_non_null(strstr(d->what, "test-seccomp-notify)"));
	assert_string_equal(d->why, why);
	assert_string_equal(d->remedy, remedy);
	assert_int_equal(d->count, count);
}

/* A filter of the host's own (a container's) answers calls before ward's listener hears of them:
 * of two filters the stricter answer counts. */
static void skip_if_filtered(void)
{
	char line[256];
	bool filtered = false;
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status))
		filtered |= strncmp(line, "Seccomp:\t2", 10) == 0;
	if (status)
		fclose(status);
	if (!filtered)
		return;
	print_message("skipped: a system call filter of this container answers first\n");
	skip();
}

static void test_denials(void **state)
{
	struct box b = { 0 };

	skip_if_filtered();
	(void)state;
	start(&b, SYSCALLS_DEFAULT, 0, denied_calls);
	assert_int_equal(serve(&b), 0);
	check_denial(&b.result, "mount",
		     "it needs a namespace of its own (unshare -Ur), which a sandbox may "
		     "not create",
		     "process.nesting: true", 2);
	check_denial(&b.result, "ptrace", "not in the default set", "process.syscalls: build", 1);
	check_denial(&b.result, "bpf", "a large kernel interface with many past vulnerabilities",
		     "", 1);
	check_denial(&b.result, "chmod",
		     "set-user-id and set-group-id bits are never given to a file", "", 1);
	check_denial(&b.result, "unshare", "a sandbox may not create namespaces",
		     "process.nesting: true", 1);
	end(&b);
}

static void storm(struct box *b)
{
	(void)b;
	for (;;)
		syscall(SYS_bpf, 0, NULL, 0);
}

static void test_storm(void **state)
{
	struct box b = { 0 };
	uint64_t begin = io_now_ms(), total = 0;
	int status;

	skip_if_filtered();
	(void)state;
	start(&b, SYSCALLS_DEFAULT, 0, storm);
	while (io_now_ms() - begin < 650) {
		struct pollfd p = { .fd = notify_fd(b.notify), .events = POLLIN };

		if (poll(&p, 1, 5) > 0) {
			unsigned wait_ms = notify_handle(b.notify, &b.result);

			poll(NULL, 0, (int)wait_ms);
		}
	}
	kill(b.pid, SIGKILL);
	assert_int_equal(waitpid(b.pid, &status, 0), b.pid);
	assert_int_equal(notify_handle(b.notify, &b.result), 0);
	for (size_t i = 0; i < b.result.denial_count; i++)
		total += b.result.denials[i].count;
	assert_in_range(total, 200, 800);
	/* one process: one entry, and the rest counted */
	assert_int_equal(b.result.denial_count, 2);
	assert_non_null(find_denial(&b.result, "system call bpf, more of them"));
	assert_int_equal(b.result.denials[0].count, 100);
	end(&b);
}

static void one_call(struct box *b)
{
	(void)b;
	syscall(SYS_bpf, 0, NULL, 0);
	_exit(77);
}

static void test_dying_caller(void **state)
{
	struct box b = { 0 };
	struct pollfd p;
	int status;

	(void)state;
	start(&b, SYSCALLS_DEFAULT, 0, one_call);
	p = (struct pollfd){ .fd = notify_fd(b.notify), .events = POLLIN };
	assert_int_equal(poll(&p, 1, 5000), 1);
	kill(b.pid, SIGKILL);
	assert_int_equal(waitpid(b.pid, &status, 0), b.pid);
	assert_int_equal(notify_handle(b.notify, &b.result), 0);
	assert_int_equal(b.result.denial_count, 0);
	end(&b);
}

static void run_evil(struct box *b)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/a\n\033[2Jb", b->dir);
	execl(path, path, "call", NULL);
	_exit(99);
}

static void test_hostile_name(void **state)
{
	struct box b = { .dir = "/tmp/ward-notify-XXXXXX" };
	char command[256];

	skip_if_filtered();
	(void)state;
	assert_non_null(mkdtemp(b.dir));
	snprintf(command, sizeof(command), "cp /proc/%d/exe \"$(printf '%s/a\\n\\033[2Jb')\"",
		 getpid(), b.dir);
	assert_int_equal(system(command), 0);
	start(&b, SYSCALLS_DEFAULT, 0, run_evil);
	assert_int_equal(serve(&b), 77 << 8);
	assert_int_equal(b.result.denial_count, 1);
	assert_null(strpbrk(b.result.denials[0].what, "\n\033"));
	assert_non_null(strstr(b.result.denials[0].what, "[2Jb"));
	end(&b);
	snprintf(command, sizeof(command), "rm -rf %s", b.dir);
	assert_int_equal(system(command), 0);
}

/* ---- brokered calls ---- */

static void make_workspace(struct box *b)
{
	char path[128];

	strcpy(b->dir, "/tmp/ward-broker-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	assert_int_equal(chdir(b->dir), 0);
	assert_int_equal(mkdir("ws", 0755), 0);
	assert_int_equal(mkdir("ws/sub", 0755), 0);
	assert_int_equal(mkdir("outside", 0755), 0);
	assert_int_equal(close(open("ws/file", O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(close(open("outside/file", O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(symlink("../outside/file", "ws/out"), 0);
	assert_int_equal(symlink("../outside", "ws/outdir"), 0);
	assert_int_equal(symlink("../file", "ws/sub/in"), 0);
	snprintf(path, sizeof(path), "%s/outside/file", b->dir);
	assert_int_equal(symlink(path, "ws/absolute"), 0);
	assert_int_equal(symlink("/proc/self/cwd/../outside/file", "ws/magic"), 0);
	snprintf(path, sizeof(path), "%s/ws", b->dir);
	b->mount = (struct plan_mount){
		.kind = MOUNT_BIND, .writable = true, .source = strdup(path), .target = ""
	};
	b->plan.mounts = &b->mount;
	b->plan.mount_count = 1;
}

static void remove_workspace(struct box *b)
{
	char command[256];

	free((char *)(uintptr_t)b->mount.source);
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf %s", b->dir);
	assert_int_equal(system(command), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	EXPECT(lstat(path, &st) == 0);
	return st.st_mode & 07777;
}

static void modes(struct box *b)
{
	char path[128];
	int ws, file, outside, gone;

	/* the current directory is not in the workspace */
	EXPECT(chmod("ws/file", 0640) < 0 && errno == EPERM);
	EXPECT(chdir("ws") == 0);
	EXPECT(chmod("file", 0640) == 0 && mode_of("file") == 0640);
	EXPECT(chmod("sub/../file", 0641) == 0 && mode_of("file") == 0641);
	EXPECT(chmod("sub/in", 0642) == 0 && mode_of("file") == 0642);
	snprintf(path, sizeof(path), "%s/ws/file", b->dir);
	EXPECT(chmod(path, 0644) == 0 && mode_of("file") == 0644);
	EXPECT(chmod(".", 0700) == 0 && mode_of(".") == 0700);
	EXPECT((ws = open(".", O_PATH)) >= 0);
	EXPECT(chdir("sub") == 0);
	EXPECT(fchmodat(ws, "file", 0600, 0) == 0 && mode_of("../file") == 0600);
	EXPECT(chmod("../file", 0601) == 0);
	EXPECT((file = open("../file", O_RDONLY)) >= 0);
	EXPECT(fchmod(file, 0605) == 0 && mode_of("../file") == 0605);
	EXPECT(syscall(452, ws, "file", 0606, 0) == 0 && mode_of("../file") == 0606);
	EXPECT(syscall(452, file, "", 0600, AT_EMPTY_PATH) == 0 && mode_of("../file") == 0600);
	EXPECT(chdir("..") == 0);

	EXPECT_ERRNO(chmod("missing", 0600), ENOENT);
	EXPECT_ERRNO(chmod("", 0600), ENOENT);
	EXPECT_ERRNO(chmod("file/x", 0600), ENOTDIR);
	EXPECT_ERRNO(syscall(SYS_chmod, 8, 0600), EFAULT);
	EXPECT_ERRNO(syscall(SYS_chmod, -1L, 0600), EFAULT);
	EXPECT_ERRNO(fchmod(99, 0600), EBADF);
	EXPECT_ERRNO(fchmod(-1, 0600), EBADF);
	EXPECT_ERRNO(chmod("file", 04600), EPERM);
	EXPECT_ERRNO(chmod("out", 0666), EPERM);
	EXPECT_ERRNO(chmod("absolute", 0666), EPERM);
	EXPECT_ERRNO(chmod("magic", 0666), EPERM);
	EXPECT_ERRNO(chmod("outdir/file", 0666), EPERM);
	EXPECT_ERRNO(chmod("../outside/file", 0666), EPERM);
	EXPECT_ERRNO(chmod("/etc/passwd", 0666), EPERM);
	snprintf(path, sizeof(path), "%s/ws/../outside/file", b->dir);
	EXPECT_ERRNO(chmod(path, 0666), EPERM);
	snprintf(path, sizeof(path), "%s/wsx", b->dir);
	EXPECT_ERRNO(chmod(path, 0666), EPERM);
	EXPECT((outside = open("../outside/file", O_RDONLY)) >= 0);
	EXPECT_ERRNO(fchmod(outside, 0666), EPERM);
	EXPECT_ERRNO(syscall(452, outside, "", 0666, AT_EMPTY_PATH), EPERM);
	EXPECT_ERRNO(fchmod(0, 0666), EPERM);
	EXPECT((gone = open("gone", O_CREAT | O_RDWR, 0600)) >= 0 && unlink("gone") == 0);
	EXPECT(fchmod(gone, 0644) == 0);
	EXPECT(mode_of("../outside/file") == 0600);
}

static void times(struct box *b)
{
	struct timespec t[2] = { { 1000, 5 }, { 2000, 7 } };
	struct timeval v[2] = { { 3000, 1 }, { 4000, 2 } }, bad[2] = { { 1, 1000000 }, { 1, 0 } };
	struct utimbuf u = { 5000, 6000 };
	struct stat st;
	int fd;

	(void)b;
	EXPECT(chdir("ws") == 0);
	EXPECT(utimensat(AT_FDCWD, "file", t, 0) == 0);
	EXPECT(stat("file", &st) == 0 && st.st_atim.tv_nsec == 5 && st.st_mtim.tv_sec == 2000);
	EXPECT(utimensat(AT_FDCWD, "out", t, AT_SYMLINK_NOFOLLOW) == 0);
	EXPECT(lstat("out", &st) == 0 && st.st_mtim.tv_sec == 2000);
	EXPECT(syscall(SYS_utimes, "file", v) == 0);
	EXPECT(stat("file", &st) == 0 && st.st_mtim.tv_sec == 4000 && st.st_mtim.tv_nsec == 2000);
	EXPECT_ERRNO(syscall(SYS_utimes, "file", bad), EINVAL);
	EXPECT(syscall(SYS_utime, "file", &u) == 0);
	EXPECT(stat("file", &st) == 0 && st.st_mtim.tv_sec == 6000);
	EXPECT(syscall(SYS_futimesat, AT_FDCWD, "file", v) == 0);
	EXPECT((fd = open("file", O_RDWR)) >= 0);
	EXPECT(futimens(fd, t) == 0);
	EXPECT(stat("file", &st) == 0 && st.st_mtim.tv_sec == 2000);
	EXPECT(futimens(fd, NULL) == 0);
	EXPECT(stat("file", &st) == 0 && st.st_mtim.tv_sec > 1000000000);
	EXPECT_ERRNO(utimensat(AT_FDCWD, "out", t, 0), EPERM);
	EXPECT_ERRNO(utimensat(AT_FDCWD, "../outside/file", t, 0), EPERM);
	EXPECT_ERRNO(utimensat(AT_FDCWD, "file", t, 0x8000), EINVAL);
	EXPECT_ERRNO(syscall(SYS_utimensat, AT_FDCWD, "file", 8, 0), EFAULT);
}

static void attributes(struct box *b)
{
	char value[8], *large = malloc(1 << 20);
	int fd;

	(void)b;
	EXPECT(chdir("ws") == 0);
	if (setxattr("file", "user.a", "1", 1, 0) < 0 && errno == EOPNOTSUPP)
		_exit(0); /* a file system without them */
	EXPECT(getxattr("file", "user.a", value, sizeof(value)) == 1 && value[0] == '1');
	EXPECT_ERRNO(setxattr("file", "user.a", "1", 1, XATTR_CREATE), EEXIST);
	EXPECT_ERRNO(setxattr("file", "security.capability", "1", 1, 0), EOPNOTSUPP);
	EXPECT_ERRNO(setxattr("file", "trusted.x", "1", 1, 0), EOPNOTSUPP);
	EXPECT_ERRNO(setxattr("file", "user.a", large, 1 << 20, 0), E2BIG);
	EXPECT_ERRNO(setxattr("out", "user.a", "1", 1, 0), EPERM);
	EXPECT_ERRNO(lsetxattr("out", "user.a", "1", 1, 0), EOPNOTSUPP);
	EXPECT_ERRNO(setxattr("../outside/file", "user.a", "1", 1, 0), EPERM);
	EXPECT((fd = open("file", O_RDONLY)) >= 0);
	EXPECT(fsetxattr(fd, "user.b", "", 0, 0) == 0);
	EXPECT(fremovexattr(fd, "user.b") == 0);
	EXPECT(removexattr("file", "user.a") == 0);
	EXPECT_ERRNO(removexattr("file", "user.a"), ENODATA);
	EXPECT_ERRNO(chown("file", getuid(), getgid()), EPERM);
}

static void check_brokered(void (*body)(struct box *), uid_t uid, int expected)
{
	struct box b = { 0 };

	make_workspace(&b);
	start(&b, SYSCALLS_DEFAULT, SECCOMP_LANDLOCK, body);
	if (uid != getuid()) {
		/* the sandbox's user does not own what is there */
		struct ward_err e = { 0 };
		int fd = dup(notify_fd(b.notify));

		notify_destroy(b.notify);
		b.plan.ids.host_uid = uid;
		assert_int_equal(notify_create(fd, &b.plan, &b.notify, &e), 0);
	}
	assert_int_equal(serve(&b), expected);
	end(&b);
	remove_workspace(&b);
}

static void others_file(struct box *b)
{
	(void)b;
	EXPECT(chdir("ws") == 0);
	EXPECT_ERRNO(chmod("file", 0666), EPERM);
	EXPECT_ERRNO(utimensat(AT_FDCWD, "file", NULL, 0), EPERM);
	EXPECT_ERRNO(setxattr("file", "user.a", "1", 1, 0), EPERM);
}

static void test_brokered(void **state)
{
	(void)state;
	check_brokered(modes, getuid(), 0);
	check_brokered(times, getuid(), 0);
	check_brokered(attributes, getuid(), 0);
	check_brokered(others_file, getuid() + 1, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_denials),      cmocka_unit_test(test_storm),
		cmocka_unit_test(test_dying_caller), cmocka_unit_test(test_hostile_name),
		cmocka_unit_test(test_brokered),
	};

	if (argc > 1 && strcmp(argv[1], "call") == 0)
		one_call(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
