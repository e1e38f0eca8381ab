/* Questions sent to a URL, and signed answers that come back: ward approve --webhook. */
#ifndef WARD_CLI_APPROVE_HOOK_H
#define WARD_CLI_APPROVE_HOOK_H

#include <poll.h>

#include "base/hmac.h"
#include "cli/approve.h"

#define HOOK_POLLS 8

struct hook;

/* Reads the key, which nobody else may be able to read. o is borrowed. */
must_check int hook_create(const struct options *o, struct hook **ret, struct ward_err *e);
void hook_destroy(struct hook *h);
/* What waits now: new ones are sent, those that are gone forgotten. */
void hook_look(struct hook *h, const struct client_questions *now);
/* Fills HOOK_POLLS entries, and sees to what poll said. */
void hook_poll(const struct hook *h, struct pollfd *polled);
void hook_handle(struct hook *h, const struct pollfd *polled);

/* The signature over an answer's body, or with answer false over a request's. A pure function. */
void hook_sign(const struct buf *key, bool answer, const char *nonce_or_time, const void *body,
	       size_t n, char ret_hex[SHA256_HEX]);

#endif
