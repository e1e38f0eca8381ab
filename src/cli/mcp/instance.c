/*
 * One sandbox of a wrapped server. In: a policy, a command. Out: `ward run` with that policy and no
 * other, whose streams lead to a relay, a process of our own without rights, which reads them. Both
 * die with this process. It is ended by the end of its input, half a second later by signals, and
 * then by force; what the server has forked ends with the sandbox. Runs with the user's rights, and
 * reads no byte of the server.
 */
#include "cli/mcp/wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

#define LEAVE_MS 500  /* for a server that ends when its input does */
#define FORCE_MS 6000 /* more than what ward run takes to end one by force */
#define TICK_MS 20    /* while one is ending */
#define STARTS_MAX 5  /* within a minute */
#define MINUTE_MS 60000

struct streams {
	int in[2], out[2], error[2], control[2];
};

static void close_streams(struct streams *s)
{
	for (int i = 0; i < 2; i++) {
		own_close_fd(&s->in[i]);
		own_close_fd(&s->out[i]);
		own_close_fd(&s->error[i]);
		own_close_fd(&s->control[i]);
	}
}

static int open_streams(struct streams *s, struct ward_err *e)
{
	*s = (struct streams){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if (pipe2(s->in, O_CLOEXEC) < 0 || pipe2(s->out, O_CLOEXEC) < 0 ||
	    pipe2(s->error, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->control) < 0) {
		ward_fail_errno(e, "cannot make the streams of the server");
		close_streams(s);
		return -e->code;
	}
	return 0;
}

static pid_t start_relay(const struct instance_kind *kind, const struct streams *s)
{
	const struct relay_start start = { .name = kind->name,
					   .pins = kind->pins,
					   .keep = kind->keep,
					   .mute = kind->mute,
					   .control_fd = s->control[1],
					   .to_fd = s->in[1],
					   .from_fd = s->out[0],
					   .error_fd = s->error[0],
					   .parent = getpid() };
	pid_t pid = fork();

	if (pid == 0)
		relay_run(&start);
	return pid;
}

/* A server that ends again and again is not started for ever. */
static int count_start(struct instance *i, const struct instance_kind *kind, struct ward_err *e)
{
	uint64_t now = io_now_ms();

	if (!i->starts || now - i->first_ms > MINUTE_MS) {
		i->starts = 0;
		i->first_ms = now;
	}
	if (i->starts == STARTS_MAX)
		return ward_fail(e, EAGAIN,
				 "%s was started %d times within a minute and did not "
				 "stay",
				 kind->name, STARTS_MAX);
	i->starts++;
	return 0;
}

int instance_start(struct instance *i, const struct instance_kind *kind, struct ward_err *e)
{
	struct buf document = { .data = i->document, .len = strlen(i->document) };
	auto_strv words = { 0 };
	struct streams s;
	int r = count_start(i, kind, e);

	if (r == 0)
		r = open_streams(&s, e);
	if (r < 0)
		return r;
	r = call_place_open(&i->place, e);
	if (r == 0)
		r = call_words_in(&i->place, &document, i->cwd, kind->command, &words, e);
	if (r == 0)
		r = call_start(&words, (int[]){ s.in[0], s.out[1], s.error[1] }, &i->run, e);
	if (r == 0) {
		i->relay = start_relay(kind, &s);
		i->control_fd = take_fd(&s.control[0]);
		i->end_ms = 0;
		i->signalled = false;
		if (i->relay < 0) {
			i->relay = 0;
			r = ward_fail_errno(e, "cannot start a process");
			instance_stop(i);
		}
	} else {
		call_place_close(&i->place);
	}
	close_streams(&s);
	return r;
}

int instance_connect(struct instance *i, const struct instance_kind *kind, int *ret_fd,
		     struct ward_err *e)
{
	int pair[2], r = 0;

	if (i->end_ms)
		return -EBUSY;
	if (!i->run)
		r = instance_start(i, kind, e);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make a socket");
	r = io_send_fds(i->control_fd, "", 1, &pair[1], 1);
	close(pair[1]);
	if (r < 0) { /* it ends: its calls get an error when it has */
		close(pair[0]);
		instance_end(i);
		return -EBUSY;
	}
	*ret_fd = pair[0];
	return 0;
}

/* -- the end */

void instance_end(struct instance *i)
{
	if (!i->run || i->end_ms)
		return;
	/* not close(): processes of calls have copies of it */
	shutdown(i->control_fd, SHUT_RDWR);
	i->end_ms = io_now_ms();
}

static bool has_ended(pid_t *pid)
{
	pid_t ended = *pid ? waitpid(*pid, NULL, WNOHANG) : 0;

	if (ended == *pid || (ended < 0 && errno == ECHILD))
		*pid = 0;
	return !*pid;
}

static void forget(struct instance *i)
{
	own_close_fd(&i->control_fd);
	i->control_fd = -1;
	call_place_close(&i->place);
	i->end_ms = 0;
}

int instance_on_time(struct instance *i, uint64_t now)
{
	bool gone;

	if (!i->end_ms)
		return -1;
	gone = has_ended(&i->run);
	if (has_ended(&i->relay) && gone) {
		forget(i);
		return 0; /* what has waited for it goes on */
	}
	if (now - i->end_ms >= FORCE_MS) {
		if (i->run)
			kill(i->run, SIGKILL); /* its guardian ends the sandbox */
		if (i->relay)
			kill(i->relay, SIGKILL);
	} else if (now - i->end_ms >= LEAVE_MS && !i->signalled) {
		i->signalled = true;
		if (i->run) { /* the first is passed on, the second ends it by force */
			kill(i->run, SIGTERM);
			kill(i->run, SIGINT);
		}
		if (i->relay)
			kill(i->relay, SIGKILL);
	}
	return TICK_MS;
}

void instance_stop(struct instance *i)
{
	int wait;

	instance_end(i);
	while ((wait = instance_on_time(i, io_now_ms())) >= 0)
		poll(NULL, 0, wait);
}

void instance_free(struct instance *i)
{
	free(i->document);
	free(i->cwd);
	*i = (struct instance){ .control_fd = -1 };
}
