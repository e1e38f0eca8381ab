/*
 * Stops what runs in the sandbox for a moment, so that its files are saved as they were at one
 * time. In: nothing. Out: all other processes stopped by SIGSTOP, which none of them can ignore;
 * then they go on, children before their parents, so that a shell does not see a child stopped.
 * What was stopped before stays so. A second process waits for the end of this one and lets them go
 * on: if the first is killed, nothing stays stopped. Runs in the sandbox, with its rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "envd/archive_run.h"

#define STOP_MS 2000 /* then there are too many, or they start too fast */

struct pids {
	pid_t *items;
	size_t count, room;
};

/* The state of a process, as its stat line has it behind its name; 0: it has gone. */
static char state_of(const char *pid)
{
	char path[64];
	auto_buf text = { 0 };
	const char *at;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	if (io_read_file(AT_FDCWD, path, 4096, &text) < 0)
		return 0;
	at = strrchr(buf_text(&text), ')');
	return at && at[1] == ' ' ? at[2] : 0;
}

static bool add(struct pids *p, pid_t pid)
{
	if (p->count == p->room) {
		size_t room = p->room ? 2 * p->room : 256;
		pid_t *more = reallocarray(p->items, room, sizeof(*more));

		if (!more)
			return false;
		p->items = more;
		p->room = room;
	}
	p->items[p->count++] = pid;
	return true;
}

/* The processes but the first, this one and that one that are stopped (or are not). */
static bool list(bool stopped, pid_t but, struct pids *ret)
{
	auto_dir dir = opendir("/proc");
	struct dirent *d;
	bool fine = dir;

	ret->count = 0;
	while (fine && (d = readdir(dir))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		char state = pid > 1 && pid != getpid() && pid != but ? state_of(d->d_name) : 0;
		bool is = state == 'T' || state == 't';

		if (state && state != 'Z' && state != 'X' && is == stopped)
			fine = add(ret, pid);
	}
	return fine;
}

static bool has(const struct pids *p, pid_t pid)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->items[i] == pid)
			return true;
	return false;
}

static int descending(const void *a, const void *b)
{
	pid_t one = *(const pid_t *)a, other = *(const pid_t *)b;

	return one < other ? 1 : -(one > other);
}

static void go_on(const struct pids *before)
{
	struct pids now = { 0 };

	if (!list(true, 0, &now)) {
		kill(-1, SIGCONT); /* better all of them than none */
		return;
	}
	qsort(now.items, now.count, sizeof(*now.items), descending);
	for (size_t i = 0; i < now.count; i++)
		if (!has(before, now.items[i]))
			kill(now.items[i], SIGCONT);
	free(now.items);
}

/* Stops all of them but that one. What starts meanwhile is met in the next round; a process that
 * has the signal cannot start another one. */
static bool stop_all(pid_t but)
{
	struct pids left = { 0 };
	uint64_t end = io_now_ms() + STOP_MS;
	bool fine;

	while ((fine = list(false, but, &left)) && left.count && io_now_ms() < end) {
		for (size_t i = 0; i < left.count; i++)
			kill(left.items[i], SIGSTOP);
		usleep(200);
	}
	fine &= left.count == 0;
	free(left.items);
	return fine;
}

/* Waits until the other end is closed, by hold_end() or by a kill. The signals that end a command
 * of ward_exec() do not come here. */
static void wake(int fd, const struct pids *before)
{
	char byte = 0;

	(void)setsid();
	/* the pipe that the archive goes through must end with its writer */
	for (int i = 0; i < 3; i++)
		close(i);
	if (write(fd, &byte, 1) == 1)
		while (read(fd, &byte, 1) < 0 && errno == EINTR)
			;
	go_on(before);
	_exit(0);
}

bool hold_begin(struct hold *ret)
{
	struct pids before = { 0 };
	int pair[2];
	char byte;

	if (!list(true, 0, &before) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(before.items);
		return false;
	}
	ret->fd = pair[1];
	ret->waker = fork();
	if (ret->waker == 0) {
		close(pair[1]);
		wake(pair[0], &before);
	}
	close(pair[0]);
	free(before.items);
	if (ret->waker > 0 && read(ret->fd, &byte, 1) == 1 && stop_all(ret->waker))
		return true;
	hold_end(ret);
	return false;
}

void hold_end(struct hold *h)
{
	close(h->fd);
	while (h->waker > 0 && waitpid(h->waker, NULL, 0) < 0 && errno == EINTR)
		;
}
