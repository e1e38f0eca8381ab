/*
 * A session with a server (remote.h). In: its bytes. Out: calls of the sink, and bytes for it.
 * Ids are numbers of ours that are never used twice, so that a late answer cannot be taken for
 * another's. Everything that a hostile server could make grow is bounded: a line, what waits to be
 * sent, tools, pages, lists, lines that are no messages. Pure.
 */
#include "mcp/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "mcp/say.h"

#define REVISION "2025-11-25"
#define PAGES_MAX 100
#define LISTS_MAX 100 /* that it can have read because they have changed */
#define JUNK_MAX 10000
#define CURSOR_MAX 4096
#define NOT_OFFERED (-32601)

static void fail(struct mcp_remote *u, const char *why)
{
	if (u->state != REMOTE_BROKEN)
		u->why = why;
	u->state = REMOTE_BROKEN;
}

static void send(struct mcp_remote *u, const struct buf *message)
{
	buf_add(&u->out, buf_text(message), message->len);
	buf_puts(&u->out, "\n");
	if (message->failed || u->out.failed)
		fail(u, "out of memory");
	else if (u->out.len > REMOTE_OUT_MAX)
		fail(u, "it does not read what it is sent");
}

static uint64_t ask(struct mcp_remote *u, const char *method, const char *params)
{
	auto_buf line = { 0 };
	char id[24];

	snprintf(id, sizeof(id), "%llu", (unsigned long long)++u->last_id);
	mcp_put_request(&line, id, method, params);
	send(u, &line);
	return u->last_id;
}

static void notify(struct mcp_remote *u, const char *method, const char *params)
{
	auto_buf line = { 0 };

	mcp_put_notification(&line, method, params);
	send(u, &line);
}

void remote_begin(struct mcp_remote *u)
{
	*u = (struct mcp_remote){ .state = REMOTE_STARTING };
	u->asked = ask(u, "initialize",
		       "{\"protocolVersion\":\"" REVISION "\",\"capabilities\":{},"
		       "\"clientInfo\":{\"name\":\"ward\",\"version\":\"" WARD_VERSION "\"}}");
}

/* -- its tools */

static void ask_list(struct mcp_remote *u, const struct remote_sink *sink)
{
	u->state = REMOTE_LISTING;
	u->again = false;
	u->pages = 0;
	u->tools = 0;
	if (++u->lists > LISTS_MAX) {
		fail(u, "its list of tools changes without end");
		return;
	}
	sink->list_begins(sink->state);
	u->asked = ask(u, "tools/list", "{}");
}

static void end_list(struct mcp_remote *u, const struct remote_sink *sink)
{
	u->asked = 0;
	u->state = REMOTE_READY;
	sink->listed(sink->state);
	if (u->again)
		ask_list(u, sink);
}

static void take_info(struct mcp_remote *u, const struct remote_sink *sink, struct mcp_span result)
{
	static const char *const revisions[] = { REVISION, "2025-06-18", "2025-03-26", "2024-11-05",
						 "2024-10-07" };
	struct mcp_span version, capabilities, tools;
	bool known = false;

	if (mcp_get(result, "protocolVersion", &version))
		for (size_t i = 0; i < ARRAY_LEN(revisions); i++)
			known |= mcp_is(version, revisions[i]);
	if (!known) {
		fail(u, "it speaks a revision of MCP that ward does not know");
		return;
	}
	sink->info(sink->state, result);
	notify(u, "notifications/initialized", NULL);
	if (mcp_get(result, "capabilities", &capabilities) &&
	    mcp_get(capabilities, "tools", &tools)) {
		ask_list(u, sink);
		return;
	}
	sink->list_begins(sink->state);
	end_list(u, sink);
}

struct listing {
	struct mcp_remote *u;
	const struct remote_sink *sink;
};

static bool take_tool(void *state, unused_arg const char *key, struct mcp_span tool)
{
	const struct listing *l = state;

	if (mcp_type(tool) != '{' || l->u->tools++ == REMOTE_TOOLS_MAX)
		return false;
	l->sink->tool(l->sink->state, tool);
	return true;
}

static void take_page(struct mcp_remote *u, const struct remote_sink *sink, struct mcp_span result)
{
	struct listing l = { u, sink };
	auto_buf text = { 0 }, params = { 0 };
	struct mcp_span tools, cursor;

	if (!mcp_get(result, "tools", &tools) || mcp_type(tools) != '[' ||
	    !mcp_each(tools, take_tool, &l)) {
		fail(u, "it lists no tools, or more than 512");
		return;
	}
	if (!mcp_get(result, "nextCursor", &cursor) || mcp_type(cursor) == 'n') {
		end_list(u, sink);
		return;
	}
	if (++u->pages == PAGES_MAX || cursor.n > CURSOR_MAX || !mcp_text(cursor, &text)) {
		fail(u, "it lists tools without end");
		return;
	}
	buf_puts(&params, "{\"cursor\":");
	json_quote(&params, buf_text(&text));
	buf_puts(&params, "}");
	u->asked = ask(u, "tools/list", buf_text(&params));
}

