/*
 * The secrets of a run. In: grants. Out: placeholders for inside; later a link to ward-keys for the
 * gateway, and what was used and found, for the report and the journal. Runs in the supervisor,
 * which starts ward-secrets and asks it; a secret is never in this process (what a variable of its
 * environment holds excepted: that is where ward-secrets takes it from). What ward-secrets says is
 * believed as far as it goes: it is the user's own process.
 */
#include "egress/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "event/event.h"
#include "event/result.h"
#include "host/program.h"
#include "rules/decide.h"

#define FETCH_MS 90000 /* all sources together */
#define EVENTS_AT_ONCE 64
#define NOTES_MAX 64

struct secrets {
	int fd;
	pid_t pid;
	secrets_asked *asked;
	void *whose;
};

static int say(struct secrets *s, enum secrets_op op, int32_t code, uint64_t tag, const void *bytes,
	       size_t n, const int *fds, size_t fd_count, struct ward_err *e)
{
	struct secrets_message m = { .op = op, .code = code, .tag = tag };
	auto_buf out = { 0 };
	int r;

	buf_add(&out, &m, sizeof(m));
	buf_add(&out, bytes, n);
	if (out.failed || out.len > SECRETS_MESSAGE_MAX)
		return ward_fail(e, E2BIG, "too much for one message to ward-secrets");
	r = s->fd < 0 ? -EPIPE : io_send_fds(s->fd, out.data, out.len, fds, fd_count);
	return r < 0 ? ward_fail(e, -r, "ward-secrets has exited") : 0;
}

static void read_error(const struct secrets_message *m, const char *text, size_t n,
		       struct ward_err *e)
{
	const char *end = text + n, *why, *remedy;

	ward_fail(e, m->code > 0 ? m->code : EIO, "cannot fetch the secrets");
	if (!n || end[-1])
		return;
	why = text + strlen(text) + 1;
	remedy = why < end ? why + strlen(why) + 1 : end;
	if (remedy >= end)
		return;
	snprintf(e->what, sizeof(e->what), "%.500s", text);
	snprintf(e->why, sizeof(e->why), "%.760s", why);
	snprintf(e->remedy, sizeof(e->remedy), "%.500s", remedy);
}

/* Answers of the start, one after the other. */
static int await_start(struct secrets *s, struct strv *shown, struct ward_err *e)
{
	auto_free char *bytes = malloc(SECRETS_MESSAGE_MAX + 1);
	uint64_t until = io_now_ms() + FETCH_MS, now;

	while (bytes && (now = io_now_ms()) < until) {
		struct pollfd ready = { .fd = s->fd, .events = POLLIN };
		struct secrets_message m;
		ssize_t n;

		if (poll(&ready, 1, (int)(until - now)) <= 0)
			continue;
		n = recv(s->fd, bytes, SECRETS_MESSAGE_MAX, 0);
		if (n < (ssize_t)sizeof(m))
			return ward_fail(e, EPIPE, "ward-secrets exited before it had the secrets");
		bytes[n] = '\0';
		memcpy(&m, bytes, sizeof(m));
		if (m.op == SECRETS_READY)
			return shown->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
		if (m.op == SECRETS_SHOWN)
			strv_add(shown, bytes + sizeof(m));
		if (m.op == SECRETS_ERROR) {
			read_error(&m, bytes + sizeof(m), (size_t)n - sizeof(m), e);
			return -e->code;
		}
	}
	return ward_fail(e, ETIMEDOUT, "the secrets did not arrive within %d seconds",
			 FETCH_MS / 1000);
}

static int tell_all(struct secrets *s, const struct policy *p, const struct strv *seen,
		    const struct strv *words, struct ward_err *e)
{
	auto_buf all = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < seen->len; i++)
		r = say(s, SECRETS_SEEN, 0, 0, seen->items[i], strlen(seen->items[i]), NULL, 0, e);
	for (size_t i = 0; r == 0 && i < words->len; i++) {
		if (all.len + strlen(words->items[i]) + 64 > SECRETS_MESSAGE_MAX) {
			r = say(s, SECRETS_WORDS, 0, 0, all.data, all.len, NULL, 0, e);
			buf_free(&all);
			all = (struct buf){ 0 };
		}
		buf_add(&all, words->items[i], strlen(words->items[i]) + 1);
	}
	if (r == 0 && all.len)
		r = say(s, SECRETS_WORDS, 0, 0, all.data, all.len, NULL, 0, e);
	for (size_t i = 0; r == 0 && i < p->cred_grants.len; i++)
		r = say(s, SECRETS_GRANT, (int32_t)p->cred_leaks, 0, p->cred_grants.items[i],
			strlen(p->cred_grants.items[i]), NULL, 0, e);
	return r < 0 ? r : say(s, SECRETS_FETCH, 0, 0, NULL, 0, NULL, 0, e);
}

