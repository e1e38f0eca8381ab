/*
 * From a name to its addresses. In: a canonical name that the rules allow. Out: addresses,
 * unchecked: dial checks each when it connects (decide_address). Runs in dial. The order is the
 * host's usual one: its table (read again when it changes, by the descriptor that dial was given),
 * then DNS by c-ares, whose answers are kept for as long as they say, at most five minutes. No
 * search list and no aliases of the environment: the name is whole.
 */
#include "gateway/lookup.h"

#include <ares.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/raw.h"
#include "gateway/hosts.h"

#define KNOWN 256 /* names that are kept */
#define KEPT_MS_MAX 300000
#define HOSTS_BYTES_MAX (1024 * 1024)
#define SETTINGS_BYTES_MAX 16384

struct known {
	struct host name;
	uint64_t until_ms;
	size_t count;
	struct ip ips[LOOKUP_IPS_MAX];
};

struct lookup {
	int epoll_fd, hosts_fd;
	uint32_t tag;
	lookup_found found;
	void *context;
	ares_channel channel;
	struct buf hosts;
	struct timespec hosts_time; /* of the text above */
	struct known *known[KNOWN];
	struct question *again; /* to be asked anew */
	bool renewing;
};

/* A question on its way. */
struct question {
	struct lookup *lookup;
	uint32_t id;
	struct host name;
	struct question *next; /* in the list of those to be asked anew */
};

static void socket_state(void *context, ares_socket_t fd, int readable, int writable)
{
	struct lookup *l = context;
	struct epoll_event event = { .events =
					     (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U),
				     .data.u64 = (uint64_t)l->tag << 32 | (uint32_t)fd };

	if (!readable && !writable)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0)
		(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int lookup_new(int epoll_fd, uint32_t tag, int hosts_fd, lookup_found found, void *context,
	       struct lookup **ret, struct ward_err *e)
{
	struct lookup *l = calloc(1, sizeof(*l));
	char dns_only[] = "b";
	struct ares_options options = { .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
					.timeout = 1500,
					.tries = 3,
					.lookups = dns_only,
					.sock_state_cb = socket_state,
					.sock_state_cb_data = l };
	int r;

	if (!l)
		return ward_fail(e, ENOMEM, "out of memory");
	l->epoll_fd = epoll_fd;
	l->tag = tag;
	l->hosts_fd = hosts_fd;
	l->found = found;
	l->context = context;
	r = ares_library_init(ARES_LIB_INIT_ALL);
	if (r == ARES_SUCCESS)
		r = ares_init_options(&l->channel, &options,
				      ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
					      ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
	if (r != ARES_SUCCESS) {
		free(l);
		return ward_fail(e, EIO, "cannot read the host's resolver settings: %s",
				 ares_strerror(r));
	}
	*ret = l;
	return 0;
}

/* -- the host's table */

static void read_hosts(struct lookup *l)
{
	struct stat st;
	char part[4096];
	ssize_t n;

	/* the C library's fstat is a newfstatat, which could ask about every file there is */
	if (l->hosts_fd < 0 || raw_call(SYS_fstat, l->hosts_fd, &st) < 0)
		return;
	if (l->hosts.data && st.st_mtim.tv_sec == l->hosts_time.tv_sec &&
	    st.st_mtim.tv_nsec == l->hosts_time.tv_nsec)
		return;
	l->hosts_time = st.st_mtim;
	l->hosts.len = 0;
	while (l->hosts.len < HOSTS_BYTES_MAX &&
	       (n = pread(l->hosts_fd, part, sizeof(part), (off_t)l->hosts.len)) > 0)
		buf_add(&l->hosts, part, (size_t)n);
}

/* -- what is still known */

static struct known **slot_of(struct lookup *l, const struct host *name)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < name->len; i++)
		hash = (hash ^ (uint8_t)name->name[i]) * 16777619U;
	return &l->known[hash % KNOWN];
}

static void keep(struct lookup *l, const struct host *name, const struct ip *ips, size_t count,
		 uint64_t ms)
{
	struct known **slot = slot_of(l, name);

	if (!ms || !count)
		return;
	if (!*slot)
		*slot = malloc(sizeof(**slot));
	if (!*slot)
		return;
	(*slot)->name = *name;
	(*slot)->until_ms = io_now_ms() + (ms > KEPT_MS_MAX ? KEPT_MS_MAX : ms);
	(*slot)->count = count;
	memcpy((*slot)->ips, ips, count * sizeof(*ips));
}

/* -- DNS */

