/* One connection of ward-keys; shared by its own files: keys_conn.c (life), keys_up.c (requests),
 * keys_down.c (answers), keys_ws.c (websockets); keys_h2*.c in HTTP/2. */
#ifndef WARD_KEYS_KEYS_CONN_H
#define WARD_KEYS_KEYS_CONN_H

#include "keys/eventstream.h"
#include "keys/keys_ask.h"
#include "keys/ws.h"

#define CONN_PIECE 16384
/* bytes that wait to be written; then nothing more is read */
#define CONN_PENDING_MAX (128 * 1024)

enum up_state { UP_HEAD, UP_COLLECT, UP_SEND, UP_BODY, UP_DONE, UP_TUNNEL };

/* Bytes in order; what was taken from the front is dropped when it is worth it. */
struct queue {
	struct buf bytes;
	size_t at;
};

/* Since when bytes of an answer are held back. */
struct hold {
	size_t ahead;             /* those at the beginning that front has got already */
	size_t old;               /* those at the beginning that were there at old_ms */
	uint64_t came_ms, old_ms; /* when the last one came; see old */
};

struct keys_h2;

/* One side of a websocket. */
enum ws_way { WS_UP, WS_DOWN, WS_WAYS };
#define TALK_WHOLE_MAX (64 * 1024) /* a message that goes on when all of it was looked through */
struct talk {
	struct ws frames;
	struct buf held; /* of the message that is under way */
};

struct conn {
	struct conn *prev, *next, *dead_next;
	int client_fd, server_fd;
	uint32_t client_events, server_events; /* as epoll knows them */
	bool client_deaf;                      /* it does not know the client at all */
	struct tls_up *tls;
	bool open;         /* the handshake is done */
	bool server_write; /* TLS waits for room */
	bool client_ended, server_ended;
	bool finishing; /* what is said already still goes out, then it ends */
	bool dead;
	bool unfinished; /* more could have been done in its last turn */
	uint64_t moved_ms;
	struct host host;
	uint16_t port;
	struct keys_h2 *h2; /* owned; NULL: HTTP/1.1 is spoken */

	/* the request */
	enum up_state up;
	struct queue in; /* of front, not yet looked at */
	size_t scanned;
	struct ask ask;
	size_t head_sent;
	struct http_body up_body;
	bool up_chunked, up_ended;
	struct buf up_data; /* of its body: held back, or collected */
	struct queue out;   /* for the server, without a secret */

	/* the answer */
	bool asked; /* one is due */
	bool down_begun, down_done;
	struct http_answer answer;
	struct buf down_head, down_data;
	struct http_body down_body;
	bool down_chunked;
	struct part_window down_window;
	struct talk talk[WS_WAYS]; /* behind a 101 */
	bool down_events;          /* it is an event stream of AWS's */
	struct eventstream events;
	size_t down_known; /* bytes of down_data whose frames are known */
	struct hold hold;  /* of down_data */
	uint64_t dry_ms;   /* when all that the server had sent had been read */
	struct scan_for down_found;
	struct queue back; /* for front */
};

static inline size_t queue_len(const struct queue *q)
{
	return q->bytes.len - q->at;
}
void queue_drop(struct queue *q, size_t n);

/* Answers the request with words of ours and ends the connection, or cuts it where an answer is
 * under way. */
void conn_refuse(struct conn *c, unsigned status, const char *why);
void conn_kill(struct conn *c);
/* Each does what can be done now; true: something happened. */
/* keys_ws.c: what one side of a websocket says, looked through, goes to the other. False: the
 * connection is to be cut. */
must_check bool talk_pass(struct keys *k, struct conn *c, enum ws_way way, const uint8_t *bytes,
			  size_t n);
bool up_step(struct keys *k, struct conn *c);
bool down_step(struct keys *k, struct conn *c);
#define CONN_SILENCE_MS 1000
#define CONN_OLD_MS 5000
/* What is held back of an answer goes if its server has been silent for a second, or it is old, and
 * not because its program has not said all or does not listen: no one else waits for ever, and how
 * long one waits tells nothing. An end that is too much of a secret goes overwritten. True: some is
 * still held. */
bool down_release(struct keys *k, struct conn *c, uint64_t now);
/* Of len bytes that were held, new ones among them, some go on, clean. Returns how many of those
 * front has got already. */
size_t hold_pass(struct hold *h, size_t clean, size_t len, uint64_t now);
/* Whether what is held of len bytes may go. */
bool hold_is_due(const struct hold *h, size_t len, uint64_t now);
/* The program may be why nothing comes: the time begins anew. */
void hold_again(struct hold *h, uint64_t now);
/* What is held goes, all of held, which stays: of a secret that it is the beginning of the rest is
 * known, and overwritten. ret: as front may see it. */
void hold_show(struct hold *h, const struct keys *k, const struct buf *held, struct scan_for *f,
	       struct buf *ret);
/* Bytes of a body: takes what is data of (bytes, n) into *data and returns how much was used. */
size_t body_data(struct http_body *b, const uint8_t *bytes, size_t n, bool strict,
		 struct buf *data);

#endif
