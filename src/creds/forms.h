/* The forms in which a secret is looked for: as it is, and in the encodings that programs use. Pure
 * functions. */
#ifndef WARD_CREDS_FORMS_H
#define WARD_CREDS_FORMS_H

#include <stddef.h>
#include <stdint.h>

enum form {
	FORM_PLAIN,
	FORM_BASE64_0,
	FORM_BASE64_1,
	FORM_BASE64_2,
	FORM_BASE64URL_0,
	FORM_BASE64URL_1,
	FORM_BASE64URL_2,
	FORM_HEX,
	FORM_HEX_UPPER,
	FORM_URL_ALL,
	FORM_URL_ALL_LOWER,
	/* what writers of JSON, HTML and URLs make of characters (forms.c) */
	FORM_JSON,
	FORM_JSON_QUOTES,
	FORM_JSON_GO,
	FORM_JSON_NET,
	FORM_JSON_GSON,
	FORM_JSON_PHP,
	FORM_JSON_DJANGO,
	FORM_HTML,
	FORM_HTML_GO,
	FORM_HTML_PYTHON,
	FORM_HTML_JINJA,
	FORM_HTML_PHP,
	FORM_HTML_TEXT,
	FORM_HTML_OWASP,
	FORM_HTML_MUSTACHE,
	FORM_HTML_HANDLEBARS,
	FORM_URL,
	FORM_URL_LOWER,
	FORM_URL_QUOTE,
	FORM_URL_COMPONENT,
	FORM_URL_SEGMENT,
	FORM_URL_PATH,
	FORM_URL_FORM,
	FORM_URL_FORM_STAR,
	FORM_URL_FORM_NET,
	FORMS
};

#define FORM_WRITERS FORM_JSON             /* the first of those */
#define FORMS_BASIC (FORMS - FORM_WRITERS) /* so many writers */

/* bytes that any form of n bytes fits into; one that would be longer is left out */
#define FORM_ROOM(n) (3 * (n) + 8)
#define FORM_LEAST 6 /* shorter ones are in everything */

/* Writes value in that form; returns its length, 0 where it would be too short or says nothing that
 * an earlier form does not. Base64 has three: whatever stands before a value in what is encoded,
 * the value's inner characters are one of them. */
size_t form_write(enum form f, const uint8_t *value, size_t n, uint8_t *out);
/* The same of a value that is sent in base64 behind `before` bytes, as Basic is: what such a writer
 * makes of that text. f: from FORM_WRITERS on. */
size_t form_write_basic(enum form f, const uint8_t *value, size_t n, size_t before, uint8_t *out);

/* The whole of base64, with padding; returns its length. Room: (n + 2) / 3 * 4. */
size_t form_base64(const uint8_t *value, size_t n, uint8_t *out);
/* Percent-encoding as in a query; returns its length. */
size_t form_percent(const uint8_t *value, size_t n, uint8_t *out);
void form_hex(const uint8_t *bytes, size_t n, char *out);

#endif
