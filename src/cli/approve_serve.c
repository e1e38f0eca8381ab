/*
 * ward approve --socket, --webhook: programs answer. In: the questions of all sandboxes of this
 * user, looked at every LOOK_MS; lines of programs on a Unix socket; what a webhook returns. Out:
 * one JSON object a line for every question that comes or goes, and answers. The socket's file is
 * this user's alone, and a peer must be the user's or root's, in no other user namespace: a sandbox
 * that sees the file is not let in. What a program writes is read by approve/answer.c. A program
 * that does not read is dropped. Runs with the user's rights, until a signal.
 */
#include "cli/approve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "approve/answer.h"
#include "base/io.h"
#include "base/json.h"
#include "cli/approve_hook.h"
#include "run/serve.h"

#define LOOK_MS 100
#define PEERS_MAX 16
#define LINE_MAX_BYTES 4096
#define UNREAD_MAX (4 << 20)

struct peer {
	int fd;
	char from[QUESTION_FROM_BYTES];
	struct buf in, out;
	bool gone;
};

struct serving {
	const struct options *o;
	int listen_fd, signal_fd;
	struct hook *hook; /* NULL: none */
	struct client_questions known;
	struct peer peers[PEERS_MAX];
	size_t peer_count;
};

/* -- what is said */

static void put_line(struct peer *p, const struct buf *line)
{
	buf_add(&p->out, buf_text(line), line->len);
	buf_puts(&p->out, "\n");
	p->gone |= p->out.failed || p->out.len > UNREAD_MAX;
}

static void announce(struct serving *s, const struct client_question *q, const char *event)
{
	auto_buf line = { 0 };

	approve_put_json(q, event, &line);
	for (size_t i = 0; i < s->peer_count; i++)
		put_line(&s->peers[i], &line);
}

static void put_result(struct peer *p, const char *id, const struct ward_err *e)
{
	auto_buf line = { 0 };
	struct json j = { .out = &line };

	json_begin_object(&j, NULL);
	json_string(&j, "event", "answer");
	json_string(&j, "id", id);
	json_bool(&j, "counts", !e->code);
	if (e->code)
		json_string(&j, "why", e->why);
	json_end_object(&j);
	put_line(p, &line);
}

/* -- answers */

static void take_line(struct serving *s, struct peer *p, const char *line, size_t n)
{
	struct options o = *s->o;
	struct answer_said said = { 0 };
	struct client_question q;
	struct ward_err e = { 0 };
	char from[QUESTION_FROM_BYTES];

	o.answer_from = from;
	if (answer_read((const uint8_t *)line, n, &said, &e) == 0) {
		snprintf(from, sizeof(from), "%.40s%s%.30s", p->from, *said.by ? " by " : "",
			 said.by);
		if (said.answer == QUESTION_ALWAYS && !o.yes)
			ward_fail(&e, EACCES, "always needs --yes here: there is no prompt");
		else if (approve_find_question(said.id, &q, &e) == 0)
			(void)!approve_send(&o, &q, said.answer, said.seconds, &e);
	}
	put_result(p, said.id, &e);
}

static void read_peer(struct serving *s, struct peer *p)
{
	char bytes[LINE_MAX_BYTES];
	ssize_t n = recv(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		p->gone = true;
		return;
	}
	buf_add(&p->in, bytes, (size_t)n);
	while (p->in.len && (end = memchr(p->in.data, '\n', p->in.len))) {
		size_t len = (size_t)(end - p->in.data);

		take_line(s, p, p->in.data, len);
		memmove(p->in.data, end + 1, p->in.len - len - 1);
		p->in.len -= len + 1;
	}
	p->gone |= p->in.failed || p->in.len >= LINE_MAX_BYTES;
}

static void write_peer(struct peer *p)
{
	ssize_t n = send(p->fd, p->out.data, p->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		p->gone = true;
	if (n <= 0)
		return;
	memmove(p->out.data, p->out.data + n, p->out.len - (size_t)n);
	p->out.len -= (size_t)n;
}

/* -- peers */

static void take_peer(struct serving *s)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	struct peer *p = &s->peers[s->peer_count];

	if (fd < 0)
		return;
	if (s->peer_count == PEERS_MAX || !serve_may_ask(fd) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		close(fd);
		return;
	}
	*p = (struct peer){ .fd = fd };
	snprintf(p->from, sizeof(p->from), "process %d", peer.pid);
	s->peer_count++;
	for (size_t i = 0; i < s->known.len; i++) {
		auto_buf line = { 0 };

		approve_put_json(&s->known.items[i], "question", &line);
		put_line(p, &line);
	}
}

