/*
 * Forms of a secret. In: its bytes. Out: the bytes that stand for it in base64 (of each alignment,
 * both alphabets), in hexadecimal, in a URL, in a JSON text, in HTML: writers of these differ in
 * which characters they escape, and how. What two forms have in common is made once. Pure; run by
 * ward-secrets to make the patterns, and by keys to put a secret in.
 */
#include "creds/forms.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char for_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char digits[] = "0123456789abcdef";
static const char capitals[] = "0123456789ABCDEF";

/* The characters that n bytes behind `shift` unknown ones decide alone: from the first up to the
 * end. */
static size_t base64_first(unsigned shift)
{
	return shift ? shift + 1 : 0;
}

static size_t base64_end(size_t n, unsigned shift)
{
	return 8 * (n + shift) / 6;
}

static uint8_t base64_at(const uint8_t *value, unsigned shift, size_t i, const char *alphabet)
{
	unsigned bits = 0;

	for (size_t b = 6 * i; b < 6 * i + 6; b++)
		bits = bits << 1 | ((unsigned)value[b / 8 - shift] >> (7 - b % 8) & 1U);
	return (uint8_t)alphabet[bits];
}

static size_t base64_inner(const uint8_t *value, size_t n, unsigned shift, const char *alphabet,
			   uint8_t *out)
{
	size_t len = 0;

	for (size_t i = base64_first(shift); i < base64_end(n, shift); i++)
		out[len++] = base64_at(value, shift, i, alphabet);
	return len;
}

size_t form_base64(const uint8_t *value, size_t n, uint8_t *out)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)value[i] << 16 |
			     (i + 1 < n ? (uint32_t)value[i + 1] << 8 : 0) |
			     (i + 2 < n ? value[i + 2] : 0);

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
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
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

/* -- writers */

/* What writers make of characters; each makes it of others. */
static const struct writer {
	const char *slashed;  /* behind a backslash */
	const char *numbered; /* as \u00XX */
	const char *digits;   /* of those, and of %XX */
	struct {
		char c;
		char text[8];
	} named[8];
	const char *kept; /* beside letters and digits, all else is %XX; NULL: it is no URL */
	bool plus;        /* a space is + */
} writers[FORMS] = {
#define AMP_LT_GT                                                                                  \
	{ '&', "&amp;" }, { '<', "&lt;" },                                                         \
	{                                                                                          \
		'>', "&gt;"                                                                        \
	}
	/* PHP, Swift */
	[FORM_JSON] = { .slashed = "\"\\/" },
	[FORM_JSON_QUOTES] = { .slashed = "\"\\" }, /* nearly everybody */
	/* and Rails */
	[FORM_JSON_GO] = { .slashed = "\"\\", .numbered = "<>&", .digits = digits },
	[FORM_JSON_NET] = { .slashed = "\\", .numbered = "\"&'+<>`", .digits = capitals },
	[FORM_JSON_GSON] = { .slashed = "\"\\", .numbered = "<>&='", .digits = digits },
	[FORM_JSON_PHP] = { .slashed = "\\/",
			    .numbered = "<>&'\"",
			    .digits = capitals }, /* into HTML: Laravel, Drupal */
	/* escapejs */
	[FORM_JSON_DJANGO] = { .numbered = "\\'\"<>&=-;`", .digits = capitals },
	[FORM_HTML] = { .named = { AMP_LT_GT, { '"', "&quot;" }, { '\'', "&#39;" } } },
	[FORM_HTML_GO] = { .named = { AMP_LT_GT,
				      { '"', "&#34;" },
				      { '\'', "&#39;" },
				      { '+', "&#43;" } } },
	[FORM_HTML_PYTHON] = { .named = { AMP_LT_GT,
					  { '"', "&quot;" },
					  { '\'', "&#x27;" } } }, /* and React */
	[FORM_HTML_JINJA] = { .named = { AMP_LT_GT, { '"', "&#34;" }, { '\'', "&#39;" } } },
	[FORM_HTML_PHP] = { .named = { AMP_LT_GT, { '"', "&quot;" }, { '\'', "&#039;" } } },
	[FORM_HTML_TEXT] = { .named = { AMP_LT_GT } }, /* between tags, XML */
	[FORM_HTML_OWASP] = { .named = { AMP_LT_GT,
					 { '"', "&quot;" },
					 { '\'', "&#x27;" },
					 { '/', "&#x2F;" } } },
	[FORM_HTML_MUSTACHE] = { .named = { AMP_LT_GT,
					    { '"', "&quot;" },
					    { '\'', "&#39;" },
					    { '/', "&#x2F;" },
					    { '`', "&#x60;" },
					    { '=', "&#x3D;" } } },
	[FORM_HTML_HANDLEBARS] = { .named = { AMP_LT_GT,
					      { '"', "&quot;" },
					      { '\'', "&#x27;" },
					      { '`', "&#x60;" },
					      { '=', "&#x3D;" } } },
	[FORM_URL] = { .kept = "-._~", .digits = capitals }, /* RFC 3986; Go's queries */
	[FORM_URL_LOWER] = { .kept = "-._~", .digits = digits },
	[FORM_URL_QUOTE] = { .kept = "-._~/", .digits = capitals }, /* Python */
	/* JavaScript */
	[FORM_URL_COMPONENT] = { .kept = "-._~!'()*", .digits = capitals },
	[FORM_URL_SEGMENT] = { .kept = "-._~$&+=:@", .digits = capitals }, /* Go's paths */
	/* what may stand in a path stays */
	[FORM_URL_PATH] = { .kept = "-._~!$&'()*+,;=:@/", .digits = capitals },
	[FORM_URL_FORM] = { .kept = "-._", .digits = capitals, .plus = true }, /* PHP */
	/* Java, browsers */
	[FORM_URL_FORM_STAR] = { .kept = "-._*", .digits = capitals, .plus = true },
	[FORM_URL_FORM_NET] = { .kept = "-._!*()", .digits = digits, .plus = true },
#undef AMP_LT_GT
};

