/*
 * SHA-256 by the processor's own instructions. In: a state and whole blocks. Out: the state with
 * them mixed in. Pure; used by sha256.c once it has seen that much is hashed, because asking a
 * virtual processor what it can do costs more than the first blocks.
 *
 * The instructions keep the eight words in two registers, (a b e f) and (c d g h), and do two
 * rounds each; four words of the schedule are made from the sixteen before them.
 */
#include "base/sha256_internal.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

#define SSSE3_BIT (1u << 9) /* leaf 1, ecx */
#define SSE41_BIT (1u << 19)
#define SHA_BIT (1u << 29) /* leaf 7, ebx */

bool sha256_is_fast(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & SSSE3_BIT) || !(c & SSE41_BIT))
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & SHA_BIT;
}

__attribute__((target("sha,sse4.1"))) static void mix_one(__m128i *abef, __m128i *cdgh,
							  const uint8_t *block)
{
	/* words are big-endian */
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i w[4], first = *abef, second = *cdgh;

	for (size_t i = 0; i < 4; i++)
		w[i] = _mm_shuffle_epi8(
			_mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i)), swap);
	for (size_t i = 0; i < 16; i++) {
		__m128i now = w[i % 4];
		__m128i sum = _mm_add_epi32(
			now,
			_mm_loadu_si128((const __m128i *)(const void *)(sha256_constants + 4 * i)));
		__m128i next = _mm_sha256rnds2_epu32(second, first, sum);

		second = _mm_sha256rnds2_epu32(first, next, _mm_shuffle_epi32(sum, 0x0e));
		first = second;
		second = next;
		if (i >= 12)
			continue;
		now = _mm_sha256msg1_epu32(now, w[(i + 1) % 4]);
		now = _mm_add_epi32(now, _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4));
		w[i % 4] = _mm_sha256msg2_epu32(now, w[(i + 3) % 4]);
	}
	*abef = _mm_add_epi32(*abef, first);
	*cdgh = _mm_add_epi32(*cdgh, second);
}

__attribute__((target("sha,sse4.1"))) void sha256_mix_fast(uint32_t state[8], const uint8_t *blocks,
							   size_t count)
{
	__m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
	__m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);

	for (size_t i = 0; i < count; i++)
		mix_one(&abef, &cdgh, blocks + i * SHA256_BLOCK);
	state[0] = (uint32_t)_mm_extract_epi32(abef, 3);
	state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
	state[4] = (uint32_t)_mm_extract_epi32(abef, 1);
	state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
	state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3);
	state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
	state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1);
	state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}

#else

bool sha256_is_fast(void)
{
	return false;
}

void sha256_mix_fast(uint32_t state[8] unused_arg, const uint8_t *blocks unused_arg,
		     size_t count unused_arg)
{
}

#endif
