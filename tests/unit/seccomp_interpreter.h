/* A small interpreter of filters, and the program that it runs: one of
 * engine/native/seccomp.c's. */
#ifndef WARD_TESTS_SECCOMP_INTERPRETER_H
#define WARD_TESTS_SECCOMP_INTERPRETER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/native/seccomp.h"

#define KILL SECCOMP_RET_KILL_PROCESS
#define ALLOW SECCOMP_RET_ALLOW
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define NO_CALL ERRNO(ENOSYS)

/* Numbers that Debian 12's headers lack, written down a second time on purpose. */
enum {
	NR_uretprobe = 335,
	NR_uprobe = 336,
	NR_cachestat = 451,
	NR_fchmodat2,
	NR_map_shadow_stack,
	NR_futex_wake,
	NR_futex_wait,
	NR_futex_requeue,
	NR_statmount,
	NR_listmount,
	NR_lsm_get_self_attr,
	NR_lsm_set_self_attr,
	NR_lsm_list_modules,
	NR_mseal,
	NR_setxattrat,
	NR_getxattrat,
	NR_listxattrat,
	NR_removexattrat,
	NR_open_tree_attr,
	NR_file_getattr,
	NR_file_setattr
};

/* Upper halves that the kernel ignores in an int: none may change the answer. */
static const uint64_t halves[] = { 0, 1ULL << 32, 0xffffffff00000000ULL, 1ULL << 63,
				   0xdeadbeef00000000ULL };

extern struct sock_filter code[SECCOMP_PROGRAM_MAX];
extern size_t code_len;
extern unsigned steps; /* that the last run took */

/* Makes the program that is run from here on. */
void take(unsigned set, unsigned flags);
uint32_t run(const struct seccomp_data *d);
/* What becomes of a call. */
uint32_t fate(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
/* The fate of a call by one int argument, the others being what `args` says; asserts that upper
 * halves do not matter. */
uint32_t by_int(long nr, unsigned arg, uint32_t value, const uint64_t args[6]);

static const unsigned all_flags[] = {
	0,
	SECCOMP_NESTING,
	SECCOMP_LANDLOCK,
	SECCOMP_NO_LISTENER,
	SECCOMP_CLOSE_MEMORY,
	SECCOMP_CLOSE_ALLOCATION,
	SECCOMP_NESTING | SECCOMP_NO_LISTENER | SECCOMP_CLOSE_MEMORY | SECCOMP_CLOSE_ALLOCATION,
	SECCOMP_LANDLOCK | SECCOMP_NO_LISTENER | SECCOMP_CLOSE_MEMORY,
};

#define EACH_PROGRAM                                                                               \
	for (unsigned set = 0; set < 3; set++)                                                     \
		for (size_t f = 0; f < ARRAY_LEN(all_flags); f++)                                  \
			for (unsigned flags = all_flags[f], once = (take(set, flags), 1); once;    \
			     once = 0)

#endif
