/*
 * Snapshots, as the keeper has them: one file each, that has a sandbox's files. In: a pipe from
 * ward-envd in a sandbox, or such a file. Out: the other one of them. The kernel moves the bytes
 * (splice): the keeper never has them, and nothing outside of sandboxes reads them. A snapshot has
 * its name when all of it is on the disk; before it is NAME.new, which the next server removes.
 *
 * A sandbox decides how fast it writes and how much: so there is a limit for both.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/io.h"
#include "daemon/keeper.h"
#include "protocol/envd.h"

#define COPY_WAIT_MS 120000 /* for all of it */
#define EXIT_WAIT_MS 10000
#define LEAST_FREE (64 << 20) /* of the disk, which others need, too */
#define NEW ".new"

/* What the exit code of ward-envd means; 0: it went well. */
static int read_code(struct work *w, int code)
{
	switch (code) {
	case 0:
		return 0;
	case ENVD_NO_SPACE:
		return keeper_bad(w, ENOSPC,
				  "the files do not fit into a sandbox of this template: its "
				  "memory_limit or disk_limit is too small");
	case ENVD_TOO_LONG:
		return keeper_bad(w, ENAMETOOLONG, "a path in the sandbox is longer than 4 KiB");
	case ENVD_BAD_ARCHIVE:
		return keeper_bad(w, EBADMSG, "the snapshot is damaged");
	case ENVD_NOT_STOPPED:
		return keeper_bad(
			w, EAGAIN,
			"the sandbox's programs do not stop for the moment that it takes");
	default:
		return keeper_bad(w, EIO, "a file in the sandbox cannot be read or written");
	}
}

static int wait_for(int fd, short events, uint64_t end_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t now = io_now_ms();
	int r = now < end_ms ? poll(&p, 1, (int)(end_ms - now)) : 0;

	return r < 0 ? (errno == EINTR ? 0 : -errno) : r == 0 ? -ETIMEDOUT : 0;
}

