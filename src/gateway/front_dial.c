/*
 * front's talk with dial. In: flows that want a connection, and dial's answers with sockets. Out: requests and flow_dialled(). What one turn of
 * the loop has gathered goes in one call, and answers are taken as many at a time as there are: a program that connects often wakes
 * each of the two processes once for several connections. Runs in front.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gateway/flow.h"

#define AT_ONCE 16

struct asking {
	struct dial_request requests[AT_ONCE];
	struct iovec parts[AT_ONCE];
	struct mmsghdr messages[AT_ONCE];
};

void flow_ask_dial(struct front *f, struct flow *w)
{
	w->state = FLOW_DIAL;
	flow_untime(f, w);	/* dial gives up by itself */
	if (!w->server && w->watched[CLIENT] == WATCH_NOT)
		flow_time_out(f, w, FLOW_WAIT_DIAL);
	w->asked = true;
	w->ask_next = NULL;
	*(f->ask.last ? &f->ask.last->ask_next : &f->ask.first) = w;
	f->ask.last = w;
}

/* The first of the list; those whose client has gone meanwhile are passed over. */
static unsigned gather(const struct front *f, struct asking *a)
{
	unsigned n = 0;

	for (const struct flow *w = f->ask.first; w && n < AT_ONCE; w = w->ask_next) {
		if (w->state != FLOW_DIAL)
			continue;
		a->requests[n] = (struct dial_request){ .id = w->id, .inward = w->inward ? INWARD_PORT : INWARD_NOT, .looked = w->server, .want = w->want };
		a->parts[n] = (struct iovec){ .iov_base = &a->requests[n], .iov_len = sizeof(a->requests[n]) };
		a->messages[n] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &a->parts[n], .msg_iovlen = 1 } };
		n++;
	}
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

/* Whether there is room again is asked for only while there is none: else each request that dial reads would wake us up. */
static void wait_for_room(struct front *f, bool wait)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET | (wait ? (uint32_t)EPOLLOUT : 0), .data.u64 = EVENT_DIAL };

	if (f->dial_full != wait)
		epoll_ctl(f->epoll_fd, EPOLL_CTL_MOD, f->dial_fd, &event);
	f->dial_full = wait;
}

void front_ask(struct front *f)
{
	while (f->ask.first) {
		struct asking a;
		unsigned n = gather(f, &a);
		int sent = n ? sendmmsg(f->dial_fd, a.messages, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0) {
			if (errno == EAGAIN)
				wait_for_room(f, true);
			else
				f->finish = true;	/* dial is gone: there is no way out any more */
			return;
		}
		forget(f, (unsigned)sent);
	}
	wait_for_room(f, false);
}

/* Of dial's answers at most so many; how many it were. */
static unsigned hear(struct front *f)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control[AT_ONCE];
	struct dial_answer said[AT_ONCE];
	struct iovec parts[AT_ONCE];
	struct mmsghdr messages[AT_ONCE];
	int n;

	for (size_t i = 0; i < AT_ONCE; i++) {
		parts[i] = (struct iovec){ .iov_base = &said[i], .iov_len = sizeof(said[i]) };
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &parts[i], .msg_iovlen = 1, .msg_control = control[i].space,
							     .msg_controllen = sizeof(control[i].space) } };
	}
	n = recvmmsg(f->dial_fd, messages, AT_ONCE, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			f->finish = true;
		return errno == EINTR ? AT_ONCE : 0;
	}
	for (int i = 0; i < n; i++) {
		int fd = -1;

		if (messages[i].msg_hdr.msg_controllen >= sizeof(struct cmsghdr) && control[i].align.cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(&control[i].align), sizeof(fd));
		if (messages[i].msg_len != sizeof(said[i])) {
			f->finish = true;
			own_close_fd(&fd);
		} else {
			flow_dialled(f, &said[i], fd);
		}
	}
	return (unsigned)n;
}

void front_hear_dial(struct front *f)
{
	while (!f->finish && hear(f) == AT_ONCE)
		;	/* fewer: that was all, and what comes from now on is an event */
	if (f->dial_full)
		front_ask(f);
}
