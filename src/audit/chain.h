/* The chain of a journal: each line carries the hash of itself and of the line before. Pure
 * functions. */
#ifndef WARD_AUDIT_CHAIN_H
#define WARD_AUDIT_CHAIN_H

#include "model/event.h"

#define CHAIN_BYTES 32

struct chain {
	uint8_t head[CHAIN_BYTES]; /* of the last line; zeros: there is none */
	uint64_t seq;              /* its number; 0: there is none */
};

enum chain_fault {
	CHAIN_FINE,
	CHAIN_SHAPE,  /* not a line of a journal */
	CHAIN_NUMBER, /* its number is not the next one */
	CHAIN_HASH    /* it is not what was written, or does not follow the line before */
};

/* Appends an event: gives it its number, writes its line with the hash into out. Returns the
 * length. */
size_t chain_add(struct chain *c, struct ward_event *v, char out[EVENT_LINE_MAX]);
/* Whether a line (n bytes, its newline the last) is the next one. Moves on if it is. */
enum chain_fault chain_check(struct chain *c, const char *line, size_t n);
/* Trusts a line (which was checked elsewhere, or cannot be) about where the chain stands. False: it
 * is none. */
bool chain_trust(struct chain *c, const char *line, size_t n);

void chain_hex(const uint8_t digest[CHAIN_BYTES], char ret[2 * CHAIN_BYTES + 1]);
/* False: it is not 2 * n digits. */
bool chain_unhex(const char *hex, size_t len, uint8_t *ret, size_t n);

/* SHA-256 over before and bytes: our own in ward (digest_own.c), OpenSSL's in ward-audit
 * (digest_openssl.c), which knows the processor's instructions. */
void chain_digest(const uint8_t before[CHAIN_BYTES], const void *bytes, size_t n,
		  uint8_t ret[CHAIN_BYTES]);

#endif
