/*
 * Descriptors that a sandbox made, in the hands of a supervisor. In: sockets to receive from,
 * descriptors to close. Out: messages with all their descriptors. Runs in the supervisor, which
 * must go on whatever the kernel does in these calls: limits, approvals and signals wait for it.
 *
 * Two threads, each with a pipe of jobs: one receives, one closes, so that what cannot be closed
 * keeps no other message waiting. They call nothing that takes a lock of the libc, as the
 * supervisor makes processes with the bare system call. Each confines itself (tables/procs.def): it
 * can receive, read, write and close.
 *
 * What waits to be closed is counted, because the sandbox decides how long that takes: from
 * FULL_AT on nothing more is to be taken. It keeps only its own sender waiting.
 */
#include "host/foreign_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/fd_message.h"
#include "base/own.h"
#include "confine/confine.h"

#define FULL_AT 512
#define STACK_BYTES (128u << 10)

struct job {
	uint64_t serial;
	int32_t fd; /* -1: the end */
};

/* One thread, which ends when it reads a job that is the end. */
struct worker {
	struct foreign_fds *of;
	int pipe[2];
	bool started;
};

/* Lives until the last of its users is gone; in pages of its own, as a thread may be the last. */
struct foreign_fds {
	atomic_int users;
	atomic_int open; /* handed over, and not closed yet */
	atomic_bool is_full;
	atomic_int ready; /* of worker_main(): how many threads are confined, or -errno */
	size_t room;
	struct worker closer, receiver;
	int answers[2]; /* a pipe of struct foreign_message */
};

_Static_assert(sizeof(struct foreign_message) <= 4096, "a pipe takes it as a whole");

static void close_pipe(int pipe[2])
{
	own_close_fd(&pipe[0]);
	own_close_fd(&pipe[1]);
}

static void leave(struct foreign_fds *f)
{
	if (atomic_fetch_sub(&f->users, 1) != 1)
		return;
	close_pipe(f->closer.pipe);
	close_pipe(f->receiver.pipe);
	close_pipe(f->answers);
	munmap(f, sizeof(*f));
}

/* -- the threads */

static void say(struct foreign_fds *f, const struct foreign_message *m)
{
	ssize_t n;

	do
		n = write(f->answers[1], m, sizeof(*m));
	while (n < 0 && errno == EINTR);
}

static void close_one(struct foreign_fds *f, int fd)
{
	bool was_full = true;

	close(fd);
	if (atomic_fetch_sub(&f->open, 1) > FULL_AT / 2)
		return;
	/* without a socket: there is room again */
	if (atomic_compare_exchange_strong(&f->is_full, &was_full, false))
		say(f, &(struct foreign_message){ .fd = -1 });
}

