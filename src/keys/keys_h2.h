/*
 * HTTP/2 through ward-keys: front speaks it in the clear on one side, the server over TLS on the
 * other, one connection for one connection. Each stream is a request of its own: its grant, what is
 * looked for in it, what is taken out of its answer. Files: keys_h2.c (the connection),
 * keys_h2_up.c (requests), keys_h2_down.c (answers).
 */
#ifndef WARD_KEYS_KEYS_H2_H
#define WARD_KEYS_KEYS_H2_H

#include "keys/keys_conn.h"
#include "transport/h2_session.h"

#define KEYS_H2_FIELDS_BYTES HTTP1_HEAD_MAX /* of one head */
#define KEYS_H2_STREAMS 128                 /* at one time */
#define KEYS_H2_FIELDS (HTTP1_HEADERS_MAX + 8 + INJECT_MAX)

enum keys_way { WAY_UP, WAY_DOWN, WAYS };

struct keys_stream {
	struct keys_stream *next, *prev;
	int32_t down_id, up_id; /* up_id 0: the server knows nothing of it */
	bool waiting;           /* it may be sent, when there is room for it */
	bool collecting;        /* its body is held until it is all there */
	bool up_open;           /* it has a stream of the server's */
	bool answered, own;     /* own: the answer is ours */
	bool refused;           /* what is left of its request is of no interest */
	bool ended[WAYS];       /* nothing more comes of that body */
	/* a head in the reading, its lines as of HTTP/1.1 */
	struct buf method, path, authority, lines;
	unsigned status, fields;
	bool has_head;
	struct ask ask;
	uint8_t *secret; /* what is put into its head, in the safe, until it is sent: */
	size_t secret_target, secret_lines; /* bytes of its target, and of lines behind it */
	bool down_grpc;
	struct part_window down_window;
	struct hold hold; /* of held[WAY_DOWN] */
	bool down_events; /* it is an event stream of AWS's */
	struct eventstream events;
	struct grpc down_messages;
	struct scan_for down_found;
	struct buf held[WAYS];   /* may be the beginning of a secret; or all of the body */
	struct queue data[WAYS]; /* looked through */
	struct buf trailers[WAYS];
	size_t owed[WAYS]; /* bytes that the sender's window has not got back */
};

struct keys_h2 {
	struct keys *k;
	struct conn *c;
	nghttp2_session *down, *up;
	struct keys_stream *streams;
	unsigned open; /* streams of the server's */
	bool lost;     /* the server is gone */
	bool broken;
};

/* keys_h2.c */
must_check struct keys_h2 *keys_h2_new(struct keys *k, struct conn *c);
void keys_h2_free(struct keys *k, struct keys_h2 *h);
/* Does what can be done now; true: something happened. */
bool keys_h2_step(struct keys *k, struct conn *c);
/* down_release() for each of its streams. */
bool keys_h2_release(struct keys *k, struct conn *c, uint64_t now);
/* All is said. */
bool keys_h2_is_done(const struct keys_h2 *h);
/* Answers the request with words of ours, or breaks it off where an answer is under way. */
void keys_h2_refuse(struct keys_h2 *h, struct keys_stream *s, unsigned status, const char *why);
/* Bytes of held that were looked through go on. */
void keys_h2_pass(struct keys_h2 *h, struct keys_stream *s, enum keys_way way, size_t clean);
/* Lines as fields; names become lower case. Returns how many; room: at most, what is more is left
 * out. */
size_t keys_h2_fields(char *lines, size_t n, nghttp2_nv *out, size_t room, uint8_t flags);
nghttp2_nv keys_h2_field(const char *name, const char *value, size_t n, uint8_t flags);
extern const nghttp2_data_source_read_callback keys_h2_give;

/* keys_h2_up.c */
void keys_h2_request(struct keys_h2 *h, struct keys_stream *s, bool ends);
void keys_h2_sent(struct keys_h2 *h, struct keys_stream *s, const uint8_t *bytes, size_t n);
void keys_h2_sent_all(struct keys_h2 *h, struct keys_stream *s);
/* Puts the secret in and sends it. */
void keys_h2_submit(struct keys_h2 *h, struct keys_stream *s);
/* Its head is on its way. */
void keys_h2_forget(struct keys_h2 *h, struct keys_stream *s);

/* keys_h2_down.c */
void keys_h2_answer(struct keys_h2 *h, struct keys_stream *s, bool ends);
void keys_h2_came(struct keys_h2 *h, struct keys_stream *s, const uint8_t *bytes, size_t n);
void keys_h2_came_all(struct keys_h2 *h, struct keys_stream *s);

#endif
