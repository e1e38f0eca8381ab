/*
 * A command in a sandbox of the server: exec. In: the command; with -i what is typed. Out: its
 * output as it comes, its exit status. What goes to a terminal passes the filter; into a pipe or
 * file goes every byte. SIGINT, SIGTERM and the like are a SIGTERM for the command; the third one
 * leaves without waiting. With -t the command has a terminal of the sandbox's, and this one is raw
 * meanwhile.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "base/terminal.h"
#include "base/text.h"
#include "envd/base64.h"
#include "envd/envelope.h"
#include "remote/http.h"
#include "remote/stream.h"

#define IMPATIENT 3
#define INPUT_PIECE 65536
#define CODE_GONE 137

struct session {
	struct remote *remote;
	struct http_box box;
	CURLM *multi;
	struct http_request out, in; /* the stream; input that is on its way */
	bool sending, input_open, started, ended, over, bad;
	struct buf kept; /* of the stream: a message that is not complete */
	struct terminal filter[2];
	bool filtered[2];
	uint64_t pid;
	int code, signal_fd;
	unsigned asked;
	struct ward_err e;
	struct termios before;
	bool raw;
};

/* -- what comes */

static void put(struct session *s, int fd, const char *bytes, size_t n)
{
	auto_buf shown = { 0 };
	bool filtered = s->filtered[fd - 1];

	if (filtered)
		terminal_filter(&s->filter[fd - 1], bytes, n, &shown);
	(void)!io_write_all(fd, filtered ? buf_text(&shown) : bytes, filtered ? shown.len : n);
}

static void put_data(struct session *s, const struct values *v, const struct value *data)
{
	static const struct {
		const char *name;
		int fd;
	} streams[] = { { "stdout", 1 }, { "stderr", 2 }, { "pty", 1 } };

	for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
		const char *text = value_text(v, data, streams[i].name);
		auto_buf bytes = { 0 };

		if (*text && base64_read(text, strlen(text), &bytes))
			put(s, streams[i].fd, buf_text(&bytes), bytes.len);
	}
}

static void take_event(struct session *s, const struct values *v, const struct value *event)
{
	const struct value *end = value_get(v, event, "end"), *start = value_get(v, event, "start");

	if (start) {
		s->pid = value_uint(v, start, "pid");
		s->started = true;
	}
	put_data(s, v, value_get(v, event, "data"));
	if (end) {
		s->code = stream_exit_code(v, end);
		s->ended = true;
	}
}

static void take_message(struct session *s, const struct stream_message *m)
{
	struct values v = { 0 };
	const struct value *error;

	if (values_read(m->body, m->n, &v) < 0) {
		s->bad = true;
		return;
	}
	error = value_get(&v, v.items, "error");
	if (m->flags & STREAM_END && error) {
		auto_buf said = { 0 };

		text_escape(&said, value_text(&v, error, "message"));
		ward_fail(&s->e, EIO, "%.600s", buf_text(&said));
	} else if (!(m->flags & STREAM_END)) {
		take_event(s, &v, value_get(&v, v.items, "event"));
	}
	values_free(&v);
}

static size_t take_stream(char *bytes, size_t size, size_t count, void *to)
{
	struct session *s = to;
	struct stream_message m;
	size_t n = size * count, at = 0;
	long status = 0;
	int found;

	curl_easy_getinfo(s->out.curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) { /* an error's message */
		buf_add(&s->out.reply.body, bytes, n);
		return s->out.reply.body.len > 65536 ? 0 : n;
	}
	buf_add(&s->kept, bytes, n);
	while ((found = stream_read((const uint8_t *)buf_text(&s->kept) + at, s->kept.len - at,
				    &m)) > 0) {
		take_message(s, &m);
		at += m.used;
	}
	if (at) {
		memmove(s->kept.data, s->kept.data + at, s->kept.len - at);
		s->kept.len -= at;
	}
	s->bad |= found < 0 || s->kept.failed;
	return s->bad ? 0 : n;
}

/* -- what goes */

static void put_process(const struct session *s, struct json *j)
{
	json_begin_object(j, "process");
	json_uint(j, "pid", s->pid);
	json_end_object(j);
}

