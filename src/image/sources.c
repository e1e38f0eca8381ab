/*
 * Where a package manager fetches from. In: the bytes of sources.list or *.sources, which an image
 * brought. Out: hosts and ports. They become rules of a sandbox's network, so a name has letters,
 * digits, dots and hyphens only, and addresses are left out.
 */
#include "image/sources.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"

#define HOST_MAX 253

static bool is_host(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '-';
}

/* A name, and no address in any spelling: its last label begins with a letter, and is no
 * hexadecimal number. An address could be a private one, which the gateway gives to the process
 * that names it. */
static bool is_name(const char *host, size_t n)
{
	size_t last;

	if (n && host[n - 1] == '.')
		n--;
	for (last = n; last && host[last - 1] != '.'; last--)
		;
	return last && last < n &&
	       ((host[last] >= 'a' && host[last] <= 'z') ||
		(host[last] >= 'A' && host[last] <= 'Z'));
}

static void add_once(struct strv *out, const char *host, size_t n, unsigned port)
{
	char text[HOST_MAX + 8];

	snprintf(text, sizeof(text), "%.*s:%u", (int)n, host, port);
	for (size_t i = 0; i < out->len; i++)
		if (strcmp(out->items[i], text) == 0)
			return;
	if (out->len < SOURCES_HOSTS_MAX)
		strv_add(out, text);
}

/* What stands behind "//": [USER@]HOST[:PORT][/...]. A client that is logged in with a name is left
 * out: it is no mirror. */
static void read_host(const char *at, const char *end, unsigned port, struct strv *out)
{
	const char *host = at;
	unsigned digits = 0;

	while (at < end && is_host(*at))
		at++;
	if (at == host || (size_t)(at - host) > HOST_MAX || *host == '-' || *host == '.' ||
	    !is_name(host, (size_t)(at - host)))
		return;
	if (at < end && *at == ':') {
		const char *p = at + 1;

		for (port = 0; p < end && *p >= '0' && *p <= '9' && digits < 6; p++, digits++)
			port = port * 10 + (unsigned)(*p - '0');
		if (!digits || !port || port > 65535 || (p < end && *p == '@'))
			return;
		add_once(out, host, (size_t)(at - host), port);
		return;
	}
	if (at == end || *at == '/' || *at == ' ' || *at == '\t')
		add_once(out, host, (size_t)(at - host), port);
}

static void read_line(const char *line, const char *end, struct strv *out)
{
	static const struct {
		const char *text;
		unsigned port;
	} schemes[] = { { "http://", 80 }, { "https://", 443 } };

	for (const char *at = line; at < end; at++)
		for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
			size_t n = strlen(schemes[i].text);

			if ((size_t)(end - at) > n && memcmp(at, schemes[i].text, n) == 0)
				read_host(at + n, end, schemes[i].port, out);
		}
}

void sources_hosts(const char *bytes, size_t n, struct strv *out)
{
	const char *end = bytes + n;

	for (const char *line = bytes; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		const char *first = line;

		if (!stop)
			stop = end;
		while (first < stop && (*first == ' ' || *first == '\t'))
			first++;
		if (first < stop && *first != '#')
			read_line(first, stop, out);
		line = stop + 1;
	}
}
