/*
 * The gate of a connection in mode http. In: the client's bytes that were not sent on yet, and the
 * server's as they pass. Out: how many of the client's may go. A head is held until it is whole and
 * for the right host; a body passes as it comes; then the next head. Answers are followed to know
 * which request they belong to: after a websocket was asked for, nothing of the client passes until
 * it is answered, and only that answer opens a tunnel. Any other upgrade (h2c) is ignored, as a
 * server may do: the field gets another name before the head goes on, so that no server can agree
 * to it. Run by the gateway's parsing process. Fuzzed (fuzz/http1.c).
 */
#include <string.h>
#include <strings.h>

#include "rules/http_body.h"

enum { ASKED_HEAD = 1, ASKED_WEBSOCKET = 2 };

void http_sniff_init(struct http_sniff *g, const struct host *host, uint16_t port)
{
	memset(g, 0, sizeof(*g));
	g->host = *host;
	g->port = port;
	answer_init(&g->answer);
}

static enum http_wrong check_head(const struct http_sniff *g, const struct http_head *h)
{
	if (h->connect)
		return HTTP_TUNNEL;
	if (!host_equal(&h->host, &g->host) || (h->port && h->port != g->port))
		return HTTP_OTHER_HOST;
	return h->websocket && g->lost ? HTTP_TUNNEL : HTTP_FINE;
}

/* Every field of that name in a head that http1_head() has accepted gets another, of the same
 * length. */
static void rename_upgrades(uint8_t *head, size_t n)
{
	static const char name[] = "\nupgrade:", other[] = "\nIgnored:";
	const size_t len = sizeof(name) - 1;

	for (size_t i = 0; i + len <= n; i++)
		if (strncasecmp((const char *)head + i, name, len) == 0)
			memcpy(head + i, other, len);
}

/* A request passes: what is to come of it, both ways. */
static void begin_request(struct http_sniff *g, const struct http_head *h)
{
	uint8_t asked =
		(uint8_t)((h->head ? ASKED_HEAD : 0) | (h->websocket ? ASKED_WEBSOCKET : 0));

	if (!g->lost)
		g->asked[(g->first + g->count++) % HTTP1_PIPELINE] = asked;
	g->waiting = h->websocket;
	if (h->chunked)
		body_chunked(&g->up);
	else
		body_length(&g->up, h->length);
}

/* The head at the beginning of the bytes; how much may go, 0: nothing yet. */
static size_t take_head(struct http_sniff *g, uint8_t *bytes, size_t n)
{
	struct http_head head;
	enum http_wrong wrong;
	int r;

	if (g->waiting || (g->count == HTTP1_PIPELINE && !g->lost)) {
		g->stalled = true;
		return 0;
	}
	r = http1_head(bytes, n, &g->scanned, &head, &wrong);
	if (r > 0)
		wrong = check_head(g, &head);
	g->wrong = (uint8_t)wrong;
	if (r <= 0 || g->wrong)
		return 0;
	g->scanned = 0;
	begin_request(g, &head);
	if (head.upgrade && !head.websocket)
		rename_upgrades(bytes, head.len);
	return head.len;
}

size_t http_sniff_client(struct http_sniff *g, uint8_t *held, size_t n)
{
	size_t release = 0;

	g->stalled = false;
	if (g->blind)
		return n;
	while (release < n && !g->wrong) {
		size_t some;

		if (g->up.state == BODY_NONE)
			some = take_head(g, held + release, n - release);
		else
			some = body_take(&g->up, held + release, n - release, true);
		if (g->up.state == BODY_BAD)
			g->wrong = HTTP_BAD;
		if (!some)
			break;
		release += some;
	}
	return g->wrong ? 0 : release;
}

/* The answers can no longer be matched to requests: they pass, but no upgrade does any more. */
static void lose(struct http_sniff *g)
{
	g->lost = true;
	g->count = 0;
	if (g->waiting)
		g->wrong = HTTP_TUNNEL;
}

/* The head of an answer is whole. */
static void begin_answer(struct http_sniff *g)
{
	struct http_answer a = g->answer;
	uint8_t asked = g->asked[g->first];

	answer_init(&g->answer);
	if (a.status == 101) {
		g->blind = asked & ASKED_WEBSOCKET;
		g->wrong = g->blind ? HTTP_FINE : HTTP_TUNNEL;
		return;
	}
	if (a.status < 200) /* 100 Continue and the like: the answer is still to come */
		return;
	g->first = (uint8_t)((g->first + 1) % HTTP1_PIPELINE);
	g->count--;
	g->waiting &= !(asked & ASKED_WEBSOCKET);
	if ((asked & ASKED_HEAD) || a.status == 204 || a.status == 304)
		body_length(&g->down, 0);
	else if (a.chunked)
		body_chunked(&g->down);
	else if (a.has_length && !a.coded)
		body_length(&g->down, a.length);
	else
		body_until_close(&g->down);
}

bool http_sniff_server(struct http_sniff *g, const uint8_t *bytes, size_t n)
{
	size_t used = 0;
	bool was_stalled = g->stalled;

	while (used < n && !g->blind && !g->wrong && !g->lost) {
		if (g->down.state != BODY_NONE) {
			used += body_take(&g->down, bytes + used, n - used, false);
		} else if (
			/* an unasked answer: 408 on an idle connection */
			!g->count) {
			lose(g);
		} else {
			used += answer_take(&g->answer, bytes + used, n - used);
			if (g->answer.state == ANSWER_DONE)
				begin_answer(g);
		}
		if (g->down.state == BODY_BAD || g->answer.bad)
			lose(g);
	}
	return was_stalled && (g->blind || g->lost || (!g->waiting && g->count < HTTP1_PIPELINE));
}

bool http_sniff_is_quiet(const struct http_sniff *g)
{
	return !g->count && !g->lost && g->down.state == BODY_NONE && !g->answer.bytes;
}