static void drop_gone(struct serving *s, bool all)
{
	for (size_t i = s->peer_count; i-- > 0;) {
		struct peer *p = &s->peers[i];

		if (!p->gone && !all)
			continue;
		close(p->fd);
		buf_free(&p->in);
		buf_free(&p->out);
		*p = s->peers[--s->peer_count];
	}
}

/* -- the loop */

static bool has(const struct client_questions *all, const struct client_question *q)
{
	for (size_t i = 0; i < all->len; i++)
		if (all->items[i].q.id == q->q.id && strcmp(all->items[i].box, q->box) == 0)
			return true;
	return false;
}

static void look(struct serving *s)
{
	struct client_questions now = { 0 }, before = s->known;
	struct ward_err e = { 0 };
	size_t silent;

	if (client_questions(&now, &silent, &e) < 0)
		return; /* the register cannot be read at the moment */
	s->known = now;
	for (size_t i = 0; i < before.len; i++)
		if (!has(&now, &before.items[i]))
			announce(s, &before.items[i], "gone");
	for (size_t i = 0; i < now.len; i++)
		if (!has(&before, &now.items[i]))
			announce(s, &now.items[i], "question");
	client_questions_clear(&before);
	if (s->hook)
		hook_look(s->hook, &s->known);
}

static void serve(struct serving *s)
{
	enum { SIGNAL, LISTEN, HOOK, PEERS = HOOK + HOOK_POLLS };

	for (;;) {
		struct pollfd polled[PEERS + PEERS_MAX] = {
			[SIGNAL] = { .fd = s->signal_fd, .events = POLLIN },
			[LISTEN] = { .fd = s->listen_fd, .events = POLLIN }
		};
		size_t count = s->peer_count;

		for (size_t i = 0; i < HOOK_POLLS; i++)
			polled[HOOK + i].fd = -1;
		if (s->hook)
			hook_poll(s->hook, polled + HOOK);
		for (size_t i = 0; i < count; i++)
			polled[PEERS + i] = (struct pollfd){
				.fd = s->peers[i].fd,
				.events = (short)(POLLIN | (s->peers[i].out.len ? POLLOUT : 0))
			};
		if (poll(polled, PEERS + count, LOOK_MS) < 0)
			continue;
		if (polled[SIGNAL].revents)
			return;
		if (s->hook)
			hook_handle(s->hook, polled + HOOK);
		for (size_t i = 0; i < count; i++) {
			if (polled[PEERS + i].revents & POLLOUT)
				write_peer(&s->peers[i]);
			if (polled[PEERS + i].revents & ~POLLOUT)
				read_peer(s, &s->peers[i]);
		}
		drop_gone(s, false);
		if (polled[LISTEN].revents)
			take_peer(s);
		look(s);
	}
}

/* A socket that nobody listens at is one that a killed process left. */
static int listen_at(const char *path, struct ward_err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	mode_t mask;
	int r;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    sizeof(address.sun_path))
		return ward_fail(e, ENAMETOOLONG, "--socket: the path is too long for a socket");
	if (fd >= 0 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid() &&
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 &&
	    errno == ECONNREFUSED)
		(void)unlink(path);
	mask = umask(0177);
	r = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (r < 0 || listen(fd, PEERS_MAX) < 0)
		return ward_fail_errno(e, "cannot make the socket %.200s", path);
	return take_fd(&fd);
}

static int take_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int approve_serve(const struct options *o)
{
	struct serving s = { .o = o, .listen_fd = -1, .signal_fd = take_signals() };
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	int r = s.signal_fd < 0 ? ward_fail_errno(&e, "cannot receive signals") : 0;

	if (r == 0 && o->webhook)
		r = hook_create(o, &s.hook, &e);
	if (r == 0 && o->approve_socket) {
		s.listen_fd = listen_at(o->approve_socket, &e);
		r = s.listen_fd < 0 ? s.listen_fd : 0;
	}
	if (r == 0) {
		buf_puts(&out, "ward: questions are passed on; ctrl-c ends\n");
		say_err(&out);
		serve(&s);
	}
	drop_gone(&s, true);
	client_questions_clear(&s.known);
	hook_destroy(s.hook);
	if (s.listen_fd >= 0) {
		(void)unlink(o->approve_socket);
		close(s.listen_fd);
	}
	own_close_fd(&s.signal_fd);
	return r < 0 ? say_error(&e, false, EXIT_REFUSED) : EXIT_FINE;
}
