/*
 * SHA-256 as FIPS 180-4 defines it. In: bytes. Out: a digest. Pure functions, run by `ward trust`,
 * by a run that finds a policy file which widens, and for every line of a journal. Our own because
 * the static `ward` must stay small: a crypto library costs more page faults at every start than
 * this costs lines. Tested against the standard's vectors.
 */
#include "base/sha256_internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define BLOCK SHA256_BLOCK
#define MUCH 256 /* blocks; from then on it is worth asking the processor */

const uint32_t sha256_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t turn(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void expand(const uint8_t *block, uint32_t w[64])
{
	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
}

/* One round; the names move on by one from round to round instead of the values. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                           \
	do {                                                                                       \
		uint32_t t1 = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +                       \
			      ((e & f) ^ (~e & g)) + sha256_constants[i] + w[i];                   \
		uint32_t t2 =                                                                      \
			(turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));  \
		d += t1;                                                                           \
		h = t1 + t2;                                                                       \
	} while (0)

static void mix(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4],
			f = state[5], g = state[6], h = state[7];

	expand(block, w);
	for (size_t i = 0; i < 64; i += 8) {
		ROUND(a, b, c, d, e, f, g, h, i);
		ROUND(h, a, b, c, d, e, f, g, i + 1);
		ROUND(g, h, a, b, c, d, e, f, i + 2);
		ROUND(f, g, h, a, b, c, d, e, i + 3);
		ROUND(e, f, g, h, a, b, c, d, i + 4);
		ROUND(d, e, f, g, h, a, b, c, i + 5);
		ROUND(c, d, e, f, g, h, a, b, i + 6);
		ROUND(b, c, d, e, f, g, h, a, i + 7);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

void sha256_mix_plain(uint32_t state[8], const uint8_t *blocks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mix(state, blocks + i * BLOCK);
}

static void mix_blocks(uint32_t state[8], const uint8_t *blocks, size_t count)
{
	enum { UNASKED, SLOW, FAST };
	static atomic_int way;
	static atomic_size_t so_far;

	if (way == UNASKED && atomic_fetch_add(&so_far, count) > MUCH)
		way = sha256_is_fast() ? FAST : SLOW;
	if (way == FAST)
		sha256_mix_fast(state, blocks, count);
	else
		sha256_mix_plain(state, blocks, count);
}

void sha256_begin(struct sha256 *s)
{
	static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->state, first, sizeof(first));
	s->bytes = 0;
}

void sha256_add(struct sha256 *s, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	size_t had = s->bytes % BLOCK;

	s->bytes += n;
	if (had && had + n >= BLOCK) {
		memcpy(s->block + had, at, BLOCK - had);
		mix_blocks(s->state, s->block, 1);
		at += BLOCK - had;
		n -= BLOCK - had;
		had = 0;
	}
	if (!had && n >= BLOCK) {
		mix_blocks(s->state, at, n / BLOCK);
		at += n / BLOCK * BLOCK;
		n %= BLOCK;
	}
	if (n)
		memcpy(s->block + had, at, n);
}

void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES])
{
	static const uint8_t end[BLOCK] = { 0x80 };
	uint64_t bits = s->bytes * 8;
	size_t had = s->bytes % BLOCK;
	uint8_t length[8];

	sha256_add(s, end, (had < BLOCK - 8 ? BLOCK - 8 : 2 * BLOCK - 8) - had);
	for (size_t i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(s, length, sizeof(length));
	for (size_t i = 0; i < SHA256_BYTES; i++)
		ret[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_end_hex(struct sha256 *s, char ret_hex[SHA256_HEX])
{
	uint8_t digest[SHA256_BYTES];

	sha256_end(s, digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

void sha256_hex(const void *bytes, size_t n, char ret_hex[SHA256_HEX])
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, bytes, n);
	sha256_end_hex(&s, ret_hex);
}
