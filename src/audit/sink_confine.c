/*
 * The process of a sink: what it reads before, and how it locks itself up. In: the sink. Out: a
 * process that can read the journals and what finding a name needs, connect to the sink's port (or
 * write in the directory of its file), and nothing else: no program is executed, no other process
 * touched, no capability kept. The command of a command sink is the user's own and has the user's
 * rights: there is nothing to lock up before it. Landlock is used where the kernel has it; the
 * filter must hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "audit/sink.h"
#include "base/io.h"

#define TOKEN_MAX 8192
#define PORT_DNS 53
/* of kernels newer than the headers */
#define NET_CONNECT_TCP (1ull << 1)
#define RULE_NET_PORT 2

struct ruleset {
	uint64_t fs, net;
};

struct port_rule {
	uint64_t allowed, port;
};

static int read_token(struct sink *s, struct ward_err *e)
{
	const char *token = s->policy->token;
	auto_buf file = { 0 };

	if (!token)
		return 0;
	if (strncmp(token, "env:", 4) == 0) {
		const char *value = getenv(token + 4);

		if (!value)
			return ward_fail(e, ENOENT, "%s: the variable %s is not set", s->policy->to,
					 token + 4);
		buf_puts(&file, value);
	} else if (io_read_file(AT_FDCWD, token + 5, TOKEN_MAX, &file) < 0) {
		return ward_fail_errno(e, "%s: the token's file %s", s->policy->to, token + 5);
	}
	while (file.len && strchr(" \r\n", file.data[file.len - 1]))
		file.data[--file.len] = '\0';
	for (size_t i = 0; i < file.len; i++)
		if (file.data[i] <= ' ' || file.data[i] >= 127)
			return ward_fail(e, EINVAL,
					 "%s: the token contains characters that are not allowed "
					 "in a header",
					 s->policy->to);
	s->token = buf_take(&file);
	return s->token ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

int sink_prepare(struct sink *s, struct ward_err *e)
{
	int r = read_token(s, e);

	if (r == 0 && (s->policy->way == SINK_TLS || s->policy->way == SINK_HTTPS))
		r = sink_tls_prepare(s, e);
	return r;
}

/* -- files and ports */

static int allow(int ruleset, int fd, uint64_t rights)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = rights,
							 .parent_fd = fd };

	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

static int allow_path(int ruleset, const char *path, uint64_t rights)
{
	auto_fd fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? 0 : allow(ruleset, fd, rights);
}

static int allow_files(int ruleset, const struct sink *s, uint64_t all)
{
	/* the resolver's */
	static const char *const names[] = { "/etc", "/usr", "/lib", "/lib64", "/run" };
	const uint64_t reads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	int r = allow(ruleset, s->audit_fd, reads);

	if (s->policy->way == SINK_FILE) {
		auto_free char *copy =
			strdup(s->policy->place ? s->policy->place : s->policy->path);

		return r < 0 || !copy ? -ENOMEM
				      : allow_path(ruleset, dirname(copy),
						   all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);
	}
	for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++)
		r = allow_path(ruleset, names[i], reads);
	return r;
}

static int landlock(const struct sink *s, struct ward_err *e)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset rules = { .fs = version >= 5   ? 0xffff
				       : version >= 3 ? 0x7fff
				       : version == 2 ? 0x3fff
						      : 0x1fff,
				 .net = version >= 4 ? NET_CONNECT_TCP : 0 };
	const struct port_rule ports[] = { { NET_CONNECT_TCP, s->policy->port },
					   { NET_CONNECT_TCP, PORT_DNS } };
	auto_fd fd = -1;
	int r = 0;

	if (version < 2) /* the first version knows no rename across directories */
		return 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules,
			  version >= 4 ? sizeof(rules) : sizeof(rules.fs), 0);
	if (fd < 0)
		return ward_fail_errno(e, "cannot restrict the sink with Landlock");
	r = allow_files(fd, s, rules.fs);
	for (size_t i = 0; i < ARRAY_LEN(ports) && r == 0 && rules.net && s->policy->port; i++)
		if (syscall(SYS_landlock_add_rule, fd, RULE_NET_PORT, &ports[i], 0) < 0)
			r = -errno;
	if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	return r < 0 ? ward_fail(e, -r, "cannot restrict the sink with Landlock: %s", strerror(-r))
		     : 0;
}

/* -- system calls */

static const unsigned short denied[] = {
	SYS_socket, /* first: only for what needs none */
	SYS_execve,
	SYS_execveat,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_bind,
	SYS_listen,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_kexec_file_load,
	SYS_reboot,
	SYS_swapon,
	SYS_swapoff,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_unshare,
	SYS_setns,
	SYS_clone3,
	SYS_fork,
	SYS_vfork,
	SYS_kill,
	SYS_tkill,
	SYS_pidfd_open,
	SYS_pidfd_getfd,
	SYS_pidfd_send_signal,
	SYS_open_by_handle_at,
	SYS_personality,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_chmod,
	SYS_chown,
	SYS_fchown,
	SYS_fchownat,
	SYS_setxattr,
	SYS_mknodat,
};

static int filter(const struct sink *s, struct ward_err *e)
{
	struct sock_filter code[ARRAY_LEN(denied) + 8];
	struct sock_fprog program = { .filter = code };
	const size_t first = s->policy->way == SINK_FILE ? 0 : 1,
		     no = 3 + (ARRAY_LEN(denied) - first) + 1;
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0,
						 (unsigned char)(no - 2));
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = first; i < ARRAY_LEN(denied); i++, n++)
		code[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[i],
						       (unsigned char)(no - n - 1), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	program.len = n;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0
		       ? ward_fail_errno(e, "cannot install the seccomp filter of the sink")
		       : 0;
}

int sink_confine(const struct sink *s, struct ward_err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	const struct rlimit zero = { 0 };
	int r;

	if (s->policy->way == SINK_COMMAND)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &zero) < 0)
		return ward_fail_errno(e, "cannot set no_new_privs");
	if (syscall(SYS_capset, &header, none) < 0)
		return ward_fail_errno(e, "cannot drop the capabilities of the sink");
	r = landlock(s, e);
	return r < 0 ? r : filter(s, e);
}
