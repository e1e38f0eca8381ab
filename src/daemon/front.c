/*
 * The front's loop. In: what epoll says, the clock, signals. Out: calls of those whose descriptor
 * is ready. One thread: nothing here waits for anything but epoll, and a commit of SQLite. What is
 * closed while events are under way is freed behind them. Also the log: one JSON object a line on
 * standard error.
 */
#include "daemon/pool.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/io.h"
#include "daemon/control_access.h"

#define EVENTS 128
#define TICK_MS 100
#define STOP_MS 15000 /* how long the end of a development server waits for its sandboxes */

int64_t front_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

uint64_t front_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void front_log(const char *kind, const struct buf *fields)
{
	auto_buf line = { 0 };
	struct json j = { .out = &line };

	json_begin_object(&j, NULL);
	show_time(&j, "time", front_now_ms());
	json_string(&j, "kind", kind);
	if (fields)
		buf_add(&line, buf_text(fields), fields->len);
	json_end_object(&j);
	buf_puts(&line, "\n");
	if (!line.failed)
		(void)!write(STDERR_FILENO, line.data, line.len);
}

void front_log_text(const char *kind, const char *key, const char *value)
{
	auto_buf fields = { 0 };

	buf_puts(&fields, ",");
	json_quote(&fields, key);
	buf_puts(&fields, ":");
	json_quote(&fields, value);
	front_log(kind, &fields);
}

bool front_watch(struct front *f, struct source *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	return epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, s->fd, &e) == 0;
}

void front_close(struct front *f, struct source *s)
{
	/* while another process has the same pipe open, closing it here does not end its events */
	if (s->fd >= 0)
		(void)epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	own_close_fd(&s->fd);
}

void front_change(struct front *f, struct source *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	if (s->fd >= 0)
		(void)epoll_ctl(f->epoll_fd, EPOLL_CTL_MOD, s->fd, &e);
}

static void signal_ready(struct source *s, uint32_t events)
{
	struct front *f = (struct front *)((char *)s - offsetof(struct front, signals));
	struct signalfd_siginfo info;

	(void)events;
	if (read(s->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) { /* keys and policies are read when they are needed */
		f->templates_ms = 0;
		front_log("reloaded", NULL);
		return;
	}
	if ((!f->dev && !f->pool_count) || f->stopping) {
		f->stop = true;
		return;
	}
	/* what waits in pools ends with the server, and all sandboxes of a development server;
	 * others outlive it */
	f->stopping = true;
	f->stop_ms = io_now_ms() + STOP_MS;
	pool_end_all(f);
	for (struct sandbox *b = f->sandboxes, *next; f->dev && b; b = next) {
		next = b->next;
		if (b->state != SANDBOX_ENDING)
			sandbox_end(f, b, "the server ends");
	}
}

/* The one sandbox of the debug mode. */
static void keep_debug(struct front *f)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	struct sandbox *s = *f->debug_id ? sandbox_find(f, f->debug_id) : NULL;
	uint8_t random[SANDBOX_ID];

	if (!f->debug || s || f->stopping || f->list_ms == 0)
		return;
	for (s = f->sandboxes; s; s = s->next)
		if (strcmp(s->owner, "debug mode") == 0 && s->state == SANDBOX_RUNNING) {
			memcpy(f->debug_id, s->id, sizeof(s->id));
			return;
		}
	if (getrandom(random, sizeof(random), 0) != sizeof(random) || !(s = sandbox_new(f)))
		return;
	memcpy(s->id, f->tag, TAG);
	for (size_t i = TAG; i < SANDBOX_ID; i++)
		s->id[i] = letters[random[i] % 26];
	snprintf(s->owner, sizeof(s->owner), "debug mode");
	snprintf(s->template, sizeof(s->template), "base");
	s->internet = -1;
	s->started_ms = front_now_ms();
	s->end_ms = s->started_ms + INT64_C(1000) * 3600 * 24 * 3650;
	sandbox_tokens(f, s);
	memcpy(f->debug_id, s->id, sizeof(s->id));
	if (registry_put(f, s) < 0 || sandbox_start(f, s) < 0)
		sandbox_remove(f, s, "it was not started");
}

/* Whether something is there that must end before the server may. */
static bool is_ending(const struct front *f)
{
	for (const struct sandbox *s = f->sandboxes; s; s = s->next)
		if (f->dev || s->pool)
			return true;
	return false;
}

static void tick(struct front *f)
{
	uint64_t now = io_now_ms();

	if (now < f->tick_ms)
		return;
	f->tick_ms = now + TICK_MS;
	conn_tick(f);
	if (f->deaf) {
		f->deaf = false;
		front_change(f, &f->listener, EPOLLIN);
		front_change(f, &f->debug_listener, EPOLLIN);
	}
	upkeep_tick(f);
	sandbox_tick(f);
	templates_tick(f);
	stop_tick(f);
	events_tick(f);
	access_tick(f, false);
	keep_debug(f);
	pool_tick(f);
	if (f->stopping && (!is_ending(f) || now > f->stop_ms))
		f->stop = true;
}

static bool begin(struct front *f)
{
	sigset_t set;

	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	f->signals =
		(struct source){ signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), signal_ready };
	f->keeper = (struct source){ f->keeper_fd, jobs_ready };
	return f->epoll_fd >= 0 && f->signals.fd >= 0 && front_watch(f, &f->signals, EPOLLIN) &&
	       front_watch(f, &f->keeper, EPOLLIN) &&
	       (f->listener.fd < 0 || front_watch(f, &f->listener, EPOLLIN)) &&
	       (f->tls.fd < 0 || front_watch(f, &f->tls, EPOLLIN)) &&
	       (f->debug_listener.fd < 0 || front_watch(f, &f->debug_listener, EPOLLIN));
}

void front_run(struct front *f)
{
	struct epoll_event events[EVENTS];

	if (!begin(f)) {
		front_log_text("server_failed", "why", strerror(errno));
		return;
	}
	while (!f->stop) {
		int n = epoll_wait(f->epoll_fd, events, EVENTS, TICK_MS);

		for (int i = 0; i < n; i++) {
			struct source *s = events[i].data.ptr;

			s->ready(s, events[i].events);
		}
		tick(f);
		conn_go_on(f);
		conn_free_gone(f);
		link_free_dead(f);
	}
	front_log("server_ends", NULL);
}