static void send_input(struct session *s, const char *method, const char *bytes, size_t n)
{
	auto_buf body = { 0 }, text = { 0 };
	struct json j = { .out = &body };
	struct ward_err e = { 0 };
	char path[64];

	json_begin_object(&j, NULL);
	put_process(s, &j);
	if (n) {
		base64_write(bytes, n, &text);
		json_begin_object(&j, "input");
		json_string(&j, s->remote->tty ? "pty" : "stdin", buf_text(&text));
		json_end_object(&j);
	}
	json_end_object(&j);
	snprintf(path, sizeof(path), "/process.Process/%s", method);
	if (http_begin(s->remote->http, "POST", path, &s->box, "application/json", body.data,
		       body.len, &s->in, &e) < 0)
		return;
	s->sending = true;
	curl_multi_add_handle(s->multi, s->in.curl);
}

static void read_input(struct session *s)
{
	char bytes[INPUT_PIECE];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n > 0) {
		send_input(s, "SendInput", bytes, (size_t)n);
	} else if (n == 0 || errno != EINTR) {
		s->input_open = false;
		if (s->remote->tty)
			send_input(s, "SendInput", "\004", 1);
		else
			send_input(s, "CloseStdin", NULL, 0);
	}
}

static void tell(struct session *s, const char *method, const char *what)
{
	struct ward_err ignored = { 0 };
	auto_buf body = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/process.Process/%s", method);
	buf_printf(&body, "{\"process\":{\"pid\":%llu},%s}", (unsigned long long)s->pid, what);
	(void)!http_call(s->remote->http, "POST", path, &s->box, buf_text(&body), NULL, &ignored);
}

static struct winsize window(void)
{
	struct winsize w = { 0 };

	for (int fd = 0; fd < 3; fd++)
		if (ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col)
			return w;
	return (struct winsize){ .ws_row = 24, .ws_col = 80 };
}

static void on_signal(struct session *s)
{
	struct signalfd_siginfo info;
	char size[64];

	if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		const struct winsize w = window();

		snprintf(size, sizeof(size), "\"pty\":{\"size\":{\"rows\":%u,\"cols\":%u}}",
			 w.ws_row, w.ws_col);
		if (s->remote->tty)
			tell(s, "Update", size);
	} else if (++s->asked >= IMPATIENT) {
		s->over = s->ended = true;
		s->code = 128 + (int)info.ssi_signo;
	} else {
		tell(s, "SendSignal", "\"signal\":\"SIGNAL_SIGTERM\"");
	}
}

/* -- the session */

static int put_env(const struct remote *r, struct json *j, struct ward_err *e)
{
	json_begin_object(j, "envs");
	for (size_t i = 0; i < r->envs.len; i++) {
		char *item = r->envs.items[i], *equals = strchr(item, '=');
		const char *value = equals ? equals + 1 : getenv(item);

		if (!value || equals == item)
			return ward_fail(e, EINVAL, "--env %.80s: the variable is not set", item);
		if (equals)
			*equals = '\0';
		json_string(j, item, value);
	}
	if (r->tty && getenv("TERM"))
		json_string(j, "TERM", getenv("TERM"));
	json_end_object(j);
	return 0;
}

