/*
 * ward-ask, inside: asks ward what the rules are and what was refused, and proposes a rule.
 *
 * In: words. Out: a packet with them to the supervisor; what comes back goes to standard output and
 * error, and its last message is the exit status. It knows no word itself, holds no right and
 * decides nothing. It ends by any signal, and the supervisor then withdraws the question.
 *
 * Freestanding: static, without a libc, without writable globals.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/raw.h"
#include "protocol/ask.h"

_Noreturn void ask_main(long *stack);

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call ask_main\n"
	"	hlt\n");

static _Noreturn void leave(int code)
{
	for (;;)
		raw_call(SYS_exit_group, code);
}

static void write_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		long r = raw_call(SYS_write, fd, text, n);

		if (r == -EINTR)
			continue;
		if (r <= 0)
			return;
		text += r;
		n -= (size_t)r;
	}
}

static _Noreturn void fail(const char *why)
{
	write_all(2, "ward-ask: ", 10);
	write_all(2, why, raw_strlen(why));
	write_all(2, "\n", 1);
	leave(ASK_FAILED);
}

static int connect_to_ward(void)
{
	static const char path[] = ASK_SOCKET;
	struct sockaddr_un at;
	long fd;

	for (size_t i = 0; i < sizeof(at); i++)
		((volatile char *)&at)[i] = 0;
	at.sun_family = AF_UNIX;
	for (size_t i = 0; i < sizeof(path); i++)
		at.sun_path[i] = path[i];
	fd = raw_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || raw_call(SYS_connect, fd, &at, sizeof(at)) < 0)
		fail("cannot reach ward: the sandbox is ending, or it takes no questions");
	return (int)fd;
}

static void send_words(int fd, char *packet, char **argv, size_t argc)
{
	struct ask_message m = { ASK_MAGIC, ASK_WORDS, (int32_t)argc - 1, 0 };
	size_t len = sizeof(m);

	if (argc < 1 || argc - 1 > ASK_WORDS_MAX)
		fail("too many arguments; see ward-ask --help");
	for (size_t i = 0; i < sizeof(m); i++)
		packet[i] = ((const char *)&m)[i];
	for (size_t i = 1; i < argc; i++) {
		size_t n = raw_strlen(argv[i]) + 1;

		if (n > ASK_MAX - len)
			fail("the arguments are too long");
		for (size_t k = 0; k < n; k++)
			packet[len++] = argv[i][k];
	}
	/* one that is refused at once: why is in the socket */
	(void)raw_call(SYS_sendto, fd, packet, len, MSG_NOSIGNAL, 0, 0);
}

_Noreturn void ask_main(long *stack)
{
	long packet = raw_call(SYS_mmap, 0, ASK_MAX, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *bytes = (char *)packet;
	int fd = connect_to_ward();

	if (packet < 0 && packet > -4096)
		fail("out of memory");
	send_words(fd, bytes, (char **)(stack + 1), (size_t)stack[0]);
	for (;;) {
		long n = raw_call(SYS_recvfrom, fd, bytes, ASK_MAX, 0, 0, 0);
		struct ask_message m;

		if (n == -EINTR || n == -ECONNRESET) /* what was sent before that comes yet */
			continue;
		if (n < (long)sizeof(m))
			fail("ward has closed the connection without an answer");
		for (size_t i = 0; i < sizeof(m); i++)
			((char *)&m)[i] = bytes[i];
		if (m.op == ASK_OUT || m.op == ASK_ERR)
			write_all(m.op == ASK_OUT ? 1 : 2, bytes + sizeof(m),
				  (size_t)n - sizeof(m));
		else if (m.op == ASK_END)
			leave(m.a);
	}
}
