/*
 * ward tool ls, show and trust: what the tools are. In: a tools.yaml. Out: a table, or one tool and
 * its parameters, its walls and its nature. trust accepts exactly the content that it shows.
 */
#include "cli/tool/parts.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/difference.h"
#include "policy/policy_rule.h"
#include "policy/schema.h"
#include "state/trust.h"
#include "tools/bind.h"

/* "api.example.com:443" of a rule's line. */
static void put_host(const char *rule, struct buf *out)
{
	struct policy_rule parsed;
	struct ward_err ignored;

	if (policy_rule_read(rule, &parsed, &ignored) < 0) {
		text_escape(out, rule);
		return;
	}
	text_escape(out, parsed.host);
	for (unsigned i = 0; i < parsed.n_ports; i++)
		buf_printf(out, "%s%u", i ? "," : ":", parsed.ports[i]);
}

static void put_hosts(const struct strv *hosts, struct buf *out)
{
	for (size_t i = 0; i < hosts->len; i++) {
		buf_puts(out, i ? ", " : "");
		put_host(hosts->items[i], out);
	}
	if (!hosts->len)
		buf_puts(out, "-");
}

static void put_nature(const struct tool_nature *n, struct buf *out)
{
	const struct {
		bool is;
		const char *word;
	} words[] = { { n->private_data == SAID_TRUE, "private" },
		      { n->untrusted_content == SAID_TRUE, "untrusted" },
		      { n->communicates_outside == SAID_TRUE, "outside" },
		      { n->destructive == SAID_TRUE, "destructive" },
		      { n->production, "production" },
		      { n->approval == APPROVAL_ALWAYS, "approval" } };
	size_t before = out->len;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (words[i].is)
			buf_printf(out, "%s%s", out->len > before ? " " : "", words[i].word);
	if (out->len == before)
		buf_puts(out, "-");
}

static void json_strings(struct json *j, const char *key, const struct strv *list)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < list->len; i++)
		json_string(j, NULL, list->items[i]);
	json_end_array(j);
}

static void json_nature(struct json *j, const struct tool_nature *n)
{
	json_begin_object(j, "nature");
	json_bool(j, "private_data", n->private_data == SAID_TRUE);
	json_bool(j, "untrusted_content", n->untrusted_content == SAID_TRUE);
	json_bool(j, "communicates_outside", n->communicates_outside == SAID_TRUE);
	json_bool(j, "destructive", n->destructive == SAID_TRUE);
	json_bool(j, "idempotent", n->idempotent);
	json_bool(j, "production", n->production);
	json_string(j, "approval", n->approval == APPROVAL_ALWAYS ? "always" : "never");
	json_end_object(j);
}

static void json_tool(const struct tool_tool *tool, struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "name", tool->head.name);
	json_string(j, "description", tool->description);
	json_string(j, "kind",
		    tool->http.head.node  ? "http"
		    : tool->mcp.head.node ? "mcp"
					  : "command");
	buf_puts(j->out, ",\"input_schema\":");
	bind_input_schema(tool, j->out);
	if (tool->output)
		buf_printf(j->out, ",\"output_schema\":%s", tool->output);
	json_begin_object(j, "scope");
	json_strings(j, "read", &tool->scope.read);
	json_strings(j, "write", &tool->scope.write);
	json_begin_array(j, "hosts");
	for (size_t i = 0; i < tool->scope.hosts.len; i++) {
		auto_buf host = { 0 };

		put_host(tool->scope.hosts.items[i], &host);
		json_string(j, NULL, buf_text(&host));
	}
	json_end_array(j);
	json_strings(j, "methods", &tool->scope.methods);
	json_strings(j, "credentials", &tool->scope.credentials);
	json_end_object(j);
	json_nature(j, &tool->nature);
	json_end_object(j);
}

int tool_ls(struct options *o)
{
	struct json j = { 0 };
	auto_source s = { 0 };
	auto_buf out = { 0 };
	int code = tool_load(o, &s);

	if (code != 0)
		return code;
	j.out = &out;
	if (o->json)
		json_begin_list(&j, "tools");
	for (size_t i = 0; i < s.t.file.tools.len; i++) {
		const struct tool_tool *tool = tools_at(tool, &s.t.file.tools, i);

		if (o->json) {
			json_tool(tool, &j);
			continue;
		}
		buf_printf(&out, "%-20s reads ", tool->head.name);
		tool_join(&tool->scope.read, &out);
		buf_puts(&out, "; writes ");
		tool_join(&tool->scope.write, &out);
		buf_puts(&out, "; reaches ");
		put_hosts(&tool->scope.hosts, &out);
		buf_puts(&out, "; is ");
		put_nature(&tool->nature, &out);
		buf_puts(&out, "\n");
	}
	if (o->json)
		json_end_list(&j);
	return say_out(&out, EXIT_FINE);
}

