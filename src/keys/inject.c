/*
 * Putting a secret in. In: a request's head and a grant. Out: the head without the grant's place,
 * and the one that is sent. Whatever a program inside wrote into that place goes: it acts as whom
 * the grant says, or not at all. Runs in ward-keys.
 */
#include "keys/inject.h"

#include <string.h>
#include <strings.h>

#include "creds/forms.h"
#include "rules/http_alias.h"

bool inject_line(const uint8_t *head, const struct http_head *h, struct inject_line *ret)
{
	const char *at = (const char *)head, *end = memmem(at, h->len, "\r\n", 2), *query;

	if (!end)
		return false;
	ret->line_len = (size_t)(end - at) + 2;
	ret->method = at;
	ret->method_len = h->method_len;
	ret->target = at + h->method_len + 1;
	if (ret->target >= end)
		return false;
	ret->target_len =
		(size_t)((const char *)memchr(ret->target, ' ', (size_t)(end - ret->target) + 1) -
			 ret->target);
	if (ret->target + ret->target_len > end || ret->target[0] != '/')
		return false;
	query = memchr(ret->target, '?', ret->target_len);
	ret->path_len = query ? (size_t)(query - ret->target) : ret->target_len;
	return true;
}

static bool is_of_grant(const struct policy_grant *g, const char *path, size_t n)
{
	bool found = false;

	for (size_t i = 0; i < g->paths.len && !found; i++)
		found = grant_path_matches(g->paths.items[i], path, n);
	return found;
}

/* Whether every reading of the request's path is one of the grant's. A path that can be read in
 * unknown ways is none of them, and neither is one that stands in a header. */
static bool path_fits(const struct policy_grant *g, const struct http_request *request,
		      struct http_path *normal)
{
	struct http_text path = request->path;

	if (!g->paths.len)
		return true;
	if (http_moves_path(request) || !http_path_read(path.s, path.n, normal))
		return false;
	return is_of_grant(g, normal->text, normal->len) &&
	       (!normal->two || is_of_grant(g, normal->other, normal->other_len)) &&
	       (!normal->resolved || is_of_grant(g, path.s, path.n));
}

/* The method of the first line, and those that a header or a parameter puts in its place for some
 * servers. */
static bool method_fits(const struct policy_grant *g, const struct http_request *request)
{
	struct http_text method = request->method;
	bool fits = true;

	for (unsigned i = 0; g->methods.len && fits && method.s; i++) {
		fits = false;
		for (size_t k = 0; k < g->methods.len && !fits; k++)
			fits = i ? http_text_is(method, g->methods.items[k])
				 : strlen(g->methods.items[k]) == method.n &&
					       memcmp(g->methods.items[k], method.s, method.n) == 0;
		method = http_override(request, i);
	}
	return fits;
}

bool inject_fits(const struct policy_grant *g, const struct http_request *request,
		 struct http_path *room)
{
	return method_fits(g, request) && path_fits(g, request, room);
}

static bool is_way(const struct inject_secret *secrets, size_t count, enum grant_way way)
{
	bool found = false;

	for (size_t i = 0; i < count && !found; i++)
		found = secrets[i].grant->way == way;
	return found;
}

static bool is_parameter(const struct inject_secret *secrets, size_t count, const char *name,
			 size_t n)
{
	bool found = false;

	for (size_t i = 0; i < count && !found; i++)
		found = secrets[i].grant->way == GRANT_QUERY &&
			http_parameter_like(name, n, secrets[i].grant->parameter);
	return found;
}

/* The target without the grants' parameters, whatever the spelling and the separator: they would be
 * there twice, and the server's choice. */
static void add_target(const struct inject_secret *secrets, size_t count,
		       const struct inject_line *l, struct buf *out)
{
	const char *at = l->target + l->path_len, *end = l->target + l->target_len;
	char before = '?';

	if (!is_way(secrets, count, GRANT_QUERY)) {
		buf_add(out, l->target, l->target_len);
		return;
	}
	buf_add(out, l->target, l->path_len);
	for (at += at < end; at < end;) {
		const char *next = at, *sign;

		while (next < end && *next != '&' && *next != ';')
			next++;
		sign = memchr(at, '=', (size_t)(next - at));
		if (next > at &&
		    !is_parameter(secrets, count, at, (size_t)((sign ? sign : next) - at))) {
			buf_add(out, &before, 1);
			buf_add(out, at, (size_t)(next - at));
			before = next < end ? *next : '&';
		}
		at = next + (next < end);
	}
}

