/*
 * The rate of the time stamp counter, for the kernel of an emulated guest: left to itself it
 * measures the counter against an emulated timer, which goes wrong on a busy host, and the guest
 * hangs. In: nothing. Out: kHz.
 */
#include "vm/tsc.h"

#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

#define SPAN_NS 8000000

struct moment {
	uint64_t ticks;
	int64_t ns;
};

/* Both clocks at nearly one moment: of several tries the one in which least time passed between. */
static struct moment read_both(void)
{
	uint64_t least = UINT64_MAX;
	struct moment best = { 0 };

	for (int i = 0; i < 16; i++) {
		uint64_t before = __rdtsc(), after;
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC_RAW, &t);
		after = __rdtsc();
		if (after - before < least) {
			least = after - before;
			best = (struct moment){ before + least / 2,
						t.tv_sec * INT64_C(1000000000) + t.tv_nsec };
		}
	}
	return best;
}

unsigned long tsc_khz(void)
{
	const struct timespec span = { .tv_nsec = SPAN_NS };
	struct moment a = read_both(), b;

	nanosleep(&span, NULL);
	b = read_both();
	return b.ns > a.ns
		       ? (unsigned long)((b.ticks - a.ticks) * 1000000 / (uint64_t)(b.ns - a.ns))
		       : 0;
}
