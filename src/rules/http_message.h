/*
 * Heads of HTTP messages as lists of fields, taken apart and written anew. A request's head was
 * accepted by http1_head() before; a response's is read here, from a host that the policy allows:
 * what cannot be read in one way only is refused too. Nothing is copied: texts point into the
 * bytes. Pure, fuzzed (fuzz/http_message.c).
 */
#ifndef WARD_RULES_HTTP_MESSAGE_H
#define WARD_RULES_HTTP_MESSAGE_H

#include "base/buf.h"
#include "rules/http1.h"

#define HTTP_FIELDS_MAX 256
#define HTTP_ANSWER_MAX (64 * 1024) /* bytes of a response's head */

struct http_text {
	const char *s;
	size_t n;
};

struct http_field {
	struct http_text name, value;
};

struct http_fields {
	unsigned count;
	struct http_field items[HTTP_FIELDS_MAX];
};

/* What a request is, whichever version of HTTP it came in. */
struct http_request {
	struct http_text method;
	struct http_text path;  /* "/..." or "*" */
	struct http_text query; /* without "?"; .s is NULL: none */
	bool body, has_length;  /* something follows the head; its length is known */
	bool websocket;
	uint64_t length;
	struct http_fields fields; /* of HTTP/1 all, of HTTP/2 those without ":" */
};

struct http_response {
	uint8_t minor;
	uint16_t status;
	struct http_text reason;
	/* close: the server ends the connection behind it */
	bool chunked, has_length, close;
	uint64_t length;
	size_t len; /* of the head with its empty line */
	struct http_fields fields;
};

/* Takes apart a head that http1_head() has accepted, without the fields that Connection names: they
 * are not sent on. False: it cannot be forwarded (a target without a path, "#"). */
must_check bool http_request_read(const uint8_t *bytes, const struct http_head *head,
				  struct http_request *ret);

/* Reads the response's head at the start of the bytes. 1: *ret is one; 0: more is needed; -1: it
 * cannot be understood. */
must_check int http_response_read(const uint8_t *bytes, size_t n, struct http_response *ret);

/* Reads "name: value" lines up to the end of the bytes, as behind the last chunk. Those that frame
 * or address a message are left out. False: not such lines. */
must_check bool http_trailers_read(const uint8_t *bytes, size_t n, struct http_fields *ret);

/* Whether the field is about this connection only, or one that Connection names. */
bool http_field_is_hop(const struct http_fields *f, const struct http_field *field);

/* The value of the first field of that name (in lower case); .s is NULL: none. */
struct http_text http_field_get(const struct http_fields *f, const char *name);

bool http_text_is(struct http_text t, const char *word); /* whatever the case */

/* Writes the request for host: its target is path (in the form that was decided about) and
 * query. */
void http_request_write(const struct http_request *r, const struct host *host, uint16_t port,
			uint16_t usual_port, struct http_text path, struct buf *out);

/* Writes the response for a client: framed by us. chunked, has_length: as we do it; close: the
 * connection ends behind it. */
void http_response_write(const struct http_response *r, bool chunked, bool close, struct buf *out);

#endif
