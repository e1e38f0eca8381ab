/*
 * Messages of a Connect stream: one byte of flags, the length in four bytes (the highest first),
 * the message. Pure, fuzzed (fuzz/envelope.c).
 */
#ifndef WARD_ENVD_ENVELOPE_H
#define WARD_ENVD_ENVELOPE_H

#include "base/buf.h"

#define ENVELOPE_HEADER 5
#define ENVELOPE_END 2 /* flag of the last message of a response */

/* Appends one message. */
void envelope_write(uint8_t flags, const void *message, size_t n, struct buf *out);
/* The one message of a request's body: 0, or -1 if the body is not exactly one, plain and not
 * compressed. *ret points into the body. */
must_check int envelope_read(const uint8_t *body, size_t n, const uint8_t **ret, size_t *ret_n);

#endif
