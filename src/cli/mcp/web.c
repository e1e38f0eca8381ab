/*
 * The server over HTTP. In: messages of clients, from the front (front.h), which has read and
 * judged the HTTP around them; untrusted, and so is the front. Out: records for the front. Each
 * session is a peer, and so is each request of the stateless revision: no client reaches another's
 * calls. If the front dies, the server ends, and the other way round. Runs with the user's rights.
 */
#include "cli/mcp/web.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/mcp/front.h"
#include "cli/mcp/parts.h"

#define READ_BYTES 65536
#define OUT_MAX (64u << 20) /* bytes that wait for the front, before no call is read from */

struct web_peer {
	struct peer peer;
	struct web *web;
	uint32_t session, stream; /* one of both is 0 */
	bool ended;               /* and goes when its calls have */
};

struct web {
	struct server *server;
	struct link link;
	int fd, signal_fd;
	pid_t front;
	bool broken;
};

static struct web_peer *of_peer(struct peer *p)
{
	return (struct web_peer *)((char *)p - offsetof(struct web_peer, peer));
}

static void send_record(struct peer *p, uint32_t stream, enum sent what, int code,
			const struct buf *message)
{
	struct web_peer *w = of_peer(p);
	struct link_head head = { .op = what == SENT_NOTHING ? LINK_NOTHING : LINK_SEND,
				  .stream = stream,
				  .session = w->session,
				  .code = code,
				  .flags = what == SENT_ANSWER ? LINK_LAST : 0 };

	if (w->ended || (what == SENT_NOTHING && !stream))
		return;
	if (p->revision >= REVISION_2025_11_25)
		head.flags |= LINK_PRIMING;
	/* an answer that is not whole must not look like one */
	w->web->broken |= message && (message->failed || message->len > LINK_BYTES_MAX);
	link_put(&w->web->link, head, message ? message->data : NULL,
		 message ? (uint32_t)message->len : 0);
	w->web->broken |= w->web->link.out.failed;
}

/* -- peers */

static struct web_peer *find(const struct web *w, uint32_t session, uint32_t stream)
{
	for (struct peer *p = w->server->peers; p; p = p->next) {
		struct web_peer *one = of_peer(p);

		if (!one->ended && one->session == session && one->stream == stream)
			return one;
	}
	return NULL;
}

static struct web_peer *add(struct web *w, uint32_t session, uint32_t stream)
{
	struct web_peer *p = calloc(1, sizeof(*p));

	if (!p) {
		w->broken = true;
		return NULL;
	}
	p->web = w;
	p->session = session;
	p->stream = stream;
	p->peer =
		(struct peer){ .next = w->server->peers, .server = w->server, .send = send_record };
	w->server->peers = &p->peer;
	return p;
}

static void end_peer(struct web_peer *p)
{
	p->ended = true;
	work_cancel_all(&p->peer);
	listen_cancel(&p->peer, NULL);
}

/* Those that wait for nothing: of a session, when it has ended. */
static void sweep(struct web *w)
{
	struct peer **at = &w->server->peers;

	while (*at) {
		struct web_peer *p = of_peer(*at);

		if (work_is_of(&p->peer) || (!p->ended && (p->session || listen_has(&p->peer)))) {
			at = &(*at)->next;
			continue;
		}
		*at = p->peer.next;
		free(p);
	}
}

/* -- records */

static void take_record(struct web *w, const struct link_head *head, struct mcp_span bytes)
{
	struct web_peer *p;

	if (head->op == LINK_MESSAGE) {
		p = find(w, head->session, head->session ? 0 : head->stream);
		if (!p)
			p = add(w, head->session, head->session ? 0 : head->stream);
		if (p)
			dispatch(&p->peer, head->stream, bytes);
		return;
	}
	p = head->op == LINK_END    ? find(w, head->session, 0)
	    : head->op == LINK_LEFT ? find(w, 0, head->stream)
				    : NULL;
	if (p)
		end_peer(p);
}

static void read_link(struct web *w)
{
	static char bytes[READ_BYTES];
	ssize_t n = recv(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct link_head head;
	struct mcp_span body;
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		w->broken = true;
		return;
	}
	link_add(&w->link, bytes, (size_t)n);
	while ((r = link_next(&w->link, &head, &body)) == 1)
		take_record(w, &head, body);
	w->broken |= r < 0;
}

static void flush_link(struct web *w)
{
	while (link_waiting(&w->link)) {
		ssize_t n = send(w->fd, w->link.out.data + w->link.out_at, link_waiting(&w->link),
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			w->broken |= errno != EAGAIN;
			return;
		}
		link_sent(&w->link, (size_t)n);
	}
}

enum { WAIT_LINK, WAIT_SIGNAL, WAIT_REST };

