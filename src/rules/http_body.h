/* Where an HTTP/1 body ends, and what an answer's head says about it. Streams. Private to
 * src/gateway. */
#ifndef WARD_RULES_HTTP_BODY_H
#define WARD_RULES_HTTP_BODY_H

#include "rules/http1.h"

enum body_state {
	BODY_NONE,
	BODY_LENGTH,
	BODY_CLOSE,
	BODY_SIZE,
	BODY_SIZE_EXTENSION,
	BODY_SIZE_END,
	BODY_DATA,
	BODY_DATA_CR,
	BODY_DATA_LF,
	BODY_TRAILER,
	BODY_TRAILER_LINE,
	BODY_TRAILER_END,
	BODY_BAD
};

/* A body of length bytes, in chunks, or up to the end of the connection. */
void body_length(struct http_body *b, uint64_t length);
void body_chunked(struct http_body *b);
void body_until_close(struct http_body *b);
/* Takes what belongs to the body; returns how much. b->state is BODY_NONE behind its end. strict:
 * no chunk extensions, no trailers, CRLF only. */
size_t body_take(struct http_body *b, const uint8_t *bytes, size_t n, bool strict);

/* Takes bytes of an answer's head; returns how many. a->state is ANSWER_DONE behind its end. */
enum { ANSWER_STATUS, ANSWER_NAME, ANSWER_VALUE, ANSWER_DONE };
void answer_init(struct http_answer *a);
size_t answer_take(struct http_answer *a, const uint8_t *bytes, size_t n);

#endif
