/*
 * Streams between wardd and ward-envd (session.h). In: frames on one pipe. Out: frames on another,
 * and a thread for each stream that wardd begins. Runs in the sandbox, with its rights: what goes
 * wrong here harms nobody outside. Each stream's sender stops when the credit of the receiver is
 * used up, so a client that does not read holds up its own stream only. When wardd goes, all
 * streams of its session are reset; what they had started lives on.
 */
#include "envd/session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "base/io.h"
#include "envd/launch.h"

struct stream {
	struct session *session;
	uint32_t id;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_mutex_t write_lock; /* keeps what is written together together */
	unsigned count;             /* under the session's lock */
	struct buf in;
	size_t in_at;
	uint64_t credit; /* what may still be written */
	uint32_t eaten;  /* read, and not given back as credit yet */
	bool in_end, out_end, gone, head;
	int reset_fd;
	uint64_t written_ms;
};

struct session {
	int in_fd, out_fd;
	const struct server *server;
	pthread_mutex_t lock;       /* of the table and the count */
	pthread_mutex_t write_lock; /* frames are whole */
	unsigned count;
	size_t stream_count;
	struct stream *streams[ENVD_STREAMS];
};

static pthread_mutex_t config_lock = PTHREAD_MUTEX_INITIALIZER;
static struct strv config;
static unsigned sessions;

static void session_drop(struct session *n)
{
	bool last;

	pthread_mutex_lock(&n->lock);
	last = --n->count == 0;
	pthread_mutex_unlock(&n->lock);
	if (!last)
		return;
	own_close_fd(&n->in_fd);
	own_close_fd(&n->out_fd);
	pthread_mutex_destroy(&n->lock);
	pthread_mutex_destroy(&n->write_lock);
	free(n);
}

static void send_frame(struct session *n, uint32_t id, uint8_t type, const void *bytes, size_t len)
{
	const struct envd_frame f = { .stream = id, .bytes = (uint32_t)len, .type = type };
	uint8_t frame[ENVD_HEADER + 64];
	int r;

	envd_frame_write(frame, &f);
	if (len && len <= 64)
		memcpy(frame + ENVD_HEADER, bytes, len);
	pthread_mutex_lock(&n->write_lock);
	r = io_write_all(n->out_fd, frame, ENVD_HEADER + (len <= 64 ? len : 0));
	if (r == 0 && len > 64)
		r = io_write_all(n->out_fd, bytes, len);
	pthread_mutex_unlock(&n->write_lock);
	(void)r; /* the reader sees the end */
}

struct stream *stream_hold(struct stream *s)
{
	pthread_mutex_lock(&s->session->lock);
	s->count++;
	pthread_mutex_unlock(&s->session->lock);
	return s;
}

/* Under the session's lock, so that nobody finds one that is about to be freed. */
static bool let_go(struct session *n, struct stream *s)
{
	if (--s->count)
		return false;
	for (size_t i = 0; i < n->stream_count; i++)
		if (n->streams[i] == s) {
			n->streams[i] = n->streams[--n->stream_count];
			break;
		}
	return true;
}

void stream_drop(struct stream *s)
{
	struct session *n = s ? s->session : NULL;
	bool last;

	if (!s)
		return;
	pthread_mutex_lock(&n->lock);
	last = let_go(n, s);
	pthread_mutex_unlock(&n->lock);
	if (!last)
		return;
	if (!s->gone && !(s->out_end && s->in_end))
		send_frame(n, s->id, ENVD_RESET, NULL, 0);
	own_close_fd(&s->reset_fd);
	buf_free(&s->in);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->write_lock);
	pthread_cond_destroy(&s->changed);
	free(s);
	session_drop(n);
}

ssize_t stream_read(struct stream *s, void *bytes, size_t n)
{
	uint32_t give = 0;
	size_t some;

	pthread_mutex_lock(&s->lock);
	while (s->in_at == s->in.len && !s->in_end && !s->gone)
		pthread_cond_wait(&s->changed, &s->lock);
	if (s->gone) {
		pthread_mutex_unlock(&s->lock);
		return -1;
	}
	some = s->in.len - s->in_at;
	some = some < n ? some : n;
	if (some)
		memcpy(bytes, s->in.data + s->in_at, some);
	s->in_at += some;
	if (s->in_at == s->in.len)
		s->in_at = s->in.len = 0;
	s->eaten += (uint32_t)some;
	if (s->eaten >= ENVD_WINDOW / 2 && !s->in_end) {
		give = s->eaten;
		s->eaten = 0;
	}
	pthread_mutex_unlock(&s->lock);
	if (give)
		send_frame(s->session, s->id, ENVD_CREDIT, &give, sizeof(give));
	return (ssize_t)some;
}

int stream_read_all(struct stream *s, size_t max, struct buf *out)
{
	char bytes[4096];
	ssize_t n;

	while ((n = stream_read(s, bytes, sizeof(bytes))) > 0) {
		if (out->len + (size_t)n > max)
			return -EFBIG;
		buf_add(out, bytes, (size_t)n);
	}
	return n < 0 ? -EPIPE : out->failed ? -ENOMEM : 0;
}

