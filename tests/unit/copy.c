/* Unit test of musl/copy.c, under other names beside the real functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/own.h"

#undef memcpy
#undef memmove
#define memcpy copy_memcpy
#define memmove copy_memmove
void *copy_memcpy(void *restrict to, const void *restrict from, size_t n);
void *copy_memmove(void *to, const void *from, size_t n);
#include "../../musl/copy.c"

#define BYTES 2048
#define MARGIN 64

/* Every byte of out is what a copy one byte at a time would have left there. */
static void check(const unsigned char *out, const unsigned char *before, size_t to, size_t from,
		  size_t n)
{
	for (size_t i = 0; i < BYTES; i++) {
		bool copied = i >= to && i < to + n;

		assert_int_equal(out[i], before[copied ? from + (i - to) : i]);
	}
}

static void fill(unsigned char *bytes)
{
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (unsigned char)(i * 31 + i / 251);
}

static void test_every_length(unused_arg void **state)
{
	unsigned char before[BYTES], out[BYTES];

	for (size_t n = 0; n <= LONG + 40; n++)
		for (size_t shift = 0; shift < 9; shift++) {
			size_t to = MARGIN + shift, from = BYTES / 2 + 3 * shift;

			fill(before);
			fill(out);
			assert_ptr_equal(memcpy(out + to, out + from, n), out + to);
			check(out, before, to, from, n);
		}
}

static void test_every_overlap(unused_arg void **state)
{
	static const size_t lengths[] = { 0,  1,  2,  3,  4,  7,   8,   9,        15,       16,
					  17, 31, 32, 33, 48, 100, 255, LONG - 1, LONG + 1, 900 };
	unsigned char before[BYTES], out[BYTES];

	for (size_t k = 0; k < ARRAY_LEN(lengths); k++)
		for (size_t from = MARGIN; from < 2 * MARGIN; from++)
			for (size_t to = MARGIN; to < 2 * MARGIN; to += 3) {
				fill(before);
				fill(out);
				assert_ptr_equal(memmove(out + to, out + from, lengths[k]),
						 out + to);
				check(out, before, to, from, lengths[k]);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_every_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
