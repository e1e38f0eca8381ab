/*
 * A request in ward-keys, whatever it is spoken in: which grant is for it, what of it may leave.
 * Its head is text as of HTTP/1.1. Used by keys_up.c (HTTP/1.1) and keys_h2_up.c (HTTP/2).
 */
#ifndef WARD_KEYS_KEYS_ASK_H
#define WARD_KEYS_KEYS_ASK_H

#include "keys/grpc.h"
#include "keys/keys.h"
#include "keys/part.h"

#define ASK_COLLECT_MAX (4 * 1024 * 1024) /* of a body that has to be signed */
/* a body, or message of gRPC's, that is all looked through before a byte of it leaves */
#define ASK_WHOLE_MAX (64 * 1024)
#define ASK_COLLECTED_MAX (32 * 1024 * 1024) /* of all bodies that are held at one time */

struct ask {
	const struct host *host; /* borrowed: the connection's */
	struct http_head head;
	struct key_grant *grants[INJECT_MAX]; /* all that are put in, each in a place of its own */
	size_t grant_count;
	struct sigv4_request sign;
	/* of something, that was asked for; more was asked for then */
	struct part part;
	struct buf base;        /* its head, without a secret */
	enum unzip_kind coding; /* of its body, or of gRPC's messages in it */
	bool grpc;
	struct grpc messages;
	struct unzip *unzip; /* owned */
	/* a message ends there in the data that is looked through next */
	size_t boundary;
	struct scan_for found;
	bool reported; /* that something was found */
	/* the same, for front: its recording must not have the request */
	bool leaked;
	size_t collected;  /* bytes, of ward-keys' purse */
	uint8_t person;    /* enum person_state */
	uint8_t exact[32]; /* ASKED: of the question; its number, and the port */
	uint64_t question;
	uint16_t port;
	uint32_t answer; /* ANSWERED: enum verdict_reason */
	unsigned status; /* of a refusal, */
	char why[300];   /* and its words */
};

enum person_state { PERSON_UNASKED, PERSON_ASKED, PERSON_ANSWERED };
enum person_say { PERSON_FINE, PERSON_WAITS, PERSON_NO };

/* keys_person.c: whether a request that is complete up to its secret may have it: one of its grants
 * may ask a person first. (bytes, n): what is there of its body; whole: that is all of it. NO: it
 * is refused. */
must_check enum person_say ask_person(struct keys *k, struct ask *a, uint16_t port,
				      const void *bytes, size_t n, bool whole);
/* It does not wait any more. */
void ask_no_person(struct keys *k, struct ask *a);

/* All that return bool: false where it is refused, with status and why. */
bool ask_refuse(struct ask *a, unsigned status, const char *why);
/* A grant is there, and may not be used. */
bool ask_refuse_grant(struct keys *k, struct ask *a, const char *name, const char *why);
/* A whole head at bytes, which http1_head() has read into a->head. body: one follows. */
must_check bool ask_begin(struct keys *k, struct ask *a, const struct host *host, uint16_t port,
			  const uint8_t *bytes, bool body);
/* Whether it is signed by a grant, and the hash of its body not said yet. */
bool ask_signs_body(const struct ask *a);
/* Counts a use of each of its grants. */
void ask_used(struct keys *k, const struct ask *a);
/* Whether all of its body is to be there before its head is sent. */
bool ask_wants_all(const struct ask *a, bool body);
/* Bytes of the body behind data's first `before`. */
must_check bool ask_take(struct keys *k, struct ask *a, const struct buf *data, size_t before);
/* Looks through data: *ret_clean bytes of it may go. sent: the head has gone. */
must_check bool ask_look(struct keys *k, struct ask *a, struct buf *data, bool ended, bool sent,
			 size_t *ret_clean);
/* Whether a body that is held may have grown to n bytes. */
must_check bool ask_hold(struct keys *k, struct ask *a, size_t n);
/* A message of a websocket, looked through with final; *f is what was found. False: it must not
 * leave. */
must_check bool ask_message(struct keys *k, struct ask *a, const struct scan_for *f);
struct scan_for ask_looks_for(const struct keys *k);
/* Fields behind the body, as lines. */
must_check bool ask_trailers(struct keys *k, struct ask *a, struct buf *lines);
/* The head with its secret, in k->compose; the caller zeroes *ret_n bytes there. again: some of it
 * was sent before. */
must_check bool ask_compose(struct keys *k, struct ask *a, bool again, size_t *ret_n);
/* The body is over. */
void ask_end(struct keys *k, struct ask *a);
/* Frees what it has; as at first. */
void ask_clear(struct keys *k, struct ask *a);

/* Where the last message ends in data, of whose bytes those from before on are new; 0: nowhere. */
size_t ask_boundary(const struct keys *k, struct grpc *g, const struct buf *data, size_t before);
/* scan_run() over data with such a boundary in it. */
size_t ask_scan(const struct keys *k, struct buf *data, size_t boundary, bool final,
		struct scan_for *f);
/* The body of a refusal. */
void ask_words(struct buf *out, const char *why);

#endif
