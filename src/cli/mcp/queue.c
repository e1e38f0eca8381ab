/*
 * Questions that wait for ward approve. In: questions of calls; requests of the user's own
 * processes over a control socket (control.h), which lies beside those of runs for as long as
 * something waits. Out: answers for calls. Only a process of the same user, or root, outside of
 * every sandbox is let in (serve_may_ask()): what runs in a sandbox cannot answer, nor can a client
 * over HTTP. Each call is a question of its own, and a yes is for that call. Part of the server's
 * loop: nothing here waits.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "approve/approve.h"
#include "approve/show.h"
#include "base/io.h"
#include "cli/mcp/parts.h"
#include "control/control.h"
#include "run/serve.h"
#include "state/runs.h"
#include "state/store.h"

#define SILENT_MS 5000 /* a client that asks nothing */

struct queue_client {
	int fd;
	bool watches, gone;
	bool waits; /* for the end */
	uint32_t seen;
	uint64_t deadline_ms;
};

struct queue {
	struct server *server;
	struct approve *questions;
	struct box_entry entry;
	int listen_fd;
	struct queue_client clients[QUEUE_CLIENTS_MAX];
	size_t count;
	uint32_t state; /* of the questions, from 1 */
};

/* -- what an answer does */

static struct work *find(const struct queue *q, uint64_t number)
{
	for (struct work *w = q->server->works; w; w = w->next)
		if (w->asking == ASKING_QUEUE && w->question == number)
			return w;
	return NULL;
}

static int apply(void *context, const struct question *q, enum question_answer answer,
		 unused_arg uint64_t seconds, struct ward_err *e)
{
	struct work *w = find(context, q->serial_first);

	if (answer && answer != QUESTION_ONCE && answer != QUESTION_DENY) {
		ward_fail(e, ENOTSUP, "a call of a tool can be allowed once only");
		return ward_remedy(e, "answer with --once or --deny");
	}
	if (w && !w->cancelled)
		ask_tell(w, answer == QUESTION_ONCE, !answer);
	return 0;
}

static void on_asked(unused_arg void *context, unused_arg const struct question *q)
{
}

static const char *name_end(enum approve_end end, enum question_answer answer)
{
	if (end == APPROVE_ANSWERED)
		return answer == QUESTION_ONCE ? "allowed" : "denied";
	return end == APPROVE_TIMEOUT ? "not answered in time" : NULL;
}

/* For the record: standard error is the server's log. */
static void on_ended(unused_arg void *context, const struct question *q, enum approve_end end,
		     enum question_answer answer, unused_arg uint64_t seconds,
		     const struct question_who *who)
{
	const char *what = name_end(end, answer);

	if (what)
		fprintf(stderr, "ward mcp serve: %s: %s (uid %u, %s %s)\n", what, q->subject,
			who ? who->uid : 0, who ? who->via : "-",
			who && *who->from ? who->from : "-");
}

