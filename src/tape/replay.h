/*
 * replay: the process that stands in for dial and for every server of a run with network.replay. It
 * speaks dial's protocol with front and answers each connection that is looked into with one end of
 * a socket pair, over which it then plays the server, in the clear: a byte first that says what the
 * recording has of this host ('1': HTTP/1, '2': HTTP/2), then whichever of both front speaks. It
 * has the recording, mapped for reading, and no network.
 *
 *   replay_main.c   connections, front's requests
 *   replay_play.c   which exchange answers a request, its pieces in order
 *   replay_h1.c     HTTP/1.1
 *   replay_h2.c     HTTP/2
 */
#ifndef WARD_TAPE_REPLAY_H
#define WARD_TAPE_REPLAY_H

#include "rules/tape.h"
#include "transport/wire.h"

/* the field of an answer that means: the recording has none; its value says why */
#define REPLAY_WHY "x-ward-replay"
#define REPLAY_WHY_MAX 180
#define REPLAY_MISS 599u
#define REPLAY_OUT (64 * 1024)

/* A recorded answer in the giving. */
struct play {
	int32_t entry;       /* -1: none was found yet */
	uint64_t at;         /* its frame */
	const uint8_t *data; /* of a piece, what is left */
	size_t left;
	bool over, whole;
	struct http_fields *trailers; /* owned; NULL until it is over */
};

/* A request in the reading. */
struct played_request {
	uint8_t key[SHA256_BYTES];
	struct sha256 sent;
	uint64_t sent_bytes;
	char what[84]; /* method and path, for people */
};

struct seat_h2;

/* One connection. */
struct seat {
	struct seat *prev, *next;
	int fd;
	uint32_t events;   /* as epoll knows them */
	struct tape *tape; /* borrowed */
	struct host host;
	uint16_t port;
	bool more;            /* it was only interrupted */
	bool dead, finishing; /* finishing: pending output is sent, then it ends */
	struct queue in, out;
	struct seat_h2 *h2; /* owned; NULL: HTTP/1, or nothing was received yet */
	bool begun;
	/* HTTP/1: */
	size_t scanned;
	bool asked, is_head, answered, chunked, bodiless;
	uint64_t length; /* that is still owed, if its length is known */
	struct http_body body;
	struct played_request request;
	struct play play;
};

/* replay_play.c */
void play_ask(struct played_request *r, const struct seat *s, struct http_text method,
	      struct http_text path, struct http_text query);
void play_sent(struct played_request *r, const void *bytes, size_t n);
/* Finds the exchange that answers; whole: all of the request's body is known. */
bool play_find(struct seat *s, struct played_request *r, bool whole, struct play *ret);
/* Why there is none: one line. */
void play_why_not(const struct seat *s, const struct played_request *r, char why[REPLAY_WHY_MAX]);
/* The head of the answer. */
must_check bool play_head(const struct seat *s, const struct play *p, uint16_t *ret_status,
			  struct http_fields *ret);
/* Makes sure that p->left is not 0, or p->over. */
void play_step(const struct seat *s, struct play *p);
void play_clear(struct play *p);

/* replay_h1.c, replay_h2.c: do what can be done now; true: something happened. */
bool seat_run_h1(struct seat *s);
must_check bool seat_begin_h2(struct seat *s);
bool seat_run_h2(struct seat *s);
void seat_end_h2(struct seat *s);

int replay_main(void);

#endif
