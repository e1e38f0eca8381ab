/*
 * Judging requests of streamable HTTP (http.h). In: a head that was read strictly, a body, from
 * any client that reaches the port. Out: what is asked for, or a status and why. A page in a
 * browser cannot come in: its Origin is foreign, and if its name leads here, so is its Host. A
 * client without token learns nothing but that it needs one. Runs in the front, which is confined.
 * Pure.
 */
#include "mcp/http.h"

#include <string.h>

#define META "io.modelcontextprotocol/"

static bool no(struct mcp_no *ret, unsigned status, int code, const char *why)
{
	*ret = (struct mcp_no){ status, code, why };
	return false;
}

/* -- Host and Origin */

static bool is_loopback(const struct host *h)
{
	static const uint8_t six[16] = { [15] = 1 };

	if (h->kind == HOST_NAME)
		return strcmp(h->name, "localhost") == 0;
	return h->kind == HOST_ADDRESS &&
	       (h->ip.family == 4 ? h->ip.bytes[0] == 127 : memcmp(h->ip.bytes, six, 16) == 0);
}

/* A name that an attacker has can lead here; an address is what the client itself has chosen. */
static bool is_host_fine(const struct host *h)
{
	return h->kind == HOST_ADDRESS || is_loopback(h);
}

/* A page that this machine serves itself; "null" and every other one are foreign. */
static bool is_origin_fine(struct http_text origin)
{
	static const char *const schemes[] = { "http://", "https://" };
	struct host host;
	uint16_t port;

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = strlen(schemes[i]);

		if (origin.n > n && memcmp(origin.s, schemes[i], n) == 0)
			return host_read_port(origin.s + n, origin.n - n, &host, &port) ==
				       HOST_FINE &&
			       is_loopback(&host);
	}
	return false;
}

/* -- fields */

/* Doubled ones are refused: two readers might take another one each. */
static bool is_once(const struct http_fields *f, const char *name)
{
	unsigned count = 0;

	for (unsigned i = 0; i < f->count; i++)
		count += http_text_is(f->items[i].name, name);
	return count <= 1;
}

static bool copy_field(const struct http_fields *f, const char *name, char *ret, size_t cap)
{
	struct http_text value = http_field_get(f, name);

	*ret = '\0';
	if (!value.s)
		return true;
	if (value.n >= cap || !value.n)
		return false;
	for (size_t i = 0; i < value.n; i++)
		if (value.s[i] < ' ' || value.s[i] > '~')
			return false;
	memcpy(ret, value.s, value.n);
	ret[value.n] = '\0';
	return true;
}

