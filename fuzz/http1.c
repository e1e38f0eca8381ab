/*
 * Fuzzes the gate of mode http: two bytes of length, the client's bytes, the server's. How they are
 * cut must not matter, and what passes begins with a head that a plain reader finds one right Host
 * in. The proxy's heads too.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rules/sniff.h"

#define NAME "a.example"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct outcome {
	size_t released;
	unsigned reason;
	bool refused, blind;
};

static void client(struct sniff *g, uint8_t *bytes, size_t n, size_t piece, struct outcome *o)
{
	for (size_t at = 0; at < n && !o->refused; at += piece) {
		size_t end = n - at < piece ? n : at + piece, release;

		if (end < o->released)
			continue;
		o->refused = sniff_client(g, bytes + o->released, end - o->released, &release) ==
			     SNIFF_REFUSE;
		assert(release <= end - o->released && !(o->refused && release));
		o->released += release;
	}
}

static struct outcome feed(const uint8_t *bytes, size_t n, const uint8_t *server, size_t m,
			   size_t piece)
{
	struct outcome o = { 0 };
	struct host host;
	struct sniff g;
	uint8_t *held;

	if (host_read(NAME, strlen(NAME), &host) != HOST_FINE)
		abort();
	sniff_init(&g, RULE_HTTP, &host, 80);
	held = malloc(n + 1); /* the gate may change what it releases */
	if (!held)
		abort();
	memcpy(held, bytes, n);
	client(&g, held, n, piece, &o);
	for (size_t at = 0; at < m && !o.refused && !o.blind; at += piece) {
		enum sniff_say say = sniff_server(&g, server + at, m - at < piece ? m - at : piece);

		o.refused = say == SNIFF_REFUSE;
		o.blind = say == SNIFF_BLIND;
	}
	if (!o.refused)
		client(&g, held, n, n + 1, &o);
	free(held);
	o.reason = g.reason;
	return o;
}

/* The first head by the simplest of readers: lines, one Host, and it is the right one. */
static void check_first_head(const char *bytes, size_t n)
{
	const char *end = memmem(bytes, n, "\r\n\r\n", 4);
	unsigned hosts = 0;

	assert(end && !memchr(bytes, '\0', (size_t)(end - bytes)));
	for (const char *line = memchr(bytes, '\n', n); line && line < end;
	     line = memchr(line, '\n', (size_t)(end + 4 - line))) {
		line++;
		if (strncasecmp(line, "host:", 5) != 0)
			continue;
		hosts++;
		line += 5;
		line += strspn(line, " \t");
		assert(strncasecmp(line, NAME, strlen(NAME)) == 0 &&
		       strchr(" \t\r:.", line[strlen(NAME)]));
	}
	assert(hosts == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const size_t pieces[] = { 1, 3, 100 };
	enum http_wrong wrong;
	struct http_proxy proxy;
	struct outcome whole;
	size_t split, scanned = 0;

	if (n < 2)
		return 0;
	split = (size_t)(data[0] << 8 | data[1]);
	data += 2;
	n -= 2;
	split = split < n ? split : n;
	whole = feed(data, split, data + split, n - split, n + 1);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		struct outcome cut = feed(data, split, data + split, n - split, pieces[i]);

		assert(cut.refused == whole.refused && cut.reason == whole.reason &&
		       cut.blind == whole.blind);
		assert(whole.refused || cut.released == whole.released);
	}
	if (whole.released)
		check_first_head((const char *)data, split);
	if (http1_proxy_head(data, n, &scanned, &proxy, &wrong) > 0)
		assert(proxy.port && proxy.host.kind != HOST_NONE && proxy.len <= n);
	return 0;
}
