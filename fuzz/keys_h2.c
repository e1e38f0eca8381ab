/*
 * Fuzzes HTTP/2 through ward-keys: the real connection between a front and a server that both say
 * whatever they like, over a wire that is not real. The input is a row of pieces as in exchange.c:
 * a byte (lowest bit: whose, the rest: how many bytes; none: that side ends), then its bytes. What
 * goes to front never has the secret, what goes to the server in a body never its placeholder;
 * nothing is left in the safe.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "keys/keys_h2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define SECRET "ZZSECRETZZ"
#define SHOWN "ZZSHOWNSZZ"
#define TEXT_BYTES 10
#define ROUNDS 50

/* -- the scanner, written a second time */

struct scan {
	int unused;
};

static size_t hold(const uint8_t *bytes, size_t n)
{
	for (size_t k = n < TEXT_BYTES - 1 ? n : TEXT_BYTES - 1; k; k--)
		if (memcmp(bytes + n - k, SECRET, k) == 0 || memcmp(bytes + n - k, SHOWN, k) == 0)
			return k;
	return 0;
}

size_t scan_run(const struct scan *s, uint8_t *bytes, size_t n, bool final, struct scan_for *f)
{
	(void)s;
	for (size_t i = 0; i + TEXT_BYTES <= n; i++) {
		bool secret = memcmp(bytes + i, SECRET, TEXT_BYTES) == 0,
		     shown = memcmp(bytes + i, SHOWN, TEXT_BYTES) == 0;

		if (!(secret && f->secrets) && !(shown && f->shown))
			continue;
		if (!f->count++) {
			f->first = PATTERN_ID(0, 0, shown, 0);
			f->at = i + TEXT_BYTES;
		}
		if (f->replace)
			memset(bytes + i, 'x', TEXT_BYTES);
	}
	return final || !n ? n : n - hold(bytes, n);
}

void scan_head(const struct scan *s, uint8_t *bytes, size_t n, struct scan_for *f)
{
	(void)scan_run(s, bytes, n, true, f);
}

size_t scan_begun(const struct scan *s, const uint8_t *bytes, size_t n, struct scan_for *f)
{
	(void)s;
	(void)f;
	return n ? hold(bytes, n) : 0;
}

size_t scan_longest(const struct scan *s)
{
	(void)s;
	return 64;
}

void scan_free(struct scan *s)
{
	(void)s;
}

int scan_room(const uint8_t *serial, size_t n, size_t *ret_room, struct ward_err *e)
{
	(void)serial;
	(void)n;
	(void)ret_room;
	return ward_fail(e, 22, "none here");
}

int scan_new(const uint8_t *serial, size_t n, void *place, const struct scan_text *texts,
	     size_t text_count, struct scan **ret, struct ward_err *e)
{
	(void)serial;
	(void)n;
	(void)place;
	(void)texts;
	(void)text_count;
	(void)ret;
	return ward_fail(e, 22, "none here");
}

/* -- the wire */

static struct {
	const uint8_t *at;
	size_t left;
	bool ended;
} server;

enum tls_say tls_up_read(struct tls_up *u, void *bytes, size_t n, size_t *ret_n)
{
	size_t some = server.left < n ? server.left : n;

	(void)u;
	*ret_n = some;
	if (!some)
		return server.ended ? TLS_END : TLS_READ;
	memcpy(bytes, server.at, some);
	server.at += some;
	server.left -= some;
	return TLS_DONE;
}

enum tls_say tls_up_write(struct tls_up *u, const void *bytes, size_t n, size_t *ret_n)
{
	(void)u;
	(void)bytes;
	*ret_n = n;
	return TLS_DONE;
}

struct tls_up *tls_up_new(struct tls_trust *t, int fd, const struct host *host, uint16_t port,
			  enum tls_alpn offer)
{
	(void)t;
	(void)fd;
	(void)host;
	(void)port;
	(void)offer;
	return NULL;
}

enum tls_say tls_up_handshake(struct tls_up *u)
{
	(void)u;
	return TLS_FAILED;
}

