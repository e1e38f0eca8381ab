"""Runs a program under a system call filter that takes calls away, as the filters of containers
do."""

WITHOUT = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ADD(...) code[n++] = (struct sock_filter)__VA_ARGS__

/* without ERRNO NUMBER,NUMBER... CMD...: the number -1 stands for new user namespaces, -2 for
 * nf_tables' sockets */
int main(int argc, char **argv)
{
	struct sock_filter code[256];
	int n = 0, answer = SECCOMP_RET_ERRNO | atoi(argv[1]);

	ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
	for (char *at = strtok(argv[2], ","); at; at = strtok(NULL, ",")) {
		if (atoi(at) >= 0) {
			ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(at), 0, 1));
			ADD(BPF_STMT(BPF_RET | BPF_K, answer));
			continue;
		}
		if (atoi(at) == -2) {
			ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 6));
			ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16));
			ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 16 /* AF_NETLINK */, 0, 3));
			ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 32));
			ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 12 /* NETLINK_NETFILTER */, 0, 1));
			ADD(BPF_STMT(BPF_RET | BPF_K, answer));
			ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
			continue;
		}
		ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
		ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
		ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0));
		ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 4));
		ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16));
		ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x10000000, 0, 1));
		ADD(BPF_STMT(BPF_RET | BPF_K, answer));
		ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
	}
	ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	struct sock_fprog program = { n, code };
	if (getuid() != 0)
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		return perror("seccomp"), 99;
	execvp(argv[3], argv + 3);
	return perror(argv[3]), 98;
}
"""
NEW_USER, NF_TABLES = -1, -2
NUMBERS = {"clone3": 435, "openat2": 437, "open_tree": 428, "move_mount": 429, "mount_setattr": 442,
           "close_range": 436,
           "pidfd_open": 434, "pidfd_send_signal": 424, "mount": 165, "umount2": 166,
           "pivot_root": 155, "unshare": 272,
           "setns": 308, "seccomp": 317, "landlock_create_ruleset": 444, "landlock_add_rule": 445,
           "landlock_restrict_self": 446, "memfd_create": 319, "execveat": 322, "sethostname": 170,
           "prlimit64": 302,
           "capset": 126, "statx": 332, "kcmp": 312, "inotify_init1": 294, "NEW_USER": NEW_USER,
           "NF_TABLES": NF_TABLES}


def without(t, error, *names):
    """The beginning of a command line: what follows runs without these calls, which answer
    error."""
    return [t.compile(WITHOUT), str(error), ",".join(str(NUMBERS[n]) for n in names)]
