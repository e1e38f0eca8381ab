/*
 * Calls. In: a tool and its arguments. Out: one answer each, progress, or nothing where the client
 * cancelled. A call is a process of its own, in a process group of its own, that makes the call
 * (call.c) and writes the members of the result to a socket; this process reads them and forwards
 * them. So calls run at the same time, one that hangs holds up no other, and a call is ended by
 * ending processes: SIGTERM for its sandbox, and SIGKILL for the whole group soon after. What waits
 * and what runs is bounded; what is beyond is refused at once.
 */
#include "cli/mcp/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "mcp/say.h"

#define GRACE_MS 1000    /* between SIGTERM and SIGKILL */
#define PROGRESS_MS 1000 /* between notifications */
#define BUSY_MS 20       /* until a wrapped server is asked for again */
#define ANSWER_MAX (512u << 20)

/* -- the list */

static struct request as_request(const struct work *w, struct mcp_message *m)
{
	*m = (struct mcp_message){ .kind = MCP_REQUEST };
	memcpy(m->id, w->id, sizeof(m->id));
	return (struct request){
		.peer = w->peer, .stream = w->stream, .message = m, .modern = w->modern
	};
}

static void fail(const struct work *w, int code, const char *why)
{
	struct mcp_message m;
	struct request r = as_request(w, &m);

	if (!w->cancelled)
		reply_error(&r, code, why, NULL);
}

static void remove_work(struct server *s, struct work *w)
{
	struct work **at = &s->works;

	while (*at != w)
		at = &(*at)->next;
	ask_withdraw(s, w);
	if (w->cancelled && !w->answered)
		w->peer->send(w->peer, w->stream, SENT_NOTHING, 0, NULL);
	catalog_drop(w->catalog);
	*at = w->next;
	s->work_count--;
	own_close_fd(&w->fd);
	buf_free(&w->answer);
	free(w->arguments);
	free(w);
}

void work_begin(const struct request *r, const struct offer *offer, struct mcp_span arguments)
{
	struct server *s = r->peer->server;
	struct work *w, **at = &s->works;
	struct mcp_span token;

	if (s->work_count >= WORKS_MAX) {
		reply_error(r, MCP_INTERNAL, "too many calls at one time", NULL);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w)
		w->arguments = arguments.n ? strndup((const char *)arguments.at, arguments.n)
					   : strdup("{}");
	if (!w || !w->arguments) {
		free(w);
		reply_error(r, MCP_INTERNAL, "out of memory", NULL);
		return;
	}
	w->peer = r->peer;
	w->stream = r->stream;
	w->modern = r->modern;
	w->offer = offer;
	w->catalog = catalog_use(s->catalog);
	w->elicits = dispatch_elicits(r);
	w->fd = w->relay_fd = -1;
	ask_read_retry(r, w);
	memcpy(w->id, r->message->id, sizeof(w->id));
	if (!mcp_get(r->meta, "progressToken", &token) || !mcp_id(token, w->token))
		*w->token = '\0';
	while (*at)
		at = &(*at)->next;
	*at = w;
	s->work_count++;
}

static struct work *find(const struct peer *p, const char *id)
{
	for (struct work *w = p->server->works; w; w = w->next)
		if (w->peer == p && !w->cancelled && strcmp(w->id, id) == 0)
			return w;
	return NULL;
}

bool work_has(const struct peer *p, const char *id)
{
	return find(p, id);
}

/* -- processes */

/* What the worker has of ours: standard error, and the pipe. */
static _Noreturn void run(struct server *s, const struct work *w, int fd, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_buf out = { 0 };
	sigset_t none;

	setpgid(0, 0);
	session_leave(&s->session);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
		_exit(1);
	call_tool(s, w, fd, &out);
	if (out.failed)
		_exit(1);
	/* the end of the pipe alone could be that of a worker that was killed */
	buf_add(&out, "\n", 1);
	_exit(io_write_all(fd, out.data, out.len) < 0);
}

static int start(struct server *s, struct work *w)
{
	pid_t parent = getpid();
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	w->pid = fork();
	if (w->pid == 0)
		run(s, w, fds[1], parent);
	close(fds[1]);
	own_close_fd(&w->relay_fd);
	w->relay_fd = -1;
	if (w->pid < 0) {
		w->pid = 0;
		close(fds[0]);
		return -EAGAIN;
	}
	setpgid(w->pid, w->pid); /* parent and child do it; one of them is first */
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	w->fd = fds[0];
	w->begin_ms = w->tell_ms = io_now_ms();
	s->running++;
	return 0;
}

