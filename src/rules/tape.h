/*
 * A recording of exchanges (network.record, network.replay). One file:
 *
 *   16 bytes      "ward recording\0", version
 *   frame ...     struct tape_frame, then its bytes
 *
 * Each frame's hash covers that of the frame before it, so that a file is read up to the first byte
 * that is not as it was written, and the hash of the last frame stands for the whole. Exchanges are
 * numbered from 1 in the order in which they began; their frames lie between each other's as they
 * came. An exchange is ASK, then in any order BODY (the request's is complete: its digest) and
 * HEAD, DATA ..., at last END. What a request's body was is not in the file, and neither are values
 * that may be secret (tape_write.c).
 *
 * tape.c reads and is pure (fuzz/tape.c), tape_write.c writes frames, record.c is front's side,
 * record_main.c the process that has the file, replay*.c the one that answers from it.
 */
#ifndef WARD_RULES_TAPE_H
#define WARD_RULES_TAPE_H

#include "base/buf.h"
#include "base/sha256.h"
#include "rules/http_message.h"

#define TAPE_VERSION 1
#define TAPE_START 16 /* bytes before the first frame */
#define TAPE_HASH 16
#define TAPE_PAYLOAD_MAX (160 * 1024) /* a head, or a piece of a body */
#define TAPE_EXCHANGES_MAX 65536
#define TAPE_BYTES_MAX (UINT64_C(16) << 30)

enum tape_kind { TAPE_ASK = 1, TAPE_BODY, TAPE_HEAD, TAPE_DATA, TAPE_END, TAPE_CLOSE, TAPE_KINDS };

/* As it stands in the file; numbers are little-endian, as on every machine that ward runs on. */
struct tape_frame {
	uint32_t bytes; /* behind it */
	uint8_t kind;   /* enum tape_kind */
	uint8_t unused[3];
	uint32_t exchange; /* CLOSE: how many there are */
	uint32_t at_ms;    /* since the recording began */
	uint8_t hash[TAPE_HASH];
};

/* What an ASK says. */
struct tape_ask {
	uint16_t port;
	uint8_t version; /* of HTTP: 1 or 2 */
	bool tls;
	uint8_t key[SHA256_BYTES];           /* of method and URL: tape_key() */
	struct http_text method, host, path; /* path: the values of its query are not there */
	struct http_fields *fields;          /* filled where it is not NULL */
};

struct tape_body {
	uint8_t digest[SHA256_BYTES];
	uint64_t bytes;
};

enum tape_end { TAPE_WHOLE = 1, TAPE_BROKEN };

/* One exchange of a recording. */
struct tape_entry {
	uint64_t ask_at, head_at; /* of those frames; head_at 0: it was never answered */
	struct tape_body body;
	uint8_t key[SHA256_BYTES];
	/* early: the answer began before the request was complete */
	bool has_body, early;
	bool used, h2;
};

struct tape {
	const uint8_t *bytes;       /* borrowed: the file */
	uint64_t len;               /* of it, what is whole */
	struct tape_entry *entries; /* owned */
	uint32_t count;
	bool closed;             /* it was ended in order */
	uint8_t hash[TAPE_HASH]; /* of the last frame */
};

/* Reads the file up to its end or its break. Fails where it is no recording, one of another
 * version, or has nothing whole in it. */
must_check int tape_open(const uint8_t *bytes, uint64_t n, struct tape *ret, struct ward_err *e);
void tape_close(struct tape *t);

/* The frame at a place that tape_open() or tape_after() gave. */
struct tape_frame tape_frame_at(const struct tape *t, uint64_t at);
/* Where the exchange goes on behind the frame at `at`; 0: nowhere. */
uint64_t tape_after(const struct tape *t, uint64_t at, uint32_t exchange);
/* Reads the bytes of a frame. False: they are not what the kind has. Texts point into the file. */
must_check bool tape_ask_read(const uint8_t *bytes, size_t n, struct tape_ask *ret);
must_check bool tape_head_read(const uint8_t *bytes, size_t n, uint16_t *ret_status,
			       struct http_fields *ret);
must_check bool tape_end_read(const uint8_t *bytes, size_t n, enum tape_end *ret,
			      struct http_fields *trailers);

/* What a request is found by. */
void tape_key(struct http_text method, const char *host, uint16_t port, struct http_text path,
	      struct http_text query, uint8_t ret[SHA256_BYTES]);
/* The hash of a frame that stands behind one of this hash. */
void tape_hash(const uint8_t before[TAPE_HASH], const struct tape_frame *f, const void *bytes,
	       uint8_t ret[TAPE_HASH]);
void tape_start(uint8_t ret[TAPE_START]);

/* The first exchange in order that was not used and asked for this; -1: none. body NULL: it is not
 * known yet, and only those that were answered early count. *ret_others: how many of the same
 * method and URL there are. */
int32_t tape_find(const struct tape *t, const uint8_t key[SHA256_BYTES],
		  const struct tape_body *body, uint32_t *ret_others);

/* tape_write.c: the bytes of a frame, without what may be secret. */
void tape_write_ask(struct buf *out, const struct http_request *r, bool tls, unsigned version,
		    const char *host, uint16_t port, struct http_text path);
void tape_write_head(struct buf *out, uint16_t status, const struct http_fields *f);
void tape_write_end(struct buf *out, enum tape_end how, const struct http_fields *trailers);

#endif
