/*
 * wardd-tls: TLS in front of `ward serve`. In: connections of any client, and a certificate with
 * its key. Out: the bytes inside of TLS, over one socket pair for each connection, whose other end
 * the front of wardd gets with the client's address. The private key is in this process alone,
 * which reads no HTTP, has no registry and no sandbox; the front, which reads all that clients say,
 * has no key. Locked up before the first connection (row SERVE_TLS of tables/procs.def): it opens
 * no connection, starts nothing, and of files it reads the directory with the certificate, again at
 * SIGHUP. A certificate that cannot be used then leaves the old one in force.
 *
 * With clients.pem, a client without a certificate of its authorities ends at the handshake.
 *
 * wardd-tls DIR [clients]: descriptor 3 listens, 4 leads to the front.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "confine/confine.h"
#include "daemon/tls.h"

#define LISTEN_FD 3
#define FRONT_FD 4
#define MOST 6144 /* more than the front has: what shakes hands must not keep out what is done */
#define HANDSHAKE_MS 10000
#define TICK_MS 1000
#define PIECE 16384

struct relay;

/* One of a relay's two descriptors. */
struct end {
	struct relay *relay;
	int fd;
	uint32_t events; /* 0: not watched: a hang-up would be said again and again */
};

struct relay {
	struct relay *next, *prev;
	struct end client, inner;
	SSL *ssl;
	struct tls_hello from;
	uint8_t up[PIECE], down[PIECE];
	size_t up_at, up_len, down_at, down_len;
	bool shaken, client_ended, inner_ended, gone, wants_write;
	uint64_t began_ms;
};

struct server {
	const char *dir;
	bool clients; /* need a certificate */
	SSL_CTX *ctx;
	int epoll_fd, signal_fd;
	struct relay *relays, *gone;
	unsigned count, most;
	bool deaf, stop;
};

/* -- the certificate */

static int wrong(struct ward_err *e, const char *what, const char *path)
{
	char text[256];

	ERR_error_string_n(ERR_peek_last_error(), text, sizeof(text));
	ERR_clear_error();
	return ward_fail(e, EINVAL, "%s %s: %s", what, path, text);
}

/* Others must not read the key. */
static int check_key(const char *path, struct ward_err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return ward_fail_errno(e, "cannot open %s", path);
	if (st.st_mode & S_IRWXO) {
		ward_fail(e, EPERM, "%s is a private key that everybody may read", path);
		return ward_remedy(e, "chmod 600 %s", path);
	}
	return 0;
}