/* -- its messages */

static struct remote_call *find(struct mcp_remote *u, uint64_t id)
{
	for (size_t i = 0; i < REMOTE_CALLS_MAX; i++)
		if (id && u->calls[i].id == id)
			return &u->calls[i];
	return NULL;
}

static void take_answer(struct mcp_remote *u, const struct remote_sink *sink,
			const struct mcp_message *m)
{
	struct mcp_span text = { (const uint8_t *)m->id, strlen(m->id) };
	struct remote_call *call;
	bool dropped;
	uint64_t id;

	if (!mcp_uint(text, u->last_id, &id))
		return;
	if (id && id == u->asked) {
		if (m->kind == MCP_FAILURE)
			fail(u, u->state == REMOTE_STARTING ? "it refuses initialize"
							    : "it refuses tools/list");
		else if (u->state == REMOTE_STARTING)
			take_info(u, sink, m->body);
		else
			take_page(u, sink, m->body);
		return;
	}
	call = find(u, id);
	if (!call)
		return;
	dropped = call->dropped;
	*call = (struct remote_call){ 0 };
	if (!dropped)
		sink->answer(sink->state, (size_t)(call - u->calls), m->kind == MCP_FAILURE,
			     m->body);
}

static void take_request(struct mcp_remote *u, const struct remote_sink *sink,
			 const struct mcp_message *m)
{
	auto_buf line = { 0 }, nothing = { 0 };

	buf_puts(&nothing, "{}");
	if (strcmp(m->method, "ping") == 0) {
		mcp_put_result(&line, m->id, &nothing);
	} else {
		mcp_put_error(&line, m->id, NOT_OFFERED, "ward does not pass this on", NULL);
		sink->refused(sink->state, m->method);
	}
	send(u, &line);
}

static void take_message(struct mcp_remote *u, const struct remote_sink *sink, struct mcp_span part)
{
	struct mcp_message m;
	const char *why;

	if (mcp_read(part, &m, &why) != 0) {
		u->junk++;
	} else if (m.kind == MCP_REQUEST) {
		take_request(u, sink, &m);
	} else if (m.kind != MCP_NOTIFICATION) {
		take_answer(u, sink, &m);
	} else if (strcmp(m.method, "notifications/tools/list_changed") == 0) {
		if (u->state == REMOTE_READY)
			ask_list(u, sink);
		else
			u->again = u->state == REMOTE_LISTING;
	}
}

void remote_add(struct mcp_remote *u, const struct remote_sink *sink, const void *bytes, size_t n)
{
	struct mcp_parts parts;
	struct mcp_span line;
	const char *why;
	int r;

	mcp_lines_add(&u->lines, bytes, n);
	while (u->state != REMOTE_BROKEN && (r = mcp_lines_next(&u->lines, &line)) != 0) {
		if (r < 0) {
			fail(u, r == -EMSGSIZE ? "it sent a message of more than 4 MiB"
					       : "out of memory");
			return;
		}
		if (mcp_split(line.at, line.n, &parts, &why) != 0)
			u->junk++;
		else
			for (size_t i = 0; i < parts.count && u->state != REMOTE_BROKEN; i++)
				take_message(u, sink, parts.items[i]);
		if (u->junk > JUNK_MAX)
			fail(u, "it writes what is not MCP");
	}
}

/* -- calls */

int remote_call(struct mcp_remote *u, const char *tool, struct mcp_span arguments, size_t *ret_call)
{
	auto_buf params = { 0 };
	size_t i = 0;

	if (u->state == REMOTE_BROKEN || u->state == REMOTE_STARTING)
		return -EPIPE;
	while (i < REMOTE_CALLS_MAX && u->calls[i].id)
		i++;
	if (i == REMOTE_CALLS_MAX)
		return -EBUSY;
	buf_puts(&params, "{\"name\":");
	json_quote(&params, tool);
	buf_puts(&params, ",\"arguments\":");
	mcp_put_value(&params, arguments);
	buf_puts(&params, "}");
	u->calls[i] = (struct remote_call){ .id = ask(u, "tools/call", buf_text(&params)) };
	*ret_call = i;
	return 0;
}

void remote_drop(struct mcp_remote *u, size_t call)
{
	auto_buf params = { 0 };

	if (!u->calls[call].id || u->calls[call].dropped)
		return;
	u->calls[call].dropped = true;
	buf_printf(&params, "{\"requestId\":%llu,\"reason\":\"cancelled\"}",
		   (unsigned long long)u->calls[call].id);
	notify(u, "notifications/cancelled", buf_text(&params));
}

size_t remote_open(const struct mcp_remote *u, bool dropped)
{
	size_t count = 0;

	for (size_t i = 0; i < REMOTE_CALLS_MAX; i++)
		count += u->calls[i].id && u->calls[i].dropped == dropped;
	return count;
}

void remote_free(struct mcp_remote *u)
{
	buf_free(&u->out);
	mcp_lines_free(&u->lines);
}
