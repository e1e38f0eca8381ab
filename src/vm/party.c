/*
 * One party of the server: the descriptors that a command's streams go to, and the socket to the
 * process that asked for it. They came from a process inside the same native sandbox; the worst
 * that one can do is to hand over descriptors of its own. They are shared with others, so their
 * flags stay as they are, and nothing here waits.
 */
#include "vm/party.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"

#define TERMINAL_BYTES 1024

bool party_check(const void *bytes, size_t n, struct party_message *ret)
{
	if (n != sizeof(*ret))
		return false;
	memcpy(ret, bytes, sizeof(*ret));
	if (ret->magic != PARTY_MAGIC || ret->op < PARTY_START || ret->op > PARTY_RESIZE)
		return false;
	if (ret->op == PARTY_START)
		return (ret->start.kind == VM_RUN || ret->start.kind == VM_COPY) &&
		       ret->start.terminals < 8 && !ret->start.zero;
	if (ret->op == PARTY_SIGNAL)
		return ret->a >= 1 && ret->a <= 64;
	return ret->a >= 0 && ret->a <= UINT16_MAX && ret->b >= 0 && ret->b <= UINT16_MAX;
}

char *party_words(const char *cwd, int argc, char **argv, char **envp, size_t *ret_len,
		  struct vm_start *start)
{
	auto_buf b = { 0 };

	buf_add(&b, cwd, strlen(cwd) + 1);
	for (int i = 0; i < argc; i++)
		buf_add(&b, argv[i], strlen(argv[i]) + 1);
	start->argc = (uint32_t)argc;
	start->envc = 0;
	for (; envp && *envp; envp++, start->envc++)
		buf_add(&b, *envp, strlen(*envp) + 1);
	*ret_len = b.len;
	return buf_take(&b);
}

void party_terminals(const int *fds, struct vm_start *start)
{
	struct winsize size;

	for (int i = VM_STREAMS - 1; i >= 0; i--)
		if (ioctl(fds[i], TIOCGWINSZ, &size) == 0) {
			start->terminals |= (uint16_t)(1u << i);
			start->rows = size.ws_row;
			start->columns = size.ws_col;
		}
}

/* What was typed before the terminal was made raw has a NUL where its end of input was. */
static void restore_ends(uint8_t *bytes, size_t n)
{
	static const uint8_t end_of_input = 4;

	for (size_t i = 0; i < n; i++)
		if (!bytes[i])
			bytes[i] = end_of_input;
}

static ssize_t fill(void *ctx, uint8_t *bytes, size_t n)
{
	struct party *p = ctx;
	ssize_t got;

	if (p->fds[0] < 0)
		return 0;
	if (!p->readable)
		return -EAGAIN;
	p->readable = false;
	got = read(p->fds[0], bytes, n);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (got > 0 && p->typed_ahead)
		restore_ends(bytes, (size_t)got);
	p->typed_ahead = false;
	return got < 0 ? 0 : got;
}

void party_begin(struct party *p, unsigned channel, const int *fds, int sock_fd,
		 struct vm_channel *c)
{
	struct stat st;

	*p = (struct party){ .channel = channel, .sock_fd = sock_fd };
	for (int i = 0; i < VM_STREAMS; i++) {
		p->fds[i] = fds[i];
		p->types[i] = fds[i] >= 0 && fstat(fds[i], &st) == 0 ? st.st_mode & S_IFMT : 0;
	}
	p->typed_ahead = p->types[0] == S_IFCHR && isatty(p->fds[0]);
	c->fill = fill;
	c->ctx = p;
}

int party_out_fd(const struct party *p, const struct vm_channel *c, unsigned stream)
{
	static const unsigned order[VM_STREAMS] = { 1, 2, 0 };

	if (stream)
		return p->fds[stream];
	for (unsigned i = 0; i < VM_STREAMS; i++)
		if (c->start.terminals & 1u << order[i])
			return p->fds[order[i]];
	return -1;
}

static unsigned type_of(const struct party *p, int fd)
{
	for (int i = 0; i < VM_STREAMS; i++)
		if (p->fds[i] == fd)
			return p->types[i];
	return 0;
}

/* As io_write_some(); a terminal takes little at a time, and only if it says so, because it would
 * wait. */
static ssize_t write_some(int fd, unsigned type, const uint8_t *bytes, size_t n)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	if (!S_ISCHR(type))
		return io_write_some(fd, type, (const char *)bytes, n);
	if (poll(&ready, 1, 0) <= 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, bytes, n < TERMINAL_BYTES ? n : TERMINAL_BYTES);
}

void party_flush(struct party *p, struct vm_channel *c)
{
	for (unsigned i = 0; i < VM_STREAMS; i++) {
		struct vm_inbox *in = &c->in[i];
		int fd = party_out_fd(p, c, i);

		while (in->len) {
			ssize_t n = fd < 0 ? -1
					   : write_some(fd, type_of(p, fd), in->bytes + in->at,
							in->len);

			if (n < 0 && fd >= 0 && (errno == EAGAIN || errno == EINTR))
				break;
			if (n < 0)
				session_break(in);
			else
				session_taken(in, (size_t)n);
		}
		if (!i || !in->ended || in->len || p->fds[i] < 0 || p->sock_fd >= 0)
			continue;
		close(p->fds[i]); /* a copy's reader waits for the end */
		p->fds[i] = -1;
	}
}

bool party_flushed(const struct vm_channel *c)
{
	return !c->in[0].len && !c->in[1].len && !c->in[2].len;
}

bool party_say(int sock_fd, enum party_op op, int a)
{
	struct party_message m = { .magic = PARTY_MAGIC, .op = op, .a = a };

	return send(sock_fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m);
}

void party_end(struct party *p, const struct party_message *last, const struct ward_err *error)
{
	struct iovec parts[2] = { 0 };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 1 };
	struct party_message copy = *last;

	parts[0] = (struct iovec){ .iov_base = &copy, .iov_len = sizeof(copy) };
	if (error) {
		struct ward_err sent = *error;

		parts[1] = (struct iovec){ .iov_base = &sent, .iov_len = sizeof(sent) };
		m.msg_iovlen = 2;
		if (p->sock_fd >= 0)
			(void)!sendmsg(p->sock_fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} else if (p->sock_fd >= 0) {
		(void)!sendmsg(p->sock_fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	for (int i = 0; i < VM_STREAMS; i++)
		own_close_fd(&p->fds[i]);
	own_close_fd(&p->sock_fd);
	*p = (struct party){ .fds = { -1, -1, -1 }, .sock_fd = -1 };
}