static bool take_address(const struct sockaddr *a, struct ip *ret)
{
	if (a->sa_family == AF_INET)
		*ret = ip_from_4(
			(const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr);
	else if (a->sa_family == AF_INET6)
		*ret = ip_from_16(
			((const struct sockaddr_in6 *)(const void *)a)->sin6_addr.s6_addr);
	else
		return false;
	return true;
}

/* Both families in turn, IPv6 first (RFC 8305). */
static size_t interleave(const struct ip *all, size_t n, struct ip *ret)
{
	size_t next[2] = { 0, 0 }, count = 0;

	for (unsigned turn = 0; count < n; turn++) {
		uint8_t family = turn % 2 ? 4 : 6;
		size_t *at = &next[turn % 2];

		while (*at < n && all[*at].family != family)
			++*at;
		if (*at < n)
			ret[count++] = all[(*at)++];
	}
	return count;
}

static void answered(void *context, int status, int timeouts, struct ares_addrinfo *answer)
{
	struct question *q = context;
	struct ip all[LOOKUP_IPS_MAX], ips[LOOKUP_IPS_MAX];
	size_t count = 0;
	int ttl = INT32_MAX;

	(void)timeouts;
	if (status == ARES_ECANCELLED && q->lookup->renewing) {
		q->next = q->lookup->again;
		q->lookup->again = q;
		return;
	}
	for (struct ares_addrinfo_node *n = answer && status == ARES_SUCCESS ? answer->nodes : NULL;
	     n && count < LOOKUP_IPS_MAX; n = n->ai_next) {
		if (!take_address(n->ai_addr, &all[count]))
			continue;
		ttl = n->ai_ttl < ttl ? n->ai_ttl : ttl;
		count++;
	}
	if (answer)
		ares_freeaddrinfo(answer);
	count = interleave(all, count, ips);
	if (status != ARES_EDESTRUCTION) {
		keep(q->lookup, &q->name, ips, count, ttl > 0 ? (uint64_t)ttl * 1000 : 0);
		q->lookup->found(q->lookup->context, q->id, ips, count);
	}
	free(q);
}

static void send_question(struct question *q)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
						   .ai_flags = ARES_AI_NOSORT,
						   .ai_socktype = SOCK_STREAM };

	ares_getaddrinfo(q->lookup->channel, q->name.name, NULL, &hints, answered, q);
}

static void ask(struct lookup *l, const struct host *name, uint32_t id)
{
	struct question *q = malloc(sizeof(*q));

	if (!q) {
		l->found(l->context, id, NULL, 0);
		return;
	}
	*q = (struct question){ .lookup = l, .id = id, .name = *name };
	send_question(q);
}

/* -- the host's files have changed */

static void forget(struct lookup *l)
{
	for (size_t i = 0; i < KNOWN; i++)
		free(take_ptr(l->known[i]));
}

void lookup_hosts(struct lookup *l, int hosts_fd)
{
	own_close_fd(&l->hosts_fd);
	l->hosts_fd = hosts_fd;
	buf_free(&l->hosts); /* read at the next question */
	l->hosts = (struct buf){ 0 };
}

void lookup_settings(struct lookup *l, int resolver_fd)
{
	char text[SETTINGS_BYTES_MAX];
	ssize_t n = pread(resolver_fd, text, sizeof(text), 0);
	auto_buf servers = { 0 };

	if (n < 0)
		return;
	settings_servers(text, (size_t)n, &servers);
	l->renewing = true;
	/* servers are changed only while nothing is asked of them */
	ares_cancel(l->channel);
	l->renewing = false;
	if (!servers.failed)
		(void)!ares_set_servers_csv(l->channel, buf_text(&servers));
	forget(l);
	while (l->again) {
		struct question *q = l->again;

		l->again = q->next;
		send_question(q);
	}
}

void lookup_find(struct lookup *l, const struct host *name, uint32_t id)
{
	const struct known *known = *slot_of(l, name);
	struct ip ips[LOOKUP_IPS_MAX];
	size_t count;

	read_hosts(l);
	count = l->hosts.failed
			? 0
			: hosts_find(buf_text(&l->hosts), l->hosts.len, name, ips, LOOKUP_IPS_MAX);
	if (count)
		l->found(l->context, id, ips, count);
	else if (known && known->until_ms > io_now_ms() && host_equal(&known->name, name))
		l->found(l->context, id, known->ips, known->count);
	else
		ask(l, name, id);
}

void lookup_ready(struct lookup *l, int fd, uint32_t epoll_events)
{
	bool broken = epoll_events & (EPOLLERR | EPOLLHUP);

	ares_process_fd(l->channel, epoll_events & EPOLLIN || broken ? fd : ARES_SOCKET_BAD,
			epoll_events & EPOLLOUT || broken ? fd : ARES_SOCKET_BAD);
}

int lookup_wait_ms(struct lookup *l, int max)
{
	struct timeval most = { .tv_sec = max / 1000, .tv_usec = max % 1000 * 1000 }, wait;
	const struct timeval *t = ares_timeout(l->channel, &most, &wait);

	return t ? (int)(t->tv_sec * 1000 + (t->tv_usec + 999) / 1000) : max;
}

void lookup_tick(struct lookup *l)
{
	ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}