/* Also the processes of a wrapped server are waited for elsewhere. */
static bool is_worker(const struct server *s, pid_t pid)
{
	if (wrap_owns(s, pid))
		return true;
	for (const struct work *w = s->works; w; w = w->next)
		if (w->pid == pid)
			return true;
	return false;
}

/* What calls left behind is our child (work_init()): guardians, mostly. A worker is left to its
 * own finish(), so that the number of its group stays taken. */
static void reap_orphans(const struct server *s)
{
	siginfo_t info = { 0 };

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid &&
	       !is_worker(s, info.si_pid))
		waitpid(info.si_pid, NULL, 0);
}

/* Waits for the whole group; then the places of calls that were killed are removed. */
static void end_group(struct server *s, struct work *w)
{
	kill(-w->pid, SIGKILL);
	while (waitpid(-w->pid, NULL, 0) > 0 || errno == EINTR)
		;
	if (w->kill_ms)
		call_place_sweep();
	w->pid = 0;
	ask_withdraw(s, w);
	s->running--;
	reap_orphans(s);
}

/* Takes the line with the run's id off the answer; false: there is none, so it is not whole. */
static bool take_run(struct server *s, struct work *w)
{
	char *line = w->answer.data, *end = line ? memchr(line, '\n', w->answer.len) : NULL;
	size_t n = end ? (size_t)(end - line) : 0;

	if (!end || n >= sizeof(s->runs[0]))
		return false;
	if (n) {
		char *run = s->runs[s->run_count++ % RUNS_MAX];

		memcpy(run, line, n);
		run[n] = '\0';
	}
	w->answer.len -= n + 1;
	memmove(line, end + 1, w->answer.len + 1);
	return true;
}

/* It waits to be started once more. */
static bool try_again(struct server *s, struct work *w)
{
	if (!w->offer->wrapped || w->again || w->cancelled ||
	    strcmp(buf_text(&w->answer), WORK_AGAIN "\n") != 0)
		return false;
	w->again = true;
	wrap_end(s, w->offer, w->served_by);
	buf_free(&w->answer);
	own_close_fd(&w->fd);
	w->fd = -1;
	return true;
}

static void finish(struct server *s, struct work *w)
{
	struct mcp_message m;
	struct request r = as_request(w, &m);
	size_t n = w->answer.len;

	end_group(s, w);
	if (try_again(s, w))
		return;
	if (!w->answer.failed && n && w->answer.data[n - 1] == '\n') {
		w->answer.data[--w->answer.len] = '\0';
		if (take_run(s, w) && !w->cancelled)
			reply(&r, &w->answer);
	} else {
		fail(w, MCP_INTERNAL, "the process of the call has ended");
	}
	remove_work(s, w);
}

void work_ready(struct work *w)
{
	char bytes[65536];
	ssize_t n = read(w->fd, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || w->answer.len > ANSWER_MAX) {
		finish(w->peer->server, w);
		return;
	}
	buf_add(&w->answer, bytes, (size_t)n);
	if (!w->cancelled)
		ask_take(w->peer->server, w);
}

size_t work_polls(struct server *s, bool full, struct pollfd *fds, struct work **ret_works)
{
	size_t count = 0;

	for (struct work *w = s->works; w && count < WORKS_OPEN_MAX; w = w->next)
		if (w->fd >= 0) {
			fds[count] = (struct pollfd){ full ? -1 : w->fd, POLLIN, 0 };
			ret_works[count++] = w;
		}
	return count;
}

static void end(struct work *w, bool force)
{
	if (!w->kill_ms)
		kill(w->pid, SIGTERM);
	if (force)
		kill(-w->pid, SIGKILL);
	if (!w->kill_ms)
		w->kill_ms = io_now_ms() + GRACE_MS;
}

void work_cancel(struct peer *p, const char *id)
{
	struct work *w = find(p, id);

	if (!w)
		return;
	w->cancelled = true;
	if (w->pid)
		end(w, false);
	else
		remove_work(p->server, w);
}