static void answer(struct queue_client *c, enum control_op op, int32_t a, int32_t b)
{
	const struct control_message m = { .magic = CONTROL_MAGIC, .op = op, .a = a, .b = b };

	c->gone |= send(c->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(m);
}

static void tell(const struct queue *q, struct queue_client *c)
{
	if (c->seen == q->state)
		return;
	c->watches = false;
	answer(c, CONTROL_OK, (int32_t)q->state, 0);
}

static void on_changed(void *context)
{
	struct queue *q = context;

	q->state = q->state % INT32_MAX + 1;
	for (size_t i = 0; i < q->count; i++)
		if (q->clients[i].watches)
			tell(q, &q->clients[i]);
}

/* -- requests */

static void list(const struct queue *q, struct queue_client *c, uint64_t after)
{
	struct control_message m = { .magic = CONTROL_MAGIC, .op = CONTROL_QUESTIONS };
	auto_buf out = { 0 };

	buf_add(&out, &m, sizeof(m));
	for (size_t i = 0; i < approve_count(q->questions); i++) {
		const struct question *one = approve_get(q->questions, i);

		if (one->id <= after)
			continue;
		if (m.a == CONTROL_QUESTION_ROWS) {
			m.b = 1;
			break;
		}
		buf_add(&out, one, sizeof(*one));
		m.a++;
	}
	if (!out.failed)
		memcpy(out.data, &m, sizeof(m));
	c->gone |= out.failed ||
		   send(c->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)out.len;
}

static void refuse(struct queue_client *c, const struct ward_err *e)
{
	auto_buf out = { 0 };

	control_write_error(e, &out);
	c->gone |= out.failed ||
		   send(c->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)out.len;
}

static void take_answer(struct queue *q, struct queue_client *c, const char *bytes)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	struct question_who who = { .via = "control" };
	socklen_t len = sizeof(peer);
	struct control_answer said;
	struct ward_err e = { 0 };

	memcpy(&said, bytes, sizeof(said));
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		c->gone = true; /* an answer without a person is none */
		return;
	}
	snprintf(who.from, sizeof(who.from), "%s", said.from);
	who.uid = peer.uid;
	who.pid = peer.pid;
	if (approve_answer(q->questions, said.id, (enum question_answer)said.answer, said.seconds,
			   &who, &e) == 0)
		answer(c, CONTROL_OK, 0, 0);
	else
		refuse(c, &e);
}

/* ward stop and ward kill: no answer will come. */
static void deny_all(struct queue *q)
{
	const struct question_who nobody = { .via = "stop" };
	struct ward_err e = { 0 };

	while (approve_count(q->questions) &&
	       approve_answer(q->questions, approve_get(q->questions, 0)->id, QUESTION_DENY, 0,
			      &nobody, &e) == 0)
		;
}

static void take_request(struct queue *q, struct queue_client *c, const char *bytes)
{
	struct control_message m;
	struct ward_err e = { 0 };

	memcpy(&m, bytes, sizeof(m));
	if (m.op == CONTROL_QUESTION_LIST) {
		list(q, c, (uint64_t)m.a);
	} else if (m.op == CONTROL_QUESTION_WATCH) {
		c->watches = true;
		c->seen = (uint32_t)m.a;
		tell(q, c);
	} else if (m.op == CONTROL_QUESTION_ANSWER) {
		take_answer(q, c, bytes + sizeof(m));
	} else if (m.op == CONTROL_STOP || m.op == CONTROL_KILL) {
		deny_all(q);
		answer(c, CONTROL_OK, 0, 0);
	} else if (m.op == CONTROL_WAIT) {
		c->waits = true;
		answer(c, CONTROL_OK, 0, 0);
	} else {
		ward_fail(&e, ENOTSUP, "%s is a server of tools, which asks; it is no sandbox",
			  q->entry.id);
		refuse(c, &e);
	}
}

static void read_client(struct queue *q, struct queue_client *c)
{
	char bytes[2048];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || n > (ssize_t)sizeof(bytes) || control_check_request(bytes, (size_t)n) < 0) {
		c->gone = true;
		return;
	}
	c->deadline_ms = io_now_ms() + SILENT_MS;
	take_request(q, c, bytes);
}

