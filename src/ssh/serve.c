/*
 * Answers programs inside a sandbox that take this for an ssh-agent. In: their messages, and what
 * the policy, the user's agent and known_hosts say (struct agent). Out: the list of granted keys;
 * signatures of the user's agent; an event for each that was made or refused. Runs in a process of
 * its own that can open, connect and execute nothing (tables/procs.def).
 *
 * Two things are signed. A login: the client must first have bound its connection to the session
 * (session-bind@openssh.com), with the host's own signature of the session's id, by a key that the
 * user's known_hosts has for a host of the policy; then the data must be a login of that very
 * session, by that key, as a user that the policy names. A signature for one session is worth
 * nothing in another, so replaying a bind gains nothing. And a commit or tag: a signature in the
 * name space "git", if the policy says so; or, with a gpg key, the text of a commit or tag, which
 * the other process of ward-ssh-agent gives to the user's gpg. Everything else is refused:
 * forwarded sessions, a second bind, other data, keys added or removed, locks. No signature leaves
 * that is not on record.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "protocol/ssh.h"
#include "rules/git_signed.h"
#include "ssh/ssh.h"

#define CLIENTS_MAX 64
#define SESSION_MAX 64
#define EVENTS_BURST 256
#define EVENT_EVERY_MS 50
#define FLAGS_KNOWN 6u /* RSA with SHA-256, with SHA-512 */

struct client {
	int fd; /* -1: none */
	uint8_t *in;
	size_t have;
	uint8_t session[SESSION_MAX];
	size_t session_len;
	struct ssh_span host_key; /* in struct agent; len 0: not bound */
};

struct server {
	const struct agent *agent;
	struct client clients[CLIENTS_MAX];
	uint64_t events_left, events_at_ms; /* a bucket that fills with time */
	uint32_t lost;
	struct buf answer;
};

/* -- events */

static bool take_token(struct server *s)
{
	uint64_t now = io_now_ms(), more = (now - s->events_at_ms) / EVENT_EVERY_MS;

	if (more) {
		s->events_at_ms = now;
		s->events_left =
			s->events_left + more > EVENTS_BURST ? EVENTS_BURST : s->events_left + more;
	}
	if (!s->events_left)
		return false;
	s->events_left--;
	return true;
}

/* False: it is not on record, only counted. */
static bool report(struct server *s, const struct ssh_event *event)
{
	struct {
		struct ssh_said head;
		struct ssh_event event;
	} m = { .head.op = SSH_EVENT, .event = *event };

	m.event.lost = s->lost;
	if (!take_token(s) ||
	    send(SSH_FD_CONTROL, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		s->lost++;
		return false;
	}
	s->lost = 0;
	return true;
}

static bool report_ssh(struct server *s, bool allowed, const struct agent_key *key,
		       const char *host, const char *detail)
{
	struct ssh_event event = { .allowed = allowed };

	if (key)
		snprintf(event.key, sizeof(event.key), "%s", key->fingerprint);
	snprintf(event.host, sizeof(event.host), "%s", host);
	snprintf(event.detail, sizeof(event.detail), "%s", detail);
	return report(s, &event);
}

static bool report_gpg(struct server *s, const struct agent_gpg *key, bool is_git,
		       const char *refused)
{
	struct ssh_event event = { .allowed = !refused, .gpg = true };

	snprintf(event.key, sizeof(event.key), "%s", key ? key->names[0] : "");
	snprintf(event.host, sizeof(event.host), "%s", is_git ? "git" : "");
	snprintf(event.detail, sizeof(event.detail), "%s", refused ? refused : "");
	return report(s, &event);
}

/* -- answers */

static void put_number(struct buf *b, uint32_t n)
{
	uint8_t bytes[4] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
			     (uint8_t)n };

	buf_add(b, bytes, 4);
}

static void put_string(struct buf *b, const void *bytes, size_t n)
{
	put_number(b, (uint32_t)n);
	buf_add(b, bytes, n);
}

static void drop_client(struct client *c)
{
	close(c->fd);
	free(c->in);
	*c = (struct client){ .fd = -1 };
}

/* A client that does not read what it asked for is dropped: nobody waits for it. */
static void answer(struct client *c, const void *bytes, size_t n)
{
	auto_buf out = { 0 };

	put_string(&out, bytes, n);
	if (out.failed ||
	    send(c->fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)out.len)
		drop_client(c);
}

