/* The system call filter: one program made at build time for each set and variant, adjusted and
 * installed here. */
#ifndef WARD_ENGINE_NATIVE_SECCOMP_H
#define WARD_ENGINE_NATIVE_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>

#include "base/own.h"
#include "limit/limits.h"

#define SECCOMP_PROGRAM_MAX 512 /* instructions that always do */

enum {
	SECCOMP_NESTING = 1 << 0,  /* process.nesting: namespaces and mounts */
	SECCOMP_LANDLOCK = 1 << 1, /* the Landlock level; not together with nesting */
	SECCOMP_NO_LISTENER =
		1 << 2, /* denied calls are EPERM at once: no listener (ward inside ward) */
	SECCOMP_CLOSE_MEMORY =
		1 << 3, /* memfd_create and System V IPC are ENOSYS: memory is held by looking */
	SECCOMP_GPUS = 1 << 4, /* requests to the drivers of graphics processors pass */
	/* the inner runtime may ask what its interfaces can do (SIOCETHTOOL) */
	SECCOMP_INTERFACES = 1 << 5,
	SECCOMP_KVM = 1 << 6, /* the inner runtime may ask /dev/kvm for a virtual machine */
	/* the inner runtime may ask /dev/kvm for what gVisor's kernel needs, which is far less */
	SECCOMP_KVM_SENTRY = 1 << 7,
	/* fallocate that takes blocks is EOPNOTSUPP: the disk limit is held by looking */
	SECCOMP_CLOSE_ALLOCATION = 1 << 8,
	/* What every set allows anyhow is shown to the listener first: OBSERVE_* of
	 * observe/observe.h, shifted. On the Landlock level only programs are. */
	SECCOMP_WATCH_SHIFT = 9,
	SECCOMP_WATCH_EXEC = 1 << SECCOMP_WATCH_SHIFT,
};

/* The flags for what a run wants to see. */
/* What the filter returns for a call that is only shown: a notification. The kernel ignores the low
 * half; it tells such a call from one that is denied. */
#define SECCOMP_RET_SHOWN (SECCOMP_RET_USER_NOTIF | 1)
#define SECCOMP_WATCH(observe) ((unsigned)(observe) << SECCOMP_WATCH_SHIFT)

/* Writes the program of a set (SYSCALLS_STRICT and so on, policy.h) into out[cap]. Touches nothing
 * else: may run on any side of clone. Returns 0, -EINVAL for a set or flags that do not exist,
 * -ENOSPC when cap is too small. */
must_check int seccomp_program(unsigned set, unsigned flags, struct sock_filter *out, size_t cap,
			       size_t *ret_len);

/* Installs a program for the calling process, by raw system calls only; no_new_privs must be set.
 * Returns the listener's descriptor (listener), 0 (no listener) or -errno; -EBUSY: there is a
 * listener around us already. */
must_check int seccomp_install(const struct sock_filter *code, size_t len, bool listener);

/* The limit on core files among the sandbox's. The filter takes calls that would change it for
 * done, so it is put on before. 0 or -errno. */
long seccomp_limit_cores(const struct limits_rlimit *limits, size_t count);

#endif