/* Compares digests, so that neither the time nor the length tells how much of it was right. */
static bool has_token(const struct http_fields *f, const uint8_t token[SHA256_BYTES])
{
	static const char scheme[] = "bearer ";
	struct http_text value = http_field_get(f, "authorization");
	uint8_t digest[SHA256_BYTES];
	unsigned different = 0;
	struct sha256 sum;
	size_t at = sizeof(scheme) - 1;

	if (value.n <= at || !http_text_is((struct http_text){ value.s, at }, scheme))
		return false;
	while (at < value.n && value.s[at] == ' ')
		at++;
	sha256_begin(&sum);
	sha256_add(&sum, value.s + at, value.n - at);
	sha256_end(&sum, digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		different |= (unsigned)(digest[i] ^ token[i]);
	return !different;
}

/* The next element of a list, without its parameters. */
static struct http_text next_of_list(struct http_text *rest)
{
	const char *comma = memchr(rest->s, ',', rest->n);
	size_t n = comma ? (size_t)(comma - rest->s) : rest->n;
	struct http_text all = { rest->s, n };
	const char *end = memchr(all.s, ';', all.n);

	rest->s += comma ? n + 1 : n;
	rest->n -= comma ? n + 1 : n;
	if (end)
		all.n = (size_t)(end - all.s);
	while (all.n && strchr(" \t", *all.s)) {
		all.s++;
		all.n--;
	}
	while (all.n && strchr(" \t", all.s[all.n - 1]))
		all.n--;
	return all;
}

static bool accepts(const struct http_fields *f, const char *type, const char *group)
{
	for (unsigned i = 0; i < f->count; i++) {
		struct http_text rest = f->items[i].value;

		if (!http_text_is(f->items[i].name, "accept"))
			continue;
		while (rest.n) {
			struct http_text one = next_of_list(&rest);

			if (http_text_is(one, type) || http_text_is(one, group) ||
			    http_text_is(one, "*/*"))
				return true;
		}
	}
	return false;
}

static bool is_json(const struct http_fields *f)
{
	struct http_text type = http_field_get(f, "content-type");

	return type.s && http_text_is(next_of_list(&type), "application/json");
}

static bool read_fields(const struct http_fields *f, struct mcp_ask *ret, struct mcp_no *ret_no)
{
	static const char *const once[] = { "authorization",        "origin",
					    "content-type",         "mcp-session-id",
					    "mcp-protocol-version", "last-event-id",
					    "mcp-method",           "mcp-name" };

	for (size_t i = 0; i < ARRAY_LEN(once); i++)
		if (!is_once(f, once[i]))
			return no(ret_no, 400, MCP_INVALID, "a header is there twice");
	if (!copy_field(f, "mcp-protocol-version", ret->revision, sizeof(ret->revision)))
		return no(ret_no, 400, MCP_INVALID, "mcp-protocol-version is not a revision");
	if (!copy_field(f, "mcp-session-id", ret->session, sizeof(ret->session)))
		return no(ret_no, 404, MCP_INVALID, "there is no such session");
	if (!copy_field(f, "last-event-id", ret->event, sizeof(ret->event)))
		return no(ret_no, 400, MCP_INVALID, "last-event-id is not an event of ours");
	if (!copy_field(f, "mcp-method", ret->method, sizeof(ret->method)) ||
	    !copy_field(f, "mcp-name", ret->name, sizeof(ret->name)))
		return no(ret_no, 400, MCP_HEADER_MISMATCH,
			  "mcp-method or mcp-name is not that of the body");
	return true;
}

static bool read_verb(const struct http_request *r, struct mcp_ask *ret, struct mcp_no *ret_no)
{
	static const char *const verbs[] = { "POST", "GET", "DELETE" };

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (r->method.n == strlen(verbs[i]) &&
		    memcmp(r->method.s, verbs[i], r->method.n) == 0) {
			ret->verb = (enum mcp_verb)i;
			return true;
		}
	return no(ret_no, 405, MCP_INVALID, "POST, GET or DELETE");
}

bool mcp_http_head(const struct http_head *head, const struct http_request *r,
		   const uint8_t token[SHA256_BYTES], struct mcp_ask *ret, struct mcp_no *ret_no)
{
	struct http_text origin = http_field_get(&r->fields, "origin");

	*ret = (struct mcp_ask){ 0 };
	if (!is_host_fine(&head->host))
		return no(ret_no, 403, MCP_INVALID,
			  "Host must be localhost or an address: a name could lead here from "
			  "anywhere");
	if (origin.s && (!is_once(&r->fields, "origin") || !is_origin_fine(origin)))
		return no(ret_no, 403, MCP_INVALID, "pages of that origin may not call tools");
	if (!is_once(&r->fields, "authorization") || !has_token(&r->fields, token))
		return no(ret_no, 401, MCP_INVALID,
			  "a bearer token is needed: ward mcp serve printed it, or it is in the "
			  "file of --token-file");
	if (r->path.n != strlen(MCP_HTTP_PATH) || memcmp(r->path.s, MCP_HTTP_PATH, r->path.n) != 0)
		return no(ret_no, 404, MCP_INVALID, "the path is " MCP_HTTP_PATH);
	if (!read_verb(r, ret, ret_no) || !read_fields(&r->fields, ret, ret_no))
		return false;
	if (ret->verb == MCP_POST && !is_json(&r->fields))
		return no(ret_no, 415, MCP_INVALID, "content-type must be application/json");
	if ((ret->verb == MCP_POST && !accepts(&r->fields, "application/json", "application/*")) ||
	    (ret->verb != MCP_DELETE && !accepts(&r->fields, "text/event-stream", "text/*")))
		return no(ret_no, 406, MCP_INVALID,
			  "accept must name application/json and text/event-stream; of a GET, the "
			  "latter");
	return true;
}

/* -- bodies */

bool mcp_is_session_revision(const char *revision)
{
	static const char *const all[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
					   "2024-10-07" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(revision, all[i]) == 0)
			return true;
	return false;
}

/* What mcp-name repeats. */
static bool name_of(const struct mcp_message *m, struct mcp_span *ret)
{
	static const struct {
		const char *method, *key;
	} all[] = { { "tools/call", "name" }, { "resources/read", "uri" } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(m->method, all[i].method) == 0)
			return mcp_get(m->params, all[i].key, ret);
	return false;
}

/* A proxy decides by the headers, ward by the body: they must agree. */
static bool agrees(const struct mcp_message *m, struct mcp_span revision, const struct mcp_ask *ask)
{
	struct mcp_span name;

	if (!mcp_is(revision, ask->revision) || strcmp(m->method, ask->method) != 0)
		return false;
	return !name_of(m, &name) ? !*ask->name : mcp_is(name, ask->name);
}

static bool read_one(struct mcp_span part, const struct mcp_ask *ask, struct mcp_body *ret,
		     struct mcp_no *ret_no)
{
	struct mcp_span meta, revision;
	struct mcp_message m;
	const char *why;
	int code = mcp_read(part, &m, &why);

	if (!ret->batch)
		memcpy(ret->id, m.id, sizeof(ret->id));
	if (code)
		return no(ret_no, 400, code, why);
	if (m.kind != MCP_REQUEST)
		return true;
	ret->requests++;
	ret->initialize |= strcmp(m.method, "initialize") == 0;
	if (!mcp_get(m.params, "_meta", &meta) || !mcp_get(meta, META "protocolVersion", &revision))
		return strcmp(ask->revision, MCP_STATELESS) != 0 ||
		       no(ret_no, 400, MCP_HEADER_MISMATCH,
			  "mcp-protocol-version is not that of the body");
	ret->stateless = true;
	return agrees(&m, revision, ask) ||
	       no(ret_no, 400, MCP_HEADER_MISMATCH,
		  "mcp-protocol-version, mcp-method and mcp-name must be those of the body");
}

bool mcp_http_body(const uint8_t *bytes, size_t n, const struct mcp_ask *ask, struct mcp_body *ret,
		   struct mcp_no *ret_no)
{
	struct mcp_parts parts;
	const char *why;
	int code = mcp_split(bytes, n, &parts, &why);

	*ret = (struct mcp_body){ 0 };
	if (code)
		return no(ret_no, 400, code, why);
	ret->batch = parts.batch;
	for (size_t i = 0; i < parts.count; i++)
		if (!read_one(parts.items[i], ask, ret, ret_no))
			return false;
	if (parts.batch && (ret->stateless || ret->initialize))
		return no(ret_no, 400, MCP_INVALID, "such a request cannot stand in a batch");
	if (!ret->stateless && *ask->revision && !mcp_is_session_revision(ask->revision) &&
	    strcmp(ask->revision, MCP_STATELESS) != 0)
		return no(ret_no, 400, MCP_INVALID, "mcp-protocol-version is not supported");
	return true;
}

bool mcp_http_event(const char *text, uint32_t *ret_stream, uint64_t *ret_number)
{
	const char *minus = strchr(text, '-');
	uint64_t stream;

	if (!minus || minus == text || !minus[1])
		return false;
	if (!mcp_uint((struct mcp_span){ (const uint8_t *)text, (size_t)(minus - text) },
		      UINT32_MAX, &stream) ||
	    !mcp_uint((struct mcp_span){ (const uint8_t *)minus + 1, strlen(minus + 1) },
		      UINT64_MAX, ret_number))
		return false;
	*ret_stream = (uint32_t)stream;
	return true;
}
