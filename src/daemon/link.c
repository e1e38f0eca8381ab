/*
 * The connection to the ward-envd of one sandbox (protocol/envd.h). In: frames that the sandbox
 * writes, which is believed nothing: a frame that breaks the rules ends the connection, a stream
 * gets no more bytes than its client has made room for. Out: frames, which wait in a buffer while
 * the sandbox does not read: when it is full no client's bytes are taken, and a link whose buffer
 * grows beyond that is ended. Run by the front.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/io.h"
#include "daemon/pool.h"

#define BACKLOG_MAX (512 * 1024)        /* then nothing more is taken from clients */
#define BACKLOG_CALLS (2 * BACKLOG_MAX) /* then no stream begins */
#define BACKLOG_END (4 * BACKLOG_MAX)   /* what else is to be said may come to that much */
#define KEPT_MAX (128 * 1024)           /* an empty buffer that is larger is given back */

struct link {
	struct source in, out;
	struct front *front;
	struct sandbox *sandbox;
	struct link *next_dead;
	struct stream *streams;
	unsigned stream_count;
	uint32_t last_id;
	struct buf from, to;
	size_t to_at;
	bool dead, waits;
};

#define OF(source_pointer, member)                                                                 \
	((struct link *)((char *)(source_pointer)-offsetof(struct link, member)))

static size_t waiting(const struct link *l)
{
	return l->to.len - l->to_at;
}

bool link_is_full(const struct link *l)
{
	return waiting(l) > BACKLOG_MAX;
}

/* What is written leaves the buffer. */
static void shrink(struct link *l)
{
	if (l->to_at == l->to.len) {
		l->to.len = l->to_at = 0;
		if (l->to.cap > KEPT_MAX)
			buf_free(&l->to);
	} else if (l->to_at > BACKLOG_MAX) {
		memmove(l->to.data, l->to.data + l->to_at, l->to.len - l->to_at);
		l->to.len -= l->to_at;
		l->to_at = 0;
	}
}

static void flush(struct link *l)
{
	bool was_full = link_is_full(l);

	while (l->to_at < l->to.len) {
		ssize_t n = write(l->out.fd, l->to.data + l->to_at, l->to.len - l->to_at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			link_end(l);
			return;
		}
		if (n < 0)
			break;
		l->to_at += (size_t)n;
	}
	shrink(l);
	if (was_full && !link_is_full(l))
		for (struct stream *s = l->streams; s; s = s->next)
			if (s->conn)
				conn_again(s->conn); /* they waited for that */
	if (l->waits != (l->to.len > 0)) {
		l->waits = l->to.len > 0;
		front_change(l->front, &l->out, l->waits ? EPOLLOUT : 0);
	}
}

/* May end the link, which frees all of its streams: the caller touches none of them afterwards. */
static void send_frame(struct link *l, uint32_t stream, uint8_t type, const void *bytes, size_t n)
{
	const struct envd_frame f = { .stream = stream, .bytes = (uint32_t)n, .type = type };
	uint8_t head[ENVD_HEADER];

	if (l->dead)
		return;
	envd_frame_write(head, &f);
	buf_add(&l->to, head, sizeof(head));
	if (n)
		buf_add(&l->to, bytes, n);
	if (!l->to.failed)
		flush(l);
	if (l->to.failed || waiting(l) > BACKLOG_END)
		link_end(l);
}

static void drop_stream(struct stream *s)
{
	struct link *l = s->link;

	for (struct stream **at = &l->streams; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			l->stream_count--;
			break;
		}
	if (s->conn)
		s->conn->stream = NULL;
	free(s);
}

struct stream *link_begin(struct link *l, struct conn *c, const struct buf *fields, uint16_t port)
{
	bool fits = l->stream_count < ENVD_STREAMS / 2 && !l->dead && waiting(l) < BACKLOG_CALLS;
	struct stream *s = fits ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	s->link = l;
	s->conn = c;
	s->id = ++l->last_id ? l->last_id : ++l->last_id;
	s->credit = s->window = ENVD_WINDOW;
	s->dial = !fields;
	s->next = l->streams;
	l->streams = s;
	l->stream_count++;
	c->stream = s;
	if (fields)
		send_frame(l, s->id, ENVD_CALL, buf_text(fields), fields->len);
	else
		send_frame(l, s->id, ENVD_DIAL, &port, sizeof(port));
	return c->stream;
}

void stream_send(struct stream *s, const void *bytes, size_t n)
{
	struct link *l = s->link;
	const char *b = bytes;

	while (n) {
		size_t some = n < ENVD_FRAME_BYTES ? n : ENVD_FRAME_BYTES;

		s->credit -= some < s->credit ? some : s->credit;
		send_frame(l, s->id, ENVD_DATA, b, some);
		if (l->dead) /* and the stream is freed */
			return;
		b += some;
		n -= some;
	}
}

void stream_send_end(struct stream *s)
{
	bool said = s->out_end;

	s->out_end = true;
	if (!said)
		send_frame(s->link, s->id, ENVD_END, NULL, 0);
}

void stream_leave(struct stream *s)
{
	struct link *l = s->link;
	uint32_t id = s->id;
	bool over = s->in_end && s->out_end;

	drop_stream(s);
	if (!over)
		send_frame(l, id, ENVD_RESET, NULL, 0);
}

void stream_taken(struct stream *s, size_t n)
{
	uint32_t more;

	s->owed += (uint32_t)n;
	if (s->owed < ENVD_WINDOW / 4 || s->in_end)
		return;
	more = s->owed;
	s->owed = 0;
	s->window += more;
	send_frame(s->link, s->id, ENVD_CREDIT, &more, sizeof(more));
}

