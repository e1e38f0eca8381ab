/*
 * One call, in its process. In: a tool and arguments as a client sent them, untrusted. Out: the
 * members of an MCP result. Arguments become the values that `ward tool run` would get, and each
 * must have the JSON type that the schema names. What ward refuses, and what the tool fails at, is
 * a result with isError that a model can act on: the reason, the remedy, what the sandbox denied.
 */
#include "cli/mcp/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/mcp/wrap.h"

#define ARGUMENTS_MAX 256

/* -- arguments */

struct arguments {
	const struct tool_tool *tool;
	struct tools_argument list[ARGUMENTS_MAX];
	struct strv texts; /* what the list points to */
	size_t count;
	struct ward_err *e;
	const char *key; /* of a list that is being read */
	bool failed;
};

/* Whether a value has the JSON type of the parameter. */
static bool fits(const struct tool_param *p, struct mcp_span v)
{
	char type = mcp_type(v);

	if (p && (p->type == PARAM_INTEGER || p->type == PARAM_NUMBER))
		return type == '0';
	if (p && p->type == PARAM_BOOLEAN)
		return type == 't' || type == 'f';
	return type == '"';
}

static bool fail(struct arguments *a, const char *key, const char *why)
{
	auto_buf shown = { 0 };

	text_escape(&shown, key);
	ward_fail(a->e, EINVAL, "%.100s: %s", buf_text(&shown), why);
	a->failed = true;
	return false;
}

static bool add(struct arguments *a, const char *key, const struct tool_param *p, struct mcp_span v)
{
	auto_buf text = { 0 };

	if (!fits(p, v))
		return fail(a, key, "the value has another type than the schema says");
	if (a->count == ARGUMENTS_MAX)
		return fail(a, key, "too many arguments");
	if (mcp_type(v) == '"')
		a->failed |= !mcp_text(v, &text);
	else
		buf_add(&text, v.at, v.n);
	strv_add(&a->texts, key);
	strv_add(&a->texts, buf_text(&text));
	if (a->failed || text.failed || a->texts.failed)
		return fail(a, key, "out of memory");
	a->list[a->count++] = (struct tools_argument){ a->texts.items[a->texts.len - 2],
						       a->texts.items[a->texts.len - 1] };
	return true;
}

static bool add_element(void *state, unused_arg const char *key, struct mcp_span v)
{
	struct arguments *a = state;

	return add(a, a->key, tools_find_param(a->tool, a->key), v);
}

static bool add_member(void *state, const char *key, struct mcp_span v)
{
	struct arguments *a = state;
	const struct tool_param *p = tools_find_param(a->tool, key);

	if (!p || !p->list)
		return add(a, key, p, v);
	if (mcp_type(v) != '[')
		return fail(a, key, "the schema says that it is a list");
	a->key = key;
	return mcp_each(v, add_element, a);
}

/* -- the result */

void call_put_text(struct json *j, const char *text)
{
	json_begin_object(j, NULL);
	json_string(j, "type", "text");
	json_string(j, "text", text);
	json_end_object(j);
}

/* A NUL would end the text. */
static void put_output(struct json *j, const struct buf *output)
{
	auto_buf text = { 0 };

	if (!output->len || !memchr(output->data, 0, output->len)) {
		call_put_text(j, buf_text(output));
		return;
	}
	text_escape_lines(&text, output->data, output->len);
	call_put_text(j, buf_text(&text));
	j->out->failed |= text.failed;
}

static void put_lines(struct buf *out, const char *what, const struct strv *lines)
{
	for (size_t i = 0; i < lines->len; i++) {
		buf_printf(out, "ward: %s: ", what);
		text_escape(out, lines->items[i]);
		buf_puts(out, "\n");
	}
}

/* What it wrote to standard error is judged as its output is. */
static void put_error(const struct invoke_result *r, struct buf *out)
{
	struct ward_err ignored = { 0 };
	auto_strv rules = { 0 };

	if (!r->call.error.len)
		return;
	if (output_scan(&r->call.error, &rules, &ignored) < 0 || rules.len) {
		buf_puts(out, "ward: standard error is withheld: it may hold a secret\n");
		return;
	}
	text_escape_lines(out, r->call.error.data, r->call.error.len);
	if (out->len && out->data[out->len - 1] != '\n')
		buf_puts(out, "\n");
}

