/*
 * Who a client is and what it may do (control_access.h). In: the credential that a request shows,
 * the address it comes from, the clock. Out: the decision of access_decide() about the credential
 * and about the key behind it. Nothing is remembered between requests: a token that was revoked, or
 * a key that another process has added, counts from the next request on.
 */
#include "daemon/control_access.h"

#include <string.h>
#include <strings.h>

#include "base/io.h"
#include "daemon/snapshot.h"

#define BURST_S 2           /* how many seconds' worth of requests are saved up */
#define BUCKETS_MOST 4096   /* keys that asked lately */
#define IDLE_MS 10000       /* a bucket that was not used for so long is full, and forgotten */
#define CHECK_EVERY_MS 1000 /* for tokens of connections that stay open */

/* -- the rate of each key */

struct bucket {
	struct bucket *next;
	char id[CREDENTIAL_ID + 1];
	uint64_t millis; /* thousandths of a request */
	uint64_t at_ms;
};

/* The bucket of a key; its tokens use it, too, so that making tokens gains nothing. */
static struct bucket *bucket_of(struct front *f, const char *id, uint64_t now)
{
	unsigned count = 0;

	for (struct bucket **at = &f->buckets; *at;) {
		struct bucket *b = *at;

		if (strcmp(b->id, id) == 0)
			return b;
		if (now - b->at_ms > IDLE_MS) {
			*at = b->next;
			free(b);
			continue;
		}
		count++;
		at = &b->next;
	}
	struct bucket *b = count < BUCKETS_MOST ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return NULL;
	memcpy(b->id, id, sizeof(b->id));
	b->millis = (uint64_t)f->rate * BURST_S * 1000;
	b->at_ms = now;
	b->next = f->buckets;
	f->buckets = b;
	return b;
}

static bool rate_allows(struct front *f, const struct access_who *key)
{
	uint64_t now = io_now_ms(), most = (uint64_t)f->rate * BURST_S * 1000;
	struct bucket *b = f->rate ? bucket_of(f, key->id, now) : NULL;

	if (!b)
		return !f->rate;
	b->millis += (now - b->at_ms) * f->rate;
	b->millis = b->millis < most ? b->millis : most;
	b->at_ms = now;
	if (b->millis < 1000)
		return false;
	b->millis -= 1000;
	return true;
}

/* -- who asks */

/* The secret that the request shows; NULL: none, or two that differ. The caller frees. */
static char *shown_secret(const struct conn *c)
{
	struct http_text key = http_field_get(&c->http.req.fields, "x-api-key"),
			 bearer = http_field_get(&c->http.req.fields, "authorization");

	if (bearer.s && bearer.n > 7 && strncasecmp(bearer.s, "bearer ", 7) == 0)
		bearer = (struct http_text){ bearer.s + 7, bearer.n - 7 };
	else
		bearer = (struct http_text){ NULL, 0 };
	if (key.s && bearer.s && (key.n != bearer.n || memcmp(key.s, bearer.s, key.n) != 0))
		return NULL;
	return key.s ? strndup(key.s, key.n) : bearer.s ? strndup(bearer.s, bearer.n) : NULL;
}

bool access_identify(struct conn *c)
{
	auto_free char *secret = shown_secret(c);

	c->denied = ACCESS_CHECKS; /* no credential */
	if (!c->who)
		c->who = calloc(1, sizeof(*c->who));
	if (!c->who || !secret || !*secret || !registry_find_secret(c->front->db, secret, c->who)) {
		free(c->who);
		c->who = NULL;
		c->front->counters.refused++;
		conn_refuse(c, 401,
			    "the header X-API-KEY (or Authorization: Bearer) is missing, or is no "
			    "key or token of this server");
		return false;
	}
	memcpy(c->owner, c->who->own.owner, sizeof(c->owner));
	if (!rate_allows(c->front, c->who->derived ? &c->who->parent : &c->who->own)) {
		c->front->counters.refused++;
		conn_refuse(c, 429, "more than %u requests a second with this key", c->front->rate);
		return false;
	}
	c->denied = ACCESS_ALLOWED;
	return true;
}

/* -- what it may */

static enum access_check decide(const struct conn *c, const struct credential *who,
				enum access_right right, const struct access_what *what)
{
	const struct access_when when = { .now_ms = front_now_ms(),
					  .source = c->source_ip,
					  .one_owner = c->front->dev };
	enum access_check r = access_decide(&who->own, right, what, &when);

	return r == ACCESS_ALLOWED && who->derived ? access_decide(&who->parent, right, what, &when)
						   : r;
}

bool access_may(struct conn *c, enum access_right right, const struct access_what *what)
{
	c->denied = c->who ? decide(c, c->who, right, what) : ACCESS_ROLE;
	return c->denied == ACCESS_ALLOWED;
}

