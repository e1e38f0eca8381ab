/*
 * Connections to servers. In: exchanges that need one. Out: a connection that dial has made to a
 * checked address and over which the server has proved its name; first of all one that was used
 * before. A connection belongs to one exchange at a time; between two it waits in a small pool, and
 * what a server sends there unasked closes it. Runs in front.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "inspect/inspect.h"
#include "protocol/secrets.h"

#define IDLE_MAX 32

/* -- what servers speak */

static struct known_server *place_of(struct inspector *i, const struct host *host, uint16_t port)
{
	uint32_t hash = 2166136261u ^ port;

	for (unsigned k = 0; k < host->len; k++)
		hash = (hash ^ (uint8_t)host->name[k]) * 16777619u;
	return &i->known[(hash ^ hash >> 16) % KNOWN_SERVERS];
}

unsigned server_known(const struct inspector *i, const struct host *host, uint16_t port)
{
	const struct known_server *k = place_of((struct inspector *)(uintptr_t)i, host, port);

	return k->alpn && k->port == port && host_equal(&k->host, host) ? k->alpn : 0;
}

static void remember(struct inspector *i, const struct server *s)
{
	const struct want *w = &s->flow->want;

	if (s->offer == TLS_ALPN_BOTH) /* else it was not asked */
		*place_of(i, &w->host, w->port) =
			(struct known_server){ w->host, w->port, s->alpn };
}

/* -- the pool */

static void leave_pool(struct inspector *i, struct server *s)
{
	*(s->prev ? &s->prev->next : &i->idle) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->next = s->prev = NULL;
	i->idle_count--;
}

static void enter_pool(struct front *f, struct server *s)
{
	struct inspector *i = inspector_of(f);

	if (i->idle_count >= IDLE_MAX) { /* the oldest goes */
		struct server *last = i->idle;

		while (last->next)
			last = last->next;
		flow_close(f, last->flow, false);
	}
	s->user = NULL;
	s->used = true;
	s->next = i->idle;
	if (i->idle)
		i->idle->prev = s;
	i->idle = s;
	i->idle_count++;
	flow_time_out(f, s->flow, FLOW_WAIT_HALF);
}

static struct server *find_idle(struct front *f, const struct exchange *ex, bool tls,
				enum tls_alpn offer)
{
	const struct want *want = &ex->flow->want;

	for (struct server *s = inspector_of(f)->idle; s; s = s->next)
		/* one that was only ever offered HTTP/1 does not answer the question what its
		 * server speaks */
		if (s->tls == tls && (s->alpn & offer) &&
		    (offer != TLS_ALPN_BOTH || s->offer == TLS_ALPN_BOTH) &&
		    s->flow->want.port == want->port &&
		    host_equal(&s->flow->want.host, &want->host))
			return s;
	return NULL;
}

/* -- taking and giving back */

bool server_get(struct front *f, struct exchange *ex, bool tls, enum tls_alpn offer)
{
	struct server *s = find_idle(f, ex, tls, offer);
	struct flow *w;

	ex->lost = 0;
	if (s) {
		leave_pool(inspector_of(f), s);
		flow_untime(f, s->flow);
		s->user = ex;
		ex->server = s;
		return true;
	}
	s = calloc(1, sizeof(*s));
	w = s ? flow_new(f, -1, FLOW_DIAL) : NULL;
	if (!w) {
		free(s);
		return false;
	}
	w->server = true;
	w->inspect = s;
	w->want = ex->flow->want;
	w->want.how = WANT_TRANSPARENT;
	w->verdict = ex->flow->verdict;
	*s = (struct server){
		.flow = w, .wire = { .fd = -1 }, .tls = tls, .offer = (uint8_t)offer, .user = ex
	};
	ex->server = s;
	flow_ask_dial(f, w);
	return true;
}

void server_put(struct front *f, struct exchange *ex, bool reuse)
{
	struct server *s = take_ptr(ex->server);

	if (!s)
		return;
	s->user = NULL;
	/* its end was reported once, and is not reported again */
	if (reuse && s->state == SERVER_OPEN && !s->flow->has_ended[SERVER])
		enter_pool(f, s);
	else
		flow_close(f, s->flow, false);
}

/* -- life */

static void open_server(struct front *f, struct server *s)
{
	s->state = SERVER_OPEN;
	flow_untime(f, s->flow);
	if (s->user)
		flow_mark_ready(f, s->user->flow);
	else
		enter_pool(f, s);
}

/* -- servers that a secret may go to */

bool server_is_for_keys(const struct front *f, const struct host *host)
{
	for (const char *at = f->keys_hosts; at && *at; at += strlen(at) + 1) {
		size_t n = strlen(at);

		if (strcmp(at, "*") == 0 || strcmp(at, host->name) == 0)
			return true;
		if (*at == '*' && host->len >= n &&
		    strcmp(host->name + host->len - (n - 1), at + 1) == 0)
			return true;
	}
	return false;
}

/* ward-keys gets the socket, ends TLS with the server; what is left here is a pipe to it, in the
 * clear. */
static bool hand_over(struct front *f, struct flow *w)
{
	const struct server *s = w->inspect;
	struct keys_open open = { .magic = KEYS_OPEN_MAGIC,
				  .port = w->want.port,
				  .host_len = w->want.host.len,
				  .offer = s->offer };
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				     .data.u64 = flow_event(w, SERVER) };
	int pair[2];
	bool done;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	memcpy(open.host, w->want.host.name, w->want.host.len);
	/* to close it is not enough: epoll would go on telling of it for as long as ward-keys has
	 * it */
	epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, w->fds[SERVER], NULL);
	done = io_send_fds(GATE_FD_KEYS, &open, sizeof(open),
			   (const int[]){ w->fds[SERVER], pair[1] }, 2) == 0;
	close(pair[1]);
	close(w->fds[SERVER]);
	w->fds[SERVER] = pair[0];
	w->can_read[SERVER] = false;
	return done && epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, pair[0], &event) == 0;
}

