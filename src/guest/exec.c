/*
 * What ward-init does to execute a command: read the message that asks for it, then run it
 * (command.c). Freestanding. The message comes from the supervisor, the only peer of the socket; a
 * malformed one is refused all the same. Everything behind the fork happens with the sandbox's own
 * rights: a directory or program that is not what it seems leads nowhere but inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/fd_message.h"
#include "base/raw.h"
#include "guest/command.h"
#include "guest/guest.h"

long guest_receive(struct guest *g, struct guest_message **ret_message, int fds[GUEST_FDS_MAX])
{
	FD_MESSAGE_CONTROL(GUEST_FDS_MAX) control;
	struct iovec iov = { .iov_len = GUEST_PACKET_MAX };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	long n = g->packet ? RAW_ARG(g->packet)
			   : raw_call(SYS_mmap, 0, GUEST_PACKET_MAX, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (n < 0 && n > -4096)
		return n;
	g->packet = (struct guest_message *)n;
	iov.iov_base = g->packet;
	n = raw_call(SYS_recvmsg, GUEST_CONTROL_FD, &m, MSG_CMSG_CLOEXEC);
	if (n > 0)
		fd_message_take(&m, fds, GUEST_FDS_MAX);
	*ret_message = g->packet;
	return n;
}

bool guest_read_start(const struct guest_message *m, size_t len, const int *fds,
		      struct guest_start *start)
{
	const char *text = (const char *)(m + 1), *end = (const char *)m + len;
	size_t strings = 0, first = 0;

	if (m->a < 1 || m->b < 0 || fds[2] < 0 || text == end || end[-1] ||
	    (m->op == GUEST_EXEC_FILE) != (fds[GUEST_FDS_MAX - 1] >= 0))
		return false;
	for (const char *s = text; s < end; s++)
		if (!*s) {
			first = strings++ ? first : (size_t)(s - text) + 1;
		}
	if (strings != 1 + (size_t)m->a + (size_t)m->b)
		return false;
	start->cwd = text;
	start->strings = text + first;
	start->argc = (size_t)m->a;
	start->envc = (size_t)m->b;
	for (int i = 0; i < 3; i++)
		start->fds[i] = fds[i];
	start->opened = m->op == GUEST_EXEC_FILE;
	start->dir_fd = fds[3];
	start->program_fd = fds[4];
	return true;
}

long guest_take_stdio(const struct guest_start *start)
{
	long r = 0;

	for (int i = 0; i < 3 && r >= 0; i++)
		if (start->fds[i] != i)
			r = raw_call(SYS_dup3, start->fds[i], i, 0);
	return r < 0 ? r : 0;
}

static bool is_same_variable(const char *a, const char *b)
{
	for (; *a == *b && *a && *a != '='; a++, b++)
		;
	return *a == '=' && *b == '=';
}

/* The command's own variables, then those of base that it does not set itself. */
static void merge_env(struct guest_start *start, char **base)
{
	size_t n = start->envc;

	for (; *base; base++) {
		bool own = false;

		for (size_t i = 0; i < start->envc && !own; i++)
			own = is_same_variable(*base, start->envp[i]);
		if (!own)
			start->envp[n++] = *base;
	}
	start->envp[n] = 0;
}

static const char *point_at(char **list, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++) {
		union {
			const char *in;
			char *out;
		} word = { .in = text };

		list[i] = word.out; /* execve() writes to none of them */
		text += raw_strlen(text) + 1;
	}
	list[count] = 0;
	return text;
}

long guest_exec(struct guest_start *start, char **base)
{
	size_t slots = start->argc + start->envc + 2;
	char **list;
	long r;

	if (!start->from_packet)
		return guest_exec_words(start->argv, start->argc, start->envp);
	for (char **s = base; *s; s++)
		slots++;
	r = raw_call(SYS_mmap, 0, slots * sizeof(*list), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r <= 0 && r > -4096)
		return r ? -r : ENOMEM;
	list = (char **)r;
	start->argv = list;
	start->envp = list + start->argc + 1;
	point_at(start->envp, start->envc, point_at(start->argv, start->argc, start->strings));
	merge_env(start, base);
	if (start->opened)
		return -raw_call(SYS_execveat, start->program_fd, "", start->argv, start->envp,
				 AT_EMPTY_PATH);
	return guest_exec_words(start->argv, start->argc, start->envp);
}
