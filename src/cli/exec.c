/*
 * ward exec: a command in a sandbox that runs. In: its name, the command, 0-2. Out: the command's
 * exit code. The sandbox makes the pipes and hands over their outer ends; this process moves the
 * bytes, so nothing that it has open goes inside, and what goes to a terminal passes the filter.
 * With -t the command has a terminal of the sandbox's own, and run/console.c stands between that
 * and the operator's. Signals go to the command. When this process ends, the command gets a hangup.
 * With --forensic the command is none of the sandbox's: forensic.c starts it, and signals end it.
 */
#include "cli/box_ask.h"
#include "cli/boxes.h"
#include "cli/forensic.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "base/io.h"
#include "run/streams.h"

#define IMPATIENT 3 /* so many signals that ask for the end, and we go without waiting */

struct session {
	struct client client;
	struct streams streams;
	struct console *console; /* with -t */
	struct box_ask ask;
	struct forensic forensic; /* with --forensic, in place of the client */
	int signal_fd;
	unsigned asked; /* times that the end was asked for */
	bool over;
	int code;
};

static int take_signals(struct session *s, bool terminal)
{
	static const int passed_on[] = { SIGTERM,  SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
					 SIGWINCH, SIGTSTP, SIGCONT, SIGTTIN, SIGTTOU };
	sigset_t set;

	sigemptyset(&set);
	/* the others are about terminals */
	for (size_t i = 0; i < (terminal ? ARRAY_LEN(passed_on) : 6); i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

static void add_relay(struct streams *s, int from, int to, bool input)
{
	int other = input ? from : to;
	struct relay *r = &s->relays[s->relay_count++];
	struct stat st = { 0 };

	fcntl(input ? to : from, F_SETFL, O_NONBLOCK);
	fstat(other, &st);
	*r = (struct relay){ .from_fd = from,
			     .to_fd = to,
			     .own_from = !input,
			     .own_to = input,
			     .copied = true,
			     .from_file = input && S_ISREG(st.st_mode),
			     .to_type = input ? 0 : st.st_mode & S_IFMT,
			     .clean = !input && isatty(other) };
}

/* Signals that are about our own terminal. */
static bool on_job_signal(struct session *s, int signal)
{
	if (signal == SIGWINCH)
		console_resize(s->console);
	else if (signal == SIGCONT)
		console_resume(s->console);
	else if (signal == SIGTSTP || signal == SIGTTIN)
		console_suspend(s->console, signal, false);
	else
		return signal == SIGTTOU;
	return true;
}

static void on_signal(struct session *s)
{
	struct signalfd_siginfo info;
	struct ward_err ignored = { 0 };

	if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (s->console && on_job_signal(s, (int)info.ssi_signo))
		return;
	if (s->forensic.pid) { /* which is seen by itself */
		(void)kill(s->forensic.pid, SIGKILL);
		return;
	}
	if (info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2 && ++s->asked >= IMPATIENT) {
		s->over = true;
		s->code = 128 + (int)info.ssi_signo;
	} else if (client_send(&s->client, CONTROL_SIGNAL, 0, (int32_t)info.ssi_signo, 0,
			       &ignored) < 0) {
		return; /* the end of the connection is seen by itself */
	}
}

static void on_answer(struct session *s, const struct options *o)
{
	struct client_answer a;
	struct ward_err e = { 0 };

	if (client_receive(&s->client, &a, 0, &e) < 0) {
		s->over = true;
		s->code = say_error(&e, o->json, e.code == ESRCH ? 137 : EXIT_REFUSED);
	} else if (a.message.op == CONTROL_EXITED) {
		s->over = true;
		s->code = a.message.a & 0xff;
	} else if (a.message.op == CONTROL_STOPPED) {
		if (s->console && console_in_front(s->console)) {
			console_suspend(s->console, SIGTSTP, true);
			(void)!client_send(&s->client, CONTROL_SIGNAL, 0, SIGCONT, 0, &e);
		}
	} else if (a.message.op == CONTROL_FAILED) {
		s->over = true;
		ward_fail(&e, a.message.a, "%s", strerror(a.message.a));
		if (a.message.b == EXIT_REFUSED)
			ward_wrap(&e, "starting %s in the sandbox%s%s", o->words[1],
				  o->cwd ? " in " : "", o->cwd ? o->cwd : "");
		else
			ward_wrap(&e, "running %s inside", o->words[1]);
		s->code = say_error(&e, o->json, a.message.b & 0xff);
	}
}

static void move_once(struct session *s, const struct options *o)
{
	struct pollfd polled[3 + STREAMS_POLLS + CONSOLE_POLLS];
	size_t relays = streams_poll(&s->streams, polled + 3), count = 3 + relays;

	polled[0] = (struct pollfd){ .fd = s->forensic.pid ? s->forensic.pid_fd : s->client.fd,
				     .events = POLLIN };
	polled[1] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	polled[2] = (struct pollfd){ .fd = box_ask_fd(&s->ask), .events = POLLIN };
	if (s->console) {
		console_poll(s->console, polled + count);
		count += CONSOLE_POLLS;
	}
	if (poll(polled, count, s->console ? console_wait_ms(s->console) : -1) < 0)
		return;
	if (polled[1].revents)
		on_signal(s);
	if (polled[2].revents)
		box_ask_handle(&s->ask);
	streams_move(&s->streams, polled + 3, relays);
	if (s->console) {
		console_move(s->console, polled + 3 + relays);
		if (console_hung_up(s->console)) {
			s->over = true;
			s->code = 128 + SIGHUP;
		}
	}
	if (polled[0].revents && s->forensic.pid) {
		s->over = true;
		s->code = forensic_end(&s->forensic);
	} else if (polled[0].revents) {
		on_answer(s, o);
	}
}

/* Whether something that the command wrote is still on its way. Others that it left behind may go
 * on writing. */
static bool has_more(const struct streams *s)
{
	for (size_t i = 0; i < s->relay_count; i++) {
		const struct relay *r = &s->relays[i];
		int waiting = 0;

		if (!r->own_from || r->from_fd < 0)
			continue;
		if (r->done < r->pending.len ||
		    (ioctl(r->from_fd, FIONREAD, &waiting) == 0 && waiting > 0))
			return true;
	}
	return false;
}

static void drain(struct session *s)
{
	for (size_t i = 0; i < s->streams.relay_count; i++)
		if (!s->streams.relays[i].own_from)
			s->streams.relays[i].from_fd = -1; /* no process reads the input */
	while (s->asked < IMPATIENT && has_more(&s->streams)) {
		struct pollfd polled[STREAMS_POLLS + 1];
		size_t relays = streams_poll(&s->streams, polled);

		polled[relays] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
		if (poll(polled, relays + 1, -1) < 0)
			continue;
		if (polled[relays].revents) {
			struct signalfd_siginfo info;

			s->asked += read(s->signal_fd, &info, sizeof(info)) > 0 ? IMPATIENT : 0;
		}
		streams_move(&s->streams, polled, relays);
	}
}

/* The same for a terminal. */
static void drain_console(struct session *s)
{
	struct pollfd polled[CONSOLE_POLLS];

	console_end(s->console);
	for (;;) {
		console_poll(s->console, polled);
		if ((polled[0].fd < 0 && polled[1].fd < 0) ||
		    poll(polled, CONSOLE_POLLS, 2000) == 0)
			break;
		console_move(s->console, polled);
	}
	console_destroy(s->console);
}

/* NAME stands for the caller's own value. */
static int gather_env(const struct options *o, struct strv *env, struct ward_err *e)
{
	for (size_t i = 0; i < o->field_count; i++) {
		const char *value = o->fields[i].value;
		const char *own;

		if (strchr(value, '=') && value[0] != '=') {
			strv_add(env, value);
			continue;
		}
		own = *value == '=' || !*value ? NULL : getenv(value);
		if (!own)
			return ward_fail(e, EINVAL, "--env %.80s: the variable is not set", value);
		strv_addf(env, "%s=%s", value, own);
	}
	if (o->tty && getenv("TERM"))
		strv_addf(env, "TERM=%s", getenv("TERM"));
	return env->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int open_console(struct session *s, const struct client_answer *a, struct ward_err *e)
{
	const struct console_config config = { .master_fd = a->fds[0], .slave_fd = a->fds[1] };

	return console_create(&config, &s->console, e);
}

/* input -1: none is passed on. */
static void add_relays(struct session *s, int input, int output, int error)
{
	if (input >= 0)
		add_relay(&s->streams, STDIN_FILENO, input, true);
	add_relay(&s->streams, output, STDOUT_FILENO, false);
	add_relay(&s->streams, error, STDERR_FILENO, false);
}

static int look(struct session *s, const struct options *o, const struct box_info *box,
		const struct strv *env, struct ward_err *e)
{
	int r = forensic_start(o, box, env, &s->forensic, e);

	if (r == 0)
		add_relays(s, s->forensic.fds[0], s->forensic.fds[1], s->forensic.fds[2]);
	return r;
}

static int start(struct session *s, const struct options *o, struct ward_err *e)
{
	auto_strv env = { 0 };
	struct control_exec x = { .flags = o->tty     ? CONTROL_TERMINAL
					   : o->input ? CONTROL_INPUT
						      : 0,
				  .cwd = o->cwd ? o->cwd : "",
				  .argv = o->words + 1 };
	struct client_answer a = { 0 };
	struct box_info box = { 0 };
	int r = gather_env(o, &env, e);

	x.env = env.items;
	if (r == 0)
		r = client_find_alive(o->words[0], &box, e);
	if (r == 0 && o->forensic) {
		r = look(s, o, &box, &env, e);
		box_info_clear(&box);
		return r;
	}
	if (r == 0)
		r = client_connect(&box, &s->client, e);
	box_info_clear(&box);
	if (r == 0)
		r = client_send_exec(&s->client, &x, e);
	if (r == 0)
		r = client_receive(&s->client, &a, CLIENT_ANSWER_MS, e);
	if (r < 0)
		return r;
	if (a.message.op != CONTROL_STARTED || a.fd_count != (o->input && !o->tty ? 3 : 2))
		return ward_fail(e, EPROTO, "the sandbox sent an unexpected answer");
	if (!o->tty) {
		size_t first = o->input ? 1 : 0;

		add_relays(s, o->input ? a.fds[0] : -1, a.fds[first], a.fds[first + 1]);
		return 0;
	}
	r = open_console(s, &a, e);
	if (r == 0)
		box_ask_begin(&s->ask, o->words[0], s->console);
	return r;
}

int verb_exec(struct options *o)
{
	struct session s = { .client = NO_CLIENT,
			     .ask.watch = NO_CLIENT,
			     .forensic = NO_FORENSIC,
			     .signal_fd = -1,
			     .streams = { .inside = { -1, -1, -1 }, .unread_fd = -1 } };
	struct ward_err e = { 0 };

	if (strcmp(o->words[1], "--") == 0) {
		o->words[1] = o->words[0];
		o->words++;
		o->word_count--;
	}
	if (!o->words[1]) {
		ward_fail(&e, EINVAL, "no command given");
		return say_usage(&e, o);
	}
	if (take_signals(&s, o->tty) < 0) {
		ward_fail_errno(&e, "cannot receive signals");
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	if (start(&s, o, &e) < 0) {
		s.code = say_error(&e, o->json, EXIT_REFUSED);
	} else {
		while (!s.over)
			move_once(&s, o);
		drain(&s);
		if (s.console)
			drain_console(&s);
		streams_finish(&s.streams);
	}
	box_ask_end(&s.ask);
	client_close(&s.client);
	close(s.signal_fd);
	return s.code;
}