int secrets_start(const struct policy *p, const struct strv *seen, const struct strv *words,
		  struct secrets **ret, struct strv *shown, struct ward_err *e)
{
	static char *const argv[] = { (char *)(uintptr_t) "ward-secrets", NULL };
	struct program program = {
		.fd = program_open("ward-secrets", e), .argv = argv, .envp = environ, .fd_count = 1
	};
	struct secrets *s = calloc(1, sizeof(*s));
	int pair[2], r;

	*ret = s; /* secrets_end() sees to the rest */
	if (!s || program.fd < 0)
		return program.fd < 0 ? -e->code : ward_fail(e, ENOMEM, "out of memory");
	s->fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		close(program.fd);
		return ward_fail_errno(e, "cannot make the socket of ward-secrets");
	}
	s->fd = pair[0];
	program.fds[0] = pair[1];
	r = program_start(&program, &s->pid, e);
	close(pair[1]);
	close(program.fd);
	if (r == 0)
		r = tell_all(s, p, seen, words, e);
	/* one that could not begin has said why before it ended */
	if (r == 0 || r == -EPIPE)
		r = await_start(s, shown, e);
	return r < 0 ? ward_wrap(e, "credentials.grants") : 0;
}

int secrets_link(struct secrets *s, int trust_fd)
{
	struct ward_err e = { 0 };
	int pair[2], r;

	if (s->fd < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	r = say(s, SECRETS_KEYS, 0, 0, NULL, 0, (int[]){ pair[1], trust_fd }, 2, &e);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return -1;
	}
	return pair[0];
}

int secrets_fd(const struct secrets *s)
{
	return s ? s->fd : -1;
}

/* -- what it says */

/* A program inside can cause the same as often as it likes: a note is reported once, and there is a
 * number of them. */
static void note(struct result *r, const struct buf *text)
{
	size_t ours = 0;

	for (size_t i = 0; i < r->notes.len; i++) {
		if (strcmp(r->notes.items[i], text->failed ? "" : text->data) == 0)
			return;
		ours += strncmp(r->notes.items[i], "credentials: ", 13) == 0;
	}
	if (ours < NOTES_MAX && !text->failed)
		strv_add(&r->notes, text->data);
}

static void report(const struct keys_event *said, struct result *r)
{
	static const char *const actions[] = { "the request was blocked", "it was removed",
					       "the request was sent" };
	auto_buf what = { 0 }, why = { 0 };

	if (said->kind == KEYS_EVENT_LEAK) {
		buf_printf(&what, "%s of grant %s to %s", said->shown ? "placeholder" : "secret",
			   said->grant, said->host);
		buf_printf(&why, "found in %s; %s", said->detail,
			   actions[said->action < 3 ? said->action : 0]);
		result_deny(r, buf_text(&what), buf_text(&why), "");
	} else if (said->kind == KEYS_EVENT_REFUSED && *said->host) {
		buf_printf(&what, "grant %s for %s", said->grant, said->host);
		result_deny(r, buf_text(&what), said->detail,
			    "ward secret ls shows what each grant is for");
	} else if (said->kind == KEYS_EVENT_REFUSED) {
		buf_printf(&what, "credentials: %s%s%s", said->grant, *said->grant ? " " : "",
			   said->detail);
		note(r, &what);
	} else if (said->kind == KEYS_EVENT_SCRUB) {
		buf_printf(&what,
			   "credentials: %s sent the secret of grant %s back; ward removed it from "
			   "the response",
			   said->host, said->grant);
		note(r, &what);
	}
}

static void emit(const struct keys_event *said, struct result *r)
{
	bool leak = said->kind == KEYS_EVENT_LEAK || said->kind == KEYS_EVENT_SCRUB;
	enum event_action action = said->kind == KEYS_EVENT_USE        ? ACTION_ALLOW
				   : leak && said->action == LEAKS_LOG ? ACTION_LOG
								       : ACTION_DENY;
	struct ward_event v = event_make(leak ? EVENT_CREDENTIAL_LEAK : EVENT_CREDENTIAL_USE,
					 action, said->grant);

	event_text(&v, FIELD_GRANT, said->grant);
	if (*said->host)
		event_text(&v, FIELD_HOST, said->host);
	if (*said->detail)
		event_text(&v, FIELD_WHY, said->detail);
	event_emit(r->events, &v);
}

/* A process gave or took a grant over the control socket, and it is done. */
static void emit_change(const struct keys_event *said, struct result *r)
{
	struct ward_event v = event_make(EVENT_CREDENTIAL_CHANGE, ACTION_LOG, said->grant);

	event_text(&v, FIELD_CHANGE, said->kind == KEYS_EVENT_GRANTED ? "grant" : "revoke");
	event_text(&v, FIELD_VIA, "control");
	event_emit(r->events, &v);
}

