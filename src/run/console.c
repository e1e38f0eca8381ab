/*
 * The operator's side of a terminal inside a sandbox. In: the two ends of a pseudo terminal in the
 * sandbox's devpts, and our own 0-2. Out: bytes in both directions; what goes to a terminal passes
 * the filter of base/terminal.c. Runs in ward with the user's rights; the operator's terminal is
 * never passed into the sandbox, which has only the inner end of its own pseudo terminal.
 *
 * While we are in the foreground the operator's terminal is raw, so that Ctrl-C, Ctrl-Z and Ctrl-D
 * are bytes for the line discipline inside. In the background it is neither changed nor read;
 * output is shown, as with any job. A keeper (guest/keeper.c) restores it if we are killed. We keep
 * the inner end open, too: without it the outer end would report a hangup whenever no process
 * inside has the terminal open. Questions of ward's own come between the two (console_ask.c).
 */
#include "run/console.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/io.h"
#include "base/terminal.h"
#include "host/sidecar.h"
#include "protocol/guest.h"
#include "run/console_internal.h"
#include "term/prompt.h"

#define CHUNK_BYTES 4096
#define REST_ROUNDS 64
#define TYPED_MAX 65536 /* that wait for a program, while a question is shown */

unsigned console_terminals(void)
{
	unsigned mask = 0;

	for (int i = 0; i < 3; i++)
		mask |= isatty(i) ? 1U << i : 0;
	return mask & 3 ? mask : 0;
}

/* ---- the operator's terminal ---- */

static bool is_same_terminal(int a, int b)
{
	unsigned first = 0, second = 0;

	return ioctl(a, TIOCGDEV, &first) == 0 && ioctl(b, TIOCGDEV, &second) == 0 &&
	       first == second;
}

/* An open file description of our own, so that it can be non-blocking: a stopped terminal must not
 * block us. */
static int open_own(int fd)
{
	int flags = O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	auto_fd tty = open("/dev/tty", flags);
	char path[32];

	if (tty >= 0 && is_same_terminal(tty, fd))
		return take_fd(&tty);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags);
}

bool console_is_foreground(int tty_fd)
{
	pid_t group = tcgetpgrp(tty_fd);

	/* not our controlling terminal: there is no job control on it that we could hurt */
	return group < 0 || group == getpgrp();
}

void console_look(struct console_shape *shape)
{
	unsigned mask = console_terminals();
	int fd = mask & 1 ? 0 : 1;

	*shape = (struct console_shape){ .size = { 24, 80 } };
	if (!mask)
		return;
	/* in the background the modes belong to the foreground job: an editor, or a shell's line
	 * editor */
	shape->has_modes = console_is_foreground(fd) && ioctl(fd, TCGETS, shape->modes) == 0;
	(void)ioctl(fd, TIOCGWINSZ, shape->size);
}

static void find_operator(struct console *c)
{
	unsigned mask = console_terminals();
	int fd = mask & 1 ? 0 : 1;
	struct stat st;

	if (!mask) {
		c->in_fd = STDIN_FILENO;
		c->out_fd = STDOUT_FILENO;
		c->out_type = fstat(c->out_fd, &st) == 0 ? st.st_mode & S_IFMT : 0;
		return;
	}
	c->tty_fd = open_own(fd);
	c->own_tty = c->tty_fd >= 0;
	if (!c->own_tty)
		c->tty_fd = fd; /* another user's terminal, after su */
	c->in_fd = c->out_fd = c->tty_fd;
	c->shared = !(mask & 2);
}

bool console_in_front(const struct console *c)
{
	return c->tty_fd >= 0 && console_is_foreground(c->tty_fd);
}

/* ---- raw and back ---- */

