/*
 * Moving bytes. In: two sockets that may or may not be ready. Out: bytes from one to the other, in
 * order, with the end passed on. A little is moved by read and write through one buffer that all
 * flows share; what flows on is spliced through a pipe of a small pool, without being copied, and
 * the pipe goes back when the flow pauses: an idle flow holds no buffer at all. What could not be
 * written is kept, and nothing more is read until it is gone: the reader's pace is the sender's.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow.h"
#include "rules/canary_find.h"

#define BULK_BYTES (256 * 1024) /* moved before splicing begins */
#define PIPE_BYTES (1024 * 1024)

static enum side from(enum direction d)
{
	return d == UP ? CLIENT : SERVER;
}

static enum side to(enum direction d)
{
	return d == UP ? SERVER : CLIENT;
}

static void count(struct front *f, struct lane *l, enum direction d, size_t n)
{
	l->moved += n;
	*(d == UP ? &f->totals.bytes_out : &f->totals.bytes_in) += n;
}

/* The limit is spent. What may still come is the end; a byte more is refused. */
static ssize_t read_end(struct front *f, struct flow *w, enum direction d)
{
	char byte;
	ssize_t n;

	do
		n = recv(w->fds[from(d)], &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		flow_refuse_spent(f, w, d);
		return -2;
	}
	w->can_read[from(d)] = false;
	if (n == 0)
		return -1;
	return errno == EAGAIN ? 0 : -2;
}

ssize_t pump_read(struct front *f, struct flow *w, enum side s, uint8_t *bytes, size_t n)
{
	enum direction d = s == CLIENT ? UP : DOWN;
	bool spent;
	ssize_t got;

	if (!w->can_read[s])
		return 0;
	n = flow_take(f, w, d, n, &spent);
	if (!n)
		return spent ? read_end(f, w, d) : 0;
	do
		got = read(w->fds[s], bytes, n);
	while (got < 0 && errno == EINTR);
	flow_give_back(f, w, d, n - (got > 0 ? (size_t)got : 0));
	if (got > 0) {
		if ((size_t)got < n && !w->has_ended[s] && !w->has_urgent[s])
			/* that was all: what comes from now on is an event */
			w->can_read[s] = false;
		return got;
	}
	w->can_read[s] = false;
	if (got == 0)
		return -1;
	return errno == EAGAIN ? 0 : -2;
}

static bool pump_keep(struct front *f, struct lane *l, const uint8_t *bytes, size_t n)
{
	uint32_t cap = l->kept_len + (uint32_t)n;
	uint8_t *grown;

	if (l->kept_at && l->kept_len)
		memmove(l->kept, l->kept + l->kept_at, l->kept_len);
	l->kept_at = 0;
	if (!room_grow(f, l->kept_cap, cap))
		return false;
	grown = realloc(l->kept, cap);
	if (!grown) {
		room_give_back(f, cap);
		l->kept_cap = 0;
		return false;
	}
	l->kept = grown;
	l->kept_cap = cap;
	memcpy(grown + l->kept_len, bytes, n);
	l->kept_len += (uint32_t)n;
	return true;
}

/* There is no room to write: when there is some again, it is an event. */
static bool wait_for_room(struct front *f, struct flow *w, enum side s)
{
	w->can_write[s] = false;
	return flow_watch(f, w, s, WATCH_ALL);
}

