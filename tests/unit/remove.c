/* Trees that were made to stay: deep, closed to their owner, with the names that a removal needs
 * itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/remove.h"

#define FILES 48 /* descriptors that the removal may have */
#define NOBODY 65534

/* Makes directories in each other; the last one has that mode and something in it. */
static int make_deep(int top_fd, const char *name, unsigned depth, mode_t mode)
{
	int fd = dup(top_fd), r;

	for (unsigned i = 0; i < depth && fd >= 0; i++) {
		int next;

		next = mkdirat(fd, name, 0755) < 0
			       ? -1
			       : openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	r = fd < 0 || mkdirat(fd, "full", 0755) < 0 || fchmod(fd, mode) < 0 ? -1 : 0;
	close(fd);
	return r;
}

/* Names of the removal's own, some are files, some are directories with something in them; and
 * enough trees that one comes before them. */
static int make_names(int top_fd)
{
	char name[32];

	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), ".up-%u%s", i / 2, i % 2 ? "/full" : "");
		if (i % 4 < 2 ? mkdirat(top_fd, name, 0755) < 0
			      : i % 2 == 0 && mknodat(top_fd, name, S_IFREG | 0600, 0) < 0)
			return -1;
	}
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "tree-%u", i);
		if (make_deep(top_fd, name, 40, 0755) < 0)
			return -1;
	}
	return 0;
}

/* A file system that does not do something: the call ends with that error where its argument is
 * nothing, or where it is something. */
struct lack {
	unsigned call, argument;
	bool something;
	int error;
	int expected; /* of the removal; 0: it is done all the same */
};

/* NFS, 9p: a rename has no flags */
static const struct lack no_flags = { SYS_renameat2, 4, true, EINVAL, 0 };
/* btrfs: no room to unlink a file */
static const struct lack full = { SYS_unlinkat, 2, false, ENOSPC, -ENOSPC };

static int take_away(const struct lack *l)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, l->call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args) + 8 * l->argument),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, l->something, !l->something),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)l->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
		       ? -1
		       : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* In a process of its own: what is taken away does not come back. */
static bool ends_as_expected(const char *path, const struct lack *l)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(take_away(l) < 0 || remove_tree(path) != l->expected);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static int in_child(unsigned depth, mode_t mode, bool names, const struct lack *lack)
{
	const struct rlimit few = { FILES, FILES };
	char place[] = "/tmp/ward-remove-XXXXXX", inner[64];
	struct stat st;
	int fd, r;

	if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
		return 10;
	if (!mkdtemp(place))
		return 11;
	snprintf(inner, sizeof(inner), "%s/top", place);
	fd = mkdir(inner, 0700) < 0 ? -1 : open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || (names && make_names(fd) < 0) || make_deep(fd, "d", depth, mode) < 0)
		return 12;
	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		return 13;
	if (lack && !ends_as_expected(inner, lack))
		return 16;
	r = remove_tree(inner);
	if (r < 0)
		fprintf(stderr, "remove_tree: %s\n", strerror(-r));
	if (r < 0 || stat(inner, &st) == 0)
		return 14;
	return rmdir(place) < 0 ? 15 : 0;
}

static void expect(unsigned depth, mode_t mode, bool names, const struct lack *lack)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(in_child(depth, mode, names, lack));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void expect_gone(unsigned depth, mode_t mode, bool names)
{
	expect(depth, mode, names, NULL);
}

static void test_depth(void **state)
{
	(void)state;
	expect_gone(5, 0755, false);
	expect_gone(3000, 0755, false);
}

static void test_names(void **state)
{
	(void)state;
	expect_gone(300, 0755, true);
}

/* The one that has to be moved up is closed: 17 is the first. */
static void test_closed(void **state)
{
	(void)state;
	for (unsigned depth = 15; depth < 20; depth++) {
		expect_gone(depth, 0555, false);
		expect_gone(depth, 0, false);
	}
}

static void test_lacks(void **state)
{
	(void)state;
	expect(300, 0755, true, &no_flags);
	expect(5, 0755, true, &full);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_depth),
					    cmocka_unit_test(test_names),
					    cmocka_unit_test(test_closed),
					    cmocka_unit_test(test_lacks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
