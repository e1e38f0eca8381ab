/*
 * What a client says. In: messages, untrusted. Out: answers, and calls that begin or end. Each
 * request is of one of two kinds: one that names its revision in _meta (stateless, 2026-07-28), or
 * one of the session that `initialize` opened. A message that cannot be read in one way only is
 * answered with an error and has no effect. Answers of the client's are those to our questions
 * (ask.c); others are dropped.
 */
#include "cli/mcp/parts.h"

#include <string.h>

#include "mcp/say.h"

#define META "io.modelcontextprotocol/"

static const struct {
	const char *name;
	enum revision revision;
} revisions[] = {
	{ "2026-07-28", REVISION_2026_07_28 }, { "2025-11-25", REVISION_2025_11_25 },
	{ "2025-06-18", REVISION_2025_06_18 }, { "2025-03-26", REVISION_2025_03_26 },
	{ "2024-11-05", REVISION_2024_11_05 }, { "2024-10-07", REVISION_2024_10_07 },
};

static const char instructions[] =
	"Each call runs in a sandbox of ward that has what the tool's annotation names and nothing "
	"else. A call that ward refuses is answered with isError and the reason: do not repeat it "
	"unchanged, and tell the user what the reason names as the remedy.";

/* -- answers */

void reply(const struct request *r, const struct buf *members)
{
	auto_buf result = { 0 }, line = { 0 };

	buf_puts(&result, r->modern ? "{\"resultType\":\"complete\"" : "{");
	if (r->modern && members->len)
		buf_puts(&result, ",");
	buf_add(&result, buf_text(members), members->len);
	buf_puts(&result, "}");
	result.failed |= members->failed;
	mcp_put_result(&line, r->message->id, &result);
	r->peer->send(r->peer, r->stream, SENT_ANSWER, 0, &line);
}

void reply_error(const struct request *r, int code, const char *message, const char *data)
{
	auto_buf line = { 0 };

	mcp_put_error(&line, r->message->id, code, message, data);
	r->peer->send(r->peer, r->stream, SENT_ANSWER, code, &line);
}

/* -- methods */

static void put_server(const struct server *s, struct json *j)
{
	json_begin_object(j, "serverInfo");
	json_string(j, "name", "ward");
	json_string(j, "title",
		    s->wrap ? "ward: a server in a sandbox" : "ward: tools in sandboxes");
	json_string(j, "version", WARD_VERSION);
	json_end_object(j);
}

/* Those of a wrapped server are not passed on: it has tools, and nothing else. */
static void put_capabilities(const struct server *s, struct json *j)
{
	json_begin_object(j, "capabilities");
	json_begin_object(j, "tools");
	json_bool(j, "listChanged", true);
	json_end_object(j);
	if (!s->wrap) {
		json_begin_object(j, "resources");
		json_end_object(j);
	}
	json_end_object(j);
}

static void put_instructions(const struct server *s, struct json *j)
{
	if (s->wrap)
		wrap_put_instructions(s, j);
	else
		json_string(j, "instructions", instructions);
}

/* By a form: {} means that, too. */
static bool has_forms(struct mcp_span capabilities)
{
	struct mcp_span elicitation, form, url;

	return mcp_get(capabilities, "elicitation", &elicitation) && mcp_type(elicitation) == '{' &&
	       (mcp_get(elicitation, "form", &form) || !mcp_get(elicitation, "url", &url));
}

bool dispatch_elicits(const struct request *r)
{
	struct mcp_span capabilities;

	if (!r->modern)
		return r->peer->elicits;
	return mcp_get(r->meta, META "clientCapabilities", &capabilities) &&
	       has_forms(capabilities);
}

/* The client's revision where it is one of ours, else our newest one with sessions. */
static void take_initialize(const struct request *r)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	struct mcp_span wanted, capabilities;
	size_t chosen = 1;

	if (!mcp_get(r->message->params, "protocolVersion", &wanted) || mcp_type(wanted) != '"') {
		reply_error(r, MCP_BAD_PARAMS, "protocolVersion is missing", NULL);
		return;
	}
	if (r->peer->revision) {
		reply_error(r, MCP_INVALID, "the session is open already", NULL);
		return;
	}
	for (size_t i = 1; i < ARRAY_LEN(revisions); i++)
		if (mcp_is(wanted, revisions[i].name))
			chosen = i;
	r->peer->revision = revisions[chosen].revision;
	r->peer->elicits = r->peer->revision >= REVISION_2025_06_18 &&
			   mcp_get(r->message->params, "capabilities", &capabilities) &&
			   has_forms(capabilities);
	json_string(&j, "protocolVersion", revisions[chosen].name);
	put_capabilities(r->peer->server, &j);
	put_server(r->peer->server, &j);
	put_instructions(r->peer->server, &j);
	reply(r, &out);
}

static void take_discover(const struct request *r)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_array(&j, "supportedVersions");
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++)
		json_string(&j, NULL, revisions[i].name);
	json_end_array(&j);
	put_capabilities(r->peer->server, &j);
	put_instructions(r->peer->server, &j);
	json_uint(&j, "ttlMs", LIST_TTL_MS);
	json_string(&j, "cacheScope", "private");
	json_begin_object(&j, "_meta");
	buf_puts(&out, "\"" META "serverInfo\":");
	json_begin_object(&j, NULL);
	json_string(&j, "name", "ward");
	json_string(&j, "version", WARD_VERSION);
	json_end_object(&j);
	json_end_object(&j);
	reply(r, &out);
}

static void take_ping(const struct request *r)
{
	reply(r, &(struct buf){ 0 });
}

