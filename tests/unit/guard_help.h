/* Trees for the guard's tests: made under a fresh directory, looked at as text. */
#ifndef WARD_TESTS_GUARD_HELP_H
#define WARD_TESTS_GUARD_HELP_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard/guard_internal.h"

struct tree {
	char path[64];
	int fd;
};

static inline void tree_make(struct tree *t)
{
	/* in memory where that can be: some trees have ten thousand directories */
	strcpy(t->path, access("/dev/shm", W_OK) == 0 ? "/dev/shm/ward-guard-test-XXXXXX"
						      : "/tmp/ward-guard-test-XXXXXX");
	assert_non_null(mkdtemp(t->path));
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->fd >= 0);
}

static inline void tree_remove(struct tree *t)
{
	char command[256];

	close(t->fd);
	snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", t->path, t->path);
	assert_int_equal(system(command), 0);
}

/* Makes the directories above path. */
static inline void tree_parents(struct tree *t, const char *path)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdirat(t->fd, copy, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

/* A file with text, its directories too; a path that ends in "/" is a directory. */
static inline void tree_put(struct tree *t, const char *path, const char *text)
{
	int fd;

	tree_parents(t, path);
	if (path[strlen(path) - 1] == '/')
		return;
	fd = openat(t->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static inline void tree_link(struct tree *t, const char *path, const char *target)
{
	tree_parents(t, path);
	assert_int_equal(symlinkat(target, t->fd, path), 0);
}

static inline bool tree_has(struct tree *t, const char *path)
{
	struct stat st;

	return fstatat(t->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A list from its arguments, NULL-terminated. */
static inline struct strv list_of(const char *first, ...)
{
	struct strv v = { 0 };
	va_list ap;

	va_start(ap, first);
	for (const char *s = first; s; s = va_arg(ap, const char *))
		strv_add(&v, s);
	va_end(ap);
	return v;
}

/* Compiles and scans; the lists are taken. */
static inline void tree_scan(struct tree *t, struct guard_root *g, struct strv hide,
			     struct strv protect)
{
	struct ward_err e = { 0 };

	*g = (struct guard_root){ .path = strdup(t->path),
				  .target = strdup(t->path),
				  .writable = true,
				  .shares_git = true };
	if (guard_compile(g, &hide, &protect, &e) < 0 || guard_scan(g, t->fd, &e) < 0)
		fail_msg("%s: %s", e.what, e.why);
	strv_free(&hide);
	strv_free(&protect);
}

/* The steps as one text: "P dir/ R file H x ". */
static inline const char *steps_text(const struct guard_root *g, struct buf *b)
{
	buf_free(b);
	for (size_t i = 0; i < g->step_count; i++)
		buf_printf(b, "%c %s%s ", "PVRH"[g->steps[i].action], g -> steps[i].path,
			   g->steps[i].is_dir ? "/" : "");
	return buf_text(b);
}

static inline const char *list_text(const struct strv *v, struct buf *b)
{
	buf_free(b);
	for (size_t i = 0; i < v->len; i++)
		buf_printf(b, "%s ", v->items[i]);
	return buf_text(b);
}

#endif
