/*
 * Joining the command of a detached sandbox. In: an ATTACH of a client. Out: a stream socket of its
 * own, out of which comes all that the command writes from then on, and into which goes what is
 * typed, if the command has a terminal. Every attached client sees the same. Whose input counts:
 * shared by all clients, or, after one has taken it over (CONTROL_EXCLUSIVE), that one's alone,
 * until it leaves or another one takes over; what the others type is read and forgotten. A client
 * that does not read loses output, and never holds the command up.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "run/box_internal.h"
#include "run/detach.h"
#include "run/serve_internal.h"

#define ATTACHED_MAX 16

static size_t attached(const struct serve *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->client_count; i++)
		count += s->clients[i].stream_fd >= 0;
	return count;
}

/* Tells everybody whose input may have changed its meaning. */
static void tell_turns(struct serve *s)
{
	for (size_t i = 0; i < s->client_count; i++) {
		struct serve_client *c = &s->clients[i];

		if (c->stream_fd >= 0 && c->types)
			serve_answer(c, CONTROL_TURN, !s->owner || s->owner == c->number, 0);
	}
}

void serve_attach(struct serve *s, struct serve_client *c, unsigned flags)
{
	struct control_message answer = { .magic = CONTROL_MAGIC,
					  .op = CONTROL_STARTED,
					  .a = s->terminal };
	struct ward_err e = { 0 };
	int pair[2] = { -1, -1 };

	if (box_is_idle(s->box)) {
		ward_fail(&e, EINVAL, "the sandbox is idle: it has no command to attach to");
		ward_remedy(&e, "ward exec -t %s sh", s->entry->id);
	} else if (s->box->detached->attached) {
		ward_fail(&e, EBUSY,
			  "the streams of its command belong to the program that started it");
		ward_remedy(&e, "ward exec -t %s sh", s->entry->id);
	} else if (c->stream_fd >= 0 || attached(s) >= ATTACHED_MAX) {
		ward_fail(&e, EAGAIN, "%d terminals are already attached, the maximum",
			  ATTACHED_MAX);
	} else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		ward_fail_errno(&e, "cannot create a socket");
	}
	if (e.code) {
		serve_refuse(c, &e);
		return;
	}
	c->stream_fd = pair[0];
	c->types = s->terminal && !(flags & CONTROL_READ_ONLY);
	if (c->types && flags & CONTROL_EXCLUSIVE)
		s->owner = c->number;
	serve_send(c, &answer, sizeof(answer), &pair[1], 1);
	close(pair[1]);
	tell_turns(s);
}

void serve_detach(struct serve *s, struct serve_client *c)
{
	if (c->stream_fd < 0)
		return;
	close(c->stream_fd);
	c->stream_fd = -1;
	if (s->owner == c->number) {
		s->owner = 0;
		tell_turns(s);
	}
}

void serve_show(struct serve *s, const char *bytes, size_t n)
{
	for (size_t i = 0; i < s->client_count; i++)
		if (s->clients[i].stream_fd >= 0) /* what it does not take is lost for it */
			(void)!send(s->clients[i].stream_fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Programs ask their terminal what it is and where the cursor stands. No client may be attached, or
 * several: so the answer comes from here, and from nowhere else. One that the terminal does not
 * take at once is forgotten. */
void serve_answer_queries(struct serve *s, const char *bytes, size_t n)
{
	auto_buf unseen = { 0 };

	terminal_filter(&s->filter, bytes, n, &unseen);
	if (s->filter.answer_len && !s->typed_len && s->filter.answer_len <= sizeof(s->typed)) {
		memcpy(s->typed, s->filter.answer, s->filter.answer_len);
		s->typed_len = s->filter.answer_len;
		s->typed_done = 0;
		serve_push(s);
	}
	s->filter.answer_len = 0;
}

/* Reads only when the terminal takes what was read before: typing has to wait, not this process. */
void serve_type(struct serve *s, struct serve_client *c)
{
	ssize_t n = recv(c->stream_fd, s->typed, sizeof(s->typed), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		c->gone = true;
		return;
	}
	if (c->types && (!s->owner || s->owner == c->number) && s->output_fd >= 0) {
		s->typed_len = (size_t)n;
		s->typed_done = 0;
		serve_push(s);
	}
}

void serve_push(struct serve *s)
{
	ssize_t n = write(s->output_fd, s->typed + s->typed_done, s->typed_len - s->typed_done);

	if (n > 0)
		s->typed_done += (size_t)n;
	if (s->typed_done == s->typed_len || (n < 0 && errno != EAGAIN && errno != EINTR))
		s->typed_len = s->typed_done = 0;
}

void serve_size(struct serve *s, struct serve_client *c, int rows, int cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols },
		       other = size;

	if (!s->terminal || s->output_fd < 0 || c->stream_fd < 0 || !c->types || !rows || !cols ||
	    (s->owner && s->owner != c->number))
		return;
	other.ws_row = (unsigned short)(rows > 1 ? rows - 1 : rows + 1);
	/* a client that has just attached sees nothing yet: a program that fills the screen draws
	 * it again */
	if (!c->sized)
		(void)ioctl(s->output_fd, TIOCSWINSZ, &other);
	c->sized = true;
	s->filter.cursor.rows = size.ws_row;
	s->filter.cursor.cols = size.ws_col;
	(void)ioctl(s->output_fd, TIOCSWINSZ, &size);
}