static bool is(const char *name, size_t n, const char *what)
{
	return n == strlen(what) && strncasecmp(name, what, n) == 0;
}

/* Whether a field is a grant's own place, or would be for some servers. */
static bool is_place(const struct inject_secret *secrets, size_t count, const char *name, size_t n)
{
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		const struct policy_grant *g = secrets[i].grant;

		found = g->way != GRANT_QUERY &&
			(http_name_like(name, n, g->header) ||
			 (g->way == GRANT_SIGV4 &&
			  http_name_like(name, n, "x-amz-security-token")));
	}
	return found;
}

static void read_sign(struct sigv4_request *sign, const char *name, size_t name_len,
		      const char *value, size_t n)
{
	char lower[32];

	while (n && (*value == ' ' || *value == '\t'))
		value++, n--;
	while (n && (value[n - 1] == ' ' || value[n - 1] == '\t'))
		n--;
	if (is(name, name_len, "authorization"))
		sigv4_read(sign, value, n);
	for (size_t i = 0; i < name_len && i < sizeof(lower); i++)
		lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
	if (name_len < sizeof(lower))
		sigv4_read_field(sign, lower, name_len, value, n);
}

bool inject_base(const struct inject_secret *secrets, size_t count, const uint8_t *head,
		 const struct http_head *h, struct buf *ret, struct sigv4_request *sign)
{
	const char *at = (const char *)head, *end = at + h->len;
	struct inject_line l;

	if (sign)
		*sign = (struct sigv4_request){ 0 };
	if (!inject_line(head, h, &l))
		return false;
	buf_add(ret, l.method, l.method_len);
	buf_puts(ret, " ");
	add_target(secrets, count, &l, ret);
	buf_puts(ret, " HTTP/1.1\r\n");
	for (at += l.line_len; at && at < end;) {
		const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2), *colon;

		if (!line_end || line_end == at)
			break;
		colon = memchr(at, ':', (size_t)(line_end - at));
		if (!colon)
			return false;
		if (sign)
			read_sign(sign, at, (size_t)(colon - at), colon + 1,
				  (size_t)(line_end - colon) - 1);
		if (!is_place(secrets, count, at, (size_t)(colon - at)) &&
		    !is(at, (size_t)(colon - at), "accept-encoding") &&
		    !is(at, (size_t)(colon - at), "grpc-accept-encoding") &&
		    !is(at, (size_t)(colon - at), "sec-websocket-extensions"))
			buf_add(ret, at, (size_t)(line_end - at) + 2);
		at = line_end + 2;
	}
	buf_puts(ret, "Accept-Encoding: identity\r\n\r\n");
	return !ret->failed;
}

/* What one grant puts in, behind the target (QUERY) or the fields. head: what is sent so far, for a
 * signature. */
