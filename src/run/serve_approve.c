/*
 * Questions of a sandbox, through the control socket. In: requests that were checked (control.h),
 * of a process that serve.c let in: the same user or root, outside of every sandbox, so a sandbox
 * never answers its own. Out: the questions that wait, and whether an answer counts. Who answered
 * is asked of the kernel and goes on record with the answer.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "run/box_internal.h"
#include "run/serve_internal.h"

static void list(struct serve *s, struct serve_client *c, uint64_t after)
{
	struct control_message m = { .magic = CONTROL_MAGIC, .op = CONTROL_QUESTIONS };
	const struct approve *a = s->box->approve;
	auto_buf out = { 0 };

	buf_add(&out, &m, sizeof(m));
	for (size_t i = 0; a && i < approve_count(a); i++) {
		const struct question *q = approve_get(a, i);

		if (q->id <= after)
			continue;
		if (m.a == CONTROL_QUESTION_ROWS) {
			m.b = 1;
			break;
		}
		buf_add(&out, q, sizeof(*q));
		m.a++;
	}
	if (out.failed) {
		c->gone = true;
		return;
	}
	memcpy(out.data, &m, sizeof(m));
	serve_send(c, out.data, out.len, NULL, 0);
}

static void answer(struct serve *s, struct serve_client *c, const struct control_answer *said)
{
	static const char vias[QUESTION_VIAS][16] = {
		[QUESTION_VIA_CONTROL] = "control", [QUESTION_VIA_TERMINAL] = "terminal",
		[QUESTION_VIA_WATCH] = "watch",     [QUESTION_VIA_SOCKET] = "socket",
		[QUESTION_VIA_WEBHOOK] = "webhook", [QUESTION_VIA_LIBRARY] = "library"
	};
	struct ucred peer = { .uid = (uid_t)-1 };
	struct question_who who = { 0 };
	socklen_t len = sizeof(peer);
	struct ward_err e = { 0 };

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		c->gone = true; /* an answer of nobody is none */
		return;
	}
	snprintf(who.via, sizeof(who.via), "%s", vias[said->via]);
	snprintf(who.from, sizeof(who.from), "%s", said->from);
	who.uid = peer.uid;
	who.pid = peer.pid;
	if (!s->box->approve)
		ward_fail(&e, ENOENT, "the sandbox %s asks nothing", s->entry->id);
	else if (approve_answer(s->box->approve, said->id, (enum question_answer)said->answer,
				said->seconds, &who, &e) == 0)
		serve_answer(c, CONTROL_OK, 0, 0);
	if (e.code)
		serve_refuse(c, &e);
}

/* -- those who wait for a change: each question is answered once, so nobody is flooded */

static void tell(const struct serve *s, struct serve_client *c)
{
	if (s->box->approve && c->seen == s->questions)
		return;
	c->watches = false;
	serve_answer(c, CONTROL_OK, s->box->approve ? (int32_t)(s->questions & INT32_MAX) : -1, 0);
}

void serve_questions_changed(struct serve *s)
{
	s->questions = s->questions % INT32_MAX + 1;
	for (size_t i = 0; i < s->client_count; i++)
		if (s->clients[i].watches)
			tell(s, &s->clients[i]);
}

void serve_approve(struct serve *s, struct serve_client *c, const struct control_message *m,
		   const char *rest)
{
	struct control_answer said;

	if (m->op == CONTROL_QUESTION_LIST) {
		list(s, c, (uint64_t)m->a);
		return;
	}
	if (m->op == CONTROL_QUESTION_WATCH) {
		c->watches = true;
		c->seen = (uint32_t)m->a;
		if (!s->questions)
			s->questions = 1;
		tell(s, c);
		return;
	}
	memcpy(&said, rest, sizeof(said));
	answer(s, c, &said);
}
