/*
 * process.Process (process.h). In: messages of clients. Out: processes of the sandbox, their output
 * and their end as events. A process belongs to ward-envd, not to the request that started it: the
 * list has those that run, and for a minute those that have ended, so that a client that lost its
 * connection can ask how it went.
 */
#include "envd/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/io.h"
#include "envd/base64.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct process *list;

static void process_free(struct process *p)
{
	own_close_fd(&p->pid_fd);
	own_close_fd(&p->stdin_fd);
	own_close_fd(&p->pty_fd);
	own_close_fd(&p->out_fds[0]);
	own_close_fd(&p->out_fds[1]);
	for (size_t i = 0; i < p->subscriber_count; i++)
		stream_drop(p->subscribers[i].stream);
	free(p->subscribers);
	free(p->tag);
	free(p->config);
	buf_free(&p->end);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->listen_lock);
	free(p);
}

static void process_drop(struct process *p)
{
	bool last;

	pthread_mutex_lock(&list_lock);
	last = --p->count == 0;
	pthread_mutex_unlock(&list_lock);
	if (last)
		process_free(p);
}

/* Takes out of the list what has ended long ago. Under the list's lock. */
static struct process *take_old(void)
{
	struct process *old = NULL;
	uint64_t now = io_now_ms();

	for (struct process **at = &list; *at;) {
		struct process *p = *at;

		if (p->ended && now - p->ended_ms > PROCESS_KEPT_MS && p->count == 1) {
			*at = p->next;
			p->next = old;
			old = p;
		} else {
			at = &p->next;
		}
	}
	return old;
}

static void free_old(struct process *old)
{
	while (old) {
		struct process *next = old->next;

		process_free(old);
		old = next;
	}
}

static void list_add(struct process *p)
{
	struct process *old;

	pthread_mutex_lock(&list_lock);
	old = take_old();
	p->count++;
	p->next = list;
	list = p;
	pthread_mutex_unlock(&list_lock);
	free_old(old);
}

/* By its id, or by its tag. Held. */
static struct process *list_find(uint64_t pid, const char *tag)
{
	struct process *p;

	pthread_mutex_lock(&list_lock);
	for (p = list; p; p = p->next)
		if (tag ? p->tag && strcmp(p->tag, tag) == 0 : (uint64_t)p->pid == pid)
			break;
	if (p)
		p->count++;
	pthread_mutex_unlock(&list_lock);
	return p;
}

/* -- messages */

struct selector {
	uint64_t pid;
	struct buf tag;
	bool some;
};

static void read_selector(struct json_in *j, struct selector *s)
{
	struct json_level l;
	const char *key;

	if (!json_in_open(j, '{', &l))
		return;
	while (json_in_next(j, &l, &key))
		if (strcmp(key, "pid") == 0) {
			message_uint(j, &s->pid);
			s->some = true;
		} else if (strcmp(key, "tag") == 0) {
			message_string(j, &s->tag);
			s->some = true;
		} else {
			json_in_skip(j);
		}
}

struct request {
	struct selector process;
	struct buf input, signal;
	uint64_t rows, columns;
	bool to_pty, has_input, has_size;
};

static void read_size(struct json_in *j, uint64_t *rows, uint64_t *columns)
{
	struct json_level l, inner;
	const char *key;

	if (!json_in_open(j, '{', &l))
		return;
	while (json_in_next(j, &l, &key)) {
		if (strcmp(key, "size") != 0 || !json_in_open(j, '{', &inner)) {
			json_in_skip(j);
			continue;
		}
		while (json_in_next(j, &inner, &key))
			if (strcmp(key, "cols") == 0)
				message_uint(j, columns);
			else if (strcmp(key, "rows") == 0)
				message_uint(j, rows);
			else
				json_in_skip(j);
	}
}

static void read_input(struct json_in *j, struct request *r)
{
	struct json_level l;
	const char *key;

	if (!json_in_open(j, '{', &l))
		return;
	while (json_in_next(j, &l, &key)) {
		if (strcmp(key, "stdin") != 0 && strcmp(key, "pty") != 0) {
			json_in_skip(j);
			continue;
		}
		r->to_pty = *key == 'p';
		r->has_input = true;
		message_string(j, &r->input);
	}
}

static void request_free(struct request *r)
{
	buf_free(&r->process.tag);
	buf_free(&r->input);
	buf_free(&r->signal);
}

