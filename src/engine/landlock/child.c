/*
 * The Landlock level, inside: the stages of the child in order. It begins as a copy of the
 * supervisor that shares its memory, with all its rights, and ends as ward-init with none but to
 * the plan's paths. Raw system calls only; an error is a value that the supervisor reads.
 *
 * There are no namespaces. What the mounts, the pid, net and ipc namespaces do in the native engine
 * is done by Landlock (files, TCP, signals, abstract sockets, tracing) and by the filter's Landlock
 * variant (sockets, System V IPC, other processes' limits and priorities; modes, times and
 * attributes go to the supervisor).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/fd_message.h"
#include "base/raw.h"
#include "engine/landlock/landlock_engine.h"
#include "observe/observe.h"
#include "protocol/guest.h"

static long join_cgroup(struct level_child *c)
{
	for (size_t i = 0; i < c->cgroup_count; i++) {
		long r = raw_call(SYS_write, c->cgroup_fds[i], "0", 1);

		if (r < 0)
			return r;
	}
	return 0;
}

static long set_rlimits(struct level_child *c)
{
	for (size_t i = 0; i < c->rlimit_count; i++) {
		uint64_t value[2] = { c->rlimits[i].soft, c->rlimits[i].hard };
		long r = raw_call(SYS_prlimit64, 0, c->rlimits[i].resource, value, 0);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Only root can close the way back for good; an ordinary user has nothing to come back to but
 * no_new_privs. */
static long lock_capabilities(void)
{
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	for (int cap = 0; cap < 64; cap++) {
		long r = raw_call(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);

		if (r == -EINVAL)
			break; /* the kernel knows no higher one */
		if (r == -EPERM && cap == 0)
			/* no CAP_SETPCAP (a container's root): no_new_privs keeps the way shut */
			return 0;
		if (r < 0)
			return r;
	}
	return raw_call(SYS_prctl, PR_SET_SECUREBITS, bits, 0, 0, 0);
}

/* Whether there is no supplementary group but that one. */
static bool has_only(gid_t group)
{
	gid_t groups[8];
	long n = raw_call(SYS_getgroups, ARRAY_LEN(groups), groups);

	for (long i = 0; i < n; i++)
		if (groups[i] != group)
			return false;
	return n >= 0;
}

static long become_user(const struct plan_ids *ids)
{
	gid_t group = ids->host_gid;
	long r = raw_call(SYS_setgroups, 1, &group);

	if (r == -EPERM && has_only(group))
		r = 0; /* a container's root without CAP_SETGID */
	if (r == 0)
		r = raw_call(SYS_setresgid, ids->host_gid, ids->host_gid, ids->host_gid);
	if (r == 0)
		r = raw_call(SYS_setresuid, ids->host_uid, ids->host_uid, ids->host_uid);
	return r;
}

static long drop_rights(struct level_child *c)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };
	long r = 0;

	if (c->plan->facts.uid == 0) {
		r = lock_capabilities();
		if (r == 0)
			r = become_user(&c->plan->ids);
	}
	return r < 0 ? r : raw_call(SYS_capset, &header, none);
}

static long enter_directory(struct level_child *c)
{
	return raw_call(SYS_chdir, c->plan->cwd);
}

static long no_new_privs(struct level_child *c)
{
	(void)c;
	return raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static long confine_files(struct level_child *c)
{
	return landlock_apply(c->plan->facts.landlock_abi, c->paths, c->path_count,
			      LANDLOCK_NO_TCP | LANDLOCK_MUST);
}

/* Inside another sandbox there is no second listener: EBUSY, or EPERM by the outer filter. Then
 * what would be done on behalf is refused too, which the result says. */
static long filter_calls(struct level_child *c)
{
	size_t len;
	long fd = seccomp_limit_cores(c->rlimits, c->rlimit_count);

	if (fd < 0)
		return fd;
	fd = seccomp_install(c->filter, c->filter_len, true);
	c->listener_fd = (int)fd;
	if ((fd != -EBUSY && fd != -EPERM) || observe_wanted(c->plan))
		return fd < 0 ? fd : 0;
	c->listener_fd = -1;
	fd = seccomp_program(c->plan->spec->policy.proc_syscalls,
			     SECCOMP_LANDLOCK | SECCOMP_NO_LISTENER, c->filter, SECCOMP_PROGRAM_MAX,
			     &len);
	return fd < 0 ? fd : seccomp_install(c->filter, len, false);
}

/* All is built: ready goes to the supervisor with the listener, go comes back. */
static long wait_for_go(struct level_child *c)
{
	FD_MESSAGE_CONTROL(1) control;
	char byte = 'r';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };
	long r;

	fd_message_put(&m, &c->listener_fd, c->listener_fd >= 0);
	r = raw_call(SYS_sendmsg, c->control_fd, &m, MSG_NOSIGNAL);
	if (r == 1)
		do
			r = raw_call(SYS_read, c->control_fd, &byte, 1);
		while (r == -EINTR);
	return r == 1 && byte == 'g' ? 0 : -ECONNRESET;
}

static long become_init(struct level_child *c)
{
	long r = 0;

	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &c->signal_mask, 0, 8);
	for (int i = 0; i < 3 && r >= 0; i++)
		r = raw_call(SYS_dup3, c->stdio_fds[i], i, 0);
	if (r >= 0)
		r = raw_call(SYS_dup3, c->control_fd, GUEST_CONTROL_FD, 0);
	if (r >= 0)
		r = raw_call(SYS_close_range, GUEST_CONTROL_FD + 1, ~0U,
			     4 /* CLOSE_RANGE_CLOEXEC */);
	return r < 0 ? r : raw_call(SYS_execveat, c->image_fd, "", c->argv, c->envp, AT_EMPTY_PATH);
}

const struct level_stage level_stages[] = {
	{ "cgroup", NULL, "make the run's cgroup where limits are held by one" },
	{ "tmp", NULL, "a directory of the run's own for temporary files" },
	{ "clone", NULL, "a child; no namespaces" },
	{ "join", join_cgroup, "enter the cgroup" },
	{ "caps", drop_rights,
	  "as root: become the workspace's owner; drop every capability permanently" },
	{ "directory", enter_directory, "enter the working directory" },
	{ "nnp", no_new_privs, "set-id programs gain nothing" },
	{ "landlock", confine_files,
	  "one rule per path of the plan; no TCP; signals and abstract sockets scoped" },
	{ "seccomp", filter_calls,
	  "no sockets, no IPC, no access to other processes; the supervisor sets modes and times" },
	{ "rlimits", set_rlimits, "per-process limits, after the last file is opened" },
	{ "go", wait_for_go, "wait until the supervisor allows the exec" },
	{ "exec", become_init, "close every descriptor, start ward-init and the command" },
};

const size_t level_stage_count = ARRAY_LEN(level_stages);

int level_child_main(void *argument)
{
	struct level_child *c = argument;
	long r = 0;

	/* the copy of the supervisor's end would keep us alive without it */
	raw_call(SYS_close, c->supervisor_fd);
	for (size_t i = 0; i < level_stage_count && r == 0; i++) {
		c->failed_stage = level_stages[i].name;
		if (level_stages[i].run)
			r = level_stages[i].run(c);
	}
	c->failed_error = r;
	return 125;
}
