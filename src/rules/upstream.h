/*
 * The proxy that the gateway itself has to use (network.upstream_proxy). A URL:
 * http://[user:password@]host[:port], socks5:// or socks5h:// (the same here). Before a
 * connection's own bytes flow, the proxy is talked into it:
 *
 *   upstream_begin(&talk, proxy, &target, port)      then send talk.out (talk.out_len bytes)
 *   upstream_take(&talk, proxy, bytes, n) what the proxy says: all of it since the last `used`
 *   bytes were dropped
 *     UPSTREAM_MORE     read more
 *     UPSTREAM_SEND     send talk.out, drop talk.used bytes, go on
 *     UPSTREAM_OPEN     drop talk.used bytes: what is behind them is the server's
 *     UPSTREAM_REFUSED close; talk.status is HTTP's, or 1000 + SOCKS's code (0: it spoke something
 *     else)
 *
 * The target may be a name (the proxy resolves it) or an address. Credentials go to the proxy and
 * nowhere else. Pure.
 */
#ifndef WARD_RULES_UPSTREAM_H
#define WARD_RULES_UPSTREAM_H

#include "base/err.h"
#include "policy/hostname.h"

#define UPSTREAM_WORD 255 /* bytes of a user name or password, as SOCKS has room for */
#define UPSTREAM_OUT 2048
#define UPSTREAM_ANSWER_MAX (16 * 1024)

enum upstream_kind { UPSTREAM_HTTP, UPSTREAM_SOCKS };

struct upstream {
	uint8_t kind;                   /* enum upstream_kind */
	uint8_t user_len, password_len; /* user_len 0: no credentials */
	uint16_t port;
	struct host host;
	char user[UPSTREAM_WORD + 1], password[UPSTREAM_WORD + 1];
};

enum upstream_say { UPSTREAM_MORE, UPSTREAM_SEND, UPSTREAM_OPEN, UPSTREAM_REFUSED };

struct upstream_talk {
	uint8_t state;
	uint16_t port;
	uint16_t status;
	uint16_t out_len;
	size_t used, scanned;
	struct host target;
	uint8_t out[UPSTREAM_OUT];
};

/* Takes a URL apart. -EINVAL with *e, which never has the password in it. */
must_check int upstream_parse(const char *url, struct upstream *ret, struct ward_err *e);

void upstream_begin(struct upstream_talk *t, const struct upstream *u, const struct host *target,
		    uint16_t port);
must_check enum upstream_say upstream_take(struct upstream_talk *t, const struct upstream *u,
					   const uint8_t *bytes, size_t n);

#endif
