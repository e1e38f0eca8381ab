/* The filter in force: each program is installed in a child, which then makes real calls. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/native/seccomp.h"
#include "policy/policy.h"

/* 0: as expected; a child's exit code names the line that was not. */
#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 250 + 1);                                                 \
	} while (0)
#define EXPECT_ERRNO(call, code) EXPECT((call) < 0 && errno == (code))

static void confine(unsigned set, unsigned flags)
{
	static struct sock_filter code[SECCOMP_PROGRAM_MAX];
	size_t len;

	EXPECT(seccomp_program(set, flags | SECCOMP_NO_LISTENER, code, SECCOMP_PROGRAM_MAX, &len) ==
	       0);
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(seccomp_install(code, len, false) == 0);
}

static int in_child(void (*body)(unsigned set, unsigned flags), unsigned set, unsigned flags)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		confine(set, flags);
		body(set, flags);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void ordinary_life(unsigned set, unsigned flags)
{
	char path[] = "/tmp/ward-seccomp-XXXXXX";
	int pair[2], status, fd;
	pid_t pid;
	void *p;

	(void)set;
	(void)flags;
	EXPECT((fd = mkstemp(path)) >= 0);
	EXPECT(write(fd, "x", 1) == 1);
	EXPECT(unlink(path) == 0);
	EXPECT_ERRNO(fchmod(fd, 04755), EPERM);
	EXPECT_ERRNO(open("/tmp", O_TMPFILE | O_RDWR, 02644), EPERM);
	EXPECT_ERRNO(syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_RDWR, 0xfffff800L | 0644),
		     EPERM);
	EXPECT((p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0)) != MAP_FAILED);
	memset(p, 1, 1 << 20);
	EXPECT(munmap(p, 1 << 20) == 0);
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	EXPECT((pid = fork()) >= 0);
	if (pid == 0)
		_exit(write(pair[1], "y", 1) == 1 ? 7 : 8);
	EXPECT(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	EXPECT_ERRNO(ioctl(0, TIOCSTI, "x"), EPERM);
	EXPECT_ERRNO(syscall(SYS_ioctl, 0, 0x500000000L | TIOCSTI, "x"), EPERM);
	EXPECT_ERRNO(mknod("/tmp/ward-seccomp-null", S_IFCHR | 0600, 0), EPERM);
	EXPECT_ERRNO(syscall(SYS_clone3, NULL, 0), ENOSYS);
	EXPECT_ERRNO(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS);
	EXPECT_ERRNO(syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0), ENOSYS);
	EXPECT_ERRNO(syscall(1000), ENOSYS);
	EXPECT_ERRNO(syscall(SYS_keyctl, 0, -3, 0, 0, 0), EPERM);
	EXPECT_ERRNO(socket(AF_VSOCK, SOCK_STREAM, 0), EPERM);
	EXPECT_ERRNO(syscall(SYS_personality, 0x0400000UL), EPERM);
}

static void test_ordinary_life(void **state)
{
	static const unsigned flags[] = { 0, SECCOMP_NESTING, SECCOMP_LANDLOCK };

	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (size_t i = 0; i < ARRAY_LEN(flags); i++)
			assert_int_equal(in_child(ordinary_life, set, flags[i]), 0);
}

static void namespaces(unsigned set, unsigned flags)
{
	(void)set;
	if (flags & SECCOMP_NESTING) {
		EXPECT(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
		return;
	}
	EXPECT_ERRNO(unshare(CLONE_NEWUSER), EPERM);
	EXPECT_ERRNO(unshare(CLONE_NEWNS), EPERM);
	EXPECT_ERRNO(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL), EPERM);
	EXPECT(unshare(CLONE_FS) == 0);
}

static void test_namespaces(void **state)
{
	(void)state;
	for (unsigned set = 0; set < 3; set++) {
		assert_int_equal(in_child(namespaces, set, 0), 0);
		assert_int_equal(in_child(namespaces, set, SECCOMP_NESTING), 0);
	}
}

/* getpid by the i386 table: without the architecture check it would be number 20, writev */
static void i386_call(unsigned set, unsigned flags)
{
	long r = 20;

	(void)set;
	(void)flags;
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
}

static void x32_call(unsigned set, unsigned flags)
{
	(void)set;
	(void)flags;
	syscall(SYS_getpid | 0x40000000);
}

static void test_other_machines(void **state)
{
	(void)state;
	for (unsigned set = 0; set < 3; set++) {
		int status = in_child(i386_call, set, 0);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
		status = in_child(x32_call, set, 0);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

static void sockets(unsigned set, unsigned flags)
{
	int fd;

	if (flags & SECCOMP_LANDLOCK) {
		EXPECT_ERRNO(socket(AF_INET, SOCK_STREAM, 0), EPERM);
		EXPECT_ERRNO(socket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
		return;
	}
	EXPECT((fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
	EXPECT(socket(AF_UNIX, SOCK_DGRAM, 0) >= 0);
	EXPECT_ERRNO(socket(AF_INET, SOCK_RAW, 1), EPERM);
	EXPECT_ERRNO(socket(AF_PACKET, SOCK_DGRAM, 0), EPERM);
	if (set == SYSCALLS_STRICT)
		EXPECT_ERRNO(socket(AF_NETLINK, SOCK_RAW, 0), EAFNOSUPPORT);
	else
		EXPECT(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0);
	EXPECT_ERRNO(socket(AF_NETLINK, SOCK_RAW, 15), set ? EPROTONOSUPPORT : EAFNOSUPPORT);
}

static void memory(unsigned set, unsigned flags)
{
	int fd = (int)syscall(SYS_memfd_create, "x", MFD_CLOEXEC);

	if (flags & SECCOMP_CLOSE_MEMORY) {
		EXPECT(fd < 0 && errno == ENOSYS);
		if (set)
			EXPECT_ERRNO(syscall(SYS_shmget, 0, 4097, 0600), ENOSYS);
	} else {
		EXPECT(fd >= 0);
	}
	EXPECT(mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) ==
		       MAP_FAILED &&
	       errno == ENOMEM);
}

static void test_sockets_and_memory(void **state)
{
	(void)state;
	for (unsigned set = 0; set < 3; set++) {
		assert_int_equal(in_child(sockets, set, 0), 0);
		assert_int_equal(in_child(sockets, set, SECCOMP_LANDLOCK), 0);
		assert_int_equal(in_child(memory, set, 0), 0);
		assert_int_equal(in_child(memory, set, SECCOMP_CLOSE_MEMORY), 0);
	}
}

/* A program's own filter: allowed, but no listener. */
static void own_filter(unsigned set, unsigned flags)
{
	struct sock_filter allow = { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };

	(void)flags;
	if (set == SYSCALLS_STRICT) {
		EXPECT(seccomp_install(&allow, 1, false) == -ENOSYS);
		return;
	}
	EXPECT(seccomp_install(&allow, 1, false) == 0);
	EXPECT(seccomp_install(&allow, 1, true) == -EPERM);
}

static void test_own_filter(void **state)
{
	(void)state;
	for (unsigned set = 0; set < 3; set++)
		assert_int_equal(in_child(own_filter, set, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordinary_life),  cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_other_machines), cmocka_unit_test(test_sockets_and_memory),
		cmocka_unit_test(test_own_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
