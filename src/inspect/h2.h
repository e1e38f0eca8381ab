/*
 * HTTP/2 between a program and a server: one connection for one connection, each stream decided
 * about by itself. nghttp2 speaks on both sides; what it does not refuse of a message (CR or LF in
 * a field, a length that is not kept, fields of HTTP/1) cannot be said. HTTP/2 is chosen only where
 * the server chose it too, so nothing is translated. Files: h2.c (the connection), h2_stream.c
 * (requests and responses), h2_body.c (requests whose body decides). Private to inspection.
 */
#ifndef WARD_INSPECT_H2_H
#define WARD_INSPECT_H2_H

#include "inspect/inspect.h"
#include "transport/h2_session.h"

#define H2_FIELDS_BYTES (32 * 1024) /* of one head */
#define H2_STREAMS 128              /* at one time */

struct h2_head {
	struct buf text; /* names and values */
	struct {
		uint32_t name, name_len, value, value_len;
	} at[HTTP_FIELDS_MAX];
	unsigned count;
};

struct h2_stream {
	struct h2_stream *next, *prev;
	int32_t down_id, up_id;    /* up_id 0: not forwarded */
	bool up_ended, down_ended; /* nothing more comes of that side's body */
	bool up_open;              /* it has a stream of the server's */
	bool gone;                 /* its head was sent there */
	bool declined;             /* the server said that it has done nothing with it */
	bool cut;                  /* refused, or broken off, for what it says or costs */
	/* own: the answer is ours; refused: its body is of no interest */
	bool answered, own, refused;
	struct h2_head *head; /* in the reading; NULL: none */
	struct h2_head *trailers[DIRECTIONS];
	struct queue data[DIRECTIONS];
	uint64_t bytes[DIRECTIONS], limits[DIRECTIONS];
	struct body_scan *scan; /* owned; NULL: its body is not looked through */
	struct meter *meter;    /* owned; NULL: nothing is counted */
	struct record *record;  /* owned; NULL: nothing is recorded */
	char what[EXCHANGE_WHAT];
	int32_t rule;              /* that allows it */
	uint16_t status;           /* of the server's answer; 0: none yet */
	bool git;                  /* refusals are for git's eyes */
	struct body_inspect *look; /* owned; NULL: its body is not looked into (any more) */
	struct request_ask *ask;   /* owned; NULL: no person is asked */
	uint8_t body_inspect_say;  /* enum body_inspect_say */
	uint32_t look_room;        /* bytes of front's purse */
	size_t taken;              /* bytes of data[UP] that the window has back already */
	/* the request's head, while its body is looked into, or it waits for a person; owned */
	struct h2_head *asked;
	struct buf path; /* and its path as it is to be forwarded */
};

struct h2 {
	struct front *f;
	struct exchange *ex;
	nghttp2_session *down, *up;
	struct h2_stream *streams;
	unsigned resets, completed; /* by the program; whole exchanges */
	bool over;                  /* close when all is written */
	bool broken;
};

/* h2.c */
must_check struct h2 *h2_new(struct front *f, struct exchange *ex);
void h2_free(struct h2 *h);
/* Moves what can be moved; the exchange may be closed behind it. */
bool h2_run(struct h2 *h);

/* h2_stream.c */
struct h2_stream *h2_stream_new(struct h2 *h, int32_t down_id);
void h2_stream_free(struct h2 *h, struct h2_stream *s);
/* False: too many or too large. */
must_check bool h2_head_add(struct h2_stream *s, const uint8_t *name, size_t name_n,
			    const uint8_t *value, size_t value_n);
/* The request's head is whole: it is decided about, and forwarded or answered. */
void h2_request(struct h2 *h, struct h2_stream *s);
/* The server's: final or not. ends: there is nothing behind it; gRPC tells that from an empty
 * body. */
void h2_response(struct h2 *h, struct h2_stream *s, bool ends);
/* Bytes of a body. False: more than the rule allows. */
must_check bool h2_data(struct h2 *h, struct h2_stream *s, enum direction d, const uint8_t *bytes,
			size_t n);
/* That side's body has ended, perhaps with trailers in s->head. */
void h2_ended(struct h2 *h, struct h2_stream *s, enum direction d);
/* Answers instead of the server. */
void h2_refuse(struct h2 *h, struct h2_stream *s, enum verdict_reason reason);
/* Throws away what is left of the request's body. */
void h2_drop(struct h2 *h, struct h2_stream *s);
/* The request in s->head, for the rules; and on its way to the server. */
enum verdict_reason h2_read_request(struct h2 *h, struct h2_stream *s, struct http_request *r);
must_check bool h2_forward(struct h2 *h, struct h2_stream *s, const struct http_request *r,
			   struct http_text path);
void h2_head_free(struct h2_head *head);

/* h2_body.c */
/* The head in s->head is allowed if the body is: v has looks. */
void h2_begin_look(struct h2 *h, struct h2_stream *s, const struct http_verdict *v,
		   const struct http_request *r);
/* More of the body, or its end. */
void h2_body(struct h2 *h, struct h2_stream *s, const uint8_t *bytes, size_t n, bool end);
void h2_end_look(struct h2 *h, struct h2_stream *s);
/* The request in s->asked goes to the server, or waits for a person before. */
void h2_pass(struct h2 *h, struct h2_stream *s);
/* A person has answered. */
void h2_answered(struct h2 *h, struct h2_stream *s);

#endif
