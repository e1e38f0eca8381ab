/*
 * SOCKS5 requests. In: what a program has sent so far. Out: the host and port it wants, or the code
 * to answer. One message at a time, each of a length that its own bytes say and that is bounded.
 * Pure; run by the gateway's parsing process. Fuzzed (fuzz/socks.c).
 */
#include <string.h>

#include "rules/socks.h"

enum { VERSION = 5, CONNECT = 1, NO_AUTHENTICATION = 0, NO_METHOD = 0xff };
enum { ADDRESS_4 = 1, ADDRESS_NAME = 3, ADDRESS_6 = 4 };

int socks_greeting(const uint8_t *bytes, size_t n, uint8_t ret_reply[2])
{
	ret_reply[0] = VERSION;
	ret_reply[1] = NO_METHOD;
	if (n && bytes[0] != VERSION)
		return -1;
	if (n < 2 || n < 2u + bytes[1])
		return 0;
	if (memchr(bytes + 2, NO_AUTHENTICATION, bytes[1]))
		ret_reply[1] = NO_AUTHENTICATION;
	return 2 + bytes[1];
}

static int refuse(enum socks_code code, enum socks_code *ret_code)
{
	*ret_code = code;
	return -1;
}

/* Where the port is, 0: more is needed, -1: no such kind of address. */
static int port_at(const uint8_t *bytes, size_t n)
{
	if (bytes[3] == ADDRESS_4)
		return 8;
	if (bytes[3] == ADDRESS_6)
		return 20;
	if (bytes[3] != ADDRESS_NAME)
		return -1;
	return n < 5 ? 0 : 5 + bytes[4];
}

static bool read_host(const uint8_t *bytes, struct host *ret)
{
	if (bytes[3] == ADDRESS_NAME)
		return host_read((const char *)bytes + 5, bytes[4], ret) == HOST_FINE;
	memset(ret, 0, sizeof(*ret));
	ret->kind = HOST_ADDRESS;
	ret->ip = bytes[3] == ADDRESS_4 ? ip_from_4(bytes + 4) : ip_from_16(bytes + 4);
	return true;
}

int socks_request(const uint8_t *bytes, size_t n, struct host *ret_host, uint16_t *ret_port,
		  enum socks_code *ret_code)
{
	int at;

	*ret_code = SOCKS_OK;
	*ret_port = 0;
	memset(ret_host, 0, sizeof(*ret_host));
	if (n && bytes[0] != VERSION)
		return refuse(SOCKS_FAILED, ret_code);
	if (n >= 2 && bytes[1] != CONNECT)
		return refuse(SOCKS_COMMAND, ret_code);
	if (n < 4)
		return 0;
	at = port_at(bytes, n);
	if (at < 0)
		return refuse(SOCKS_ADDRESS, ret_code);
	if (!at || n < (size_t)at + 2)
		return 0;
	*ret_port = (uint16_t)(bytes[at] << 8 | bytes[at + 1]);
	if (bytes[2] || !*ret_port || !read_host(bytes, ret_host))
		return refuse(SOCKS_NOT_ALLOWED, ret_code);
	return at + 2;
}

size_t socks_reply(enum socks_code code, uint8_t out[SOCKS_REPLY_MAX])
{
	memset(out, 0, SOCKS_REPLY_MAX);
	out[0] = VERSION;
	out[1] = (uint8_t)code;
	out[3] = ADDRESS_4;
	return SOCKS_REPLY_MAX;
}
