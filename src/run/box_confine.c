/*
 * ward-box locks itself up once the sandbox runs. In: a supervisor that has started everything it
 * will ever start. Out: the same with less: it can execute nothing, reach no other process's
 * memory, open no socket, load nothing into the kernel, and as root it loses the capabilities that
 * neither the sweep, the cgroups nor a remount need. What it must still do (open, move and remove
 * files of the workspace, enter the sandbox's namespaces and mount there again, kill) is what a
 * list of files or Landlock cannot express: Landlock forbids every mount, so there is none.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "run/box_internal.h"

#define CAP(name) (1ull << CAP_##name)

/* Never again: what a supervisor that is taken over would want first. */
static const unsigned short denied[] = {
	SYS_execve,
	SYS_execveat,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_socket,
	SYS_connect,
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
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_adjtimex,
	SYS_clock_adjtime,
	SYS_acct,
	SYS_quotactl,
	SYS_iopl,
	SYS_ioperm,
	SYS_open_by_handle_at,
	SYS_personality,
	SYS_modify_ldt,
	SYS_pidfd_getfd,
};

static void drop_capabilities(void)
{
	const uint64_t kept = CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(DAC_READ_SEARCH) | CAP(FOWNER) |
			      CAP(FSETID) | CAP(KILL) | CAP(SETUID) | CAP(SETGID) | CAP(SYS_ADMIN) |
			      CAP(SYS_CHROOT) | CAP(SYS_PTRACE) | CAP(SYS_RESOURCE);
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return;
	for (int i = 0; i < 2; i++) {
		uint32_t mask = (uint32_t)(kept >> (32 * i));

		data[i].permitted &= mask;
		data[i].effective &= mask;
		data[i].inheritable = 0;
	}
	(void)!syscall(SYS_capset, &header, data);
}

static int install_filter(void)
{
	struct sock_filter program[ARRAY_LEN(denied) + 8];
	struct sock_fprog filter = { .filter = program };
	unsigned short n = 0, last = 3 + ARRAY_LEN(denied); /* where the program says yes */

	program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						    offsetof(struct seccomp_data, arch));
	program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0,
						    (unsigned char)(last - 1));
	program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						    offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_LEN(denied); i++, n++)
		program[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[i],
							  (unsigned char)(last - n), 0);
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	filter.len = n;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0 ? -errno : 0;
}

int box_confine(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	drop_capabilities();
	return install_filter();
}
