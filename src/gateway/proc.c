/*
 * A process locks itself up. In: a row of tables/procs.def. Out: a process that keeps its open
 * descriptors and its rows, for good. Runs once, at the start, before a byte from inside is read.
 * What a kernel has not (Landlock) is not asked for twice: the filter alone already leaves no call
 * that opens a file; what must hold and fails ends the process.
 */
#include "gateway/proc.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define NOBODY 65534
/* what programs inside make it hold; then their connections break */
#define MEMORY_BYTES (256UL << 20)
#define RECORD_BYTES (16UL << 30) /* TAPE_BYTES_MAX */
#define VALUES_MAX 4

enum {
	FRONT = 1 << PROC_FRONT,
	DIAL = 1 << PROC_DIAL,
	KEYS = 1 << PROC_KEYS,
	RECORD = 1 << PROC_RECORD,
	REPLAY = 1 << PROC_REPLAY,
	WAF = 1 << PROC_WAF
};

struct row {
	unsigned procs;
	int nr;
	int argument; /* -1: whatever they are */
	unsigned values[VALUES_MAX];
	unsigned value_count;
	bool without; /* values[0] are bits that it must not have */
};

#define COUNT(...) (sizeof((const unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned))
static const struct row rows[] = {
#define PROC(...)
#define CALL(procs, name) { procs, SYS_##name, -1, { 0 }, 0, false },
#define CALL_IF(procs, name, argument, ...)                                                        \
	{ procs, SYS_##name, argument, { __VA_ARGS__ }, COUNT(__VA_ARGS__), false },
#define CALL_NOT(procs, name, argument, bits) { procs, SYS_##name, argument, { bits }, 1, true },
#include "procs.def"
#undef PROC
#undef CALL
#undef CALL_IF
#undef CALL_NOT
};

static const rlim_t open_files[] = {
#define PROC(id, name, files, help) files,
#define CALL(...)
#define CALL_IF(...)
#define CALL_NOT(...)
#include "procs.def"
#undef PROC
#undef CALL
#undef CALL_IF
#undef CALL_NOT
};

/* -- the filter */

#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

static size_t add_row(struct sock_filter *code, size_t n, const struct row *r)
{
	unsigned low = (unsigned)(offsetof(struct seccomp_data, args) +
				  8 * (unsigned)(r->argument < 0 ? 0 : r->argument));

	if (r->argument < 0) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)r->nr,
							 0, 1);
		code[n++] = (struct sock_filter)ALLOW;
		return n;
	}
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)r->nr, 0,
						 (uint8_t)(2 * r->value_count + 2));
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low);
	if (r->without) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, r->values[0],
							 1, 0);
		code[n++] = (struct sock_filter)ALLOW;
	}
	for (unsigned i = 0; !r->without && i < r->value_count; i++) {
		code[n++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->values[i], 0, 1);
		code[n++] = (struct sock_filter)ALLOW;
	}
	code[n++] = (struct sock_filter)REFUSE;
	return n;
}

static int filter(enum proc p, struct ward_err *e)
{
	struct sock_filter code[256] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		NUMBER,
	};
	struct sock_fprog program = { .filter = code };
	size_t n = 4;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!(rows[i].procs & 1U << p))
			continue;
		if (n + 2 * VALUES_MAX + 4 > ARRAY_LEN(code))
			return ward_fail(e, E2BIG, "the filter of a gateway process is too long");
		n = add_row(code, n, &rows[i]);
	}
	code[n++] = (struct sock_filter)REFUSE;
	program.len = (unsigned short)n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return ward_fail_errno(e, "cannot install the seccomp filter of a gateway process");
	return 0;
}

/* -- Landlock: no file, no TCP listener, and for front no connection either */

#define NET_BIND (1ULL << 0)
#define NET_CONNECT (1ULL << 1)
#define SCOPE_ABSTRACT (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

/* The rights that each version of Landlock knows, over files. */
static uint64_t file_rights(long version)
{
	return version >= 5 ? 0xffff : version >= 3 ? 0x7fff : version == 2 ? 0x3fff : 0x1fff;
}

static int landlock(enum proc p, struct ward_err *e)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct {
		uint64_t files, net, scoped;
	} rules = { 0 };
	size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
	auto_fd fd = -1;

	if (version < 1)
		return 0;
	rules.files = file_rights(version);
	rules.net = version >= 4 ? NET_BIND | (p == PROC_DIAL ? 0 : NET_CONNECT) : 0;
	rules.scoped = version >= 6 ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return ward_fail_errno(e, "cannot restrict a gateway process with Landlock");
	return 0;
}

/* -- the rest */

/* As root: nobody's id, where there is one (a container may have mapped only a few). No capability
 * either way. */
static int drop_ids(struct ward_err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (getuid() == 0 && setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0)
		(void)!setresuid(NOBODY, NOBODY, NOBODY);
	if (syscall(SYS_capset, &header, none) < 0)
		return ward_fail_errno(e, "cannot drop the capabilities of a gateway process");
	return 0;
}

static int bound(enum proc p, struct ward_err *e)
{
	struct rlimit files = { 0 };
	const struct {
		int resource;
		rlim_t value;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_FSIZE, p == PROC_RECORD ? RECORD_BYTES : 0 },
		{ RLIMIT_NPROC, 0 },
		{ RLIMIT_MEMLOCK, 0 },
#ifndef __SANITIZE_ADDRESS__
		{ RLIMIT_DATA, MEMORY_BYTES },
#endif
	};

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return ward_fail_errno(e, "cannot read the limits of a gateway process");
	if (files.rlim_max > open_files[p])
		files.rlim_max = open_files[p];
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		return ward_fail_errno(e, "cannot limit a gateway process");
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit l = { limits[i].value, limits[i].value };

		if (setrlimit((__rlimit_resource_t)limits[i].resource, &l) < 0)
			return ward_fail_errno(e, "cannot limit a gateway process");
	}
	return 0;
}

int proc_confine(enum proc p, struct ward_err *e)
{
	int r = drop_ids(e);

	if (r == 0)
		r = bound(p, e);
	if (r == 0 &&
	    (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0))
		r = ward_fail_errno(e, "cannot set no_new_privs");
	if (r == 0)
		r = landlock(p, e);
	return r < 0 ? r : filter(p, e);
}