static void answer_byte(struct client *c, uint8_t type)
{
	answer(c, &type, 1);
}

static void refuse(struct server *s, struct client *c, const struct agent_key *key,
		   const char *host, const char *why)
{
	(void)report_ssh(s, false, key, host, why);
	answer_byte(c, SSH_FAILURE);
}

/* -- what is asked */

static void list_keys(struct server *s, struct client *c)
{
	const struct agent *a = s->agent;
	auto_buf out = { 0 };

	buf_add(&out, &(char){ SSH_LISTED }, 1);
	put_number(&out, (uint32_t)a->key_count);
	for (size_t i = 0; i < a->key_count; i++) {
		put_string(&out, a->keys[i].blob, a->keys[i].len);
		put_string(&out, a->keys[i].fingerprint, strlen(a->keys[i].fingerprint));
	}
	if (out.failed)
		drop_client(c);
	else
		answer(c, out.data, out.len);
}

static const struct agent_host_key *find_host_key(const struct agent *a, struct ssh_span blob)
{
	for (size_t i = 0; i < a->host_key_count; i++)
		if (ssh_span_equal((struct ssh_span){ a->host_keys[i].blob, a->host_keys[i].len },
				   blob))
			return &a->host_keys[i];
	return NULL;
}

static void bind_session(struct server *s, struct client *c, const struct ssh_request *q)
{
	const struct agent_host_key *k = find_host_key(s->agent, q->host_key);
	const char *host = k ? s->agent->hosts[k->host].host.host : "";

	if (q->forwarding)
		refuse(s, c, NULL, host, "a forwarded agent is not served");
	else if (c->host_key.len)
		refuse(s, c, NULL, host, "the connection is bound to a session already");
	else if (!k)
		refuse(s, c, NULL, "", "the host's key is not that of a host in credentials.ssh");
	else if (q->session.len > SESSION_MAX ||
		 !agent_verify(q->host_key, q->signature, q->session))
		refuse(s, c, NULL, host, "the host's signature of the session is not valid");
	else {
		memcpy(c->session, q->session.at, q->session.len);
		c->session_len = q->session.len;
		c->host_key = (struct ssh_span){ k->blob, k->len };
		answer_byte(c, SSH_SUCCESS);
	}
}

/* Which host of the policy a key may log in to here, as this user. NULL: none. */
static const struct ssh_host *find_host(const struct agent *a, const struct client *c,
					const struct agent_key *key, struct ssh_span user)
{
	for (size_t i = 0; i < a->host_key_count; i++) {
		const struct agent_host_key *k = &a->host_keys[i];
		const struct agent_host *h = &a->hosts[k->host];

		if (!ssh_span_equal((struct ssh_span){ k->blob, k->len }, c->host_key) ||
		    !(key->entries & 1u << h->entry))
			continue;
		if (!*h->host.user || ssh_span_is(user, h->host.user))
			return &h->host;
	}
	return NULL;
}

/* Why a login is not signed; NULL: it is, and *ret_host is filled. */
static const char *judge_login(const struct agent *a, const struct client *c,
			       const struct agent_key *key, const struct ssh_userauth *u,
			       char *ret_host, size_t room)
{
	const struct ssh_host *host;

	if (!c->host_key.len)
		return "the client has not proven that it logs in to a host of credentials.ssh "
		       "(OpenSSH 8.9 or newer does)";
	if (!ssh_span_equal(u->session, (struct ssh_span){ c->session, c->session_len }))
		return "the login is of another session than the one that was proven";
	if (!ssh_span_equal(u->key, (struct ssh_span){ key->blob, key->len }) ||
	    (u->host_key.len && !ssh_span_equal(u->host_key, c->host_key)))
		return "the login names another key";
	host = find_host(a, c, key, u->user);
	if (!host)
		return "no entry of credentials.ssh has this key, host and user together";
	snprintf(ret_host, room, "%.*s@%s", (int)(u->user.len < 64 ? u->user.len : 64),
		 (const char *)u->user.at, host->host);
	return NULL;
}

static bool may_sign_git(const struct agent *a, const struct agent_key *key)
{
	for (size_t i = 0; i < a->entry_count; i++)
		if (a->entries[i].sign && (key->entries & 1u << i))
			return true;
	return false;
}

