/*
 * The ssh-agent of a run. In: entries of credentials.ssh. Out: a socket that the sandbox gets as
 * its ssh-agent, the known_hosts that goes with it, and each signature that was made or refused in
 * the journal. Runs in the supervisor, which starts ward-ssh-agent and reads its events; neither
 * keys nor bytes from inside are in this process. The socket lies in a directory of its own in the
 * runtime directory, which nobody else can look into; everybody who sees it may connect: inside
 * that is everybody, outside nobody but the user.
 */
#include "egress/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/io.h"
#include "event/event.h"
#include "event/result.h"
#include "host/program.h"
#include "protocol/ssh.h"
#include "state/runtime.h"

#define START_MS 60000
#define EVENTS_AT_ONCE 64
#define BACKLOG 64

struct ssh_link {
	int fd;
	pid_t pid;
	int parent_fd, dir_fd;
	char name[32]; /* of the directory, in the runtime directory */
};

/* -- the socket */

static int make_dir(struct ssh_link *s, struct ward_err *e)
{
	uint64_t random;

	s->parent_fd = runtime_open(e);
	if (s->parent_fd < 0)
		return s->parent_fd;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return ward_fail_errno(e, "no random numbers");
	snprintf(s->name, sizeof(s->name), "ssh-%016llx", (unsigned long long)random);
	if (mkdirat(s->parent_fd, s->name, 0700) < 0) {
		int r = ward_fail_errno(e, "cannot make a directory for the ssh-agent's socket");

		s->name[0] = '\0';
		return r;
	}
	s->dir_fd = openat(s->parent_fd, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->dir_fd < 0 ? ward_fail_errno(e, "cannot open the ssh-agent's directory") : 0;
}

static int make_socket(const struct ssh_link *s, int *ret_fd, char **ret_path, struct ward_err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	auto_buf path = { 0 };
	char here[64], dir[512];
	ssize_t n;

	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/agent", s->dir_fd);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    fchmodat(s->dir_fd, "agent", 0666, 0) < 0 || listen(fd, BACKLOG) < 0)
		return ward_fail_errno(e, "cannot make the socket of the ssh-agent");
	snprintf(here, sizeof(here), "/proc/self/fd/%d", s->dir_fd);
	n = readlink(here, dir, sizeof(dir));
	if (n <= 0 || n == (ssize_t)sizeof(dir))
		return ward_fail(e, ENAMETOOLONG, "the path of the runtime directory is too long");
	buf_add(&path, dir, (size_t)n);
	buf_puts(&path, "/agent");
	*ret_path = buf_take(&path);
	if (!*ret_path)
		return ward_fail(e, ENOMEM, "out of memory");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* -- the start */

static int say(const struct ssh_link *s, enum ssh_op op, const char *text, struct ward_err *e)
{
	struct ssh_said head = { .op = op };
	auto_buf out = { 0 };
	int r;

	buf_add(&out, &head, sizeof(head));
	buf_puts(&out, text);
	if (out.failed || out.len > SSH_SAID_MAX)
		return ward_fail(e, E2BIG, "too much for one message to ward-ssh-agent");
	r = io_send_fds(s->fd, out.data, out.len, NULL, 0);
	return r < 0 ? ward_fail(e, -r, "ward-ssh-agent has exited") : 0;
}

/* Three texts, each with a NUL. */
static int read_error(int code, const char *text, size_t n, struct ward_err *e)
{
	const char *end = text + n, *why, *remedy;

	ward_fail(e, code > 0 ? code : EIO, "ward-ssh-agent could not start");
	if (!n || end[-1])
		return -e->code;
	why = text + strlen(text) + 1;
	remedy = why < end ? why + strlen(why) + 1 : end;
	if (remedy >= end)
		return -e->code;
	snprintf(e->what, sizeof(e->what), "%.500s", text);
	snprintf(e->why, sizeof(e->why), "%.760s", why);
	snprintf(e->remedy, sizeof(e->remedy), "%.500s", remedy);
	return -e->code;
}

static int read_ready(const char *text, size_t n, char **ret_known, char **ret_signs,
		      struct ward_err *e)
{
	const char *signs = memchr(text, '\0', n);

	if (!signs || !n || text[n - 1] || signs + 1 >= text + n)
		return ward_fail(e, EPROTO, "ward-ssh-agent sent an invalid answer");
	*ret_known = strdup(text);
	*ret_signs = strdup(signs + 1);
	return *ret_known && *ret_signs ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

static int await_start(const struct ssh_link *s, char **ret_known, char **ret_signs,
		       struct ward_err *e)
{
	auto_free char *bytes = malloc(SSH_SAID_MAX + 1);
	struct pollfd ready = { .fd = s->fd, .events = POLLIN };
	struct ssh_said head;
	ssize_t n;

	if (!bytes)
		return ward_fail(e, ENOMEM, "out of memory");
	if (poll(&ready, 1, START_MS) <= 0)
		return ward_fail(e, ETIMEDOUT, "your ssh-agent did not answer within %d seconds",
				 START_MS / 1000);
	n = recv(s->fd, bytes, SSH_SAID_MAX, 0);
	if (n < (ssize_t)sizeof(head))
		return ward_fail(e, EPIPE, "ward-ssh-agent exited before it was ready");
	memcpy(&head, bytes, sizeof(head));
	bytes[n] = '\0';
	if (head.op == SSH_READY)
		return read_ready(bytes + sizeof(head), (size_t)n - sizeof(head), ret_known,
				  ret_signs, e);
	return read_error(head.code, bytes + sizeof(head), (size_t)n - sizeof(head), e);
}

static int start_program(struct ssh_link *s, int listen_fd, struct ward_err *e)
{
	static char *const argv[] = { (char *)(uintptr_t) "ward-ssh-agent", NULL };
	struct program program = { .fd = program_open("ward-ssh-agent", e),
				   .argv = argv,
				   .envp = environ,
				   .fd_count = 3 };
	int pair[2], r;

	if (program.fd < 0)
		return program.fd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		close(program.fd);
		return ward_fail_errno(e, "cannot make the socket of ward-ssh-agent");
	}
	s->fd = pair[0];
	program.fds[0] = pair[1];
	program.fds[1] = listen_fd;
	program.fds[2] = s->dir_fd;
	r = program_start(&program, &s->pid, e);
	close(pair[1]);
	close(program.fd);
	return r;
}

int ssh_start(const struct policy *p, struct ssh_link **ret, char **ret_path, char **ret_known,
	      char **ret_signs, struct ward_err *e)
{
	struct ssh_link *s = calloc(1, sizeof(*s));
	auto_fd listen_fd = -1;
	int r;

	*ret = s;
	if (!s)
		return ward_fail(e, ENOMEM, "out of memory");
	s->fd = s->parent_fd = s->dir_fd = -1;
	r = make_dir(s, e);
	if (r == 0)
		r = make_socket(s, &listen_fd, ret_path, e);
	if (r == 0)
		r = start_program(s, listen_fd, e);
	for (size_t i = 0; r == 0 && i < p->cred_ssh.len; i++)
		r = say(s, SSH_ENTRY, p->cred_ssh.items[i], e);
	for (size_t i = 0; r == 0 && i < p->cred_gpg.len; i++)
		r = say(s, SSH_GPG, p->cred_gpg.items[i], e);
	if (r == 0)
		r = say(s, SSH_BEGIN, "", e);
	/* one that could not begin has said why before it ended */
	if (r == 0 || (r == -EPIPE && s->fd >= 0))
		r = await_start(s, ret_known, ret_signs, e);
	return r < 0 && p->cred_ssh.len ? ward_wrap(e, "credentials.ssh") : r;
}

/* -- while it runs */

int ssh_fd(const struct ssh_link *s)
{
	return s ? s->fd : -1;
}

static void emit_lost(uint32_t lost, struct result *r)
{
	struct ward_event v = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, "ssh");

	event_text(&v, FIELD_WHY, "more requests were refused than could be reported");
	event_number(&v, FIELD_LOST, lost);
	event_emit(r->events, &v);
}

static void on_event(const char *bytes, size_t n, struct result *r)
{
	struct ssh_event said;
	struct ward_event v;
	auto_buf what = { 0 };

	if (n != sizeof(said))
		return;
	memcpy(&said, bytes, sizeof(said));
	said.key[sizeof(said.key) - 1] = said.host[sizeof(said.host) - 1] =
		said.detail[sizeof(said.detail) - 1] = '\0';
	if (said.lost)
		emit_lost(said.lost, r);
	v = event_make(EVENT_CREDENTIAL_SIGN, said.allowed ? ACTION_ALLOW : ACTION_DENY,
		       *said.key  ? said.key
		       : said.gpg ? "gpg"
				  : "ssh");
	if (*said.host)
		event_text(&v, FIELD_HOST, said.host);
	if (*said.detail)
		event_text(&v, FIELD_WHY, said.detail);
	event_emit(r->events, &v);
	if (said.allowed)
		return;
	buf_printf(&what, "%s signature%s%s", said.gpg ? "gpg" : "ssh", *said.host ? " for " : "",
		   said.host);
	result_deny(r, buf_text(&what), said.detail,
		    said.gpg ? "credentials.gpg names the keys that sign commits and tags"
			     : "credentials.ssh names keys, hosts and users; ward explain has "
			       "more");
}

void ssh_handle(struct ssh_link *s, struct result *r)
{
	for (int i = 0; s->fd >= 0 && i < EVENTS_AT_ONCE; i++) {
		char bytes[sizeof(struct ssh_said) + sizeof(struct ssh_event) + 1];
		ssize_t n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		struct ssh_said head;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < (ssize_t)sizeof(head)) {
			own_close_fd(&s->fd);
			s->fd = -1;
			strv_add(&r->notes, "ward-ssh-agent ended before the command did: from "
					    "then on nothing was signed");
			return;
		}
		memcpy(&head, bytes, sizeof(head));
		if (head.op == SSH_EVENT)
			on_event(bytes + sizeof(head), (size_t)n - sizeof(head), r);
	}
}

void ssh_end(struct ssh_link *s)
{
	if (!s)
		return;
	own_close_fd(&s->fd);
	if (s->pid > 0) {
		for (int i = 0; i < 100 && waitpid(s->pid, NULL, WNOHANG) == 0; i++)
			poll(NULL, 0, 5);
		if (kill(s->pid, SIGKILL) == 0)
			while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
				;
	}
	if (s->dir_fd >= 0) {
		(void)unlinkat(s->dir_fd, "agent", 0);
		(void)unlinkat(s->dir_fd, "gpg_keys", 0);
	}
	if (*s->name)
		(void)unlinkat(s->parent_fd, s->name, AT_REMOVEDIR);
	own_close_fd(&s->dir_fd);
	own_close_fd(&s->parent_fd);
	free(s);
}
