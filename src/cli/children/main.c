/*
 * ward-children: starts the children of a sandbox (process.children).
 *
 * In: a socket of the supervisor's, the socket that programs inside connect to, the parent's policy
 * (protocol/children.h). Out: each child as a `ward run` of its own, beside the parent and with
 * nothing of it but a policy that is narrower (narrow.c); its end and its exit code to the
 * program that asked; what was started and refused to the supervisor, for the journal. Started by
 * the supervisor with the user's rights, which ward run needs.
 *
 *   - A request is one message, copied once, read by pure functions (command_read(),
 *     child_request_read()). Nothing is read from the program that asked.
 *   - Of the descriptors that come along 0-2 may be pipes, regular files and /dev/null; ward run
 *     moves the bytes through pipes of its own, so a child never holds one of its parent's.
 *   - A child ends with the program that asked for it, and with the supervisor, by the end of its
 *     socket, and this process, by PR_SET_PDEATHSIG. A child that does not end in time is killed,
 *     and its guardian finishes it.
 *   - Messages are received, and everything that came from inside is closed, by threads
 *     (host/foreign_fds.h): both may take as long as programs inside want.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "approve/command_read.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/children/channel.h"
#include "cli/children/parts.h"
#include "confine/confine.h"
#include "host/foreign_fds.h"
#include "plan/plan_root.h"
#include "protocol/children.h"

#define LINKS_MAX 512
#define OF_PARENT_MAX 256 /* connections of the parent at one time; of each child: */
#define OF_CHILD_MAX 16
#define POLICY_MAX (1024 * 1024)
#define REFUSED_CODE 125
#define TIMEOUT_CODE 124
#define CHILDREN_MAX 64
#define KILL_MS 10000    /* between the request to end and the end by force */
#define REPORTED_MAX 100 /* refusals; the others are counted */

enum state { LINK_NEW, LINK_RUNS, LINK_WAITS, LINK_DROPPED };

/* One process inside that asks. */
struct link {
	enum state state;
	int fd; /* -1: it is gone, and its child is being ended */
	uint64_t serial;
	unsigned number;
	struct child child;
	uint64_t kill_at_ms;
	char shown[CHILDREN_TEXT];
	char who[CHANNEL_NAME_TEXT];  /* the sandbox that it is in: by the socket */
	char name[CHANNEL_NAME_TEXT]; /* LINK_RUNS: the child's; LINK_WAITS: the channel */
	uint64_t wait_until_ms;       /* LINK_WAITS; 0: for ever */
};

struct children {
	struct parent parent;
	struct ledger ledger;
	struct call_place own; /* an empty directory, with no configuration */
	struct foreign_fds *foreign;
	struct channels *channels; /* NULL: none */
	uint64_t receiving, serial;
	struct link *links[LINKS_MAX]; /* owned */
	size_t count;
	int signal_fd;
	bool ending, held;
	unsigned reported, unsent, lost, numbers;
};

/* -- to the supervisor */

static void report(struct children *c, enum children_op op, const struct link *l, const char *why,
		   const char *run, int code)
{
	struct children_event said = { .op = op, .number = l->number, .code = code };

	if (op == CHILDREN_REFUSED && ++c->reported > REPORTED_MAX) {
		c->lost++;
		return;
	}
	said.lost = c->lost;
	c->lost = 0;
	snprintf(said.from, sizeof(said.from), "%s", l->who);
	snprintf(said.object, sizeof(said.object), "%s", l->shown);
	snprintf(said.why, sizeof(said.why), "%s", why ? why : "");
	snprintf(said.run, sizeof(said.run), "%s", run ? run : "");
	(void)!send(CHILDREN_FD_CONTROL, &said, sizeof(said), MSG_NOSIGNAL);
}