void pump_hurry(struct flow *w)
{
	int on = 1;

	setsockopt(w->fds[SERVER], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	w->prompt = true;
}

/* Writes to the other side; what is left over is for the caller. -1: broken. */
static ssize_t put(struct front *f, struct flow *w, enum direction d, const uint8_t *bytes,
		   size_t n, int flags)
{
	ssize_t put_n;

	if (!w->can_write[to(d)])
		return 0;
	/* the first bytes do not wait anyway, and often they are all */
	if (d == UP && w->lanes[UP].moved && !w->prompt)
		pump_hurry(w);
	do
		put_n = send(w->fds[to(d)], bytes, n, MSG_NOSIGNAL | flags);
	while (put_n < 0 && errno == EINTR);
	if (put_n < 0 && errno != EAGAIN)
		return -1;
	if (put_n < (ssize_t)n && !wait_for_room(f, w, to(d)))
		return -1;
	if (put_n > 0)
		count(f, &w->lanes[d], d, (size_t)put_n);
	return put_n < 0 ? 0 : put_n;
}

bool pump_kept(struct front *f, struct flow *w, enum direction d)
{
	struct lane *l = &w->lanes[d];
	ssize_t n;

	if (!l->kept_len || w->fds[to(d)] < 0)
		return false;
	n = put(f, w, d, l->kept + l->kept_at, l->kept_len, 0);
	if (n < 0) {
		flow_close(f, w, true);
		return false;
	}
	l->kept_at += (uint32_t)n;
	l->kept_len -= (uint32_t)n;
	if (!l->kept_len)
		pump_drop_kept(f, l);
	return n > 0;
}

void pump_drop_kept(struct front *f, struct lane *l)
{
	room_give_back(f, l->kept_cap);
	free(take_ptr(l->kept));
	l->kept_at = l->kept_len = l->kept_cap = 0;
}

/* -- the pool */

static struct pipe_pair *take_pipe(struct front *f)
{
	struct pipe_pair *p = f->pipes_free;

	if (p) {
		f->pipes_free = p->next;
		return p;
	}
	if (f->pipes_made >= PIPES_MAX)
		return NULL;
	p = &f->pipes[f->pipes_made];
	if (pipe2(p->fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return NULL;
	f->pipes_made++;
	/* less where the user's share is spent */
	(void)fcntl(p->fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	return p;
}

/* Back to the pool; with bytes of a broken flow in it, it is not used again. */
void pump_release(struct front *f, struct lane *l)
{
	if (!l->pipe)
		return;
	if (l->piped) {
		close(l->pipe->fds[0]);
		close(l->pipe->fds[1]);
		if (pipe2(l->pipe->fds, O_CLOEXEC | O_NONBLOCK) < 0) {
			l->pipe = NULL;
			l->piped = 0;
			return;
		}
		(void)fcntl(l->pipe->fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	}
	l->pipe->next = f->pipes_free;
	f->pipes_free = l->pipe;
	l->pipe = NULL;
	l->piped = 0;
}

/* From the pipe to the other side. -1: broken. */
static int empty_pipe(struct front *f, struct flow *w, enum direction d)
{
	struct lane *l = &w->lanes[d];

	while (l->piped && w->can_write[to(d)]) {
		ssize_t n = splice(l->pipe->fds[0], NULL, w->fds[to(d)], NULL, l->piped,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && wait_for_room(f, w, to(d)))
			break;
		if (n <= 0)
			return -1;
		l->piped -= (uint32_t)n;
		count(f, l, d, (size_t)n);
	}
	return 0;
}

/* > 0: moved; 0: nothing there now; -1: the end; -2: broken. */
static ssize_t fill_pipe(struct front *f, struct flow *w, enum direction d)
{
	struct lane *l = &w->lanes[d];
	bool spent;
	size_t may = flow_take(f, w, d, PIPE_BYTES, &spent);
	ssize_t n;

	if (!may)
		return spent ? read_end(f, w, d) : 0;
	do
		n = splice(w->fds[from(d)], NULL, l->pipe->fds[1], NULL, may,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	flow_give_back(f, w, d, may - (n > 0 ? (size_t)n : 0));
	if (n > 0) {
		l->piped += (uint32_t)n;
		return n;
	}
	w->can_read[from(d)] = false;
	if (n == 0)
		return -1;
	return errno == EAGAIN ? 0 : -2;
}

static bool send_or_keep(struct front *f, struct flow *w, enum direction d, const uint8_t *bytes,
			 size_t n, int flags)
{
	struct lane *l = &w->lanes[d];
	ssize_t sent = 0;

	if (!l->kept_len && w->fds[to(d)] >= 0)
		sent = put(f, w, d, bytes, n, flags);
	return sent >= 0 && (sent == (ssize_t)n || pump_keep(f, l, bytes + sent, n - (size_t)sent));
}

bool pump_send(struct front *f, struct flow *w, enum direction d, const uint8_t *bytes, size_t n)
{
	return send_or_keep(f, w, d, bytes, n, 0);
}

/* The end has come before the read, which found less than it could have taken: nothing but the end
 * is left. */
static bool is_last(struct flow *w, enum side s)
{
	if (w->has_urgent[s])
		return false;
	w->can_read[s] = false;
	return true;
}

/* Whether the value of a canary is in what the sandbox says in a protocol that ward does not read;
 * the flow ends then. TLS is looked into by rules of mode inspect alone. */
static bool is_canary(struct front *f, struct flow *w, enum direction d, size_t n)
{
	int value;

	if (!flow_seeks_canaries(f, w, d) || w->canary_reported)
		return false;
	if (!w->canary)
		w->canary = calloc(1, sizeof(*w->canary));
	/* without memory nothing leaves */
	value = w->canary ? canary_find(f->canaries, w->canary, f->scratch, n) : 0;
	if (value < 0)
		return false;
	w->canary_reported = true;
	front_flow_report_canary(f, w, value, "stream");
	return !f->config.canary_passes;
}

/* The last bytes and the end that has come behind them go on in one packet: pass_end() follows. */
static ssize_t copy(struct front *f, struct flow *w, enum direction d)
{
	size_t room = room_for_reading(f);
	ssize_t n = pump_read(f, w, from(d), f->scratch, room), more = 0;

	if (n <= 0)
		return n;
	if (w->has_ended[from(d)] && !w->limited && n < (ssize_t)room)
		more = is_last(w, from(d))
			       ? -1
			       : pump_read(f, w, from(d), f->scratch + n, room - (size_t)n);
	if (more > 0)
		n += more;
	if (is_canary(f, w, d, (size_t)n))
		return -2;
	if (!send_or_keep(f, w, d, f->scratch, (size_t)n, more == -1 ? MSG_MORE : 0))
		return -2;
	return more < 0 ? more : n;
}

static void pass_end(struct flow *w, enum direction d)
{
	struct lane *l = &w->lanes[d];

	if (!l->shut && !w->lanes[d == UP ? DOWN : UP].shut) /* else it is closed right away */
		shutdown(w->fds[to(d)], SHUT_WR);
	l->shut = true;
}

bool pump_blind(struct front *f, struct flow *w, enum direction d)
{
	struct lane *l = &w->lanes[d];
	ssize_t n = 0;

	if (pump_kept(f, w, d) || w->state == FLOW_DEAD)
		return w->state != FLOW_DEAD;
	if (l->kept_len)
		return false;
	if (empty_pipe(f, w, d) < 0) {
		flow_close(f, w, true);
		return false;
	}
	if (l->piped)
		return false;
	if (l->ended) {
		pass_end(w, d);
	} else if (w->can_read[from(d)] && w->can_write[to(d)]) {
		if (!l->pipe && l->moved >= BULK_BYTES && !flow_seeks_canaries(f, w, d))
			l->pipe = take_pipe(f);
		n = l->pipe ? fill_pipe(f, w, d) : copy(f, w, d);
	}
	if (n == 0 && l->pipe && !l->piped)
		pump_release(f, l); /* it pauses */
	if (n == -1) {
		l->ended = true;
		if (!l->kept_len && !l->piped)
			pass_end(w, d);
	}
	if (n == -2)
		flow_close(f, w, true);
	return n > 0 || n == -1;
}