void console_tell_keeper(struct console *c, bool keep)
{
	struct guest_terminal word = { .keep = keep };
	auto_buf undo = { 0 };

	c->known = terminal_lasting(&c->filter);
	if (c->keeper.pid <= 0)
		return;
	if (keep) {
		console_ask_undo(c, &undo);
		terminal_undo(&c->filter, true, &undo);
		memcpy(word.modes, c->kernel_modes, sizeof(word.modes));
		word.reset_len = (uint32_t)(undo.len < sizeof(word.reset) ? undo.len : 0);
		memcpy(word.reset, buf_text(&undo), word.reset_len);
	}
	(void)!send(c->keeper.end_fd, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Writes a few bytes of ward's own to the operator's terminal, unless it would block. */
static void show(struct console *c, const struct buf *text)
{
	if (text->len)
		(void)!write(c->tty_fd, text->data, text->len);
}

void console_resize(struct console *c)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	if (c->tty_fd >= 0 && ioctl(c->tty_fd, TIOCGWINSZ, &size) < 0)
		return;
	c->filter.cursor.rows = size.ws_row;
	c->filter.cursor.cols = size.ws_col;
	(void)ioctl(c->master_fd, TIOCSWINSZ, &size);
	if (c->prompt)
		prompt_resize(c->prompt, size.ws_row ? size.ws_row : 24,
			      size.ws_col ? size.ws_col : 80);
}

/* Takes the operator's terminal, if we are in its foreground. */
static void take_terminal(struct console *c)
{
	auto_buf redo = { 0 };
	struct termios raw;

	if (c->raw || c->ending || !console_in_front(c) || tcgetattr(c->tty_fd, &c->saved) < 0 ||
	    ioctl(c->tty_fd, TCGETS, c->kernel_modes) < 0)
		return;
	raw = c->saved;
	cfmakeraw(&raw);
	if (c->shared) /* the program that reads our output writes to the terminal */
		raw.c_oflag = c->saved.c_oflag;
	console_tell_keeper(c, true);
	if (tcsetattr(c->tty_fd, TCSANOW, &raw) < 0)
		return;
	c->raw = true;
	c->filter.no_input = false;
	/* for a program that began in the background or was stopped */
	terminal_redo(&c->filter, &redo);
	show(c, &redo);
	console_resize(c);
	console_ask_take(c);
}

/* Restores the operator's terminal. */
static void give_terminal(struct console *c)
{
	auto_buf undo = { 0 };

	if (c->tty_fd < 0)
		return;
	if (c->raw || console_in_front(c)) {
		console_ask_undo(c, &undo);
		terminal_undo(&c->filter, false, &undo);
		show(c, &undo);
	}
	if (c->raw) {
		if (terminal_types(&c->filter))
			/* late answers of the terminal must not become input of the shell */
			(void)tcflush(c->tty_fd, TCIFLUSH);
		(void)tcsetattr(c->tty_fd, TCSANOW, &c->saved);
	}
	c->raw = false;
	c->filter.no_input = true;
	console_tell_keeper(c, false);
}

void console_resume(struct console *c)
{
	struct termios now;

	if (c->raw && tcgetattr(c->tty_fd, &now) == 0 && now.c_lflag & (ICANON | ECHO))
		/* the shell had the terminal meanwhile: take the operator's modes anew */
		c->raw = false;
	take_terminal(c);
}

/* ---- bytes ---- */

/* The input has ended: types Ctrl-D, twice if a line is incomplete. */
static void end_input(struct console *c)
{
	struct termios inside;

	if (c->tty_fd >= 0) {
		c->hung_up = true;
	} else if (tcgetattr(c->master_fd, &inside) == 0 && inside.c_lflag & ICANON) {
		char end[2] = { (char)inside.c_cc[VEOF], (char)inside.c_cc[VEOF] };

		buf_add(&c->in, end, c->last_typed == '\n' ? 1 : 2);
	}
	c->in_fd = -1;
}

static void read_input(struct console *c)
{
	char data[CHUNK_BYTES];
	ssize_t n = read(c->in_fd, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 && c->tty_fd >= 0 && !console_in_front(c)) {
		c->raw = false; /* another process took the terminal: the modes are its own */
		c->filter.no_input = true;
		console_ask_give(c);
		console_tell_keeper(c, false);
		return;
	}
	if (n <= 0) {
		end_input(c);
		return;
	}
	c->last_typed = data[n - 1];
	if (c->prompt)
		console_ask_keys(c, data, (size_t)n);
	else
		buf_add(&c->in, data, (size_t)n);
}

static void write_input(struct console *c)
{
	ssize_t n = write(c->master_fd, c->in.data + c->in_done, c->in.len - c->in_done);

	if (n > 0)
		c->in_done += (size_t)n;
	if (c->in_done == c->in.len || (n < 0 && errno != EAGAIN && errno != EINTR))
		c->in.len = c->in_done = 0;
}

/* Answers to queries are typed into the sandbox, but only while a program reads them. */
static void type_answers(struct console *c)
{
	if (c->in.len - c->in_done < CHUNK_BYTES)
		buf_add(&c->in, c->filter.answer, c->filter.answer_len);
	c->filter.answer_len = 0;
}

/* Nothing more will come. */
static void end_output(struct console *c)
{
	own_close_fd(&c->master_fd);
	c->master_fd = -1;
}

static void read_output(struct console *c)
{
	char data[CHUNK_BYTES];
	ssize_t n = read(c->master_fd, data, sizeof(data));
	auto_buf seen = { 0 };

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (c->ending && errno == EAGAIN)
			/* the kernel reports the hangup only after all output */
			end_output(c);
		return;
	}
	if (n <= 0) {
		end_output(c);
		return;
	}
	c->out_bytes += (size_t)n;
	if (c->tap)
		c->tap(c->tap_ctx, data, (size_t)n);
	if (c->heard)
		tail_add(c->heard, data, (size_t)n);
	c->out.len = c->out_done = 0;
	if (c->unfiltered) {
		/* the filter knows what must be undone */
		terminal_filter(&c->filter, data, (size_t)n, &seen);
		buf_add(&c->out, data, (size_t)n);
	} else if (c->prompt) {
		terminal_filter(&c->filter, data, (size_t)n, &seen);
		prompt_show(c->prompt, buf_text(&seen), seen.len, io_now_ms(), &c->out);
	} else {
		terminal_filter(&c->filter, data, (size_t)n, &c->out);
	}
	type_answers(c);
	if (c->raw && terminal_lasting(&c->filter) != c->known)
		console_tell_keeper(c, true);
	if (c->out.failed || c->out_fd < 0)
		c->out.len = 0; /* the terminal is gone */
}