/* What is missing is reported: no process inside can make so much happen that something of it was
 * never there. */
static void emit_lost(const struct keys_event *said, struct result *r)
{
	struct ward_event v = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, "credentials");

	event_text(&v, FIELD_WHY, "more happened than could be reported");
	event_number(&v, FIELD_LOST, said->count);
	event_emit(r->events, &v);
}

static void on_event(const char *bytes, size_t n, struct result *r)
{
	struct keys_event said;

	if (n != sizeof(said))
		return;
	memcpy(&said, bytes, sizeof(said));
	said.grant[sizeof(said.grant) - 1] = said.host[sizeof(said.host) - 1] =
		said.detail[sizeof(said.detail) - 1] = '\0';
	if (said.kind == KEYS_EVENT_LOST) {
		emit_lost(&said, r);
		return;
	}
	if (said.kind == KEYS_EVENT_GRANTED || said.kind == KEYS_EVENT_REVOKED) {
		emit_change(&said, r);
		return;
	}
	report(&said, r);
	emit(&said, r);
}

void secrets_on_asked(struct secrets *s, secrets_asked *asked, void *whose)
{
	if (!s)
		return;
	s->asked = asked;
	s->whose = whose;
}

int secrets_answer(struct secrets *s, const uint8_t exact[32], uint64_t serial, unsigned reason,
		   struct ward_err *e)
{
	struct keys_answer said = { .serial = serial, .reason = reason };

	if (!s)
		return ward_fail(e, ENOTCONN, "the sandbox has no secrets");
	memcpy(said.exact, exact, sizeof(said.exact));
	return say(s, SECRETS_ANSWER, 0, 0, &said, sizeof(said), NULL, 0, e);
}

/* What ward-keys says was read by it from what comes from inside: printable, and ended. */
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (char *c = text; *c; c++)
		*c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
}

static void on_asked(struct secrets *s, bool waits, const char *bytes, size_t n)
{
	struct keys_asked said;
	struct ward_err e = { 0 };
	struct host host;
	int r = -EINVAL;

	if (n != sizeof(said))
		return;
	memcpy(&said, bytes, sizeof(said));
	clean(said.grants, sizeof(said.grants));
	clean(said.host, sizeof(said.host));
	clean(said.what, sizeof(said.what));
	clean(said.query, sizeof(said.query));
	if (host_read(said.host, strlen(said.host), &host) == HOST_FINE)
		r = s->asked ? s->asked(s->whose, waits, &host, &said) : -EPERM;
	if (waits && r < 0)
		(void)!secrets_answer(s, said.exact, said.serial,
				      r == -EACCES  ? REASON_NEVER
				      : r == -EPERM ? REASON_NOT_ASKED
						    : REASON_ASKED_FULL,
				      &e);
}

void secrets_handle(struct secrets *s, struct result *r, secrets_answered *answered, void *whose)
{
	auto_free char *bytes = malloc(SECRETS_MESSAGE_MAX + 1);

	for (int i = 0; bytes && s->fd >= 0 && i < EVENTS_AT_ONCE; i++) {
		struct secrets_message m;
		ssize_t n = recv(s->fd, bytes, SECRETS_MESSAGE_MAX, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < (ssize_t)sizeof(m)) {
			close(s->fd);
			s->fd = -1;
			strv_add(&r->notes, "ward-secrets ended before the command did: from then "
					    "on no secret was injected");
			return;
		}
		bytes[n] = '\0';
		memcpy(&m, bytes, sizeof(m));
		if (m.op == SECRETS_EVENT)
			on_event(bytes + sizeof(m), (size_t)n - sizeof(m), r);
		else if (m.op == SECRETS_ASKED)
			on_asked(s, m.code, bytes + sizeof(m), (size_t)n - sizeof(m));
		else if (answered && m.tag)
			answered(whose, &m, bytes + sizeof(m), (size_t)n - sizeof(m));
	}
}

int secrets_ask(struct secrets *s, enum secrets_op op, uint64_t tag, const char *text, int fd,
		struct ward_err *e)
{
	if (!s) {
		ward_fail(e, ENOENT, "the sandbox was started without credentials");
		return ward_remedy(
			e,
			"start it with a grant: credentials: {mode: just_in_time, grants: [...]}");
	}
	return say(s, op, 0, tag, text, strlen(text), &fd, fd >= 0, e);
}

void secrets_end(struct secrets *s)
{
	if (!s)
		return;
	own_close_fd(&s->fd);
	if (s->pid > 0) {
		for (int i = 0; i < 100 && waitpid(s->pid, NULL, WNOHANG) == 0; i++)
			poll(NULL, 0, 5); /* it ends ward-keys and zeroes what it has */
		if (kill(s->pid, SIGKILL) == 0)
			while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
				;
	}
	free(s);
}
