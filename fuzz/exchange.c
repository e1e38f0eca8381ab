/*
 * Fuzzes what looks into requests, as it runs in front: the real exchange, HTTP/1 (fuzz-exchange)
 * or HTTP/2 (fuzz-h2), between a program and a server that both say whatever they like. Only the
 * wire is not real: what it writes goes nowhere. The input is a row of pieces: a byte (lowest bit:
 * whose, the rest: how many bytes; none: that side ends), then its bytes. What the program did not
 * ask for in a way that the rules allow must not reach the server: the head of each HTTP/1 request
 * that does is checked.
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/inspect_main.h"
#include "inspect/h2.h"
#include "inspect/inspect.h"

#define FLOWS 64
#define ROUNDS 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* -- the wire */

static struct {
	const uint8_t *at;
	size_t left;
	bool ended;
} said[2];
static const struct wire *program_wire;
static struct buf server_heard;

void wire_free(struct wire *w)
{
	w->fd = -1;
}

enum tls_say wire_read(struct wire *w, void *bytes, size_t n, size_t *ret_n)
{
	unsigned side = w != program_wire;
	size_t some = said[side].left < n ? said[side].left : n;

	*ret_n = some;
	if (!some)
		return said[side].ended ? TLS_END : TLS_READ;
	memcpy(bytes, said[side].at, some);
	said[side].at += some;
	said[side].left -= some;
	return TLS_DONE;
}

enum tls_say wire_peek(struct wire *w)
{
	unsigned side = w != program_wire;

	return said[side].left ? TLS_DONE : said[side].ended ? TLS_END : TLS_READ;
}

enum tls_say wire_write(struct wire *w, const void *bytes, size_t n, size_t *ret_n)
{
	if (w != program_wire && server_heard.len < 100000)
		buf_add(&server_heard, bytes, n);
	*ret_n = n;
	return TLS_DONE;
}

void wire_end(struct wire *w)
{
	(void)w;
}

void queue_add(struct queue *q, const void *bytes, size_t n)
{
	char *grown = n ? realloc(q->data, q->len + n) : NULL;

	if (!n)
		return;
	if (!grown)
		abort();
	q->data = grown;
	memcpy(q->data + q->len, bytes, n);
	q->len += n;
	q->cap = q->len;
}

void queue_free(struct queue *q)
{
	free(q->data);
	*q = (struct queue){ 0 };
}

enum tls_say queue_flush(struct queue *q, struct wire *w, size_t *ret_n)
{
	enum tls_say say = TLS_DONE;

	*ret_n = queue_size(q);
	if (*ret_n)
		say = wire_write(w, q->data + q->at, *ret_n, ret_n);
	queue_free(q);
	return say;
}

/* -- the rest is as it is */

static struct front *front;

static void prepare(void)
{
	static const char text[] =
		"network: {mode: restricted, egress_allowlist: [{host: web.test, methods: [GET, "
		"POST], paths: [\"/open/*\"], request_limit: 2000, "
		"response_limit: 20000, websocket: true}]}\n";
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	struct policy p = { 0 };

	front = calloc(1, sizeof(*front));
	front->inspector = calloc(1, sizeof(*front->inspector));
	front->flows = calloc(FLOWS, sizeof(*front->flows));
	front->free_numbers = calloc(FLOWS, sizeof(*front->free_numbers));
	front->flow_max = FLOWS;
	front->inspect = inspect_here;
	front->epoll_fd = front->control_fd = front->dial_fd = -1;
	if (policy_defaults(&p, &e) < 0 ||
	    policy_read(&p, "fuzz", (const uint8_t *)text, strlen(text), POLICY_FILE, &errors) <
		    0 ||
	    rules_compile(&p, 1, &front->rules, &e) < 0)
		abort();
	policy_clear(&p);
}

static struct server *add_server(struct flow *w, struct exchange *user)
{
	struct server *s = calloc(1, sizeof(*s));
	bool h2 = user->state == EXCHANGE_H2;