/* All of a message's descriptors get a number, or the kernel closes them right here. */
static void receive_one(struct foreign_fds *f, const struct job *job)
{
	FD_MESSAGE_CONTROL(FOREIGN_FDS_MESSAGE) control;
	struct foreign_message answer = { .serial = job->serial, .fd = job->fd };
	void *bytes =
		mmap(NULL, f->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { .iov_base = bytes, .iov_len = f->room };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	const int *fds;
	size_t count = 0;

	answer.len = bytes == MAP_FAILED ? -ENOMEM
					 : recvmsg(job->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (answer.len == -1)
		answer.len = -errno;
	fds = answer.len >= 0 ? fd_message_get(&m, &count) : NULL;
	for (size_t i = 0; i < count && i < FOREIGN_FDS_MESSAGE; i++)
		answer.fds[answer.fd_count++] = fds[i];
	answer.bytes = bytes == MAP_FAILED ? NULL : bytes;
	say(f, &answer);
}

static void *worker_main(void *argument)
{
	struct worker *w = argument;
	struct foreign_fds *f = w->of;
	struct ward_err e = { 0 };
	struct job job;
	ssize_t n;

	if (confine_enter(PROC_RECEIVER, NULL, &e) < 0)
		atomic_store(&f->ready, -(e.code ? e.code : EPERM));
	else
		atomic_fetch_add(&f->ready, 1);
	say(f, &(struct foreign_message){ .fd = -1 });
	for (;;) {
		n = read(w->pipe[0], &job, sizeof(job));
		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(job) || job.fd < 0)
			break;
		if (w == &f->closer)
			close_one(f, job.fd);
		else
			receive_one(f, &job);
	}
	leave(f);
	return NULL;
}

/* -- their process */

/* Every signal is its process's. */
static int start_worker(struct foreign_fds *f, struct worker *w, struct ward_err *e)
{
	struct foreign_message confined;
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int before = atomic_load(&f->ready), r;

	w->of = f;
	if (pipe2(w->pipe, O_CLOEXEC) < 0 || fcntl(w->pipe[1], F_SETFL, O_NONBLOCK) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	atomic_fetch_add(&f->users, 1);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	r = pthread_create(&thread, &attr, worker_main, w);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r) {
		atomic_fetch_sub(&f->users, 1);
		ward_fail(e, r, "cannot start a thread");
		return ward_remedy(e, "the user has too many processes (ulimit -u)");
	}
	w->started = true;
	while (read(f->answers[0], &confined, sizeof(confined)) < 0 && errno == EINTR)
		;
	r = atomic_load(&f->ready);
	return r > before ? 0 : ward_fail(e, r < 0 ? -r : EIO, "cannot confine a thread");
}

static int prepare(struct foreign_fds *f, struct ward_err *e)
{
	if (pipe2(f->answers, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	if (start_worker(f, &f->closer, e) < 0 || (f->room && start_worker(f, &f->receiver, e) < 0))
		return -e->code;
	return fcntl(f->answers[0], F_SETFL, O_NONBLOCK) < 0 ? ward_fail_errno(e, "fcntl") : 0;
}

int foreign_fds_start(size_t room, struct foreign_fds **ret, struct ward_err *e)
{
	struct foreign_fds *f =
		mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (f == MAP_FAILED)
		return ward_fail(e, ENOMEM, "out of memory");
	atomic_store(&f->users, 1);
	f->room = room;
	f->closer.pipe[0] = f->closer.pipe[1] = -1;
	f->receiver.pipe[0] = f->receiver.pipe[1] = -1;
	f->answers[0] = f->answers[1] = -1;
	r = prepare(f, e);
	if (r < 0)
		foreign_fds_end(f);
	else
		*ret = f;
	return r;
}

static bool tell(struct worker *w, const struct job *job)
{
	return write(w->pipe[1], job, sizeof(*job)) == (ssize_t)sizeof(*job);
}

void foreign_fds_end(struct foreign_fds *f)
{
	const struct job end = { .fd = -1 };

	if (!f)
		return;
	if (f->closer.started)
		(void)!tell(&f->closer, &end);
	if (f->receiver.started)
		(void)!tell(&f->receiver, &end);
	leave(f);
}

void foreign_fds_close(struct foreign_fds *f, int *fd)
{
	if (*fd >= 0 && f) {
		atomic_fetch_add(&f->open, 1);
		/* the pipe takes more than there are before is_full(); else it stays open */
		(void)!tell(&f->closer, &(struct job){ .fd = *fd });
	}
	*fd = -1;
}

bool foreign_fds_is_full(struct foreign_fds *f)
{
	if (atomic_load(&f->open) < FULL_AT)
		return false;
	atomic_store(&f->is_full, true);
	/* the last of them may have been closed in between */
	return atomic_load(&f->open) >= FULL_AT / 2;
}

void foreign_fds_receive(struct foreign_fds *f, int sock_fd, uint64_t serial)
{
	/* there is one at a time, so the pipe has room */
	(void)!tell(&f->receiver, &(struct job){ .serial = serial, .fd = sock_fd });
}

int foreign_fds_fd(const struct foreign_fds *f)
{
	return f ? f->answers[0] : -1;
}

bool foreign_fds_next(struct foreign_fds *f, struct foreign_message *ret)
{
	return f && read(f->answers[0], ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
}

void foreign_message_free(const struct foreign_fds *f, struct foreign_message *m)
{
	if (m->bytes)
		munmap(m->bytes, f->room);
	m->bytes = NULL;
}