/* splice(2) without SIGPIPE, which ward's own processes and what they start must not ignore. */
static ssize_t splice_quietly(int from_fd, int to_fd)
{
	const struct timespec none = { 0 };
	sigset_t pipe, before;
	ssize_t n;
	int error;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	n = splice(from_fd, NULL, to_fd, NULL, 1 << 20, SPLICE_F_MOVE);
	error = errno;
	if (n < 0 && error == EPIPE)
		(void)sigtimedwait(&pipe, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return n;
}

/* Moves bytes from one to the other up to the end of the first; wait_fd is the pipe among them.
 * Returns how many, or -errno. */
static int64_t move(int from_fd, int to_fd, int wait_fd, uint64_t most)
{
	uint64_t end_ms = io_now_ms() + COPY_WAIT_MS, total = 0;
	short events = wait_fd == from_fd ? POLLIN : POLLOUT;

	for (;;) {
		int r = wait_for(wait_fd, events, end_ms);
		ssize_t n = r < 0 ? 0 : splice_quietly(from_fd, to_fd);

		if (r < 0)
			return r;
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return (int64_t)total;
		total += (uint64_t)n;
		if (total > most)
			return -EFBIG;
	}
}

static int start_envd(struct work *w, struct ward_box *b, const char *argument, int stream,
		      struct ward_process **ret_process, int *ret_fd)
{
	const char *const argv[] = { ENVD_PATH, argument, NULL };
	const struct ward_command c = { .size = sizeof(c), .argv = argv, .directory = "/" };
	int r = ward_exec(b, &c, ret_process, &w->e);

	if (r >= 0)
		r = *ret_fd = ward_process_stream(*ret_process, stream, &w->e);
	if (r >= 0 && fcntl(*ret_fd, F_SETFL, fcntl(*ret_fd, F_GETFL) & ~O_NONBLOCK) < 0)
		r = keeper_bad(w, errno, "a pipe cannot be changed");
	if (r < 0) {
		ward_process_free(*ret_process);
		*ret_process = NULL;
	}
	return r < 0 ? r : 0;
}

static int wait_envd(struct work *w, struct ward_process *p)
{
	int code = -1, r = ward_process_wait(p, EXIT_WAIT_MS, &code, &w->e);

	if (r == 0)
		r = keeper_bad(w, ETIMEDOUT, "ward-envd does not end");
	return r < 0 ? r : read_code(w, code);
}

static int say_moved(struct work *w, int64_t n)
{
	if (n >= 0)
		return 0;
	if (n == -EFBIG)
		return keeper_bad(w, EDQUOT,
				  "the files are more than your quota of snapshots has "
				  "left");
	if (n == -ENOSPC)
		return keeper_bad(w, ENOSPC, "the server's disk is full");
	if (n == -ETIMEDOUT)
		return keeper_bad(w, ETIMEDOUT, "it took too long");
	return keeper_bad(w, (int)-n, strerror((int)-n));
}

/* What the disk can take without getting full. */
static uint64_t room_on_disk(int dir_fd)
{
	struct statvfs v;
	uint64_t left;

	if (fstatvfs(dir_fd, &v) < 0)
		return 0;
	left = (uint64_t)v.f_bavail * v.f_frsize;
	return left > LEAST_FREE ? left - LEAST_FREE : 0;
}

static int write_snapshot(struct work *w, struct ward_box *b, int file_fd)
{
	struct ward_process *p = NULL;
	uint64_t room = room_on_disk(w->k->snapshots_fd);
	auto_fd pipe_fd = -1;
	int64_t n;
	int r = start_envd(w, b, ENVD_SAVE, 1, &p, &pipe_fd);

	if (r < 0)
		return r;
	n = move(pipe_fd, file_fd, pipe_fd, w->q.most < room ? w->q.most : room);
	if (n == -EFBIG && room < w->q.most)
		n = -ENOSPC;
	r = say_moved(w, n);
	if (r == 0)
		r = wait_envd(w, p);
	ward_process_free(p);
	if (r == 0)
		buf_printf(&w->text, "%lld", (long long)n);
	return r;
}

int keeper_save(struct work *w, struct ward_box *b)
{
	char name[SANDBOX_ID + sizeof(NEW)];
	int dir = w->k->snapshots_fd, r;
	auto_fd fd = -1;

	snprintf(name, sizeof(name), "%s" NEW, w->q.snapshot);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return keeper_bad(w, errno, "the server cannot write a snapshot");
	r = write_snapshot(w, b, fd);
	if (r == 0 && (fsync(fd) < 0 || renameat(dir, name, dir, w->q.snapshot) < 0 ||
		       (!w->q.passing && fsync(dir) < 0)))
		r = keeper_bad(w, errno, "the server cannot write a snapshot");
	if (r < 0)
		(void)unlinkat(dir, name, 0);
	return r;
}

int keeper_load(struct work *w, struct ward_box *b)
{
	struct ward_process *p = NULL;
	auto_fd fd = openat(w->k->snapshots_fd, w->q.snapshot, O_RDONLY | O_NOFOLLOW | O_CLOEXEC),
		pipe_fd = -1;
	int64_t n;
	int r;

	if (fd < 0)
		return keeper_bad(w, errno, "there is no such snapshot");
	r = start_envd(w, b, ENVD_LOAD, 0, &p, &pipe_fd);
	if (r < 0)
		return r;
	n = move(fd, pipe_fd, pipe_fd, UINT64_MAX);
	own_close_fd(&pipe_fd);
	pipe_fd = -1;
	/* where it ended before all was written it knows why, and whether it had the last record */
	r = wait_envd(w, p);
	ward_process_free(p);
	return r < 0 || n == -EPIPE ? r : say_moved(w, n);
}

int keeper_drop(struct work *w)
{
	if (unlinkat(w->k->snapshots_fd, w->q.snapshot, 0) < 0 && errno != ENOENT)
		return keeper_bad(w, errno, "the snapshot cannot be removed");
	return 0;
}

/* Calls for each file of the directory. */
static int each(int dir_fd, void (*call)(void *ctx, const char *name), void *ctx)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		own_close_fd(&fd);
		return -EIO;
	}
	while ((d = readdir(dir)))
		call(ctx, d->d_name);
	return 0;
}

static void add_line(void *ctx, const char *name)
{
	struct work *w = ctx;

	if (route_is_id(name, strlen(name)) && strncmp(name, w->k->tag, TAG) == 0)
		buf_printf(&w->text, "%s\n", name);
}

int keeper_list_snapshots(struct work *w)
{
	if (each(w->k->snapshots_fd, add_line, w) < 0)
		return keeper_bad(w, EIO, "the directory of snapshots cannot be read");
	/* never a part of it: what is not in the list counts as lost */
	return w->text.len < KEEPER_TEXT_MAX ? 0
					     : keeper_bad(w, E2BIG, "there are too many snapshots");
}

static void remove_new(void *ctx, const char *name)
{
	size_t n = strlen(name);

	if (n > sizeof(NEW) - 1 && strcmp(name + n - sizeof(NEW) + 1, NEW) == 0)
		(void)unlinkat(*(const int *)ctx, name, 0);
}

void keeper_sweep_snapshots(int dir_fd)
{
	(void)each(dir_fd, remove_new, &dir_fd);
}
