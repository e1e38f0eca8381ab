/*
 * Connections of calls. In: requests of ward-mcp's workers, one each. Out: answers, also where the
 * server gives none. A connection that closes before its answer cancels the call. A server that has
 * not ended a call in its time is ended when no other call is open; the next one starts it afresh.
 * Runs in the relay.
 */
#include "cli/mcp/relay_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd_message.h"
#include "base/text.h"
#include "mcp/result.h"
#include "tools/json_schema.h"

#define ASK_MAX (sizeof(struct relay_ask) + MCP_BYTES_MAX + 1)
#define WHY_MAX 400

/* -- answers */

static void put_answer(struct relay_slot *s, struct relay_answer head, const struct buf *members,
		       const struct buf *text)
{
	head.members = members ? (uint32_t)members->len : 0;
	head.text = text ? (uint32_t)text->len : 0;
	buf_add(&s->out, &head, sizeof(head));
	if (members)
		buf_add(&s->out, buf_text(members), members->len);
	if (text)
		buf_add(&s->out, buf_text(text), text->len);
	s->answered = true;
}

static void put_why(struct relay_slot *s, enum relay_status status, const char *why)
{
	auto_buf text = { 0 };

	buf_puts(&text, why);
	put_answer(s, (struct relay_answer){ .status = status }, NULL, &text);
}

static void free_slot(struct relay_slot *s)
{
	close(s->fd);
	buf_free(&s->in);
	buf_free(&s->out);
	*s = (struct relay_slot){ .fd = -1 };
}

static struct relay_ask head_of(const struct relay_slot *s)
{
	struct relay_ask ask;

	memcpy(&ask, s->in.data, sizeof(ask));
	return ask;
}

/* Whether structured content is what the accepted definition promises. */
static bool matches(const struct relay *r, const struct relay_slot *s, const struct mcp_result *got,
		    struct schema_error *ret)
{
	const struct pinned_tool *tool = &r->start.pins->tools[head_of(s).tool];
	struct ward_err why = { 0 };
	struct reader reader = { .name = "", .e = &why };
	auto_node value = NULL;

	if (!tool->output || got->failed)
		return true;
	snprintf(ret->message, sizeof(ret->message), "it has no structured content");
	if (!got->structured.n)
		return false;
	value = json_read(&reader, got->structured.at, got->structured.n);
	if (value && !reader.count)
		return json_schema_validate(tool->output, value, ret) == 0;
	snprintf(ret->message, sizeof(ret->message), "%.250s", why.why);
	return false;
}

static void put_result(const struct relay *r, struct relay_slot *s, struct mcp_span body)
{
	struct relay_answer head = { .status = RELAY_RESULT };
	struct schema_error wrong = { 0 };
	struct mcp_result got;
	char text[WHY_MAX + 128];
	const char *why;

	if (body.n > head_of(s).result_max) {
		snprintf(text, sizeof(text), "its result has more than %llu bytes",
			 (unsigned long long)head_of(s).result_max);
		put_why(s, RELAY_FAILED, text);
		return;
	}
	if (!mcp_result_read(body, &got, &why)) {
		snprintf(text, sizeof(text), "what it answered is refused: %s", why);
		put_why(s, RELAY_FAILED, text);
	} else if (!matches(r, s, &got, &wrong)) {
		snprintf(text, sizeof(text), "its result does not match its schema: %.200s%s%.200s",
			 wrong.path, *wrong.path ? ": " : "", wrong.message);
		put_why(s, RELAY_FAILED, text);
	} else {
		head.hidden = (uint32_t)got.hidden;
		head.failed = got.failed;
		put_answer(s, head, &got.members, &got.text);
	}
	mcp_result_free(&got);
}

static void put_failure(struct relay_slot *s, struct mcp_span body)
{
	auto_buf message = { 0 }, shown = { 0 };
	struct mcp_span text;
	char why[WHY_MAX + 64];

	if (mcp_get(body, "message", &text))
		(void)!mcp_text(text, &message);
	text_escape(&shown, buf_text(&message));
	snprintf(why, sizeof(why), "the server answered with an error: %.*s", WHY_MAX,
		 buf_text(&shown));
	put_why(s, RELAY_FAILED, why);
}

void relay_answer_call(struct relay *r, size_t call, bool failed, struct mcp_span body)
{
	for (size_t i = 0; i < RELAY_SLOTS_MAX; i++) {
		struct relay_slot *s = &r->slots[i];

		if (s->fd < 0 || !s->called || s->call != call)
			continue;
		s->called = false;
		if (failed)
			put_failure(s, body);
		else
			put_result(r, s, body);
		return;
	}
}

