/*
 * ward-init in a container that an OCI runtime made. In: descriptor 3 on the supervisor, and over it first of all a struct guest_setup with the exact system call filter and the ways into the cgroups. Out: this process is in
 * its cgroups, in a user namespace of its own in which the agent has its usual id, without a capability, under its limits and the filter; the supervisor has /proc, a pidfd and the seccomp
 * listener, and at its word the command is started. What cannot be put on ends everything. The first to run there, before anything of the command's.
 *
 * Why one more user namespace: a runtime wants to be root where it builds, and an ordinary user has only one id to map. The runtime leaves us CAP_SETFCAP, without which
 * the kernel lets nobody map the id of a namespace's root; it goes with all the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/raw.h"
#include "guest/guest.h"

struct setup {
	struct guest_setup head;
	struct sock_filter filter[GUEST_FILTER_MAX];
};

/* The supervisor's first words; the cgroups' descriptors are written to and closed at once. */
static long receive_setup(struct setup *s)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(GUEST_CGROUPS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = s, .iov_len = sizeof(*s) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space) };
	const struct cmsghdr *header = &control.align;
	const int *fds = (const int *)(const void *)CMSG_DATA(header);
	size_t count = 0;
	long r;

	do
		r = raw_call(SYS_recvmsg, GUEST_CONTROL_FD, &m, MSG_CMSG_CLOEXEC);
	while (r == -EINTR);
	if (r < (long)sizeof(s->head) || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return r < 0 ? r : -ECONNRESET;
	if ((size_t)r != sizeof(s->head) + s->head.filter_len * sizeof(*s->filter) || s->head.rlimit_count > GUEST_RLIMITS_MAX)
		return -EINVAL;
	if (m.msg_controllen >= sizeof(*header))
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (count != s->head.cgroup_count)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		r = raw_call(SYS_write, fds[i], "0", 1);
		raw_call(SYS_close, fds[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static long write_file(const char *path, const char *text)
{
	long fd = raw_call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return fd;
	r = raw_call(SYS_write, fd, text, raw_strlen(text));
	raw_call(SYS_close, fd);
	return r < 0 ? r : 0;
}

/* "ID 0 1": the id inside, which is the root of the runtime's namespace, one of them. */
static long map_id(const char *path, uint32_t id)
{
	static const char rest[] = " 0 1\n";
	char text[24];
	size_t at = sizeof(text) - sizeof(rest);

	for (size_t i = 0; i < sizeof(rest); i++)
		text[at + i] = rest[i];
	do
		text[--at] = (char)('0' + id % 10);
	while (id /= 10);
	return write_file(path, text + at);
}

static long enter_namespaces(const struct guest_setup *s)
{
	long r = raw_call(SYS_unshare, CLONE_NEWUSER);

	if (r == 0)
		r = write_file("/proc/self/setgroups", "deny");
	if (r == 0)
		r = map_id("/proc/self/uid_map", s->uid);
	if (r == 0)
		r = map_id("/proc/self/gid_map", s->gid);
	if (r == 0)
		raw_call(SYS_unshare, CLONE_NEWCGROUP);	/* a kernel without them shows the host's path; nothing more */
	return r;
}

static long drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2];
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
				   SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	long r = 0;

	for (int cap = 0; cap < 64 && r == 0; cap++)
		r = raw_call(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (r < 0 && r != -EINVAL)	/* the kernel knows no higher one */
		return r;
	for (int i = 0; i < 2; i++)
		none[i].effective = none[i].permitted = none[i].inheritable = 0;
	r = raw_call(SYS_prctl, PR_SET_SECUREBITS, bits, 0, 0, 0);
	return r < 0 ? r : raw_call(SYS_capset, &header, none);
}

static long put_limits(const struct guest_setup *s)
{
	long r = raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	for (size_t i = 0; i < s->rlimit_count && r == 0; i++) {
		uint64_t value[2] = { s->rlimits[i].soft, s->rlimits[i].hard };

		r = raw_call(SYS_prlimit64, 0, s->rlimits[i].resource, value, 0);
	}
	raw_call(SYS_umask, s->umask);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &s->signal_mask, 0, sizeof(s->signal_mask));
	return r;
}

/* Puts the filter on; the listener, or -errno. */
static long put_filter(struct setup *s)
{
	struct sock_fprog program = { .len = (unsigned short)s->head.filter_len, .filter = s->filter };

	return raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static long say_hello(const int fds[3])
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct guest_message m = { .op = GUEST_READY };
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space) };
	struct cmsghdr *header = &control.align;

	for (size_t i = 0; i < sizeof(control.space); i++)
		control.space[i] = 0;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(3 * sizeof(int));
	for (int i = 0; i < 3; i++)
		((int *)(void *)CMSG_DATA(header))[i] = fds[i];
	return raw_call(SYS_sendmsg, GUEST_CONTROL_FD, &message, 0);
}

static long wait_for_word(void)
{
	struct guest_message m;
	long n;

	do
		n = raw_call(SYS_read, GUEST_CONTROL_FD, &m, sizeof(m));
	while (n == -EINTR);
	return n == (long)sizeof(m) ? 0 : -ECONNRESET;
}

/* Everything in its order; fds become those of the hello. */
static long settle(struct setup *s, int fds[3])
{
	long r = raw_call(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), own = raw_call(SYS_getpid);

	fds[0] = (int)r;
	if (r >= 0)
		fds[1] = (int)(r = raw_call(SYS_pidfd_open, own, 0));
	if (r >= 0)
		r = receive_setup(s);
	if (r >= 0)
		r = enter_namespaces(&s->head);
	if (r >= 0)
		r = drop_capabilities();
	if (r >= 0)
		r = put_limits(&s->head);
	if (r >= 0)
		fds[2] = (int)(r = put_filter(s));
	return r;
}

void guest_container(void)
{
	struct setup s;
	int fds[3];
	long r;

	raw_call(SYS_close_range, GUEST_CONTROL_FD + 1, ~0U, 0);
	r = settle(&s, fds);
	if (r >= 0)
		r = say_hello(fds);
	if (r >= 0)
		r = wait_for_word();
	if (r < 0) {
		guest_say(GUEST_FAILED, (int32_t)-r, 125, 0);
		guest_exit(125);
	}
	raw_call(SYS_close_range, GUEST_CONTROL_FD + 1, ~0U, 0);
}