void server_dialled(struct front *f, struct flow *w)
{
	struct server *s = w->inspect;

	w->state = FLOW_INSPECT;
	s->wire.fd = w->fds[SERVER];
	s->alpn = TLS_ALPN_HTTP1;
	if (s->tls && server_is_for_keys(f, &w->want.host)) {
		if (!hand_over(f, w)) {
			flow_close(f, w, true);
			return;
		}
		s->wire.fd = w->fds[SERVER];
		s->keys = true;
		s->state = SERVER_GREET;
		flow_time_out(f, w, FLOW_WAIT_HEAD);
		return;
	}
	if (f->config.tape == GATE_TAPE_REPLAY) { /* what it speaks comes first */
		s->state = SERVER_GREET;
		flow_time_out(f, w, FLOW_WAIT_HEAD);
		flow_mark_ready(f, w);
		return;
	}
	if (!s->tls) {
		open_server(f, s);
		return;
	}
	s->state = SERVER_GREET;
	s->wire.up = tls_up_new(inspector_of(f)->trust, s->wire.fd, &w->want.host, w->want.port,
				(enum tls_alpn)s->offer);
	if (!s->wire.up) {
		flow_close(f, w, true);
		return;
	}
	flow_time_out(f, w, FLOW_WAIT_HEAD);
	flow_mark_ready(f, w);
}

/* replay plays the server, in the clear (replay.h). */
static bool greet_replay(struct front *f, struct server *s)
{
	enum tls_say say;
	char byte = 0;
	size_t n;

	say = wire_read(&s->wire, &byte, 1, &n);
	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say != TLS_DONE) {
		flow_close(f, s->flow, true);
		return false;
	}
	s->alpn = (byte == '2' && s->offer & TLS_ALPN_HTTP2) || s->offer == TLS_ALPN_HTTP2
			  ? TLS_ALPN_HTTP2
			  : TLS_ALPN_HTTP1;
	remember(inspector_of(f), s);
	open_server(f, s);
	return true;
}

/* The server has not proved its name, or ended. */
static void refuse_server(struct front *f, struct server *s, const char *why)
{
	verdict_refuse(&s->flow->verdict, REASON_UPSTREAM_TLS);
	if (s->user)
		snprintf(s->user->why, sizeof(s->user->why), "%s", why);
	front_refused(f, &s->flow->want, &s->flow->verdict, why, "");
	flow_close(f, s->flow, true);
}

/* What ward-keys says of it (protocol/secrets.h). */
static bool greet_keys(struct front *f, struct server *s)
{
	char said[200] = "";
	enum tls_say say;
	size_t n;

	say = wire_read(&s->wire, said, 1, &n);
	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say != TLS_DONE || (*said != *KEYS_SPEAKS_HTTP1 && *said != *KEYS_SPEAKS_HTTP2)) {
		n = 0;
		if (*said == *KEYS_SPEAKS_NOTHING &&
		    wire_read(&s->wire, said, sizeof(said) - 1, &n) == TLS_DONE)
			said[n] = '\0';
		refuse_server(f, s, n ? said : "the connection was closed");
		return false;
	}
	s->alpn = *said == *KEYS_SPEAKS_HTTP2 ? TLS_ALPN_HTTP2 : TLS_ALPN_HTTP1;
	remember(inspector_of(f), s);
	open_server(f, s);
	return true;
}

static bool greet(struct front *f, struct server *s)
{
	enum tls_say say = s->wire.up ? tls_up_handshake(s->wire.up) : TLS_FAILED;

	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say != TLS_DONE) {
		refuse_server(f, s, tls_up_why(s->wire.up));
		return false;
	}
	s->alpn = (uint8_t)tls_up_alpn(s->wire.up);
	remember(inspector_of(f), s);
	open_server(f, s);
	return true;
}

bool server_run(struct front *f, struct flow *w)
{
	struct server *s = w->inspect;
	enum tls_say say;
	char byte;
	size_t n;

	if (s->state == SERVER_GREET)
		return s->keys                              ? greet_keys(f, s)
		       : f->config.tape == GATE_TAPE_REPLAY ? greet_replay(f, s)
							    : greet(f, s);
	if (s->user) {
		flow_mark_ready(f, s->user->flow);
		return false;
	}
	/* in the pool: a ticket may come, anything else ends it */
	say = wire_read(&s->wire, &byte, 1, &n);
	if (say != TLS_READ && say != TLS_WRITE)
		flow_close(f, w, false);
	return false;
}

void server_closed(struct front *f, struct flow *w)
{
	struct server *s = w->inspect;
	struct exchange *ex = s->user;

	if (ex) {
		ex->server = NULL;
		ex->lost = w->verdict.allow ? REASON_UNREACHABLE : w->verdict.reason;
		flow_mark_ready(f, ex->flow);
	} else if (s->prev || inspector_of(f)->idle == s) {
		leave_pool(inspector_of(f), s);
	}
	if (w->verdict.allow && s->wire.fd >= 0)
		wire_end(&s->wire);
	wire_free(&s->wire);
	free(s);
	w->inspect = NULL;
}
