/*
 * Commands in a sandbox that runs. In: an EXEC of a client (checked). Out: a word to ward-init with
 * the inner ends of three pipes, an answer to the client with the outer ends; later how it ended.
 * ward-init starts the command, so that every layer of the sandbox holds for it by inheritance.
 * What ward-init says is untrusted: a tag that no client has is ignored, and a status is a number
 * that is passed on.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "plan/inner.h"
#include "run/box_internal.h"
#include "run/serve_internal.h"

struct exec_fds {
	int inside[3], outside[4];
	size_t outside_count;
};

static void close_fds(struct exec_fds *f)
{
	for (int i = 0; i < 3; i++)
		own_close_fd(&f->inside[i]);
	for (int i = 0; i < 4; i++)
		own_close_fd(&f->outside[i]);
}

/* Pipes for 0-2; without `input` the command's standard input is at its end. */
static int make_pipes(const struct plan *p, bool input, struct exec_fds *f)
{
	for (int i = 0; i < 3; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) < 0)
			return -errno;
		/* without it only the names in /dev do not work */
		if (p->ids.host_uid != geteuid())
			(void)!fchown(fds[0], p->ids.host_uid, p->ids.host_gid);
		f->inside[i] = fds[i ? 1 : 0];
		if (i || input)
			f->outside[f->outside_count++] = fds[i ? 0 : 1];
		else
			close(fds[1]);
	}
	return 0;
}

/* One terminal for all three; its outer end, and the inner one to keep it open, for the client. */
static int make_terminal(struct serve *s, struct exec_fds *f, struct ward_err *e)
{
	int master = -1, slave = -1, r;

	if (!s->box->engine->terminals || s->box->run.proc_fd < 0)
		return ward_fail(e, ENOTSUP, "there are no terminals inside without namespaces");
	r = console_open_pty(s->box->run.proc_fd, &master, &slave, e);
	if (r < 0)
		return r;
	f->outside[0] = master;
	f->outside[1] = slave;
	f->outside_count = 2;
	for (int i = 0; i < 3; i++) {
		f->inside[i] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
		if (f->inside[i] < 0)
			return ward_fail_errno(e, "cannot pass a terminal to the sandbox");
	}
	return 0;
}

static int tell_init(struct serve *s, const void *bytes, size_t n, const int fds[3])
{
	return io_sendmsg_fds(s->box->run.control_fd, bytes, n, fds, 3, MSG_DONTWAIT) == (ssize_t)n
		       ? 0
		       : -errno;
}

/* With an inner runtime ward-init starts the runtime's client. */
static int hand_over(struct serve *s, const struct strv *words, char *bytes, size_t n,
		     const int fds[3])
{
	const struct plan *p = s->box->plan;
	struct guest_message word;
	auto_buf packet = { 0 };
	int r = inner_packet(words->len ? words : &p->inner_exec, &p->inner_copy, bytes, n,
			     &packet);

	if (r > 0) {
		bytes = packet.data;
		n = packet.len;
	}
	if (r >= 0)
		r = tell_init(s, bytes, n, fds);
	if (r < 0)
		return r;
	memcpy(&word, bytes, sizeof(word));
	if (word.op == GUEST_EXEC)
		notify_expect(s->box->notify, word.tag, word.a, bytes + sizeof(word),
			      n - sizeof(word));
	return 0;
}

size_t serve_running(const struct serve *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->client_count; i++)
		count += s->clients[i].tag != 0;
	return count;
}

/* Whether a command can be started now at all. */
static bool can_start(const struct serve *s, const struct serve_client *c, struct ward_err *e)
{
	if (s->box->held) {
		ward_fail(e, EBUSY, "the sandbox is paused");
		ward_remedy(e, "ward resume %s", s->entry->id);
	} else if (s->box->ending) {
		ward_fail(e, EBUSY, "the sandbox is being stopped");
	} else if (s->checkpoint_tag) {
		ward_fail(e, EBUSY, "a checkpoint of the sandbox is under way");
		ward_remedy(e, "try again in a moment; ward kill %s ends the sandbox",
			    s->entry->id);
	} else if (c->tag) {
		ward_fail(e, EBUSY, "this connection already has a command");
	} else if (serve_running(s) >= GUEST_EXECS_MAX) {
		ward_fail(e, EAGAIN, "%d commands already run in the sandbox, the maximum",
			  GUEST_EXECS_MAX);
	} else {
		return true;
	}
	return false;
}

