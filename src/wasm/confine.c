/*
 * ward-wasm locks itself up before it reads the module. In: the module's directories. Out: a
 * process that has, of what the sandbox has, those directories and no more (Landlock) and, where
 * the runtime is a library in this process, a list of system calls in which nothing executes,
 * forks, signals or, without a network, opens a socket. The sandbox around it holds without this:
 * it is for a module that fools its runtime, by a link or by a bug. Which of both there are is the
 * plan's word (engine/wasm/inner.c): a kernel without Landlock has not the first, a sandbox whose
 * own filter lets no program narrow itself (process.syscalls: strict) not the second, and the
 * result says so. What the plan names is had, or the module does not run.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wasm/wasm.h"

#define LEN(list) (sizeof(list) / sizeof(*(list)))

static const unsigned short allowed[] = {
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_pread64,
	SYS_pwrite64,
	SYS_preadv,
	SYS_pwritev,
	SYS_lseek,
	SYS_openat,
	SYS_close,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_fstatfs,
	SYS_getdents64,
	SYS_readlinkat,
	SYS_readlink,
	SYS_mkdirat,
	SYS_symlinkat,
	SYS_linkat,
	SYS_unlinkat,
	SYS_renameat,
	SYS_renameat2,
	SYS_utimensat,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_fadvise64,
	SYS_fsync,
	SYS_fdatasync,
	SYS_fcntl,
	SYS_ioctl,
	SYS_dup,
	SYS_dup3,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_poll,
	SYS_ppoll,
	SYS_pselect6,
	SYS_epoll_create1,
	SYS_epoll_ctl,
	SYS_epoll_wait,
	SYS_epoll_pwait,
	SYS_timerfd_create,
	SYS_timerfd_settime,
	SYS_eventfd2,
	SYS_clock_gettime,
	SYS_clock_getres,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_gettimeofday,
	SYS_time,
	SYS_getrandom,
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_mmap,
	SYS_mprotect,
	SYS_munmap,
	SYS_mremap,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sigaltstack,
	SYS_getpid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_prlimit64,
	SYS_sysinfo,
	SYS_uname,
	SYS_restart_syscall,
	SYS_exit,
	SYS_exit_group,
};

/* With a network: the runtime's own sockets, which end at the gateway. */
static const unsigned short allowed_net[] = {
	SYS_socket,      SYS_connect,     SYS_bind,       SYS_listen,
	SYS_accept,      SYS_accept4,     SYS_sendto,     SYS_recvfrom,
	SYS_sendmsg,     SYS_recvmsg,     SYS_sendmmsg,   SYS_shutdown,
	SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
};

static unsigned short add_calls(struct sock_filter *code, unsigned short n,
				const unsigned short *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	return n;
}

static int filter(bool network)
{
	struct sock_filter code[2 * (LEN(allowed) + LEN(allowed_net)) + 8];
	struct sock_fprog program = { .filter = code };
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	n = add_calls(code, n, allowed, LEN(allowed));
	if (network)
		n = add_calls(code, n, allowed_net, LEN(allowed_net));
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	program.len = n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return say(EXIT_OWN, NULL, "cannot install its seccomp filter: %s",
			   strerror(errno));
	return 0;
}

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FILES                                                                                      \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                            \
	 LANDLOCK_ACCESS_FS_EXECUTE | (1u << 14) /* truncate */ | (1u << 15) /* ioctl */)

/* What is not there needs no rule. */
static int allow(int ruleset, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = rights,
						   .parent_fd = open(path, O_PATH | O_CLOEXEC) };
	struct stat st;
	int r = 0;

	if (rule.parent_fd < 0)
		return 0;
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= FILES;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		r = say(EXIT_OWN, path, "cannot be allowed by Landlock: %s", strerror(errno));
	close(rule.parent_fd);
	return r;
}

/* What a runtime that is a program of its own needs of the system. */
static int allow_system(int ruleset, uint64_t all)
{
	static const char *const shown[] = { "/usr", "/bin", "/lib",   "/lib64",
					     "/etc", "/opt", "/.ward", "/proc" };
	int r = allow(ruleset, "/dev", all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);

	for (size_t i = 0; i < LEN(shown) && r == 0; i++)
		r = allow(ruleset, shown[i], READS | LANDLOCK_ACCESS_FS_EXECUTE);
	return r;
}

/* What looking up a name reads, in this process. */
static int allow_names(int ruleset)
{
	static const char *const files[] = { "/etc/resolv.conf",   "/etc/hosts",
					     "/etc/nsswitch.conf", "/etc/host.conf",
					     "/etc/gai.conf",      "/etc/services",
					     "/etc/protocols" };
	int r = 0;

	for (size_t i = 0; i < LEN(files) && r == 0; i++)
		r = allow(ruleset, files[i], LANDLOCK_ACCESS_FS_READ_FILE);
	return r;
}

static int landlock(const struct wasm_job *job, bool strict)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	/* link and rename across directories, truncation and device ioctls came later */
	uint64_t all = version >= 5 ? 0xffff : version >= 3 ? 0x7fff : 0x3fff;
	int fd, r = 0;

	if (version < 2)
		return say(EXIT_OWN, NULL,
			   "cannot restrict itself with Landlock: the kernel has none");
	fd = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (fd < 0)
		return say(EXIT_OWN, NULL, "cannot restrict itself with Landlock: %s",
			   strerror(errno));
	for (size_t i = 0; i < job->dir_count && r == 0; i++)
		r = allow(fd, job->dirs[i].path,
			  job->dirs[i].writable ? all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE
						: READS);
	if (r == 0 && job->aot)
		r = allow(fd, job->aot, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE);
	if (r == 0 && job->network)
		r = allow_names(fd);
	if (r == 0 && !strict)
		r = allow_system(fd, all);
	if (r == 0 && !strict)
		r = allow(fd, job->file, READS | LANDLOCK_ACCESS_FS_EXECUTE);
	if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = say(EXIT_OWN, NULL, "cannot restrict itself with Landlock: %s",
			strerror(errno));
	close(fd);
	return r;
}

int confine(const struct wasm_job *job, bool strict)
{
	int r = job->landlock ? landlock(job, strict) : 0;

	return r || !strict || !job->filter ? r : filter(job->network);
}
