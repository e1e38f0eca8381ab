/*
 * What goes together in a tools.yaml. In: a document whose single values are sound. Out: errors
 * with their places: a tool that runs in no way or in two, a parameter that is used but not
 * declared or declared but not used, a program that a parameter could choose, a schema that is not
 * enforced in full, an agent with a tool that does not exist. Pure functions.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "policy/policy_value.h"
#include "tools/bind.h"
#include "tools/decimal.h"
#include "tools/json_schema.h"
#include "tools/regex.h"
#include "tools/table.h"

static void wrong(struct tools_context *c, const struct tool_head *head, const char *key,
		  const char *hint, const char *kind, const char *message)
{
	reader_error(c->r, tools_place(head, key), hint, "%s.%s%s%s: %s", kind, head->name,
		     key ? "." : "", key ? key : "", message);
}

/* The nearest of the names in a list of objects. */
static void name_nearest(struct tools_context *c, const struct tool_head *head, const char *key,
			 const char *kind, const char *name, const struct tools_list *list,
			 size_t size)
{
	unsigned distance = UINT_MAX;
	const char *best = NULL;
	auto_buf hint = { 0 }, message = { 0 };

	for (size_t i = 0; i < list->len; i++)
		text_nearest(name, ((struct tool_head *)((char *)list->items + i * size))->name,
			     &best, &distance);
	if (best)
		buf_printf(&hint, "did you mean \"%s\"?", best);
	buf_puts(&message, "there is no \"");
	text_escape(&message, name);
	buf_puts(&message, "\"");
	wrong(c, head, key, best ? buf_text(&hint) : NULL, kind, buf_text(&message));
}

/* Marks the parameters that a template uses. A parameter's number is its place in the list. */
static void use_template(struct tools_context *c, const struct tool_tool *tool, const char *key,
			 const char *text, bool program, bool *used)
{
	const char *at = text, *why;
	struct bind_piece piece;

	while (bind_next_piece(&at, &piece, &why)) {
		auto_buf name = { 0 };
		const struct tool_param *p;

		if (!piece.parameter)
			continue;
		buf_add(&name, piece.text, piece.len);
		p = tools_find_param(tool, buf_text(&name));
		if (!p) {
			name_nearest(c, &tool->head, key, "tools", buf_text(&name),
				     &tool->parameters, sizeof(*p));
			continue;
		}
		used[p - (const struct tool_param *)tool->parameters.items] = true;
		if (program)
			wrong(c, &tool->head, key, NULL, "tools",
			      "the program cannot be a parameter");
		else if (piece.all != p->list ||
			 (piece.all && (piece.text != text + 1 || *at || strcmp(key, "run") != 0)))
			wrong(c, &tool->head, key, NULL, "tools",
			      p->list ? "a list stands alone in an entry of run, as {name...}"
				      : "{name...} is for a parameter with list: true");
	}
	if (why)
		wrong(c, &tool->head, key, "{{ is a brace", "tools", why);
}

static void check_http(struct tools_context *c, const struct tool_tool *tool, bool *used)
{
	const struct tool_http *h = &tool->http;
	const char *slash = strncmp(h->url, "https://", 8) == 0 ? strpbrk(h->url + 8, "/?") : NULL;
	const char *brace = strchr(h->url, '{');

	if (strncmp(h->url, "https://", 8) != 0 || strpbrk(h->url, "@#\\ \"<>^`|"))
		wrong(c, &tool->head, "http", NULL, "tools",
		      "url: expected https://HOST/PATH without user, fragment and spaces");
	else if (brace && (!slash || brace < slash))
		wrong(c, &tool->head, "http", NULL, "tools",
		      "url: no parameter can choose the host");
	use_template(c, tool, "http", h->url, false, used);
	for (size_t i = 0; i < h->headers.len; i++)
		use_template(c, tool, "http", ((struct tool_pair *)h->headers.items)[i].text, false,
			     used);
	if (h->body) {
		const struct tool_param *p = tools_find_param(tool, h->body);

		if (p)
			used[p - (const struct tool_param *)tool->parameters.items] = true;
		else
			name_nearest(c, &tool->head, "http", "tools", h->body, &tool->parameters,
				     sizeof(*p));
	}
}

static void check_schema(struct tools_context *c, const struct tool_tool *tool, const char *key,
			 const char *text)
{
	struct ward_err e = { 0 };
	struct reader quiet = { .name = "", .e = &e };
	struct schema_error why;
	auto_node schema = NULL;

	if (!text)
		return;
	schema = json_read(&quiet, (const uint8_t *)text, strlen(text));
	if (!schema || quiet.count)
		wrong(c, &tool->head, key, NULL, "tools", "is no JSON");
	else if (json_schema_check(schema, true, &why) < 0)
		wrong(c, &tool->head, key, NULL, "tools", why.message);
}