/* Reads the message and finds the process it names; NULL: the call's error is set. */
static struct process *read_request(struct call *c, struct request *r)
{
	struct json_in j;
	struct json_level l;
	struct process *p;
	const char *key;
	bool fine;

	json_in_init(&j, c->message, c->message_len);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key))
			if (strcmp(key, "process") == 0)
				read_selector(&j, &r->process);
			else if (strcmp(key, "input") == 0)
				read_input(&j, r);
			else if (strcmp(key, "signal") == 0 && json_in_peek(&j) == '"')
				message_string(&j, &r->signal);
			else if (strcmp(key, "signal") == 0) {
				const uint8_t *at = j.at;

				json_in_skip(&j);
				buf_add(&r->signal, at, (size_t)(j.at - at));
			} else if (strcmp(key, "pty") == 0) {
				read_size(&j, &r->rows, &r->columns);
				r->has_size = true;
			} else {
				json_in_skip(&j);
			}
	}
	fine = json_in_end(&j);
	json_in_free(&j);
	if (!fine || !r->process.some) {
		call_fail(c, RPC_INVALID_ARGUMENT, "not a message that names a process");
		return NULL;
	}
	p = list_find(r->process.pid, r->process.tag.len ? buf_text(&r->process.tag) : NULL);
	if (!p && r->process.tag.len)
		call_fail(c, RPC_NOT_FOUND, "process with tag %s not found",
			  buf_text(&r->process.tag));
	else if (!p)
		call_fail(c, RPC_NOT_FOUND, "process with pid %llu not found",
			  (unsigned long long)r->process.pid);
	return p;
}

/* -- methods */

int process_list(struct call *c)
{
	bool some = false;

	buf_puts(&c->answer, "{\"processes\":[");
	pthread_mutex_lock(&list_lock);
	for (struct process *p = list; p; p = p->next) {
		if (p->ended)
			continue;
		buf_printf(&c->answer, "%s{\"pid\":%d,", some ? "," : "", (int)p->pid);
		if (p->tag) {
			buf_puts(&c->answer, "\"tag\":");
			json_quote(&c->answer, p->tag);
			buf_puts(&c->answer, ",");
		}
		buf_puts(&c->answer, "\"config\":");
		buf_puts(&c->answer, p->config);
		buf_puts(&c->answer, "}");
		some = true;
	}
	pthread_mutex_unlock(&list_lock);
	buf_puts(&c->answer, "]}");
	return c->answer.failed ? call_fail(c, RPC_INTERNAL, "out of memory") : 0;
}

/* Writes all bytes; waits while the process does not read, as long as it lives and the client
 * does. */
static int feed(struct call *c, struct process *p, int fd, const struct buf *bytes)
{
	size_t at = 0;

	while (at < bytes->len) {
		struct pollfd polls[] = { { .fd = fd, .events = POLLOUT },
					  { .fd = stream_reset_fd(c->stream), .events = POLLIN } };
		ssize_t n = write(fd, bytes->data + at, bytes->len - at);

		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			return call_fail(c, RPC_INTERNAL, "the process does not read: %s",
					 strerror(errno));
		else if (p->ended || (poll(polls, 2, 1000) > 0 && polls[1].revents))
			return call_fail(c, RPC_INTERNAL, "the process has ended");
	}
	return 0;
}

int process_send_input(struct call *c)
{
	struct request r = { 0 };
	struct process *p = read_request(c, &r);
	auto_buf bytes = { 0 };
	int fd = -1, result = -1;

	if (p && !r.has_input) {
		call_fail(c, RPC_INVALID_ARGUMENT, "no input given");
	} else if (p && !base64_read(buf_text(&r.input), strlen(buf_text(&r.input)), &bytes)) {
		call_fail(c, RPC_INVALID_ARGUMENT, "the input is not base64");
	} else if (p) {
		pthread_mutex_lock(&p->lock);
		fd = r.to_pty ? p->pty_fd : p->stdin_fd;
		fd = fd >= 0 && !p->reaped ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
		pthread_mutex_unlock(&p->lock);
		result = fd >= 0 ? feed(c, p, fd, &bytes)
				 : call_fail(c, RPC_INTERNAL, "%s",
					     r.to_pty ? "the process has no terminal"
						      : "stdin is closed, or was not enabled");
	}
	own_close_fd(&fd);
	if (p)
		process_drop(p);
	request_free(&r);
	return result;
}

