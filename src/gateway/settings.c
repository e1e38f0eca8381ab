/*
 * The host's resolver settings. In: the text of resolv.conf. Out: its name servers, as c-ares takes
 * them. Read anew when the file changes while a gateway runs; at the start c-ares reads it itself.
 * What else may stand there (search lists, options) does not matter here: names are whole. A pure
 * function; dial calls it with bytes that it got by descriptor.
 */
#include <string.h>

#include "gateway/hosts.h"

#define SERVERS_MAX 3 /* as everywhere */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* One line; true if it names a server that can be used. */
static bool add_server(const char *at, const char *end, struct buf *out)
{
	static const char key[] = "nameserver";
	const size_t n = sizeof(key) - 1;
	char text[HOST_TEXT];
	struct host host;
	const char *stop;

	if ((size_t)(end - at) <= n || memcmp(at, key, n) != 0 || !is_space(at[n]))
		return false;
	for (at += n; at < end && is_space(*at); at++)
		;
	for (stop = at; stop < end && !is_space(*stop) && *stop != '#' && *stop != ';'; stop++)
		;
	if (host_read(at, (size_t)(stop - at), &host) != HOST_FINE || host.kind != HOST_ADDRESS)
		return false;
	buf_printf(out, "%s%s", out->len ? "," : "", ip_text(&host.ip, text));
	return true;
}

void settings_servers(const char *text, size_t n, struct buf *out)
{
	const char *at = text, *end = text + n;
	unsigned count = 0;

	while (at < end && count < SERVERS_MAX) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		if (!line_end)
			line_end = end;
		count += add_server(at, line_end, out);
		at = line_end + 1;
	}
	if (!count)
		buf_puts(out, "127.0.0.1");
}
