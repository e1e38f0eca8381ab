/*
 * HTTP/1.1 as the server of a recording (replay.h). In: requests that front has written. Out:
 * recorded answers, a piece as one chunk; one that broke off in the recording breaks off here. One
 * request at a time, as front asks. Runs in replay.
 */
#include "rules/http_body.h"
#include "tape/replay.h"

#include <stdio.h>
#include <string.h>

/* Fields that frame the message or are about the connection: said anew. */
static bool is_framing(struct http_text name)
{
	static const char *const names[] = { "connection",        "keep-alive", "proxy-connection",
					     "transfer-encoding", "upgrade",    "content-length",
					     "trailer",           REPLAY_WHY };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (http_text_is(name, names[i]))
			return true;
	return false;
}

static bool read_length(const struct http_fields *f, uint64_t *ret)
{
	struct http_text t = http_field_get(f, "content-length");

	*ret = 0;
	if (!t.s || !t.n || t.n > 18)
		return false;
	for (size_t i = 0; i < t.n; i++) {
		if (t.s[i] < '0' || t.s[i] > '9')
			return false;
		*ret = *ret * 10 + (uint64_t)(t.s[i] - '0');
	}
	return true;
}

static void put_fields(struct queue *out, const struct http_fields *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		if (is_framing(f->items[i].name) || f->items[i].name.s[0] == ':')
			continue;
		queue_add(out, f->items[i].name.s, f->items[i].name.n);
		queue_add(out, ": ", 2);
		queue_add(out, f->items[i].value.s, f->items[i].value.n);
		queue_add(out, "\r\n", 2);
	}
}

static void put_line(struct queue *out, const char *text)
{
	queue_add(out, text, strlen(text));
}

static void answer(struct seat *s)
{
	struct http_fields *f = calloc(1, sizeof(*f));
	char line[64];
	uint16_t status = 0;

	s->answered = true;
	if (!f || !play_head(s, &s->play, &status, f)) {
		s->dead = true;
		free(f);
		return;
	}
	snprintf(line, sizeof(line), "HTTP/1.1 %u \r\n", status);
	put_line(&s->out, line);
	put_fields(&s->out, f);
	s->bodiless = s->is_head || status == 204 || status == 304;
	s->chunked = !read_length(f, &s->length);
	if (!s->chunked) {
		snprintf(line, sizeof(line), "Content-Length: %llu\r\n",
			 (unsigned long long)s->length);
		put_line(&s->out, line);
	} else if (!s->bodiless) {
		put_line(&s->out, "Transfer-Encoding: chunked\r\n");
	}
	put_line(&s->out, "\r\n");
	free(f);
}

static void miss(struct seat *s)
{
	char why[REPLAY_WHY_MAX], head[REPLAY_WHY_MAX + 100];

	play_why_not(s, &s->request, why);
	snprintf(head, sizeof(head),
		 "HTTP/1.1 %u \r\n" REPLAY_WHY ": %s\r\nContent-Length: 0\r\n\r\n", REPLAY_MISS,
		 why);
	put_line(&s->out, head);
	s->answered = true;
	s->play.over = s->play.whole = true;
	s->bodiless = true;
}

/* A head: what is asked, and perhaps its answer at once. */
static bool take_head(struct seat *s)
{
	static struct http_request r; /* one process, one thread; large */
	struct http_head head;
	enum http_wrong wrong;
	int got = http1_head((const uint8_t *)s->in.data + s->in.at, queue_size(&s->in),
			     &s->scanned, &head, &wrong);

	if (got == 0)
		return false;
	if (got < 0 || !http_request_read((const uint8_t *)s->in.data + s->in.at, &head, &r)) {
		s->dead = true;
		return false;
	}
	play_ask(&s->request, s, r.method, r.path, r.query);
	s->asked = true;
	s->is_head = head.head;
	s->answered = s->bodiless = false;
	s->scanned = 0;
	if (head.chunked)
		body_chunked(&s->body);
	else
		body_length(&s->body, head.length);
	if (s->body.state != BODY_NONE && play_find(s, &s->request, false, &s->play))
		answer(s);
	else if (s->body.state != BODY_NONE && http_field_get(&r.fields, "expect").s)
		put_line(&s->out, "HTTP/1.1 100 Continue\r\n\r\n");
	s->in.at += head.len;
	return true;
}

static bool take_body(struct seat *s)
{
	const uint8_t *bytes = (const uint8_t *)s->in.data + s->in.at;
	size_t n = queue_size(&s->in), used = 0;

	while (used < n && s->body.state != BODY_NONE && s->body.state != BODY_BAD) {
		bool data = s->body.state == BODY_LENGTH || s->body.state == BODY_DATA;
		size_t some = !data ? 1 : n - used < s->body.left ? n - used : (size_t)s->body.left;

		if (data)
			play_sent(&s->request, bytes + used, some);
		used += body_take(&s->body, bytes + used, some, true);
	}
	s->in.at += used;
	s->dead |= s->body.state == BODY_BAD;
	return used > 0;
}

static void put_piece(struct seat *s)
{
	struct play *p = &s->play;
	char line[24];

	if (s->bodiless) {
		p->left = 0;
		return;
	}
	if (s->chunked) {
		queue_add(&s->out, line, (size_t)snprintf(line, sizeof(line), "%zx\r\n", p->left));
	} else if (p->left > s->length) {
		s->dead = true; /* more than it said: the file was changed */
		return;
	}
	queue_add(&s->out, p->data, p->left);
	if (s->chunked)
		queue_add(&s->out, "\r\n", 2);
	s->length -= s->chunked ? 0 : p->left;
	p->left = 0;
}

/* Behind the last piece. */
static void finish(struct seat *s)
{
	struct play *p = &s->play;

	if (!p->whole || (!s->chunked && !s->bodiless && s->length)) {
		s->finishing = true; /* it broke off then, too */
	} else if (s->chunked && !s->bodiless) {
		put_line(&s->out, "0\r\n");
		if (p->trailers)
			put_fields(&s->out, p->trailers);
		put_line(&s->out, "\r\n");
	}
	play_clear(p);
	s->asked = false;
}

bool seat_run_h1(struct seat *s)
{
	bool moved = false;

	if (!s->asked)
		return queue_size(&s->in) && take_head(s);
	if (s->body.state != BODY_NONE)
		moved = take_body(s);
	if (!s->answered && s->body.state == BODY_NONE) {
		if (play_find(s, &s->request, true, &s->play))
			answer(s);
		else
			miss(s);
		moved = true;
	}
	while (s->answered && !s->dead && queue_size(&s->out) < REPLAY_OUT) {
		if (!s->play.over)
			play_step(s, &s->play);
		if (s->play.left) {
			put_piece(s);
			moved = true;
			continue;
		}
		if (s->body.state != BODY_NONE)
			break; /* the rest of the request is still to come */
		finish(s);
		return true;
	}
	return moved;
}