/* -- what comes */

static bool take_data(struct stream *s, const uint8_t *bytes, size_t n)
{
	if (n > s->window || s->in_end || !s->head)
		return false;
	s->window -= n;
	data_bytes(s->conn, bytes, n);
	return true;
}

static bool take_credit(struct stream *s, const uint8_t *bytes, size_t n)
{
	uint32_t more;

	if (n != sizeof(more))
		return false;
	memcpy(&more, bytes, sizeof(more));
	if (s->credit + more > ENVD_WINDOW)
		return false;
	s->credit += more;
	conn_pump(s->conn);
	return true;
}

/* False: the sandbox does not keep to the protocol. */
static bool take_frame(struct link *l, const struct envd_frame *f, const uint8_t *bytes)
{
	struct stream *s = l->streams;
	struct envd_head head;

	while (s && s->id != f->stream)
		s = s->next;
	if (!s)
		return f->stream != 0 && f->stream <= l->last_id; /* its end was under way */
	switch (f->type) {
	case ENVD_HEAD:
		if (s->head || !envd_head_read(bytes, f->bytes, &head))
			return false;
		s->head = true;
		data_head(s->conn, &head);
		return true;
	case ENVD_DATA:
		return take_data(s, bytes, f->bytes);
	case ENVD_CREDIT:
		return take_credit(s, bytes, f->bytes);
	case ENVD_END:
		if (s->in_end || !s->head)
			return false;
		s->in_end = true;
		data_end(s->conn);
		return true;
	case ENVD_RESET:
		s->in_end = s->out_end = true;
		data_reset(s->conn);
		return true;
	default:
		return false;
	}
}

static void take_frames(struct link *l)
{
	size_t at = 0;

	while (!l->dead && l->from.len - at >= ENVD_HEADER) {
		const uint8_t *b = (const uint8_t *)l->from.data + at;
		struct envd_frame f;

		if (!envd_frame_read(b, &f)) {
			front_log_text("sandbox_protocol", "sandbox", l->sandbox->id);
			link_end(l);
			return;
		}
		if (l->from.len - at < ENVD_HEADER + f.bytes)
			break;
		if (!take_frame(l, &f, b + ENVD_HEADER)) {
			if (!l->dead)
				front_log_text("sandbox_protocol", "sandbox", l->sandbox->id);
			link_end(l);
			return;
		}
		at += ENVD_HEADER + f.bytes;
	}
	if (!l->dead && at) {
		memmove(l->from.data, l->from.data + at, l->from.len - at);
		l->from.len -= at;
	}
}

static void in_ready(struct source *source, uint32_t events)
{
	struct link *l = OF(source, in);
	ssize_t n;

	(void)events;
	if (l->dead)
		return;
	if (!buf_reserve(&l->from, 65536)) {
		link_end(l);
		return;
	}
	n = read(l->in.fd, l->from.data + l->from.len, 65536);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		link_end(l);
		return;
	}
	l->from.len += (size_t)n;
	take_frames(l);
}

static void out_ready(struct source *source, uint32_t events)
{
	struct link *l = OF(source, out);

	if (l->dead)
		return;
	if (events & (EPOLLERR | EPOLLHUP))
		link_end(l);
	else
		flush(l);
}

/* What E2B's sandboxes say of themselves; in its debug mode the first is false. */
static void add_marks(const struct front *f, const struct sandbox *s, struct buf *out)
{
	bool debug = f->debug && strcmp(s->id, f->debug_id) == 0;

	buf_printf(out, "E2B_SANDBOX=%s", debug ? "false" : "true");
	buf_add(out, "", 1);
	buf_printf(out, "E2B_SANDBOX_ID=%s", s->id);
	buf_add(out, "", 1);
	buf_printf(out, "E2B_TEMPLATE_ID=%s", s->template);
	buf_add(out, "", 1);
}

void link_configure(struct link *l)
{
	const struct sandbox *s = l->sandbox;
	auto_buf all = { 0 };

	pool_settings(l->front, s->template, &all);
	add_marks(l->front, s, &all);
	buf_add(&all, buf_text(&s->config), s->config.len);
	if (all.failed)
		link_end(l);
	else
		send_frame(l, 0, ENVD_CONFIG, buf_text(&all), all.len);
}

struct link *link_new(struct front *f, struct sandbox *s, int fds[2])
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->front = f;
	l->sandbox = s;
	l->out = (struct source){ take_fd(&fds[0]), out_ready };
	l->in = (struct source){ take_fd(&fds[1]), in_ready };
	if (fcntl(l->in.fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(l->out.fd, F_SETFL, O_NONBLOCK) < 0 ||
	    !front_watch(f, &l->in, EPOLLIN) || !front_watch(f, &l->out, 0)) {
		front_close(f, &l->in);
		front_close(f, &l->out);
		free(l);
		return NULL;
	}
	s->link = l;
	link_configure(l);
	return s->link;
}

void link_end(struct link *l)
{
	if (!l || l->dead)
		return;
	l->dead = true;
	front_close(l->front, &l->in);
	front_close(l->front, &l->out);
	if (l->sandbox->link == l)
		l->sandbox->link = NULL;
	while (l->streams) {
		struct stream *s = l->streams;
		struct conn *c = s->conn;

		drop_stream(s);
		if (c)
			conn_abort(c);
	}
	l->next_dead = l->front->dead_links;
	l->front->dead_links = l;
}

void link_free_dead(struct front *f)
{
	while (f->dead_links) {
		struct link *l = f->dead_links;

		f->dead_links = l->next_dead;
		buf_free(&l->from);
		buf_free(&l->to);
		free(l);
	}
}