bool access_require(struct conn *c, enum access_right right, const struct access_what *what)
{
	if (access_may(c, right, what))
		return true;
	c->front->counters.refused++;
	/* what is yet to be made is no secret */
	conn_refuse(c,
		    what->sandbox && !*what->sandbox && access_check_status(c->denied) == 404
			    ? 403
			    : access_check_status(c->denied),
		    "%s", access_check_why(c->denied));
	return false;
}

struct access_what access_of_sandbox(const struct sandbox *s)
{
	return (struct access_what){ .owner = s->owner,
				     .sandbox = s->id,
				     .labels = s->metadata,
				     .template = s->template,
				     .engine = *s->engine ? s->engine : NULL };
}

bool access_sees(struct conn *c, const struct sandbox *s)
{
	const struct access_what what = access_of_sandbox(s);

	return c->who && decide(c, c->who, RIGHT_READ, &what) == ACCESS_ALLOWED;
}

/* A snapshot has no labels: a credential limited to some sees none. */
bool access_sees_snapshot(struct conn *c, const struct snapshot *n)
{
	const struct access_what what = { .owner = n->owner,
					  .sandbox = n->source,
					  .template = n->template,
					  .engine = templates_engine(c->front, n->template) };

	return c->who && decide(c, c->who, RIGHT_READ, &what) == ACCESS_ALLOWED;
}

bool access_sees_template(struct conn *c, const char *name, const char *engine)
{
	const struct credential *w = c->who;

	for (int i = 0; w && i <= w->derived; i++) {
		const struct access_who *who = i ? &w->parent : &w->own;

		if ((*who->templates && !access_list_has(who->templates, name)) ||
		    (*who->engines && !access_list_has(who->engines, engine)))
			return false;
	}
	return w;
}

/* -- tokens of sandboxes */

static void own_token(const struct front *f, bool traffic, const char *credential,
		      const struct sandbox *s, char ret[ENVD_TOKEN_MAX + 1])
{
	char what[CREDENTIAL_ID + 16], digest[TOKEN_HEX + 1];

	snprintf(what, sizeof(what), "%s:%s", traffic ? "traffic" : "envd", credential);
	sandbox_derive(f, what, s->id, digest);
	snprintf(ret, ENVD_TOKEN_MAX + 1, "%s.%s", credential, digest);
}

void access_sandbox_token(struct conn *c, const struct sandbox *s, bool traffic,
			  char ret[ENVD_TOKEN_MAX + 1])
{
	if (c->who && c->who->derived)
		own_token(c->front, traffic, c->who->own.id, s, ret);
	else
		snprintf(ret, ENVD_TOKEN_MAX + 1, "%s", traffic ? s->traffic_token : s->token);
}

bool access_is_sandbox_token(struct conn *c, const struct sandbox *s, bool traffic,
			     const char *text)
{
	char id[CREDENTIAL_ID + 1] = "", right[ENVD_TOKEN_MAX + 1];
	const struct access_what what = access_of_sandbox(s);
	struct credential who;

	*c->token_id = '\0';
	if (strlen(text) != ENVD_TOKEN_MAX || text[CREDENTIAL_ID] != '.')
		return route_equal(text, traffic ? s->traffic_token : s->token);
	memcpy(id, text, CREDENTIAL_ID);
	own_token(c->front, traffic, id, s, right);
	if (!route_equal(text, right) || !registry_find_credential(c->front->db, id, &who) ||
	    decide(c, &who, RIGHT_USE, &what) != ACCESS_ALLOWED)
		return false;
	memcpy(c->token_id, id, sizeof(id));
	return true;
}

/* Whether the token of a connection that stays open still opens the sandbox. */
static bool still_may(struct conn *c)
{
	const struct sandbox *s = sandbox_find(c->front, c->sandbox);
	struct credential who;
	struct access_what what;

	if (!s || !registry_find_credential(c->front->db, c->token_id, &who))
		return false;
	what = access_of_sandbox(s);
	return decide(c, &who, RIGHT_USE, &what) == ACCESS_ALLOWED;
}

void access_tick(struct front *f, bool now_already)
{
	uint64_t now = io_now_ms();
	struct conn *next;

	if (!now_already && now < f->access_ms)
		return;
	f->access_ms = now + CHECK_EVERY_MS;
	for (struct conn *c = f->conns; c; c = next) {
		next = c->next;
		if (!*c->token_id || c->state == CONN_HEAD || c->state == CONN_DRAIN ||
		    still_may(c))
			continue;
		conn_abort(c);
		if (next && next->gone)
			next = f->conns;
	}
}