static void accept_one(struct queue *q)
{
	int fd = accept4(q->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (q->count == QUEUE_CLIENTS_MAX || !serve_may_ask(fd)) {
		close(fd);
		return;
	}
	q->clients[q->count++] =
		(struct queue_client){ .fd = fd, .deadline_ms = io_now_ms() + SILENT_MS };
}

static void drop_gone(struct queue *q)
{
	for (size_t i = q->count; i-- > 0;) {
		struct queue_client *c = &q->clients[i];

		if (!c->gone && (c->watches || c->waits || io_now_ms() < c->deadline_ms))
			continue;
		close(c->fd);
		*c = q->clients[--q->count];
	}
}

/* -- its life */

void queue_end(struct server *s)
{
	struct queue *q = s->queue;

	if (!q)
		return;
	s->queue = NULL;
	approve_destroy(q->questions);
	for (size_t i = 0; i < q->count; i++)
		close(q->clients[i].fd);
	own_close_fd(&q->listen_fd);
	runs_leave(&q->entry);
	free(q);
}

static int begin(struct server *s, struct ward_err *e)
{
	static const struct approve_ops ops = {
		.apply = apply, .asked = on_asked, .ended = on_ended, .changed = on_changed
	};
	char id[sizeof(((struct box_entry *)0)->id)];
	struct queue *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return ward_fail(e, ENOMEM, "out of memory");
	*q = (struct queue){ .server = s, .entry = NO_BOX_ENTRY, .listen_fd = -1, .state = 1 };
	s->queue = q;
	q->questions = approve_create(&ops, q, s->catalog->ask_ms);
	store_new_id(id, sizeof(id));
	r = q->questions ? runs_enter_asker(id, &q->entry, e)
			 : ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		r = q->listen_fd = serve_listen_late(q->entry.run_fd, e);
	if (r < 0)
		queue_end(s);
	return r < 0 ? r : 0;
}

int queue_ask(struct server *s, struct work *w, const char *text, struct ward_err *e)
{
	struct question template;
	uint64_t id;
	int r = s->queue ? 0 : begin(s, e);

	if (r < 0)
		return r;
	w->question = ++s->last_question;
	show_tool(text, w->question, &template);
	r = approve_ask(s->queue->questions, &template, io_now_ms(), &id);
	if (r < 0)
		return ward_fail(e, -r, "too many questions wait for ward approve");
	fprintf(stderr, "ward mcp serve: %s waits for an answer: ward approve %s:%llu --once\n",
		template.subject, s->queue->entry.id, (unsigned long long)id);
	return 0;
}

void queue_withdraw(struct server *s, struct work *w)
{
	struct approve *a = s->queue ? s->queue->questions : NULL;

	for (size_t i = 0; a && i < approve_count(a); i++)
		if (approve_get(a, i)->serial_first == w->question) {
			const struct question q = *approve_get(a, i);

			approve_withdraw(a, &q);
			return;
		}
}

size_t queue_polls(struct server *s, struct pollfd *fds)
{
	struct queue *q = s->queue;
	size_t n = 0;

	if (!q)
		return 0;
	fds[n++] = (struct pollfd){ q->listen_fd, POLLIN, 0 };
	for (size_t i = 0; i < q->count; i++)
		fds[n++] = (struct pollfd){ q->clients[i].fd, POLLIN, 0 };
	return n;
}

void queue_ready(struct server *s, const struct pollfd *fds, size_t count)
{
	struct queue *q = s->queue;

	if (!q || !count)
		return;
	for (size_t i = 0; i + 1 < count && i < q->count; i++)
		if (fds[1 + i].revents)
			read_client(q, &q->clients[i]);
	drop_gone(q);
	if (fds[0].revents)
		accept_one(q);
}

int queue_on_time(struct server *s, uint64_t now)
{
	struct queue *q = s->queue;
	bool busy = false;
	int wait = -1;

	if (!q)
		return -1;
	approve_on_time(q->questions, now);
	drop_gone(q);
	for (size_t i = 0; i < q->count; i++) /* whether an answer counts is still said */
		busy |= !q->clients[i].waits;
	if (!approve_count(q->questions) && !busy) {
		queue_end(s);
		return -1;
	}
	if (approve_count(q->questions))
		wait = (int)(approve_due_ms(q->questions) > now ? approve_due_ms(q->questions) - now
								: 0);
	for (size_t i = 0; i < q->count; i++)
		if (!q->clients[i].watches && !q->clients[i].waits)
			wait = serve_sooner(wait, q->clients[i].deadline_ms > now
							  ? (int)(q->clients[i].deadline_ms - now)
							  : 0);
	return wait;
}
