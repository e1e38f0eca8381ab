/* Canaries: what they look like, and whether an event has one in it. Pure. */
#ifndef WARD_ALARM_CANARY_H
#define WARD_ALARM_CANARY_H

#include "base/buf.h"
#include "model/event.h"
#include "rules/canary_find.h"

/* What the object of an event begins with that says a value was found in what was sent; its name
 * follows. */
#define CANARY_SENT "canary "

/* The content of a canary at that path, with its token (CANARY_TOKEN characters of a-z2-7). */
void canary_content(const char *path, const char *token, struct buf *out);
/* The same of a variable. */
void canary_variable(const char *name, const char *token, struct buf *out);
/* Makes a token of random bytes. */
void canary_token(const uint8_t random[CANARY_TOKEN], char ret[CANARY_TOKEN + 1]);

/* The number of the first value that a text of the event has in it, in any form; -1: none. */
int canary_in_event(const struct canary_finder *f, const struct ward_event *v);
/* Whether the event is a lookup of a host, or a connection or request to it: a name or *.suffix. */
bool canary_is_host(const struct ward_event *v, const char *host);

#endif