void tls_up_end(struct tls_up *u)
{
	(void)u;
}

void tls_up_free(struct tls_up *u)
{
	(void)u;
}

enum tls_alpn tls_up_alpn(const struct tls_up *u)
{
	(void)u;
	return TLS_ALPN_HTTP2;
}

const char *tls_up_why(const struct tls_up *u)
{
	(void)u;
	return "";
}

/* -- the rest is as it is */

static struct keys *prepare(void)
{
	static const char line[] = "{\"name\":\"n\",\"source\":\"env:K\",\"hosts\":[\"web.test\"]}";
	struct keys *k = calloc(1, sizeof(*k));
	struct key_grant *g = &k->grants[0];
	struct ward_err e = { 0 };

	k->epoll_fd = k->secrets_fd = k->link_fd = -1;
	if (safe_open(&k->safe, 256 * 1024, &e) < 0 || policy_grant_read(line, &g->grant, &e) < 0)
		abort();
	g->there = true;
	g->values[0] = safe_take(&k->safe, TEXT_BYTES);
	memcpy(g->values[0], SECRET, TEXT_BYTES);
	g->bytes[0] = TEXT_BYTES;
	g->count = 1;
	g->expires_at_ms = g->uses_left = UINT64_MAX;
	k->compose_bytes = KEYS_COMPOSE;
	k->compose = safe_take(&k->safe, k->compose_bytes);
	k->scan = calloc(1, sizeof(*k->scan));
	return k;
}

/* Bodies in what was written; heads are compressed, and may look like anything. */
static void check(const struct queue *q, const char *text)
{
	const uint8_t *at = (const uint8_t *)q->bytes.data + q->at;
	size_t n = queue_len(q);

	if (n >= 24 && memcmp(at, "PRI * HTTP/2.0", 14) == 0) {
		at += 24;
		n -= 24;
	}
	while (n >= 9) {
		size_t body = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];

		assert(n >= 9 + body);
		assert(at[3] != 0 || !memmem(at + 9, body, text, TEXT_BYTES));
		at += 9 + body;
		n -= 9 + body;
	}
	assert(!n);
}

static void run(struct keys *k, struct conn *c)
{
	for (int i = 0; i < ROUNDS && !c->dead && keys_h2_step(k, c); i++) {
		if (queue_len(&c->back))
			check(&c->back, SECRET);
		if (queue_len(&c->out))
			check(&c->out, SHOWN);
		queue_drop(&c->back, queue_len(&c->back));
		queue_drop(&c->out, queue_len(&c->out));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static struct keys *k;
	static size_t kept;
	struct conn *c = calloc(1, sizeof(*c));
	size_t used = 0;

	if (!k)
		k = prepare();
	k->leaks = n % 3 == 0 ? LEAKS_STRIP : LEAKS_BLOCK;
	k->said.len = 0;
	memset(&server, 0, sizeof(server));
	if (host_read("web.test", 8, &c->host) != HOST_FINE)
		abort();
	c->port = 443;
	c->open = true;
	c->h2 = keys_h2_new(k, c);
	buf_add(&c->in.bytes, preface, sizeof(preface) - 1);
	run(k, c);
	while (n && !c->dead) {
		size_t some = (size_t)(data[0] >> 1) < n - 1 ? (size_t)(data[0] >> 1) : n - 1;

		if (data[0] & 1) {
			server.at = data + 1;
			server.left = some;
			server.ended |= !some;
		} else {
			buf_add(&c->in.bytes, data + 1, some);
		}
		data += 1 + some;
		n -= 1 + some;
		run(k, c);
		server.left = 0;
	}
	keys_h2_free(k, c->h2);
	ask_clear(k, &c->ask);
	buf_free(&c->in.bytes);
	buf_free(&c->out.bytes);
	buf_free(&c->back.bytes);
	free(c);
	for (size_t i = 0; i < k->safe.granules; i++)
		used += k->safe.used[i] != 0;
	kept = kept ? kept : used;
	assert(used == kept && !k->collected);
	return 0;
}
