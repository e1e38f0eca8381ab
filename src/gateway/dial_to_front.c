/*
 * dial's talk with front. In: requests. Out: answers, with a connected socket where there is one.
 * Both go several at a time: what one turn of the loop has brought is answered in one message. Runs
 * in dial.
 */
#include "gateway/dial.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fd_message.h"
#include "base/io.h"

#define MESSAGES 4    /* of requests, taken at once */
#define REQUEST_FDS 4 /* with one */

/* One message: the answers, and the sockets of those that have one. */
void dial_answer_all(struct dial *d)
{
	int fds[DIAL_AT_ONCE];
	unsigned n = 0;

	for (unsigned i = 0; i < d->answer_count; i++)
		if (d->answer_fds[i] >= 0)
			fds[n++] = d->answer_fds[i];
	if (d->answer_count && !d->gone &&
	    io_sendmsg_fds(d->front_fd, d->answers, d->answer_count * sizeof(d->answers[0]), fds, n,
			   0) < 0)
		d->gone = true;
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	d->answer_count = 0;
}

void dial_answer(struct dial *d, struct attempt *a, const struct dial_answer *answer, int fd)
{
	d->answers[d->answer_count] = *answer;
	d->answer_fds[d->answer_count++] = fd;
	for (int i = 0; i < TRIES; i++)
		own_close_fd(&a->fds[i]);
	free(take_ptr(a->talk));
	a->used = false;
	d->busy--;
	if (d->answer_count == DIAL_AT_ONCE)
		dial_answer_all(d);
}

void dial_give_up(struct dial *d, struct attempt *a)
{
	struct dial_answer said = { .id = a->id,
				    .error = a->error ? a->error : EHOSTUNREACH,
				    .verdict = a->verdict };

	if (a->was_refused && !a->error) {
		said.verdict = a->refused;
		said.error = EACCES;
	} else {
		verdict_refuse(&said.verdict, a->by_proxy ? REASON_UPSTREAM
					      : a->count  ? REASON_UNREACHABLE
							  : REASON_UNRESOLVED);
	}
	dial_answer(d, a, &said, -1);
}

/* Only with the very first message, before front has read a byte from inside: later it might not be
 * itself, and hand over sockets of the host. */
static void take_sockets(struct dial *d, const struct dial_request *request, const int *fds,
			 size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (d->began || request->inward != INWARD_SOCKETS)
			close(fds[i]);
		else
			published_take(&d->inward, (enum net_socket)request->kinds[i], fds[i]);
	d->began = true;
}

static void take(struct dial *d, const struct mmsghdr *m, const struct dial_request *requests)
{
	int fds[REQUEST_FDS];
	size_t n = m->msg_len / sizeof(*requests),
	       count = fd_message_take(&m->msg_hdr, fds, REQUEST_FDS);

	if (!n || m->msg_len % sizeof(*requests) || d->gone) {
		d->gone = true;
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		return;
	}
	take_sockets(d, &requests[0], fds, count);
	for (size_t i = 0; i < n; i++)
		if (requests[i].inward != INWARD_SOCKETS)
			dial_begin(d, &requests[i]);
}

/* How many messages there were of so many that could have been. */
static size_t receive(struct dial *d, size_t most)
{
	FD_MESSAGE_CONTROL(REQUEST_FDS) control[MESSAGES];
	struct dial_request requests[MESSAGES][DIAL_AT_ONCE];
	struct iovec parts[MESSAGES];
	struct mmsghdr messages[MESSAGES];
	int n;

	for (size_t i = 0; i < most; i++) {
		parts[i] =
			(struct iovec){ .iov_base = requests[i], .iov_len = sizeof(requests[i]) };
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &parts[i],
							     .msg_iovlen = 1,
							     .msg_control = control[i].space,
							     .msg_controllen =
								     sizeof(control[i].space) } };
	}
	n = recvmmsg(d->front_fd, messages, (unsigned)most, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	if (n < 0) {
		d->gone = errno != EAGAIN && errno != EINTR;
		return errno == EINTR ? most : 0;
	}
	for (int i = 0; i < n; i++)
		take(d, &messages[i], requests[i]);
	return (size_t)n;
}

void dial_on_front(struct dial *d)
{
	size_t most, n;

	do {
		most = d->gone ? 0 : (DIAL_MAX - d->busy) / DIAL_AT_ONCE;
		most = most > MESSAGES ? MESSAGES : most;
		n = most ? receive(d, most) : 0;
	} while (n && n == most); /* fewer: that was all, and what comes from now on is an event */
}