void stream_head(struct stream *s, unsigned status, enum envd_kind kind, uint64_t length)
{
	const struct envd_head h = { .status = (uint16_t)status,
				     .kind = (uint8_t)kind,
				     .length = length };

	if (s->head)
		return;
	s->head = true;
	send_frame(s->session, s->id, ENVD_HEAD, &h, sizeof(h));
}

/* Waits for credit and takes some of it; 0: the stream is over. */
static size_t take_credit(struct stream *s, size_t wanted)
{
	size_t some = 0;

	pthread_mutex_lock(&s->lock);
	while (!s->credit && !s->gone && !s->out_end)
		pthread_cond_wait(&s->changed, &s->lock);
	if (!s->gone && !s->out_end) {
		some = wanted < s->credit ? wanted : (size_t)s->credit;
		some = some < ENVD_FRAME_BYTES ? some : ENVD_FRAME_BYTES;
		s->credit -= some;
		s->written_ms = io_now_ms();
	}
	pthread_mutex_unlock(&s->lock);
	return some;
}

int stream_write(struct stream *s, const void *bytes, size_t n)
{
	const char *b = bytes;
	int r = 0;

	pthread_mutex_lock(&s->write_lock);
	while (n && r == 0) {
		size_t some = take_credit(s, n);

		if (!some)
			r = -1;
		else
			send_frame(s->session, s->id, ENVD_DATA, b, some);
		b += some;
		n -= some;
	}
	pthread_mutex_unlock(&s->write_lock);
	return r;
}

int stream_write_now(struct stream *s, const void *bytes, size_t n)
{
	int r = 0;

	if (pthread_mutex_trylock(&s->write_lock) != 0)
		return 0;
	pthread_mutex_lock(&s->lock);
	if (s->gone || s->out_end)
		r = -1;
	else if (s->credit >= n && n <= ENVD_FRAME_BYTES)
		s->credit -= n;
	else
		n = 0;
	if (r == 0 && n)
		s->written_ms = io_now_ms();
	pthread_mutex_unlock(&s->lock);
	if (r == 0 && n)
		send_frame(s->session, s->id, ENVD_DATA, bytes, n);
	pthread_mutex_unlock(&s->write_lock);
	return r;
}

void stream_end(struct stream *s)
{
	bool send;

	pthread_mutex_lock(&s->write_lock);
	pthread_mutex_lock(&s->lock);
	send = !s->out_end && !s->gone;
	s->out_end = true;
	pthread_mutex_unlock(&s->lock);
	if (send)
		send_frame(s->session, s->id, ENVD_END, NULL, 0);
	pthread_mutex_unlock(&s->write_lock);
}

static void mark_gone(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->gone = true;
	if (s->reset_fd >= 0)
		eventfd_write(s->reset_fd, 1);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

void stream_reset(struct stream *s)
{
	bool send = !stream_is_reset(s);

	mark_gone(s);
	if (send)
		send_frame(s->session, s->id, ENVD_RESET, NULL, 0);
}

bool stream_is_reset(struct stream *s)
{
	bool gone;

	pthread_mutex_lock(&s->lock);
	gone = s->gone;
	pthread_mutex_unlock(&s->lock);
	return gone;
}

int stream_reset_fd(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->reset_fd < 0)
		s->reset_fd = eventfd(s->gone, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_unlock(&s->lock);
	return s->reset_fd;
}

uint64_t stream_silent_ms(struct stream *s)
{
	uint64_t then;

	pthread_mutex_lock(&s->lock);
	then = s->written_ms;
	pthread_mutex_unlock(&s->lock);
	return io_now_ms() - then;
}

/* -- the session */

struct begun {
	struct stream *stream;
	const struct server *server;
	struct strv call;
	unsigned port;
};

static void *serve(void *argument)
{
	struct begun *b = argument;

	b->server->serve(b->stream, b->port ? NULL : &b->call, b->port);
	stream_drop(b->stream);
	strv_free(&b->call);
	free(b);
	return NULL;
}

static struct stream *stream_new(struct session *n, uint32_t id)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->session = n;
	s->id = id;
	s->count = 1;
	s->credit = ENVD_WINDOW;
	s->reset_fd = -1;
	s->written_ms = io_now_ms();
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->write_lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	pthread_mutex_lock(&n->lock);
	n->count++;
	n->streams[n->stream_count++] = s;
	pthread_mutex_unlock(&n->lock);
	return s;
}

/* NAME=VALUE with a NUL behind each. */
static void split(const char *bytes, size_t n, struct strv *out)
{
	for (size_t at = 0; at < n;) {
		size_t len = strnlen(bytes + at, n - at);

		if (at + len == n)
			break;
		strv_add(out, bytes + at);
		at += len + 1;
	}
}

