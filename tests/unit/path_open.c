/*
 * Opening beneath a directory with openat2 and without it (a filter takes it away in a child): both
 * must come to the same file or to an error, for every row.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/path.h"

static const struct {
	const char *name, *target;
} links[] = {
	{ "file", "dir/real" },  { "twice", "file" },          { "up", "dir/../other" },
	{ "out", "../outside" }, { "absolute", "/etc" },       { "loop", "loop" },
	{ "nothing", "gone" },   { "dir/back", "../other" },   { "dir/far", "../../outside" },
	{ "todir", "dir" },      { "slashes", "dir//./real" }, { "dir/self", "." },
};

static const char *const paths[] = {
	"dir/real",
	"dir",
	".",
	"other",
	"gone",
	"dir/gone",
	"other/x",
	"file",
	"twice",
	"up",
	"out",
	"absolute",
	"loop",
	"nothing",
	"dir/back",
	"dir/far",
	"todir/real",
	"todir/back",
	"slashes",
	"dir/self/self/real",
	"/etc",
	"dir/../other",
	"..",
	"dir/..",
	"todir/..",
	"dir//real",
	"absolute/passwd",
	"out/x",
	"loop/x",
	"todir/../../outside",
};

struct outcome {
	int error;
	ino_t inode;
};

static void make_tree(const char *top)
{
	char path[512];

	for (size_t i = 0; i < 3; i++) {
		const char *const files[] = { "dir/real", "other", "../outside" };

		snprintf(path, sizeof(path), "%s/dir", top);
		mkdir(path, 0700);
		snprintf(path, sizeof(path), "%s/%s", top, files[i]);
		close(open(path, O_WRONLY | O_CREAT, 0600));
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		snprintf(path, sizeof(path), "%s/%s", top, links[i].name);
		assert_int_equal(symlink(links[i].target, path), 0);
	}
}

static void hide_openat2(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		_exit(9);
}

static struct outcome try_open(int dir_fd, const char *path, int flags, int nolink)
{
	struct ward_err e = { 0 };
	auto_fd fd = nolink ? path_open_nolink(dir_fd, path, flags, &e)
			    : path_open_beneath(dir_fd, path, flags, &e);
	struct outcome o = { fd < 0 ? fd : 0, 0 };
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		o.inode = st.st_ino;
	return o;
}

/* All rows, flags and both functions, in a child: with openat2 (error 0) or without. */
static void try_all(const char *top, int error, struct outcome *all, size_t bytes)
{
	static const int flags[] = { O_PATH, O_RDONLY, O_PATH | O_DIRECTORY };
	int channel[2], status;
	size_t n = 0;

	assert_int_equal(pipe(channel), 0);
	if (fork() == 0) {
		int dir_fd = open(top, O_PATH | O_DIRECTORY);

		if (error)
			hide_openat2(error);
		for (size_t i = 0; i < ARRAY_LEN(paths); i++)
			for (size_t k = 0; k < ARRAY_LEN(flags); k++)
				for (int nolink = 0; nolink < 2; nolink++)
					all[n++] = try_open(dir_fd, paths[i], flags[k], nolink);
		_exit(write(channel[1], all, bytes) == (ssize_t)bytes ? 0 : 8);
	}
	close(channel[1]);
	assert_int_equal(read(channel[0], all, bytes), bytes);
	close(channel[0]);
	wait(&status);
	assert_int_equal(status, 0);
}

static void test_both_ways_agree(void **state)
{
	enum { COUNT = ARRAY_LEN(paths) * 3 * 2 };
	static struct outcome with[COUNT], enosys[COUNT], eperm[COUNT];
	char top[] = "/tmp/ward-path-XXXXXX", tree[64], command[128];

	(void)state;
	assert_non_null(mkdtemp(top));
	snprintf(tree, sizeof(tree), "%s/tree", top);
	assert_int_equal(mkdir(tree, 0700), 0);
	make_tree(tree);
	try_all(tree, 0, with, sizeof(with));
	try_all(tree, ENOSYS, enosys, sizeof(enosys));
	try_all(tree, EPERM, eperm, sizeof(eperm));
	snprintf(command, sizeof(command), "rm -rf %s", top);
	assert_int_equal(system(command), 0);
	for (size_t i = 0; i < COUNT; i++) {
		/* without links there is no need for "..", and the walk takes none */
		if (i % 2 && strstr(paths[i / 6], ".."))
			assert_int_not_equal(enosys[i].error, 0);
		else if (!with[i].error != !enosys[i].error || with[i].inode != enosys[i].inode)
			fail_msg("%s (case %zu): openat2 gives %d, inode %lu; the walk %d, inode "
				 "%lu",
				 paths[i / 6], i % 6, with[i].error, with[i].inode, enosys[i].error,
				 enosys[i].inode);
		assert_int_equal(enosys[i].error, eperm[i].error);
		assert_int_equal(enosys[i].inode, eperm[i].inode);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_both_ways_agree) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
