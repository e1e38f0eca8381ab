/*
 * The chain. In: events, or lines that may have been changed. Out: lines, or the first thing that
 * is wrong with one. Pure; run by the writer in the supervisor and by `ward audit verify`.
 *
 * A line is BODY `,"hash":"` 64 digits `"}` newline; the hash is SHA-256(hash of the line before,
 * BODY). To change, remove or swap a line, an attacker must write every hash after it anew, and the
 * last one stands in the index (index.c).
 */
#include "audit/chain.h"
#include "event/event.h"

#include <string.h>

#define TAIL_HEAD ",\"hash\":\""
#define TAIL_END "\"}\n"

_Static_assert(sizeof(TAIL_HEAD) - 1 + EVENT_HASH_TEXT + sizeof(TAIL_END) - 1 == EVENT_TAIL,
	       "the tail is as long as event.h says");

void chain_hex(const uint8_t digest[CHAIN_BYTES], char ret[2 * CHAIN_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < CHAIN_BYTES; i++) {
		ret[2 * i] = digits[digest[i] >> 4];
		ret[2 * i + 1] = digits[digest[i] & 15];
	}
	ret[2 * CHAIN_BYTES] = '\0';
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool chain_unhex(const char *hex, size_t len, uint8_t *ret, size_t n)
{
	if (len != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

size_t chain_add(struct chain *c, struct ward_event *v, char out[EVENT_LINE_MAX])
{
	char hex[2 * CHAIN_BYTES + 1];
	size_t n;

	v->seq = ++c->seq;
	n = event_encode(v, out) - 2; /* without its end */
	chain_digest(c->head, out, n, c->head);
	chain_hex(c->head, hex);
	memcpy(out + n, TAIL_HEAD, sizeof(TAIL_HEAD) - 1);
	n += sizeof(TAIL_HEAD) - 1;
	memcpy(out + n, hex, EVENT_HASH_TEXT);
	n += EVENT_HASH_TEXT;
	memcpy(out + n, TAIL_END, sizeof(TAIL_END) - 1);
	return n + sizeof(TAIL_END) - 1;
}

/* The number and the hash that a line claims. */
static bool read_claims(const char *line, size_t n, uint64_t *ret_seq,
			uint8_t ret_hash[CHAIN_BYTES])
{
	static const char head[] = "{\"seq\":";
	size_t i = sizeof(head) - 1;
	const char *tail;

	if (n < i + 1 + EVENT_TAIL || n >= EVENT_LINE_MAX || memcmp(line, head, i) != 0)
		return false;
	for (*ret_seq = 0; line[i] >= '0' && line[i] <= '9' && *ret_seq < UINT64_MAX / 10 - 1; i++)
		*ret_seq = *ret_seq * 10 + (uint64_t)(line[i] - '0');
	tail = line + n - EVENT_TAIL;
	return line[i] == ',' && memcmp(tail, TAIL_HEAD, sizeof(TAIL_HEAD) - 1) == 0 &&
	       memcmp(line + n - (sizeof(TAIL_END) - 1), TAIL_END, sizeof(TAIL_END) - 1) == 0 &&
	       chain_unhex(tail + sizeof(TAIL_HEAD) - 1, EVENT_HASH_TEXT, ret_hash, CHAIN_BYTES);
}

enum chain_fault chain_check(struct chain *c, const char *line, size_t n)
{
	uint8_t claimed[CHAIN_BYTES], real[CHAIN_BYTES];
	uint64_t seq;

	if (!read_claims(line, n, &seq, claimed))
		return CHAIN_SHAPE;
	if (seq != c->seq + 1)
		return CHAIN_NUMBER;
	chain_digest(c->head, line, n - EVENT_TAIL, real);
	if (memcmp(claimed, real, CHAIN_BYTES) != 0)
		return CHAIN_HASH;
	memcpy(c->head, real, CHAIN_BYTES);
	c->seq = seq;
	return CHAIN_FINE;
}

bool chain_trust(struct chain *c, const char *line, size_t n)
{
	return read_claims(line, n, &c->seq, c->head);
}
