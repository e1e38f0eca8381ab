/*
 * HTTP/1 on a connection in mode http: every request's Host is the host that was connected to. To
 * find every request the gate follows the framing of both directions, and to follow it safely it
 * refuses what any two servers might read differently: Content-Length beside Transfer-Encoding,
 * either twice, any coding but chunked, folded lines, bare LF or CR, space before the colon, NUL, a
 * second Host, an absolute target for another host, Host in Connection. Websocket upgrades pass
 * (blind after 101), others only if the server declines them; CONNECT is refused.
 */
#ifndef WARD_RULES_HTTP1_H
#define WARD_RULES_HTTP1_H

#include "policy/hostname.h"

#define HTTP1_HEAD_MAX (32 * 1024)
#define HTTP1_HEADERS_MAX 200
/* bytes, of HTTP/2 too: the report of a request begins with it */
#define HTTP_METHOD_MAX 32
#define HTTP1_PIPELINE 64 /* requests that may wait for their answers */

enum http_wrong { HTTP_FINE, HTTP_NOT, HTTP_BAD, HTTP_LARGE, HTTP_OTHER_HOST, HTTP_TUNNEL };

/* A request head, checked. Pointers into the bytes. */
struct http_head {
	size_t len; /* of the head with its empty line */
	const char *method;
	uint16_t method_len;
	uint8_t minor; /* HTTP/1.minor */
	bool connect;  /* CONNECT: host and port are the target's */
	bool absolute; /* http://host/... */
	bool head, upgrade, websocket, chunked, has_length;
	uint64_t length;  /* Content-Length */
	struct host host; /* Host = authority of the target */
	uint16_t port;    /* 0: none was given */
};

/* Reads the head at the start of (bytes, n). 0: more is needed; 1: *ret is a head; -1: *ret_wrong.
 * scanned: where the last call stopped looking, kept by the caller, 0 at first. */
must_check int http1_head(const uint8_t *bytes, size_t n, size_t *scanned, struct http_head *ret,
			  enum http_wrong *ret_wrong);

/* Where a body is. */
struct http_body {
	uint8_t state;
	uint64_t left;
	uint32_t line; /* bytes of the chunk-size or trailer line so far */
};

/* An answer's head in the reading, as a stream. */
struct http_answer {
	uint8_t state;
	uint8_t name_len, value_len;
	bool chunked, coded, has_length, bad;
	uint16_t status;
	uint32_t bytes;
	uint64_t length;
	char name[20];
	char value[24];
};

struct http_sniff {
	struct host host;
	uint16_t port;
	uint8_t wrong; /* enum http_wrong */
	bool blind;
	/* an upgrade was asked for: nothing more before its answer */
	bool waiting;
	/* the last http_sniff_client() left bytes held until answers come */
	bool stalled;
	bool lost; /* the answers can no longer be matched to requests */
	size_t scanned;
	struct http_body up;   /* the request body */
	struct http_body down; /* the response body */
	struct http_answer answer;
	uint8_t first, count;          /* requests without an answer yet, a ring */
	uint8_t asked[HTTP1_PIPELINE]; /* what each was: HEAD, upgrade, websocket */
};

void http_sniff_init(struct http_sniff *g, const struct host *host, uint16_t port);
must_check size_t http_sniff_client(struct http_sniff *g, uint8_t *held, size_t n);
/* True: a stalled request may go now. */
bool http_sniff_server(struct http_sniff *g, const uint8_t *bytes, size_t n);

/* Whether no answer of the server is due or under way: one of our own would be understood. */
bool http_sniff_is_quiet(const struct http_sniff *g);

/* The proxy listener (3128): "CONNECT host:port" or "GET http://host/" as the first head of a
 * connection. 0: more is needed. 1: *ret_host and *ret_port are wanted; *ret_tunnel: CONNECT,
 * *ret_len bytes of head are to be dropped and http1_proxy_reply(200) sent once connected; else the
 * bytes go through a gate of mode http from their first one on. -1: *ret_wrong, answer
 * http1_proxy_reply(400). */
struct http_proxy {
	struct host host;
	uint16_t port;
	bool tunnel;
	size_t len;
};
must_check int http1_proxy_head(const uint8_t *bytes, size_t n, size_t *scanned,
				struct http_proxy *ret, enum http_wrong *ret_wrong);
/* Status 200, 400, 403, 429, 502 or 504 as a whole answer. Static text. */
const char *http1_proxy_reply(unsigned status);

#endif
