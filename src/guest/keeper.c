/*
 * The keeper of the operator's terminal. In: descriptor 3, a socket to the process that has put the
 * terminal into raw mode (run/console.c), and descriptor 4, that terminal. Out: nothing, unless
 * that ends without a word: then that process was killed, and the terminal gets back the modes and
 * the screen that it was last sent. Runs in a session of its own with the caller's rights; it reads
 * nothing but the socket.
 *
 * A word is a struct guest_terminal; one with keep 0 means that there is nothing to put back now.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/raw.h"
#include "guest/session.h"
#include "protocol/guest.h"

#define SOCKET_FD 3
#define TERMINAL_FD 4
#define TCSETS_NUMBER 0x5402
#define TCFLSH_NUMBER 0x540b

static _Noreturn void leave(void)
{
	for (;;)
		raw_call(SYS_exit_group, 0);
}

_Noreturn void guest_keeper(void)
{
	struct guest_terminal words[2], *last = &words[0], *next = &words[1];
	unsigned long all = ~0UL;
	long n;

	last->keep = 0;
	raw_call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, 0, 8);
	raw_call(SYS_setsid);
	raw_call(SYS_chdir, "/");
	for (;;) {
		/* words are written whole */
		n = raw_call(SYS_read, SOCKET_FD, next, sizeof(*next));
		if (n == -EINTR)
			continue;
		if (n == 1)
			leave(); /* all is well */
		if (n != (long)sizeof(*next))
			break;
		next = last;
		last = next == &words[0] ? &words[1] : &words[0];
	}
	if (!last->keep)
		leave();
	raw_call(SYS_ioctl, TERMINAL_FD, TCFLSH_NUMBER,
		 0 /* TCIFLUSH: answers and mouse reports that no process waits for */);
	raw_call(SYS_ioctl, TERMINAL_FD, TCSETS_NUMBER, last->modes);
	if (last->reset_len <= sizeof(last->reset))
		raw_call(SYS_write, TERMINAL_FD, last->reset, last->reset_len);
	leave();
}
