/*
 * Commands in a box. In: a connection to its ward-box. Out: a handle that holds the connection: the
 * command's end comes over it, and its own end hangs the command up. Several threads may wait and
 * signal at once: what comes over the connection is taken under the lock, and an end that arrives
 * between a question and its answer is kept.
 */
#include "api/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/io.h"

#define KILLED_WITH_BOX (128 + SIGKILL)

int process_check(const struct ward_command *c, struct ward_err *e)
{
	if (!c || c->size < sizeof(*c))
		return ward_fail(e, EINVAL,
				 "the size of the command is not the size of struct ward_command");
	if (!c->argv || !c->argv[0] || !*c->argv[0])
		return ward_fail(e, EINVAL, "no command given");
	if (!c->rows != !c->columns || c->rows > UINT16_MAX || c->columns > UINT16_MAX)
		return ward_fail(e, EINVAL, "not a valid terminal size: %u rows and %u columns",
				 c->rows, c->columns);
	return 0;
}

static struct ward_process *process_new(struct client *client, const struct api_streams *streams)
{
	struct ward_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->client = *client;
	p->streams = *streams;
	*client = NO_CLIENT;
	return p;
}

int process_start(struct client *client, const struct ward_command *c,
		  struct ward_process **ret_process, struct ward_err *e)
{
	const struct control_exec x = {
		.flags = c->rows ? CONTROL_INPUT | CONTROL_TERMINAL : CONTROL_INPUT,
		.cwd = c->directory ? c->directory : "",
		.argv = (char *const *)(uintptr_t)c->argv,
		.env = (char *const *)(uintptr_t)c->env,
	};
	struct client_answer answer = { 0 };
	struct api_streams streams = NO_STREAMS;
	int r = client_send_exec(client, &x, e);

	if (r == 0)
		r = client_receive(client, &answer, CLIENT_ANSWER_MS, e);
	if (r == 0)
		r = streams_take(&streams, c->rows > 0, answer.fds, answer.fd_count, e);
	if (r == 0 && c->rows)
		r = streams_resize(&streams, c->rows, c->columns, e);
	if (r == 0) {
		*ret_process = process_new(client, &streams);
		r = *ret_process ? 0 : ward_fail(e, ENOMEM, "out of memory");
	}
	if (r < 0)
		streams_close(&streams);
	return r;
}

/* Takes what came, if anything did; true if it answers a question. Under the lock. */
static bool take_word(struct ward_process *p, int timeout_ms, struct ward_err *e, int *ret_r)
{
	struct client_answer answer;

	*ret_r = client_receive(&p->client, &answer, timeout_ms, e);
	if (*ret_r == 0 && answer.message.op == CONTROL_EXITED) {
		p->ended = true;
		p->code = answer.message.a;
	} else if (*ret_r == 0 && answer.message.op == CONTROL_FAILED) {
		p->ended = true;
		p->code = answer.message.b;
	} else if (*ret_r == -ESRCH) {
		p->ended = true;
		p->code = KILLED_WITH_BOX;
	} else {
		return *ret_r != -ETIMEDOUT;
	}
	return false;
}

/* 1: it has ended; 0: not yet. Under the lock. */
static int look(struct ward_process *p, struct ward_err *e)
{
	int r = 0;

	while (!p->ended && r == 0) {
		r = api_poll(p->client.fd, 0, e);
		if (r <= 0)
			return r;
		take_word(p, 0, e, &r);
		if (r == -ESRCH)
			r = 0;
	}
	return r < 0 ? r : p->ended;
}

int ward_process_wait(struct ward_process *p, int timeout_ms, int *ret_code, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	uint64_t began = io_now_ms();
	int r;

	for (;;) {
		int left = api_time_left(timeout_ms, began, io_now_ms());

		pthread_mutex_lock(&p->lock);
		r = look(p, &inner);
		pthread_mutex_unlock(&p->lock);
		if (r != 0 || left == 0)
			break;
		r = api_poll(p->client.fd, left, &inner);
		if (r < 0)
			break;
	}
	if (r == 1 && ret_code)
		*ret_code = p->code; /* it does not change any more */
	return r < 0 ? api_fail(e, &inner) : r;
}

int process_signal(struct ward_process *p, int signal_number, struct ward_err *e)
{
	int r;

	pthread_mutex_lock(&p->lock);
	r = look(p, e);
	if (r == 1) {
		r = ward_fail(e, ESRCH, "the command has ended");
	} else if (r == 0) {
		r = client_send(&p->client, CONTROL_SIGNAL, 0, signal_number, 0, e);
		while (r == 0 && !p->ended && !take_word(p, CLIENT_ANSWER_MS, e, &r))
			;
		if (p->ended)
			r = 0; /* meanwhile: it may have been the signal */
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

int ward_process_stream(struct ward_process *p, int which, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	int r;

	pthread_mutex_lock(&p->lock);
	r = streams_hand(&p->streams, which, &inner);
	pthread_mutex_unlock(&p->lock);
	return r < 0 ? api_fail(e, &inner) : r;
}

int ward_process_resize(struct ward_process *p, unsigned rows, unsigned columns,
			struct ward_error *e)
{
	struct ward_err inner = { 0 };
	int r;

	pthread_mutex_lock(&p->lock);
	r = streams_resize(&p->streams, rows, columns, &inner);
	pthread_mutex_unlock(&p->lock);
	return r < 0 ? api_fail(e, &inner) : 0;
}

int ward_process_fd(const struct ward_process *p)
{
	return p->client.fd;
}

void ward_process_free(struct ward_process *p)
{
	struct ward_err ignored = { 0 };

	if (!p)
		return;
	if (!p->ended)
		(void)!client_send(&p->client, CONTROL_SIGNAL, 0, SIGKILL, 0, &ignored);
	client_close(&p->client);
	streams_close(&p->streams);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