/* One turn; false: the end. */
static bool turn(struct web *w)
{
	struct pollfd fds[WAIT_REST + SERVE_POLLS_MAX];
	struct serve_polls rest;
	int wait = serve_on_time(w->server);
	size_t count;

	flush_link(w); /* what has begun or ended just now */
	fds[WAIT_LINK] =
		(struct pollfd){ w->fd, (short)(POLLIN | (link_waiting(&w->link) ? POLLOUT : 0)),
				 0 };
	fds[WAIT_SIGNAL] = (struct pollfd){ w->signal_fd, POLLIN, 0 };
	count = serve_fill(w->server, link_waiting(&w->link) > OUT_MAX, &rest, fds + WAIT_REST);
	if (poll(fds, WAIT_REST + count, wait) < 0 && errno != EINTR)
		return false;
	if (fds[WAIT_SIGNAL].revents)
		return false;
	serve_ready(w->server, &rest, fds + WAIT_REST);
	if (fds[WAIT_LINK].revents & ~POLLOUT)
		read_link(w);
	sweep(w);
	flush_link(w);
	return !w->broken;
}

/* -- the front */

static _Noreturn void become_front(int link_fd, int listen_fd)
{
	char name[] = FRONT_NAME;
	char *argv[] = { name, NULL }, *env[] = { NULL };
	/* both out of the way of the other's number */
	int link = fcntl(link_fd, F_DUPFD, 10), listener = fcntl(listen_fd, F_DUPFD, 10);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (link < 0 || listener < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(link, FRONT_LINK_FD) < 0 ||
	    dup2(listener, FRONT_LISTEN_FD) < 0 ||
	    syscall(SYS_close_range, FRONT_LISTEN_FD + 1, ~0U, 0) < 0)
		_exit(1);
	execve("/proc/self/exe", argv, env);
	_exit(1);
}

static int start_front(struct web *w, int listen_fd, const struct buf *token, struct ward_err *e)
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 sum;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make a socket pair");
	w->front = fork();
	if (w->front == 0)
		become_front(pair[1], listen_fd);
	close(pair[1]);
	w->fd = pair[0];
	if (w->front < 0)
		return ward_fail_errno(e, "cannot start a process");
	sha256_begin(&sum);
	sha256_add(&sum, token->data, token->len);
	sha256_end(&sum, digest);
	link_put(&w->link, (struct link_head){ .op = LINK_SETUP }, digest, sizeof(digest));
	flush_link(w);
	return 0;
}

static void say_ready(const struct options *o, const struct web_address *a, const struct buf *token)
{
	char text[HOST_TEXT];
	bool six = a->ip.family == 6;
	auto_buf out = { 0 }, url = { 0 };
	struct json j = { .out = &out };

	buf_printf(&url, "http://%s%s%s:%u" MCP_HTTP_PATH, six ? "[" : "", ip_text(&a->ip, text),
		   six ? "]" : "", a->port);
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "url", buf_text(&url));
		json_string(&j, "token", o->token_file ? NULL : buf_text(token));
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else {
		buf_printf(&out, "ward mcp serve: %s\n", buf_text(&url));
		if (!o->token_file)
			buf_printf(&out, "token: %s\n", buf_text(token));
	}
	(void)!say_out(&out, EXIT_FINE);
	if (!a->is_loopback)
		fputs("ward mcp serve: warning: this address is not loopback, and without TLS the "
		      "token can be read on the way; put a server with TLS in front\n",
		      stderr);
}

static int begin(struct web *w, const struct options *o, struct ward_err *e)
{
	struct web_address a;
	auto_buf token = { 0 };
	auto_fd fd = -1;
	int r = web_read_address(o->http, &a, e);

	if (r == 0)
		r = web_token(o->token_file, &token, e);
	if (r == 0)
		r = fd = web_listen(&a, e);
	if (r >= 0)
		r = start_front(w, fd, &token, e);
	if (r == 0)
		say_ready(o, &a, &token);
	if (token.data)
		explicit_bzero(token.data, token.len);
	return r;
}

int serve_web(struct server *s)
{
	struct web w = { .server = s, .fd = -1, .link.bytes_max = MCP_BYTES_MAX };
	struct ward_err e = { 0 };
	int r;

	w.signal_fd = serve_open_signals();
	r = begin(&w, s->options, &e);
	while (r == 0 && turn(&w))
		;
	if (r == 0 && w.broken)
		r = ward_fail(&e, EIO, "the process that reads HTTP has ended");
	serve_end_works(s);
	own_close_fd(&w.fd);
	while (w.front > 0 && waitpid(w.front, NULL, 0) < 0 && errno == EINTR)
		;
	while (s->peers) {
		struct peer *p = s->peers;

		s->peers = p->next;
		free(of_peer(p));
	}
	own_close_fd(&w.signal_fd);
	link_free(&w.link);
	return r < 0 ? say_error(&e, s->options->json, r == -EINVAL ? EXIT_USAGE : EXIT_REFUSED)
		     : EXIT_FINE;
}