/* A message that was sent, or why it was not. */
static void report_message(struct children *c, const struct link *l, const struct child_request *q,
			   const char *to, const char *why)
{
	struct children_event said = { .op = why ? CHILDREN_NOT_SENT : CHILDREN_SENT,
				       .code = (int32_t)strlen(q->text) };

	auto_buf shown = { 0 }, reason = { 0 };

	if (why && ++c->unsent > REPORTED_MAX) {
		c->lost++;
		return;
	}
	said.lost = c->lost;
	c->lost = 0;
	text_escape(&shown, q->name);
	text_escape(&reason, why ? why : "");
	snprintf(said.object, sizeof(said.object), "%s", buf_text(&shown));
	snprintf(said.from, sizeof(said.from), "%s", l->who);
	snprintf(said.to, sizeof(said.to), "%s", to);
	snprintf(said.why, sizeof(said.why), "%s", buf_text(&reason));
	sha256_hex(q->text, strlen(q->text), said.digest);
	(void)!send(CHILDREN_FD_CONTROL, &said, sizeof(said), MSG_NOSIGNAL);
}

/* -- to the program that asked */

static void say(const struct link *l, enum command_op op, int32_t value, const char *text)
{
	struct command_message m = { .magic = COMMAND_MAGIC, .op = op, .a = value };
	auto_buf out = { 0 };

	buf_add(&out, &m, sizeof(m));
	if (text)
		buf_puts(&out, text);
	if (!out.failed && l->fd >= 0)
		(void)!send(l->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void drop(struct children *c, struct link *l)
{
	size_t at = 0;

	l->state = LINK_DROPPED;
	if (c->receiving == l->serial)
		return; /* on_received() does the rest */
	while (at < c->count && c->links[at] != l)
		at++;
	if (at < c->count)
		c->links[at] = c->links[--c->count];
	foreign_fds_close(c->foreign, &l->fd);
	free(l);
}

static void say_refused(const struct link *l, const struct ward_err *e, int code)
{
	auto_buf text = { 0 };

	buf_printf(&text, "ward: %s%s%.600s\n", e->what, *e->what ? ": " : "", e->why);
	if (*e->remedy)
		buf_printf(&text, "ward: remedy: %.300s\n", e->remedy);
	say(l, COMMAND_REFUSED, code, text.failed ? NULL : buf_text(&text));
}

static void refuse(struct children *c, struct link *l, const struct ward_err *e)
{
	report(c, CHILDREN_REFUSED, l, e->why, NULL, REFUSED_CODE);
	say_refused(l, e, REFUSED_CODE);
	drop(c, l);
}

/* -- a request */

/* ward run takes sockets and terminals, too; none of a sandbox's. */
static int check_fd(int fd, int at, struct ward_err *e)
{
	static const char *const names[] = { "input", "output", "error" };
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags >= 0 && !(flags & O_PATH) && fstat(fd, &st) == 0 &&
	    (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) ||
	     (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))))
		return 0;
	ward_fail(e, EINVAL, "standard %s of a child: not a pipe, a file or /dev/null", names[at]);
	return ward_remedy(e, "put a pipe in between: ward run ... | cat");
}

static bool is_taken(const struct children *c, const char *name)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->links[i]->state == LINK_RUNS && strcmp(c->links[i]->name, name) == 0)
			return true;
	return false;
}

static int start(struct children *c, struct link *l, const struct child_request *q, int32_t *fds,
		 struct ward_err *e)
{
	struct policy policy = { 0 };
	int r = c->ending ? ward_fail(e, ESRCH, "the sandbox is ending")
		: c->held ? ward_fail(e, EBUSY, "the sandbox is paused")
			  : 0;

	if (r == 0 && strcmp(l->who, CHANNEL_PARENT) != 0)
		r = ward_fail(e, EACCES, "that is the socket for messages");
	if (r == 0 && q->name && is_taken(c, q->name))
		r = ward_fail(e, EEXIST, "a child of the name %s runs already", q->name);
	if (r == 0 && q->name)
		snprintf(l->name, sizeof(l->name), "%s", q->name);

