/*
 * SOCKS5 (RFC 1928) as programs inside speak it to the gateway: no authentication, CONNECT only, by
 * name (socks5h) or address. BIND, UDP ASSOCIATE and SOCKS4 are refused. Pure functions over the
 * bytes received so far.
 */
#ifndef WARD_RULES_SOCKS_H
#define WARD_RULES_SOCKS_H

#include "policy/hostname.h"

#define SOCKS_MAX 264 /* bytes of any message */
#define SOCKS_REPLY_MAX 10

enum socks_code {
	SOCKS_OK,
	SOCKS_FAILED,
	SOCKS_NOT_ALLOWED,
	SOCKS_NET_UNREACHABLE,
	SOCKS_HOST_UNREACHABLE,
	SOCKS_REFUSED,
	SOCKS_EXPIRED,
	SOCKS_COMMAND,
	SOCKS_ADDRESS
};

/* The greeting. 0: more is needed. > 0: its length; send *ret_reply (2 bytes); when its second byte
 * is 0xff, close. -1: not SOCKS5: close. */
must_check int socks_greeting(const uint8_t *bytes, size_t n, uint8_t ret_reply[2]);

/* The request. 0: more is needed. > 0: its length, *ret_host and *ret_port are wanted. -1: send
 * socks_reply(*ret_code), close. */
must_check int socks_request(const uint8_t *bytes, size_t n, struct host *ret_host,
			     uint16_t *ret_port, enum socks_code *ret_code);

/* The answer to a request. Returns its length. */
size_t socks_reply(enum socks_code code, uint8_t out[SOCKS_REPLY_MAX]);

#endif
