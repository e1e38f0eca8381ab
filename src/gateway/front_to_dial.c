/*
 * front's talk with dial. In: flows that want a connection, and dial's answers with sockets. Out:
 * requests and flow_dialled(). What one turn of the loop has gathered goes in one message, and so
 * do answers: a program that connects often wakes each of the two processes once for several
 * connections. Runs in front.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd_message.h"
#include "gateway/flow.h"

#define MESSAGES 4 /* of answers, taken at once */

void flow_ask_dial(struct front *f, struct flow *w)
{
	w->state = FLOW_DIAL;
	flow_untime(f, w); /* dial times out itself */
	if (!w->server && w->watched[CLIENT] == WATCH_NOT)
		flow_time_out(f, w, FLOW_WAIT_DIAL);
	w->asked = true;
	w->ask_next = NULL;
	*(f->ask.last ? &f->ask.last->ask_next : &f->ask.first) = w;
	f->ask.last = w;
}

/* The first of the list; those whose client has gone meanwhile are passed over. */
static unsigned gather(const struct front *f, struct dial_request requests[DIAL_AT_ONCE])
{
	unsigned n = 0;

	for (const struct flow *w = f->ask.first; w && n < DIAL_AT_ONCE; w = w->ask_next)
		if (w->state == FLOW_DIAL)
			requests[n++] = (struct dial_request){ .id = w->id,
							       .inward = w->inward ? INWARD_PORT
										   : INWARD_NOT,
							       .looked = w->server,
							       .want = w->want };
	return n;
}

static void forget(struct front *f, unsigned sent)
{
	while (f->ask.first && (sent || f->ask.first->state != FLOW_DIAL)) {
		struct flow *w = f->ask.first;

		sent -= w->state == FLOW_DIAL;
		f->ask.first = w->ask_next;
		if (!f->ask.first)
			f->ask.last = NULL;
		w->asked = false;
	}
}

/* Whether there is room again is asked for only while there is none: else each request that dial
 * reads would wake us up. */
static void wait_for_room(struct front *f, bool wait)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET | (wait ? (uint32_t)EPOLLOUT : 0),
				     .data.u64 = EVENT_DIAL };

	if (f->dial_full != wait)
		epoll_ctl(f->epoll_fd, EPOLL_CTL_MOD, f->dial_fd, &event);
	f->dial_full = wait;
}

void front_ask(struct front *f)
{
	while (f->ask.first) {
		struct dial_request requests[DIAL_AT_ONCE];
		unsigned n = gather(f, requests);
		ssize_t sent = n ? send(f->dial_fd, requests, n * sizeof(requests[0]),
					MSG_NOSIGNAL | MSG_DONTWAIT)
				 : 0;

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0) {
			if (errno == EAGAIN)
				wait_for_room(f, true);
			else
				/* dial is gone: there is no way out any more */
				f->finish = true;
			return;
		}
		forget(f, n);
	}
	wait_for_room(f, false);
}

/* One message: answers, and the sockets of those that have one, in their order. */
static void take(struct front *f, const struct mmsghdr *m, const struct dial_answer *said)
{
	size_t bytes = m->msg_len, n = bytes / sizeof(*said), next = 0, fd_count;
	int fds[DIAL_AT_ONCE];

	fd_count = fd_message_take(&m->msg_hdr, fds, DIAL_AT_ONCE);
	if (!n || bytes % sizeof(*said)) {
		f->finish = true;
		n = 0;
	}
	for (size_t i = 0; i < n; i++)
		flow_dialled(f, &said[i], !said[i].error && next < fd_count ? fds[next++] : -1);
	while (next < fd_count)
		close(fds[next++]);
}

/* Of dial's messages at most so many; how many it were. */
static unsigned read_messages(struct front *f)
{
	FD_MESSAGE_CONTROL(DIAL_AT_ONCE) control[MESSAGES];
	struct dial_answer said[MESSAGES][DIAL_AT_ONCE];
	struct iovec parts[MESSAGES];
	struct mmsghdr messages[MESSAGES];
	int n;

	for (size_t i = 0; i < MESSAGES; i++) {
		parts[i] = (struct iovec){ .iov_base = said[i], .iov_len = sizeof(said[i]) };
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &parts[i],
							     .msg_iovlen = 1,
							     .msg_control = control[i].space,
							     .msg_controllen =
								     sizeof(control[i].space) } };
	}
	n = recvmmsg(f->dial_fd, messages, MESSAGES, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			f->finish = true;
		return errno == EINTR ? MESSAGES : 0;
	}
	for (int i = 0; i < n; i++)
		take(f, &messages[i], said[i]);
	return (unsigned)n;
}

void front_read_dial(struct front *f)
{
	while (read_messages(f) == MESSAGES && !f->finish)
		; /* fewer: that was all, and what comes from now on is an event */
	if (f->dial_full)
		front_ask(f);
}
