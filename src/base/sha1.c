/*
 * SHA-1 as FIPS 180-4 defines it. In: bytes. Out: a digest. Pure functions; the supervisor runs
 * them to check the trailer of a git index and the names of git objects. git's default object
 * format is SHA-1, so a reader of git data needs it; that two contents with one digest can be made
 * on purpose is git's concern, and this code does not detect it. Tested against the standard's
 * vectors and against git.
 */
#include "base/sha1.h"
#include "base/sha1_internal.h"

#include <string.h>

#define BLOCK SHA1_BLOCK
/* blocks: to ask a virtual processor what it can do costs as much as some of them */
#define LONG 64

static uint32_t turn(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static void expand(const uint8_t *block, uint32_t w[80])
{
	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = 16; i < 80; i++)
		w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
}

/* One round; the names move on by one from round to round instead of the values. */
#define ROUND(a, b, c, d, e, f, k, i)                                                              \
	do {                                                                                       \
		e += turn(a, 5) + (f) + (k) + w[i];                                                \
		b = turn(b, 30);                                                                   \
	} while (0)

#define CHOOSE(b, c, d) (((b) & (c)) | (~(b) & (d)))
#define PARITY(b, c, d) ((b) ^ (c) ^ (d))
#define MAJORITY(b, c, d) (((b) & (c)) | ((b) & (d)) | ((c) & (d)))

#define TWENTY(F, k, from)                                                                         \
	for (size_t i = from; i < from + 20; i += 5) {                                             \
		ROUND(a, b, c, d, e, F(b, c, d), k, i);                                            \
		ROUND(e, a, b, c, d, F(a, b, c), k, i + 1);                                        \
		ROUND(d, e, a, b, c, F(e, a, b), k, i + 2);                                        \
		ROUND(c, d, e, a, b, F(d, e, a), k, i + 3);                                        \
		ROUND(b, c, d, e, a, F(c, d, e), k, i + 4);                                        \
	}

static void mix(uint32_t state[5], const uint8_t *block)
{
	uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

	expand(block, w);
	TWENTY(CHOOSE, 0x5a827999, 0);
	TWENTY(PARITY, 0x6ed9eba1, 20);
	TWENTY(MAJORITY, 0x8f1bbcdc, 40);
	TWENTY(PARITY, 0xca62c1d6, 60);
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

void sha1_begin(struct sha1 *s)
{
	static const uint32_t first[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
					   0xc3d2e1f0 };

	memcpy(s->state, first, sizeof(first));
	s->bytes = 0;
}

void sha1_add(struct sha1 *s, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	size_t had = s->bytes % BLOCK;

	s->bytes += n;
	if (had && had + n >= BLOCK) {
		memcpy(s->block + had, at, BLOCK - had);
		mix(s->state, s->block);
		at += BLOCK - had;
		n -= BLOCK - had;
		had = 0;
	}
	if (!had && n >= LONG * BLOCK && sha1_is_fast()) {
		sha1_mix_fast(s->state, at, n / BLOCK);
		at += n / BLOCK * BLOCK;
		n %= BLOCK;
	}
	for (; !had && n >= BLOCK; at += BLOCK, n -= BLOCK)
		mix(s->state, at);
	if (n)
		memcpy(s->block + had, at, n);
}

void sha1_end(struct sha1 *s, uint8_t ret[SHA1_BYTES])
{
	static const uint8_t end[BLOCK] = { 0x80 };
	uint64_t bits = s->bytes * 8;
	size_t had = s->bytes % BLOCK;
	uint8_t length[8];

	sha1_add(s, end, (had < BLOCK - 8 ? BLOCK - 8 : 2 * BLOCK - 8) - had);
	for (size_t i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha1_add(s, length, sizeof(length));
	for (size_t i = 0; i < SHA1_BYTES; i++)
		ret[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}
