/*
 * What a wrapped server says of itself. In: its instructions and definitions, untrusted. Out: how
 * they differ from what was accepted; or, where nothing was, all of them in one form, with the
 * reason for each tool that cannot be used. Runs in the relay.
 */
#include "cli/mcp/relay_parts.h"

#include <string.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/text.h"
#include "tools/json_schema.h"
#include "tools/mcp_pin.h"

#define CONTROL_FD 3
#define TOOL_NAME_MAX 128

static bool is_tool_name(const char *name)
{
	static const char set[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t n = strlen(name);

	return n && n <= TOOL_NAME_MAX && strspn(name, set) == n;
}

static const struct node *member(const struct node *n, const char *key)
{
	return n && n->kind == NODE_MAP ? node_get(n, key) : NULL;
}

/* NULL: it can be used. */
static const char *find_fault(const struct node *tool, struct schema_error *ret)
{
	const struct node *name = member(tool, "name"), *input = member(tool, "inputSchema");
	const struct node *description = member(tool, "description");

	if (!name || name->kind != NODE_STRING || !is_tool_name(name->text))
		return "its name is none of 1 to 128 letters, digits, _, . and -";
	if (description && description->kind != NODE_STRING)
		return "its description is no text";
	if (!input || input->kind != NODE_MAP)
		return "it has no input schema";
	return json_schema_check(input, false, ret) < 0 ? ret->message : NULL;
}

static void put_unusable(struct relay *r, const struct node *tool, const char *why)
{
	const struct node *name = member(tool, "name");
	auto_buf out = { 0 }, shown = { 0 };
	struct json j = { .out = &out };

	text_escape(&shown, name && name->text ? name->text : "?");
	json_begin_object(&j, NULL);
	json_string(&j, "name", buf_text(&shown));
	json_string(&j, "why", why);
	json_end_object(&j);
	if (r->start.keep)
		strv_take(&r->unusable, buf_take(&out));
}

static void compare(struct relay *r, const char *name, const struct buf *text)
{
	const struct pins *p = r->start.pins;
	char hex[SHA256_HEX];

	sha256_hex(buf_text(text), text->len, hex);
	for (size_t i = 0; p && i < p->count && i < REMOTE_TOOLS_MAX; i++) {
		if (strcmp(p->tools[i].name, name) != 0)
			continue;
		/* the second of two with one name is another tool */
		r->report.drift[i] =
			strcmp(p->tools[i].hex, hex) == 0 && r->report.drift[i] == RELAY_GONE
				? RELAY_SAME
				: RELAY_CHANGED;
		return;
	}
	r->report.fresh++;
}

static void take_tool(void *state, struct mcp_span span)
{
	struct ward_err why = { 0 };
	struct reader reader = { .name = "", .e = &why };
	struct schema_error wrong = { 0 };
	struct relay *r = state;
	auto_node tool = json_read(&reader, span.at, span.n);
	const char *fault = !tool || reader.count ? why.why : find_fault(tool, &wrong);
	const struct node *name = member(tool, "name");
	auto_buf text = { 0 };

	if (fault || !name) {
		r->report.fresh += !r->start.pins;
		put_unusable(r, tool, fault ? fault : "it has no name");
		return;
	}
	mcp_canonical(tool, "_meta", &text);
	if (text.failed) {
		relay_end(r, "out of memory");
		return;
	}
	compare(r, name->text, &text);
	if (r->start.keep)
		strv_take(&r->tools, buf_take(&text));
}

static void begin_list(void *state)
{
	struct relay *r = state;

	strv_free(&r->tools);
	strv_free(&r->unusable);
	r->listed = false;
	r->report = (struct relay_report){ .instructions = r->instructions_differ };
	memset(r->report.drift, RELAY_GONE, sizeof(r->report.drift));
}

static void end_list(void *state)
{
	struct relay *r = state;

	r->listed = true;
	if (r->start.pins)
		(void)!send(CONTROL_FD, &r->report, sizeof(r->report), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_info(void *state, struct mcp_span result)
{
	struct relay *r = state;
	struct mcp_span instructions;
	auto_buf text = { 0 };
	const char *pinned = r->start.pins ? r->start.pins->instructions : NULL;
	bool some = mcp_get(result, "instructions", &instructions) && mcp_text(instructions, &text);

	r->instructions_differ = r->start.pins && strcmp(buf_text(&text), pinned ? pinned : "");
	if (some && r->start.keep)
		json_quote(&r->instructions, buf_text(&text));
}

static void take_answer(void *state, size_t call, bool failed, struct mcp_span body)
{
	relay_answer_call(state, call, failed, body);
}

static void take_refused(void *state, const char *method)
{
	struct relay *r = state;

	if (!r->said_refused)
		relay_say(r, "refused, as ward passes no request of a server on: ", method);
	r->said_refused = true;
}

void relay_begin(struct relay *r)
{
	r->sink = (struct remote_sink){ .state = r,
					.info = take_info,
					.list_begins = begin_list,
					.tool = take_tool,
					.listed = end_list,
					.answer = take_answer,
					.refused = take_refused };
	remote_begin(&r->up);
}

static void put_list(const struct strv *list, struct buf *out)
{
	buf_puts(out, "[");
	for (size_t i = 0; i < list->len; i++) {
		buf_puts(out, i ? "," : "");
		buf_puts(out, list->items[i]);
	}
	buf_puts(out, "]");
	out->failed |= list->failed;
}

void relay_put_definitions(const struct relay *r, struct buf *out)
{
	buf_printf(out, "{\"instructions\":%s,\"tools\":",
		   r->instructions.len ? r->instructions.data : "null");
	put_list(&r->tools, out);
	buf_puts(out, ",\"unusable\":");
	put_list(&r->unusable, out);
	buf_puts(out, "}");
}
