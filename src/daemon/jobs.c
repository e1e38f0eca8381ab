/*
 * Requests to the keeper. In: what shall be done with a sandbox. Out: a message, and later the call
 * of who asked, with the keeper's answer. What is said goes by the sandbox's id: it may be gone
 * when the answer comes.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "daemon/snapshot.h"

static bool ask(struct front *f, const struct keeper_request *q, job_done *done)
{
	struct job *j = NULL;

	for (size_t i = 0; i < JOBS_MAX && !j; i++)
		if (!f->jobs[i].used)
			j = &f->jobs[i];
	if (!j)
		return false;
	*j = (struct job){ .q = *q, .done = done, .began_ms = io_now_ms(), .used = true };
	j->q.seq = ++f->next_seq;
	if (send(f->keeper_fd, &j->q, sizeof(j->q), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(j->q)) {
		j->used = false;
		return false;
	}
	f->jobs_used++;
	return true;
}

static struct keeper_request about(enum keeper_op op, const struct sandbox *s)
{
	struct keeper_request q = { .op = (uint8_t)op };

	if (s) {
		q.no_network = s->no_network;
		memcpy(q.id, s->id, sizeof(q.id));
		memcpy(q.template, s->template, sizeof(q.template));
	}
	if (s && op == KEEPER_START)
		memcpy(q.snapshot, s->snapshot, sizeof(q.snapshot));
	return q;
}

bool jobs_ask(struct front *f, enum keeper_op op, const struct sandbox *s, job_done *done)
{
	const struct keeper_request q = about(op, s);

	return ask(f, &q, done);
}

bool jobs_ask_files(struct front *f, enum keeper_op op, const struct sandbox *s, job_done *done)
{
	struct keeper_request q = about(op, s);

	q.files_only = true;
	return ask(f, &q, done);
}

bool jobs_ask_snapshot(struct front *f, enum keeper_op op, const struct sandbox *s,
		       const struct snapshot *n, job_done *done)
{
	struct keeper_request q = about(op, s);

	memcpy(q.snapshot, n->id, sizeof(q.snapshot));
	q.most = n->bytes;
	q.passing = n->fork != NULL;
	return ask(f, &q, done);
}

bool jobs_ask_answer(struct front *f, const struct sandbox *s, const struct keeper_answer *a,
		     job_done *done)
{
	struct keeper_request q = about(KEEPER_ANSWER, s);

	q.answer = *a;
	return ask(f, &q, done);
}

void jobs_ready(struct source *source, uint32_t events)
{
	struct front *f = (struct front *)((char *)source - offsetof(struct front, keeper));
	size_t room = sizeof(struct keeper_reply) + KEEPER_TEXT_MAX, count = 0;
	auto_free char *bytes = malloc(room + 1);
	struct keeper_reply reply;
	int fds[2] = { -1, -1 };
	ssize_t n = bytes ? io_recv_fds(f->keeper_fd, bytes, room, fds, 2, &count) : -ENOMEM;

	(void)events;
	if (n <= 0 && n != -EAGAIN && n != -EINTR)
		f->stop = true;
	if (n < (ssize_t)sizeof(reply))
		return;
	bytes[n] = '\0';
	memcpy(&reply, bytes, sizeof(reply));
	for (size_t i = 0; i < JOBS_MAX; i++) {
		struct job *j = &f->jobs[i];

		if (!j->used || j->q.seq != reply.seq)
			continue;
		f->jobs_used--;
		j->done(f, j, reply.result, bytes + sizeof(reply), fds);
		j->used = false;
		break;
	}
	own_close_fd(&fds[0]);
	own_close_fd(&fds[1]);
}