static void take_call(const struct request *r)
{
	struct mcp_span name, arguments;
	const struct offer *offer;
	auto_buf text = { 0 };

	if (!mcp_get(r->message->params, "name", &name) || !mcp_text(name, &text)) {
		reply_error(r, MCP_BAD_PARAMS, "name is missing", NULL);
		return;
	}
	if (mcp_get(r->message->params, "arguments", &arguments) && mcp_type(arguments) != '{') {
		reply_error(r, MCP_BAD_PARAMS, "arguments must be an object", NULL);
		return;
	}
	offer = list_find(r->peer->server, buf_text(&text));
	if (offer && !canary_holds(r, offer))
		work_begin(r, offer, arguments);
	else if (!offer)
		reply_error(r, MCP_BAD_PARAMS, "there is no tool of that name", NULL);
}

enum { LEGACY = 1, MODERN = 2, FIRST = 4, OWN = 8 };

static const struct {
	const char *name;
	unsigned when; /* FIRST: before the session is open, too; OWN: not of a wrapped server */
	void (*take)(const struct request *r);
} methods[] = {
	{ "initialize", LEGACY | FIRST, take_initialize },
	{ "ping", LEGACY | FIRST, take_ping },
	{ "server/discover", MODERN, take_discover },
	{ "tools/list", LEGACY | MODERN, list_tools },
	{ "tools/call", LEGACY | MODERN, take_call },
	{ "resources/list", LEGACY | MODERN | OWN, resource_list },
	{ "resources/templates/list", LEGACY | MODERN | OWN, resource_templates },
	{ "resources/read", LEGACY | MODERN | OWN, resource_read },
	{ "subscriptions/listen", MODERN, listen_take },
};

/* -- messages */

static void refuse_revision(const struct request *r, struct mcp_span wanted)
{
	auto_buf data = { 0 };
	struct json j = { .out = &data };

	json_begin_object(&j, NULL);
	json_begin_array(&j, "supported");
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++)
		json_string(&j, NULL, revisions[i].name);
	json_end_array(&j);
	buf_puts(&data, ",\"requested\":");
	mcp_put_value(&data, wanted);
	json_end_object(&j);
	reply_error(r, MCP_NO_REVISION, "the revision is not supported", buf_text(&data));
}

/* Whether the request names its revision; false with an answer: a wrong one. */
static bool read_meta(struct request *r)
{
	struct mcp_span wanted, capabilities;

	if (!mcp_get(r->message->params, "_meta", &r->meta))
		return true;
	if (mcp_type(r->meta) != '{') {
		reply_error(r, MCP_BAD_PARAMS, "_meta must be an object", NULL);
		return false;
	}
	if (!mcp_get(r->meta, META "protocolVersion", &wanted))
		return true;
	if (!mcp_is(wanted, revisions[0].name)) {
		refuse_revision(r, wanted);
		return false;
	}
	r->modern = true;
	if (mcp_get(r->meta, META "clientCapabilities", &capabilities) &&
	    mcp_type(capabilities) == '{')
		return true;
	reply_error(r, MCP_BAD_PARAMS, "_meta must name " META "clientCapabilities", NULL);
	return false;
}

static void take_request(struct peer *p, uint32_t stream, const struct mcp_message *m)
{
	struct request r = { .peer = p, .stream = stream, .message = m };
	size_t i = 0;

	if (work_has(p, m->id)) {
		reply_error(&r, MCP_INVALID, "a request with this id is being answered", NULL);
		return;
	}
	if (!read_meta(&r))
		return;
	while (i < ARRAY_LEN(methods) && (strcmp(methods[i].name, m->method) != 0 ||
					  !(methods[i].when & (r.modern ? MODERN : LEGACY)) ||
					  (methods[i].when & OWN && p->server->wrap)))
		i++;
	if (i == ARRAY_LEN(methods))
		reply_error(&r, MCP_NO_METHOD, "there is no such method", NULL);
	else if (!r.modern && !p->revision && !(methods[i].when & FIRST))
		reply_error(&r, MCP_INVALID, "the session is not open: initialize comes first",
			    NULL);
	else
		methods[i].take(&r);
}

static void take_notification(struct peer *p, const struct mcp_message *m)
{
	struct mcp_span id;
	char text[MCP_ID_MAX];

	if (strcmp(m->method, "notifications/cancelled") == 0 &&
	    mcp_get(m->params, "requestId", &id) && mcp_id(id, text)) {
		work_cancel(p, text);
		listen_cancel(p, text);
	}
}

static void refuse(struct peer *p, uint32_t stream, int code, const char *id, const char *why)
{
	auto_buf line = { 0 };

	mcp_put_error(&line, id, code, why, NULL);
	p->send(p, stream, SENT_ANSWER, code, &line);
}

static void take_part(struct peer *p, uint32_t stream, struct mcp_span part)
{
	struct mcp_message m;
	const char *why;
	int code = mcp_read(part, &m, &why);

	if (code)
		refuse(p, stream, code, m.id, why);
	else if (m.kind == MCP_REQUEST)
		take_request(p, stream, &m);
	else if (m.kind == MCP_NOTIFICATION)
		take_notification(p, &m);
	else
		ask_answered(p, &m);
}

void dispatch(struct peer *p, uint32_t stream, struct mcp_span bytes)
{
	struct mcp_parts parts;
	const char *why;
	int code = mcp_split(bytes.at, bytes.n, &parts, &why);

	if (code) {
		refuse(p, stream, code, "", why);
		return;
	}
	if (parts.batch && p->revision != REVISION_2025_03_26) {
		refuse(p, stream, MCP_INVALID, "", "only revision 2025-03-26 has batches");
		return;
	}
	for (size_t i = 0; i < parts.count; i++)
		take_part(p, stream, parts.items[i]);
}

void dispatch_too_long(struct peer *p)
{
	refuse(p, 0, MCP_INVALID, "", "a message has at most 4 MiB");
}
