/*
 * One turn of the server's loop: the port, the machine's life, the parties' descriptors and
 * sockets. In: bytes of a hostile guest. Memory: one frame each way, and a window a stream. Nothing
 * waits but poll(): a guest that does not read has the parties' input stay where it is, a party
 * that does not read has the guest run out of credit.
 */
#include "vm/server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"

static int ended(struct ward_err *e)
{
	ward_fail(e, EPIPE, "the virtual machine ended before the command did");
	return ward_remedy(e, "it may have run out of memory: give it more with --set "
			      "vm.memory=SIZE, or check its console");
}

static int take_frames(struct server *v, struct ward_err *e)
{
	struct vm_frame f;
	size_t at = 0;
	long used;
	int r = 0;

	while (r == 0 && (used = wire_parse(v->in + at, v->in_len - at, true, &f)) != 0) {
		if (used < 0)
			return ward_fail(e, EPROTO,
					 "the guest broke the protocol: it sent an invalid frame");
		at += (size_t)used;
		r = session_take(&v->session, &f, e);
	}
	if (at)
		memmove(v->in, v->in + at, v->in_len - at);
	v->in_len -= at;
	return r;
}

static int read_serial(struct server *v, struct ward_err *e)
{
	ssize_t n = recv(v->serial_fd, v->in + v->in_len, sizeof(v->in) - v->in_len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return ended(e);
	v->in_len += (size_t)n;
	return take_frames(v, e);
}

/* Until the port is full, or there is nothing to say. */
static int write_serial(struct server *v, struct ward_err *e)
{
	for (;;) {
		ssize_t n;

		if (!v->out_len) {
			v->out_at = 0;
			v->out_len = session_next(&v->session, v->out);
		}
		if (!v->out_len)
			return 0;
		n = send(v->serial_fd, v->out + v->out_at, v->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno != EINTR)
			return ended(e);
		v->out_at += n > 0 ? (size_t)n : 0;
		v->out_len -= n > 0 ? (size_t)n : 0;
	}
}

/* ---- what is polled ---- */

struct waiting {
	struct pollfd fds[SERVER_FDS];
	int *pending[SERVER_FDS]; /* one of the three, for each descriptor */
	struct party *messages[SERVER_FDS];
	struct party *reads[SERVER_FDS];
	nfds_t count;
};

static nfds_t add(struct waiting *w, int fd, int events)
{
	if (w->count == SERVER_FDS)
		abort(); /* never: SERVER_FDS counts them all */
	w->pending[w->count] = NULL;
	w->messages[w->count] = w->reads[w->count] = NULL;
	w->fds[w->count] = (struct pollfd){ .fd = fd, .events = (short)events };
	return w->count++;
}

static void gather_party(struct server *v, struct waiting *w, struct party *p)
{
	const struct vm_channel *c = &v->session.channels[p->channel];

	if (p->sock_fd >= 0 && !p->gone)
		w->messages[add(w, p->sock_fd, POLLIN)] = p;
	if (session_wants_input(c) && p->fds[0] >= 0 && !p->readable)
		w->reads[add(w, p->fds[0], POLLIN)] = p;
	for (unsigned i = 0; i < VM_STREAMS; i++)
		if (c->in[i].len)
			add(w, party_out_fd(p, c, i), POLLOUT);
}

static void gather(struct server *v, struct waiting *w, bool clients)
{
	w->count = 0;
	add(w, v->serial_fd, POLLIN | (v->out_len ? POLLOUT : 0));
	add(w, v->setup->qemu_pid_fd, POLLIN);
	add(w, clients ? v->listen_fd : -1, POLLIN);
	add(w, v->early_fd, POLLIN);
	for (size_t i = 0; i < PARTY_PENDING; i++)
		if (v->pending[i] >= 0)
			w->pending[add(w, v->pending[i], POLLIN)] = &v->pending[i];
	for (unsigned i = 1; i < VM_CHANNELS; i++)
		if (v->parties[i].channel)
			gather_party(v, w, &v->parties[i]);
}

static void act(struct server *v, const struct waiting *w)
{
	for (nfds_t i = 4; i < w->count; i++) {
		if (!w->fds[i].revents)
			continue;
		if (w->reads[i])
			w->reads[i]->readable = true;
		if (w->messages[i])
			server_read(v, w->messages[i]);
		if (w->pending[i])
			server_meet(v, w->pending[i]);
	}
	if (w->fds[2].revents)
		server_accept(v);
	if (w->fds[3].revents)
		server_read_early(v);
}

/* Commands that have ended, and whose output is out. The first one's end is reported when its files
 * are back. */
static void settle(struct server *v)
{
	for (unsigned i = 1; i < VM_CHANNELS; i++) {
		struct party *p = &v->parties[i];
		struct vm_channel *c = &v->session.channels[p->channel];
		struct party_message last = { .magic = PARTY_MAGIC, .op = PARTY_EXIT };

		if (!p->channel)
			continue;
		party_flush(p, c);
		if (c->stop_signal && p->sock_fd >= 0)
			party_say(p->sock_fd, PARTY_STOPPED, (int)(c->stop_signal & 63));
		c->stop_signal = 0;
		if (i == 1 || p->sock_fd < 0 || c->state != VM_ENDED || !party_flushed(c))
			continue;
		last.a = c->status;
		session_close(&v->session, p->channel);
		party_end(p, &last, NULL);
	}
}

int server_turn(struct server *v, bool clients, struct ward_err *e)
{
	struct waiting w;
	int r = write_serial(v, e);

	if (r < 0)
		return r;
	gather(v, &w, clients);
	if (poll(w.fds, w.count, -1) < 0 && errno != EINTR)
		return ward_fail_errno(e, "waiting for the guest");
	if (w.fds[0].revents & (POLLIN | POLLHUP | POLLERR))
		r = read_serial(v, e);
	else if (w.fds[1].revents)
		r = ended(e);
	if (r < 0)
		return r;
	act(v, &w);
	settle(v);
	return v->first_gone ? ward_fail(e, ECANCELED,
					 "interrupted while files were copied, or no client waits "
					 "for the command any more")
			     : 0;
}
