/*
 * dial: the process that connects. In: typed requests of front, DNS answers, the host's table of names. Out: connected
 * sockets, handed to front. It never sees a byte of what flows, and front cannot connect: who takes over front still
 * reaches only what the rules allow, for dial has its own copy of them and decides again.
 *
 * A request is for a name (looked up here and now) or for an address. Every address is checked right before the connection
 * to that very address (decide_address: ranges, the host's own ones), so that what a name resolves to later, or differently,
 * does not matter. Several addresses are tried in turn, the next after a quarter of a second or when one fails (RFC 8305);
 * the first that connects wins. Bounded: DIAL_MAX requests at a time, each for DIAL_MS.
 *
 * Where the policy has an upstream proxy, everything but the host's services goes through it: names are its to resolve, literal
 * addresses are checked here, and its own address is the operator's choice.
 *
 * Rules change at the supervisor's word, which comes over a socket of its own: what was begun and is no longer allowed is given up.
 *
 * Rights: socket, connect, send and receive; no file, no exec (tables/procs.def).
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/config.h"
#include "gateway/inward.h"
#include "gateway/lookup.h"
#include "gateway/proc.h"
#include "gateway/protocol.h"
#include "gateway/talk.h"

#define DIAL_MAX 1024	/* a power of two */
#define DIAL_MS 30000
#define NEXT_MS 250		/* until the next address is tried beside the last one */
#define TRIES 3			/* at one time */
#define FILES_MS 1000		/* after that the supervisor is asked whether the host's files have changed */
#define FILES_WAIT_MS 200	/* and its answer waited for at most so long */

enum { TAG_FRONT, TAG_LOOKUP, TAG_TRY, TAG_ORDERS };

struct attempt {
	bool used;
	uint32_t question;		/* its own in lookups: an answer for who was here before is not for this one */
	uint64_t id;			/* front's */
	struct verdict verdict;
	struct ip ips[LOOKUP_IPS_MAX];
	size_t count, next;
	int fds[TRIES];			/* connecting; -1: none */
	bool watched[TRIES];		/* by epoll */
	struct ip tried[TRIES];
	int error;			/* of the last that failed */
	struct verdict refused;		/* why the last address was refused */
	bool was_refused;
	uint64_t next_at_ms, end_at_ms;
	bool by_proxy;
	bool looking;			/* its name is looked up when the supervisor has answered about the files */
	bool inward, revoked;		/* revoked: the rules changed while its name was being looked up */
	struct host target;		/* that front asked for */
	struct upstream_talk *talk;	/* owned; on the one socket that is left */
};

struct dial {
	int epoll_fd, front_fd;
	struct lookup *lookup;
	struct rules *rules;
	struct upstream proxy;		/* port 0: none */
	struct inward inward;
	struct attempt attempts[DIAL_MAX];
	size_t busy;
	uint32_t questions;
	uint64_t files_at_ms;		/* what is known of the host's files is from then */
	uint64_t files_until_ms;	/* the supervisor was asked, and is waited for until then; 0: not */
	bool gone;			/* front is */
	bool began;			/* something came from front */
};

static void answer(struct dial *d, struct attempt *a, const struct dial_answer *answer, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)answer, .iov_len = sizeof(*answer) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		m.msg_control = control.space;
		m.msg_controllen = sizeof(control.space);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	if (sendmsg(d->front_fd, &m, MSG_NOSIGNAL) < 0)
		d->gone = true;
	for (int i = 0; i < TRIES; i++)
		own_close_fd(&a->fds[i]);
	own_close_fd(&fd);
	free(take_ptr(a->talk));
	a->used = false;
	d->busy--;
}

static void give_up(struct dial *d, struct attempt *a)
{
	struct dial_answer said = { .id = a->id, .error = a->error ? a->error : EHOSTUNREACH,
				    .verdict = a->verdict };

	if (a->was_refused && !a->error) {
		said.verdict = a->refused;
		said.error = EACCES;
	} else {
		verdict_refuse(&said.verdict, a->by_proxy ? REASON_UPSTREAM : a->count ? REASON_UNREACHABLE : REASON_UNRESOLVED);
	}
	answer(d, a, &said, -1);
}

static int watch(struct dial *d, struct attempt *a, int slot, uint32_t events)
{
	uint32_t number = (uint32_t)(a - d->attempts) * TRIES + (uint32_t)slot;
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)TAG_TRY << 32 | number };

	if (epoll_ctl(d->epoll_fd, a->watched[slot] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, a->fds[slot], &event) < 0)
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
	r = a->talk ? talk_begin(a->fds[slot], a->talk, &d->proxy, &a->target, a->verdict.port) : -ENOMEM;
	if (r == 0)
		r = watch(d, a, slot, EPOLLIN | EPOLLET);
	if (r < 0) {
		a->error = -r;
		give_up(d, a);
	}
}

