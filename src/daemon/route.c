/*
 * Where a request goes (route.h). In: its head, read strictly before (rules/http1.h). Out: the row
 * of a table, or a sandbox and a port. Runs in the front. Pure.
 */
#include "daemon/route.h"

#include <string.h>
#include <strings.h>

#include "daemon/access.h"
#include "envd/base64.h"
#include "envd/query.h"

static const struct {
	const char *name, *method, *path;
	enum access_right right;
} rows[ROUTES] = {
	[ROUTE_NONE] = { "none", "", "", RIGHT_OPEN },
#define ROUTE(id, method, path, right) [ROUTE_##id] = { #id, method, path, RIGHT_##right },
#include "daemon/routes.def"
};

bool route_is_id(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9')))
			return false;
	return n == SANDBOX_ID;
}

bool route_is_template(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return n > 0 && n <= TEMPLATE_MAX && !name[n] && *name != '-';
}

const char *route_built_in(size_t i)
{
	/* the others are what E2B's SDKs ask for: the code interpreter's, and a create with mcp */
	static const char *const names[] = { "base", "code-interpreter-v1", "mcp-gateway" };

	return i < ARRAY_LEN(names) ? names[i] : NULL;
}

bool route_is_built_in(const char *name)
{
	const char *one;

	for (size_t i = 0; (one = route_built_in(i)); i++)
		if (strcmp(name, one) == 0)
			return true;
	return false;
}

bool route_read_template(const char *text, char ret[TEMPLATE_MAX + 1])
{
	size_t n = strcspn(text, ":");

	if (n > TEMPLATE_MAX ||
	    (text[n] && strcmp(text + n, ":latest") != 0 && strcmp(text + n, ":default") != 0))
		return false;
	memcpy(ret, text, n);
	ret[n] = '\0';
	return route_is_template(ret);
}

static bool read_port(const char *s, size_t n, uint16_t *ret)
{
	unsigned port = 0;

	if (!n || n > 5 || s[0] == '0')
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		port = port * 10 + (unsigned)(s[i] - '0');
	}
	*ret = (uint16_t)port;
	return port <= 65535;
}

/* "PORT-ID.more": 1; no such name: 0. Of such a form, but wrong: -1. */
static int read_label(const char *name, struct route_to *ret)
{
	size_t n = strcspn(name, "."), digits = strspn(name, "0123456789");

	if (!name[n] || !digits || name[digits] != '-')
		return 0;
	if (!read_port(name, digits, &ret->port) || n - digits - 1 != SANDBOX_ID ||
	    !route_is_id(name + digits + 1, SANDBOX_ID))
		return -1;
	memcpy(ret->id, name + digits + 1, SANDBOX_ID);
	return 1;
}

/* Headers that are there twice are refused: two readers might take another one each. */
static bool once(const struct http_fields *f, const char *name)
{
	unsigned count = 0;

	for (unsigned i = 0; i < f->count; i++)
		count += http_text_is(f->items[i].name, name);
	return count <= 1;
}

int route_host(const struct host *host, const struct http_fields *fields, struct route_to *ret)
{
	struct http_text id = http_field_get(fields, "e2b-sandbox-id"),
			 port = http_field_get(fields, "e2b-sandbox-port");
	int r;

	*ret = (struct route_to){ .port = ENVD_PORT };
	r = host->kind == HOST_NAME ? read_label(host->name, ret) : 0;
	if (r != 0)
		return r;
	if (!id.s && !port.s)
		return 0;
	if (!once(fields, "e2b-sandbox-id") || !once(fields, "e2b-sandbox-port"))
		return -1;
	if (port.s && !read_port(port.s, port.n, &ret->port))
		return -1;
	if (id.s && route_is_id(id.s, id.n))
		memcpy(ret->id, id.s, id.n);
	else if (id.s)
		memset(ret->id, '-', SANDBOX_ID); /* an id that no sandbox has */
	return 1;
}

/* Whether the path matches the row; what stands for {id} is in *ret_id. */
static bool matches(const char *row, struct http_text path, struct http_text *ret_id)
{
	const char *at = path.s, *end = path.s + path.n;

	while (*row && at < end) {
		if (strncmp(row, "{id}", 4) == 0) {
			const char *from = at;

			while (at < end && *at != '/')
				at++;
			*ret_id = (struct http_text){ from, (size_t)(at - from) };
			row += 4;
			if (at == from)
				return false;
			continue;
		}
		if (*row++ != *at++)
			return false;
	}
	return !*row && at == end;
}

enum route_verb route_find(struct http_text method, struct http_text path, char *ret_id, size_t n,
			   unsigned *ret_status)
{
	*ret_status = 404;
	*ret_id = '\0';
	for (int i = 1; i < ROUTES; i++) {
		struct http_text id = { NULL, 0 };
		auto_buf text = { 0 };

		if (!matches(rows[i].path, path, &id))
			continue;
		*ret_status = 405;
		if (method.n != strlen(rows[i].method) ||
		    memcmp(method.s, rows[i].method, method.n) != 0)
			continue;
		if (id.s && (!query_decode(id.s, id.n, false, &text) || text.len >= n)) {
			*ret_status = 404;
			return ROUTE_NONE;
		}
		if (id.s)
			memcpy(ret_id, text.data, text.len + 1);
		return (enum route_verb)i;
	}
	return ROUTE_NONE;
}

unsigned route_right(enum route_verb verb)
{
	return rows[verb].right;
}

const char *route_method(enum route_verb verb)
{
	return rows[verb].method;
}

const char *route_path(enum route_verb verb)
{
	return rows[verb].path;
}

const char *route_name(enum route_verb verb)
{
	return rows[verb].name;
}

static void add_text(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text));
}

void route_sign_begin(const char *path, const char *operation, const char *user, struct sha256 *ret)
{
	sha256_begin(ret);
	add_text(ret, path);
	add_text(ret, ":");
	add_text(ret, operation);
	add_text(ret, ":");
	add_text(ret, user);
	add_text(ret, ":");
}

void route_sign_end(const struct sha256 *begun, const char *token, const char *expires,
		    struct buf *out)
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 s = *begun;

	add_text(&s, token);
	if (expires) {
		add_text(&s, ":");
		add_text(&s, expires);
	}
	sha256_end(&s, digest);
	buf_puts(out, "v1_");
	base64_write(digest, sizeof(digest), out);
	while (out->len && out->data[out->len - 1] == '=')
		out->data[--out->len] = '\0';
}

bool route_equal(const char *a, const char *b)
{
	size_t n = strlen(a), other = strlen(b);
	unsigned different = n != other;

	for (size_t i = 0; i < n; i++)
		different |= (unsigned char)(a[i] ^ (i < other ? b[i] : 0));
	return !different;
}
