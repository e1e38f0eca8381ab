/*
 * --report FILE: what programs trust. In: a path of the user's, before the run; the report, after
 * everything inside is dead. Out: one file. The directory is opened before the run and is the right
 * to the place from then on; the file is made under a fresh name and renamed over the old one, so a
 * reader sees the old report or the new one, and a link or file that the sandbox put there is
 * replaced, not followed. Refuses a path that is there and is not a regular file: renaming over a
 * device would destroy it.
 */
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/io.h"

static int split_path(struct report *r, const char *path, char **ret_dir, struct ward_err *e)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return ward_fail(e, EISDIR, "it names a directory");
	*ret_dir = !slash          ? strdup(".")
		   : slash == path ? strdup("/")
				   : strndup(path, (size_t)(slash - path));
	r->name = strdup(name);
	return *ret_dir && r->name ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

static int create_fresh(const struct report *r, char *name, size_t n)
{
	uint64_t random;

	for (int i = 0; i < 16; i++) {
		int fd;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		snprintf(name, n, ".ward-report-%016llx", (unsigned long long)random);
		fd = openat(r->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static int check_place(const struct report *r, struct ward_err *e)
{
	char name[64];
	auto_fd fd = -1;
	struct stat st;

	if (fstatat(r->dir_fd, r->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "it exists and is not a regular file");
	fd = create_fresh(r, name, sizeof(name)); /* the only sure way to know is to do it */
	if (fd < 0) {
		errno = -fd;
		return ward_fail_errno(e, "cannot create a file in its directory");
	}
	unlinkat(r->dir_fd, name, 0);
	return 0;
}

int report_open(struct report *r, const char *path, struct ward_err *e)
{
	auto_free char *dir = NULL;
	int err;

	*r = NO_REPORT;
	if (!path)
		return 0;
	err = split_path(r, path, &dir, e);
	if (err == 0 && dir) {
		r->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		err = r->dir_fd < 0 ? ward_fail_errno(e, "cannot open its directory")
				    : check_place(r, e);
	}
	if (err == 0)
		return 0;
	report_close(r);
	ward_wrap(e, "--report %.200s", path);
	return ward_remedy(e, "give the path of a file in a directory that you can write to");
}

int report_write(const struct report *r, const struct buf *text, struct ward_err *e)
{
	char name[64];
	auto_fd fd = -1;
	int err;

	if (r->dir_fd < 0)
		return 0;
	if (text->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	fd = create_fresh(r, name, sizeof(name));
	err = fd < 0 ? fd : io_write_all(fd, buf_text(text), text->len);
	if (err >= 0)
		err = io_write_all(fd, "\n", 1);
	if (err >= 0 && renameat(r->dir_fd, name, r->dir_fd, r->name) < 0)
		err = -errno;
	if (err >= 0)
		return 0;
	if (fd >= 0)
		unlinkat(r->dir_fd, name, 0);
	errno = -err;
	return ward_fail_errno(e, "cannot write the report %.200s", r->name);
}

void report_close(struct report *r)
{
	own_close_fd(&r->dir_fd);
	free(r->name);
	*r = NO_REPORT;
}
