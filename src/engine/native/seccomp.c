/*
 * System call filter.
 *
 * In: a set and what this run needs (flags). Out: a BPF program in the caller's memory, and later
 * its installation. The programs are constants that tools/gen_seccomp.py makes from
 * tables/syscalls.def; three things are only known at run time and are changed in the copy, at
 * positions that the generator noted:
 *
 *   - whether a process answers notifications. A second listener in one chain of filters is EBUSY,
 *     so an inner ward has none, and an unanswered notification would be ENOSYS: its denials are
 *     made
 *     EPERM by the filter itself;
 *   - whether memory that shows in no process's size (memfd, System V) is closed, where limits are
 *     held by looking;
 *   - whether fallocate() may take blocks. Where the disk limit is held by looking it fails with
 *     EOPNOTSUPP, as on a file system that cannot do it: posix_fallocate() and most programs then
 *     write, which takes time. The mode that frees blocks (a hole) stays.
 *
 * seccomp_program() runs in the supervisor before clone; seccomp_install() runs in the child, which
 * shares the supervisor's memory and so must not use libc. The filter is the last layer before
 * exec: nothing after it needs a call that the strict set does not have.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include "base/raw.h"
#include "engine/native/seccomp.h"
#include "observe/observe.h"

struct program {
	const struct sock_filter *code;
	const uint16_t *notify, *closable, *allocates; /* positions of those RETs */
	uint16_t len, notify_count, closable_count, allocates_count;
};

#include "seccomp-programs.h"

enum { VARIANT_PLAIN, VARIANT_NESTING, VARIANT_LANDLOCK };

static void replace(struct sock_filter *code, const uint16_t *at, size_t count, uint32_t value)
{
	for (size_t i = 0; i < count; i++)
		code[at[i]].k = value;
}

#define NO (-1)
#define SET_ID 06000
#define TMPFILE_BIT 020000000 /* O_TMPFILE without O_DIRECTORY */
#define WRITE_BITS (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static const struct watched {
	uint16_t nr;
	uint8_t group;
	int8_t flags, mode;
} watched[] = {
#define WATCH(call, group, act, dir, path, flags, mode, from_dir, from)                            \
	{ SYS_##call, OBSERVE_##group, flags, mode },
#include "watched.def"
};

#define WATCH_MAX (ARRAY_LEN(watched) * 9 + 4)

struct writer {
	struct sock_filter *code;
	size_t len;
};

static void put(struct writer *w, unsigned code, uint32_t k, unsigned yes, unsigned no)
{
	w->code[w->len++] = (struct sock_filter){ (uint16_t)code, (uint8_t)yes, (uint8_t)no, k };
}

/* The low half of an argument: all that the kernel takes of flags and modes. */
static void put_load(struct writer *w, int argument)
{
	put(w, BPF_LD | BPF_W | BPF_ABS,
	    (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)argument), 0, 0);
}

#define ONWARDS UINT32_MAX /* a jump to the program proper, whose place is not known yet */

/* One call: the listener has it, unless its arguments are such that the program proper must
 * decide. */
static void put_watched(struct writer *w, const struct watched *c, unsigned groups)
{
	size_t begin = w->len;

	put(w, BPF_JMP | BPF_JEQ | BPF_K, c->nr, 0, 0);
	if (c->flags != NO) {
		put_load(w, c->flags);
		if (!(groups & OBSERVE_READS)) {
			put(w, BPF_JMP | BPF_JSET | BPF_K, WRITE_BITS, 1, 0);
			put(w, BPF_JMP | BPF_JA, ONWARDS, 0, 0);
		}
		put(w, BPF_JMP | BPF_JSET | BPF_K, O_CREAT | TMPFILE_BIT, 0, 3);
	}
	if (c->mode != NO) {
		put_load(w, c->mode);
		put(w, BPF_JMP | BPF_JSET | BPF_K, SET_ID, 0, 1);
		put(w, BPF_JMP | BPF_JA, ONWARDS, 0, 0);
	}
	put(w, BPF_RET | BPF_K, SECCOMP_RET_SHOWN, 0, 0);
	w->code[begin].jf = (uint8_t)(w->len - begin - 1);
}

