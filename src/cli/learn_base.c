/*
 * The policy file that the rounds of ward learn run under, which is no user's. In: its text. Out: a
 * file in `learn` in the state directory, locked as long as the ward learn that made it, or its
 * round, is there. What a killed one left is unlocked, and swept by the next.
 */
#include "cli/learn_base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "state/store.h"

#define LEARN_DIR "learn"

static void sweep(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (d = readdir(dir))) {
		auto_fd file = *d->d_name == '.'
				       ? -1
				       : openat(dir_fd, d->d_name,
						O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dir_fd, d->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

static int make_file(struct learn_base *b, struct ward_err *e)
{
	auto_fd state_fd = store_open(e), dir_fd = -1;
	auto_free char *state = NULL;
	char id[24], name[32];

	if (state_fd < 0)
		return state_fd;
	if (state_dir_path(&state, e) < 0)
		return -e->code;
	if (mkdirat(state_fd, LEARN_DIR, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot create a directory for policy files");
	dir_fd = openat(state_fd, LEARN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 || flock(dir_fd, LOCK_EX) < 0) /* until the new file has its own lock */
		return ward_fail_errno(e, "cannot open the directory for policy files");
	sweep(dir_fd);
	store_new_id(id, sizeof(id));
	snprintf(name, sizeof(name), "%s.yaml", id);
	b->fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->fd < 0 || flock(b->fd, LOCK_EX | LOCK_NB) < 0 ||
	    asprintf(&b->path, "%s/" LEARN_DIR "/%s", state, name) < 0) {
		ward_fail_errno(e, "cannot create a policy file for the rounds");
		if (b->fd >= 0)
			unlinkat(dir_fd, name, 0);
		b->path = NULL;
		return -EIO;
	}
	return 0;
}

int learn_base_write(struct learn_base *b, const struct buf *text, struct ward_err *e)
{
	if (!b->path && make_file(b, e) < 0)
		return -EIO;
	if (ftruncate(b->fd, 0) < 0 || lseek(b->fd, 0, SEEK_SET) < 0 ||
	    io_write_all(b->fd, text->data, text->len) < 0)
		return ward_fail_errno(e, "cannot write a policy file for the rounds");
	return 0;
}

void learn_base_clear(struct learn_base *b)
{
	if (b->path)
		unlink(b->path);
	free(take_ptr(b->path));
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}