static void check_param(struct tools_context *c, const struct tool_tool *tool,
			const struct tool_param *p)
{
	struct decimal d;
	char why[128];

	if ((p->type == PARAM_ENUM) != (p->values.len > 0))
		wrong(c, &p->head, NULL, NULL, "parameters",
		      "type: enum and values: [...] go together");
	if (p->pattern && p->type != PARAM_STRING)
		wrong(c, &p->head, "pattern", NULL, "parameters", "is for type: string only");
	if (p->lines && p->type != PARAM_STRING)
		wrong(c, &p->head, "lines", NULL, "parameters", "is for type: string only");
	if (p->pattern && regex_match(p->pattern, REGEX_WHOLE, "", why) == -EINVAL)
		wrong(c, &p->head, "pattern", NULL, "parameters", why);
	if ((p->min || p->max) && p->type != PARAM_INTEGER && p->type != PARAM_NUMBER)
		wrong(c, &p->head, p->min ? "min" : "max", NULL, "parameters",
		      "is for numbers only");
	if ((p->min && !decimal_read(p->min, &d)) || (p->max && !decimal_read(p->max, &d)))
		wrong(c, &p->head, p->min ? "min" : "max", NULL, "parameters", "expected a number");
	if (strchr(p->head.name, '.'))
		wrong(c, &p->head, NULL, NULL, "parameters", "a parameter's name has no dot");
	(void)tool;
}

static void check_way(struct tools_context *c, const struct tool_tool *tool)
{
	unsigned ways = (tool->run.len > 0 ? 1u : 0u) + (tool->http.head.node ? 1u : 0u) +
			(tool->mcp.head.node ? 1u : 0u);

	if (ways != 1)
		wrong(c, &tool->head, NULL, NULL, "tools",
		      "needs exactly one of run: [PROGRAM, ...], http: and mcp:");
	if (tool->mcp.head.node && !tools_find_server(c->t, tool->mcp.server))
		name_nearest(c, &tool->head, "mcp", "tools", tool->mcp.server, &c->t->file.servers,
			     sizeof(struct tool_server));
}

static void check_tool(struct tools_context *c, const struct tool_tool *tool)
{
	bool used[256] = { 0 };

	check_way(c, tool);
	for (size_t i = 0; i < tool->run.len; i++)
		use_template(c, tool, "run", tool->run.items[i], i == 0, used);
	if (tool->http.head.node && tool->http.url)
		check_http(c, tool, used);
	for (size_t i = 0; i < tool->parameters.len && i < ARRAY_LEN(used); i++) {
		const struct tool_param *p = tools_at(param, &tool->parameters, i);

		check_param(c, tool, p);
		if (!used[i] && !tool->mcp.head.node)
			wrong(c, &p->head, NULL, "remove it, or write {name} where it goes",
			      "parameters", "is never used");
	}
	check_schema(c, tool, "input", tool->input);
	check_schema(c, tool, "output", tool->output);
}

static void check_rest(struct tools_context *c)
{
	const struct tool_file *f = &c->t->file;

	for (size_t i = 0; i < f->agents.len; i++) {
		const struct tool_agent *a = tools_at(agent, &f->agents, i);

		for (size_t k = 0; k < a->tools.len; k++)
			if (!tools_find(c->t, a->tools.items[k]))
				name_nearest(c, &a->head, "tools", "agents", a->tools.items[k],
					     &f->tools, sizeof(struct tool_tool));
	}
	for (size_t i = 0; i < f->servers.len; i++) {
		const struct tool_server *s = tools_at(server, &f->servers, i);

		if (!s->command.len)
			wrong(c, &s->head, "command", NULL, "servers", "expected a program");
		if (s->pin && (strncmp(s->pin, "sha256:", 7) != 0 || strlen(s->pin) != 71 ||
			       strspn(s->pin + 7, "0123456789abcdef") != 64))
			wrong(c, &s->head, "pin", NULL, "servers",
			      "expected sha256: and 64 hexadecimal digits");
	}
	for (size_t i = 0; i < f->signoffs.len; i++) {
		const struct tool_signoff *s = tools_at(signoff, &f->signoffs, i);

		if (strlen(s->date) != 10 || strspn(s->date, "0123456789-") != 10 ||
		    s->date[4] != '-' || s->date[7] != '-')
			reader_error(c->r, tools_place(&s->head, "date"), NULL,
				     "signoffs[%zu].date: expected YYYY-MM-DD", i);
	}
}

void tools_check_sound(struct tools_context *c)
{
	for (size_t i = 0; i < c->t->file.tools.len; i++)
		check_tool(c, tools_at(tool, &c->t->file.tools, i));
	check_rest(c);
}
