/*
 * The host's table of names. In: the text of /etc/hosts, and a canonical name. Out: its addresses.
 * Names there are compared in the same canonical form as everywhere. A pure function; dial calls it
 * with bytes that it got by descriptor.
 */
#include "gateway/hosts.h"

#include <string.h>

/* The next word of [*at, end), its length in *ret_n; NULL: none. */
static const char *next_word(const char **at, const char *end, size_t *ret_n)
{
	const char *begin = *at;

	while (begin < end && (*begin == ' ' || *begin == '\t' || *begin == '\r'))
		begin++;
	*at = begin;
	while (*at < end && **at != ' ' && **at != '\t' && **at != '\r')
		++*at;
	*ret_n = (size_t)(*at - begin);
	return *ret_n ? begin : NULL;
}

static bool line_has(const char *at, const char *end, const struct host *name, struct ip *ret)
{
	struct host host;
	const char *word;
	size_t n;

	word = next_word(&at, end, &n);
	if (!word || host_read(word, n, &host) != HOST_FINE || host.kind != HOST_ADDRESS)
		return false;
	*ret = host.ip;
	while ((word = next_word(&at, end, &n)))
		if (host_read(word, n, &host) == HOST_FINE && host_equal(&host, name))
			return true;
	return false;
}

size_t hosts_find(const char *text, size_t n, const struct host *name, struct ip *ret, size_t max)
{
	const char *at = text, *end = text + n;
	size_t found = 0;

	while (at < end && found < max) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at)), *stop;

		if (!line_end)
			line_end = end;
		stop = memchr(at, '#', (size_t)(line_end - at));
		if (line_has(at, stop ? stop : line_end, name, &ret[found]))
			found++;
		at = line_end + 1;
	}
	return found;
}