	for (int i = 0; r == 0 && i < 3; i++)
		r = check_fd(fds[i], i, e);
	if (r == 0)
		r = child_narrow(&c->parent, q, &policy, e);
	if (r == 0) {
		r = ledger_add(&c->ledger, &c->parent, &policy, &l->child, e);
		if (r == 0 && child_start(q, &policy, (int[]){ fds[0], fds[1], fds[2] },
					  q->name && c->channels, &l->child, e) < 0) {
			r = -e->code;
			l->child.writes = false; /* nothing has started */
			ledger_remove(&c->ledger, &l->child);
			own_close_fd(&l->child.channel_fd);
			l->child.channel_fd = -1;
			call_place_close(&l->child.place);
		}
	}
	policy_clear(&policy);
	return r;
}

static void show(struct link *l, const struct command_said *said)
{
	auto_buf text = { 0 }, plain = { 0 };

	command_text(said, &text);
	text_escape(&plain, text.failed ? "?" : buf_text(&text));
	snprintf(l->shown, sizeof(l->shown), "%s", plain.failed ? "?" : buf_text(&plain));
}

/* What waits gets the message, in the order of asking. */
static void serve_waiting(struct children *c, const char *channel, const char *who)
{
	for (size_t i = 0; i < c->count; i++) {
		struct link *l = c->links[i];
		auto_free char *text = NULL;
		struct ward_err ignored = { 0 };

		if (l->state != LINK_WAITS || l->fd < 0 || strcmp(l->name, channel) != 0 ||
		    strcmp(l->who, who) != 0)
			continue;
		if (channels_receive(c->channels, channel, who, &text, &ignored) == 0) {
			say(l, COMMAND_MESSAGE, 0, text);
			drop(c, l);
		}
		return;
	}
}

static void on_send(struct children *c, struct link *l, const struct child_request *q)
{
	const struct channel_message m = { q->name, l->who, q->to, q->text };
	char to[CHANNEL_NAME_TEXT] = "";
	struct ward_err e = { 0 };

	if (channels_send(c->channels, &m, io_now_ms(), to, &e) < 0) {
		report_message(c, l, q, to, e.why);
		say_refused(l, &e, REFUSED_CODE);
		drop(c, l);
		return;
	}
	report_message(c, l, q, to, NULL);
	say(l, COMMAND_ENDED, 0, NULL);
	drop(c, l);
	serve_waiting(c, m.channel, to);
}

static void on_receive(struct children *c, struct link *l, const struct child_request *q)
{
	auto_free char *text = NULL;
	struct ward_err e = { 0 };
	int r = channels_receive(c->channels, q->name, l->who, &text, &e);

	if (r > 0) {
		l->state = LINK_WAITS;
		snprintf(l->name, sizeof(l->name), "%s", q->name);
		l->wait_until_ms = q->wait_s ? io_now_ms() + q->wait_s * 1000ULL : 0;
		return;
	}
	if (r < 0)
		say_refused(l, &e, REFUSED_CODE);
	else
		say(l, COMMAND_MESSAGE, 0, text);
	drop(c, l);
}

static void on_request(struct children *c, struct link *l, struct foreign_message *m)
{
	struct command_said said;
	struct child_request q;
	struct ward_err e = { 0 };
	int r;

	if (m->len <= 0 || m->fd_count != COMMAND_FDS ||
	    !command_read(m->bytes, (size_t)m->len, &said)) {
		drop(c, l);
		return;
	}
	l->number = ++c->numbers;
	show(l, &said);
	r = strcmp(said.program, PLAN_CHILDREN_CLIENT) == 0
		    ? child_request_read(&said, &q, &e)
		    : ward_fail(&e, EINVAL, "not a request of ward's client");
	if (r == 0 && q.verb == CHILD_SEND) {
		on_send(c, l, &q);
		return;
	}
	if (r == 0 && q.verb == CHILD_RECEIVE) {
		on_receive(c, l, &q);
		return;
	}
	if (r == 0)
		r = start(c, l, &q, m->fds, &e);
	if (r < 0) {
		refuse(c, l, &e);
		return;
	}
	l->state = LINK_RUNS;
	report(c, CHILDREN_STARTED, l, NULL, NULL, 0);
	say(l, COMMAND_STARTED, 0, NULL);
}

/* -- while it runs */

static void end_child(struct link *l)
{
	if (l->state != LINK_RUNS || l->kill_at_ms)
		return;
	child_end(&l->child);
	l->kill_at_ms = io_now_ms() + KILL_MS;
}

