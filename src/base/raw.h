/*
 * System calls without a libc: the result is a value >= 0 or -errno, nothing else is touched. For
 * code that runs where a libc must not: ward-init, and the child between clone3 and exec, which
 * shares the supervisor's memory (and so its errno) while the supervisor goes on.
 */
#ifndef WARD_BASE_RAW_H
#define WARD_BASE_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#ifdef __clang_analyzer__
/* It does not see what the instruction writes; a call that it knows nothing about may write
 * anything. */
long raw_call6(long nr, long a, long b, long c, long d, long e, long f);
#else
static inline long raw_call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#endif

/* An argument may be a number or a pointer. */
#define RAW_ARG(x) ((long)(x))
#define raw_call(...)                                                                              \
	RAW_PICK(__VA_ARGS__, RAW_6, RAW_5, RAW_4, RAW_3, RAW_2, RAW_1, RAW_0, )(__VA_ARGS__)
#define RAW_PICK(nr, a, b, c, d, e, f, name, ...) name
#define RAW_0(nr) raw_call6(nr, 0, 0, 0, 0, 0, 0)
#define RAW_1(nr, a) raw_call6(nr, RAW_ARG(a), 0, 0, 0, 0, 0)
#define RAW_2(nr, a, b) raw_call6(nr, RAW_ARG(a), RAW_ARG(b), 0, 0, 0, 0)
#define RAW_3(nr, a, b, c) raw_call6(nr, RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), 0, 0, 0)
#define RAW_4(nr, a, b, c, d) raw_call6(nr, RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), RAW_ARG(d), 0, 0)
#define RAW_5(nr, a, b, c, d, e)                                                                   \
	raw_call6(nr, RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), RAW_ARG(d), RAW_ARG(e), 0)
#define RAW_6(nr, a, b, c, d, e, f)                                                                \
	raw_call6(nr, RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), RAW_ARG(d), RAW_ARG(e), RAW_ARG(f))

static inline size_t raw_strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

#define RAW_NUMBER_BYTES 21 /* the longest, and its end */

/* Writes a number in decimal and a null behind it; returns where that is. */
static inline char *raw_put_number(char *at, uint64_t n)
{
	char digits[RAW_NUMBER_BYTES];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + n % 10);
	while (n /= 10);
	while (count)
		*at++ = digits[--count];
	*at = '\0';
	return at;
}

#endif