/* In front of the program: the calls that are to be observed go to the listener, which lets them
 * go on. All sets allow them, whatever their other arguments are (a unit test holds the table to
 * it): what the listener passes is nothing that the program would not. */
static size_t watch_program(unsigned groups, struct sock_filter out[WATCH_MAX])
{
	struct writer w = { .code = out };

	put(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	put(&w, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	put(&w, BPF_JMP | BPF_JA, ONWARDS, 0, 0);
	put(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		if (groups & watched[i].group)
			put_watched(&w, &watched[i], groups);
	for (size_t i = 0; i < w.len; i++)
		if (BPF_CLASS(out[i].code) == BPF_JMP && BPF_OP(out[i].code) == BPF_JA)
			out[i].k = (uint32_t)(w.len - i - 1);
	return w.len;
}

/* In front of the program: requests of ioctl that pass where a flag says so, by number (first to
 * last) and, where there is one, by the letter in their second byte. */
static const struct request {
	unsigned flag;
	uint32_t first, last;
	char letter; /* 0: any */
	uint32_t of; /* bits of the number that count; 0: all */
} requests[] = {
	/* The drivers of graphics processors: NVIDIA's requests have the letter F, render nodes' d,
	 * AMD's compute node's K, all with the bits of a direction, which keeps consoles' requests
	 * with the same letters out; NVIDIA's memory manager counts from 1. */
	{ SECCOMP_GPUS, 0x40000000, UINT32_MAX, 'F', 0 },
	{ SECCOMP_GPUS, 0x40000000, UINT32_MAX, 'd', 0 },
	{ SECCOMP_GPUS, 0x40000000, UINT32_MAX, 'K', 0 },
	{ SECCOMP_GPUS, 0x30000001, 0x30000002, 0, 0 },
	{ SECCOMP_GPUS, 1, 0x7f, 0, 0 },
	/* gVisor of 2022 asks which offloads each interface has (SIOCETHTOOL), and does not start
	 * without an answer. Changes would need a capability over the sandbox's network namespace,
	 * which no process inside has. */
	{ SECCOMP_INTERFACES, 0x8946, 0x8946, 0, 0 },
	/* What QEMU asks KVM for an ordinary machine. Not between these: nitro enclaves, which have
	 * the same letter; Xen's hypercalls (7a, c8 to cb, d0); encrypted memory, Hyper-V's events
	 * and machines within the machine (ba to bf); memory of the kernel's own (d2, d4) and its
	 * devices (e0, e1). */
	{ SECCOMP_KVM, 0xae00, 0xae1f, 0, 0xffff },
	{ SECCOMP_KVM, 0xae40, 0xae79, 0, 0xffff },
	{ SECCOMP_KVM, 0xae7b, 0xaeb9, 0, 0xffff },
	{ SECCOMP_KVM, 0xaec0, 0xaec7, 0, 0xffff },
	{ SECCOMP_KVM, 0xaecc, 0xaecf, 0, 0xffff },
	{ SECCOMP_KVM, 0xaed1, 0xaed1, 0, 0xffff },
	{ SECCOMP_KVM, 0xaed3, 0xaed3, 0, 0xffff },
	{ SECCOMP_KVM, 0xaed5, 0xaedf, 0, 0xffff },
	{ SECCOMP_KVM, 0xaee2, 0xaeff, 0, 0xffff },
	/* What gVisor's kernel asks it (platform kvm of runsc 20240729): make a machine (01), what
	 * it can do (03 to 05), its processors (41) and memory (46, 47), run one (80), its
	 * registers (81 to 84, 89), interrupts (86, 8b, 9a), features (90), clock (a2, a3, e1: an
	 * attribute of a processor; without e0 there is no device that could have others). */
	{ SECCOMP_KVM_SENTRY, 0xae01, 0xae01, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae03, 0xae05, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae41, 0xae41, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae46, 0xae47, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae80, 0xae84, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae86, 0xae86, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae89, 0xae89, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae8b, 0xae8b, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae90, 0xae90, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xae9a, 0xae9a, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xaea2, 0xaea3, 0, 0xffff },
	{ SECCOMP_KVM_SENTRY, 0xaee1, 0xaee1, 0, 0xffff },
};

#define REQUEST_FLAGS (SECCOMP_GPUS | SECCOMP_INTERFACES | SECCOMP_KVM | SECCOMP_KVM_SENTRY)
#define REQUESTS_MAX (ARRAY_LEN(requests) * 7 + 4)

static void put_request(struct writer *w, const struct request *q)
{
	unsigned letter = q->letter ? 2 : 0;

	put_load(w, 1);
	if (q->of)
		put(w, BPF_ALU | BPF_AND | BPF_K, q->of, 0, 0);
	put(w, BPF_JMP | BPF_JGE | BPF_K, q->first, 0, letter + 2);
	put(w, BPF_JMP | BPF_JGT | BPF_K, q->last, letter + 1, 0);
	if (letter) {
		put(w, BPF_ALU | BPF_AND | BPF_K, 0xff00, 0, 0);
		put(w, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)q->letter << 8, 0, 1);
	}
	put(w, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static size_t request_program(unsigned flags, struct sock_filter out[REQUESTS_MAX])
{
	struct writer w = { .code = out };

	_Static_assert(REQUESTS_MAX <= UINT8_MAX, "what is no such request jumps over all rows");
	put(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	put(&w, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 0);
	put(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	put(&w, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		if (flags & requests[i].flag)
			put_request(&w, &requests[i]);
	out[1].jf = (uint8_t)(w.len - 2);
	out[3].jf = (uint8_t)(w.len - 4);
	return w.len;
}

static int put_in_front(const struct sock_filter *code, size_t n, struct sock_filter *out,
			size_t cap, size_t *len)
{
	if (cap < *len + n)
		return -ENOSPC;
	memmove(out + n, out, *len * sizeof(*out));
	memcpy(out, code, n * sizeof(*out));
	*len += n;
	return 0;
}

int seccomp_program(unsigned set, unsigned flags, struct sock_filter *out, size_t cap,
		    size_t *ret_len)
{
	unsigned variant = flags & SECCOMP_NESTING    ? VARIANT_NESTING
			   : flags & SECCOMP_LANDLOCK ? VARIANT_LANDLOCK
						      : VARIANT_PLAIN;

	if (set >= ARRAY_LEN(programs[0]) ||
	    (flags & SECCOMP_NESTING && flags & SECCOMP_LANDLOCK) ||
	    (flags & SECCOMP_NO_LISTENER && flags >> SECCOMP_WATCH_SHIFT) ||
	    (flags & SECCOMP_LANDLOCK && flags >> SECCOMP_WATCH_SHIFT & ~(unsigned)OBSERVE_EXEC))
		return -EINVAL;

	const struct program *p = &programs[variant][set];

	if (cap < p->len)
		return -ENOSPC;
	memcpy(out, p->code, p->len * sizeof(*out));
	if (flags & SECCOMP_NO_LISTENER)
		replace(out, p->notify, p->notify_count, SECCOMP_RET_ERRNO | EPERM);
	if (flags & SECCOMP_CLOSE_MEMORY)
		replace(out, p->closable, p->closable_count, SECCOMP_RET_ERRNO | ENOSYS);
	if (flags & SECCOMP_CLOSE_ALLOCATION)
		replace(out, p->allocates, p->allocates_count, SECCOMP_RET_ERRNO | EOPNOTSUPP);
	*ret_len = p->len;
	if (flags >> SECCOMP_WATCH_SHIFT) {
		struct sock_filter watch[WATCH_MAX];
		size_t n = watch_program(flags >> SECCOMP_WATCH_SHIFT, watch);

		if (put_in_front(watch, n, out, cap, ret_len) < 0)
			return -ENOSPC;
	}
	if (flags & REQUEST_FLAGS) {
		struct sock_filter passing[REQUESTS_MAX];
		size_t n = request_program(flags, passing);

		return put_in_front(passing, n, out, cap, ret_len);
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

long seccomp_limit_cores(const struct limits_rlimit *limits, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value[2] = { limits[i].soft, limits[i].hard };

		if (limits[i].resource == RLIMIT_CORE)
			return raw_call(SYS_prlimit64, 0, RLIMIT_CORE, value, 0);
	}
	return 0;
}