static size_t write_place(const struct inject_secret *secret, const uint8_t *head, size_t head_n,
			  const struct sigv4_request *sign, uint8_t *out, size_t room)
{
	const struct policy_grant *g = secret->grant;
	const uint8_t *const *values = secret->values;
	const size_t *bytes = secret->bytes;
	size_t n = bytes[0], before = strlen(g->before), behind = strlen(g->behind),
	       name = strlen(g->header), at = 0;
	const char *user = g->user ? g->user : "", *parameter = g->parameter ? g->parameter : "";
	struct sigv4_key key = { .id = values[0], .id_len = bytes[0] };

	if (!secret->count ||
	    room < 3 * n + name + before + behind + 512 + 2 * strlen(user) + strlen(parameter))
		return 0;
	switch (g->way) {
	case GRANT_QUERY:
		at = strlen(parameter);
		memcpy(out, parameter, at);
		out[at++] = '=';
		return at + form_percent(values[0], n, out + at);
	case GRANT_SIGV4:
		if (secret->count < 2)
			return 0;
		key.secret = values[1];
		key.secret_len = bytes[1];
		key.token = secret->count > 2 ? values[2] : NULL;
		key.token_len = secret->count > 2 ? bytes[2] : 0;
		return sigv4_sign(sign, &key, head, head_n, (char *)out, room);
	case GRANT_BASIC:
		before = (size_t)snprintf((char *)out, room, "Authorization: Basic ");
		name = strlen(user);
		/* user:secret is put together behind where it is written encoded */
		memcpy(out + room - (name + 1 + n), user, name);
		out[room - (1 + n)] = ':';
		memcpy(out + room - n, values[0], n);
		at = before + form_base64(out + room - (name + 1 + n), name + 1 + n, out + before);
		explicit_bzero(out + room - (name + 1 + n), name + 1 + n);
		break;
	case GRANT_HEADER:
		memcpy(out, g->header, name);
		memcpy(out + name, ": ", 2);
		memcpy(out + name + 2, g->before, before);
		at = name + 2 + before;
		memcpy(out + at, values[0], n);
		memcpy(out + at + n, g->behind, behind);
		at += n + behind;
		break;
	}
	memcpy(out + at, "\r\n", 2);
	return at + 2;
}

/* The head with the grants' parameters, in front of " HTTP/1.1". */
static size_t write_parameters(const struct inject_secret *secrets, size_t count,
			       const struct buf *base, uint8_t *out, size_t room)
{
	const char *line_end = memmem(base->data, base->len, "\r\n", 2);
	size_t target_end = line_end ? (size_t)(line_end - base->data) - 9 : 0, at = target_end;
	bool query = line_end && memchr(base->data, '?', target_end);

	if (!line_end || base->len > room)
		return 0;
	memcpy(out, base->data, at);
	for (size_t i = 0; i < count; i++) {
		size_t put;

		if (secrets[i].grant->way != GRANT_QUERY)
			continue;
		put = at + 1 < room
			      ? write_place(&secrets[i], NULL, 0, NULL, out + at + 1, room - at - 1)
			      : 0;
		if (!put)
			return 0;
		out[at] = query ? '&' : '?';
		query = true;
		at += put + 1;
	}
	if (at + (base->len - target_end) > room)
		return 0;
	memcpy(out + at, base->data + target_end, base->len - target_end);
	return at + (base->len - target_end);
}

/* One more field, in front of the empty line. It is written behind the head, which a signature is
 * over. */
static size_t add_field(const struct inject_secret *secret, const struct sigv4_request *sign,
			uint8_t *out, size_t n, size_t room)
{
	size_t put = n < room ? write_place(secret, out, n, sign, out + n, room - n) : 0;

	if (!put)
		return 0;
	memmove(out + n - 2, out + n, put);
	memcpy(out + n - 2 + put, "\r\n", 2);
	return n + put;
}

size_t inject_write(const struct inject_secret *secrets, size_t count, const struct buf *base,
		    const struct sigv4_request *sign, uint8_t *out, size_t room)
{
	size_t n = write_parameters(secrets, count, base, out, room);

	for (int signing = 0; signing < 2; signing++)
		for (size_t i = 0; n && i < count; i++)
			if (secrets[i].grant->way != GRANT_QUERY &&
			    (secrets[i].grant->way == GRANT_SIGV4) == signing)
				n = add_field(&secrets[i], sign, out, n, room);
	if (!n)
		explicit_bzero(out, room); /* some of them may be there */
	return n;
}

const char *inject_field_at(const struct buf *base, size_t at, size_t *ret_len)
{
	const char *line = base->data, *end = base->data + base->len;
	bool first = true;

	*ret_len = 0;
	while (line < end) {
		const char *line_end = memmem(line, (size_t)(end - line), "\r\n", 2), *colon;

		if (!line_end || line_end == line)
			return NULL;
		if (at < (size_t)(line_end - base->data)) {
			colon = first ? NULL : memchr(line, ':', (size_t)(line_end - line));
			*ret_len = colon ? (size_t)(colon - line) : 0;
			return colon ? line : NULL;
		}
		first = false;
		line = line_end + 2;
	}
	return NULL;
}
