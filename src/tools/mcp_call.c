/*
 * Calling a tool of an MCP server. In: bound arguments. Out: as of a command: the texts of the
 * result, or its structured content as JSON, and exit code 1 for isError. The server lives for this
 * one call, in the sandbox of the tool's scope; before the call its tools must be the pinned ones,
 * where there is a pin. Runs with the user's rights.
 */
#include "tools/mcp_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "tools/mcp_client.h"

static int check_pin(struct mcp_client *c, const struct tool_server *server, struct ward_err *e)
{
	auto_node tools = NULL;
	char pin[72];
	int r;

	if (!server->pin)
		return 0;
	r = mcp_list(c, &tools, e);
	if (r < 0)
		return r;
	mcp_pin(tools, pin);
	if (strcmp(pin, server->pin) == 0)
		return 0;
	ward_fail(e, EPERM, "the tools of the MCP server %s are not those that were pinned",
		  server->head.name);
	return ward_remedy(e, "look at them with ward tool init --mcp; they are %s now", pin);
}

static void put_content(const struct node *result, struct call_result *ret)
{
	const struct node *structured = node_get(result, "structuredContent");
	const struct node *content = node_get(result, "content");
	const struct node *error = node_get(result, "isError");

	ret->exit_code = error && error->kind == NODE_BOOL && *error->text == 't';
	if (structured && !ret->exit_code) {
		tools_json(structured, &ret->out);
		return;
	}
	for (const struct node *n = content ? content->first : NULL; n; n = n->next) {
		const struct node *text = n->kind == NODE_MAP ? node_get(n, "text") : NULL;

		if (text && text->text)
			buf_puts(&ret->out, text->text);
		else if (n->kind == NODE_MAP)
			buf_puts(&ret->out, "[content that is no text]");
		buf_puts(&ret->out, "\n");
	}
}

int mcp_call(const struct tools_source *s, const struct call_place *at, const struct policy *p,
	     const struct tool_tool *tool, const char *arguments, struct call_result *ret,
	     struct ward_err *e)
{
	const struct tool_server *server = tools_find_server(&s->t, tool->mcp.server);
	const struct node *result = NULL;
	struct mcp_client c;
	auto_buf params = { 0 };
	auto_node root = NULL;
	uint64_t begin = io_now_ms();
	int r;

	*ret = (struct call_result){ 0 };
	if (!server)
		return ward_fail(e, ENOENT, "there is no server %s", tool->mcp.server);
	buf_puts(&params, "{\"name\":");
	json_quote(&params, tool->mcp.tool ? tool->mcp.tool : tool->head.name);
	buf_printf(&params, ",\"arguments\":%s}", arguments);
	r = mcp_open(at, p, server->command.items, &c, e);
	if (r == 0)
		r = check_pin(&c, server, e);
	if (r == 0)
		r = mcp_request(&c, "tools/call", buf_text(&params), &root, &result, e);
	mcp_close(&c, &ret->error);
	ret->duration_ms = io_now_ms() - begin;
	if (r < 0) {
		auto_buf shown = { 0 };

		text_escape(&shown, buf_text(&ret->error));
		return shown.len && !*e->remedy ? ward_remedy(e, "it wrote: %.400s", shown.data)
						: r;
	}
	if (result->kind != NODE_MAP)
		return ward_fail(e, EPROTO, "the MCP server answered with no result");
	put_content(result, ret);
	if (ret->out.len > tool->scope.limits.output)
		ret->output_limit = true;
	call_read_report(at, ret);
	ret->refused = false;
	return 0;
}