	*s = (struct server){ .flow = w,
			      .wire = { .fd = -1 },
			      .state = SERVER_OPEN,
			      .tls = true,
			      .alpn = h2 ? TLS_ALPN_HTTP2 : TLS_ALPN_HTTP1,
			      .user = user };
	return s;
}

/* What dial would do. */
static void dial(void)
{
	for (struct flow *w = front->ask.first; w; w = w->ask_next) {
		struct server *s = w->inspect;

		w->asked = false;
		if (w->state != FLOW_DIAL)
			continue;
		w->state = FLOW_INSPECT;
		s->state = SERVER_OPEN;
		s->alpn = s->offer == TLS_ALPN_HTTP2 ? TLS_ALPN_HTTP2 : TLS_ALPN_HTTP1;
	}
	front->ask = (struct flow_list){ 0 };
	said[1].ended = false;
}

static void run(struct flow *w)
{
	for (int i = 0; i < ROUNDS && w->state != FLOW_DEAD; i++) {
		bool asked = front->ask.first != NULL;

		dial();
		if (!inspect_here->run(front, w) && !asked && !front->ask.first)
			break;
	}
}

static void end_all(void)
{
	for (uint32_t i = 0; i < FLOWS; i++)
		if (front->flows[i])
			flow_close(front, front->flows[i], false);
	dial();
	for (struct flow *w = front->ready.first; w; w = w->ready_next)
		w->ready = false;
	for (struct flow *w = front->asleep; w; w = w->asleep_next)
		w->asleep = false;
	front->ready = (struct flow_list){ 0 };
	front->asleep = NULL;
	flow_free_dead(front);
	front->told.len = front->later_count = 0;
	front->finish = false;
	if (front->flow_count || front->dead)
		abort();
}

/* Whatever the server is asked for is for the host, a method and a path that the rule has. */
static void check_heard(void)
{
	const char *at = server_heard.data;

	if (!server_heard.len)
		return;
	if (strncmp(at, "GET /open/", 10) != 0 && strncmp(at, "POST /open/", 11) != 0)
		abort();
	if (!memmem(at, server_heard.len, "\r\nHost: web.test\r\n", 18))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct host host;
	struct exchange *ex;
	struct flow *w;

	if (!front)
		prepare();
	memset(said, 0, sizeof(said));
	server_heard.len = 0;
	w = flow_new(front, -1, FLOW_INSPECT);
	ex = calloc(1, sizeof(*ex));
	if (!w || !ex || host_read("web.test", 8, &host) != HOST_FINE)
		abort();
	want_host(&w->want, WANT_TRANSPARENT, &host, 443);
	decide_name(front->rules, &w->want, &w->verdict);
	w->inspect = ex;
	ex->flow = w;
	ex->wire.fd = -1;
	program_wire = &ex->wire;
	ex->state = FUZZ_H2 ? EXCHANGE_H2 : EXCHANGE_HEAD;
	if (FUZZ_H2) {
		struct flow *up = flow_new(front, -1, FLOW_INSPECT);

		ex->h2 = h2_new(front, ex);
		up->server = true;
		up->want = w->want;
		up->verdict = w->verdict;
		up->inspect = ex->server = add_server(up, ex);
		said[0].at = (const uint8_t *)preface;
		said[0].left = sizeof(preface) - 1;
		run(w);
	}
	while (n && w->state != FLOW_DEAD) {
		unsigned side = data[0] & 1;
		size_t some = (size_t)(data[0] >> 1) < n - 1 ? (size_t)(data[0] >> 1) : n - 1;

		said[side].ended |= !some;
		said[side].at = data + 1;
		said[side].left = some;
		data += 1 + some;
		n -= 1 + some;
		run(w);
		said[side].left = 0;
	}
	if (!FUZZ_H2)
		check_heard();
	program_wire = NULL;
	end_all();
	return 0;
}