static int put_request(const struct remote *r, char **command, struct buf *out, struct ward_err *e)
{
	const struct winsize w = window();
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_begin_object(&j, "process");
	json_string(&j, "cmd", command[0]);
	json_begin_array(&j, "args");
	for (char **at = command + 1; *at; at++)
		json_string(&j, NULL, *at);
	json_end_array(&j);
	if (put_env(r, &j, e) < 0)
		return -EINVAL;
	if (r->cwd)
		json_string(&j, "cwd", r->cwd);
	json_end_object(&j);
	if (r->tty) {
		json_begin_object(&j, "pty");
		json_begin_object(&j, "size");
		json_uint(&j, "rows", w.ws_row);
		json_uint(&j, "cols", w.ws_col);
		json_end_object(&j);
		json_end_object(&j);
	}
	json_bool(&j, "stdin", r->input || r->tty);
	json_end_object(&j);
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static void begin_terminal(struct session *s)
{
	struct termios t;

	for (int fd = 1; fd < 3; fd++) {
		s->filtered[fd - 1] = isatty(fd);
		s->filter[fd - 1].no_input = !s->remote->tty;
		s->filter[fd - 1].bytes_only = tcgetattr(fd, &t) == 0 && !(t.c_iflag & IUTF8);
	}
	if (!s->remote->tty || tcgetattr(STDIN_FILENO, &s->before) < 0)
		return;
	t = s->before;
	cfmakeraw(&t);
	s->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
}

static void end_terminal(struct session *s)
{
	for (int fd = 1; fd < 3; fd++) {
		auto_buf undo = { 0 };

		if (s->filtered[fd - 1])
			terminal_undo(&s->filter[fd - 1], false, &undo);
		(void)!io_write_all(fd, buf_text(&undo), undo.len);
	}
	if (s->raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
}

static int take_signals(struct session *s)
{
	static const int taken[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		sigaddset(&set, taken[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

/* Requests that have come to their end. */
static void reap(struct session *s)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(s->multi, &left))) {
		struct ward_err ignored = { 0 };

		if (m->msg != CURLMSG_DONE)
			continue;
		if (s->sending && m->easy_handle == s->in.curl) {
			/* a command that reads no more is none of our errors */
			if (http_result(&s->in, m->data.result, &ignored) < 0)
				s->input_open = false;
			curl_multi_remove_handle(s->multi, s->in.curl);
			http_end(&s->in);
			s->sending = false;
			continue;
		}
		s->over = true;
		if (!s->ended && !s->e.code && !s->bad && s->started)
			ward_fail(&s->e, ESRCH, "the sandbox ended, or was paused");
		else if (!s->ended && !s->e.code)
			(void)!http_result(&s->out, m->data.result, &s->e);
	}
}

static void move_once(struct session *s)
{
	struct curl_waitfd fds[2] = { { .fd = s->signal_fd, .events = CURL_WAIT_POLLIN },
				      { .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN } };
	bool listens = s->input_open && s->started && !s->sending;
	int running;

	(void)curl_multi_perform(s->multi, &running);
	reap(s);
	if (s->over)
		return;
	(void)curl_multi_poll(s->multi, fds, listens ? 2 : 1, 1000, NULL);
	if (fds[0].revents)
		on_signal(s);
	if (listens && fds[1].revents)
		read_input(s);
}

static int start(struct session *s, char **command, struct ward_err *e)
{
	struct remote *r = s->remote;
	auto_buf request = { 0 }, body = { 0 };
	char id[REMOTE_ID + 1];
	int result = put_request(r, command, &request, e);

	if (result == 0)
		result = remote_find(r, r->words[0], id, e);
	if (result == 0)
		result = http_open_box(r->http, id, &s->box, e);
	if (result < 0)
		return result;
	envelope_write(0, request.data, request.len, &body);
	s->multi = curl_multi_init();
	result = s->multi ? http_begin(r->http, "POST", "/process.Process/Start", &s->box,
				       "application/connect+json", body.data, body.len, &s->out, e)
			  : ward_fail(e, ENOMEM, "out of memory");
	if (result < 0)
		return result;
	curl_easy_setopt(s->out.curl, CURLOPT_WRITEFUNCTION, take_stream);
	curl_easy_setopt(s->out.curl, CURLOPT_WRITEDATA, s);
	curl_multi_add_handle(s->multi, s->out.curl);
	return 0;
}

static void finish(struct session *s)
{
	if (s->sending) {
		curl_multi_remove_handle(s->multi, s->in.curl);
		http_end(&s->in);
	}
	if (s->out.curl) {
		curl_multi_remove_handle(s->multi, s->out.curl);
		http_end(&s->out);
	}
	curl_multi_cleanup(s->multi);
	buf_free(&s->kept);
	own_close_fd(&s->signal_fd);
}

int remote_exec(struct remote *r)
{
	struct session s = { .remote = r, .signal_fd = -1, .input_open = r->input || r->tty };
	char **command = r->words + 1;
	int result;

	if (strcmp(command[0], "--") == 0)
		command++;
	if (!*command) {
		ward_fail(&s.e, EINVAL, "no command given");
		return say_error(&s.e, r->json, EXIT_USAGE);
	}
	result = take_signals(&s);
	if (result < 0)
		ward_fail(&s.e, -result, "cannot receive signals");
	else
		result = start(&s, command, &s.e);
	if (result == 0) {
		begin_terminal(&s);
		while (!s.over)
			move_once(&s);
		end_terminal(&s);
	}
	if (s.bad && !s.e.code)
		ward_fail(&s.e, EPROTO, "the server sent a stream of a form that is not known");
	finish(&s);
	if (s.ended)
		return s.code;
	result = s.e.code == ESRCH ? CODE_GONE : EXIT_REFUSED;
	return say_error(&s.e, r->json, result);
}