static void on_gone(struct children *c, struct link *l)
{
	if (l->state != LINK_RUNS) {
		drop(c, l);
		return;
	}
	end_child(l);
	foreign_fds_close(c->foreign, &l->fd);
	l->fd = -1;
}

static void pass_signal(struct link *l, int signal)
{
	if (signal == SIGKILL)
		end_child(l);
	else if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
		 signal == SIGUSR1 || signal == SIGUSR2)
		kill(l->child.pid, signal);
}

static struct link *find_link(struct children *c, uint64_t serial)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->links[i]->serial == serial)
			return c->links[i];
	return NULL;
}

static void on_message(struct children *c, struct link *l, struct foreign_message *got)
{
	struct command_message m = { 0 };

	if (l->state == LINK_DROPPED) {
		drop(c, l);
	} else if (got->len == -EAGAIN || got->len == -EINTR) {
		return;
	} else if (l->state == LINK_NEW) {
		on_request(c, l, got);
	} else if (got->len <= 0) {
		on_gone(c, l);
	} else if (got->len == (ssize_t)sizeof(m)) {
		memcpy(&m, got->bytes, sizeof(m));
		if (m.magic == COMMAND_MAGIC && m.op == COMMAND_SIGNAL)
			pass_signal(l, m.a);
	}
}

static void on_received(struct children *c, struct foreign_message *got)
{
	struct link *l = got->fd < 0 ? NULL : find_link(c, got->serial);

	if (got->fd >= 0)
		c->receiving = 0;
	if (l)
		on_message(c, l, got);
	for (size_t i = 0; i < got->fd_count; i++)
		foreign_fds_close(c->foreign, &got->fds[i]);
	foreign_message_free(c->foreign, got);
}

static bool has_room(const struct children *c, const char *who)
{
	size_t most = strcmp(who, CHANNEL_PARENT) == 0 ? OF_PARENT_MAX : OF_CHILD_MAX, own = 0;

	for (size_t i = 0; i < c->count; i++)
		own += strcmp(c->links[i]->who, who) == 0;
	return c->count < LINKS_MAX && own < most;
}

/* One too many is closed. */
static void take_link(struct children *c, int listen_fd, const char *who)
{
	auto_fd fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct link *l = fd < 0 || !has_room(c, who) ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		foreign_fds_close(c->foreign, &fd);
		return;
	}
	l->serial = ++c->serial;
	l->fd = take_fd(&fd);
	l->child.place.lock_fd = l->child.channel_fd = -1;
	snprintf(l->who, sizeof(l->who), "%s", who);
	c->links[c->count++] = l;
}

/* What has ended: its exit code to the program that asked, its record to the supervisor. */
static void on_ended(struct children *c, struct link *l, int status)
{
	struct call_result result = { 0 };
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	child_finish(&l->child, &result);
	l->child.writes &= !result.refused || WIFSIGNALED(status);
	ledger_remove(&c->ledger, &l->child);
	report(c, CHILDREN_ENDED, l, NULL, result.run_id, code);
	say(l, COMMAND_ENDED, status, NULL);
	call_result_free(&result);
	if (*l->name)
		channels_forget(c->channels, l->name);
	drop(c, l);
}

static void reap(struct children *c)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(c->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < c->count; i++)
			if (c->links[i]->state == LINK_RUNS && c->links[i]->child.pid == pid) {
				on_ended(c, c->links[i], status);
				break;
			}
}

/* ward run stops with all of its sandbox, as a job does. */
static void hold_all(struct children *c, bool hold)
{
	c->held = hold;
	for (size_t i = 0; i < c->count; i++)
		if (c->links[i]->state == LINK_RUNS)
			kill(c->links[i]->child.pid, hold ? SIGTSTP : SIGCONT);
}

/* The supervisor is gone, or wants the end. */
static void end_all(struct children *c)
{
	c->ending = true;
	for (size_t i = 0; i < c->count; i++)
		end_child(c->links[i]);
}

