/*
 * System call filter.
 *
 * In: a set and what this run needs (flags). Out: a BPF program in the caller's memory, and later
 * its installation. The programs are constants that tools/gen_seccomp.py makes from
 * tables/syscalls.def; two things are only known at run time and are changed in the copy, at
 * positions that the generator noted:
 *
 *   - whether somebody answers notifications. A second listener in one chain of filters is EBUSY,
 *     so an inner ward has none, and an unanswered notification would be ENOSYS: its denials are made
 *     EPERM by the filter itself;
 *   - whether memory that shows in no process's size (memfd, System V) is closed, where limits are
 *     held by looking.
 *
 * seccomp_program() runs in the supervisor before clone; seccomp_install() runs in the child, which
 * shares the supervisor's memory and so must not use libc. The filter is the last layer before
 * exec: nothing after it needs a call that the strict set does not have.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#include "base/raw.h"
#include "engine/native/seccomp.h"

struct program {
	const struct sock_filter *code;
	const uint16_t *notify, *closable; /* positions of those RETs */
	uint16_t len, notify_count, closable_count;
};

#include "seccomp-programs.h"

enum { VARIANT_PLAIN, VARIANT_NESTING, VARIANT_RUNG };

static void replace(struct sock_filter *code, const uint16_t *at, size_t count, uint32_t value)
{
	for (size_t i = 0; i < count; i++)
		code[at[i]].k = value;
}

/* In front of the program: the calls that start programs go to the listener, which lets them go on. All sets allow both, whatever their
 * arguments (a unit test holds the table to it): what the listener passes is nothing that the program would not. */
static const struct sock_filter watch_exec[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 4),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
};

int seccomp_program(unsigned set, unsigned flags, struct sock_filter *out, size_t cap,
		    size_t *ret_len)
{
	unsigned variant = flags & SECCOMP_NESTING ? VARIANT_NESTING
			   : flags & SECCOMP_RUNG  ? VARIANT_RUNG
						   : VARIANT_PLAIN;

	if (set >= ARRAY_LEN(programs[0]) || (flags & SECCOMP_NESTING && flags & SECCOMP_RUNG) ||
	    (flags & SECCOMP_NO_LISTENER && flags & SECCOMP_WATCH_EXEC))
		return -EINVAL;

	const struct program *p = &programs[variant][set];

	if (cap < p->len)
		return -ENOSPC;
	memcpy(out, p->code, p->len * sizeof(*out));
	if (flags & SECCOMP_NO_LISTENER)
		replace(out, p->notify, p->notify_count, SECCOMP_RET_ERRNO | EPERM);
	if (flags & SECCOMP_CLOSE_MEMORY)
		replace(out, p->closable, p->closable_count, SECCOMP_RET_ERRNO | ENOSYS);
	*ret_len = p->len;
	if (flags & SECCOMP_WATCH_EXEC) {
		if (cap < p->len + ARRAY_LEN(watch_exec))
			return -ENOSPC;
		memmove(out + ARRAY_LEN(watch_exec), out, p->len * sizeof(*out));
		memcpy(out, watch_exec, sizeof(watch_exec));
		*ret_len += ARRAY_LEN(watch_exec);
	}
	return 0;
}

int seccomp_install(const struct sock_filter *code, size_t len, bool listener)
{
	const struct {
		unsigned short len;
		const struct sock_filter *filter;
	} program = { (unsigned short)len, code };
	unsigned long flags = listener ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;

	return (int)raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}
