/*
 * What glibc has and musl does not, as far as ward and the libyaml of the distribution, which was
 * built for glibc, call it, and what musl does slowly.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* musl's own makes each descriptor close-on-exec a second time, for kernels that are too old for
 * everything else here. */
int open(const char *path, int flags, ...)
{
	unsigned mode = 0;
	va_list args;

	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
		va_start(args, flags);
		mode = va_arg(args, unsigned);
		va_end(args);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int __sprintf_chk(char *out, int flag, size_t size, const char *format, ...);

/* sprintf() as _FORTIFY_SOURCE makes it: never over the end of what it writes to. */
int __sprintf_chk(char *out, int flag, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	(void)flag;
	va_start(args, format);
	n = vsnprintf(out, size, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n >= size)
		abort();
	return n;
}

const char *sigabbrev_np(int signal)
{
	static const char *const names[] = {
		[SIGHUP] = "HUP",       [SIGINT] = "INT",       [SIGQUIT] = "QUIT",
		[SIGILL] = "ILL",       [SIGTRAP] = "TRAP",     [SIGABRT] = "ABRT",
		[SIGBUS] = "BUS",       [SIGFPE] = "FPE",       [SIGKILL] = "KILL",
		[SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV",     [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE",     [SIGALRM] = "ALRM",     [SIGTERM] = "TERM",
		[SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD",     [SIGCONT] = "CONT",
		[SIGSTOP] = "STOP",     [SIGTSTP] = "TSTP",     [SIGTTIN] = "TTIN",
		[SIGTTOU] = "TTOU",     [SIGURG] = "URG",       [SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ",     [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF",
		[SIGWINCH] = "WINCH",   [SIGPOLL] = "POLL",     [SIGPWR] = "PWR",
		[SIGSYS] = "SYS",
	};

	return signal > 0 && (size_t)signal < sizeof(names) / sizeof(names[0]) ? names[signal]
									       : NULL;
}
