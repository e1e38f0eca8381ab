/*
 * ward-init in a container that an OCI runtime made. In: descriptor 3 on the supervisor, and over
 * it first of all a struct guest_join with the ways into the cgroups, then a struct guest_setup
 * with the exact system call filter and the command. Out: this process is in its cgroups, in a user
 * namespace of its own in which the agent has its usual id, without a capability, under its limits
 * and the filter; the supervisor has /proc, a pidfd and the seccomp listener, and the command is
 * started. What cannot be put on ends everything. The first to run there, before anything of the
 * command's.
 *
 * Why one more user namespace: a runtime wants to be root where it builds, and an ordinary user has
 * only one id to map. The runtime leaves us CAP_SETFCAP, without which the kernel lets no process
 * map the id of a namespace's root; it goes with all the others. Why two steps with an exec between
 * them: whose /proc/1 is depends on where its program was executed; in the runtime's namespace the
 * agent is root, and pid 1 would be the agent's to look at.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/fd_message.h"
#include "base/raw.h"
#include "guest/guest.h"

#define INIT "/.ward/init"

struct setup {
	struct guest_setup head;
	struct sock_filter filter[GUEST_FILTER_MAX];
	char **pointers; /* to the words, NULL, the variables, NULL */
	char *texts;
};

static long map(size_t bytes, int flags, int fd)
{
	return raw_call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, fd, 0);
}

static bool is_error(long r)
{
	return r < 0 && r > -4096;
}

/* Takes the texts apart: the directory is entered, words and variables get their pointers. */
static long take_texts(struct setup *s, int fd)
{
	const size_t count = (size_t)s->head.word_count + s->head.variable_count,
		     len = s->head.text_len;
	long r = map(len, 0, fd), table;
	size_t at = 0, next = 0;

	raw_call(SYS_close, fd);
	table = is_error(r) ? r : map((count + 2) * sizeof(char *), MAP_ANONYMOUS, -1);
	if (is_error(table))
		return table;
	s->texts = (char *)r;
	s->pointers = (char **)table;
	if (len == 0 || s->texts[len - 1])
		return -EINVAL;
	at = raw_strlen(s->texts) + 1;
	for (size_t i = 0; i < count; i++) {
		if (at >= len)
			return -EINVAL;
		/* a NULL between them; the memory is all zeros */
		next += i == s->head.word_count;
		s->pointers[next++] = s->texts + at;
		at += raw_strlen(s->texts + at) + 1;
	}
	return raw_call(SYS_chdir, s->texts);
}

/* One packet of at most n bytes and its descriptors, at most max of them. Its length, or -errno. */
static long receive(void *bytes, size_t n, int *fds, size_t max, size_t *ret_count)
{
	FD_MESSAGE_CONTROL(GUEST_CGROUPS_MAX) control;
	struct iovec iov = { .iov_base = bytes, .iov_len = n };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	const int *came;
	long r;

	do
		r = raw_call(SYS_recvmsg, GUEST_CONTROL_FD, &m, MSG_CMSG_CLOEXEC);
	while (r == -EINTR);
	if (r <= 0 || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return r < 0 ? r : -ECONNRESET;
	came = fd_message_get(&m, ret_count);
	if (*ret_count > max)
		return -EINVAL;
	for (size_t i = 0; i < *ret_count; i++)
		fds[i] = came[i];
	return r;
}

/* Who to be; the cgroups are entered at once. */
static long receive_join(struct guest_join *j)
{
	int fds[GUEST_CGROUPS_MAX];
	size_t count = 0;
	long r = receive(j, sizeof(*j), fds, GUEST_CGROUPS_MAX, &count);

	if (r >= 0 && (r != (long)sizeof(*j) || count != j->cgroup_count))
		r = -EINVAL;
	for (size_t i = 0; i < count && r >= 0; i++) {
		r = raw_call(SYS_write, fds[i], "0", 1);
		raw_call(SYS_close, fds[i]);
	}
	return r < 0 ? r : 0;
}

static long receive_setup(struct setup *s)
{
	size_t count = 0;
	int fd = -1;
	long r = receive(s, sizeof(s->head) + sizeof(s->filter), &fd, 1, &count);

	if (r < 0)
		return r;
	if (count != 1 || r < (long)sizeof(s->head) || s->head.rlimit_count > GUEST_RLIMITS_MAX ||
	    (size_t)r != sizeof(s->head) + s->head.filter_len * sizeof(*s->filter))
		return -EINVAL;
	return take_texts(s, fd);
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
	char text[RAW_NUMBER_BYTES + sizeof(rest)];
	char *at = raw_put_number(text, id);

	for (size_t i = 0; i < sizeof(rest); i++)
		at[i] = rest[i];
	return write_file(path, text);
}

static long enter_namespaces(const struct guest_join *j)
{
	long r = raw_call(SYS_unshare, CLONE_NEWUSER);

	if (r == 0)
		r = write_file("/proc/self/setgroups", "deny");
	if (r == 0)
		r = map_id("/proc/self/uid_map", j->uid);
	if (r == 0)
		r = map_id("/proc/self/gid_map", j->gid);
	if (r == 0)
		/* a kernel without them shows the host's path; nothing more */
		raw_call(SYS_unshare, CLONE_NEWCGROUP);
	return r;
}

static long drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2];
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	long r = 0;

	for (int cap = 0; cap < 64 && r == 0; cap++)
		r = raw_call(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (r < 0 && r != -EINVAL) /* the kernel knows no higher one */
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
	struct sock_fprog program = { .len = (unsigned short)s->head.filter_len,
				      .filter = s->filter };

	return raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			&program);
}

static long send_ready(const int fds[3])
{
	FD_MESSAGE_CONTROL(3) control;
	struct guest_message m = { .op = GUEST_READY };
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };

	fd_message_put(&message, fds, 3);
	return raw_call(SYS_sendmsg, GUEST_CONTROL_FD, &message, 0);
}

static _Noreturn void fail(long r)
{
	guest_say(GUEST_FAILED, (int32_t)-r, 125, 0);
	guest_exit(125);
}

void guest_join(void)
{
	static const char *const again[] = { "ward-settle", NULL };
	struct guest_join j;
	long r;

	raw_call(SYS_close_range, GUEST_CONTROL_FD + 1, ~0U, 0);
	r = receive_join(&j);
	if (r >= 0)
		r = enter_namespaces(&j);
	if (r >= 0)
		r = drop_capabilities();
	if (r >= 0)
		r = raw_call(SYS_execve, INIT, again, again + 1);
	fail(r);
}

/* Everything in its order; fds become those that go with ready. */
static long settle(struct setup *s, int fds[3])
{
	long r = raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0), own = raw_call(SYS_getpid);

	if (r >= 0)
		fds[0] = (int)(r = raw_call(SYS_openat, AT_FDCWD, "/proc",
					    O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (r >= 0)
		fds[1] = (int)(r = raw_call(SYS_pidfd_open, own, 0));
	if (r >= 0)
		r = receive_setup(s);
	if (r >= 0)
		r = put_limits(&s->head);
	if (r >= 0)
		fds[2] = (int)(r = put_filter(s));
	return r;
}

char **guest_settle(size_t *ret_argc, char ***ret_envp)
{
	struct setup s;
	int fds[3];
	long r = settle(&s, fds);

	if (r >= 0)
		r = send_ready(fds);
	if (r < 0)
		fail(r);
	raw_call(SYS_close_range, GUEST_CONTROL_FD + 1, ~0U, 0);
	*ret_argc = s.head.word_count;
	*ret_envp = s.pointers + s.head.word_count + 1;
	return s.pointers;
}
