/*
 * Fuzzes the gate of mode splice: two bytes of length, the client's bytes, the server's. How they
 * are cut must not matter, and what passes has, by another reader that puts the records together
 * first, one ClientHello with the right name in front.
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

static struct outcome feed(const uint8_t *client, size_t n, const uint8_t *server, size_t m,
			   size_t piece)
{
	struct outcome o = { 0 };
	struct host host;
	struct sniff g;

	if (host_read(NAME, strlen(NAME), &host) != HOST_FINE)
		abort();
	sniff_init(&g, RULE_SPLICE, &host, 443);
	for (size_t at = 0; at < n && !o.refused; at += piece) {
		size_t end = n - at < piece ? n : at + piece, release;

		o.refused = sniff_client(&g, (uint8_t *)(uintptr_t)client + o.released,
					 end - o.released, &release) == SNIFF_REFUSE;
		assert(release <= end - o.released && !(o.refused && release));
		o.released += release;
	}
	for (size_t at = 0; at < m && !o.refused && !o.blind; at += piece) {
		enum sniff_say say = sniff_server(&g, server + at, m - at < piece ? m - at : piece);

		o.refused = say == SNIFF_REFUSE;
		o.blind = say == SNIFF_BLIND;
	}
	o.reason = g.reason;
	return o;
}

static unsigned be16(const uint8_t *p)
{
	return (unsigned)(p[0] << 8 | p[1]);
}

/* The name of the first ClientHello, records put together first. */
static bool plain_name(const uint8_t *bytes, size_t n, const uint8_t **ret_name, size_t *ret_len)
{
	static uint8_t message[TLS_HELLO_MAX + 4];
	size_t have = 0, at = 0, need = 4;

	while (have < need) {
		size_t some;

		if (n - at < 5 || bytes[at] != 22 || n - at - 5 < be16(bytes + at + 3))
			return false;
		some = be16(bytes + at + 3);
		if (have + some > sizeof(message))
			return false;
		memcpy(message + have, bytes + at + 5, some);
		have += some;
		at += 5 + some;
		if (have >= 4)
			need = 4 + (size_t)(message[1] << 16 | message[2] << 8 | message[3]);
	}
	at = 4 + 2 + 32;
	at += 1 + message[at];
	at += 2 + be16(message + at);
	at += 1 + message[at];
	at += 2;
	while (at + 4 <= need) {
		if (be16(message + at) == 0) {
			*ret_len = be16(message + at + 7);
			*ret_name = message + at + 9;
			return true;
		}
		at += 4 + be16(message + at + 2);
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const size_t pieces[] = { 1, 3, 1000 };
	const uint8_t *name;
	struct outcome whole;
	size_t split, len;

	if (n < 2)
		return 0;
	split = be16(data);
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
	if (whole.released) {
		assert(plain_name(data, split, &name, &len));
		assert((len == strlen(NAME) || (len == strlen(NAME) + 1 && name[len - 1] == '.')) &&
		       strncasecmp((const char *)name, NAME, strlen(NAME)) == 0);
	}
	return 0;
}
