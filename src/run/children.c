/*
 * Sandboxes that a sandbox starts. In: a plan with process.children. Out: ward-children, which
 * answers programs inside and starts each child as a `ward run` of its own; its reports as events.
 * No byte of the sandbox's is read here. When this process ends, also by kill -9, ward-children
 * sees the end of its socket and ends every child. Runs in `ward` with the user's rights.
 */
#include "run/children.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "event/event.h"
#include "event/result.h"
#include "host/program.h"
#include "plan/plan_root.h"
#include "protocol/children.h"
#include "run/inside_socket.h"

#define FIELD "process.children"
#define STOP_MS 30000 /* ward-children itself kills what has not ended before */
#define START_MS 30000
#define EVENTS_AT_ONCE 64

struct children {
	struct inside_socket socket;
	int fd; /* to ward-children */
	pid_t pid;
};

/* What the parent may, with nothing left to the user's own defaults. */
static int write_policy(const struct plan *p, struct ward_err *e)
{
	struct policy policy = { 0 };
	auto_buf text = { 0 };
	auto_fd fd = -1;
	int r = policy_copy(&policy, &p->spec->policy, e);

	free(policy.fs_workspace);
	policy.fs_workspace = strdup(p->workspace);
	if (r == 0 && policy.fs_workspace)
		policy_document(&policy, NULL, &text);
	if (r == 0 && (text.failed || !text.len))
		r = ward_fail(e, ENOMEM, "out of memory");
	policy_clear(&policy);
	if (r < 0)
		return r;
	fd = memfd_create("ward-policy", MFD_CLOEXEC);
	if (fd < 0 || io_write_all(fd, buf_text(&text), text.len) < 0 ||
	    lseek(fd, 0, SEEK_SET) != 0)
		return ward_fail_errno(e, FIELD ": cannot hand over the policy");
	return take_fd(&fd);
}

static int start_program(struct children *c, const struct plan *p, struct ward_err *e)
{
	static char name[] = CHILDREN_PROGRAM;
	char id[sizeof(p->spec->run_id)];
	char *const argv[] = { name, id, NULL };
	struct program program = { .argv = argv, .envp = environ, .fd_count = 3 };
	auto_fd policy = write_policy(p, e), file = policy < 0 ? -1 : program_open(name, e);
	int pair[2], r;

	if (policy < 0 || file < 0)
		return policy < 0 ? policy : file;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, FIELD ": cannot make a socket");
	memcpy(id, p->spec->run_id, sizeof(id));
	c->fd = pair[0];
	program.fd = file;
	program.fds[0] = pair[1];
	program.fds[1] = c->socket.listen_fd;
	program.fds[2] = policy;
	r = program_start(&program, &c->pid, e);
	close(pair[1]);
	return r;
}

static void end_texts(struct children_event *said)
{
	said->run[sizeof(said->run) - 1] = said->object[sizeof(said->object) - 1] =
		said->why[sizeof(said->why) - 1] = said->from[sizeof(said->from) - 1] =
			said->to[sizeof(said->to) - 1] = said->digest[sizeof(said->digest) - 1] =
				'\0';
}

/* What it cannot hold refuses the run. */
static int await_ready(const struct children *c, struct ward_err *e)
{
	struct pollfd ready = { .fd = c->fd, .events = POLLIN };
	struct children_event said;

	if (poll(&ready, 1, START_MS) <= 0 ||
	    recv(c->fd, &said, sizeof(said), 0) != (ssize_t)sizeof(said) ||
	    said.op != CHILDREN_READY)
		return ward_fail(e, EIO, FIELD ": " CHILDREN_PROGRAM " could not begin");
	end_texts(&said);
	return *said.why ? ward_fail(e, EINVAL, "%s", said.why) : 0;
}

int children_start(struct plan *p, struct ward_err *e)
{
	struct children *c;
	int r;

	if (!p->spec->starts || !p->spec->policy.proc_children)
		return 0;
	c = p->live->children = calloc(1, sizeof(*c));
	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->socket = (struct inside_socket)NO_INSIDE_SOCKET;
	c->fd = -1;
	r = inside_socket_make(p, "children", PLAN_CHILDREN_SOCKET, FIELD, &c->socket, e);
	if (r == 0)
		r = start_program(c, p, e);
	own_close_fd(&c->socket.listen_fd);
	c->socket.listen_fd = -1;
	return r < 0 ? r : await_ready(c, e);
}

void children_mounted(const struct plan *p)
{
	if (p->live->children)
		inside_socket_mounted(&p->live->children->socket);
}

int children_fd(const struct plan *p)
{
	return p->live->children ? p->live->children->fd : -1;
}

