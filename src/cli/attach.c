/*
 * ward attach: joins the command of a detached sandbox, beside other clients. In: its name. Out:
 * what the command writes from now on, and what is typed goes to it if it has a terminal. ctrl-p
 * ctrl-q leaves; the command stays. The operator's terminal is run/console.c's business: it sits at
 * one end of a pair of sockets as if that were the sandbox's terminal, and this file moves bytes
 * between the other end and the sandbox, looking for the keys that leave.
 */
#include "cli/box_ask.h"
#include "cli/boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "base/io.h"
#include "run/console.h"

#define KEY_FIRST 0x10  /* ctrl-p */
#define KEY_SECOND 0x11 /* ctrl-q */
#define CHUNK_BYTES 4096

/* Bytes on their way in one direction. */
struct flow {
	int from_fd, to_fd;
	char bytes[CHUNK_BYTES + 1];
	size_t len, done;
	bool ended;
};

struct attached {
	struct client client;
	struct console *console;
	struct box_ask ask;
	struct flow typed, shown;
	int near_fd;   /* our end of the pair that the console sits at */
	int stream_fd; /* to the sandbox */
	int signal_fd;
	bool terminal; /* the command has one */
	bool key_seen; /* the first of the two */
	bool left;     /* by the keys, or the terminal went away */
};

static void tell_size(struct attached *a)
{
	struct ward_err ignored = { 0 };
	struct winsize size;

	for (int i = 0; i < 3 && a->terminal; i++)
		if (ioctl(i, TIOCGWINSZ, &size) == 0) {
			(void)!client_send(&a->client, CONTROL_SIZE, 0, size.ws_row, size.ws_col,
					   &ignored);
			return;
		}
}

/* Takes the two keys out of what was typed; true when they were. */
static bool look_for_keys(struct attached *a, struct flow *f)
{
	char out[sizeof(f->bytes)] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < f->len && !a->left; i++) {
		if (a->key_seen && f->bytes[i] == KEY_SECOND) {
			a->left = true;
			continue;
		}
		if (a->key_seen)
			out[n++] = KEY_FIRST;
		a->key_seen = f->bytes[i] == KEY_FIRST;
		if (!a->key_seen)
			out[n++] = f->bytes[i];
	}
	memcpy(f->bytes, out, n);
	f->len = n;
	return a->left;
}