static void connected(struct dial *d, struct attempt *a, int slot)
{
	struct dial_answer said = { .id = a->id, .verdict = a->verdict };
	int fd = take_fd(&a->fds[slot]);

	said.verdict.ip = a->tried[slot];
	if (a->watched[slot])
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	answer(d, a, &said, fd);
}

static void reached(struct dial *d, struct attempt *a, int slot)
{
	if (a->by_proxy)
		begin_talk(d, a, slot);
	else
		connected(d, a, slot);
}

static void go_on_talking(struct dial *d, struct attempt *a, int slot)
{
	int r = talk_step(a->fds[slot], a->talk, &d->proxy);

	if (r > 0) {
		connected(d, a, slot);
	} else if (r < 0) {
		a->error = -r;
		give_up(d, a);
	}
}

/* -- addresses */

static socklen_t to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret)
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

/* Whether it is an address of this host: the kernel would talk to it from that same address. Asked each time, since
 * addresses come and go. */
static bool is_own(const struct ip *ip)
{
	struct sockaddr_storage there, here = { 0 };
	socklen_t n = to_sockaddr(ip, 9, &there), here_n = sizeof(here);
	auto_fd fd = socket(there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&there, n) < 0 ||
	    getsockname(fd, (struct sockaddr *)&here, &here_n) < 0)
		return false;	/* then TCP will not get there either */
	if (ip->family == 4)
		return memcmp(&((struct sockaddr_in *)&here)->sin_addr, ip->bytes, 4) == 0;
	return memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, ip->bytes, 16) == 0;
}

