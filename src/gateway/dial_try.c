/*
 * Connections under way. In: the addresses of an attempt. Out: a connected socket, or why there is
 * none. Every address is checked right before the connection to that very address (decide_address:
 * ranges, the host's own ones). Several are tried in turn, the next after a quarter of a second or
 * when one fails (RFC 8305); the first that connects wins. Where the policy has an upstream proxy,
 * that one is talked to (proxy_talk.h) before the socket is front's. Runs in dial.
 */
#include "gateway/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"

#define NEXT_MS 250 /* until the next address is tried beside the last one */

int dial_watch(struct dial *d, struct attempt *a, int slot, uint32_t events)
{
	uint32_t number = (uint32_t)(a - d->attempts) * TRIES + (uint32_t)slot;
	struct epoll_event event = { .events = events,
				     .data.u64 = (uint64_t)TAG_TRY << 32 | number };

	if (epoll_ctl(d->epoll_fd, a->watched[slot] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, a->fds[slot],
		      &event) < 0)
		return -errno;
	a->watched[slot] = true;
	return 0;
}

/* Connected to the proxy: the others are not needed any more, this one is talked to. */
static void begin_talk(struct dial *d, struct attempt *a, int slot)
{
	int r;

	for (int i = 0; i < TRIES; i++)
		if (i != slot) {
			own_close_fd(&a->fds[i]);
			a->fds[i] = -1;
		}
	a->next_at_ms = 0;
	a->next = a->count;
	a->talk = malloc(sizeof(*a->talk));
	r = a->talk ? proxy_talk_begin(a->fds[slot], a->talk, &d->proxy, &a->target,
				       a->verdict.port)
		    : -ENOMEM;
	if (r == 0)
		r = dial_watch(d, a, slot, EPOLLIN | EPOLLET);
	if (r < 0) {
		a->error = -r;
		dial_give_up(d, a);
	}
}

void dial_connected(struct dial *d, struct attempt *a, int slot)
{
	struct dial_answer said = { .id = a->id, .verdict = a->verdict };
	int fd = take_fd(&a->fds[slot]);

	said.verdict.ip = a->tried[slot];
	if (a->watched[slot])
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	dial_answer(d, a, &said, fd);
}

static void reached(struct dial *d, struct attempt *a, int slot)
{
	if (a->by_proxy)
		begin_talk(d, a, slot);
	else
		dial_connected(d, a, slot);
}

static void go_on_talking(struct dial *d, struct attempt *a, int slot)
{
	int r = proxy_talk_step(a->fds[slot], a->talk, &d->proxy);

	if (r > 0) {
		dial_connected(d, a, slot);
	} else if (r < 0) {
		a->error = -r;
		dial_give_up(d, a);
	}
}

socklen_t dial_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (ip->family == 4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, ip->bytes, 4);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, ip->bytes, 16);
	return sizeof(*v6);
}

static int open_try(const struct ip *ip, uint16_t port, bool *ret_done)
{
	struct sockaddr_storage there;
	socklen_t n = dial_sockaddr(ip, port, &there);
	auto_fd fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	/* a peer on this machine does not vanish silently */
	if (address_classify(ip) != ADDRESS_LOOPBACK)
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	/* on this machine the second call finds it done; elsewhere it is still under way */
	*ret_done = connect(fd, (struct sockaddr *)&there, n) == 0 ||
		    (errno == EINPROGRESS && connect(fd, (struct sockaddr *)&there, n) == 0);
	if (!*ret_done && errno != EINPROGRESS && errno != EALREADY)
		return -errno;
	return take_fd(&fd);
}

static int free_slot(const struct attempt *a)
{
	for (int i = 0; i < TRIES; i++)
		if (a->fds[i] < 0)
			return i;
	return -1;
}

static bool is_trying(const struct attempt *a)
{
	for (int i = 0; i < TRIES; i++)
		if (a->fds[i] >= 0)
			return true;
	return false;
}

void dial_try_next(struct dial *d, struct attempt *a)
{
	int slot = free_slot(a);

	while (a->next < a->count && slot >= 0) {
		const struct ip *ip = &a->ips[a->next++];
		struct address_own own = { .items = ip,
					   .len = a->verdict.reach != REACH_SERVICE &&
						  !a->by_proxy && dial_is_own(d, ip) };
		struct verdict v;
		bool done = false;
		int fd, r;

		v = a->verdict;
		if (!a->by_proxy)
			decide_address(&a->verdict, ip, &own, &v);
		if (!v.allow) {
			a->refused = v;
			a->was_refused = true;
			continue;
		}
		fd = open_try(ip, a->by_proxy ? d->proxy.port : a->verdict.port, &done);
		if (fd < 0) {
			a->error = -fd;
			continue;
		}
		a->fds[slot] = fd;
		a->watched[slot] = false;
		a->tried[slot] = *ip;
		if (done) {
			reached(d, a, slot);
			return;
		}
		r = dial_watch(d, a, slot, EPOLLOUT);
		if (r == 0) {
			a->next_at_ms = a->next < a->count ? io_now_ms() + NEXT_MS : 0;
			return;
		}
		a->error = -r;
		own_close_fd(&a->fds[slot]);
		a->fds[slot] = -1;
	}
	a->next_at_ms = 0;
	if (!is_trying(a))
		dial_give_up(d, a);
}

void dial_on_try(struct dial *d, uint32_t number)
{
	struct attempt *a = &d->attempts[number / TRIES];
	int slot = (int)(number % TRIES), error = 0;
	socklen_t n = sizeof(error);

	if (!a->used || a->fds[slot] < 0)
		return;
	if (a->talk) {
		go_on_talking(d, a, slot);
		return;
	}
	if (getsockopt(a->fds[slot], SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (!error) {
		reached(d, a, slot);
		return;
	}
	a->error = error;
	own_close_fd(&a->fds[slot]);
	a->fds[slot] = -1;
	dial_try_next(d, a);
}