/* A text that is escaped: a value, or the inner characters of its base64. */
struct text {
	const uint8_t *value;
	size_t n, from, end; /* characters */
	unsigned shift;
	bool base64;
};

static uint8_t char_at(const struct text *t, size_t i)
{
	return t->base64 ? base64_at(t->value, t->shift, i, standard) : t->value[i];
}

static bool is_in(const char *set, uint8_t c)
{
	return set && c && strchr(set, c);
}

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* What a writer makes of one character; returns its length. */
static size_t write_char(const struct writer *w, uint8_t c, char out[8])
{
	out[0] = (char)c;
	if (is_letter(c) || !c || is_in(w->kept, c))
		return 1;
	if (w->kept && w->plus && c == ' ') {
		out[0] = '+';
		return 1;
	}
	if (w->kept)
		return (size_t)snprintf(out, 8, "%%%c%c", w->digits[c >> 4], w->digits[c & 15]);
	if (is_in(w->slashed, c))
		return (size_t)snprintf(out, 8, "\\%c", c);
	if (is_in(w->numbered, c))
		return (size_t)snprintf(out, 8, "\\u00%c%c", w->digits[c >> 4], w->digits[c & 15]);
	for (size_t i = 0; i < sizeof(w->named) / sizeof(*w->named) && w->named[i].c; i++)
		if ((uint8_t)w->named[i].c == c)
			return (size_t)snprintf(out, 8, "%s", w->named[i].text);
	return 1;
}

/* Whether two make the same of these characters. */
static bool agree(const struct writer *a, const struct writer *b, const bool present[256])
{
	for (unsigned c = 1; c < 256; c++) {
		char one[8], other[8];
		size_t n = present[c] ? write_char(a, (uint8_t)c, one) : 0;

		if (n && (write_char(b, (uint8_t)c, other) != n || memcmp(one, other, n) != 0))
			return false;
	}
	return true;
}

/* 0: as it is, as another one writes it, or too long. */
static size_t write_text(enum form f, const struct text *t, uint8_t *out)
{
	bool present[256] = { false };
	size_t len = 0;

	for (size_t i = t->from; i < t->end; i++)
		present[char_at(t, i)] = true;
	if (agree(&writers[f], &(struct writer){ .kept = NULL }, present))
		return 0;
	for (unsigned before = FORM_WRITERS; before < f; before++)
		if (agree(&writers[f], &writers[before], present))
			return 0;
	for (size_t i = t->from; i < t->end; i++) {
		char one[8];
		size_t k = write_char(&writers[f], char_at(t, i), one);

		if (len + k > FORM_ROOM(t->n))
			return 0;
		memcpy(out + len, one, k);
		len += k;
	}
	return len;
}

static size_t write_form(enum form f, const uint8_t *value, size_t n, uint8_t *out)
{
	size_t len;

	switch ((int)f) {
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
	case FORM_URL_ALL:
		return percent(value, n, true, capitals, out);
	case FORM_URL_ALL_LOWER:
		len = percent(value, n, true, digits, out);
		return has_any(out, len, "abcdef") ? len : 0;
	default:
		return write_text(f, &(struct text){ .value = value, .n = n, .end = n }, out);
	}
}

size_t form_write(enum form f, const uint8_t *value, size_t n, uint8_t *out)
{
	size_t len = n ? write_form(f, value, n, out) : 0;

	return len >= FORM_LEAST ? len : 0;
}

size_t form_write_basic(enum form f, const uint8_t *value, size_t n, size_t before, uint8_t *out)
{
	unsigned shift = (unsigned)(before % 3);
	struct text t = { .value = value,
			  .n = n,
			  .from = base64_first(shift),
			  .end = base64_end(n, shift),
			  .shift = shift,
			  .base64 = true };
	size_t len = n && f >= FORM_WRITERS && f < FORMS ? write_text(f, &t, out) : 0;

	return len >= FORM_LEAST ? len : 0;
}
