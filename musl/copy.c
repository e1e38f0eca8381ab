/*
 * memcpy() and memmove() of the static program, in place of musl's: those move everything by "rep
 * movsq", which takes thirty cycles to begin, and byte by byte up to the first multiple of eight.
 * What ward copies is a name or a line of some twenty bytes, tens of thousands of times in a policy
 * with many rules: a third of the time that reading one took.
 *
 * Up to 32 bytes: loads of a power of two that overlap in the middle, all of them before the first
 * store. More than LONG: the processor's own loop, which is the fastest there.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LONG 512

struct half {
	uint64_t words[2];
};

static inline struct half load(const char *at)
{
	struct half h;

	__builtin_memcpy(&h, at, sizeof(h));
	return h;
}

static inline void store(char *at, struct half h)
{
	__builtin_memcpy(at, &h, sizeof(h));
}

/* A compiler that knows the loop around this for a copy would call memcpy() for it: this very
 * one. */
static inline void stay_a_loop(void)
{
	__asm__ volatile("" : : : "memory");
}

/* Less than 16 bytes. */
static inline void copy_few(char *to, const char *from, size_t n)
{
	if (n >= 8) {
		uint64_t a, b;

		__builtin_memcpy(&a, from, 8);
		__builtin_memcpy(&b, from + n - 8, 8);
		__builtin_memcpy(to, &a, 8);
		__builtin_memcpy(to + n - 8, &b, 8);
	} else if (n >= 4) {
		uint32_t a, b;

		__builtin_memcpy(&a, from, 4);
		__builtin_memcpy(&b, from + n - 4, 4);
		__builtin_memcpy(to, &a, 4);
		__builtin_memcpy(to + n - 4, &b, 4);
	} else if (n) {
		char a = from[0], b = from[n / 2], c = from[n - 1];

		to[0] = a;
		to[n / 2] = b;
		to[n - 1] = c;
	}
}

/* From the beginning to the end: right, too, where the bytes overlap and move down. */
static inline void copy_up(char *to, const char *from, size_t n)
{
	if (n < 16) {
		copy_few(to, from, n);
	} else if (n <= 32) {
		struct half a = load(from), b = load(from + n - 16);

		store(to, a);
		store(to + n - 16, b);
	} else if (n < LONG) {
		struct half last = load(from + n - 16);
		size_t at = 0;

		for (; at + 16 < n; at += 16) {
			store(to + at, load(from + at));
			stay_a_loop();
		}
		store(to + n - 16, last);
	} else {
		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	}
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	copy_up(to, from, n);
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	if ((uintptr_t)to - (uintptr_t)from >= n) {
		copy_up(to, from, n);
		return to;
	}
	while (n >= 16) {
		n -= 16;
		store((char *)to + n, load((const char *)from + n));
		stay_a_loop();
	}
	copy_few(to, from, n);
	return to;
}
