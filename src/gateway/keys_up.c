/*
 * Requests in ward-keys. In: what front says. Out: the request for the server. Which grant is for it is decided here, from the request
 * itself and the host of this connection; front is not asked. Everything but the grant's own place is looked through for secrets
 * and placeholders before a byte of it leaves. Heads are put together in locked memory each time that some of one can be sent.
 */
#include "gateway/keys_conn.h"

#include <string.h>
#include <strings.h>

#include "base/io.h"

/* -- the head */

static struct scan_for looking_for(const struct keys *k)
{
	return (struct scan_for){ .secrets = true, .shown = true, .replace = k->leaks == LEAKS_STRIP };
}

/* Something was found where it does not belong. False: the request is refused. */
static bool may_pass(struct keys *k, struct conn *c, const struct scan_for *f, const char *where)
{
	char why[300];

	store_found(k, KEYS_EVENT_LEAK, f, c->host.name, where);
	c->leaked = true;
	if (k->leaks != LEAKS_BLOCK)
		return true;
	snprintf(why, sizeof(why), "%s of grant %s is in %s, where it does not belong: the request was stopped (credentials.leaks: block)",
		 PATTERN_SHOWN(f->first) ? "the placeholder" : "the secret", k->grants[PATTERN_GRANT(f->first) % GRANTS_MAX].grant.name, where);
	conn_refuse(c, 403, why);
	return false;
}

static bool look_through_head(struct keys *k, struct conn *c)
{
	struct scan_for f = looking_for(k);
	char where[100] = "the request line";
	const char *field;
	size_t n;

	(void)scan_run(k->scan, (uint8_t *)c->base.data, c->base.len, true, &f);
	if (!f.count)
		return true;
	field = inject_field_at(&c->base, f.at ? f.at - 1 : 0, &n);
	if (field) {
		snprintf(where, sizeof(where), "the header %.*s", (int)(n < 64 ? n : 64), field);
		for (char *w = where; *w; w++)
			if (*w == '"' || *w == '\\' || (unsigned char)*w < ' ' || (unsigned char)*w > '~')
				*w = '?';
	}
	return may_pass(k, c, &f, where);
}

/* The value of Content-Encoding; the last one counts, more than one coding is unknown to unzip_kind(). */
static enum unzip_kind coding_of(const struct buf *head)
{
	enum unzip_kind kind = UNZIP_NONE;
	const char *at = head->data, *end = head->data + head->len;

	while (at < end) {
		const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);

		if (!line_end || line_end == at)
			break;
		if (line_end - at > 17 && strncasecmp(at, "content-encoding:", 17) == 0)
			kind = kind != UNZIP_NONE ? UNZIP_UNKNOWN : unzip_kind(at + 17, (size_t)(line_end - at) - 17);
		at = line_end + 2;
	}
	return kind;
}

/* A body that cannot be looked into does not leave, unless finding something would not stop it either. */
static bool prepare_body(struct keys *k, struct conn *c)
{
	enum unzip_kind kind = coding_of(&c->base);

	c->up_chunked = c->head.chunked;
	if (c->head.chunked)
		body_chunked(&c->up_body);
	else
		body_length(&c->up_body, c->head.has_length ? c->head.length : 0);
	c->up_ended = c->up_body.state == BODY_NONE;
	c->up_found = looking_for(k);
	if (kind == UNZIP_NONE || c->up_ended)
		return true;
	if (kind != UNZIP_UNKNOWN) {
		c->unzip = unzip_new(kind);
		return c->unzip != NULL;
	}
	if (k->leaks != LEAKS_BLOCK)
		return true;
	conn_refuse(c, 403, "the body is compressed in a way that cannot be looked through for secrets; send it plain or as gzip");
	return false;
}

static bool choose_grant(struct keys *k, struct conn *c, const uint8_t *bytes)
{
	struct keys_event event = { .kind = KEYS_EVENT_REFUSED };
	const char *why = NULL, *name = NULL;
	enum sigv4_wrong wrong;
	struct inject_line line;
	char text[300];

	if (!inject_line(bytes, &c->head, &line)) {
		conn_refuse(c, 400, "not a request that can be sent on");
		return false;
	}
	c->grant = store_find(k, c->host.name, &line, io_now_ms(), &why, &name);
	if (!inject_base(c->grant ? &c->grant->grant : NULL, bytes, &c->head, &c->base, &c->sign)) {
		conn_refuse(c, 400, "not a request that can be sent on");
		return false;
	}
	if (c->grant && c->grant->grant.way == GRANT_SIGV4) {
		wrong = sigv4_check(&c->sign, c->grant->grant.region, c->grant->grant.service);
		why = wrong == SIGV4_FINE ? why : sigv4_wrong_text(wrong);
		name = c->grant->grant.name;
	}
	if (!why)
		return true;
	snprintf(event.grant, sizeof(event.grant), "%s", name);
	snprintf(event.host, sizeof(event.host), "%s", c->host.name);
	snprintf(event.detail, sizeof(event.detail), "%.110s", why);
	store_event(k, &event);
	snprintf(text, sizeof(text), "grant %s: %s", name, why);
	conn_refuse(c, 403, text);
	return false;
}