static void put_result(const struct tool_tool *tool, const struct invoke_result *r, struct buf *out)
{
	struct json j = { .out = out };
	auto_buf notes = { 0 };

	if (!r->ok) {
		put_error(r, &notes);
		buf_printf(&notes, "ward: %s: %s\n", tool->head.name, r->why);
	}
	put_lines(&notes, "found", &r->findings);
	put_lines(&notes, "denied", &r->call.denials);
	json_begin_array(&j, "content");
	if (!r->blocked && (r->call.out.len || !notes.len))
		put_output(&j, &r->call.out);
	if (notes.len)
		call_put_text(&j, buf_text(&notes));
	json_end_array(&j);
	if (r->ok && r->verdict.is_json && *r->call.out.data == '{') {
		buf_puts(out, ",\"structuredContent\":");
		for (size_t i = 0; i < r->call.out.len; i++)
			buf_add(out,
				strchr("\t\r\n", r->call.out.data[i]) ? " " : &r->call.out.data[i],
				1);
	}
	json_bool(&j, "isError", !r->ok);
	json_begin_object(&j, "_meta");
	json_string(&j, "ward/run", *r->call.run_id ? r->call.run_id : NULL);
	json_int(&j, "ward/exit", r->call.exit_code);
	json_end_object(&j);
	out->failed |= notes.failed;
}

void call_put_refusal(const struct ward_err *e, const struct policy_errors *errors, struct buf *out)
{
	struct json j = { .out = out };
	auto_buf text = { 0 };

	buf_printf(&text, "ward: %s%s%s\n", e->what, *e->what ? ": " : "", e->why);
	if (*e->remedy)
		buf_printf(&text, "remedy: %s\n", e->remedy);
	if (errors)
		put_lines(&text, "policy", &errors->lines);
	json_begin_array(&j, "content");
	call_put_text(&j, buf_text(&text));
	json_end_array(&j);
	json_bool(&j, "isError", true);
	out->failed |= text.failed;
}

int call_bind(const struct catalog *c, const struct tool_tool *tool, struct mcp_span given,
	      struct tools_call *ret, struct ward_err *e)
{
	const struct tools_source *source = &c->source;
	struct arguments a = { .tool = tool, .e = e };
	int r;

	*ret = (struct tools_call){ 0 };
	r = mcp_each(given, add_member, &a) && !a.failed ? 0 : -EINVAL;
	if (r == 0)
		r = tools_bind(&source->t, tool, source->workspace, source->home, a.list, a.count,
			       ret, e);
	strv_free(&a.texts);
	return r;
}

static void call_annotated(const struct work *w, int fd, struct buf *out)
{
	struct mcp_span given = { (const uint8_t *)w->arguments, strlen(w->arguments) };
	struct policy_errors errors = { 0 };
	struct invoke_result result = { 0 };
	struct ward_err e = { 0 };
	struct arguments a = { .tool = w->offer->tool, .e = &e };
	struct asker asker = { .r = { .source = &w->catalog->source,
				      .agent = w->catalog->agent,
				      .tool = w->offer->tool,
				      .arguments = a.list,
				      .approve = ask_server },
			       .fd = fd };

	if (!mcp_each(given, add_member, &a) || a.failed) {
		buf_puts(out, "\n");
		call_put_refusal(&e, &errors, out);
		return;
	}
	asker.r.count = a.count;
	if (tools_invoke(&asker.r, &result, &errors, &e) < 0) {
		buf_puts(out, "\n");
		call_put_refusal(&e, &errors, out);
	} else {
		buf_printf(out, "%s\n", result.call.run_id);
		put_result(w->offer->tool, &result, out);
	}
	invoke_free(&result);
	strv_free(&errors.lines);
	strv_free(&a.texts);
}

void call_tool(const struct server *s, const struct work *w, int fd, struct buf *out)
{
	struct mcp_span given = { (const uint8_t *)w->arguments, strlen(w->arguments) };

	if (w->offer->wrapped) {
		wrap_call(s, w, fd, out);
		return;
	}
	if (!w->offer->builtin) {
		call_annotated(w, fd, out);
		return;
	}
	buf_puts(out, "\n");
	w->offer->builtin->call(s, given, out);
}
