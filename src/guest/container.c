/*
 * ward-init in a container that an OCI runtime made. In: descriptor 3 on the supervisor, everything taken away but the exact system call filter, which lies in a file of the root. Out: the filter is on, and the supervisor has /proc,
 * a pidfd and the seccomp listener; at its word the command is started. Without the filter nothing is started. The first to run there, with no right of its own, and before anything of the command's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/socket.h>

#include "base/raw.h"
#include "guest/guest.h"

#define FILTER "/.ward/filter"
#define FILTER_MAX 1024

/* Puts the filter on; the listener, or -errno. */
static long put_filter(void)
{
	struct sock_filter code[FILTER_MAX];
	struct sock_fprog program = { .filter = code };
	long fd = raw_call(SYS_openat, AT_FDCWD, FILTER, O_RDONLY | O_CLOEXEC), n;
	size_t have = 0;

	if (fd < 0)
		return fd;
	do {
		n = raw_call(SYS_read, fd, (char *)code + have, sizeof(code) - have);
		have += n > 0 ? (size_t)n : 0;
	} while (n > 0 || n == -EINTR);
	raw_call(SYS_close, fd);
	if (n < 0 || !have || have % sizeof(*code))
		return n < 0 ? n : -EINVAL;
	program.len = (unsigned short)(have / sizeof(*code));
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

/* The supervisor puts us where we belong first. */
static long wait_for_word(void)
{
	struct guest_message m;
	long n;

	do
		n = raw_call(SYS_read, GUEST_CONTROL_FD, &m, sizeof(m));
	while (n == -EINTR);
	return n == (long)sizeof(m) ? 0 : -ECONNRESET;
}

void guest_container(void)
{
	int fds[3];
	long r;

	raw_call(SYS_close_range, GUEST_CONTROL_FD + 1, ~0U, 0);
	r = raw_call(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fds[0] = (int)r;
	if (r >= 0) {
		long own = raw_call(SYS_getpid);

		r = raw_call(SYS_pidfd_open, own, 0);
		fds[1] = (int)r;
	}
	if (r >= 0) {
		r = put_filter();
		fds[2] = (int)r;
	}
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
