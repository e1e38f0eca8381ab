/*
 * Forms of a secret. In: its bytes. Out: the bytes that stand for it in base64 (of each alignment, both alphabets), in hexadecimal, in a
 * URL, in a JSON text. What two forms have in common is made once. Pure; run by ward-secrets to make the patterns, and by keys
 * to put a secret in.
 */
#include "creds/forms.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char for_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char digits[] = "0123456789abcdef";
static const char capitals[] = "0123456789ABCDEF";

/* The characters that n bytes behind `shift` unknown ones decide alone. */
static size_t base64_inner(const uint8_t *value, size_t n, unsigned shift, const char *alphabet, uint8_t *out)
{
	size_t first = shift ? shift + 1 : 0, end = 8 * (n + shift) / 6, len = 0;

	for (size_t i = first; i < end; i++) {
		unsigned bits = 0;

		for (size_t b = 6 * i; b < 6 * i + 6; b++)
			bits = bits << 1 | ((unsigned)value[b / 8 - shift] >> (7 - b % 8) & 1U);
		out[len++] = (uint8_t)alphabet[bits];
	}
	return len;
}

size_t form_base64(const uint8_t *value, size_t n, uint8_t *out)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)value[i] << 16 | (i + 1 < n ? (uint32_t)value[i + 1] << 8 : 0) | (i + 2 < n ? value[i + 2] : 0);

		out[len++] = (uint8_t)standard[v >> 18];
		out[len++] = (uint8_t)standard[v >> 12 & 63];
		out[len++] = i + 1 < n ? (uint8_t)standard[v >> 6 & 63] : '=';
		out[len++] = i + 2 < n ? (uint8_t)standard[v & 63] : '=';
	}
	return len;
}

static size_t hex(const uint8_t *value, size_t n, const char *alphabet, uint8_t *out)
{
	for (size_t i = 0; i < n; i++) {
		out[2 * i] = (uint8_t)alphabet[value[i] >> 4];
		out[2 * i + 1] = (uint8_t)alphabet[value[i] & 15];
	}
	return 2 * n;
}

void form_hex(const uint8_t *bytes, size_t n, char *out)
{
	(void)hex(bytes, n, digits, (uint8_t *)out);
	out[2 * n] = '\0';
}

static bool is_unreserved(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static size_t percent(const uint8_t *value, size_t n, bool all, const char *alphabet, uint8_t *out)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		if (!all && is_unreserved(value[i])) {
			out[len++] = value[i];
			continue;
		}
		out[len++] = '%';
		out[len++] = (uint8_t)alphabet[value[i] >> 4];
		out[len++] = (uint8_t)alphabet[value[i] & 15];
	}
	return len;
}

size_t form_percent(const uint8_t *value, size_t n, uint8_t *out)
{
	return percent(value, n, false, capitals, out);
}

static bool has_any(const uint8_t *bytes, size_t n, const char *of)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] && strchr(of, bytes[i]))
			return true;
	return false;
}

/* What writers of JSON and HTML make of characters; each makes it of others. */
static const struct escapes {
	const char *own;	/* with one of these it is another text than those in front */
	const char *slashed;	/* behind a backslash */
	const char *numbered;	/* as \u00XX */
	const char *digits;	/* of those */
	struct {
		char c;
		char text[8];
	} named[7];
} escapes[FORMS] = {
	[FORM_JSON] = { "\"\\/", "\"\\/", "", digits, { { 0 } } },			/* PHP */
	[FORM_JSON_QUOTES] = { "/", "\"\\", "", digits, { { 0 } } },		/* nearly everybody */
	[FORM_JSON_GO] = { "<>&", "\"\\", "<>&", digits, { { 0 } } },		/* and Rails */
	[FORM_JSON_NET] = { "\"&'+<>`", "\\", "\"&'+<>`", capitals, { { 0 } } },
	[FORM_HTML] = { "&<>\"'", "", "", digits, { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" }, { '\'', "&#39;" } } },
	[FORM_HTML_GO] = { "\"+", "", "", digits, { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&#34;" }, { '\'', "&#39;" }, { '+', "&#43;" } } },
};

/* 0: as it is, or too long. */
static size_t escape(const struct escapes *e, const uint8_t *value, size_t n, uint8_t *out)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		char one[8] = { (char)value[i] };
		size_t k;

		if (value[i] && strchr(e->slashed, value[i]))
			snprintf(one, sizeof(one), "\\%c", value[i]);
		else if (value[i] && strchr(e->numbered, value[i]))
			snprintf(one, sizeof(one), "\\u00%c%c", e->digits[value[i] >> 4], e->digits[value[i] & 15]);
		for (size_t m = 0; value[i] && m < sizeof(e->named) / sizeof(*e->named); m++)
			if (e->named[m].c == (char)value[i])
				memcpy(one, e->named[m].text, sizeof(one));
		k = value[i] ? strlen(one) : 1;
		if (len + k > FORM_ROOM(n))
			return 0;
		memcpy(out + len, one, k);
		len += k;
	}
	return len > n ? len : 0;
}

static size_t write_form(enum form f, const uint8_t *value, size_t n, uint8_t *out)
{
	size_t len;

	switch (f) {
	case FORM_PLAIN:
		memcpy(out, value, n);
		return n;
	case FORM_BASE64_0:
	case FORM_BASE64_1:
	case FORM_BASE64_2:
		return base64_inner(value, n, (unsigned)(f - FORM_BASE64_0), standard, out);
	case FORM_BASE64URL_0:
	case FORM_BASE64URL_1:
	case FORM_BASE64URL_2:
		len = base64_inner(value, n, (unsigned)(f - FORM_BASE64URL_0), for_url, out);
		return has_any(out, len, "-_") ? len : 0;
	case FORM_HEX:
		return hex(value, n, digits, out);
	case FORM_HEX_UPPER:
		len = hex(value, n, capitals, out);
		return has_any(out, len, "ABCDEF") ? len : 0;
	case FORM_URL:
		len = percent(value, n, false, capitals, out);
		return len > n ? len : 0;
	case FORM_URL_LOWER:
		len = percent(value, n, false, digits, out);
		for (size_t i = 0; i + 2 < len; i++)	/* another text than FORM_URL's? */
			if (out[i] == '%' && has_any(out + i + 1, 2, "abcdef"))
				return len;
		return 0;
	case FORM_URL_ALL:
		return percent(value, n, true, capitals, out);
	case FORM_URL_ALL_LOWER:
		len = percent(value, n, true, digits, out);
		return has_any(out, len, "abcdef") ? len : 0;
	case FORM_JSON:
	case FORM_JSON_QUOTES:
	case FORM_JSON_GO:
	case FORM_JSON_NET:
	case FORM_HTML:
	case FORM_HTML_GO:
		return has_any(value, n, escapes[f].own) ? escape(&escapes[f], value, n, out) : 0;
	case FORMS:
		break;
	}
	return 0;
}

size_t form_write(enum form f, const uint8_t *value, size_t n, uint8_t *out)
{
	size_t len = n ? write_form(f, value, n, out) : 0;

	return len >= FORM_LEAST ? len : 0;
}
