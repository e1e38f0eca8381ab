/* musl has no sys/pidfd.h. */
#ifndef WARD_MUSL_SYS_PIDFD_H
#define WARD_MUSL_SYS_PIDFD_H

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int pidfd_open(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static inline int pidfd_getfd(int pid_fd, int fd, unsigned flags)
{
	return (int)syscall(SYS_pidfd_getfd, pid_fd, fd, flags);
}

static inline int pidfd_send_signal(int pid_fd, int signal, siginfo_t *info, unsigned flags)
{
	return (int)syscall(SYS_pidfd_send_signal, pid_fd, signal, info, flags);
}

#endif
