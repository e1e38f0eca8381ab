/* Canaries: what they look like, and whether an event has one in it. Pure. */
#ifndef WARD_ALARM_CANARY_H
#define WARD_ALARM_CANARY_H

#include "base/buf.h"
#include "model/event.h"

#define CANARY_TOKEN 20 /* letters and digits of a value that no other run has */

/* The content of a canary at that path, with its token (CANARY_TOKEN characters of a-z2-7). */
void canary_content(const char *path, const char *token, struct buf *out);
/* Makes a token of random bytes. */
void canary_token(const uint8_t random[CANARY_TOKEN], char ret[CANARY_TOKEN + 1]);

/* Whether a text of the event has the token in it, in whatever case. */
bool canary_is_in(const struct ward_event *v, const char *token);
/* Whether the event is a lookup of a host, or a connection or request to it: a name or *.suffix. */
bool canary_is_host(const struct ward_event *v, const char *host);

#endif