static void on_control(struct children *c)
{
	uint32_t order;
	ssize_t n = recv(CHILDREN_FD_CONTROL, &order, sizeof(order), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(order))
		hold_all(c, order == CHILDREN_HOLD);
	else
		end_all(c);
}

/* -- the loop */

/* One whose time is over; whether there was one. */
static bool end_waiting(struct children *c, uint64_t now)
{
	for (size_t i = 0; i < c->count; i++) {
		struct link *l = c->links[i];
		struct ward_err e = { 0 };

		if (l->state != LINK_WAITS || !l->wait_until_ms || l->wait_until_ms > now)
			continue;
		ward_fail(&e, ETIMEDOUT, "no message on %s", l->name);
		say_refused(l, &e, TIMEOUT_CODE);
		drop(c, l);
		return true;
	}
	return false;
}

static int look_at_times(struct children *c)
{
	uint64_t now = io_now_ms(), first = UINT64_MAX;

	while (end_waiting(c, now))
		;
	for (size_t i = 0; i < c->count; i++) {
		struct link *l = c->links[i];
		uint64_t due = l->state == LINK_RUNS ? l->kill_at_ms : l->wait_until_ms;

		if (l->state == LINK_RUNS && due && due <= now) {
			kill(l->child.pid, SIGKILL);
			due = l->kill_at_ms = now + KILL_MS;
		}
		if (due && due < first)
			first = due;
	}
	return first == UINT64_MAX ? -1 : first <= now ? 10 : (int)(first - now);
}

enum { POLL_CONTROL, POLL_SIGNAL, POLL_FOREIGN, POLL_LISTEN, POLL_LINKS };

static void receive_one(struct children *c, const struct pollfd *polled, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct link *l = c->links[i];

		if (!polled[i].revents)
			continue;
		c->receiving = l->serial;
		foreign_fds_receive(c->foreign, l->fd, l->serial);
		return;
	}
}

/* The sockets of children. */
static size_t poll_children(const struct children *c, struct pollfd *polled)
{
	size_t count = 0;

	for (size_t i = 0; i < c->count && count < CHILDREN_MAX; i++)
		if (c->links[i]->state == LINK_RUNS && c->links[i]->child.channel_fd >= 0)
			polled[count++] =
				(struct pollfd){ c->links[i]->child.channel_fd, POLLIN, 0 };
	return count;
}

static void take_links(struct children *c, const struct pollfd *polled, size_t count)
{
	for (size_t k = 0; k < count; k++)
		for (size_t i = 0; polled[k].revents && i < c->count; i++)
			if (c->links[i]->child.channel_fd == polled[k].fd) {
				take_link(c, polled[k].fd, c->links[i]->name);
				break;
			}
}

/* One message at a time, and none while too much of what came before is not closed. */
static void loop_once(struct children *c)
{
	struct pollfd polled[POLL_LINKS + CHILDREN_MAX + LINKS_MAX];
	int wait_ms = look_at_times(c); /* first: it may drop links */
	bool busy = c->receiving || foreign_fds_is_full(c->foreign);
	struct foreign_message got;
	size_t own = busy || c->ending ? 0 : poll_children(c, polled + POLL_LINKS);
	size_t links = busy ? 0 : c->count, at = POLL_LINKS + own;

	polled[POLL_CONTROL] = (struct pollfd){ c->ending ? -1 : CHILDREN_FD_CONTROL, POLLIN, 0 };
	polled[POLL_SIGNAL] = (struct pollfd){ c->signal_fd, POLLIN, 0 };
	polled[POLL_FOREIGN] = (struct pollfd){ foreign_fds_fd(c->foreign), POLLIN, 0 };
	polled[POLL_LISTEN] =
		(struct pollfd){ busy || c->ending ? -1 : CHILDREN_FD_LISTEN, POLLIN, 0 };
	for (size_t i = 0; i < links; i++)
		polled[at + i] = (struct pollfd){ c->links[i]->fd, POLLIN, 0 };
	if (poll(polled, at + links, wait_ms) < 0)
		return;
	if (polled[POLL_CONTROL].revents)
		on_control(c);
	if (!busy)
		receive_one(c, polled + at, links);
	while (foreign_fds_next(c->foreign, &got))
		on_received(c, &got);
	take_links(c, polled + POLL_LINKS, own);
	if (polled[POLL_LISTEN].revents)
		take_link(c, CHILDREN_FD_LISTEN, CHANNEL_PARENT);
	if (polled[POLL_SIGNAL].revents)
		reap(c);
}

