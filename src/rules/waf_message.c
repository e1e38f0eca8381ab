/*
 * Messages of the firewall (waf.h). In: bytes of front, or of ward-waf. Out: whether they are what
 * they should be. Pure functions, in both processes.
 */
#include "rules/waf.h"

#include <string.h>

#include "rules/http_message.h"

bool waf_ask_is_sound(const struct waf_ask *ask)
{
	return ask->magic == WAF_MAGIC && ask->fields <= HTTP_FIELDS_MAX &&
	       ask->text_bytes <= WAF_TEXT_MAX && ask->body_bytes <= WAF_BODY_MAX;
}

const char *waf_next_text(const uint8_t *text, size_t n, size_t *at)
{
	const uint8_t *begin = text + *at, *end = *at < n ? memchr(begin, '\0', n - *at) : NULL;

	if (!end)
		return NULL;
	*at += (size_t)(end - begin) + 1;
	return (const char *)begin;
}

bool waf_text_is_sound(const struct waf_ask *ask, const uint8_t *text)
{
	size_t at = 0;

	for (uint32_t i = 0; i < 2 + 2 * ask->fields; i++)
		if (!waf_next_text(text, ask->text_bytes, &at))
			return false;
	return at == ask->text_bytes;
}

void waf_match_text(const char *message, size_t n, struct waf_match *ret)
{
	size_t len = 0;

	for (size_t i = 0; i < n && len + 1 < sizeof(ret->text) && message[i] && message[i] != '(';
	     i++)
		ret->text[len++] = (char)(message[i] < ' ' || message[i] > '~' ? '?' : message[i]);
	while (len && ret->text[len - 1] == ' ')
		len--;
	ret->text[len] = '\0';
}

bool waf_said_is_sound(const struct waf_said *said)
{
	if (said->magic != WAF_MAGIC || said->deny > 1 || said->count > WAF_MATCHES)
		return false;
	for (unsigned i = 0; i < said->count; i++) {
		size_t n = strnlen(said->matches[i].text, sizeof(said->matches[i].text));

		if (n == sizeof(said->matches[i].text))
			return false;
		for (size_t k = 0; k < n; k++)
			if (said->matches[i].text[k] < ' ' || said->matches[i].text[k] > '~')
				return false;
	}
	return true;
}
