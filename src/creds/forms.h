/* The forms in which a secret is looked for: as it is, and in the encodings that programs use. Pure functions. */
#ifndef WARD_CREDS_FORMS_H
#define WARD_CREDS_FORMS_H

#include <stddef.h>
#include <stdint.h>

enum form { FORM_PLAIN, FORM_BASE64_0, FORM_BASE64_1, FORM_BASE64_2, FORM_BASE64URL_0, FORM_BASE64URL_1, FORM_BASE64URL_2, FORM_HEX,
	    FORM_HEX_UPPER, FORM_URL, FORM_URL_LOWER, FORM_URL_ALL, FORM_URL_ALL_LOWER, FORM_JSON,
	    FORM_JSON_QUOTES, FORM_JSON_GO, FORM_JSON_NET, FORM_HTML, FORM_HTML_GO, FORMS };

#define FORM_ROOM(n) (3 * (n) + 8)	/* bytes that any form of n bytes fits into; one that would be longer is left out */
#define FORM_LEAST 6			/* shorter ones are in everything */

/* Writes value in that form; returns its length, 0 where it would be too short or says nothing that an earlier form does not.
 * Base64 has three: whatever stands before a value in what is encoded, the value's inner characters are one of them. */
size_t form_write(enum form f, const uint8_t *value, size_t n, uint8_t *out);

/* The whole of base64, with padding; returns its length. Room: (n + 2) / 3 * 4. */
size_t form_base64(const uint8_t *value, size_t n, uint8_t *out);
/* Percent-encoding as in a query; returns its length. */
size_t form_percent(const uint8_t *value, size_t n, uint8_t *out);
void form_hex(const uint8_t *bytes, size_t n, char *out);

#endif