int process_close_stdin(struct call *c)
{
	struct request r = { 0 };
	struct process *p = read_request(c, &r);
	int result = p ? 0 : -1;

	if (p) {
		pthread_mutex_lock(&p->lock);
		if (p->pty)
			result = call_fail(c, RPC_FAILED_PRECONDITION,
					   "a terminal has no stdin to close; send ctrl-D");
		else
			own_close_fd(&p->stdin_fd);
		p->stdin_fd = p->pty ? p->stdin_fd : -1;
		pthread_mutex_unlock(&p->lock);
		process_drop(p);
	}
	request_free(&r);
	return result;
}

int process_send_signal(struct call *c)
{
	struct request r = { 0 };
	struct process *p = read_request(c, &r);
	const char *name = buf_text(&r.signal);
	int number = strcmp(name, "SIGNAL_SIGKILL") == 0 || strcmp(name, "9") == 0    ? SIGKILL
		     : strcmp(name, "SIGNAL_SIGTERM") == 0 || strcmp(name, "15") == 0 ? SIGTERM
										      : 0;
	int result = p ? 0 : -1;

	if (p && !number) {
		result = call_fail(c, RPC_INVALID_ARGUMENT, "not a signal that can be sent: %s",
				   name);
	} else if (p) {
		pthread_mutex_lock(&p->lock);
		if (p->reaped || p->killed) /* nothing outlives SIGKILL */
			result = call_fail(c, RPC_NOT_FOUND, "the process has ended");
		else if (kill(-p->pid, number) < 0 && kill(p->pid, number) < 0)
			result = call_fail(c, RPC_INTERNAL, "cannot send it: %s", strerror(errno));
		else
			p->killed |= number == SIGKILL;
		pthread_mutex_unlock(&p->lock);
	}
	if (p)
		process_drop(p);
	request_free(&r);
	return result;
}

int process_update(struct call *c)
{
	struct request r = { 0 };
	struct process *p = read_request(c, &r);
	struct winsize size = { .ws_row = (unsigned short)r.rows,
				.ws_col = (unsigned short)r.columns };
	int result = p ? 0 : -1;

	if (p && (!r.has_size || !r.rows || !r.columns || r.rows > 65535 || r.columns > 65535)) {
		result = call_fail(c, RPC_INVALID_ARGUMENT, "not a size of a terminal");
	} else if (p) {
		pthread_mutex_lock(&p->lock);
		if (p->pty_fd < 0)
			result = call_fail(c, RPC_FAILED_PRECONDITION,
					   "the process has no terminal");
		else if (ioctl(p->pty_fd, TIOCSWINSZ, &size) < 0)
			result = call_fail(c, RPC_INTERNAL, "%s", strerror(errno));
		pthread_mutex_unlock(&p->lock);
	}
	if (p)
		process_drop(p);
	request_free(&r);
	return result;
}

int process_connect(struct call *c)
{
	struct request r = { 0 };
	struct process *p = read_request(c, &r);

	if (p) {
		process_subscribe(p, c->stream, c->keepalive_s, false);
		process_drop(p);
	}
	request_free(&r);
	return p ? 0 : -1;
}

/* -- Start */

static void read_list(struct json_in *j, struct strv *out)
{
	struct json_level l;

	if (json_in_peek(j) == 'n') {
		json_in_skip(j);
		return;
	}
	if (!json_in_open(j, '[', &l))
		return;
	while (json_in_next(j, &l, NULL)) {
		auto_buf word = { 0 };

		json_in_string(j, &word);
		strv_add(out, buf_text(&word));
	}
}

static void read_env(struct json_in *j, struct strv *out)
{
	struct json_level l;
	const char *key;

	if (json_in_peek(j) == 'n') {
		json_in_skip(j);
		return;
	}
	if (!json_in_open(j, '{', &l))
		return;
	while (json_in_next(j, &l, &key)) {
		auto_buf line = { 0 };

		j->bad |= !*key || strchr(key, '=');
		buf_puts(&line, key);
		buf_puts(&line, "=");
		json_in_string(j, &line);
		strv_add(out, buf_text(&line));
	}
}