/* A whole head is there. */
static void begin_request(struct keys *k, struct conn *c)
{
	const uint8_t *bytes = (const uint8_t *)c->in.bytes.data + c->in.at;

	c->base.len = c->up_data.len = c->head_sent = 0;
	c->asked = true;
	c->down_begun = c->down_done = c->leaked = false;
	if (c->head.connect || !host_equal(&c->head.host, &c->host) || (c->head.port && c->head.port != c->port)) {
		conn_refuse(c, 403, "the request is for another host than the connection");
		return;
	}
	if (!k->scan) {
		conn_refuse(c, 403, "the secrets are not there yet, or no more: nothing can be looked through for them");
		return;
	}
	if (!choose_grant(k, c, bytes) || !look_through_head(k, c) || !prepare_body(k, c))
		return;
	queue_drop(&c->in, c->head.len);
	c->up_told = false;
	c->up = (c->grant && c->grant->grant.way == GRANT_SIGV4 && !c->sign.has_hash) ||
		(c->head.has_length && c->head.length <= CONN_WHOLE_MAX && !c->up_ended) ? UP_COLLECT : UP_SEND;
}

static bool take_head(struct keys *k, struct conn *c)
{
	enum http_wrong wrong = HTTP_FINE;
	int r;

	if (!queue_len(&c->in))
		return false;
	r = http1_head((const uint8_t *)c->in.bytes.data + c->in.at, queue_len(&c->in), &c->scanned, &c->head, &wrong);
	if (r == 0 && !c->client_ended)
		return false;
	c->scanned = 0;
	if (r > 0)
		begin_request(k, c);
	else
		conn_refuse(c, 400, "not an HTTP request");
	return true;
}

/* -- sending */

/* Puts the head together, sends what goes, forgets it. */
static bool send_head(struct keys *k, struct conn *c)
{
	const struct policy_grant *g = c->grant ? &c->grant->grant : NULL;
	const uint8_t *values[GRANT_VALUES] = { NULL };
	enum tls_say say = TLS_FAILED;
	size_t bytes[GRANT_VALUES] = { 0 }, n, sent = 0;

	if (!c->open)
		return false;
	if (g && (!c->grant->there || c->grant->revoked)) {
		conn_refuse(c, 403, "the grant was revoked");
		return true;
	}
	for (size_t i = 0; g && i < c->grant->count; i++) {
		values[i] = c->grant->values[i];
		bytes[i] = c->grant->bytes[i];
	}
	n = inject_write(g, values, bytes, g ? c->grant->count : 0, &c->base, &c->sign, k->compose, KEYS_COMPOSE);
	if (n > c->head_sent)
		say = tls_up_write(c->tls, k->compose + c->head_sent, n - c->head_sent, &sent);
	explicit_bzero(k->compose, n);
	c->server_write = say == TLS_WRITE;
	if (!n) {
		conn_refuse(c, 403, "the secret cannot be put into this request: it is too long, or a header that was signed is missing");
		return true;
	}
	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say != TLS_DONE) {
		conn_refuse(c, 502, "the server ended the connection");
		return true;
	}
	c->head_sent += sent;
	if (c->head_sent == n) {
		if (c->grant)
			store_used(k, c->grant, c->host.name);
		c->up = UP_BODY;
	}
	return true;
}

/* Body bytes for the server, framed as the head says. */
static void pass_data(struct conn *c, size_t n)
{
	if (n && c->up_chunked)
		buf_printf(&c->out.bytes, "%zx\r\n", n);
	buf_add(&c->out.bytes, c->up_data.data, n);
	if (n && c->up_chunked)
		buf_puts(&c->out.bytes, "\r\n");
	memmove(c->up_data.data, c->up_data.data + n, c->up_data.len - n);
	c->up_data.len -= n;
}