void work_answer(struct server *s, struct work *w, const struct buf *result)
{
	auto_buf line = { 0 };

	mcp_put_result(&line, w->id, result);
	w->peer->send(w->peer, w->stream, SENT_ANSWER, 0, &line);
	w->answered = w->cancelled = true;
	ask_withdraw(s, w);
	end(w, false);
}

void work_cancel_all(struct peer *p)
{
	for (struct work *next, *w = p->server->works; w; w = next) {
		next = w->next;
		if (w->peer != p)
			continue;
		w->cancelled = true;
		if (w->pid)
			end(w, false);
		else
			remove_work(p->server, w);
	}
}

bool work_is_of(const struct peer *p)
{
	const struct work *w = p->server->works;

	while (w && w->peer != p)
		w = w->next;
	return w;
}

void work_end_all(struct server *s, bool force)
{
	for (struct work *next, *w = s->works; w; w = next) {
		next = w->next;
		w->cancelled = true;
		if (w->pid)
			end(w, force);
		else
			remove_work(s, w);
	}
}

void work_refuse_all(struct server *s, const char *why)
{
	for (const struct work *w = s->works; w; w = w->next)
		fail(w, MCP_INTERNAL, why);
	work_end_all(s, true);
}

int work_init(struct ward_err *e)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? ward_fail_errno(e, "prctl") : 0;
}

/* -- time */

/* At once, and then each second: how many have passed. */
static void tell(struct work *w, uint64_t now_ms)
{
	auto_buf params = { 0 }, line = { 0 };

	if (!*w->token || w->cancelled || now_ms < w->tell_ms)
		return;
	buf_printf(&params, "{\"progressToken\":%s,\"progress\":%llu,\"message\":\"running\"}",
		   w->token, (unsigned long long)(w->tell_ms - w->begin_ms) / PROGRESS_MS);
	w->tell_ms += PROGRESS_MS;
	mcp_put_notification(&line, "notifications/progress", buf_text(&params));
	w->peer->send(w->peer, w->stream, SENT_MESSAGE, 0, &line);
}

static int left_ms(uint64_t at_ms, uint64_t now_ms)
{
	return at_ms > now_ms ? (int)(at_ms - now_ms) : 0;
}

/* A result with isError, without a process. */
static void answer_refusal(struct server *s, struct work *w, const struct ward_err *e)
{
	auto_buf members = { 0 };
	struct mcp_message m;
	struct request r = as_request(w, &m);

	call_put_refusal(e, NULL, &members);
	reply(&r, &members);
	remove_work(s, w);
}

/* 0: it runs; -EAGAIN: there is no place yet; -EBUSY: its server is about to end; others: it was
 * answered, and is gone. */
static int begin(struct server *s, struct work *w)
{
	struct ward_err e = { 0 };
	int r = s->running == WORKS_RUNNING_MAX ? -EAGAIN : 0;

	if (r == 0 && w->offer->wrapped) {
		r = wrap_connect(s, w->offer, &w->relay_fd, &e);
		if (r < 0 && r != -EBUSY) {
			answer_refusal(s, w, &e);
			return -ECANCELED;
		}
		w->served_by = wrap_serves(s, w->offer);
	}
	if (r < 0)
		return r;
	if (start(s, w) == 0)
		return 0;
	own_close_fd(&w->relay_fd);
	fail(w, MCP_INTERNAL, "no process can be started for the call");
	remove_work(s, w);
	return -ECANCELED;
}

int work_on_time(struct server *s, uint64_t now_ms)
{
	int wait = -1, r;

	for (struct work *next, *w = s->works; w; w = next) {
		next = w->next;
		if (!w->pid && (r = begin(s, w)) < 0) {
			wait = r == -EBUSY ? serve_sooner(wait, BUSY_MS) : wait;
			continue;
		}
		if (w->kill_ms && now_ms >= w->kill_ms) {
			kill(-w->pid, SIGKILL);
			w->kill_ms = now_ms + GRACE_MS;
		}
		if (w->kill_ms)
			wait = serve_sooner(wait, left_ms(w->kill_ms, now_ms));
		tell(w, now_ms);
		if (*w->token && !w->cancelled)
			wait = serve_sooner(wait, left_ms(w->tell_ms, now_ms));
	}
	return wait;
}
