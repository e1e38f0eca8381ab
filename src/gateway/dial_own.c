/*
 * The host's own addresses. In: an address that dial is about to connect to. Out: whether it leads
 * back to this machine. The kernel is asked each time, since addresses come and go: its table of
 * routes says what it would do with a packet, and that is the truth for every address of an
 * interface, the second and third of a network too (from which no host would talk to it: the kernel
 * talks to those from the first), and for whole networks that are routed to the machine itself.
 * Where there is no such socket, the source that the kernel would choose decides alone. The socket
 * is opened before dial is locked up. Runs in dial.
 */
#include "gateway/dial.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

int dial_routes(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* Sends the question; false: it could not be asked. */
static bool ask(int routes_fd, const struct ip *ip)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr to;
		uint8_t address[16];
	} question = { .head = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST },
		       .route = { .rtm_family = ip->family == 4 ? AF_INET : AF_INET6,
				  .rtm_dst_len = ip->family == 4 ? 32 : 128 },
		       .to = { .rta_type = RTA_DST } };
	unsigned n = ip->family == 4 ? 4 : 16;

	memcpy(question.address, ip->bytes, n);
	question.to.rta_len = (unsigned short)(sizeof(question.to) + n);
	question.head.nlmsg_len = (unsigned)(sizeof(question) - sizeof(question.address)) + n;
	return send(routes_fd, &question, question.head.nlmsg_len, MSG_NOSIGNAL) ==
	       (ssize_t)question.head.nlmsg_len;
}

/* The answer is there when the question has been sent. What is not understood counts as this
 * machine. */
static bool leads_here(int routes_fd, const struct ip *ip)
{
	union {
		struct nlmsghdr head;
		uint8_t bytes[4096];
	} answer;
	struct rtmsg route;
	ssize_t n;

	while (recv(routes_fd, &answer, sizeof(answer), MSG_DONTWAIT) > 0)
		; /* no other process's */
	n = ask(routes_fd, ip) ? recv(routes_fd, &answer, sizeof(answer), MSG_DONTWAIT) : -1;
	if (n < (ssize_t)sizeof(answer.head))
		return true;
	if (answer.head.nlmsg_type == NLMSG_ERROR)
		return false; /* there is no way; TCP will not get there either */
	if (answer.head.nlmsg_type != RTM_NEWROUTE ||
	    n < (ssize_t)(sizeof(answer.head) + sizeof(route)))
		return true;
	memcpy(&route, answer.bytes + sizeof(answer.head), sizeof(route));
	return route.rtm_type != RTN_UNICAST;
}

/* The kernel would talk to it from that same address. */
static bool talks_to_itself(const struct ip *ip)
{
	struct sockaddr_storage there, here = { 0 };
	socklen_t n = dial_sockaddr(ip, 9, &there), here_n = sizeof(here);
	auto_fd fd = socket(there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&there, n) < 0 ||
	    getsockname(fd, (struct sockaddr *)&here, &here_n) < 0)
		return false; /* then TCP will not get there either */
	if (ip->family == 4)
		return memcmp(&((struct sockaddr_in *)&here)->sin_addr, ip->bytes, 4) == 0;
	return memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, ip->bytes, 16) == 0;
}

bool dial_is_own(const struct dial *d, const struct ip *ip)
{
	return talks_to_itself(ip) || (d->routes_fd >= 0 && leads_here(d->routes_fd, ip));
}
