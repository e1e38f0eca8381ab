/*
 * ward tool init: a first tools.yaml. In: the command of an MCP server, or an OpenAPI document, or
 * neither. Out: a draft that grants what was seen to be needed and nothing else, and leaves to a
 * person what nobody else can say: ward check lists it. The server runs in a sandbox with the
 * current directory read-only and no network; what it says of itself becomes text in quotes, its
 * hints comments. Nothing is written over.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/tool/init_parts.h"
#include "plan/spec.h"
#include "policy/quote.h"
#include "tools/json_schema.h"
#include "tools/mcp_client.h"
#include "tools/scope.h"

const struct node *init_member(const struct node *n, const char *key)
{
	return n && n->kind == NODE_MAP ? node_get(n, key) : NULL;
}

const char *init_text(const struct node *n, const char *key)
{
	const struct node *m = init_member(n, key);

	return m && m->text && *m->text ? m->text : NULL;
}

void init_quote(struct buf *out, const char *text)
{
	if (!text || !policy_quote(out, text))
		buf_puts(out, "\"(no description)\"");
}

bool init_is_name(const char *s)
{
	static const char set[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	return s && *s && *s != '-' && strlen(s) <= TOOLS_NAME_MAX && strspn(s, set) == strlen(s);
}

/* One property of an input schema as a parameter; false: it has no form here. */
bool init_param(const struct node *schema, const char *name, bool required, struct buf *out)
{
	const char *type = init_text(schema, "type");
	const struct node *values = init_member(schema, "enum");
	const struct node *items = init_member(schema, "items");
	bool list = type && strcmp(type, "array") == 0;

	if (list) {
		type = init_text(items, "type");
		values = init_member(items, "enum");
	}
	if (!init_is_name(name) || !type || strcmp(type, "object") == 0 ||
	    strcmp(type, "array") == 0 || strcmp(type, "null") == 0)
		return false;
	for (const struct node *v = values ? values->first : NULL; v; v = v->next)
		if (v->kind != NODE_STRING && v->kind != NODE_WORD)
			return false;
	buf_printf(out, "      \"%s\": {type: %s", name, values ? "enum" : type);
	for (const struct node *v = values ? values->first : NULL; v; v = v->next) {
		buf_puts(out, v == values->first ? ", values: [" : ", ");
		init_quote(out, v->text);
		buf_puts(out, v->next ? "" : "]");
	}
	if (list)
		buf_puts(out, ", list: true");
	if (!required)
		buf_puts(out, ", required: false");
	if (init_text(schema, "description")) {
		buf_puts(out, ", description: ");
		init_quote(out, init_text(schema, "description"));
	}
	buf_puts(out, "}\n");
	return true;
}

static bool is_required(const struct node *schema, const char *name)
{
	const struct node *list = init_member(schema, "required");

	for (const struct node *n = list ? list->first : NULL; n; n = n->next)
		if (n->text && strcmp(n->text, name) == 0)
			return true;
	return false;
}

static void put_params(const struct node *schema, struct buf *out)
{
	const struct node *properties = init_member(schema, "properties");
	auto_buf list = { 0 };

	for (const struct node *p = properties ? properties->first : NULL; p; p = p->next)
		if (!init_param(p, p->key, is_required(schema, p->key), &list)) {
			buf_puts(&list, "      # not a simple value: ");
			text_escape(&list, p->key);
			buf_puts(&list, "\n");
		}
	if (list.len)
		buf_printf(out, "    parameters:\n%s", list.data);
}

/* The server's own schema, where it can be enforced. */
static void put_input(const struct node *schema, struct buf *out)
{
	struct schema_error why;

	if (!schema)
		return;
	if (json_schema_check(schema, true, &why) < 0) {
		buf_puts(out, "    # its input schema cannot be enforced: ");
		text_escape(out, why.message);
		buf_puts(out, "\n");
		return;
	}
	buf_puts(out, "    input: ");
	tools_json(schema, out);
	buf_puts(out, "\n");
}

static void put_hints(const struct node *tool, struct buf *out)
{
	const struct node *hints = init_member(tool, "annotations");

	for (const struct node *n = hints ? hints->first : NULL; n; n = n->next) {
		if (!n->text)
			continue;
		buf_puts(out, "    # the server says ");
		text_escape(out, n->key);
		buf_puts(out, ": ");
		text_escape(out, n->text);
		buf_puts(out, "\n");
	}
}

