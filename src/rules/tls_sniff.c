/*
 * The gate of a connection in mode splice. In: the client's bytes that no process has sent on yet,
 * and the server's as they pass. Out: how many of the client's may go, and when both directions are
 * encrypted and need no more looking at. Handshake records of the client are held until the
 * ClientHello in them is whole and names the right host; what is no handshake passes once a first
 * one did. The server's ServerHello (not a HelloRetryRequest) ends it. Run by the gateway's parsing
 * process. Fuzzed (fuzz/hello.c).
 */
#include <string.h>

#include "rules/tls_hello.h"

enum { CHANGE_CIPHER = 20, ALERT = 21, HANDSHAKE = 22, DATA = 23 };
enum { SERVER_HELLO = 2 };

#define RECORD_MAX 16384
#define RECORD_ENCRYPTED_MAX (RECORD_MAX + 256)

/* The random of a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3). */
static const uint8_t retry_random[32] = {
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
	0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
	0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
};

void tls_sniff_init(struct tls_sniff *g, const struct host *host)
{
	memset(g, 0, sizeof(*g));
	g->host = *host;
	tls_hello_init(&g->hello);
}

static void refuse(struct tls_sniff *g, enum tls_hello_wrong wrong)
{
	g->wrong = (uint8_t)wrong;
}

/* One byte of a record header: wrong at the first byte that is none. */
static void take_header(struct tls_sniff *g, uint8_t byte)
{
	unsigned length;

	g->header[g->header_len++] = byte;
	if (g->header_len == 1 &&
	    (byte < CHANGE_CIPHER || byte > DATA || (!g->greeted && byte != HANDSHAKE)))
		/* SSLv2 sets the upper bit */
		refuse(g, byte & 0x80 ? TLS_HELLO_OLD : TLS_HELLO_NOT_TLS);
	else if (g->header_len == 2 && byte != 3)
		refuse(g, TLS_HELLO_NOT_TLS);
	if (g->header_len < 5)
		return;
	length = (unsigned)(g->header[3] << 8 | g->header[4]);
	if (g->header[0] == HANDSHAKE ? !length || length > RECORD_MAX
				      : length > RECORD_ENCRYPTED_MAX)
		refuse(g, TLS_HELLO_OLD);
	/* nothing comes between the parts of a message */
	if (g->header[0] != HANDSHAKE && g->hello.begun)
		refuse(g, TLS_HELLO_OLD);
	g->record_left = length;
}

/* The message is whole: is it for the right host, and is it all? */
static void check_hello(struct tls_sniff *g, bool ends_record)
{
	struct host name;

	if (!ends_record)
		refuse(g, TLS_HELLO_OLD);
	else if (host_read(g->hello.name, g->hello.name_len, &name) != HOST_FINE ||
		 !host_equal(&name, &g->host))
		refuse(g, TLS_HELLO_OTHER_NAME);
	g->greeted = true;
	tls_hello_init(&g->hello);
}

static size_t take_record(struct tls_sniff *g, const uint8_t *bytes, size_t n)
{
	size_t some = n < g->record_left ? n : g->record_left;

	if (g->header[0] == HANDSHAKE) {
		size_t used = tls_hello_take(&g->hello, bytes, some);

		if (g->hello.wrong)
			refuse(g, (enum tls_hello_wrong)g->hello.wrong);
		else if (g->hello.done)
			check_hello(g, used == g->record_left);
	}
	g->record_left -= (uint32_t)some;
	return some;
}

size_t tls_sniff_client(struct tls_sniff *g, const uint8_t *held, size_t n)
{
	size_t release = 0;

	while (g->seen < n && !g->wrong && !g->blind) {
		if (g->header_len < 5)
			take_header(g, held[g->seen++]);
		else
			g->seen += (uint32_t)take_record(g, held + g->seen, n - g->seen);
		if (g->wrong || g->header_len < 5)
			continue;
		if (!g->record_left)
			g->header_len = 0;
		if (g->header[0] != HANDSHAKE || !g->hello.begun)
			release = g->header[0] == HANDSHAKE && g->record_left ? release : g->seen;
	}
	if (g->wrong)
		return 0;
	if (g->blind)
		release = n;
	else if (n - release > TLS_HELLO_HELD_MAX)
		refuse(g, TLS_HELLO_LARGE);
	g->seen -= release < g->seen ? (uint32_t)release : g->seen;
	return g->wrong ? 0 : release;
}

/* The beginning of the server's message is there: a hello, and which. */
static void check_server_hello(struct tls_sniff *g)
{
	uint32_t length =
		(uint32_t)(g->server_bytes[1] << 16 | g->server_bytes[2] << 8 | g->server_bytes[3]);

	if (length < sizeof(g->server_bytes) - 4) {
		refuse(g, TLS_HELLO_OLD);
	} else if (memcmp(g->server_bytes + 6, retry_random, sizeof(retry_random)) != 0) {
		g->blind = true;
	} else if (g->retried) {
		refuse(g, TLS_HELLO_OLD); /* one retry is all there is */
	} else {
		g->retried = true;
		g->server_skip = length - (uint32_t)(sizeof(g->server_bytes) - 4);
		g->server_len = 0;
	}
}

static void take_server_handshake(struct tls_sniff *g, uint8_t byte)
{
	if (g->server_skip) {
		g->server_skip--;
		return;
	}
	g->server_bytes[g->server_len++] = byte;
	if (g->server_len == 1 && byte != SERVER_HELLO)
		refuse(g, TLS_HELLO_NOT_TLS);
	else if (g->server_len == sizeof(g->server_bytes))
		check_server_hello(g);
}

static void take_server_header(struct tls_sniff *g, uint8_t byte)
{
	g->server_header[g->server_header_len++] = byte;
	if (g->server_header_len == 1 && (byte < CHANGE_CIPHER || byte > HANDSHAKE))
		refuse(g, TLS_HELLO_NOT_TLS);
	else if (g->server_header_len == 2 && byte != 3)
		refuse(g, TLS_HELLO_NOT_TLS);
	if (g->server_header_len < 5)
		return;
	g->server_left = (uint32_t)(g->server_header[3] << 8 | g->server_header[4]);
	if (!g->server_left || g->server_left > RECORD_ENCRYPTED_MAX)
		refuse(g, TLS_HELLO_OLD);
}

void tls_sniff_server(struct tls_sniff *g, const uint8_t *bytes, size_t n)
{
	if (n && !g->greeted)
		/* a client that speaks first on this port does not speak TLS */
		refuse(g, TLS_HELLO_NOT_TLS);
	for (size_t i = 0; i < n && !g->wrong && !g->blind; i++) {
		if (g->server_header_len < 5) {
			take_server_header(g, bytes[i]);
			continue;
		}
		if (g->server_header[0] == HANDSHAKE)
			take_server_handshake(g, bytes[i]);
		if (!--g->server_left)
			g->server_header_len = 0;
	}
}
