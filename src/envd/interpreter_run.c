/*
 * One execution of the code interpreter. In: code for a context. Out: what its kernel says, frame
 * by frame, as lines of the answer. Executions of one context wait for each other. When the client
 * goes the code is interrupted, and ended with its kernel if it goes on all the same: the next
 * client does not wait for what is not read.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "envd/interpreter.h"

#define STUBBORN_MS 10000
#define FRAME_MAX (256U * 1024 * 1024)

struct running {
	struct asked *asked;
	struct context *context;
	struct buf in;
	bool gone;          /* the client */
	uint64_t gone_ms;   /* since when */
	uint64_t signal_ms; /* of the next interrupt */
};

static void say(struct running *r, const char *line, size_t n)
{
	while (n && !r->gone) {
		ssize_t some = send(r->asked->fd, line, n, MSG_NOSIGNAL);

		if (some < 0 && errno == EINTR)
			continue;
		r->gone = some < 0;
		line += some > 0 ? some : 0;
		n -= some > 0 ? (size_t)some : 0;
	}
}

/* Passes on the frames that are whole. True: the last one was the end. */
static bool pass(struct running *r, bool *ret_bad)
{
	size_t at = 0;
	uint32_t n = 1;

	while (r->in.len - at >= sizeof(n)) {
		memcpy(&n, r->in.data + at, sizeof(n));
		*ret_bad = n > FRAME_MAX;
		if (n == 0 || *ret_bad || r->in.len - at - sizeof(n) < n)
			break;
		say(r, r->in.data + at + sizeof(n), n);
		at += sizeof(n) + n;
		n = 1;
	}
	if (at) {
		r->in.len -= at;
		memmove(r->in.data, r->in.data + at, r->in.len);
	}
	return n == 0;
}

/* The client has gone: asks the code to stop, again and again, and then ends it. */
static void urge(struct running *r)
{
	uint64_t now = io_now_ms();

	if (!r->gone_ms)
		r->gone_ms = now;
	if (now - r->gone_ms > STUBBORN_MS) {
		context_end_kernel(r->context);
	} else if (now >= r->signal_ms) {
		context_interrupt(r->context);
		r->signal_ms = now + 500;
	}
}

/* False: the kernel has gone before the end. */
static bool relay(struct running *r)
{
	for (;;) {
		struct pollfd p[2] = { { .fd = r->context->fd, .events = POLLIN },
				       { .fd = r->gone ? -1 : r->asked->fd, .events = POLLRDHUP } };
		bool bad = false;
		ssize_t n;

		if (poll(p, 2, r->gone ? 200 : -1) < 0 && errno != EINTR)
			return false;
		r->gone |= p[1].revents != 0;
		if (r->gone)
			urge(r);
		if (!p[0].revents)
			continue;
		if (!buf_reserve(&r->in, 65536))
			return false;
		n = read(r->context->fd, r->in.data + r->in.len, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		r->in.len += (size_t)n;
		if (pass(r, &bad))
			return true;
		if (bad)
			return false;
	}
}

static void make_request(struct context *c, const struct execution *e, struct buf *out)
{
	struct json j = { .out = out };
	auto_buf variables = { 0 };
	unsigned version = variables_get(&variables);

	json_begin_object(&j, NULL);
	json_string(&j, "code", buf_text(&e->code));
	if (e->env.len)
		buf_printf(out, ",\"env\":%s", e->env.data);
	if (version != c->seen)
		buf_printf(out, ",\"base\":%s", buf_text(&variables));
	json_end_object(&j);
	out->failed |= variables.failed;
	c->seen = version;
}

/* A kernel that is killed while it reads is one that was ended just now: another one is asked. */
static int hand_over(struct context *c, const struct execution *e, char *why, size_t n)
{
	int r = -EPIPE;

	for (int tries = 0; tries < 2 && r == -EPIPE; tries++) {
		auto_buf message = { 0 };

		r = kernel_ready(c, why, n);
		if (r < 0)
			return r;
		make_request(c, e, &message);
		if (message.failed) {
			snprintf(why, n, "out of memory");
			return -ENOMEM;
		}
		if (kernel_send(c, &message) < 0) {
			snprintf(why, n, "the kernel of this context does not start");
			kernel_close(c);
			r = -EPIPE;
		}
	}
	return r;
}

static void run(struct asked *a, struct context *c, const struct execution *e)
{
	static const char died[] =
		"{\"type\": \"error\", \"name\": \"KernelDied\", \"value\": \"the kernel of this "
		"context has ended; the next execution has a new one\", \"traceback\": \"\"}\n"
		"{\"type\": \"unexpected_end_of_execution\"}\n";
	struct running r = { .asked = a, .context = c };
	char why[256];

	if (asked_is_gone(a))
		return;
	variables_refresh();
	if (hand_over(c, e, why, sizeof(why)) < 0) {
		asked_refuse(a, 500, "%s", why);
		return;
	}
	r.gone = asked_begin(a, 200, "application/json") < 0;
	if (!relay(&r)) {
		kernel_close(c);
		say(&r, died, sizeof(died) - 1);
	}
	buf_free(&r.in);
}

void interpreter_run(struct asked *a, struct context *c, const struct execution *e)
{
	pthread_mutex_lock(&c->run);
	run(a, c, e);
	pthread_mutex_unlock(&c->run);
}