static void put_mcp_tool(const struct node *tool, struct buf *out)
{
	const char *name = init_text(tool, "name");

	if (!init_is_name(name)) {
		buf_puts(out, "  # a tool whose name cannot be used: ");
		text_escape(out, name ? name : "");
		buf_puts(out, "\n");
		return;
	}
	buf_printf(out, "  \"%s\":\n    description: ", name);
	init_quote(out, init_text(tool, "description"));
	buf_puts(out, "\n    mcp: {server: server}\n");
	put_params(init_member(tool, "inputSchema"), out);
	put_input(init_member(tool, "inputSchema"), out);
	buf_puts(out, "    scope: {}\n");
	put_hints(tool, out);
	buf_puts(out, "    nature: {}   # say private_data, untrusted_content, "
		      "communicates_outside, destructive\n");
}

static void put_mcp(char *const *command, const struct node *tools, struct buf *out)
{
	char pin[72];

	mcp_pin(tools, pin);
	buf_puts(out, "version: 1\nservers:\n  server:\n    command: [");
	for (size_t i = 0; command[i]; i++) {
		buf_puts(out, i ? ", " : "");
		init_quote(out, command[i]);
	}
	buf_printf(out, "]\n    pin: %s\ntools:\n", pin);
	for (const struct node *t = tools->first; t; t = t->next)
		put_mcp_tool(t, out);
}

/* The sandbox of a server that nobody knows yet. */
static int make_policy(struct policy *ret, struct ward_err *e)
{
	static const struct {
		const char *field, *value;
	} fields[] = { { "filesystem.mode", "read_only" },
		       { "resources.timeout_seconds", "60" },
		       { "resources.pids_limit", "256" },
		       { "process.env", "[LANG, LC_ALL, TZ]" } };
	auto_free char *here = NULL;
	int r = policy_defaults(ret, e);

	if (r == 0)
		r = workspace_here(&here, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(fields); i++)
		r = policy_set(ret, fields[i].field, fields[i].value, false, POLICY_FILE, e);
	return r == 0 ? policy_set(ret, "filesystem.workspace", here, false, POLICY_FILE, e) : r;
}

static int draft_mcp(char *const *command, struct buf *out, struct ward_err *e)
{
	struct mcp_client c = { .pid = -1, .in_fd = -1, .out_fd = -1, .error_fd = -1 };
	auto_buf said = { 0 };
	struct policy policy = { 0 };
	auto_place at = { 0 };
	auto_node tools = NULL;
	int r = make_policy(&policy, e);

	if (r == 0)
		r = call_place_open(&at, e);
	if (r == 0)
		r = mcp_open(&at, &policy, command, &c, e);
	if (r == 0)
		r = mcp_list(&c, &tools, e);
	mcp_close(&c, &said);
	policy_clear(&policy);
	if (r < 0 && said.len) {
		auto_buf shown = { 0 };

		text_escape_lines(&shown, said.data, said.len);
		say_err(&shown);
	}
	if (r == 0)
		put_mcp(command, tools, out);
	return r;
}

static const char sample[] =
	"# ward check tools.yaml checks this file; ward tool run NAME --PARAM VALUE calls a tool.\n"
	"version: 1\n"
	"tools:\n"
	"  search:\n"
	"    description: Finds lines with a word in the workspace.\n"
	"    run: [grep, -rn, \"--regexp={word}\", --, \"{path}\"]\n"
	"    parameters:\n"
	"      word: {type: string, max_length: 200}\n"
	"      path: {type: path, default: .}\n"
	"    scope: {read: [.]}\n"
	"    nature:\n"
	"      private_data: true\n"
	"      untrusted_content: false\n"
	"      communicates_outside: false\n"
	"      destructive: false\n"
	"      idempotent: true\n";

static int write_draft(const struct options *o, const struct buf *out, struct ward_err *e)
{
	auto_fd fd = -1;
	int r;

	if (!o->output)
		return say_out(out, EXIT_FINE);
	fd = open(o->output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return ward_fail_errno(e, "cannot write %.300s", o->output);
	r = io_write_all(fd, buf_text(out), out->len);
	return r < 0 ? ward_fail(e, -r, "cannot write %.300s: %s", o->output, strerror(-r)) : 0;
}

int tool_init(struct options *o)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	int r = 0;

	if ((o->tools_mcp && o->tools_openapi) || (!o->tools_mcp && o->word_count) ||
	    (o->tools_mcp && !o->word_count)) {
		ward_fail(&e, EINVAL,
			  "ward tool init: expected --mcp -- COMMAND..., --openapi "
			  "FILE, or nothing");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (o->tools_mcp)
		r = draft_mcp(o->words, &out, &e);
	else if (o->tools_openapi)
		r = init_openapi(o->tools_openapi, &out, &e);
	else
		buf_puts(&out, sample);
	if (r == 0)
		r = write_draft(o, &out, &e);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : r;
}