static void begin_stream(struct session *n, const struct envd_frame *f, const char *bytes)
{
	struct begun *b = n->stream_count < ENVD_STREAMS ? calloc(1, sizeof(*b)) : NULL;
	uint16_t port = 0;

	if (b && f->type == ENVD_DIAL && f->bytes == sizeof(port))
		memcpy(&port, bytes, sizeof(port));
	if (b && f->type == ENVD_CALL)
		split(bytes, f->bytes, &b->call);
	if (b) {
		b->server = n->server;
		b->port = port;
		b->stream = stream_new(n, f->stream);
	}
	if (!b || !b->stream || b->call.failed) {
		send_frame(n, f->stream, ENVD_RESET, NULL, 0);
		if (b)
			stream_drop(b->stream);
	} else if (launch_thread(serve, b) == 0) {
		return;
	} else {
		stream_drop(b->stream); /* which sends a reset */
	}
	if (b)
		strv_free(&b->call);
	free(b);
}

static struct stream *find(struct session *n, uint32_t id)
{
	struct stream *s = NULL;

	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < n->stream_count && !s; i++)
		if (n->streams[i]->id == id)
			s = n->streams[i];
	if (s)
		s->count++;
	pthread_mutex_unlock(&n->lock);
	return s;
}

/* What begins with a point is no variable, but a setting of wardd. */
static void take_config(struct session *s, const char *bytes, size_t n)
{
	auto_strv everything = { 0 }, settings = { 0 };

	split(bytes, n, &everything);
	pthread_mutex_lock(&config_lock);
	strv_free(&config);
	for (size_t i = 0; i < everything.len; i++)
		if (*everything.items[i] == '.')
			strv_add(&settings, everything.items[i] + 1);
		else
			strv_add(&config, everything.items[i]);
	pthread_mutex_unlock(&config_lock);
	s->server->configured(&settings);
}

void session_config(struct strv *out)
{
	pthread_mutex_lock(&config_lock);
	for (size_t i = 0; i < config.len; i++)
		strv_add(out, config.items[i]);
	pthread_mutex_unlock(&config_lock);
}

unsigned session_count(void)
{
	return __atomic_load_n(&sessions, __ATOMIC_RELAXED);
}

/* wardd keeps to the credit; what is more than that would be a fault of its. */
static void add_bytes(struct stream *s, const char *bytes, size_t n)
{
	if (s->in_at > ENVD_WINDOW) {
		memmove(s->in.data, s->in.data + s->in_at, s->in.len - s->in_at);
		s->in.len -= s->in_at;
		s->in_at = 0;
	}
	if (s->in.len - s->in_at + n <= 2 * ENVD_WINDOW)
		buf_add(&s->in, bytes, n);
}

static void take_frame(struct session *n, const struct envd_frame *f, const char *bytes)
{
	struct stream *s;
	uint32_t more = 0;

	if (f->type == ENVD_CONFIG) {
		take_config(n, bytes, f->bytes);
		return;
	}
	if (f->type == ENVD_CALL || f->type == ENVD_DIAL) {
		begin_stream(n, f, bytes);
		return;
	}
	s = find(n, f->stream);
	if (!s)
		return;
	if (f->type == ENVD_RESET) {
		mark_gone(s);
	} else {
		pthread_mutex_lock(&s->lock);
		if (f->type == ENVD_DATA && !s->in_end)
			add_bytes(s, bytes, f->bytes);
		if (f->type == ENVD_END)
			s->in_end = true;
		if (f->type == ENVD_CREDIT && f->bytes == sizeof(more)) {
			memcpy(&more, bytes, sizeof(more));
			s->credit += more;
		}
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
	}
	stream_drop(s);
}

static void *read_frames(void *argument)
{
	struct session *n = argument;
	char *bytes = malloc(ENVD_FRAME_BYTES);
	uint8_t header[ENVD_HEADER];
	struct envd_frame f;

	while (bytes && io_read_exactly(n->in_fd, header, sizeof(header)) == 0 &&
	       envd_frame_read(header, &f) && io_read_exactly(n->in_fd, bytes, f.bytes) == 0)
		take_frame(n, &f, bytes);
	free(bytes);
	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < n->stream_count; i++)
		mark_gone(n->streams[i]);
	pthread_mutex_unlock(&n->lock);
	__atomic_sub_fetch(&sessions, 1, __ATOMIC_RELAXED);
	session_drop(n);
	return NULL;
}

int session_begin(int in_fd, int out_fd, const struct server *server)
{
	struct session *n = calloc(1, sizeof(*n));
	int r;

	if (!n) {
		close(in_fd);
		close(out_fd);
		return -ENOMEM;
	}
	n->in_fd = in_fd;
	n->out_fd = out_fd;
	n->server = server;
	n->count = 1;
	pthread_mutex_init(&n->lock, NULL);
	pthread_mutex_init(&n->write_lock, NULL);
	__atomic_add_fetch(&sessions, 1, __ATOMIC_RELAXED);
	r = launch_thread(read_frames, n);
	if (r < 0) {
		__atomic_sub_fetch(&sessions, 1, __ATOMIC_RELAXED);
		session_drop(n);
	}
	return r;
}
