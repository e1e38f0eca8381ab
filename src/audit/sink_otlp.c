/*
 * An OTLP collector over HTTP. In: a batch, which is an ExportLogsServiceRequest as JSON. Out:
 * POST, and what its answer means: taken; taken in part, or refused for good, which is counted; or
 * to be tried again, after the time that it asks for. Run by ward-audit in the process of one sink.
 * One connection a request: nothing has to be known about an idle one.
 */
#include <errno.h>
#include <string.h>

#include "audit/sink.h"

#define ANSWER_MS 30000
#define ANSWER_MAX (64 << 10)

static int read_answer(struct sink *s, struct sink_reply *ret, struct ward_err *e)
{
	auto_buf answer = { 0 };
	char bytes[4096];
	ssize_t n;

	while ((n = sink_read(s, bytes, sizeof(bytes), ANSWER_MS, e)) > 0 &&
	       answer.len < ANSWER_MAX)
		buf_add(&answer, bytes, (size_t)n);
	if (n < 0 && !answer.len)
		return n == -ETIMEDOUT ? ward_fail(e, ETIMEDOUT, "%s: no answer from the server",
						   s->policy->to)
				       : (int)n;
	if (!sink_reply_read(buf_text(&answer), answer.len, ret))
		return ward_fail(e, EPROTO, "%s: the server's answer is not HTTP", s->policy->to);
	return 0;
}

static int otlp_send(struct sink *s, struct ward_err *e)
{
	const struct policy_sink *p = s->policy;
	const bool v6 = strchr(p->host, ':') != NULL;
	struct sink_reply reply = { 0 };
	auto_buf head = { 0 };
	int r;

	buf_printf(&head,
		   "POST %s HTTP/1.1\r\nHost: %s%s%s:%u\r\nUser-Agent: ward/" WARD_VERSION
		   "\r\nContent-Type: application/json\r\n",
		   p->path, v6 ? "[" : "", p->host, v6 ? "]" : "", p->port);
	if (s->token)
		buf_printf(&head, "Authorization: Bearer %s\r\n", s->token);
	buf_printf(&head, "Content-Length: %zu\r\nConnection: close\r\n\r\n", s->batch.len);
	r = sink_write(s, head.data, head.len, e);
	if (r == 0)
		r = sink_write(s, s->batch.data, s->batch.len, e);
	if (r == 0)
		r = read_answer(s, &reply, e);
	sink_disconnect(s);
	if (r < 0)
		return r;
	if (reply.status >= 200 && reply.status < 300) {
		s->shared->dropped += reply.rejected < s->count ? reply.rejected : s->count;
		return 0;
	}
	/* it will never take these */
	if (reply.status == 400 || reply.status == 413 || reply.status == 422) {
		s->shared->dropped += s->count;
		return 0;
	}
	s->wait_more_ms = reply.retry_after * 1000;
	return ward_fail(e, EAGAIN, "%s: the server answered %u", p->to, reply.status);
}

static int64_t otlp_unread(unused_arg struct sink *s)
{
	return 0;
}

static int otlp_finish(struct sink *s, unused_arg struct ward_err *e)
{
	sink_disconnect(s);
	return 0;
}

const struct sink_ops sink_otlp = { .open = sink_connect,
				    .send = otlp_send,
				    .unread = otlp_unread,
				    .finish = otlp_finish,
				    .close = sink_disconnect };
