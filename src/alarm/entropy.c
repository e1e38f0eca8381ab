/*
 * Whether bytes look random, as encrypted files do. In: the beginning of a file, written by a
 * sandbox. Out: its entropy. Integers only; pure. What is compressed looks random, too: formats
 * that begin with a known magic are left out, which also lets a hostile program hide behind one.
 */
#include "alarm/entropy.h"

#include <string.h>

#include "base/own.h"

static const struct {
	uint8_t len;
	char magic[8];
} formats[] = {
	{ 2, "\x1f\x8b" }, /* gzip */
	{ 2, "PK" },       /* zip, jar, docx, wheels */
	{ 3, "BZh" },      /* bzip2 */
	{ 6, "\xfd"
	     "7zXZ" },             /* xz, with the NUL behind it */
	{ 4, "\x28\xb5\x2f\xfd" }, /* zstd */
	{ 4, "\x04\x22\x4d\x18" }, /* lz4 */
	{ 6, "7z\xbc\xaf\x27\x1c" },
	{ 3, "\xff\xd8\xff" }, /* jpeg */
	{ 8, "\x89PNG\r\n\x1a\n" },
	{ 4, "GIF8" },
	{ 4, "RIFF" }, /* webp, wav */
	{ 4, "%PDF" },
	{ 4, "wOF2" }, /* fonts */
	{ 4, "OggS" },
	{ 4, "fLaC" },
	{ 3, "ID3" },
	{ 4, "PACK" }, /* of git */
	{ 2, "\x78\x01" },
	{ 2, "\x78\x9c" },
	{ 2, "\x78\xda" }, /* zlib: loose objects of git */
};

/* The logarithm to the base of 2, in 65536ths; x is not 0. */
static uint32_t log2_of(uint32_t x)
{
	unsigned whole = 31 - (unsigned)__builtin_clz(x);
	uint64_t y = (uint64_t)x << (31 - whole); /* 1 <= y < 2, in 2^-31 */
	uint32_t part = 0;

	for (unsigned bit = 1 << 15; bit; bit >>= 1) {
		y = y * y >> 31;
		if (y >> 32) {
			y >>= 1;
			part |= bit;
		}
	}
	return whole << 16 | part;
}

static int is_compressed(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (n >= formats[i].len && memcmp(bytes, formats[i].magic, formats[i].len) == 0)
			return 1;
	return n > 12 && memcmp(bytes + 4, "ftyp", 4) == 0; /* mp4, heic */
}

unsigned entropy_of(const uint8_t *bytes, size_t n)
{
	uint32_t counts[256] = { 0 };
	uint64_t sum = 0;

	if (n > ENTROPY_MOST)
		n = ENTROPY_MOST;
	if (n < ENTROPY_LEAST || is_compressed(bytes, n))
		return 0;
	for (size_t i = 0; i < n; i++)
		counts[bytes[i]]++;
	for (unsigned i = 0; i < 256; i++)
		if (counts[i])
			sum += (uint64_t)counts[i] * log2_of(counts[i]);
	return (unsigned)(((uint64_t)log2_of((uint32_t)n) - sum / n) * 100 >> 16);
}
