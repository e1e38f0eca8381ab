/*
 * Other connections for the gateway of a sandbox that runs. In: the netlink socket that was opened
 * in its network namespace, and the matches. Out: the kernel's rules replaced in one step, or an
 * error and the old ones. Runs in the supervisor, outside: it made the user namespace that owns the
 * network namespace, which is all the right that the kernel asks for, and never enters either.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/native/native.h"
#include "engine/native/net_batch.h"

/* The kernel works while we send: its answer is there when that returns. */
static int read_answer(int fd)
{
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} answer;

	ssize_t n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);

	if (n < (ssize_t)(sizeof(struct nlmsghdr) + sizeof(int)) ||
	    answer.header.nlmsg_type != NLMSG_ERROR)
		return n < 0 ? -errno : -EPROTO;
	/* what went wrong comes first; what went well is said once, at the end */
	return ((const struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
}

/* What an earlier refusal left to read. */
static void drop_answers(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

int native_tproxy(int rules_fd, const struct net_match *matches, size_t count, struct ward_err *e)
{
	auto_buf batch = { 0 };
	int r = net_batch_bring(matches, count, &batch);

	drop_answers(rules_fd);
	if (r == 0 && send(rules_fd, batch.data, batch.len, MSG_NOSIGNAL) < 0)
		r = -errno;
	if (r == 0)
		r = read_answer(rules_fd);
	return r < 0 ? ward_fail(
			       e, -r,
			       "the kernel does not accept new rules for the sandbox's network: %s",
			       strerror(-r))
		     : 0;
}