/* Takes what there is of the body into up_data. False: nothing, or it is broken. */
static bool take_body(struct keys *k, struct conn *c)
{
	size_t before = c->up_data.len, used;

	if (c->up_ended || !queue_len(&c->in)) {
		if (!c->up_ended && c->client_ended)
			conn_kill(c);	/* it will never be complete, and the server must not take it for that */
		return false;
	}
	used = body_data(&c->up_body, (const uint8_t *)c->in.bytes.data + c->in.at, queue_len(&c->in), true, &c->up_data);
	queue_drop(&c->in, used);
	c->up_ended = c->up_body.state == BODY_NONE;
	if (c->up_body.state == BODY_BAD) {
		conn_kill(c);
		return false;
	}
	if (c->unzip && !unzip_look(c->unzip, k->scan, (const uint8_t *)c->up_data.data + before, c->up_data.len - before, &c->up_found)) {
		if (k->leaks == LEAKS_BLOCK) {
			conn_refuse(c, 403, "the compressed body cannot be looked through for secrets: it is broken, or grows beyond measure");
			return false;
		}
		unzip_free(c->unzip);
		c->unzip = NULL;
	}
	return true;
}

/* Looks through up_data; false: it was refused. *ret_clean: what may go. */
static bool look_through(struct keys *k, struct conn *c, size_t *ret_clean)
{
	*ret_clean = scan_run(k->scan, (uint8_t *)c->up_data.data, c->up_data.len, c->up_ended, &c->up_found);
	if (!c->up_found.count || c->up_told)
		return true;
	c->up_told = true;
	if (c->head_sent && k->leaks == LEAKS_BLOCK) {	/* its head has gone: the request stays incomplete */
		store_found(k, KEYS_EVENT_LEAK, &c->up_found, c->host.name, "the body");
		c->leaked = true;
		if (c->down_begun)
			conn_kill(c);
		else
			conn_refuse(c, 403, "a secret or its placeholder is in the body: the request was stopped (credentials.leaks: block)");
		return false;
	}
	return may_pass(k, c, &c->up_found, "the body");
}

static bool move_body(struct keys *k, struct conn *c)
{
	bool some, ended = c->up_ended;
	size_t clean = 0;

	if (queue_len(&c->out) >= CONN_PENDING_MAX)
		return false;
	some = take_body(k, c);
	if (c->dead || c->finishing)
		return true;
	if (!k->scan) {
		conn_kill(c);
		return true;
	}
	if (some || ended) {
		if (!look_through(k, c, &clean))
			return true;
		pass_data(c, clean);
	}
	if (!c->up_ended)
		return some;
	if (c->up_chunked)
		buf_puts(&c->out.bytes, "0\r\n\r\n");
	unzip_free(c->unzip);
	c->unzip = NULL;
	c->up = UP_DONE;
	return true;
}

/* The whole body: for its hash, or because it is small, and then nothing leaves before all of it was looked through. */
static bool collect_body(struct keys *k, struct conn *c)
{
	bool some = take_body(k, c);
	size_t clean;

	if (c->dead || c->finishing)
		return true;
	if (c->up_data.len > CONN_COLLECT_MAX) {
		conn_refuse(c, 413, "the body is signed and larger than 4 MiB; send it with X-Amz-Content-Sha256: UNSIGNED-PAYLOAD");
		return true;
	}
	if (!c->up_ended)
		return some;
	if (!k->scan || !look_through(k, c, &clean))
		return true;
	if (!c->sign.has_hash)
		sigv4_hash_body(&c->sign, (const uint8_t *)c->up_data.data, c->up_data.len);
	c->up = UP_SEND;
	return true;
}

bool up_step(struct keys *k, struct conn *c)
{
	if (c->dead || c->finishing)
		return false;
	switch (c->up) {
	case UP_HEAD:
		return take_head(k, c);
	case UP_COLLECT:
		return collect_body(k, c);
	case UP_SEND:
		if (!send_head(k, c))
			return false;
		/* what has no body is done with its head: a quick answer must not find it unfinished, or the connection is not used again */
		if (c->up == UP_BODY)
			(void)move_body(k, c);
		return true;
	case UP_BODY:
		return move_body(k, c);
	case UP_DONE:
		if (!c->down_done)
			return false;
		c->up = UP_HEAD;	/* the next one */
		c->asked = false;
		return true;
	case UP_TUNNEL:
		if (!queue_len(&c->in) || queue_len(&c->out) >= CONN_PENDING_MAX)
			return false;
		buf_add(&c->out.bytes, c->in.bytes.data + c->in.at, queue_len(&c->in));
		queue_drop(&c->in, queue_len(&c->in));
		return true;
	}
	return false;
}
