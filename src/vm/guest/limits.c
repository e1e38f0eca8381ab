/*
 * What commands in the guest may use, and their ids: one cgroup for all of them, on a mount of
 * cgroup2 that has no place in the tree; resource limits; the user that VM_SETUP names; no
 * capability, and none to be had. The machine is the barrier: this is so that a command meets the
 * same limits as in any other inner runtime, and that pid 1 outlives them.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/raw.h"
#include "vm/guest/agent.h"

#define SPARE_BYTES (16u << 20) /* of memory, for the kernel and pid 1 */
#define CMD_CREATE 6            /* FSCONFIG_CMD_CREATE */

static int write_at(int dir_fd, const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

void limits_open(struct agent *a)
{
	int fs = (int)syscall(SYS_fsopen, "cgroup2", 1), root = -1;

	a->cgroup_fd = -1;
	if (fs >= 0 && syscall(SYS_fsconfig, fs, CMD_CREATE, NULL, NULL, 0) == 0)
		root = (int)syscall(SYS_fsmount, fs, 1, 0);
	if (fs >= 0)
		close(fs);
	if (root < 0)
		return;
	write_at(root, "cgroup.subtree_control", "+pids");
	write_at(root, "cgroup.subtree_control", "+memory");
	if (mkdirat(root, "commands", 0755) == 0 || errno == EEXIST)
		a->cgroup_fd = openat(root, "commands", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(root);
}

/* How many processes of commands the kernel has killed for memory. */
static unsigned long long count_kills(const struct agent *a)
{
	int fd =
		a->cgroup_fd < 0 ? -1 : openat(a->cgroup_fd, "memory.events", O_RDONLY | O_CLOEXEC);
	char text[512];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *at;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "oom_kill ");
	return at ? strtoull(at + strlen("oom_kill "), NULL, 10) : 0;
}

bool limits_spent(const struct agent *a)
{
	return count_kills(a) > a->kills;
}

void limits_apply(struct agent *a)
{
	uint64_t memory = a->setup.memory_bytes, all;
	struct sysinfo info = { 0 };
	char text[32];

	sysinfo(&info);
	all = (uint64_t)info.totalram * info.mem_unit;
	if (all > 2 * SPARE_BYTES && (!memory || memory > all - SPARE_BYTES))
		memory = all - SPARE_BYTES;
	a->setup.hostname[sizeof(a->setup.hostname) - 1] = '\0';
	if (a->setup.hostname[0])
		(void)!sethostname(a->setup.hostname, strlen(a->setup.hostname));
	if (a->cgroup_fd < 0)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)memory);
	write_at(a->cgroup_fd, "memory.max", text);
	/* a sandbox that has none left ends, as elsewhere */
	write_at(a->cgroup_fd, "memory.oom.group", "1");
	a->kills = count_kills(a);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)a->setup.pids);
	write_at(a->cgroup_fd, "pids.max", a->setup.pids ? text : "max");
}

/* pid 1 executes nothing itself: what an exec could give is taken away once, for all that it will
 * ever start. */
bool limits_seal(void)
{
	/* a crash leaves no file in a tree that goes back */
	const struct rlimit no_core = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return false;
	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0) == 0 &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && setgroups(0, NULL) == 0;
}

long limits_enter(const struct agent *a)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct rlimit files = { a->setup.files, a->setup.files };
	struct __user_cap_data_struct none[2] = { 0 };
	gid_t gid = a->setup.gid;
	uid_t uid = a->setup.uid;
	long r = a->setup.files ? raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &files, NULL) : 0;

	if (r == 0)
		r = raw_call(SYS_setresgid, gid, gid, gid);
	if (r == 0)
		r = raw_call(SYS_setresuid, uid, uid, uid);
	if (r == 0 && !uid) /* a process that is no longer root has no capabilities */
		r = raw_call(SYS_capset, &head, none);
	return r;
}

/* Born in the cgroup: to move there takes a lock of the kernel's that waits for all of its
 * processors. */
pid_t limits_fork(const struct agent *a, bool in_cgroup)
{
	struct {
		uint64_t flags, pid_fd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
			set_tid, set_tid_size, cgroup;
	} how = { .flags = CLONE_INTO_CGROUP,
		  .exit_signal = SIGCHLD,
		  .cgroup = (uint64_t)a->cgroup_fd };

	return in_cgroup && a->cgroup_fd >= 0 ? (pid_t)syscall(SYS_clone3, &how, sizeof(how))
					      : fork();
}
