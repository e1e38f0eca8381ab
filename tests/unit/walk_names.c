/* A name walked step by step: what is there, by which name it is absent, and what is not looked
 * at. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "observe/walk_names.h"

/* Links of the tree, and what each is. */
static const struct {
	const char *name, *text;
} links[] = {
	{ "abs", "/d/f" },       { "up", "d/../../../d/e" }, { "out", "/../../../etc" },
	{ "gone", "/d/gone/x" }, { "chain", "gone" },        { "loop", "loop" },
	{ "self", "." },         { "d/back", "../abs" },     { "proc", "/proc/self/root" },
};

static const struct {
	const char *path;
	bool follow;
	enum walk_end want;
	const char *name;
} rows[] = {
	{ "/", true, WALK_THERE, "/" },
	{ "/d//e/./", true, WALK_THERE, "/d/e" },
	{ "/abs", true, WALK_THERE, "/d/f" },
	{ "/abs", false, WALK_THERE, "/abs" },
	{ "/d/back", true, WALK_THERE, "/d/f" },
	{ "/up", true, WALK_THERE, "/d/e" },
	{ "/up/..", true, WALK_THERE, "/d" },
	{ "/self/self/d/f", true, WALK_THERE, "/d/f" },
	{ "/d/none/x", true, WALK_ABSENT, "/d/none/x" },
	{ "/gone", true, WALK_ABSENT, "/d/gone/x" },
	{ "/gone", false, WALK_THERE, "/gone" },
	{ "/chain", true, WALK_ABSENT, "/d/gone/x" },
	{ "/chain/more", false, WALK_ABSENT, "/d/gone/x/more" },
	{ "/out/passwd", true, WALK_ABSENT, "/etc/passwd" }, /* the tree's own, not the host's */
	{ "/../../etc/passwd", true, WALK_ABSENT, "/etc/passwd" },
	{ "/d/f/x", true, WALK_REFUSED, NULL }, /* a file, not a directory */
	{ "/loop", true, WALK_REFUSED, NULL },
	{ "/loop/x", false, WALK_REFUSED, NULL },
	{ "d", true, WALK_REFUSED, NULL },
	{ "/dev/null", true, WALK_REFUSED, NULL },
};

static int make_tree(char *place)
{
	int fd;

	assert_non_null(mkdtemp(place));
	fd = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(mkdirat(fd, "d", 0755), 0);
	assert_int_equal(mkdirat(fd, "d/e", 0755), 0);
	close(openat(fd, "d/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		assert_int_equal(symlinkat(links[i].text, fd, links[i].name), 0);
	return fd;
}

static void remove_tree(int fd, const char *place)
{
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		unlinkat(fd, links[i].name, 0);
	unlinkat(fd, "d/f", 0);
	unlinkat(fd, "d/e", AT_REMOVEDIR);
	unlinkat(fd, "d", AT_REMOVEDIR);
	close(fd);
	assert_int_equal(rmdir(place), 0);
}

static void test_rows(void **state unused_arg)
{
	char place[] = "/tmp/ward-walk-names-XXXXXX", name[PATH_MAX];
	int fd = make_tree(place);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum walk_end got = walk_names(fd, rows[i].path, rows[i].follow, name);

		if (got != rows[i].want || (rows[i].name && strcmp(name, rows[i].name) != 0))
			fail_msg("%s: %d, %s", rows[i].path, got, got == WALK_REFUSED ? "" : name);
	}
	remove_tree(fd, place);
}

/* The kernel's own, by name and through a link; the host's root is the root here. */
static void test_kernels_own(void **state unused_arg)
{
	char place[] = "/tmp/ward-walk-names-XXXXXX", name[PATH_MAX], path[128];
	int fd = make_tree(place), root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(root >= 0);
	assert_int_equal(walk_names(root, "/proc/self/status", true, name), WALK_REFUSED);
	assert_int_equal(walk_names(root, "/sys/kernel", true, name), WALK_REFUSED);
	snprintf(path, sizeof(path), "%s/proc/etc/passwd", place);
	assert_int_equal(walk_names(root, path, true, name), WALK_REFUSED);
	snprintf(path, sizeof(path), "%s/d/f", place);
	assert_int_equal(walk_names(root, path, true, name), WALK_THERE);
	close(root);
	remove_tree(fd, place);
}

/* Names and paths that no file has, and more steps than are walked. */
static void test_bounds(void **state unused_arg)
{
	char name[PATH_MAX], path[PATH_MAX];
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(walk_names(root, path, true, name), WALK_REFUSED);
	path[256] = '\0';
	assert_int_equal(walk_names(root, path, true, name), WALK_ABSENT);
	path[256] = 'x';
	path[257] = '\0';
	assert_int_equal(walk_names(root, path, true, name), WALK_REFUSED);
	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = "/tmp/.."[i % 7];
	path[4088] = '\0';
	assert_int_equal(walk_names(root, path, true, name), WALK_THERE);
	assert_string_equal(name, "/");
	close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows),
					    cmocka_unit_test(test_kernels_own),
					    cmocka_unit_test(test_bounds) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