static uint32_t next_tag(struct serve *s)
{
	s->last_tag = (s->last_tag + 1) & ~GUEST_TAG_COMMAND;
	if (!s->last_tag)
		s->last_tag = 1;
	return s->last_tag;
}

/* words: those of a checkpoint, empty: it is a command or a copy. */
static int start(struct serve *s, struct serve_client *c, const struct strv *words, char *bytes,
		 size_t n, struct exec_fds *f, struct ward_err *e)
{
	struct guest_message word = { .op = GUEST_EXEC, .tag = next_tag(s) };
	struct control_message m;
	int r;

	memcpy(&m, bytes, sizeof(m));
	word.a = m.a;
	word.b = m.b;
	if (m.flags & CONTROL_COPY)
		word.op = GUEST_COPY;
	memcpy(bytes, &word, sizeof(word));
	if (m.flags & CONTROL_TERMINAL) {
		r = make_terminal(s, f, e);
	} else {
		r = make_pipes(s->box->plan, m.flags & CONTROL_INPUT, f);
		if (r < 0)
			ward_fail(e, -r, "cannot make pipes: %s", strerror(-r));
	}
	if (r < 0)
		return r;
	r = hand_over(s, words, bytes, n, f->inside);
	if (r < 0)
		return ward_fail(e, -r, "cannot pass the command to the sandbox: %s", strerror(-r));
	c->tag = word.tag;
	return 0;
}

void serve_exec(struct serve *s, struct serve_client *c, char *bytes, size_t n)
{
	struct exec_fds f = { .inside = { -1, -1, -1 }, .outside = { -1, -1, -1, -1 } };
	struct control_message answer = { .magic = CONTROL_MAGIC, .op = CONTROL_STARTED }, m;
	struct ward_err e = { 0 };
	auto_strv words = { 0 };
	int r = 0, record = -1;

	memcpy(&m, bytes, sizeof(m));
	if (!can_start(s, c, &e)) {
		serve_refuse(c, &e);
		return;
	}
	if (m.flags & CONTROL_CHECKPOINT)
		r = answer.a = serve_checkpoint(s, &words, &record, &e);
	if (r >= 0)
		r = start(s, c, &words, bytes, n, &f, &e);
	if (r < 0) {
		serve_refuse(c, &e);
	} else {
		if (m.flags & CONTROL_CHECKPOINT)
			s->checkpoint_tag = c->tag;
		if (record >= 0)
			f.outside[f.outside_count++] = take_fd(&record);
		box_look_again(s->box);
		serve_send(c, &answer, sizeof(answer), f.outside, f.outside_count);
	}
	own_close_fd(&record);
	close_fds(&f);
}

void serve_guest(struct serve *s, const struct guest_message *m)
{
	notify_guest(s->box->notify, m);
	if (m->tag && m->tag == s->checkpoint_tag &&
	    (m->op == GUEST_EXITED || m->op == GUEST_FAILED)) {
		s->checkpoint_tag = 0;
		serve_checkpoint_answer(s, m->op == GUEST_EXITED && m->a == 0);
	}
	for (size_t i = 0; i < s->client_count; i++) {
		struct serve_client *c = &s->clients[i];

		if (!m->tag || c->tag != m->tag)
			continue;
		if (m->op == GUEST_EXITED)
			serve_answer(c, CONTROL_EXITED,
				     WIFEXITED(m->a) ? WEXITSTATUS(m->a) : 128 + WTERMSIG(m->a),
				     WIFSIGNALED(m->a) ? WTERMSIG(m->a) : 0);
		else if (m->op == GUEST_FAILED)
			serve_answer(c, CONTROL_FAILED, m->a, m->b);
		else if (m->op == GUEST_STOPPED)
			serve_answer(c, CONTROL_STOPPED, m->a, 0);
		if (m->op != GUEST_EXITED && m->op != GUEST_FAILED)
			return;
		c->tag = 0;
		c->deadline_ms = 1; /* it has what it came for */
		box_ended_one(s->box);
		return;
	}
}
