/*
 * ward-keys: holds the secrets of one sandbox and puts them into requests. Started by ward-secrets,
 * which hands them over; linked to front, which hands it connected sockets. It opens nothing,
 * executes nothing and connects to nothing (tables/procs.def), no process can dump or trace it, and
 * what it holds lies in locked memory. When ward-secrets ends, so does it, and with it every
 * connection that a secret could go through. It is a role of the program ward-gateway-tls, so that
 * what both use of OpenSSL is in memory once.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/trim_memory.h"
#include "gateway/proc.h"
#include "keys/keys.h"

#define TICK_MS 30000
#define IDLE_MS 5000
#define UNSAID_MS 20
#define HELD_MS 250 /* until bytes that are held back are looked at */

static int watch(struct keys *k, int fd, void *who)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = who };

	return epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* A connection of front's. */
static void on_link(struct keys *k)
{
	struct keys_open open;
	int fds[2];
	size_t count = 0;
	ssize_t n = io_recv_fds(k->link_fd, &open, sizeof(open), fds, 2, &count);

	if (n == -EINTR || n == -EAGAIN)
		return;
	if (n <= 0) { /* front is gone: so is the network */
		k->ending = true;
		return;
	}
	if (n == (ssize_t)sizeof(open) && open.magic == KEYS_OPEN_MAGIC && count == 2) {
		conn_open(k, &open, fds[0], fds[1]);
		return;
	}
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

static int prepare(struct keys *k, struct ward_err *e)
{
	int r = tls_trust_new(KEYS_FD_TRUST, &k->trust, e);

	close(KEYS_FD_TRUST);
	if (r == 0)
		r = tls_trust_ready(k->trust, e);
	if (r == 0)
		r = safe_open(&k->safe, SAFE_BYTES, e);
	if (r < 0)
		return r;
	k->secrets_fd = KEYS_FD_SECRETS;
	k->link_fd = KEYS_FD_LINK;
	k->compose_bytes = k->safe.bytes / 2 < KEYS_COMPOSE ? k->safe.bytes / 2 : KEYS_COMPOSE;
	k->compose = safe_take(&k->safe, k->compose_bytes);
	k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!k->compose || k->epoll_fd < 0 || watch(k, k->secrets_fd, &k->secrets_fd) < 0)
		return ward_fail_errno(e, "cannot prepare ward-keys");
	return confine_enter(PROC_KEYS, NULL, e);
}

static void serve_once(struct keys *k)
{
	struct epoll_event events[64];
	/* what ward-secrets has not taken yet is not left for when something else happens */
	int n = epoll_wait(k->epoll_fd, events, ARRAY_LEN(events),
			   k->said.len || k->lost ? UNSAID_MS
			   : k->waiting           ? HELD_MS
			   : k->fat               ? IDLE_MS
						  : TICK_MS);

	/* a revocation comes before any request that came with it */
	for (int i = 0; i < n && !k->ending; i++)
		if (events[i].data.ptr == &k->secrets_fd)
			k->ending |= !store_read(k);
	if (k->ready && !k->begun) {
		k->begun = true;
		k->ending |= watch(k, k->link_fd, &k->link_fd) < 0;
	}
	for (int i = 0; i < n && !k->ending; i++) {
		if (events[i].data.ptr == &k->secrets_fd)
			continue;
		if (events[i].data.ptr == &k->link_fd)
			on_link(k);
		else
			conn_ready(k, events[i].data.ptr);
	}
	conn_expire(k, io_now_ms());
	conn_free_dead(k);
	store_flush(k);
	if (n > 0) {
		k->fat = true;
		/* greetings are over: what is busy needs a part of what has begun */
		if (++k->rounds == SETTLED_ROUNDS)
			trim_memory_now();
	} else if (n == 0 && k->fat && !k->said.len && !k->lost && !k->waiting) {
		trim_memory_now(); /* what it needs of its program is megabytes */
		k->fat = false;
		k->rounds = 0;
	}
}

static int keys_main(void)
{
	static struct keys k;
	struct ward_err e = { 0 };

	if (fcntl(KEYS_FD_SECRETS, F_GETFD) < 0 || fcntl(KEYS_FD_LINK, F_GETFD) < 0) {
		fprintf(stderr, "ward-keys: started by ward run if the policy has grants; does "
				"nothing on its own\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "ward-keys");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (prepare(&k, &e) < 0)
		return 125;
	trim_memory_now();
	while (!k.ending)
		serve_once(&k);
	safe_close(&k.safe);
	return 0;
}

int (*const keys_here)(void) = keys_main;
