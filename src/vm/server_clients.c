/*
 * Clients that want one more command in the guest: they connect to a socket in a directory that
 * only this sandbox has, hand over their 0-2 and the words, and pass their signals on. They run
 * inside the same native sandbox as this server and have no more rights than it; what they say is
 * checked all the same, and one that says something else is cut off.
 */
#include "vm/server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/io.h"

#define FDS 4 /* 0-2, and the words */

int server_listen(struct server *v, struct ward_err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const char *path = v->setup->socket_path;
	auto_fd fd = -1;

	v->listen_fd = -1;
	if (!path)
		return 0;
	if (strlen(path) >= sizeof(at.sun_path))
		return ward_fail(e, ENAMETOOLONG, "the path of the guest's socket is too long: %s",
				 path);
	memcpy(at.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    chmod(path, 0600) < 0 || listen(fd, 64) < 0)
		return ward_fail_errno(e, "making the socket %s", path);
	v->listen_fd = take_fd(&fd);
	return 0;
}

void server_accept(struct server *v)
{
	for (size_t i = 0; i < PARTY_PENDING; i++)
		if (v->pending[i] < 0) {
			v->pending[i] =
				accept4(v->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
			return;
		}
	own_close_fd(&v->pending[0]); /* the client that has been silent longest */
	v->pending[0] = -1;
}

struct party *server_party(struct server *v, bool copy)
{
	if (copy)
		return v->parties[VM_CHANNELS - 1].channel ? NULL : &v->parties[VM_CHANNELS - 1];
	for (unsigned i = 2; i < VM_CHANNELS - 1; i++) /* [1] is the first command's */
		if (!v->parties[i].channel)
			return &v->parties[i];
	return NULL;
}

static char *read_words(int fd, size_t *ret_len)
{
	struct stat st;
	char *words;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > VM_WORDS_MAX)
		return NULL;
	words = malloc((size_t)st.st_size);
	if (words && pread(fd, words, (size_t)st.st_size, 0) != st.st_size) {
		free(words);
		return NULL;
	}
	*ret_len = (size_t)st.st_size;
	return words;
}

/* Starts what the connection asks for. The descriptors become the party's, or are closed. */
static void start(struct server *v, int *sock_fd, const struct party_message *m, int *fds)
{
	struct party *p = server_party(v, false),
		     refused = { .fds = { -1, -1, -1 }, .sock_fd = -1 };
	struct party_message last = { .magic = PARTY_MAGIC, .op = PARTY_ERROR };
	struct ward_err e = { 0 };
	size_t len = 0;
	char *words = read_words(fds[3], &len);
	int channel;

	own_close_fd(&fds[3]);
	channel = p ? session_open(&v->session, &m->start, words, len, &e)
		    : ward_fail(&e, EAGAIN, "too many commands at one time");
	if (!p)
		free(words);
	if (p && channel > 0) {
		party_begin(p, (unsigned)channel, fds, take_fd(sock_fd),
			    &v->session.channels[channel]);
		return;
	}
	memcpy(refused.fds, fds, sizeof(refused.fds));
	refused.sock_fd = take_fd(sock_fd);
	party_end(&refused, &last, &e);
}

void server_meet(struct server *v, int *sock_fd)
{
	int fds[FDS] = { -1, -1, -1, -1 };
	struct party_message m;
	char bytes[sizeof(m)];
	size_t count = 0;
	ssize_t n = io_recv_fds(*sock_fd, bytes, sizeof(bytes), fds, FDS, &count);

	if (n == -EAGAIN)
		return;
	if (n > 0 && count == FDS && party_check(bytes, (size_t)n, &m) && m.op == PARTY_START) {
		start(v, sock_fd, &m, fds);
		return;
	}
	for (size_t i = 0; i < count && i < FDS; i++)
		own_close_fd(&fds[i]);
	own_close_fd(sock_fd);
	*sock_fd = -1;
}

/* Who asked for the command is gone: as if it had been the command itself. */
static void gone(struct server *v, struct party *p)
{
	struct vm_channel *c = &v->session.channels[p->channel];

	c->signals |= 1ull << (SIGKILL - 1);
	for (unsigned i = 0; i < VM_STREAMS; i++)
		session_break(&c->in[i]);
	if (p == &v->parties[1])
		v->first_gone = true;
	p->gone = true;
}

void server_turn_away(struct server *v)
{
	for (size_t i = 0; i < PARTY_PENDING; i++) {
		own_close_fd(&v->pending[i]);
		v->pending[i] = -1;
	}
}

void server_drop_slow(struct server *v)
{
	for (unsigned i = 2; i < VM_CHANNELS; i++) {
		struct vm_channel *c = &v->session.channels[v->parties[i].channel];

		for (unsigned k = 0; k < VM_STREAMS && v->parties[i].channel; k++)
			if (c->in[k].len) /* it was offered in the turn before */
				session_break(&c->in[k]);
	}
}

static bool server_gives_up(int number)
{
	return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

void server_read_early(struct server *v)
{
	struct party_message m;
	char bytes[sizeof(m)];
	ssize_t n = recv(v->early_fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 ||
	    (party_check(bytes, (size_t)n, &m) && m.op == PARTY_SIGNAL && server_gives_up(m.a)))
		v->first_gone = true;
}

void server_read(struct server *v, struct party *p)
{
	struct vm_channel *c = &v->session.channels[p->channel];
	struct party_message m;
	char bytes[sizeof(m)];
	ssize_t n = recv(p->sock_fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || !party_check(bytes, (size_t)n, &m) || m.op == PARTY_START) {
		gone(v, p);
		return;
	}
	if (p == &v->parties[1] && m.op == PARTY_SIGNAL && c->state == VM_ENDED &&
	    server_gives_up(m.a))
		v->first_gone = true; /* its files are being copied back */
	if (m.op == PARTY_SIGNAL)
		c->signals |= 1ull << (m.a - 1);
	if (m.op == PARTY_RESIZE) {
		c->size = (struct vm_resize){ .rows = (uint16_t)m.a, .columns = (uint16_t)m.b };
		c->tell_size = true;
	}
}