static void emit_lost(uint32_t lost, struct result *r)
{
	struct ward_event v = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, FIELD);

	event_text(&v, FIELD_WHY, "more requests were refused than are reported");
	event_number(&v, FIELD_LOST, lost);
	event_emit(r->events, &v);
}

/* A message on a channel: what it was, and not what was in it. */
static void on_message(const struct children_event *said, struct result *r)
{
	bool refused = said->op == CHILDREN_NOT_SENT;
	struct ward_event v =
		event_make(EVENT_CHANNEL, refused ? ACTION_DENY : ACTION_ALLOW, said->object);
	auto_buf what = { 0 };

	event_text(&v, FIELD_RULE, "channels");
	event_text(&v, FIELD_FROM, said->from);
	if (*said->to)
		event_text(&v, FIELD_TO, said->to);
	if (*said->why)
		event_text(&v, FIELD_WHY, said->why);
	event_number(&v, FIELD_BYTES, (uint64_t)said->code);
	if (*said->digest)
		event_text(&v, FIELD_DIGEST, said->digest);
	event_emit(r->events, &v);
	if (!refused)
		return;
	buf_printf(&what, "%s sends on %s", said->from, said->object);
	if (!what.failed)
		result_deny(r, buf_text(&what), said->why, "channels");
}

static void on_event(const struct children_event *said, struct result *r)
{
	bool refused = said->op == CHILDREN_REFUSED;
	struct ward_event v =
		event_make(said->op == CHILDREN_ENDED ? EVENT_CHILD_END : EVENT_CHILD_START,
			   refused ? ACTION_DENY : ACTION_ALLOW, said->object);
	auto_buf what = { 0 };

	if (said->lost)
		emit_lost(said->lost, r);
	if (said->op == CHILDREN_SENT || said->op == CHILDREN_NOT_SENT) {
		on_message(said, r);
		return;
	}
	event_text(&v, FIELD_RULE, FIELD);
	if (*said->why)
		event_text(&v, FIELD_WHY, said->why);
	if (*said->run)
		event_text(&v, FIELD_CHILD, said->run);
	if (said->op == CHILDREN_ENDED)
		event_number(&v, FIELD_EXIT, (uint64_t)said->code);
	event_emit(r->events, &v);
	if (!refused)
		return;
	buf_printf(&what, "start a sandbox inside: %s", said->object);
	if (!what.failed)
		result_deny(r, buf_text(&what), said->why, FIELD);
}

void children_handle(struct plan_live *live, struct result *r)
{
	struct children *c = live->children;
	struct children_event said;

	for (unsigned i = 0; c && c->fd >= 0 && i < EVENTS_AT_ONCE; i++) {
		ssize_t n = recv(c->fd, &said, sizeof(said), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n != (ssize_t)sizeof(said)) { /* it was killed: so are its children */
			own_close_fd(&c->fd);
			c->fd = -1;
			strv_add(&r->notes, FIELD ": " CHILDREN_PROGRAM " has ended, and with it "
						  "every child");
			return;
		}
		end_texts(&said);
		on_event(&said, r);
	}
}

void children_hold(const struct plan_live *live, bool hold)
{
	uint32_t order = hold ? CHILDREN_HOLD : CHILDREN_RELEASE;

	if (live->children && live->children->fd >= 0)
		(void)!send(live->children->fd, &order, sizeof(order), MSG_NOSIGNAL);
}

static void reap(struct children *c)
{
	while (c->pid > 0 && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
}

void children_stop(struct plan_live *live, struct result *r)
{
	struct children *c = live->children;
	uint64_t until = io_now_ms() + STOP_MS;

	if (!c || c->fd < 0)
		return;
	(void)!shutdown(c->fd, SHUT_WR);
	while (c->fd >= 0) {
		struct pollfd ready = { .fd = c->fd, .events = POLLIN };
		uint64_t now = io_now_ms();
		struct children_event said;
		ssize_t n;

		if (now >= until && c->pid > 0)
			kill(c->pid, SIGKILL); /* its children die with it */
		if (poll(&ready, 1, now < until ? (int)(until - now) : 1000) <= 0)
			continue;
		n = recv(c->fd, &said, sizeof(said), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(said)) {
			end_texts(&said);
			on_event(&said, r);
		} else if (n >= 0 || errno != EINTR) {
			own_close_fd(&c->fd);
			c->fd = -1;
		}
	}
	reap(c);
}

void children_end(struct plan *p)
{
	struct children *c = p->live->children;

	if (!c)
		return;
	own_close_fd(&c->fd);
	reap(c);
	inside_socket_end(&c->socket);
	free(c);
	p->live->children = NULL;
}
