/*
 * pid 1 of the vm engine's guest: boots (boot.c), says READY, and then one loop: the port, ended
 * children, what commands write. Runs as the guest's root; commands are what job.c makes of them.
 * Everything the host has to know goes over the port; the console is for what goes wrong before. It
 * waits in poll() and does nothing unasked, so a snapshot of it can be cloned.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm/guest/agent.h"

#define NAP_US 5000
#define BUFFER_BYTES 4096 /* of the port's driver: one page */
#define FDS_MAX (2 + VM_CHANNELS * (VM_STREAMS + 2))

/* Reaps one process, perhaps an orphan. Returns what waitpid() does. */
static pid_t reap_one(struct agent *a)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (pid <= 0)
		return pid;
	if (pid == a->spare.pid)
		spare_lost(a);
	for (unsigned i = 0; i < a->channels; i++)
		if (a->jobs[i].active && a->jobs[i].pid == pid && !a->jobs[i].exited) {
			a->jobs[i].exited = true;
			a->jobs[i].status = status;
		}
	return pid;
}

/* The others, and the signals that announced them: after all reports were sent. */
static void reap(struct agent *a)
{
	struct signalfd_siginfo info[8];
	pid_t pid;

	a->signalled = false;
	while (read(a->signal_fd, info, sizeof(info)) == sizeof(info))
		;
	while ((pid = reap_one(a)) > 0)
		;
	a->childless |= pid < 0 && errno == ECHILD;
	if (a->quiescing && !a->childless)
		kill(-1, SIGKILL); /* what was forked meanwhile */
}

/* The port gives one buffer of the driver's at a time. One that is not full was the last, or poll()
 * says otherwise. */
static void read_port(struct agent *a)
{
	ssize_t n;

	do {
		n = read(a->port_fd, a->in + a->in_len, sizeof(a->in) - a->in_len);
		if (n <= 0)
			return;
		a->in_len += (size_t)n;
		streams_take_all(a);
	} while (n >= BUFFER_BYTES);
}

/* All that there is to say, as far as there is room: the port takes one piece at a time, and each
 * costs a turn of the host. */
static bool gather_frames(struct agent *a)
{
	a->out_at = 0;
	while (a->out_len + VM_HEAD_BYTES + VM_DATA_MAX <= sizeof(a->out) && streams_next(a))
		;
	return a->out_len > 0;
}

/* Sends until the port is full or there is nothing more to say. True: there is more. */
static bool write_port(struct agent *a)
{
	for (;;) {
		ssize_t n;

		if (!a->out_len && !gather_frames(a))
			return false;
		n = write(a->port_fd, a->out + a->out_at, a->out_len);
		if (n <= 0)
			return true;
		a->out_at += (size_t)n;
		a->out_len -= (size_t)n;
	}
}

static nfds_t add(struct pollfd *fds, nfds_t n, int fd, short events)
{
	if (fd >= 0)
		fds[n++] = (struct pollfd){ .fd = fd, .events = events };
	return n;
}

static nfds_t gather(struct agent *a, struct pollfd *fds, bool more)
{
	nfds_t n = add(fds, 0, a->port_fd, (short)(POLLIN | (more ? POLLOUT : 0)));

	n = add(fds, n, a->signal_fd, POLLIN);
	for (unsigned i = 0; i < a->channels; i++) {
		struct job *j = &a->jobs[i];

		j->fresh = false;
		if (!j->active)
			continue;
		if (j->pending_len)
			n = add(fds, n, j->in_fd, POLLOUT);
		for (unsigned s = 0; s < VM_STREAMS && !more; s++)
			if (j->credit[s])
				n = add(fds, n, j->out_fds[s], POLLIN);
		if (!more)
			n = add(fds, n, j->stopped_fd, POLLIN);
	}
	return n;
}

/* A session leader is gone, which reported stops. */
static void look_at_stopped(struct agent *a, const struct pollfd *fds, nfds_t n)
{
	for (unsigned i = 1; i < a->channels; i++)
		for (nfds_t k = 2; k < n; k++)
			if (a->jobs[i].stopped_fd >= 0 && fds[k].fd == a->jobs[i].stopped_fd &&
			    fds[k].revents == POLLHUP) {
				close(a->jobs[i].stopped_fd);
				a->jobs[i].stopped_fd = -1;
			}
}

static _Noreturn void serve(struct agent *a)
{
	static struct pollfd fds[FDS_MAX];

	for (;;) {
		bool more = write_port(a);
		nfds_t n;

		if (a->signalled) {
			reap(a);
			continue;
		}
		streams_close_spent(a);
		if (a->channels == 1 && !a->jobs[0].active && a->childless && !a->ending)
			job_prepare(a);
		n = gather(a, fds, more);
		if (poll(fds, n, rehearse_in_ms(a)) == 0) {
			rehearse(a);
			continue;
		}
		if (fds[0].revents & POLLHUP && !(fds[0].revents & POLLIN))
			/* the host has not connected: poll() does not wait for that */
			usleep(NAP_US);
		if (fds[0].revents & POLLIN)
			read_port(a);
		if (fds[1].revents) {
			a->signalled = true;
			reap_one(a);
		}
		for (unsigned i = 1; i < a->channels; i++)
			if (a->jobs[i].pending_len)
				streams_feed(&a->jobs[i]);
		look_at_stopped(a, fds, n);
	}
}

int main(int argc, char **argv)
{
	static struct agent a;
	struct vm_ready ready = { .version = VM_VERSION };

	if (getpid() != 1)
		return rehearse_main(argc > 1 ? argv[1] : NULL);
	for (unsigned i = 0; i < VM_CHANNELS; i++)
		a.jobs[i] =
			(struct job){ .in_fd = -1, .stopped_fd = -1, .out_fds = { -1, -1, -1 } };
	a.spare = (struct spare){ .ends = { { -1, -1, -1 }, { -1, -1 } }, .outer = { -1, -1, -1 } };
	a.childless = true;
	a.channels = 1;
	boot_all(&a);
	rehearse_in_template(&a);
	job_prepare(&a);
	a.out_len = wire_put(a.out, VM_READY, 0, 0, &ready, sizeof(ready));
	serve(&a);
}