static void show_param(const struct tool_param *p, struct buf *out)
{
	char word[32];

	buf_printf(out, "  --%s %s%s%s", p->head.name, tools_word("param", "type", p->type, word),
		   p->list ? "..." : "", p->required && !p->fallback ? "" : " (optional)");
	if (p->fallback) {
		buf_puts(out, ", default ");
		text_escape(out, p->fallback);
	}
	if (p->values.len) {
		buf_puts(out, ": ");
		tool_join(&p->values, out);
	}
	if (p->description) {
		buf_puts(out, "\n      ");
		text_escape(out, p->description);
	}
	buf_puts(out, "\n");
}

static void show_limits(const struct tool_limits *l, struct buf *out)
{
	buf_puts(out, "  limits       timeout ");
	schema_number_text(TYPE_SECONDS, l->timeout, out);
	buf_puts(out, " s, memory ");
	schema_number_text(TYPE_SIZE, l->memory, out);
	buf_puts(out, ", output ");
	schema_number_text(TYPE_SIZE, l->output, out);
	buf_printf(out, ", %llu processes\n", (unsigned long long)l->pids);
}

static void show(const struct tool_tool *tool, struct buf *out)
{
	char word[32];

	buf_printf(out, "%s: ", tool->head.name);
	text_escape(out, tool->description);
	buf_puts(out, "\n");
	if (tool->run.len) {
		buf_puts(out, "runs:");
		for (size_t i = 0; i < tool->run.len; i++) {
			buf_puts(out, " ");
			text_escape(out, tool->run.items[i]);
		}
		buf_puts(out, "\n");
	}
	if (tool->http.head.node) {
		buf_printf(out, "requests: %s ",
			   tools_word("http", "method", tool->http.method, word));
		text_escape(out, tool->http.url);
		buf_puts(out, "\n");
	}
	if (tool->mcp.head.node)
		buf_printf(out, "calls: %s of the MCP server %s\n",
			   tool->mcp.tool ? tool->mcp.tool : tool->head.name, tool->mcp.server);
	buf_puts(out, tool->parameters.len ? "parameters:\n" : "");
	for (size_t i = 0; i < tool->parameters.len; i++)
		show_param(tools_at(param, &tool->parameters, i), out);
	buf_puts(out, "scope:\n  reads        ");
	tool_join(&tool->scope.read, out);
	buf_puts(out, "\n  writes       ");
	tool_join(&tool->scope.write, out);
	buf_puts(out, "\n  reaches      ");
	put_hosts(&tool->scope.hosts, out);
	buf_puts(out, "\n  credentials  ");
	tool_join(&tool->scope.credentials, out);
	buf_puts(out, "\n");
	show_limits(&tool->scope.limits, out);
	buf_printf(out, "  system calls %s, engine %s\n",
		   tools_word("scope", "syscalls", tool->scope.syscalls, word),
		   tools_word("scope", "engine", tool->scope.engine, (char[32]){ 0 }));
	buf_puts(out, "nature: ");
	put_nature(&tool->nature, out);
	buf_puts(out, "\n");
}

int tool_show(struct options *o)
{
	const struct tool_tool *tool;
	struct ward_err e = { 0 };
	auto_source s = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int code = tool_load(o, &s);

	if (code != 0)
		return code;
	tool = tool_find(&s, o->words[0], &e);
	if (!tool)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json) {
		json_tool(tool, &j);
		buf_puts(&out, "\n");
	} else {
		show(tool, &out);
	}
	return say_out(&out, EXIT_FINE);
}

int tool_trust(struct options *o)
{
	auto_buf shown = { 0 }, before = { 0 };
	struct ward_err e = { 0 };
	auto_source s = { 0 };
	int r = tool_load(o, &s);

	if (r != 0)
		return r;
	r = trust_last(s.path, &before, &e);
	if (r > 0 && difference_put("accepted before", &before, s.shown, &s.bytes, &shown) < 0)
		r = ward_fail(&e, ENOMEM, "out of memory");
	for (size_t i = 0; r >= 0 && i < s.t.file.tools.len; i++)
		show(tools_at(tool, &s.t.file.tools, i), &shown);
	if (r >= 0 && !o->json && say_out(&shown, 0) != 0)
		return EXIT_REFUSED;
	if (r >= 0 && !o->yes)
		r = ask_person("accept these tools? [y/N] ", "accepted", &e);
	if (r == -EACCES)
		r = ward_remedy(&e, "review it, then: ward tool trust --yes");
	if (r >= 0)
		r = trust_keep(s.hex, s.path, &s.bytes, &e);
	if (r < 0)
		return say_error(&e, o->json, r == -ECANCELED ? EXIT_FINDINGS : EXIT_REFUSED);
	shown.len = 0;
	buf_printf(&shown, o->json ? "{\"sha256\":\"%s\"}\n" : "accepted, sha256 %s\n", s.hex);
	return say_out(&shown, EXIT_FINE);
}