static void flow_read(struct flow *f)
{
	ssize_t n = read(f->from_fd, f->bytes, CHUNK_BYTES);

	f->done = 0;
	f->len = n > 0 ? (size_t)n : 0;
	f->ended |= n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void flow_write(struct flow *f)
{
	ssize_t n =
		send(f->to_fd, f->bytes + f->done, f->len - f->done, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		f->done += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		f->ended = true;
}

static struct pollfd flow_poll(const struct flow *f)
{
	bool waiting = f->done < f->len;

	return (struct pollfd){ .fd = f->ended  ? -1
				      : waiting ? f->to_fd
						: f->from_fd,
				.events = waiting ? POLLOUT : POLLIN };
}

static void flow_move(struct attached *a, struct flow *f, const struct pollfd *p)
{
	if (p->fd < 0 || !p->revents)
		return;
	if (f->done == f->len) {
		flow_read(f);
		if (f == &a->typed && look_for_keys(a, f))
			return;
	}
	if (f->done < f->len)
		flow_write(f);
}

static void on_signal(struct attached *a)
{
	struct signalfd_siginfo info;

	if (read(a->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGWINCH:
		console_resize(a->console);
		tell_size(a);
		break;
	case SIGCONT:
		console_resume(a->console);
		break;
	case SIGTSTP:
	case SIGTTIN:
		console_suspend(a->console, (int)info.ssi_signo, false);
		break;
	case SIGTTOU:
		break;
	default:
		a->left = true;
	}
}

/* Who may type has changed. */
static void on_answer(struct attached *a)
{
	struct client_answer answer;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };

	if (client_receive(&a->client, &answer, 0, &e) < 0) {
		client_close(&a->client); /* the stream says when all was shown */
	} else if (answer.message.op == CONTROL_TURN && !answer.message.a) {
		buf_puts(&out, "\r\nward: another terminal has taken over the input\r\n");
		say_err(&out);
	}
}

static void move_all(struct attached *a)
{
	enum { CLIENT, SIGNAL, TYPED, SHOWN, ASK, CONSOLE, COUNT = CONSOLE + CONSOLE_POLLS };
	struct pollfd polled[COUNT];

	while (!a->left && !(a->shown.ended && a->shown.done == a->shown.len)) {
		polled[CLIENT] = (struct pollfd){ .fd = a->client.fd, .events = POLLIN };
		polled[SIGNAL] = (struct pollfd){ .fd = a->signal_fd, .events = POLLIN };
		polled[TYPED] = flow_poll(&a->typed);
		polled[SHOWN] = flow_poll(&a->shown);
		polled[ASK] = (struct pollfd){ .fd = box_ask_fd(&a->ask), .events = POLLIN };
		console_poll(a->console, polled + CONSOLE);
		if (poll(polled, COUNT, console_wait_ms(a->console)) < 0)
			continue;
		if (polled[SIGNAL].revents)
			on_signal(a);
		flow_move(a, &a->shown, &polled[SHOWN]);
		console_move(a->console, polled + CONSOLE);
		flow_move(a, &a->typed, &polled[TYPED]);
		if (polled[ASK].revents)
			box_ask_handle(&a->ask);
		if (polled[CLIENT].revents)
			on_answer(a);
		a->left |= console_hung_up(a->console);
	}
}

/* All that the command wrote is shown before the terminal is given back. */
static void drain(struct attached *a)
{
	struct pollfd polled[CONSOLE_POLLS];

	shutdown(a->near_fd, SHUT_WR);
	console_end(a->console);
	for (;;) {
		console_poll(a->console, polled);
		if (polled[0].fd < 0 && polled[1].fd < 0)
			return;
		if (poll(polled, CONSOLE_POLLS, 2000) == 0)
			return;
		console_move(a->console, polled);
	}
}

static int take_signals(void)
{
	static const int taken[] = { SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGWINCH,
				     SIGTSTP, SIGCONT, SIGTTIN, SIGTTOU };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		sigaddset(&set, taken[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int join(const struct options *o, const struct box_info *box, struct attached *a,
		struct ward_err *e)
{
	unsigned flags =
		(o->read_only ? CONTROL_READ_ONLY : 0) | (o->exclusive ? CONTROL_EXCLUSIVE : 0);
	struct client_answer answer = { 0 };
	int r = client_connect(box, &a->client, e);

	if (r == 0)
		r = client_send(&a->client, CONTROL_ATTACH, flags, 0, 0, e);
	if (r == 0)
		r = client_receive(&a->client, &answer, CLIENT_ANSWER_MS, e);
	if (r < 0)
		return r;
	if (answer.message.op != CONTROL_STARTED || answer.fd_count != 1)
		return ward_fail(e, EPROTO, "the sandbox sent an unexpected answer");
	a->stream_fd = answer.fds[0];
	a->terminal = answer.message.a;
	return 0;
}

/* As text for the operator. */
static void say_joined(const struct options *o, const struct attached *a)
{
	auto_buf out = { 0 };

	if (!isatty(STDERR_FILENO))
		return;
	buf_printf(&out, "ward: attached%s; ctrl-p ctrl-q leaves\n",
		   !a->terminal   ? " to a command without a terminal: its output is shown"
		   : o->read_only ? ", read-only"
		   : o->exclusive ? ", only your input counts"
				  : "");
	say_err(&out);
}

static int sit_down(const struct options *o, struct attached *a, struct ward_err *e)
{
	/* ward-box answers */
	struct console_config config = { .slave_fd = -1, .no_answers = true };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return ward_fail_errno(e, "cannot create a socket");
	a->near_fd = pair[1];
	config.master_fd = pair[0];
	a->signal_fd = take_signals();
	say_joined(o, a);
	(void)fcntl(a->stream_fd, F_SETFL, O_NONBLOCK);
	a->typed.from_fd = a->shown.to_fd = a->near_fd;
	a->typed.to_fd = a->shown.from_fd = a->stream_fd;
	if (a->signal_fd < 0) {
		close(config.master_fd);
		return ward_fail_errno(e, "cannot receive signals");
	}
	return console_create(&config, &a->console, e);
}

/* The command's exit code, once the sandbox's end is on record. */
static int code_of(struct box_info *box)
{
	(void)client_is_ending(box->id);
	boxes_look_again(box);
	return box->state == BOX_ENDED ? box->exit_code : 137;
}

int verb_attach(struct options *o)
{
	struct attached a = { .client = NO_CLIENT,
			      .ask.watch = NO_CLIENT,
			      .near_fd = -1,
			      .stream_fd = -1,
			      .signal_fd = -1 };
	struct box_info box = { 0 };
	struct ward_err e = { 0 };
	int code = EXIT_REFUSED, r = client_find_alive(o->words[0], &box, &e);

	if (r == 0)
		r = join(o, &box, &a, &e);
	if (r == 0)
		r = sit_down(o, &a, &e);
	if (r == 0) {
		if (a.terminal && !o->read_only)
			box_ask_begin(&a.ask, box.id, a.console);
		tell_size(&a);
		move_all(&a);
		drain(&a);
		console_destroy(a.console);
		a.console = NULL;
		code = a.left ? EXIT_FINE : code_of(&box);
	}
	console_destroy(a.console);
	box_ask_end(&a.ask);
	client_close(&a.client);
	own_close_fd(&a.near_fd);
	own_close_fd(&a.stream_fd);
	own_close_fd(&a.signal_fd);
	box_info_clear(&box);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : code;
}
