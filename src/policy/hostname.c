/*
 * The canonical form of names and addresses. In: bytes that a program inside, or a policy, wrote.
 * Out: struct host, or what is wrong with them. Nothing is repaired: a spelling that one program
 * takes for an address and another for a name, or for another address, is refused. The last label
 * decides: if inet_aton() could take it for a number, the whole must be an address in its usual
 * form. Pure functions; run by the policy reader and by the gateway's parsing process. Fuzzed
 * (fuzz/hostname.c).
 */
#include <arpa/inet.h>
#include <string.h>

#include "policy/hostname.h"

#define LABEL_MAX 63

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* What a character of a name becomes; 0: names do not have it. Names are read for every rule and
 * every connection. */
static const char name_characters[256] = {
	['-'] = '-', ['.'] = '.', ['_'] = '_', ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3',
	['4'] = '4', ['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9', ['A'] = 'a',
	['B'] = 'b', ['C'] = 'c', ['D'] = 'd', ['E'] = 'e', ['F'] = 'f', ['G'] = 'g', ['H'] = 'h',
	['I'] = 'i', ['J'] = 'j', ['K'] = 'k', ['L'] = 'l', ['M'] = 'm', ['N'] = 'n', ['O'] = 'o',
	['P'] = 'p', ['Q'] = 'q', ['R'] = 'r', ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v',
	['W'] = 'w', ['X'] = 'x', ['Y'] = 'y', ['Z'] = 'z', ['a'] = 'a', ['b'] = 'b', ['c'] = 'c',
	['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['g'] = 'g', ['h'] = 'h', ['i'] = 'i', ['j'] = 'j',
	['k'] = 'k', ['l'] = 'l', ['m'] = 'm', ['n'] = 'n', ['o'] = 'o', ['p'] = 'p', ['q'] = 'q',
	['r'] = 'r', ['s'] = 's', ['t'] = 't', ['u'] = 'u', ['v'] = 'v', ['w'] = 'w', ['x'] = 'x',
	['y'] = 'y', ['z'] = 'z',
};

struct ip ip_from_4(const uint8_t bytes[4])
{
	struct ip ip = { .family = 4 };

	memcpy(ip.bytes, bytes, 4);
	return ip;
}

struct ip ip_from_16(const uint8_t bytes[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ip ip = { .family = 6 };

	if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
		return ip_from_4(bytes + 12);
	memcpy(ip.bytes, bytes, 16);
	return ip;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool ip_within(const struct ip *a, const struct ip *block, unsigned prefix)
{
	size_t whole = prefix / 8;
	unsigned rest = prefix % 8;

	if (a->family != block->family || prefix > (a->family == 4 ? 32 : 128))
		return false;
	if (memcmp(a->bytes, block->bytes, whole) != 0)
		return false;
	return !rest || ((a->bytes[whole] ^ block->bytes[whole]) >> (8 - rest)) == 0;
}

/* Every connection is reported with its address: printf would be half of what that costs. */
static const char *ip4_text(const uint8_t bytes[4], char *out)
{
	char *at = out;

	for (unsigned i = 0; i < 4; i++) {
		if (i)
			*at++ = '.';
		if (bytes[i] >= 100)
			*at++ = (char)('0' + bytes[i] / 100);
		if (bytes[i] >= 10)
			*at++ = (char)('0' + bytes[i] / 10 % 10);
		*at++ = (char)('0' + bytes[i] % 10);
	}
	*at = '\0';
	return out;
}

const char *ip_text(const struct ip *a, char out[HOST_TEXT])
{
	if (a->family == 4)
		return ip4_text(a->bytes, out);
	if (!a->family || !inet_ntop(AF_INET6, a->bytes, out, HOST_TEXT))
		out[0] = '\0';
	return out;
}

/* Four numbers from 0 to 255 in decimal without zeros in front; nothing else is one. */
static bool read_ip4(const char *s, size_t n, struct ip *ret)
{
	uint8_t bytes[4];
	size_t at = 0;

	for (unsigned part = 0; part < 4; part++) {
		unsigned value = 0;
		size_t start;

		if (part && (at >= n || s[at++] != '.'))
			return false;
		start = at;
		while (at < n && is_digit(s[at]) && at - start < 3)
			value = value * 10 + (unsigned)(s[at++] - '0');
		if (at == start || value > 255 || (s[start] == '0' && at - start > 1))
			return false;
		bytes[part] = (uint8_t)value;
	}
	if (at != n)
		return false;
	*ret = ip_from_4(bytes);
	return true;
}

/* inet_pton() takes hexadecimal groups and a dotted tail, and neither zones nor brackets. */
static bool read_ip6(const char *s, size_t n, struct ip *ret)
{
	char text[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (n >= sizeof(text) || memchr(s, '\0', n))
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	if (inet_pton(AF_INET6, text, bytes) != 1)
		return false;
	*ret = ip_from_16(bytes);
	return true;
}

/* What inet_aton() and friends would take for a number. */
static bool looks_numeric(const char *label, size_t n)
{
	size_t at = 0;

	if (n >= 2 && label[0] == '0' && label[1] == 'x') {
		for (at = 2; at < n && is_hex(label[at]); at++)
			;
		return at == n;
	}
	while (at < n && is_digit(label[at]))
		at++;
	return at == n;
}

static bool is_label(const char *label, size_t n)
{
	return n && n <= LABEL_MAX && label[0] != '-' && label[n - 1] != '-';
}

/* Copies a name without trailing dot in lower case and checks its labels; what is wrong first
 * counts. */
static enum host_wrong copy_labels(const char *name, size_t n, char *ret_name, size_t *ret_last)
{
	size_t start = 0;

	for (size_t i = 0; i < n; i++) {
		char c = name_characters[(unsigned char)name[i]];

		ret_name[i] = c;
		if (c > '.')
			continue;
		if (!c)
			return HOST_CHARACTER;
		if (c == '-')
			continue;
		if (!is_label(ret_name + start, i - start))
			return HOST_LABEL;
		start = i + 1;
	}
	*ret_last = start;
	return is_label(ret_name + start, n - start) ? HOST_FINE : HOST_LABEL;
}

static enum host_wrong read_address6(const char *bytes, size_t n, struct host *ret)
{
	if (!read_ip6(bytes, n, &ret->ip))
		return HOST_SPELLING;
	ret->kind = HOST_ADDRESS;
	return HOST_FINE;
}

enum host_wrong host_read(const char *bytes, size_t n, struct host *ret)
{
	enum host_wrong wrong;
	size_t last = 0;

	memset(ret, 0, sizeof(*ret));
	if (n >= 2 && bytes[0] == '[')
		return bytes[n - 1] == ']' ? read_address6(bytes + 1, n - 2, ret) : HOST_SPELLING;
	if (n && n < INET6_ADDRSTRLEN && memchr(bytes, ':', n))
		return read_address6(bytes, n, ret);
	if (n && bytes[n - 1] == '.')
		n--;
	if (!n)
		return HOST_EMPTY;
	if (n > HOSTNAME_MAX)
		return HOST_LONG;
	wrong = copy_labels(bytes, n, ret->name, &last);
	if (wrong == HOST_FINE && looks_numeric(ret->name + last, n - last)) {
		wrong = read_ip4(ret->name, n, &ret->ip) ? HOST_FINE : HOST_SPELLING;
		memset(ret->name, 0, n);
		ret->kind = wrong == HOST_FINE ? HOST_ADDRESS : HOST_NONE;
		return wrong;
	}
	if (wrong != HOST_FINE) {
		memset(ret, 0, sizeof(*ret));
		return wrong;
	}
	ret->kind = HOST_NAME;
	ret->len = (uint8_t)n;
	return HOST_FINE;
}

static bool read_port(const char *s, size_t n, uint16_t *ret)
{
	unsigned value = 0;

	if (!n || n > 5 || s[0] == '0')
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(s[i]))
			return false;
		value = value * 10 + (unsigned)(s[i] - '0');
	}
	*ret = (uint16_t)value;
	return value <= 65535;
}

enum host_wrong host_read_port(const char *bytes, size_t n, struct host *ret, uint16_t *ret_port)
{
	const char *open = n && bytes[0] == '[' ? memchr(bytes, ']', n) : bytes;
	const char *colon = open ? memchr(open, ':', n - (size_t)(open - bytes)) : NULL;
	size_t host_len = colon ? (size_t)(colon - bytes) : n;
	uint16_t port = 0;

	memset(ret, 0, sizeof(*ret));
	*ret_port = 0;
	if (!open || (colon && !read_port(colon + 1, n - host_len - 1, &port)))
		return HOST_SPELLING;
	*ret_port = port;
	return host_read(bytes, host_len, ret);
}

bool host_equal(const struct host *a, const struct host *b)
{
	if (a->kind != b->kind || a->kind == HOST_NONE)
		return false;
	if (a->kind == HOST_ADDRESS)
		return ip_equal(&a->ip, &b->ip);
	return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

const char *host_text(const struct host *h, char out[HOST_TEXT])
{
	if (h->kind == HOST_ADDRESS)
		return ip_text(&h->ip, out);
	memcpy(out, h->name, (size_t)h->len + 1);
	return out;
}