/* Why this is not signed; NULL: it is. */
static const char *judge(const struct agent *a, const struct client *c, const struct agent_key *key,
			 const struct ssh_request *q, char *ret_host, size_t room)
{
	struct ssh_userauth u;

	snprintf(ret_host, room, "%s", "");
	if (!key)
		return "no entry of credentials.ssh has this key";
	if (q->flags & ~FLAGS_KNOWN)
		return "flags that are not known";
	if (ssh_userauth_read(q->data, &u))
		return judge_login(a, c, key, &u, ret_host, room);
	if (!ssh_sig_read(q->data, "git"))
		return "what is to be signed is neither a login nor a git commit or tag";
	snprintf(ret_host, room, "%s", "git");
	return may_sign_git(a, key) ? NULL : "credentials.ssh does not say sign: true for this key";
}

static void sign(struct server *s, struct client *c, const struct ssh_request *q,
		 const uint8_t *bytes, size_t n)
{
	const struct agent_key *key = NULL;
	char host[340];
	const char *why;

	for (size_t i = 0; i < s->agent->key_count && !key; i++)
		if (ssh_span_equal(
			    (struct ssh_span){ s->agent->keys[i].blob, s->agent->keys[i].len },
			    q->key))
			key = &s->agent->keys[i];
	why = judge(s->agent, c, key, q, host, sizeof(host));
	if (why) {
		refuse(s, c, key, host, why);
		return;
	}
	if (agent_ask(key->agent_fd, bytes, n, &s->answer) < 0 || !s->answer.len ||
	    (uint8_t)s->answer.data[0] != SSH_SIGNED)
		refuse(s, c, key, host, "your ssh-agent did not sign");
	else if (!report_ssh(s, true, key, host, ""))
		answer_byte(c, SSH_FAILURE);
	else
		answer(c, s->answer.data, s->answer.len);
}

/* -- gpg */

/* The key that git names: a fingerprint or its end, with "!" or without. Where it names none but
 * the committer, that is the first. */
static int find_gpg(const struct agent *a, struct ssh_span name)
{
	char id[GPG_ID_BYTES];
	size_t n = name.len;

	if (n > 2 && name.at[0] == '0' && name.at[1] == 'x')
		name = (struct ssh_span){ name.at + 2, n -= 2 };
	n -= n && name.at[n - 1] == '!';
	for (size_t i = 0; i < n && i < GPG_ID_BYTES - 1; i++)
		id[i] = (char)(name.at[i] >= 'a' && name.at[i] <= 'f' ? name.at[i] - 'a' + 'A'
								      : name.at[i]);
	if (n < 8 || n >= GPG_ID_BYTES)
		return a->gpg_count ? 0 : -1;
	id[n] = '\0';
	if (strspn(id, "0123456789ABCDEF") != n)
		return a->gpg_count ? 0 : -1;
	for (size_t i = 0; i < a->gpg_count; i++)
		for (size_t k = 0; k < a->gpg[i].name_count; k++)
			if (strcmp(a->gpg[i].names[k] + GPG_ID_BYTES - 1 - n, id) == 0)
				return (int)i;
	return -1;
}

static void refuse_gpg(struct server *s, struct client *c, int key, bool is_git, const char *why)
{
	auto_buf out = { 0 };

	(void)report_gpg(s, key < 0 ? NULL : &s->agent->gpg[key], is_git, why);
	buf_add(&out, &(char){ SSH_FAILURE }, 1);
	put_string(&out, why, strlen(why));
	if (out.failed)
		drop_client(c);
	else
		answer(c, out.data, out.len);
}

static void sign_gpg(struct server *s, struct client *c, const struct ssh_request *q)
{
	bool is_git = git_signed_read(q->data.at, q->data.len) != GIT_SIGNED_OTHER;
	int key = find_gpg(s->agent, q->key);
	auto_buf asked = { 0 }, out = { 0 };

	if (key < 0 || !is_git) {
		refuse_gpg(s, c, key, is_git,
			   key < 0 ? "credentials.gpg does not have this key"
				   : "what is to be signed is not a git commit or tag");
		return;
	}
	buf_add(&asked, &(char){ (char)key }, 1);
	buf_add(&asked, q->data.at, q->data.len);
	s->answer.len = 0;
	if (asked.failed ||
	    agent_ask(s->agent->gpg_fd, (const uint8_t *)asked.data, asked.len, &s->answer) < 0 ||
	    !s->answer.len || s->answer.data[0] != '+') {
		refuse_gpg(s, c, key, true,
			   s->answer.len && s->answer.data[0] == 't'
				   ? "your gpg did not answer in time"
				   : "your gpg did not sign; if the key has a passphrase, sign "
				     "something outside first, so that gpg-agent knows it");
		return;
	}
	buf_add(&out, &(char){ SSH_SUCCESS }, 1);
	put_string(&out, s->answer.data + 1, s->answer.len - 1);
	if (out.failed || !report_gpg(s, &s->agent->gpg[key], true, NULL))
		answer_byte(c, SSH_FAILURE);
	else
		answer(c, out.data, out.len);
}

