/*
 * The worker locks itself up before it reads the first byte of an image. In: the job. Out: a
 * process that can read its source and write beneath its target, and nothing else: no new
 * privileges, no capability (root keeps the right to read, where the source is a directory), no
 * other process, bounded memory, no file elsewhere (Landlock, where the kernel has it), and a list
 * of system calls in which nothing executes, connects or signals. What must hold and fails ends the
 * work.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "image/unpack.h"

#define MEMORY_BYTES (UINT64_C(1) << 30)

static const unsigned short allowed[] = {
	SYS_read,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_lseek,
	SYS_openat,
	SYS_openat2,
	SYS_close,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_getdents64,
	SYS_readlinkat,
	SYS_mkdirat,
	SYS_symlinkat,
	SYS_linkat,
	SYS_unlinkat,
	SYS_renameat,
	SYS_renameat2,
	SYS_fchmod,
	SYS_utimensat,
	SYS_ftruncate,
	SYS_fcntl,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_mmap,
	SYS_mprotect,
	SYS_munmap,
	SYS_mremap,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_clock_gettime,
	SYS_getrandom,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_rt_sigaction,
	SYS_sigaltstack,
	SYS_exit,
	SYS_exit_group,
	SYS_restart_syscall,
	SYS_getpid,
	SYS_gettid,
	SYS_sched_yield,
	SYS_writev,
};

static int filter(struct ward_err *e)
{
	struct sock_filter code[ARRAY_LEN(allowed) + 8];
	struct sock_fprog program = { .filter = code };
	unsigned short n = 0;
	const size_t yes = 4 + ARRAY_LEN(allowed) + 1; /* where the program allows */

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++, n++)
		code[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
						       (unsigned char)(yes - n - 1), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return ward_fail_errno(e, "cannot set the filter of the unpacking process");
	return 0;
}

static int allow_beneath(int ruleset, int dir_fd, uint64_t rights, struct ward_err *e)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = rights,
							 .parent_fd = dir_fd };

	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return ward_fail_errno(e, "cannot restrict the unpacking process with Landlock");
	return 0;
}

static int landlock(const struct unpack_job *job, struct ward_err *e)
{
	const uint64_t reads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
		       never = LANDLOCK_ACCESS_FS_EXECUTE;
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	/* LINK and rename across directories, truncation and device ioctls came later */
	uint64_t all = version >= 5   ? 0xffff
		       : version >= 3 ? 0x7fff
		       : version == 2 ? 0x3fff
				      : 0x1fff;
	auto_fd fd = -1;
	int r;

	if (version < 2)
		/* without it, or with a first version that knows no links across directories, the
		 * filter must do */
		return 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (fd < 0)
		return ward_fail_errno(e, "cannot restrict the unpacking process with Landlock");
	r = allow_beneath(fd, job->target_fd, all & ~never, e);
	if (r == 0 && job->is_dir)
		r = allow_beneath(fd, job->source_fd, reads, e);
	if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = ward_fail_errno(e, "cannot restrict the unpacking process with Landlock");
	return r;
}

static int drop_capabilities(const struct unpack_job *job, struct ward_err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	uint32_t kept = job->is_dir ? 1U << CAP_DAC_READ_SEARCH : 0;

	if (syscall(SYS_capget, &header, data) < 0)
		return ward_fail_errno(e, "cannot read the capabilities of the unpacking process");
	data[0].permitted &= kept;
	data[0].effective &= kept;
	data[0].inheritable = data[1].inheritable = 0;
	data[1].permitted = data[1].effective = 0;
	if (syscall(SYS_capset, &header, data) < 0)
		return ward_fail_errno(e, "cannot drop the capabilities of the unpacking process");
	return 0;
}

static int bound(struct ward_err *e)
{
	static const struct {
		int resource;
		rlim_t value;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_NPROC, 0 },
		{ RLIMIT_MEMLOCK, 0 },
#ifndef __SANITIZE_ADDRESS__
		{ RLIMIT_DATA, MEMORY_BYTES },
#endif
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit l = { limits[i].value, limits[i].value };

		if (setrlimit((__rlimit_resource_t)limits[i].resource, &l) < 0)
			return ward_fail_errno(e, "cannot limit the unpacking process");
	}
	return 0;
}

int confine_worker(const struct unpack_job *job, struct ward_err *e)
{
	int r;

	umask(022);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return ward_fail_errno(e, "cannot set no_new_privs");
	r = bound(e);
	if (r == 0)
		r = drop_capabilities(job, e);
	if (r == 0)
		r = landlock(job, e);
	return r < 0 ? r : filter(e);
}
