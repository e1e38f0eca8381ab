/*
 * The web application firewall: what front and ward-waf say to each other over a stream. front asks
 * about one request after the other and does not wait; ward-waf answers in the same order.
 *
 *   struct waf_ask, then text_bytes of texts that each end in a NUL (method, target, then name and
 *   value of each field), then the body
 *   struct waf_said
 *
 * Both are processes of one build; neither believes a length of the other's.
 */
#ifndef WARD_RULES_WAF_H
#define WARD_RULES_WAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define WAF_MAGIC 0x77776166
#define WAF_FD 3                  /* of ward-waf */
#define WAF_TEXT_MAX (160 * 1024) /* of one request's head */
/* a larger body is refused: it would not be inspected */
#define WAF_BODY_MAX (128 * 1024)
#define WAF_MATCHES 8
#define WAF_RULES "/usr/share/modsecurity-crs/rules"

struct waf_ask {
	uint32_t magic, fields, text_bytes, body_bytes;
	uint64_t id;
};

struct waf_match {
	uint32_t rule;
	uint8_t severity; /* 0 emergency .. 7 debug */
	char text[91];    /* what it is about; printable, nothing of the request */
};

struct waf_said {
	uint32_t magic;
	uint8_t deny;  /* by the rule set's own threshold */
	uint8_t count; /* of matches; further ones are not reported */
	uint64_t id;
	struct waf_match matches[WAF_MATCHES];
};

/* Whether this can be such a question. Pure. */
bool waf_ask_is_sound(const struct waf_ask *ask);
/* The next text behind *at of n bytes; NULL: there is none. Pure. */
const char *waf_next_text(const uint8_t *text, size_t n, size_t *at);
/* Whether the text is two texts and two more for each field, and nothing else. Pure, fuzzed
 * (fuzz/waf.c). */
bool waf_text_is_sound(const struct waf_ask *ask, const uint8_t *text);
/* A rule's message without what it cites of the request: as far as a "(", printable. Pure. */
void waf_match_text(const char *message, size_t n, struct waf_match *ret);
/* Whether an answer can be believed; its texts end. Pure. */
bool waf_said_is_sound(const struct waf_said *said);

#endif
