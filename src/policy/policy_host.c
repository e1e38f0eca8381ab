/*
 * Hosts in egress rules. In: "host[:port]" as a policy writes it. Out: one canonical form, or what
 * is wrong with it. A name, *.suffix, * (every public name), an IPv4 or IPv6 address, or a CIDR
 * block. Everything that different programs read differently is refused: addresses in decimal,
 * octal, hexadecimal or shortened form, IPv4 inside IPv6, zones, empty labels, host bits behind a
 * prefix. Names in other scripts become A-labels (policy/idna.h). A pure function, fuzzed
 * (fuzz/policy.c).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "policy/hostname.h"
#include "policy/idna.h"
#include "policy/policy_value.h"
#include "policy/units.h"

#define HOST_MAX 255

static const char not_a_host[] = "a host name, *.suffix, an IP address or a CIDR block";

static const char *check_name(char *host)
{
	bool wild = strncmp(host, "*.", 2) == 0;
	char *at = wild ? host + 2 : host;
	struct host name;

	if (strcmp(host, "*") == 0 || strcmp(host, "*.") == 0) {
		host[1] = '\0';
		return NULL;
	}
	switch (host_read(at, strlen(at), &name)) {
	case HOST_FINE:
		break;
	case HOST_LONG:
		return "a host name of at most 253 characters";
	case HOST_SPELLING:
		return "an address in its usual notation: 192.0.2.1";
	case HOST_CHARACTER:
	case HOST_LABEL:
	case HOST_EMPTY:
		return strchr(host, '*') ? "* only on its own or as the first label: *.example.com"
					 : not_a_host;
	}
	if (name.kind != HOST_NAME || strlen(name.name) + (wild ? 2 : 0) > HOSTNAME_MAX)
		return not_a_host;
	memcpy(at, name.name, (size_t)name.len + 1);
	return NULL;
}

static bool has_host_bits(const unsigned char *address, size_t bytes, unsigned prefix)
{
	for (unsigned bit = prefix; bit < bytes * 8; bit++)
		if (address[bit / 8] & (0x80 >> (bit % 8)))
			return true;
	return false;
}

/* Whether host is an address or a block; then *ret_wrong says what is wrong with it, if
 * anything. */
static bool check_address(const char *host, const char **ret_wrong)
{
	unsigned char address[16];
	char bare[HOST_MAX + 1];
	size_t n = strcspn(host, "/");
	bool v6 = strchr(host, ':') != NULL;
	uint64_t prefix = v6 ? 128 : 32;

	memcpy(bare, host, n);
	bare[n] = '\0';
	*ret_wrong = NULL;
	if (inet_pton(v6 ? AF_INET6 : AF_INET, bare, address) != 1) {
		*ret_wrong = v6 || host[n] ? "an IP address or a CIDR block" : NULL;
		return v6 || host[n];
	}
	if (v6 && strchr(bare, '.'))
		*ret_wrong = "an IPv4 address written as one, not inside an IPv6 address";
	else if (host[n] &&
		 (units_parse_uint(host + n + 1, &prefix) < 0 || prefix > (v6 ? 128 : 32)))
		*ret_wrong = v6 ? "a prefix length from 0 to 128" : "a prefix length from 0 to 32";
	else if (has_host_bits(address, v6 ? 16 : 4, (unsigned)prefix))
		*ret_wrong = "a CIDR block whose bits after the prefix are 0: 10.0.0.0/8";
	return true;
}

static const char *check_host(char *host)
{
	char ascii[HOST_MAX + 1];
	const char *wrong = NULL;
	bool plain = true;

	for (char *c = host; *c; c++) {
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
		plain &= (unsigned char)*c < 0x80;
	}
	if (!plain) {
		wrong = idna_to_ascii(host, ascii, sizeof(ascii));
		if (wrong)
			return wrong;
		memcpy(host, ascii, strlen(ascii) + 1);
	}
	if (check_address(host, &wrong))
		return wrong;
	return check_name(host);
}

/* Where the port of text begins (behind its colon), NULL if there is none. */
static const char *find_port(const char *text)
{
	const char *first = strchr(text, ':');
	const char *closed = strchr(text, ']');

	if (*text == '[')
		return closed && closed[1] == ':' ? closed + 2 : NULL;
	/* more than one colon and no bracket: an IPv6 address without a port */
	return first && !strchr(first + 1, ':') ? first + 1 : NULL;
}

const char *host_parse(const char *text, bool with_port, char ret_host[256], unsigned *ret_port)
{
	const char *port = with_port ? find_port(text) : NULL;
	size_t n = port ? (size_t)(port - 1 - text) : strlen(text);
	uint64_t number = 0;
	struct host name;

	*ret_port = 0;
	if (port && (units_parse_uint(port, &number) < 0 || number < 1 || number > 65535))
		return "a port from 1 to 65535 after the colon";
	if (*text == '[') {
		if (n < 2 || text[n - 1] != ']' || !memchr(text, ':', n))
			return "an IPv6 address in the brackets";
		text++;
		n -= 2;
	}
	if (n == 0 || n > HOST_MAX)
		return not_a_host;
	*ret_port = (unsigned)number;
	/* a name in ASCII, as nearly all are, has nothing more to be asked */
	if (host_read(text, n, &name) == HOST_FINE && name.kind == HOST_NAME) {
		memcpy(ret_host, name.name, (size_t)name.len + 1);
		return NULL;
	}
	memcpy(ret_host, text, n);
	ret_host[n] = '\0';
	return check_host(ret_host);
}
