/*
 * ward-children: starts the children of a sandbox (process.children).
 *
 * In: a socket of the supervisor's, the socket that programs inside connect to, the parent's policy
 * (protocol/children.h). Out: each child as a `ward run` of its own, beside the parent and with
 * nothing of it but a policy that is narrower (narrow.c); its end and its exit code to whoever
 * asked; what was started and refused to the supervisor, for the journal. Started by the supervisor
 * with the user's rights, which ward run needs.
 *
 *   - A request is one message, copied once, read by pure functions (command_read(),
 *     child_request_read()). Nothing is read from whoever asked.
 *   - Of the descriptors that come along 0-2 may be pipes, regular files and /dev/null; ward run
 *     moves the bytes through pipes of its own, so a child never holds one of its parent's.
 *   - Whoever asked and is gone takes its child along; so does the supervisor, by the end of its
 *     socket, and this process, by PR_SET_PDEATHSIG. A child that does not end in time is killed,
 *     and its guardian finishes it.
 *   - Messages are received, and everything that came from inside is closed, by threads
 *     (host/foreign_fds.h): both may take as long as whoever is inside wants.
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
#include "base/text.h"
#include "cli/children/parts.h"
#include "confine/confine.h"
#include "host/foreign_fds.h"
#include "plan/plan_root.h"
#include "protocol/children.h"

#define LINKS_MAX 256
#define POLICY_MAX (1024 * 1024)
#define REFUSED_CODE 125
#define KILL_MS 10000    /* between the request to end and the end by force */
#define REPORTED_MAX 100 /* refusals; the others are counted */

enum state { LINK_NEW, LINK_RUNS, LINK_DROPPED };

/* One process inside that asks. */
struct link {
	enum state state;
	int fd; /* -1: it is gone, and its child is being ended */
	uint64_t serial;
	unsigned number;
	struct child child;
	uint64_t kill_at_ms;
	char shown[CHILDREN_TEXT];
};

struct children {
	struct parent parent;
	struct ledger ledger;
	struct call_place own; /* an empty directory: nobody's configuration */
	struct foreign_fds *foreign;
	uint64_t receiving, serial;
	struct link *links[LINKS_MAX]; /* owned */
	size_t count;
	int signal_fd;
	bool ending;
	unsigned reported, lost, numbers;
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
	snprintf(said.object, sizeof(said.object), "%s", l->shown);
	snprintf(said.why, sizeof(said.why), "%s", why ? why : "");
	snprintf(said.run, sizeof(said.run), "%s", run ? run : "");
	(void)!send(CHILDREN_FD_CONTROL, &said, sizeof(said), MSG_NOSIGNAL);
}

/* -- to whoever asked */

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

static void refuse(struct children *c, struct link *l, const struct ward_err *e)
{
	auto_buf text = { 0 };

	buf_printf(&text, "ward: %s%s%.600s\n", e->what, *e->what ? ": " : "", e->why);
	if (*e->remedy)
		buf_printf(&text, "ward: remedy: %.300s\n", e->remedy);
	report(c, CHILDREN_REFUSED, l, e->why, NULL, REFUSED_CODE);
	say(l, COMMAND_REFUSED, REFUSED_CODE, text.failed ? NULL : buf_text(&text));
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

static int start(struct children *c, struct link *l, const struct child_request *q, int32_t *fds,
		 struct ward_err *e)
{
	struct policy policy = { 0 };
	int r = c->ending ? ward_fail(e, ESRCH, "the sandbox is ending") : 0;

	for (int i = 0; r == 0 && i < 3; i++)
		r = check_fd(fds[i], i, e);
	if (r == 0)
		r = child_narrow(&c->parent, q, &policy, e);
	if (r == 0) {
		r = ledger_add(&c->ledger, &c->parent, &policy, &l->child, e);
		if (r == 0 &&
		    child_start(q, &policy, (int[]){ fds[0], fds[1], fds[2] }, &l->child, e) < 0) {
			r = -e->code;
			l->child.writes = false; /* nothing has started */
			ledger_remove(&c->ledger, &l->child);
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

static void take_link(struct children *c)
{
	auto_fd fd = accept4(CHILDREN_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct link *l = fd < 0 ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		foreign_fds_close(c->foreign, &fd);
		return;
	}
	l->serial = ++c->serial;
	l->fd = take_fd(&fd);
	l->child.place.lock_fd = -1;
	c->links[c->count++] = l;
}

/* What has ended: its exit code to whoever asked, its record to the supervisor. */
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

/* The supervisor is gone, or wants the end. */
static void end_all(struct children *c)
{
	c->ending = true;
	for (size_t i = 0; i < c->count; i++)
		end_child(c->links[i]);
}

/* -- the loop */

static int look_at_times(const struct children *c)
{
	uint64_t now = io_now_ms(), first = UINT64_MAX;

	for (size_t i = 0; i < c->count; i++) {
		struct link *l = c->links[i];

		if (l->state != LINK_RUNS || !l->kill_at_ms)
			continue;
		if (l->kill_at_ms <= now) {
			kill(l->child.pid, SIGKILL);
			l->kill_at_ms = now + KILL_MS;
		}
		if (l->kill_at_ms < first)
			first = l->kill_at_ms;
	}
	return first == UINT64_MAX ? -1 : (int)(first - now);
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

/* One message at a time, and none while too much of what came before is not closed. */
static void loop_once(struct children *c)
{
	struct pollfd polled[POLL_LINKS + LINKS_MAX];
	bool busy = c->receiving || foreign_fds_is_full(c->foreign);
	struct foreign_message got;
	size_t links = busy ? 0 : c->count;

	polled[POLL_CONTROL] = (struct pollfd){ c->ending ? -1 : CHILDREN_FD_CONTROL, POLLIN, 0 };
	polled[POLL_SIGNAL] = (struct pollfd){ c->signal_fd, POLLIN, 0 };
	polled[POLL_FOREIGN] = (struct pollfd){ foreign_fds_fd(c->foreign), POLLIN, 0 };
	polled[POLL_LISTEN] = (struct pollfd){
		busy || c->ending || c->count == LINKS_MAX ? -1 : CHILDREN_FD_LISTEN, POLLIN, 0
	};
	for (size_t i = 0; i < links; i++)
		polled[POLL_LINKS + i] = (struct pollfd){ c->links[i]->fd, POLLIN, 0 };
	if (poll(polled, POLL_LINKS + links, look_at_times(c)) < 0)
		return;
	if (polled[POLL_CONTROL].revents)
		end_all(c);
	if (!busy)
		receive_one(c, polled + POLL_LINKS, links);
	while (foreign_fds_next(c->foreign, &got))
		on_received(c, &got);
	if (polled[POLL_LISTEN].revents && c->count < LINKS_MAX)
		take_link(c);
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
	return judge_mounts(&c->parent, e);
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

int main(int argc, char **argv)
{
	static struct children c;
	struct ward_err e = { 0 };

	for (int i = CHILDREN_FD_CONTROL; i <= CHILDREN_FD_POLICY; i++)
		if (fcntl(i, F_SETFD, FD_CLOEXEC) < 0)
			return REFUSED_CODE;
	signal(SIGPIPE, SIG_IGN);
	c.own.lock_fd = -1;
	if (argc != 2 || confine_enter(PROC_CHILDREN, NULL, &e) < 0 || read_policy(&c, &e) < 0 ||
	    prepare(&c, argv[1], &e) < 0)
		return REFUSED_CODE;
	while (!is_over(&c))
		loop_once(&c);
	call_place_close(&c.own);
	return 0;
}
