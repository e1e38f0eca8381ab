/*
 * What is offered. In: a tools.yaml that was accepted. Out: each tool as MCP shows it, made once:
 * its annotations are true, because they are read off the walls of its sandbox. What cannot be
 * known (whether an allowed write destroys something) is as the tool's nature says, and the worse
 * of both where that says nothing.
 */
#include "cli/mcp/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/ask.h"

#define ASK_MS 120000 /* where no policy says anything */

/* Whether its requests can change nothing at their hosts, as far as HTTP says. */
static bool only_reads(const struct tool_tool *tool)
{
	if (!tool->scope.hosts.len)
		return true;
	for (size_t i = 0; i < tool->scope.methods.len; i++)
		if (strcmp(tool->scope.methods.items[i], "GET") != 0 &&
		    strcmp(tool->scope.methods.items[i], "HEAD") != 0)
			return false;
	return tool->scope.methods.len > 0;
}

void list_put_annotations(const struct tool_tool *tool, struct json *j)
{
	bool reads = !tool->scope.write.len && only_reads(tool) &&
		     tool->nature.destructive != SAID_TRUE && !tool->nature.production;

	json_begin_object(j, "annotations");
	json_bool(j, "readOnlyHint", reads);
	json_bool(j, "destructiveHint", !reads && tool->nature.destructive != SAID_FALSE);
	json_bool(j, "idempotentHint", tool->nature.idempotent || reads);
	json_bool(j, "openWorldHint", tool->scope.hosts.len > 0);
	json_end_object(j);
}

/* Structured output is an object; other outputs are text for a client, and validated all the
 * same. */
static bool has_object(const char *schema)
{
	struct mcp_span whole = { (const uint8_t *)schema, schema ? strlen(schema) : 0 }, type;

	return mcp_get(whole, "type", &type) && mcp_is(type, "object");
}

static void put_tool(const struct tool_tool *tool, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "name", tool->head.name);
	json_string(&j, "description", tool->description);
	buf_puts(out, ",\"inputSchema\":");
	bind_input_schema(tool, out);
	if (has_object(tool->output))
		buf_printf(out, ",\"outputSchema\":%s", tool->output);
	list_put_annotations(tool, &j);
	json_end_object(&j);
}

static void put_builtin(const struct builtin *b, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "name", b->name);
	json_string(&j, "description", b->description);
	buf_printf(out, ",\"inputSchema\":%s,\"annotations\":%s", b->schema, b->annotations);
	json_end_object(&j);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct offer *)a)->name, ((const struct offer *)b)->name);
}

static bool add(struct catalog *c, const struct tool_tool *tool, const struct builtin *builtin)
{
	auto_buf out = { 0 };

	if (tool)
		put_tool(tool, &out);
	else
		put_builtin(builtin, &out);
	c->offers[c->offer_count] = (struct offer){ .name = tool ? tool->head.name : builtin->name,
						    .tool = tool,
						    .builtin = builtin,
						    .shown = buf_take(&out) };
	return c->offers[c->offer_count++].shown;
}

/* Two tools of one name: a client could not tell them apart. */
static int check_names(const struct catalog *c, struct ward_err *e)
{
	for (size_t i = 1; i < c->offer_count; i++)
		if (strcmp(c->offers[i - 1].name, c->offers[i].name) == 0) {
			ward_fail(e, EEXIST, "%s is a built-in tool's name, too",
				  c->offers[i].name);
			return ward_remedy(e, "rename it, or leave out --session");
		}
	return 0;
}

static int choose(const struct options *o, struct catalog *c, struct ward_err *e)
{
	const struct tools_list *all = &c->source.t.file.tools;
	size_t builtins = 0;
	bool fine = true;

	while (o->mcp_session && builtin_at(builtins))
		builtins++;
	c->offers = calloc(all->len + builtins + 1, sizeof(struct offer));
	if (!c->offers)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < all->len; i++) {
		const struct tool_tool *tool = tools_at(tool, all, i);

		if (!c->agent || strv_has(&c->agent->tools, tool->head.name))
			fine &= add(c, tool, NULL);
	}
	for (size_t i = 0; i < builtins; i++)
		fine &= add(c, NULL, builtin_at(i));
	qsort(c->offers, c->offer_count, sizeof(struct offer), by_name);
	return fine ? check_names(c, e) : ward_fail(e, ENOMEM, "out of memory");
}

static int choose_agent(const struct options *o, struct catalog *c, struct ward_err *e)
{
	if (!o->tools_agent)
		return 0;
	c->agent = tools_find_agent(&c->source.t, o->tools_agent);
	return c->agent ? 0
			: ward_fail(e, ENOENT, "%.200s has no agent %.80s", c->source.shown,
				    o->tools_agent);
}

