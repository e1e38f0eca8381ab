/*
 * Bytes between regular files and gVisor. gVisor keeps an offset of its own in a file that it gets
 * as 0, 1 or 2 and begins at 0: `(echo a; ward run ... ) > file` would lose the "a". So such a file
 * is replaced by a pipe, and a process of its own moves the bytes until one side ends. 1 and 2 that
 * are the same file share a pipe: what is written stays in order.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"

static bool is_file(int fd, struct stat *st)
{
	return fstat(fd, st) == 0 && S_ISREG(st->st_mode);
}

static _Noreturn void move_bytes(int from, int to)
{
	static char bytes[65536];
	sigset_t all;

	/* signals of the group are the command's; the end comes with the pipe's */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (;;) {
		ssize_t n = read(from, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || io_write_all(to, bytes, (size_t)n) < 0)
			_exit(0);
	}
}

/* fd becomes the command's end of a pipe. */
static int pump(struct pumps *p, int fd)
{
	int ends[2], mine, theirs;
	pid_t parent = getpid(), pid;

	if (pipe(ends) < 0)
		return -errno;
	mine = ends[fd == 0 ? 1 : 0];
	theirs = ends[fd == 0 ? 0 : 1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		close(theirs);
		for (int i = 0; i < 3; i++)
			if (i != fd)
				close(i); /* no other process's end of a pipe is kept open */
		move_bytes(fd == 0 ? 0 : mine, fd == 0 ? mine : fd);
	}
	p->pids[p->count++] = pid;
	close(mine);
	if (dup2(theirs, fd) < 0)
		return -errno;
	close(theirs);
	return 0;
}

int pumps_start(struct pumps *p)
{
	struct stat st[3];
	bool files[3], same;
	int r = 0;

	for (int i = 0; i < 3; i++)
		files[i] = is_file(i, &st[i]);
	same = files[1] && files[2] && st[1].st_dev == st[2].st_dev && st[1].st_ino == st[2].st_ino;
	for (int i = 0; i < 3 && r == 0; i++) {
		if (i == 2 && same)
			r = dup2(1, 2) < 0 ? -errno : 0;
		else if (files[i])
			r = pump(p, i);
	}
	if (r < 0)
		gvisor_say("cannot relay files to gVisor: %s", strerror(-r));
	return r;
}

void pumps_end(struct pumps *p)
{
	for (int i = 0; i < 3; i++)
		close(i); /* the last ends of the pipes */
	for (size_t i = 0; i < p->count; i++)
		while (waitpid(p->pids[i], NULL, 0) < 0 && errno == EINTR)
			;
}
