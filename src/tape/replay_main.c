/*
 * replay: the process (replay.h). In: front's requests for connections, the recording of
 * GATE_FD_TAPE. Out: connections to itself. What is not looked into has no recording and is
 * refused. It is confined before it reads a byte of front's; the recording is checked before that,
 * so that a bad one is the run's refusal. Runs in place of dial.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "gateway/config.h"
#include "gateway/proc.h"
#include "tape/replay.h"

#define SEATS_MAX 4000
#define ROUNDS_MAX 64

enum { TAG_FRONT = 1, TAG_ORDERS }; /* else a seat */

struct replay {
	int epoll_fd;
	struct tape tape;
	struct seat *seats, *dead;
	unsigned count;
	bool gone;
};

static void watch(struct replay *p, struct seat *s)
{
	uint32_t events = (queue_size(&s->out) < REPLAY_OUT && !s->finishing ? EPOLLIN : 0) |
			  (queue_size(&s->out) || s->more ? EPOLLOUT : 0);
	struct epoll_event event = { .events = events, .data.ptr = s };

	if (events != s->events)
		epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, s->fd, &event);
	s->events = events;
}

static void end(struct replay *p, struct seat *s)
{
	*(s->prev ? &s->prev->next : &p->seats) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	close(s->fd);
	p->count--;
	s->next = p->dead; /* events of this round may still name it */
	p->dead = s;
	s->dead = true;
}

static void free_dead(struct replay *p)
{
	while (p->dead) {
		struct seat *s = p->dead;

		p->dead = s->next;
		seat_end_h2(s);
		play_clear(&s->play);
		queue_free(&s->in);
		queue_free(&s->out);
		free(s);
	}
}

/* What front says. False: nothing now. */
static bool read_front(struct seat *s)
{
	uint8_t bytes[16384];
	ssize_t n;

	if (s->finishing || queue_size(&s->out) >= REPLAY_OUT ||
	    queue_size(&s->in) > HTTP1_HEAD_MAX + sizeof(bytes))
		return false;
	n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	s->dead |= n <= 0;
	if (n > 0)
		queue_add(&s->in, bytes, (size_t)n);
	return n > 0;
}

static bool step(struct seat *s)
{
	if (!s->begun && queue_size(&s->in) >= 3) {
		s->begun = true;
		if (memcmp(s->in.data + s->in.at, "PRI", 3) == 0)
			s->dead |= !seat_begin_h2(s);
		return true;
	}
	return s->begun && (s->h2 ? seat_run_h2(s) : seat_run_h1(s));
}

static void run(struct replay *p, struct seat *s)
{
	struct wire wire = { .fd = s->fd };
	bool moved = true;
	size_t went;

	for (int i = 0; moved && i < ROUNDS_MAX && !s->dead; i++) {
		enum tls_say say;

		moved = read_front(s);
		moved |= !s->dead && !s->finishing && step(s);
		say = queue_flush(&s->out, &wire, &went);
		moved |= went > 0;
		s->dead |= (say != TLS_DONE && say != TLS_WRITE) || s->in.failed || s->out.failed ||
			   (s->finishing && !queue_size(&s->out));
	}
	s->more = moved;
	if (s->dead)
		end(p, s);
	else
		watch(p, s);
}

/* -- front */

static bool has_h2(const struct tape *t, const struct host *host, uint16_t port)
{
	for (uint32_t i = 0; i < t->count; i++) {
		struct tape_frame f = tape_frame_at(t, t->entries[i].ask_at);
		struct tape_ask ask = { 0 };

		if (t->entries[i].h2 &&
		    tape_ask_read(t->bytes + t->entries[i].ask_at + sizeof(f), f.bytes, &ask) &&
		    ask.port == port && ask.host.n == host->len &&
		    memcmp(ask.host.s, host->name, host->len) == 0)
			return true;
	}
	return false;
}

/* A connection to ourselves; front's end of it, or -1. */
static int sit_down(struct replay *p, const struct want *want)
{
	struct seat *s = p->count < SEATS_MAX ? calloc(1, sizeof(*s)) : NULL;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
	int pair[2];

	if (!s || want->host.len >= sizeof(want->host.name) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
		free(s);
		return -1;
	}
	s->fd = pair[0];
	s->host = want->host;
	s->host.name[s->host.len] = '\0';
	s->port = want->port;
	s->tape = &p->tape;
	s->events = EPOLLIN;
	s->play.entry = -1;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, s->fd, &event) < 0) {
		close(pair[0]);
		close(pair[1]);
		free(s);
		return -1;
	}
	s->next = p->seats;
	if (s->next)
		s->next->prev = s;
	p->seats = s;
	p->count++;
	queue_add(&s->out, has_h2(&p->tape, &s->host, s->port) ? "2" : "1", 1);
	run(p, s);
	return pair[1];
}