void relay_fail_all(struct relay *r, const char *why)
{
	for (size_t i = 0; i < RELAY_SLOTS_MAX; i++) {
		struct relay_slot *s = &r->slots[i];

		if (s->fd >= 0 && !s->answered)
			put_why(s, s->called ? RELAY_FAILED : RELAY_AGAIN,
				why && *why ? why : "the server has ended");
	}
}

bool relay_owes(const struct relay *r)
{
	for (size_t i = 0; i < RELAY_SLOTS_MAX; i++)
		if (r->slots[i].fd >= 0)
			return true;
	return false;
}

/* -- requests */

static void call_server(struct relay *r, struct relay_slot *s)
{
	const struct pins *p = r->start.pins;
	struct relay_ask ask = head_of(s);
	struct mcp_span arguments = { (const uint8_t *)s->in.data + sizeof(ask), ask.bytes };
	auto_buf text = { 0 };
	int n;

	if (ask.tool == RELAY_DEFINITIONS) {
		relay_put_definitions(r, &text);
		put_answer(s, (struct relay_answer){ .status = RELAY_RESULT }, &text, NULL);
		return;
	}
	if (!p || ask.tool >= p->count || r->report.drift[ask.tool] != RELAY_SAME) {
		put_why(s, RELAY_REFUSED,
			p && ask.tool < p->count && r->report.drift[ask.tool] == RELAY_GONE
				? "the server does not offer it any more"
				: "the server's definition of it is not the one that was accepted");
		return;
	}
	n = remote_call(&r->up, p->tools[ask.tool].name, arguments, &s->call);
	s->called = n == 0;
	if (n < 0)
		put_why(s, RELAY_FAILED, "the server has too many calls that it does not end");
}

/* The connection has ended, or its call's time has. */
static void drop(struct relay *r, struct relay_slot *s, bool late)
{
	if (s->called)
		remote_drop(&r->up, s->call);
	r->late |= late && s->called;
	s->called = false;
	free_slot(s);
}

static bool is_whole(const struct relay_slot *s)
{
	return s->in.len >= sizeof(struct relay_ask) &&
	       s->in.len - sizeof(struct relay_ask) >= head_of(s).bytes;
}

static void read_slot(struct relay *r, struct relay_slot *s)
{
	static char bytes[65536];
	ssize_t n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || s->in.failed || s->in.len + (size_t)n > ASK_MAX) {
		drop(r, s, false);
		return;
	}
	if (s->whole) {
		drop(r, s, *bytes == RELAY_LATE);
		return;
	}
	buf_add(&s->in, bytes, (size_t)n);
	s->whole = is_whole(s);
}

void relay_slot_ready(struct relay *r, struct relay_slot *s)
{
	ssize_t n = s->out.len ? send(s->fd, s->out.data + s->sent, s->out.len - s->sent,
				      MSG_DONTWAIT | MSG_NOSIGNAL)
			       : 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		free_slot(s);
		return;
	}
	s->sent += n > 0 ? (size_t)n : 0;
	if (s->answered && s->sent == s->out.len)
		free_slot(s);
	else if (!s->answered)
		read_slot(r, s);
}

/* A byte with one connection; the end of ward-mcp is ours. */
bool relay_take_slot(struct relay *r, int control_fd)
{
	FD_MESSAGE_CONTROL(1) control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(control_fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		relay_end(r, "");
		return false;
	}
	if (fd_message_take(&m, &fd, 1) != 1)
		return true;
	for (size_t i = 0; i < RELAY_SLOTS_MAX; i++)
		if (r->slots[i].fd < 0) {
			r->slots[i] = (struct relay_slot){ .fd = fd };
			return true;
		}
	close(fd);
	return true;
}

void relay_on_turn(struct relay *r)
{
	/* a server that is ended once its other calls are over gets no more of them */
	bool ready = r->listed && r->up.state == REMOTE_READY && !r->late;

	for (size_t i = 0; i < RELAY_SLOTS_MAX && ready && !r->ended; i++) {
		struct relay_slot *s = &r->slots[i];

		if (s->fd >= 0 && s->whole && !s->called && !s->answered)
			call_server(r, s);
	}
	if (r->late && !remote_open(&r->up, false))
		relay_end(r, "the server did not end a call in its time, and is ended");
	if (remote_open(&r->up, true) >= REMOTE_DROPPED_MAX)
		relay_end(r, "the server does not end calls that were cancelled, and is ended");
}