/* HTTP/1.1 is all that the front speaks. */
static int choose(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		  const unsigned char *in, unsigned in_len, void *unused)
{
	static const unsigned char known[] = "\x08http/1.1";
	unsigned char *chosen = NULL;

	(void)ssl;
	(void)unused;
	if (SSL_select_next_proto(&chosen, out_len, known, sizeof(known) - 1, in, in_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Only clients whose certificate leads to an authority of clients.pem get beyond the handshake. */
static int ask_clients(SSL_CTX *ctx, const char *dir, struct ward_err *e)
{
	char path[4200];
	STACK_OF(X509_NAME) * names;

	snprintf(path, sizeof(path), "%.4096s/clients.pem", dir);
	names = SSL_load_client_CA_file(path);
	if (!names || SSL_CTX_load_verify_file(ctx, path) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return wrong(e, "cannot use the authorities of clients", path);
	}
	SSL_CTX_set_client_CA_list(ctx, names); /* takes them */
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	/* each handshake is a full one: what was read at SIGHUP counts from then on */
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	return 0;
}

static int load(const char *dir, bool clients, SSL_CTX **ret, struct ward_err *e)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char cert[4200], key[4200];
	int r;

	snprintf(cert, sizeof(cert), "%.4096s/cert.pem", dir);
	snprintf(key, sizeof(key), "%.4096s/key.pem", dir);
	r = ctx ? check_key(key, e) : ward_fail(e, ENOMEM, "out of memory");
	if (r == 0 && SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		r = wrong(e, "cannot use the certificate", cert);
	if (r == 0 && SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		r = wrong(e, "cannot use the key", key);
	if (r == 0 && SSL_CTX_check_private_key(ctx) != 1)
		r = ward_fail(e, EINVAL, "%s is not the key of %s", key, cert);
	if (r == 0 && clients)
		r = ask_clients(ctx, dir, e);
	if (r < 0) {
		SSL_CTX_free(ctx);
		return r;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(ctx, choose, NULL);
	*ret = ctx;
	return 0;
}

static void reload(struct server *s)
{
	struct ward_err e = { 0 };
	SSL_CTX *fresh = NULL;

	if (load(s->dir, s->clients, &fresh, &e) < 0) {
		fprintf(stderr, "ward serve: the old certificate stays: %s\n", e.why);
		return;
	}
	SSL_CTX_free(s->ctx);
	s->ctx = fresh;
	fprintf(stderr, "ward serve: the certificate was read again\n");
}

static void listen_or_not(struct server *s, bool listens)
{
	struct epoll_event ev = { .events = listens ? EPOLLIN : 0, .data.ptr = &s->deaf };

	s->deaf = !listens;
	(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, LISTEN_FD, &ev);
}

/* -- one connection */

static void watch(struct server *s, struct end *end, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = end };
	int op = !events ? EPOLL_CTL_DEL : end->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (end->fd < 0 || events == end->events)
		return;
	if (epoll_ctl(s->epoll_fd, op, end->fd, &ev) < 0)
		end->relay->gone = true;
	end->events = events;
}

static void leave(struct server *s, struct relay *r)
{
	if (r->prev)
		r->prev->next = r->next;
	else
		s->relays = r->next;
	if (r->next)
		r->next->prev = r->prev;
	s->count--;
	own_close_fd(&r->client.fd);
	own_close_fd(&r->inner.fd);
	SSL_free(r->ssl);
	/* events of this round may still name it */
	r->gone = true;
	r->next = s->gone;
	s->gone = r;
	if (s->deaf)
		listen_or_not(s, true);
}

/* Ends the connection that has taken longest over its handshake. False: none is at that. */
static bool make_room(struct server *s)
{
	struct relay *oldest = NULL;

	for (struct relay *r = s->relays; r; r = r->next)
		if (!r->shaken)
			oldest = r; /* the newest is the first */
	if (oldest)
		leave(s, oldest);
	return oldest;
}

/* Where no handshake is under way, the front, which knows what each connection is used for, ends
 * one of which it has no request. Until it has gone, or the next tick, no other is accepted. */
static void ask_for_room(struct server *s)
{
	listen_or_not(s, false);
	(void)!send(FRONT_FD, "", TLS_MAKE_ROOM, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Gives the front one end, with the client's address. */
static bool hand_over(struct server *s, struct relay *r)
{
	int pair[2], fl = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	bool fine;

	while (socketpair(AF_UNIX, fl, 0, pair) < 0)
		if (errno != EMFILE || !make_room(s))
			return false;
	fine = io_send_fds(FRONT_FD, &r->from, sizeof(r->from), &pair[1], 1) >= 0;
	close(pair[1]);
	if (!fine) {
		close(pair[0]);
		return false;
	}
	r->inner.fd = pair[0];
	return true;
}

/* What a call of OpenSSL that did not succeed waits for; false: for nothing, it is over. */
static bool waits(struct relay *r, int result)
{
	int why = SSL_get_error(r->ssl, result);

	ERR_clear_error();
	r->wants_write |= why == SSL_ERROR_WANT_WRITE;
	return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

static bool shake(struct server *s, struct relay *r)
{
	int n = SSL_accept(r->ssl);

	if (n == 1) {
		r->shaken = true;
		r->gone = !hand_over(s, r);
		return !r->gone;
	}
	r->gone = !waits(r, n);
	return false;
}

static bool pass_up(struct relay *r)
{
	ssize_t n;

	if (!r->up_len && !r->client_ended) {
		int got = SSL_read(r->ssl, r->up, PIECE);

		if (got <= 0) {
			r->client_ended = !waits(r, got);
			return r->client_ended;
		}
		r->up_at = 0;
		r->up_len = (size_t)got;
	}
	if (!r->up_len) {
		r->gone = r->client_ended;
		return false;
	}
	n = send(r->inner.fd, r->up + r->up_at, r->up_len, MSG_NOSIGNAL);
	if (n < 0) {
		r->gone = errno != EAGAIN;
		return false;
	}
	r->up_at += (size_t)n;
	r->up_len -= (size_t)n;
	return true;
}

static bool pass_down(struct relay *r)
{
	int n;

	if (!r->down_len && !r->inner_ended) {
		ssize_t got = recv(r->inner.fd, r->down, PIECE, 0);

		if (got < 0 && errno == EAGAIN)
			return false;
		r->inner_ended = got <= 0;
		r->down_at = 0;
		r->down_len = got > 0 ? (size_t)got : 0;
	}
	if (!r->down_len) {
		if (r->inner_ended) {
			(void)SSL_shutdown(r->ssl);
			r->gone = true;
		}
		return false;
	}
	n = SSL_write(r->ssl, r->down + r->down_at, (int)r->down_len);
	if (n <= 0) {
		r->gone = !waits(r, n);
		return false;
	}
	r->down_at += (size_t)n;
	r->down_len -= (size_t)n;
	return true;
}

static void go_on(struct server *s, struct relay *r)
{
	bool more = true;

	r->wants_write = false;
	while (!r->gone && !r->shaken && shake(s, r))
		;
	while (!r->gone && r->shaken && more) {
		more = pass_down(r);
		more |= !r->gone && pass_up(r);
	}
	if (!r->gone) {
		watch(s, &r->client,
		      (r->up_len || r->client_ended ? 0 : EPOLLIN) |
			      (r->wants_write ? EPOLLOUT : 0));
		watch(s, &r->inner,
		      (r->down_len || r->inner_ended ? 0 : EPOLLIN) | (r->up_len ? EPOLLOUT : 0));
	}
	if (r->gone)
		leave(s, r);
}

static void begin(struct server *s, int fd, const struct sockaddr_in *from)
{
	struct relay *r = calloc(1, sizeof(*r));
	int one = 1;

	if (r)
		r->ssl = SSL_new(s->ctx);
	if (!r || !r->ssl || SSL_set_fd(r->ssl, fd) != 1) {
		if (r)
			SSL_free(r->ssl);
		free(r);
		close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	r->client = (struct end){ .relay = r, .fd = fd };
	r->inner = (struct end){ .relay = r, .fd = -1 };
	memcpy(r->from.address, &from->sin_addr, 4);
	r->began_ms = io_now_ms();
	r->next = s->relays;
	if (s->relays)
		s->relays->prev = r;
	s->relays = r;
	s->count++;
	go_on(s, r);
}

/* -- the loop */

static void accept_some(struct server *s)
{
	for (int i = 0; i < 64; i++) {
		struct sockaddr_in from = { 0 };
		socklen_t n = sizeof(from);
		int fd;

		if (s->count >= s->most && !make_room(s)) {
			ask_for_room(s);
			return;
		}
		fd = accept4(LISTEN_FD, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			begin(s, fd, &from);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			if (make_room(s))
				continue;
			ask_for_room(s);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

static void take_signal(struct server *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		reload(s);
	else
		s->stop = true;
}

static void tick(struct server *s)
{
	uint64_t now = io_now_ms();
	struct relay *next;

	if (s->deaf)
		listen_or_not(s, true);
	for (struct relay *r = s->relays; r; r = next) {
		next = r->next;
		if (!r->shaken && now - r->began_ms > HANDSHAKE_MS)
			leave(s, r);
	}
}

static void run(struct server *s)
{
	uint64_t next_tick = 0;
	char byte;

	while (!s->stop) {
		struct epoll_event events[64];
		int n = epoll_wait(s->epoll_fd, events, 64, TICK_MS);

		for (int i = 0; i < n; i++) {
			void *what = events[i].data.ptr;

			if (what == &s->deaf)
				accept_some(s);
			else if (what == &s->signal_fd)
				take_signal(s);
			else if (what == s) /* the front has ended */
				s->stop = recv(FRONT_FD, &byte, 1, MSG_DONTWAIT) <= 0 || s->stop;
			else if (!((struct end *)what)->relay->gone)
				go_on(s, ((struct end *)what)->relay);
		}
		if (io_now_ms() >= next_tick) {
			next_tick = io_now_ms() + TICK_MS;
			tick(s);
		}
		while (s->gone) {
			struct relay *r = s->gone;

			s->gone = r->next;
			free(r);
		}
	}
}

static int prepare(struct server *s, struct ward_err *e)
{
	const struct confine_tree tree = { .path = s->dir, .fd = -1, .rights = CONFINE_READ };
	const struct confine_own own = { .trees = &tree, .tree_count = 1 };
	struct epoll_event ev = { .events = EPOLLIN };
	struct rlimit files = { 0 };
	sigset_t set;

	/* each takes two descriptors, and one more while it is handed over */
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max < 64)
		return ward_fail(e, EMFILE, "too few descriptors for connections");
	s->most = files.rlim_max < 2 * MOST + 32 ? (unsigned)(files.rlim_max - 32) / 2 : MOST;
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->epoll_fd < 0 || s->signal_fd < 0)
		return ward_fail_errno(e, "cannot wait for connections");
	ev.data.ptr = &s->deaf;
	(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, LISTEN_FD, &ev);
	ev.data.ptr = &s->signal_fd;
	(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->signal_fd, &ev);
	ev.data.ptr = s;
	(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, FRONT_FD, &ev);
	return confine_enter(PROC_SERVE_TLS, &own, e);
}

int main(int argc, char **argv)
{
	bool clients = argc == 3 && strcmp(argv[2], TLS_CLIENTS) == 0;
	struct server s = { .dir = argc > 1 ? argv[1] : "", .clients = clients };
	struct ward_err e = { 0 };
	const char ready = 'r';
	int r;

	if (argc != 2 && !clients) {
		fputs("wardd-tls is started by ward serve --tls-dir\n", stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC);
	fcntl(FRONT_FD, F_SETFD, FD_CLOEXEC);
	r = load(s.dir, s.clients, &s.ctx, &e);
	if (r == 0)
		r = prepare(&s, &e);
	if (r < 0) {
		fprintf(stderr, "ward serve: %s%s%s\n", e.why, *e.remedy ? "\n  " : "", e.remedy);
		return 2;
	}
	if (send(FRONT_FD, &ready, 1, MSG_NOSIGNAL) == 1)
		run(&s);
	return 0;
}