static void dispatch(struct server *s, struct client *c, const uint8_t *bytes, size_t n)
{
	struct ssh_request q;

	if (!ssh_request_read(bytes, n, &q)) {
		refuse(s, c, NULL, "", "a malformed request");
		return;
	}
	switch (q.ask) {
	case SSH_ASK_LIST:
		list_keys(s, c);
		break;
	case SSH_ASK_BIND:
		bind_session(s, c, &q);
		break;
	case SSH_ASK_SIGN:
		sign(s, c, &q, bytes, n);
		break;
	case SSH_ASK_GPG:
		sign_gpg(s, c, &q);
		break;
	case SSH_ASK_OTHER:
		/* ssh asks an agent what it can; that is no attempt at anything */
		if (q.type == SSH_EXTENSION)
			answer_byte(c, SSH_FAILURE);
		else
			refuse(s, c, NULL, "", "the agent only lists keys and signs");
		break;
	}
}

/* -- connections */

static void read_client(struct server *s, struct client *c)
{
	ssize_t n = recv(c->fd, c->in + c->have, SSH_GPG_MAX + 4 - c->have, MSG_DONTWAIT);
	size_t len;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		drop_client(c);
		return;
	}
	c->have += n > 0 ? (size_t)n : 0;
	while (c->fd >= 0 && c->have >= 4) {
		len = (size_t)c->in[0] << 24 | (size_t)c->in[1] << 16 | (size_t)c->in[2] << 8 |
		      c->in[3];
		if (!len || len > SSH_GPG_MAX) {
			refuse(s, c, NULL, "", "a message that is empty or too long");
			if (c->fd >= 0)
				drop_client(c);
			return;
		}
		if (c->have < len + 4)
			return;
		dispatch(s, c, c->in + 4, len);
		if (c->fd < 0)
			return;
		c->have -= len + 4;
		memmove(c->in, c->in + len + 4, c->have);
	}
}

static void accept_client(struct server *s)
{
	struct client *c = NULL;
	int fd;

	for (size_t i = 0; i < CLIENTS_MAX && !c; i++)
		if (s->clients[i].fd < 0)
			c = &s->clients[i];
	fd = c ? accept4(SSH_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC) : -1;
	if (fd < 0)
		return;
	*c = (struct client){ .fd = fd, .in = malloc(SSH_GPG_MAX + 4) };
	if (!c->in)
		drop_client(c);
}

void agent_serve(const struct agent *a)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	s->agent = a;
	s->events_left = EVENTS_BURST;
	s->events_at_ms = io_now_ms();
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		s->clients[i].fd = -1;
	for (;;) {
		struct pollfd polled[CLIENTS_MAX + 2];
		bool full = true;

		for (size_t i = 0; i < CLIENTS_MAX; i++) {
			polled[i] = (struct pollfd){ .fd = s->clients[i].fd, .events = POLLIN };
			full &= s->clients[i].fd >= 0;
		}
		polled[CLIENTS_MAX] =
			(struct pollfd){ .fd = full ? -1 : SSH_FD_LISTEN, .events = POLLIN };
		polled[CLIENTS_MAX + 1] = (struct pollfd){ .fd = SSH_FD_CONTROL, .events = POLLIN };
		if (poll(polled, CLIENTS_MAX + 2, -1) < 0)
			continue;
		if (polled[CLIENTS_MAX + 1].revents)
			return; /* the supervisor sends nothing more: it is gone */
		for (size_t i = 0; i < CLIENTS_MAX; i++)
			if (polled[i].revents)
				read_client(s, &s->clients[i]);
		if (polled[CLIENTS_MAX].revents)
			accept_client(s);
	}
}