static bool is_over(const struct children *c)
{
	return c->ending && c->ledger.running == 0;
}

/* -- the start */

/* Before anything runs inside: what leads through a link now, or could be moved later, no child
 * gets. */
static int judge_mounts(struct parent *p, struct ward_err *e)
{
	for (size_t i = 0; i < p->policy.fs_host_mounts.len; i++) {
		const struct policy_mount *m = &p->policy.fs_host_mounts.items[i];
		auto_free char *real = realpath(m->path, NULL);
		const char *why =
			real ? child_mount_unsafe(&p->policy, m, real) : "it does not exist";

		strv_add(&p->unsafe, why ? why : "");
	}
	return p->unsafe.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int read_policy(struct children *c, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	struct sysinfo info;
	auto_buf text = { 0 };
	int r = io_read_all(CHILDREN_FD_POLICY, POLICY_MAX, &text);

	if (r < 0)
		return ward_fail(e, -r, "cannot read the policy");
	r = policy_defaults(&c->parent.policy, e);
	if (r == 0)
		r = policy_read(&c->parent.policy, "the parent's policy",
				(const uint8_t *)buf_text(&text), text.len, POLICY_FILE, &errors);
	if (r < 0)
		return ward_fail(e, EINVAL, "%s",
				 errors.lines.len ? errors.lines.items[0] : "not a policy");
	if (sysinfo(&info) == 0)
		c->parent.memory_bytes = (uint64_t)info.totalram * info.mem_unit;
	r = channels_open(&c->parent.policy, &c->channels, e);
	return r < 0 ? r : judge_mounts(&c->parent, e);
}

/* Nothing that the user's shell chose is a choice of a sandbox's. */
static int prepare(struct children *c, const char *run, struct ward_err *e)
{
	sigset_t set;
	int r = call_place_open(&c->own, e);

	if (r < 0)
		return r;
	unsetenv("WARD_PROFILE");
	unsetenv("WARD_POLICY");
	unsetenv("WARD_ISOLATION");
	unsetenv("WARD_CHANNEL"); /* of this sandbox's own parent */
	unsetenv("WARD_TOOL");    /* its children are no calls */
	if (setenv("XDG_CONFIG_HOME", c->own.empty, 1) < 0 || setenv("WARD_PARENT", run, 1) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signal_fd < 0)
		return ward_fail_errno(e, "cannot receive signals");
	return foreign_fds_start(COMMAND_MAX + 1, &c->foreign, e);
}

/* Whether it can begin, to the supervisor, which waits for that. */
static int begin(struct children *c, int argc, char **argv)
{
	struct children_event said = { .op = CHILDREN_READY };
	struct ward_err e = { 0 };
	int r = argc == 2 ? confine_enter(PROC_CHILDREN, NULL, &e) : -EINVAL;

	if (r == 0)
		r = read_policy(c, &e);
	if (r == 0)
		r = prepare(c, argv[1], &e);
	if (r < 0)
		snprintf(said.why, sizeof(said.why), "%.390s", *e.why ? e.why : "it cannot begin");
	(void)!send(CHILDREN_FD_CONTROL, &said, sizeof(said), MSG_NOSIGNAL);
	return r;
}

int main(int argc, char **argv)
{
	static struct children c;

	for (int i = CHILDREN_FD_CONTROL; i <= CHILDREN_FD_POLICY; i++)
		if (fcntl(i, F_SETFD, FD_CLOEXEC) < 0)
			return REFUSED_CODE;
	signal(SIGPIPE, SIG_IGN);
	c.own.lock_fd = -1;
	if (begin(&c, argc, argv) < 0)
		return REFUSED_CODE;
	while (!is_over(&c))
		loop_once(&c);
	channels_free(c.channels);
	call_place_close(&c.own);
	return 0;
}
