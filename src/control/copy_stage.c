/*
 * The stage of ward cp. In: the directory that a copy is for. Out: a directory in it with a random
 * name, mode 0700, which is gone at the end. Runs in ward cp with the user's rights.
 *
 * What a sandbox made and nothing has judged must not stay, so a second process removes the stage:
 * it waits for the end of a pipe that the first one holds, and that comes when the copy is done, on
 * Ctrl-C, and on SIGKILL. It has a session of its own, so no signal reaches it from a terminal.
 * Only if both are killed (a power failure) the stage is left; its lock is free then, and the next
 * copy to the same directory removes it.
 */
#include "control/copy_stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/remove.h"

#define PREFIX ".ward-cp-"
#define DIGITS 16
#define NAME_SIZE (sizeof(PREFIX) + DIGITS)
#define MAKING_S 10 /* a stage is made and locked in less */

static bool is_stage_name(const char *name)
{
	return strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0 && strlen(name) == NAME_SIZE - 1 &&
	       strspn(name + sizeof(PREFIX) - 1, "0123456789abcdef") == DIGITS;
}

/* Whether no process holds the stage any more. */
static bool is_left(int dir_fd, const char *name)
{
	auto_fd fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       st.st_mtim.tv_sec + MAKING_S < time(NULL) && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* What cannot be removed stays for the next copy: it was never judged, but it has no name that
 * anything reads. */
static void remove_left(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir list = fd < 0 ? NULL : fdopendir(fd);

	if (!list) {
		own_close_fd(&fd);
		return;
	}
	for (struct dirent *d = readdir(list); d; d = readdir(list))
		if (is_stage_name(d->d_name) && is_left(dir_fd, d->d_name) &&
		    remove_tree_at(dir_fd, d->d_name) < 0)
			continue;
}

static int fail(struct ward_err *e)
{
	return ward_fail_errno(e, "cannot make a directory for the copy");
}

/* Makes it, and locks it through *ret_fd. */
static int make_stage(int dir_fd, char name[NAME_SIZE], int *ret_fd, struct ward_err *e)
{
	unsigned long long number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return ward_fail_errno(e, "cannot get randomness");
	snprintf(name, NAME_SIZE, PREFIX "%016llx", number);
	if (mkdirat(dir_fd, name, 0700) < 0)
		return fail(e);
	*ret_fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd >= 0 && flock(*ret_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	fail(e);
	unlinkat(dir_fd, name, AT_REMOVEDIR);
	return -e->code;
}

/* The second process: waits for the end of the first, or of its work, and removes the stage. It
 * keeps three descriptors: the pipe, the directory, and the locked stage. */
static void clean(int life_fd, int dir_fd, int stage_fd, const char *name)
{
	char byte;

	setsid();
	if (dup2(life_fd, 0) < 0 || dup2(dir_fd, 1) < 0 || dup2(stage_fd, 2) < 0 ||
	    syscall(SYS_close_range, 3, ~0u, 0) < 0)
		_exit(1);
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(remove_tree_at(1, name) < 0 ? 1 : 0);
}

static int start_cleaner(int dir_fd, int stage_fd, const char *name, struct copy_stage *s,
			 struct ward_err *e)
{
	int life[2], high[3];

	if (pipe2(life, O_CLOEXEC) < 0)
		return fail(e);
	high[0] = fcntl(life[0], F_DUPFD_CLOEXEC, 3);
	high[1] = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	high[2] = fcntl(stage_fd, F_DUPFD_CLOEXEC, 3);
	s->cleaner = high[0] < 0 || high[1] < 0 || high[2] < 0 ? -1 : fork();
	if (s->cleaner == 0) {
		close(life[1]);
		clean(high[0], high[1], high[2], name);
	}
	for (size_t i = 0; i < ARRAY_LEN(high); i++)
		own_close_fd(&high[i]);
	close(life[0]);
	s->life_fd = life[1];
	if (s->cleaner > 0)
		return 0;
	s->cleaner = 0;
	return fail(e);
}

int copy_stage_begin(int dir_fd, struct copy_stage *s, struct ward_err *e)
{
	char name[NAME_SIZE];
	auto_fd stage = -1;
	sigset_t all, before;
	int r;

	*s = (struct copy_stage)NO_COPY_STAGE;
	remove_left(dir_fd);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before); /* the second process keeps it so */
	r = make_stage(dir_fd, name, &stage, e);
	if (r == 0) {
		r = start_cleaner(dir_fd, stage, name, s, e);
		if (r < 0)
			unlinkat(dir_fd, name, AT_REMOVEDIR);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return r;
	if (mkdirat(stage, "new", 0700) < 0 || mkdirat(stage, "refused", 0700) < 0)
		return fail(e);
	s->new_fd = openat(stage, "new", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	s->refused_fd = openat(stage, "refused", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->new_fd < 0 || s->refused_fd < 0 ? fail(e) : 0;
}

int copy_stage_end(struct copy_stage *s, struct ward_err *e)
{
	int status = 0;

	own_close_fd(&s->new_fd);
	own_close_fd(&s->refused_fd);
	own_close_fd(&s->life_fd);
	while (s->cleaner && waitpid(s->cleaner, &status, 0) < 0 && errno == EINTR)
		;
	s->cleaner = 0;
	return status ? ward_fail(e, EIO, "cannot remove the directory " PREFIX "... of the copy")
		      : 0;
}