static void answer(struct replay *p, const struct dial_request *request)
{
	struct dial_answer said = {
		.id = request->id,
		.verdict = { .rule = -1, .reason = REASON_NOT_RECORDED, .port = request->want.port }
	};
	int fd;

	if (request->inward == INWARD_SOCKETS)
		return;
	fd = request->looked && !request->inward ? sit_down(p, &request->want) : -1;
	said.error = fd < 0 ? EACCES : 0;
	if (io_send_fds(GATE_FD_CONTROL, &said, sizeof(said), &fd, fd >= 0) < 0)
		p->gone = true;
	own_close_fd(&fd);
}

static void on_front(struct replay *p)
{
	struct dial_request requests[DIAL_AT_ONCE];
	size_t count = 0;
	int fds[4];
	ssize_t n = io_recv_fds(GATE_FD_CONTROL, requests, sizeof(requests), fds, ARRAY_LEN(fds),
				&count);

	for (size_t i = 0; i < count; i++) /* no connection is made, inside either */
		close(fds[i]);
	p->gone |= n <= 0 || (size_t)n % sizeof(requests[0]);
	for (size_t i = 0; !p->gone && i < (size_t)n / sizeof(requests[0]); i++)
		answer(p, &requests[i]);
}

/* Other rules: front has them, too, and decides. */
static void on_orders(struct replay *p)
{
	struct dial_word word = { .kind = DIAL_TAKEN };
	struct dial_order order = { 0 };
	struct rules *rules = NULL;
	struct ward_err e = { 0 };
	int fds[DIAL_FILE_COUNT];
	size_t count = 0;
	ssize_t n = io_recv_fds(GATE_FD_ORDERS, &order, sizeof(order), fds, ARRAY_LEN(fds), &count);

	p->gone |= n != (ssize_t)sizeof(order);
	if (!p->gone && order.word == DIAL_RULES && count == 1) {
		p->gone |= config_read(fds[0], &rules, NULL, &e) < 0;
		word.generation = rules ? rules->generation : 0;
		p->gone |= send(GATE_FD_ORDERS, &word, sizeof(word), MSG_NOSIGNAL) < 0;
		rules_free(rules);
	}
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

/* A copy, because the file may be one that programs inside can write: what was checked must stay as
 * it was. NULL: *e. */
static const uint8_t *read_all(int fd, size_t n, struct ward_err *e)
{
	uint8_t *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at = 0;

	if (bytes == MAP_FAILED) {
		ward_fail_errno(e, "cannot read it");
		return NULL;
	}
	while (at < n) {
		ssize_t got = pread(fd, bytes + at, n - at, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			ward_fail(e, got ? errno : EIO, "cannot read it");
			munmap(bytes, n);
			return NULL;
		}
		at += (size_t)got;
	}
	if (mprotect(bytes, n, PROT_READ) == 0) /* it is not data then, which is limited */
		return bytes;
	ward_fail_errno(e, "cannot read it");
	munmap(bytes, n);
	return NULL;
}

static int prepare(struct replay *p, struct ward_err *e)
{
	struct epoll_event front = { .events = EPOLLIN, .data.u64 = TAG_FRONT },
			   orders = { .events = EPOLLIN, .data.u64 = TAG_ORDERS };
	struct stat st;
	const uint8_t *bytes;
	int r;

	if (fstat(GATE_FD_TAPE, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < TAPE_START)
		return ward_fail(e, EINVAL, "it is empty, or not a file");
	bytes = read_all(GATE_FD_TAPE, (size_t)st.st_size, e);
	if (!bytes)
		return -1;
	close(GATE_FD_TAPE);
	r = tape_open(bytes, (uint64_t)st.st_size, &p->tape, e);
	if (r < 0)
		return r;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0 || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, GATE_FD_CONTROL, &front) < 0 ||
	    epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, GATE_FD_ORDERS, &orders) < 0)
		return ward_fail_errno(e, "cannot prepare the process that replays");
	return confine_enter(PROC_REPLAY, NULL, e);
}

int replay_main(void)
{
	static struct replay p;
	struct ward_err e = { 0 };
	struct epoll_event events[64];

	if (prepare(&p, &e) < 0)
		return 125;
	while (!p.gone) {
		int n = epoll_wait(p.epoll_fd, events, ARRAY_LEN(events), -1);

		for (int i = 0; i < n && !p.gone; i++) {
			struct seat *s = events[i].data.ptr;

			if (events[i].data.u64 == TAG_FRONT)
				on_front(&p);
			else if (events[i].data.u64 == TAG_ORDERS)
				on_orders(&p);
			else if (!s->dead)
				run(&p, s);
		}
		free_dead(&p);
	}
	return 0;
}
