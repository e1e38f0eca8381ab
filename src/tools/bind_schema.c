/*
 * The input schema of a tool. In: its parameters. Out: the JSON Schema that says the same, for
 * clients and models; and, for a tool of an MCP server, arguments in the form that its own schema
 * wants. Pure functions.
 */
#include <string.h>

#include "base/json.h"
#include "tools/bind.h"

static const char *json_type(unsigned type)
{
	return type == PARAM_INTEGER   ? "integer"
	       : type == PARAM_NUMBER  ? "number"
	       : type == PARAM_BOOLEAN ? "boolean"
				       : "string";
}

static void put_raw(struct json *j, const char *key, const char *value)
{
	/* a number as it was written; json_*() have no such thing */
	buf_puts(j->out, ",");
	json_quote(j->out, key);
	buf_printf(j->out, ":%s", value);
}

static void put_param(const struct tool_param *p, struct json *j)
{
	struct json inner = { .out = j->out };

	json_quote(j->out, p->head.name);
	buf_puts(j->out, p->list ? ":{\"type\":\"array\",\"maxItems\":64,\"items\":" : ":");
	json_begin_object(&inner, NULL);
	json_string(&inner, "type", json_type(p->type));
	if (p->description)
		json_string(&inner, "description", p->description);
	if (p->type == PARAM_ENUM) {
		json_begin_array(&inner, "enum");
		for (size_t i = 0; i < p->values.len; i++)
			json_string(&inner, NULL, p->values.items[i]);
		json_end_array(&inner);
	}
	if (p->pattern) {
		auto_buf whole = { 0 };

		buf_printf(&whole, "^(?:%s)$", p->pattern);
		json_string(&inner, "pattern", buf_text(&whole));
	}
	if (strcmp(json_type(p->type), "string") == 0)
		json_uint(&inner, "maxLength", p->max_length);
	if (p->min)
		put_raw(&inner, "minimum", p->min);
	if (p->max)
		put_raw(&inner, "maximum", p->max);
	json_end_object(&inner);
	if (p->list)
		buf_puts(j->out, "}");
}

void bind_input_schema(const struct tool_tool *tool, struct buf *out)
{
	struct json j = { .out = out };
	bool comma = false;

	if (tool->mcp.head.node && !tool->parameters.len && tool->input) {
		buf_puts(out, tool->input);
		return;
	}
	buf_puts(out, "{\"type\":\"object\",\"properties\":{");
	for (size_t i = 0; i < tool->parameters.len; i++) {
		if (i)
			buf_puts(out, ",");
		put_param(tools_at(param, &tool->parameters, i), &j);
	}
	buf_puts(out, "},\"required\":[");
	for (size_t i = 0; i < tool->parameters.len; i++) {
		const struct tool_param *p = tools_at(param, &tool->parameters, i);

		if (!p->required || p->fallback)
			continue;
		buf_puts(out, comma ? "," : "");
		json_quote(out, p->head.name);
		comma = true;
	}
	buf_puts(out, "],\"additionalProperties\":false}");
}