static void write_output(struct console *c)
{
	ssize_t n = io_write_some(c->out_fd, c->out_type, c->out.data + c->out_done,
				  c->out.len - c->out_done);

	if (n > 0)
		c->out_done += (size_t)n;
	if (n >= 0 || errno == EAGAIN || errno == EINTR)
		return;
	c->out_fd = -1;
	c->out.len = c->out_done = 0;
	c->hung_up = true;
}

void console_poll(struct console *c, struct pollfd *polled)
{
	bool typed, shown, alternate;

	if (!c->raw && c->tty_fd >= 0)
		take_terminal(c);
	console_ask_on_time(c);
	typed = c->in_done < c->in.len;
	shown = c->out_done < c->out.len;
	polled[0] = (struct pollfd){ .fd = typed                     ? c->master_fd
					   : c->tty_fd < 0 || c->raw ? c->in_fd
								     : -1,
				     .events = typed ? POLLOUT : POLLIN };
	if (c->ending)
		polled[0].fd = -1;
	polled[1] = (struct pollfd){ .fd = shown ? c->out_fd : c->master_fd,
				     .events = shown ? POLLOUT : POLLIN };
	if (!shown && c->prompt && prompt_is_full(c->prompt))
		polled[1].fd = -1;
	/* a program that does not read keeps nobody from answering */
	polled[2] = (struct pollfd){ .fd = -1, .events = POLLIN };
	if (typed && c->raw && !c->ending && c->prompt && prompt_is_shown(c->prompt, &alternate) &&
	    c->in.len - c->in_done < TYPED_MAX)
		polled[2].fd = c->in_fd;
}

void console_move(struct console *c, const struct pollfd *polled)
{
	if (polled[0].fd >= 0 && polled[0].revents) {
		if (c->in_done == c->in.len) {
			c->in.len = c->in_done = 0;
			read_input(c);
		}
		if (c->in_done < c->in.len && c->master_fd >= 0)
			write_input(c);
	}
	if (polled[2].fd >= 0 && polled[2].revents)
		read_input(c);
	if (polled[1].fd >= 0 && polled[1].revents) {
		if (c->out_done == c->out.len)
			read_output(c);
		if (c->out_done < c->out.len)
			write_output(c);
	}
}

