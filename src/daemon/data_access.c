/*
 * Who may send a request to a sandbox. In: the request's head. Out: yes, or an answer that says no.
 * ward-envd needs the sandbox's token, or for a file a URL that was signed with it; the ports of a
 * sandbox with private traffic need its other token. Tokens are compared in constant time.
 */
#include <string.h>
#include <time.h>

#include "daemon/control_access.h"
#include "daemon/data.h"
#include "envd/query.h"

#define SIGNED_QUERY_MAX 2048
#define SIGNATURE_LEN 46 /* "v1_" and the base64 of a digest, without its "=" */

bool data_path_is(const struct conn *c, const char *path)
{
	return c->http.req.path.n == strlen(path) &&
	       memcmp(c->http.req.path.s, path, c->http.req.path.n) == 0;
}

/* The value of a header as a text; NULL: there is none. The caller frees. */
static char *field(const struct conn *c, const char *name)
{
	struct http_text t = http_field_get(&c->http.req.fields, name);

	return t.s ? strndup(t.s, t.n) : NULL;
}

static void query(const struct conn *c, const char *name, struct buf *out)
{
	if (query_get(c->http.req.query.s, c->http.req.query.n, name, out) <= 0)
		out->len = 0;
}

enum signed_as { SIGNED_NOT, SIGNED_WRONG, SIGNED_LATE, SIGNED_FINE };

/* What a file URL says, and the digest of what its signature has in front of the token. */
struct signed_url {
	struct buf path, user, given, expires;
	struct sha256 begun;
};

static void read_signed(const struct conn *c, struct signed_url *ret)
{
	*ret = (struct signed_url){ 0 };
	query(c, "path", &ret->path);
	query(c, "username", &ret->user);
	query(c, "signature", &ret->given);
	query(c, "signature_expiration", &ret->expires);
	route_sign_begin(ret->path.len ? ret->path.data : "",
			 http_text_is(c->http.req.method, "GET") ? "read" : "write",
			 ret->user.len ? ret->user.data : "", &ret->begun);
}

static void free_signed(struct signed_url *u)
{
	buf_free(&u->path);
	buf_free(&u->user);
	buf_free(&u->given);
	buf_free(&u->expires);
}

static enum signed_as check_signature(const struct signed_url *u, const char *token)
{
	auto_buf right = { 0 };

	if (!u->given.len)
		return SIGNED_NOT;
	if (u->given.len != SIGNATURE_LEN)
		return SIGNED_WRONG;
	route_sign_end(&u->begun, token, u->expires.len ? u->expires.data : NULL, &right);
	if (right.failed || !route_equal(buf_text(&u->given), buf_text(&right)))
		return SIGNED_WRONG;
	if (u->expires.len && strtoll(u->expires.data, NULL, 10) < time(NULL))
		return SIGNED_LATE;
	return SIGNED_FINE;
}

/* A file URL without a sandbox: its signature belongs to one. Anybody may send one, and each
 * sandbox's token is tried: so it is short, and read once. */
struct sandbox *access_find_signed(struct conn *c)
{
	struct sandbox *s = NULL;
	struct signed_url u;

	if (!data_path_is(c, "/files") || c->to.port != ENVD_PORT ||
	    c->http.req.query.n > SIGNED_QUERY_MAX)
		return NULL;
	read_signed(c, &u);
	if (u.given.len == SIGNATURE_LEN)
		s = c->front->sandboxes;
	while (s && (s->pool || check_signature(&u, s->token) < SIGNED_LATE))
		s = s->next;
	free_signed(&u);
	if (s)
		memcpy(c->to.id, s->id, sizeof(s->id));
	return s;
}

bool access_envd(struct conn *c, const struct sandbox *s)
{
	auto_free char *token = field(c, "x-access-token");
	struct signed_url u;
	enum signed_as as;

	if (c->debug)
		return true;
	if (token && *token) {
		if (access_is_sandbox_token(c, s, false, token))
			return true;
		conn_refuse(c, 401, "unauthorized access, please provide a valid access token");
		return false;
	}
	if (!data_path_is(c, "/files")) {
		conn_refuse(c, 401, "unauthorized access, please provide a valid access token");
		return false;
	}
	read_signed(c, &u);
	as = check_signature(&u, s->token);
	free_signed(&u);
	if (as == SIGNED_FINE)
		return true;
	conn_refuse(c, 401, "%s",
		    as == SIGNED_NOT    ? "missing signature query parameter"
		    : as == SIGNED_LATE ? "signature is already expired"
					: "invalid signature");
	return false;
}

/* The code interpreter's port is one like others, but for what runs code: that is ward-envd's
 * business, and needs its token. */
static bool access_execute(struct conn *c, const struct sandbox *s)
{
	auto_free char *token = field(c, "x-access-token");

	return c->to.port != INTERPRETER_PORT || !data_path_is(c, "/execute") || c->debug ||
	       (token && access_is_sandbox_token(c, s, false, token));
}

bool access_port(struct conn *c, const struct sandbox *s)
{
	auto_free char *token = field(c, "e2b-traffic-access-token");

	if (!access_execute(c, s)) {
		conn_refuse(c, 401, "unauthorized access, please provide a valid access token");
		return false;
	}
	if (!s->private_traffic || (token && access_is_sandbox_token(c, s, true, token)))
		return true;
	conn_refuse(c, 403, "this sandbox's ports need the header e2b-traffic-access-token");
	return false;
}