static void read_config(struct json_in *j, struct process_spec *s)
{
	struct json_level l;
	auto_strv args = { 0 };
	auto_buf cmd = { 0 };
	const char *key;

	if (!json_in_open(j, '{', &l))
		return;
	while (json_in_next(j, &l, &key))
		if (strcmp(key, "cmd") == 0)
			message_string(j, &cmd);
		else if (strcmp(key, "args") == 0)
			read_list(j, &args);
		else if (strcmp(key, "envs") == 0)
			read_env(j, &s->env);
		else if (strcmp(key, "cwd") == 0)
			message_string(j, &s->cwd);
		else
			json_in_skip(j);
	strv_add(&s->argv, buf_text(&cmd));
	for (size_t i = 0; i < args.len; i++)
		strv_add(&s->argv, args.items[i]);
	j->bad |= args.failed || s->argv.failed || s->env.failed;
	s->has_cwd = strlen(buf_text(&s->cwd)) > 0;
}

static int read_spec(struct call *c, struct process_spec *s)
{
	struct json_in j;
	struct json_level l;
	uint64_t rows = 24, columns = 80;
	bool fine, input = true;
	const char *key;

	json_in_init(&j, c->message, c->message_len);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key))
			if (strcmp(key, "process") == 0) {
				read_config(&j, s);
			} else if (strcmp(key, "pty") == 0 && json_in_peek(&j) == '{') {
				s->pty = true;
				read_size(&j, &rows, &columns);
			} else if (strcmp(key, "tag") == 0) {
				message_string(&j, &s->tag);
			} else if (strcmp(key, "stdin") == 0) {
				message_bool(&j, &input);
			} else {
				json_in_skip(&j);
			}
	}
	fine = json_in_end(&j);
	json_in_free(&j);
	s->has_tag = strlen(buf_text(&s->tag)) > 0;
	s->no_stdin = !input;
	s->rows = (unsigned)rows;
	s->columns = (unsigned)columns;
	if (!fine || !s->argv.len || !*s->argv.items[0])
		return call_fail(c, RPC_INVALID_ARGUMENT,
				 "not a message that starts a process: process.cmd is missing, or "
				 "a value has the wrong type");
	if (s->pty && (!rows || !columns || rows > 65535 || columns > 65535))
		return call_fail(c, RPC_INVALID_ARGUMENT, "not a size of a terminal");
	return 0;
}

void process_spec_free(struct process_spec *s)
{
	strv_free(&s->argv);
	strv_free(&s->env);
	buf_free(&s->cwd);
	buf_free(&s->tag);
}

static char *config_text(const struct process_spec *s)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_object(&j, NULL);
	json_string(&j, "cmd", s->argv.items[0]);
	json_begin_array(&j, "args");
	for (size_t i = 1; i < s->argv.len; i++)
		json_string(&j, NULL, s->argv.items[i]);
	json_end_array(&j);
	json_begin_object(&j, "envs");
	for (size_t i = 0; i < s->env.len; i++) {
		auto_free char *name = strdup(s->env.items[i]);

		if (!name)
			return NULL;
		name[strcspn(name, "=")] = '\0';
		json_string(&j, name, s->env.items[i] + strlen(name) + 1);
	}
	json_end_object(&j);
	if (s->has_cwd)
		json_string(&j, "cwd", buf_text(&s->cwd));
	json_end_object(&j);
	return buf_take(&out);
}

static struct process *process_new(const struct process_spec *s)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid_fd = p->stdin_fd = p->pty_fd = p->out_fds[0] = p->out_fds[1] = -1;
	p->count = 1;
	p->pty = s->pty;
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->listen_lock, NULL);
	p->config = config_text(s);
	p->tag = s->has_tag ? strdup(buf_text(&s->tag)) : NULL;
	if (!p->config || (s->has_tag && !p->tag)) {
		process_free(p);
		return NULL;
	}
	return p;
}

int process_start(struct call *c)
{
	struct process_spec s = { 0 };
	struct process *p = NULL;
	int r = read_spec(c, &s);

	if (r == 0) {
		p = process_new(&s);
		r = p ? process_spawn(c, &s, p) : call_fail(c, RPC_INTERNAL, "out of memory");
	}
	process_spec_free(&s);
	if (r < 0) {
		if (p)
			process_free(p);
		return r;
	}
	p->deadline_ms = c->timeout_ms ? io_now_ms() + c->timeout_ms : 0;
	list_add(p);
	process_subscribe(p, c->stream, c->keepalive_s, true);
	process_pump(p);
	process_drop(p);
	return 0;
}