/* For how long a person is asked is the policy's to say. That one is asked says the tool. */
static void read_approvals(struct catalog *c)
{
	struct policy_errors errors = { 0 };
	struct ward_err ignored = { 0 };
	struct policy p = { 0 };

	c->ask_ms = ASK_MS;
	/* one that cannot be read refuses each call later, and says why */
	if (c->source.dir &&
	    tools_load_policy(&c->source, c->agent, true, &p, NULL, &errors, &ignored) > 0) {
		c->ask_ms = p.appr_timeout;
		policy_clear(&p);
	}
	strv_free(&errors.lines);
}

/* The file; also one that is named must be accepted where it has changed since it was named. */
static int load(const struct options *o, bool again, struct catalog *c,
		struct policy_errors *errors, struct ward_err *e)
{
	int r = 0;

	if (o->tools_file || o->tools_agent || !o->mcp_session || again) {
		r = tools_load(o->tools_file, &c->source, errors, e);
		c->source.named &= !again;
		if (r == 0)
			r = tools_check_trust(&c->source, e);
		if (r == 0)
			r = choose_agent(o, c, e);
	}
	if (r == 0)
		read_approvals(c);
	return r < 0 ? r : choose(o, c, e);
}

int list_load(struct server *s)
{
	const struct options *o = s->options;
	struct catalog *c = calloc(1, sizeof(*c));
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	int r = c ? load(o, false, c, &errors, &e) : ward_fail(&e, ENOMEM, "out of memory");

	s->catalog = catalog_use(c);
	if (errors.lines.len)
		ask_print_errors(&errors);
	strv_free(&errors.lines);
	if (r == -ENOENT && !o->tools_file && !o->mcp_session)
		ward_remedy(&e, "name one with -f, or offer the built-in tools with --session");
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : 0;
}

int list_reload(const struct server *s, struct catalog **ret, struct ward_err *e)
{
	struct catalog *c = calloc(1, sizeof(*c));
	struct policy_errors errors = { 0 };
	int r = c ? load(s->options, true, c, &errors, e) : ward_fail(e, ENOMEM, "out of memory");

	if (r < 0 && errors.lines.len)
		ward_fail(e, EINVAL, "%.600s", errors.lines.items[0]);
	strv_free(&errors.lines);
	catalog_use(c);
	if (r < 0)
		catalog_drop(c);
	else
		*ret = c;
	return r;
}

struct catalog *catalog_use(struct catalog *c)
{
	if (c)
		c->users++;
	return c;
}

void catalog_drop(struct catalog *c)
{
	if (!c || --c->users)
		return;
	for (size_t i = 0; i < c->offer_count; i++)
		free(c->offers[i].shown);
	free(c->offers);
	tools_unload(&c->source);
	free(c);
}

const struct offer *list_find(const struct server *s, const char *name)
{
	const struct catalog *c = s->catalog;

	for (size_t i = 0; i < c->offer_count; i++)
		if (strcmp(c->offers[i].name, name) == 0)
			return &c->offers[i];
	return NULL;
}

/* A cursor is the number of the first tool of its page. */
static bool read_cursor(const struct request *r, size_t *ret)
{
	auto_buf text = { 0 };
	struct mcp_span cursor;
	uint64_t at;

	*ret = 0;
	if (!mcp_get(r->message->params, "cursor", &cursor) || mcp_type(cursor) == 'n')
		return true;
	if (!mcp_text(cursor, &text) || !text.len || text.len > 6 ||
	    !mcp_uint((struct mcp_span){ (const uint8_t *)text.data, text.len },
		      r->peer->server->catalog->offer_count, &at))
		return false;
	*ret = (size_t)at;
	return at % PAGE_TOOLS == 0;
}

void list_tools(const struct request *r)
{
	const struct catalog *c = r->peer->server->catalog;
	auto_buf out = { 0 };
	size_t from, to;

	if (!read_cursor(r, &from)) {
		reply_error(r, MCP_BAD_PARAMS, "the cursor is not one of ours", NULL);
		return;
	}
	to = c->offer_count - from > PAGE_TOOLS ? from + PAGE_TOOLS : c->offer_count;
	buf_puts(&out, "\"tools\":[");
	for (size_t i = from; i < to; i++) {
		if (!wrap_offers(&c->offers[i]))
			continue;
		buf_puts(&out, out.data[out.len - 1] == '[' ? "" : ",");
		buf_puts(&out, c->offers[i].shown);
	}
	buf_puts(&out, "]");
	if (to < c->offer_count)
		buf_printf(&out, ",\"nextCursor\":\"%zu\"", to);
	if (r->modern)
		buf_printf(&out, ",\"ttlMs\":%d,\"cacheScope\":\"private\"", LIST_TTL_MS);
	reply(r, &out);
}
