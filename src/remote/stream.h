/* Messages of a Connect stream, as they come: one byte of flags, the length in four bytes, a JSON
 * text. Pure, fuzzed (fuzz/remote_answer.c). */
#ifndef WARD_REMOTE_STREAM_H
#define WARD_REMOTE_STREAM_H

#include "base/buf.h"

#define STREAM_END 2 /* flag of the last message */
#define STREAM_MESSAGE_MAX (16u << 20)

struct stream_message {
	uint8_t flags;
	const uint8_t *body; /* within what was read */
	size_t n;
	size_t used; /* bytes of what was read */
};

/* The first message of n bytes: 1; 0: it is not complete; -1: the stream is of another form. */
must_check int stream_read(const uint8_t *bytes, size_t n, struct stream_message *ret);

struct values;
struct value;
/* The exit status that the member "end" of an event stands for: 128+N if signal N killed it. */
int stream_exit_code(const struct values *v, const struct value *end);

#endif