static int open_try(const struct ip *ip, uint16_t port, bool *ret_done)
{
	struct sockaddr_storage there;
	socklen_t n = to_sockaddr(ip, port, &there);
	auto_fd fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
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

/* Starts with one more address. The attempt may be over when this returns. */
static void try_next(struct dial *d, struct attempt *a)
{
	int slot = free_slot(a);

	while (a->next < a->count && slot >= 0) {
		const struct ip *ip = &a->ips[a->next++];
		struct addr_own own = { .items = ip, .len = a->verdict.reach != REACH_SERVICE && !a->by_proxy && is_own(ip) };
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
		r = watch(d, a, slot, EPOLLOUT);
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
		give_up(d, a);
}

static void found(void *context, uint32_t id, const struct ip *ips, size_t count)
{
	struct dial *d = context;
	struct attempt *a = &d->attempts[id % DIAL_MAX];

	if (!a->used || a->question != id || a->count)
		return;
	if (!count || a->revoked) {
		give_up(d, a);
		return;
	}
	memcpy(a->ips, ips, count * sizeof(*ips));
	a->count = count;
	try_next(d, a);
}

static void on_try(struct dial *d, uint32_t number)
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
	try_next(d, a);
}

/* -- front */

/* What front sent is believed only if it is what reading it again would make. */
static bool is_sound(const struct want *w)
{
	struct host again;

	return (w->host.kind == HOST_NAME && w->host.len <= HOSTNAME_MAX && !w->host.name[w->host.len] &&
		host_read(w->host.name, w->host.len, &again) == HOST_FINE && host_equal(&again, &w->host)) ||
	       (w->host.kind == HOST_ADDRESS && (w->host.ip.family == 4 || w->host.ip.family == 6));
}

static void look_up_now(struct dial *d, struct attempt *a)
{
	a->looking = false;
	lookup_find(d->lookup, a->by_proxy ? &d->proxy.host : &a->target, a->question);
}

/* The host's table of names and its resolver may be others now: the supervisor looks, for we have no files. */
static void look_up(struct dial *d, struct attempt *a)
{
	const struct dial_word word = { .kind = DIAL_LOOK };
	uint64_t now = io_now_ms();

	if (!d->files_until_ms && now - d->files_at_ms >= FILES_MS &&
	    send(GATE_FD_ORDERS, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		d->files_until_ms = now + FILES_WAIT_MS;
	a->looking = d->files_until_ms > 0;
	if (!a->looking)
		look_up_now(d, a);
}

static void files_are_known(struct dial *d)
{
	d->files_at_ms = io_now_ms();
	d->files_until_ms = 0;
	for (size_t i = 0; i < DIAL_MAX; i++)
		if (d->attempts[i].used && d->attempts[i].looking)
			look_up_now(d, &d->attempts[i]);
}

/* Through the proxy: a literal address is checked as any, a name is left to it. */
static void begin_by_proxy(struct dial *d, struct attempt *a)
{
	struct addr_own own = { .items = &a->verdict.ip, .len = a->verdict.reach != REACH_NAME && is_own(&a->verdict.ip) };

	if (a->verdict.reach != REACH_NAME) {
		decide_address(&a->verdict, &a->verdict.ip, &own, &a->refused);
		a->was_refused = !a->refused.allow;
	}
	if (a->was_refused) {
		give_up(d, a);
		return;
	}
	a->by_proxy = true;
	if (d->proxy.host.kind == HOST_NAME)
		look_up(d, a);
	else
		found(d, a->question, &d->proxy.host.ip, 1);
}

/* Into the sandbox: whoever listens there, on either loopback. */
static void begin_inward(struct dial *d, struct attempt *a, uint16_t port)
{
	bool done = false;

	for (int v6 = 0; v6 < 2 && a->fds[0] < 0; v6++) {
		int fd = inward_connect(&d->inward, v6, port, &done);

		if (fd >= 0)
			a->fds[0] = fd;
		else if (!a->error)
			a->error = -fd;
	}
	a->count = 1;
	if (a->fds[0] >= 0 && done)
		connected(d, a, 0);
	else if (a->fds[0] < 0 || watch(d, a, 0, EPOLLOUT) < 0)
		give_up(d, a);
}

static void begin(struct dial *d, const struct dial_request *request)
{
	struct attempt *a = d->attempts;

	while (a->used)
		a++;	/* there is room: see on_front() */
	*a = (struct attempt){ .used = true, .question = d->questions++ * DIAL_MAX + (uint32_t)(a - d->attempts),
			       .id = request->id, .end_at_ms = io_now_ms() + DIAL_MS };
	for (int i = 0; i < TRIES; i++)
		a->fds[i] = -1;
	d->busy++;
	a->inward = request->inward;
	if (request->inward) {
		begin_inward(d, a, request->want.port);
		return;
	}
	if (is_sound(&request->want)) {
		a->target = request->want.host;
		decide_name(d->rules, &request->want, &a->verdict);
	}
	if (!a->verdict.allow) {
		a->refused = a->verdict;
		a->was_refused = true;
		give_up(d, a);
	} else if (d->proxy.port && a->verdict.reach != REACH_SERVICE) {
		begin_by_proxy(d, a);
	} else if (a->verdict.reach == REACH_NAME) {
		look_up(d, a);
	} else {
		found(d, a->question, &a->verdict.ip, 1);
	}
}

static ssize_t receive(struct dial *d, struct dial_request *request, int fds[4], size_t *ret_count)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = request, .iov_len = sizeof(*request) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	ssize_t n = recvmsg(d->front_fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret_count = 0;
	if (n >= 0 && m.msg_controllen >= sizeof(struct cmsghdr) && control.align.cmsg_type == SCM_RIGHTS) {
		*ret_count = (control.align.cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(&control.align), *ret_count * sizeof(int));
	}
	return n;
}

/* Only with the very first message, before front has read a byte from inside: later it might not be itself, and hand over
 * sockets of the host. */
static void take_sockets(struct dial *d, const struct dial_request *request, const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (d->began || request->inward != INWARD_SOCKETS)
			close(fds[i]);
		else
			inward_take(&d->inward, (enum net_socket)request->kinds[i], fds[i]);
	d->began = true;
}

static void on_front(struct dial *d)
{
	while (d->busy < DIAL_MAX && !d->gone) {
		struct dial_request request;
		size_t fd_count;
		int fds[4];
		ssize_t n = receive(d, &request, fds, &fd_count);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n != (ssize_t)sizeof(request)) {
			d->gone = true;
			return;
		}
		take_sockets(d, &request, fds, fd_count);
		if (request.inward != INWARD_SOCKETS)
			begin(d, &request);
	}
}

/* -- the supervisor */

/* What is under way is decided about again. */
static void decide_again(struct dial *d, struct attempt *a)
{
	struct want want;
	struct verdict v;

	want_host(&want, WANT_CONNECT, &a->target, a->verdict.port);
	decide_name(d->rules, &want, &v);
	if (v.allow && v.service == a->verdict.service && v.reach == a->verdict.reach && v.private >= a->verdict.private)
		return;
	a->refused = v;
	verdict_refuse(&a->refused, REASON_CHANGED);
	a->was_refused = a->revoked = true;
	a->error = 0;
	if (a->count)	/* else its number is still in a question to the resolver, and must not become another's */
		give_up(d, a);
}

static void take_rules(struct dial *d, int fd)
{
	struct dial_word said = { .kind = DIAL_TAKEN };
	struct rules *old = d->rules, *new = NULL;
	struct ward_err e = { 0 };

	if (config_read(fd, &new, NULL, &e) < 0 || new->generation <= old->generation) {
		rules_free(new);
		d->gone = true;
		return;
	}
	d->rules = new;
	rules_free(old);
	for (size_t i = 0, left = d->busy; i < DIAL_MAX && left; i++) {
		if (!d->attempts[i].used)
			continue;
		left--;
		if (!d->attempts[i].inward)
			decide_again(d, &d->attempts[i]);
	}
	said.generation = new->generation;
	if (send(GATE_FD_ORDERS, &said, sizeof(said), MSG_NOSIGNAL) < 0)
		d->gone = true;
}

static void take_files(struct dial *d, uint32_t files, int *fds, size_t count)
{
	size_t next = 0;

	if (files & 1U << DIAL_HOSTS && next < count)
		lookup_hosts(d->lookup, take_fd(&fds[next++]));
	if (files & 1U << DIAL_RESOLVER && next < count)
		lookup_settings(d->lookup, fds[next]);
	files_are_known(d);
}

static void on_orders(struct dial *d)
{
	struct dial_order order = { 0 };
	size_t count = 0;
	int fds[DIAL_FILE_COUNT];
	ssize_t n = io_recv_fds(GATE_FD_ORDERS, &order, sizeof(order), fds, DIAL_FILE_COUNT, &count);

	if (n == (ssize_t)sizeof(order) && order.word == DIAL_RULES && count == 1)
		take_rules(d, fds[0]);
	else if (n == (ssize_t)sizeof(order) && order.word == DIAL_FILES)
		take_files(d, order.files, fds, count);
	else
		d->gone = true;	/* the supervisor is */
	for (size_t i = 0; i < count; i++)
		own_close_fd(&fds[i]);
}

static void on_time(struct dial *d)
{
	uint64_t now = io_now_ms();

	lookup_tick(d->lookup);
	if (d->files_until_ms && now >= d->files_until_ms)
		files_are_known(d);	/* as far as they are */
	for (size_t i = 0, left = d->busy; i < DIAL_MAX && left; i++) {
		struct attempt *a = &d->attempts[i];

		if (!a->used)
			continue;
		left--;
		if (now >= a->end_at_ms) {
			a->error = ETIMEDOUT;
			give_up(d, a);
		} else if (a->next_at_ms && now >= a->next_at_ms) {
			try_next(d, a);
		}
	}
}

static int wait_ms(struct dial *d)
{
	uint64_t now = io_now_ms(), first = now + 60000;

	if (!d->busy)
		return -1;
	if (d->files_until_ms && d->files_until_ms < first)
		first = d->files_until_ms;
	for (size_t i = 0, left = d->busy; i < DIAL_MAX && left; i++) {
		const struct attempt *a = &d->attempts[i];

		if (!a->used)
			continue;
		left--;
		first = a->end_at_ms < first ? a->end_at_ms : first;
		first = a->next_at_ms && a->next_at_ms < first ? a->next_at_ms : first;
	}
	return lookup_wait_ms(d->lookup, first > now ? (int)(first - now) : 0);
}

static void serve(struct dial *d)
{
	struct epoll_event events[64];

	while (!d->gone) {
		int n = epoll_wait(d->epoll_fd, events, ARRAY_LEN(events), wait_ms(d));

		for (int i = 0; i < n; i++) {
			uint32_t tag = (uint32_t)(events[i].data.u64 >> 32), number = (uint32_t)events[i].data.u64;

			if (tag == TAG_FRONT)
				continue;
			if (tag == TAG_ORDERS)
				on_orders(d);
			else if (tag == TAG_LOOKUP)
				lookup_ready(d->lookup, (int)number, events[i].events);
			else
				on_try(d, number);
		}
		on_time(d);
		on_front(d);	/* last: there may be room again */
	}
}

int dial_main(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = (uint64_t)TAG_FRONT << 32 };
	struct epoll_event orders = { .events = EPOLLIN, .data.u64 = (uint64_t)TAG_ORDERS << 32 };
	struct dial *d = calloc(1, sizeof(*d));
	struct ward_err e = { 0 };

	if (!d)
		return 125;
	d->front_fd = GATE_FD_CONTROL;
	d->files_at_ms = io_now_ms();
	inward_init(&d->inward);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (config_read(GATE_FD_CONFIG, &d->rules, NULL, &e) < 0 || config_read_proxy(&d->proxy, &e) < 0)
		return 125;
	if (d->epoll_fd < 0 || epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->front_fd, &event) < 0 ||
	    epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, GATE_FD_ORDERS, &orders) < 0 ||
	    lookup_new(d->epoll_fd, TAG_LOOKUP, fcntl(GATE_FD_HOSTS, F_GETFD) < 0 ? -1 : GATE_FD_HOSTS, found, d,
		       &d->lookup, &e) < 0 ||
	    proc_confine(PROC_DIAL, &e) < 0)
		return 125;
	serve(d);
	return 0;
}
