/*
 * Sockets of a namespace that one is not in. In: two sockets that were made inside, a seed and a
 * listening one. Out: any number of fresh ones. What a listening socket accepts belongs to its
 * namespace; a connection of the seed to it is accepted, both ends are disconnected (connect to
 * AF_UNSPEC), and the accepted one is as good as new. So no process has to enter the sandbox's
 * namespaces, which would take rights that no process here has.
 *
 * A program inside may connect to the listening socket too: it is reset, and a socket is a socket,
 * the process that brought it.
 */
#include "gateway/published.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"

#define MAKE_MS 100

void published_init(struct published *w)
{
	memset(w, 0xff, sizeof(*w));
}

void published_take(struct published *w, enum net_socket kind, int fd)
{
	int *places[] = { &w->seeds[0], &w->makers[0], &w->seeds[1], &w->makers[1] };
	unsigned place = (unsigned)kind - NET_SEED4;

	if (place >= ARRAY_LEN(places) || *places[place] >= 0)
		close(fd);
	else
		*places[place] = fd;
}

static socklen_t loopback(bool v6, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (v6) {
		a6->sin6_family = AF_INET6;
		a6->sin6_port = htons(port);
		a6->sin6_addr = in6addr_loopback;
		return sizeof(*a6);
	}
	a4->sin_family = AF_INET;
	a4->sin_port = htons(port);
	a4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof(*a4);
}

static void disconnect(int fd)
{
	struct sockaddr nothing = { .sa_family = AF_UNSPEC };

	(void)!connect(fd, &nothing, sizeof(nothing));
}

static int make(const struct published *w, bool v6)
{
	struct sockaddr_storage there;
	socklen_t n = sizeof(there);
	struct pollfd ready = { .fd = w->makers[v6], .events = POLLIN };
	int fd;

	if (w->seeds[v6] < 0 || w->makers[v6] < 0)
		return -EAFNOSUPPORT;
	if (getsockname(w->makers[v6], (struct sockaddr *)&there, &n) < 0)
		return -errno;
	if (connect(w->seeds[v6], (struct sockaddr *)&there, n) < 0 && errno != EINPROGRESS)
		return -errno;
	if (poll(&ready, 1, MAKE_MS) <= 0)
		errno = ETIMEDOUT;
	fd = ready.revents & POLLIN
		     ? accept4(w->makers[v6], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)
		     : -1;
	if (fd < 0)
		fd = -errno;
	else
		disconnect(fd);
	disconnect(w->seeds[v6]);
	return fd;
}

int published_connect(const struct published *w, bool v6, uint16_t port, bool *ret_done)
{
	struct sockaddr_storage there;
	socklen_t n = loopback(v6, port, &there);
	auto_fd fd = make(w, v6);

	if (fd < 0)
		return fd;
	*ret_done = connect(fd, (struct sockaddr *)&there, n) == 0 ||
		    (errno == EINPROGRESS && connect(fd, (struct sockaddr *)&there, n) == 0);
	if (!*ret_done && errno != EINPROGRESS && errno != EALREADY)
		return -errno;
	return take_fd(&fd);
}