/* Shows what the sandbox has written so far, without blocking: it belongs before the shell's
 * prompt. */
static void show_rest(struct console *c)
{
	for (int i = 0; i < REST_ROUNDS && c->master_fd >= 0; i++) {
		struct pollfd polled[CONSOLE_POLLS];

		console_poll(c, polled);
		polled[0].fd = polled[2].fd = -1;
		if (poll(polled, CONSOLE_POLLS, 0) <= 0)
			return;
		console_move(c, polled);
	}
}

void console_suspend(struct console *c, int signal, bool group)
{
	sigset_t one, old;

	if (c) {
		console_ask_give(c);
		show_rest(c);
		give_terminal(c);
	}
	sigemptyset(&one);
	sigaddset(&one, signal);
	(void)kill(group ? 0 : getpid(), signal);
	/* we are stopped here, unless no job-control shell could continue us */
	sigprocmask(SIG_UNBLOCK, &one, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (c)
		take_terminal(c);
}

int console_wait_ms(const struct console *c)
{
	int ask_ms = console_ask_wait_ms(c);
	bool looks = c->tty_fd >= 0 && !c->raw && !c->ending;

	return !looks ? ask_ms : ask_ms >= 0 && ask_ms < CONSOLE_LOOK_MS ? ask_ms : CONSOLE_LOOK_MS;
}

uint64_t console_out_bytes(const struct console *c)
{
	return c->out_bytes;
}

bool console_hung_up(struct console *c)
{
	bool now = c->hung_up && !c->reported_hung_up;

	c->reported_hung_up |= now;
	return now;
}

/* ---- the life of it ---- */

bool console_knows_utf8(int tty_fd)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	struct termios modes;

	if (tcgetattr(tty_fd, &modes) == 0 && modes.c_iflag & IUTF8)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
	}
	return false;
}

static void start_keeper(struct console *c)
{
	static const char *const argv[] = { "ward-keeper", NULL };

	/* without a keeper the terminal stays raw only if we are killed */
	(void)!sidecar_start(&c->keeper, argv, &c->tty_fd, 1);
}

int console_create(const struct console_config *config, struct console **ret_console,
		   struct ward_err *e)
{
	struct console *c = calloc(1, sizeof(*c));

	if (!c) {
		close(config->master_fd);
		if (config->slave_fd >= 0)
			close(config->slave_fd);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	*c = (struct console){ .tty_fd = -1,
			       .master_fd = config->master_fd,
			       .slave_fd = config->slave_fd,
			       .tap = config->tap,
			       .tap_ctx = config->tap_ctx,
			       .unfiltered = config->unfiltered,
			       .heard = config->heard,
			       .last_typed = '\n',
			       .keeper = { .end_fd = -1 } };
	find_operator(c);
	c->filter.no_input = true;
	c->filter.answers = (!c->unfiltered || c->tty_fd < 0) && !config->no_answers;
	c->filter.bytes_only = c->tty_fd >= 0 && !console_knows_utf8(c->tty_fd);
	if (c->tty_fd < 0)
		c->unfiltered = true; /* a file or a pipe gets the bytes as they are */
	(void)fcntl(c->master_fd, F_SETFL, O_NONBLOCK);
	console_resize(c);
	if (c->tty_fd >= 0)
		start_keeper(c);
	take_terminal(c);
	*ret_console = c;
	return 0;
}

void console_end(struct console *c)
{
	console_ask_give(c);
	c->ending = true;
	own_close_fd(&c->slave_fd);
	c->slave_fd = -1;
}

void console_destroy(struct console *c)
{
	if (!c)
		return;
	give_terminal(c);
	sidecar_dismiss(&c->keeper);
	if (c->own_tty)
		close(c->tty_fd);
	own_close_fd(&c->master_fd);
	own_close_fd(&c->slave_fd);
	buf_free(&c->in);
	buf_free(&c->out);
	prompt_destroy(c->prompt);
	free(c);
}
