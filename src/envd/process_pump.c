/*
 * What a process writes, on its way to all who listen. In: its pipes or its terminal, and its end.
 * Out: events on the streams of its subscribers, each in the order in which it happened. Whoever
 * does not read holds the process up, as a pipe does; whoever has gone does not. A process has
 * ended for its clients when it is dead and nobody can write any more; after SIGKILL, at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"
#include "envd/base64.h"
#include "envd/process.h"

#define PIPE_CHUNK 32768
#define PTY_CHUNK 16384

/* Under the lock of the subscribers: sends one event to all, and forgets those who are gone. */
static void publish(struct process *p, const struct buf *event)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->subscriber_count; i++) {
		struct subscriber s = p->subscribers[i];

		if (call_message(s.stream, event) < 0)
			stream_drop(s.stream);
		else
			p->subscribers[kept++] = s;
	}
	p->subscriber_count = kept;
}

static void publish_data(struct process *p, const char *name, const char *bytes, size_t n)
{
	auto_buf event = { 0 };

	buf_printf(&event, "{\"event\":{\"data\":{\"%s\":\"", name);
	base64_write(bytes, n, &event);
	buf_puts(&event, "\"}}}");
	pthread_mutex_lock(&p->listen_lock);
	publish(p, &event);
	pthread_mutex_unlock(&p->listen_lock);
}

static void keep_alive(struct process *p)
{
	static const char text[] = "{\"event\":{\"keepalive\":{}}}";
	uint8_t frame[5 + sizeof(text) - 1] = { 0, 0, 0, 0, sizeof(text) - 1 };
	size_t kept = 0;

	memcpy(frame + 5, text, sizeof(text) - 1);
	pthread_mutex_lock(&p->listen_lock);
	for (size_t i = 0; i < p->subscriber_count; i++) {
		struct subscriber s = p->subscribers[i];
		bool gone = stream_is_reset(s.stream);

		if (!gone && stream_silent_ms(s.stream) >= s.keepalive_s * UINT64_C(1000))
			gone = stream_write_now(s.stream, frame, sizeof(frame)) < 0;
		if (gone)
			stream_drop(s.stream);
		else
			p->subscribers[kept++] = s;
	}
	p->subscriber_count = kept;
	pthread_mutex_unlock(&p->listen_lock);
}

/* Reads once; false: nothing more comes from there. */
static bool move(struct process *p, int i, char *bytes)
{
	static const char *const names[] = { "stdout", "stderr" };
	ssize_t n = read(p->out_fds[i], bytes, p->pty ? PTY_CHUNK : PIPE_CHUNK);

	if (n > 0) {
		publish_data(p, p->pty ? "pty" : names[i], bytes, (size_t)n);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (!p->pty)
		own_close_fd(&p->out_fds[i]);
	p->out_fds[i] = -1;
	return false;
}

static void reap(struct process *p)
{
	pthread_mutex_lock(&p->lock);
	if (waitpid(p->pid, &p->status, WNOHANG) == p->pid || errno == ECHILD)
		p->reaped = true;
	pthread_mutex_unlock(&p->lock);
}

/* How long to wait: for the deadline, and to see who has gone. */
static int wait_ms(struct process *p)
{
	uint64_t now = io_now_ms();

	if (p->deadline_ms && !p->reaped)
		return p->deadline_ms <= now         ? 0
		       : p->deadline_ms - now < 1000 ? (int)(p->deadline_ms - now)
						     : 1000;
	return 1000;
}

static void kill_late(struct process *p)
{
	pthread_mutex_lock(&p->lock);
	if (p->deadline_ms && !p->reaped && io_now_ms() >= p->deadline_ms) {
		kill(-p->pid, SIGKILL);
		p->killed = p->late = true;
		p->deadline_ms = 0;
	}
	pthread_mutex_unlock(&p->lock);
}

static void end_event(struct process *p)
{
	char status[64];
	bool exited = WIFEXITED(p->status);
	int code = exited ? WEXITSTATUS(p->status) : -1;

	if (exited)
		snprintf(status, sizeof(status), "exit status %d", code);
	else
		snprintf(status, sizeof(status), "signal: %s",
			 WTERMSIG(p->status) == SIGKILL   ? "killed"
			 : WTERMSIG(p->status) == SIGTERM ? "terminated"
							  : strsignal(WTERMSIG(p->status)));
	buf_printf(&p->end, "{\"event\":{\"end\":{\"exitCode\":%d,\"exited\":%s,\"status\":", code,
		   exited ? "true" : "false");
	json_quote(&p->end, status);
	if (code) {
		buf_puts(&p->end, ",\"error\":");
		json_quote(&p->end, status);
	}
	buf_puts(&p->end, "}}}");
}

static void finish(struct process *p)
{
	pthread_mutex_lock(&p->listen_lock);
	end_event(p);
	for (size_t i = 0; i < p->subscriber_count; i++) {
		struct subscriber s = p->subscribers[i];

		if (p->late && s.bounds)
			call_end(s.stream, RPC_DEADLINE_EXCEEDED, "the process ran out of time");
		else if (call_message(s.stream, &p->end) == 0)
			call_end(s.stream, RPC_OK, "");
		stream_drop(s.stream);
	}
	p->subscriber_count = 0;
	pthread_mutex_lock(&p->lock);
	own_close_fd(&p->stdin_fd);
	own_close_fd(&p->pty_fd);
	own_close_fd(&p->pid_fd);
	p->stdin_fd = p->pty_fd = p->pid_fd = -1;
	p->ended_ms = io_now_ms();
	p->ended = true;
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&p->listen_lock);
}

void process_pump(struct process *p)
{
	char *bytes = malloc(PIPE_CHUNK);

	while (bytes && (p->out_fds[0] >= 0 || p->out_fds[1] >= 0 || !p->reaped)) {
		struct pollfd polls[] = { { .fd = p->out_fds[0], .events = POLLIN },
					  { .fd = p->out_fds[1], .events = POLLIN },
					  { .fd = p->reaped ? -1 : p->pid_fd, .events = POLLIN } };
		int r = poll(polls, 3, wait_ms(p));

		if (r < 0 && errno != EINTR)
			break;
		for (int i = 0; i < 2; i++)
			if (r > 0 && polls[i].revents)
				(void)move(p, i, bytes);
		if (r > 0 && polls[2].revents)
			reap(p);
		if (p->reaped && p->killed) {
			for (int i = 0; i < 2; i++)
				while (p->out_fds[i] >= 0 && move(p, i, bytes))
					;
			break;
		}
		kill_late(p);
		keep_alive(p);
	}
	free(bytes);
	finish(p);
}

void process_subscribe(struct process *p, struct stream *s, unsigned keepalive_s, bool bounds)
{
	auto_buf start = { 0 };
	struct subscriber *more;
	bool ended;

	buf_printf(&start, "{\"event\":{\"start\":{\"pid\":%d}}}", (int)p->pid);
	pthread_mutex_lock(&p->listen_lock);
	call_message(s, &start);
	ended = p->ended;
	more = ended ? NULL
		     : realloc(p->subscribers, (p->subscriber_count + 1) * sizeof(*p->subscribers));
	if (more) {
		p->subscribers = more;
		more[p->subscriber_count++] =
			(struct subscriber){ stream_hold(s), keepalive_s, bounds };
	}
	pthread_mutex_unlock(&p->listen_lock);
	if (ended)
		call_message(s, &p->end);
	if (ended || !more)
		call_end(s, ended ? RPC_OK : RPC_INTERNAL, "out of memory");
}
