/*
 * SHA-1 by the processor's own instructions. In: a state and whole blocks. Out: the state with them
 * mixed in. Pure; sha1.c uses it for what is long, an index mostly.
 *
 * One instruction does four rounds: four of the words lie in one register, the fifth is made from
 * the first of those as they were four rounds ago. Which function and constant they use is part of
 * the instruction, so there is one for each twenty rounds.
 */
#include "base/sha1_internal.h"

#ifdef __x86_64__
#include <immintrin.h>

#include "base/sha256_internal.h"

bool sha1_is_fast(void)
{
	return sha256_is_fast(); /* the two come together */
}

__attribute__((target("sha,sse4.1"))) static __m128i four_rounds(size_t i, __m128i abcd, __m128i e)
{
	switch (i / 5) {
	case 0:
		return _mm_sha1rnds4_epu32(abcd, e, 0);
	case 1:
		return _mm_sha1rnds4_epu32(abcd, e, 1);
	case 2:
		return _mm_sha1rnds4_epu32(abcd, e, 2);
	default:
		return _mm_sha1rnds4_epu32(abcd, e, 3);
	}
}

__attribute__((target("sha,sse4.1"))) static void mix_one(__m128i *abcd, __m128i *e,
							  const uint8_t *block)
{
	/* words are big-endian, the first is the highest */
	const __m128i swap = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
	__m128i w[4], now = *abcd, before = *e;

	for (size_t i = 0; i < 4; i++)
		w[i] = _mm_shuffle_epi8(
			_mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i)), swap);
#pragma GCC unroll 20
	for (size_t i = 0; i < 20; i++) {
		__m128i words = w[i % 4], next = i == 0 ? _mm_add_epi32(before, words)
							: _mm_sha1nexte_epu32(before, words);

		before = now;
		now = four_rounds(i, now, next);
		if (i < 16)
			w[i % 4] = _mm_sha1msg2_epu32(
				_mm_xor_si128(_mm_sha1msg1_epu32(words, w[(i + 1) % 4]),
					      w[(i + 2) % 4]),
				w[(i + 3) % 4]);
	}
	*e = _mm_sha1nexte_epu32(before, *e);
	*abcd = _mm_add_epi32(*abcd, now);
}

__attribute__((target("sha,sse4.1"))) void sha1_mix_fast(uint32_t state[5], const uint8_t *blocks,
							 size_t count)
{
	__m128i abcd = _mm_set_epi32((int)state[0], (int)state[1], (int)state[2], (int)state[3]);
	__m128i e = _mm_set_epi32((int)state[4], 0, 0, 0);

	for (size_t i = 0; i < count; i++)
		mix_one(&abcd, &e, blocks + i * SHA1_BLOCK);
	state[0] = (uint32_t)_mm_extract_epi32(abcd, 3);
	state[1] = (uint32_t)_mm_extract_epi32(abcd, 2);
	state[2] = (uint32_t)_mm_extract_epi32(abcd, 1);
	state[3] = (uint32_t)_mm_extract_epi32(abcd, 0);
	state[4] = (uint32_t)_mm_extract_epi32(e, 3);
}

#else

bool sha1_is_fast(void)
{
	return false;
}

void sha1_mix_fast(uint32_t state[5] unused_arg, const uint8_t *blocks unused_arg,
		   size_t count unused_arg)
{
}

#endif
