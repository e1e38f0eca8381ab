/*
 * Privileges that grew. In: the tools.yaml of a base revision, and that of now. Out: a finding for
 * each thing that a tool may now and could not before, unless a sign-off that is new says exactly
 * that. What cannot be compared counts as grown: a changed command, host rule, schema or server.
 * A new tool is one change, with all that it may; an agent that gets a tool is another. What the
 * policies allow more is compared by the caller. Pure functions.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "policy/policy_rule.h"
#include "tools/bind.h"
#include "tools/check.h"
#include "tools/scope.h"

struct growth {
	const struct tools *base, *t;
	const char *dir, *home;
	struct check_findings *f;
	bool used[256]; /* sign-offs that were for something */
};

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* A sign-off that stood in the base already was for another change. */
static bool is_signed(struct growth *g, const char *change)
{
	const struct tools_list *now = &g->t->file.signoffs, *old = &g->base->file.signoffs;

	for (size_t i = 0; i < old->len; i++)
		if (strcmp(tools_at(signoff, old, i)->change, change) == 0)
			return false;
	for (size_t i = 0; i < now->len && i < ARRAY_LEN(g->used); i++)
		if (strcmp(tools_at(signoff, now, i)->change, change) == 0) {
			g->used[i] = true;
			return true;
		}
	return false;
}

static void grew(struct growth *g, struct place at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void grew(struct growth *g, struct place at, const char *format, ...)
{
	char change[512];
	auto_buf fix = { 0 };
	va_list ap;

	va_start(ap, format);
	vsnprintf(change, sizeof(change), format, ap);
	va_end(ap);
	if (is_signed(g, change))
		return;
	buf_printf(&fix, "signoffs: [{change: \"%s\", by: NAME, reason: WHY, date: YYYY-MM-DD}]",
		   change);
	check_add(g->f, CHECK_GREW, at, buf_text(&fix), "%s", change);
}

static bool path_was(const struct growth *g, const struct tool_tool *old, const char *path,
		     bool write)
{
	auto_free char *full = bind_scope_path(g->dir, g->home, path);

	return full && bind_path_in_scope(old, g->dir, g->home, full, write);
}

static void compare_paths(struct growth *g, const struct tool_tool *old,
			  const struct tool_tool *new)
{
	for (size_t i = 0; i < new->scope.read.len; i++)
		if (!path_was(g, old, new->scope.read.items[i], false))
			grew(g, tools_place(&new->scope.head, "read"), "tools.%s.scope.read + %s",
			     new->head.name, new->scope.read.items[i]);
	for (size_t i = 0; i < new->scope.write.len; i++)
		if (!path_was(g, old, new->scope.write.items[i], true))
			grew(g, tools_place(&new->scope.head, "write"), "tools.%s.scope.write + %s",
			     new->head.name, new->scope.write.items[i]);
}

static void compare_hosts(struct growth *g, const struct tool_tool *old,
			  const struct tool_tool *new)
{
	for (size_t i = 0; i < new->scope.hosts.len; i++) {
		const char *rule = new->scope.hosts.items[i];
		struct policy_rule parsed;
		struct ward_err ignored;
		bool was = false;

		for (size_t k = 0; k < old->scope.hosts.len && !was; k++)
			was = scope_rule_covers(old->scope.hosts.items[k], rule);
		if (!was)
			grew(g, tools_place(&new->scope.head, "hosts"), "tools.%s.scope.hosts + %s",
			     new->head.name,
			     policy_rule_read(rule, &parsed, &ignored) < 0 ? rule : parsed.host);
	}
	/* fewer methods are narrower, but none means all */
	for (size_t i = 0; i < new->scope.methods.len; i++)
		if (old->scope.methods.len &&
		    !strv_has(&old->scope.methods, new->scope.methods.items[i]))
			grew(g, tools_place(&new->scope.head, "methods"),
			     "tools.%s.scope.methods + %s", new->head.name,
			     new->scope.methods.items[i]);
	if (old->scope.methods.len && !new->scope.methods.len &&new->scope.hosts.len)
		grew(g, tools_place(&new->scope.head, "methods"), "tools.%s.scope.methods + all",
		     new->head.name);
}

static void compare_names(struct growth *g, const struct tool_tool *new, const char *key,
			  const struct strv *old, const struct strv *now)
{
	for (size_t i = 0; i < now->len; i++)
		if (!strv_has(old, now->items[i]))
			grew(g, tools_place(&new->scope.head, key), "tools.%s.scope.%s + %s",
			     new->head.name, key, now->items[i]);
}

static void compare_limits(struct growth *g, const struct tool_tool *old,
			   const struct tool_tool *new)
{
	const struct tool_limits *a = &old->scope.limits, *b = &new->scope.limits;
	const struct {
		const char *key;
		uint64_t old, now;
	} limits[] = { { "timeout", a->timeout, b->timeout }, { "memory", a->memory, b->memory },
		       { "cpus", a->cpus, b->cpus },          { "pids", a->pids, b->pids },
		       { "disk", a->disk, b->disk },          { "output", a->output, b->output } };

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (limits[i].now > limits[i].old)
			grew(g, tools_place(&new->scope.head, "limits"),
			     "tools.%s.scope.limits.%s: %" PRIu64 " -> %" PRIu64, new->head.name,
			     limits[i].key, limits[i].old, limits[i].now);
	if (new->scope.syscalls > old->scope.syscalls)
		grew(g, tools_place(&new->scope.head, "syscalls"),
		     "tools.%s.scope.syscalls is wider", new->head.name);
	if (new->scope.engine > old->scope.engine)
		grew(g, tools_place(&new->scope.head, "engine"), "tools.%s.scope.engine is weaker",
		     new->head.name);
}

/* What a tool reads or does beyond what it did. A nature that says less needs a word too: it takes
 * the tool out of the trifecta. */
static void compare_nature(struct growth *g, const struct tool_tool *old,
			   const struct tool_tool *new)
{
	const struct tool_nature *a = &old->nature, *b = &new->nature;
	const struct {
		const char *key;
		enum tools_said old, now;
	} keys[] = { { "private_data", a->private_data, b->private_data },
		     { "untrusted_content", a->untrusted_content, b->untrusted_content },
		     { "communicates_outside", a->communicates_outside, b->communicates_outside },
		     { "destructive", a->destructive, b->destructive } };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].now != keys[i].old && keys[i].old != SAID_NOTHING)
			grew(g, tools_place(&b->head, keys[i].key), "tools.%s.nature.%s: %s",
			     new->head.name, keys[i].key,
			     keys[i].now == SAID_TRUE ? "true" : "false");
	if (b->production != a->production)
		grew(g, tools_place(&b->head, "production"), "tools.%s.nature.production: %s",
		     new->head.name, b->production ? "true" : "false");
	if (b->approval != APPROVAL_ALWAYS && a->approval == APPROVAL_ALWAYS)
		grew(g, tools_place(&b->head, "approval"), "tools.%s.nature.approval: never",
		     new->head.name);
	if (new->scan == RESULT_REPORT && old->scan == RESULT_BLOCK)
		grew(g, tools_place(&new->head, "scan"), "tools.%s.scan: report", new->head.name);
	if (old->canary && !new->canary) /* it never ran before */
		grew(g, tools_place(&new->head, "canary"), "tools.%s.canary: false",
		     new->head.name);
}

/* The text of a part of the document, compared as it is written. */
static void compare_text(struct growth *g, const struct tool_tool *old, const struct tool_tool *new,
			 const char *key)
{
	const struct node *a = node_get(old->head.node, key), *b = node_get(new->head.node, key);
	auto_buf x = { 0 }, y = { 0 };

	if (a)
		tools_json(a, &x);
	if (b)
		tools_json(b, &y);
	if (strcmp(buf_text(&x), buf_text(&y)) != 0)
		grew(g, tools_place(&new->head, key), "tools.%s.%s changed", new->head.name, key);
}

static void compare_tool(struct growth *g, const struct tool_tool *new)
{
	static const char *const keys[] = { "run",   "http",   "mcp",  "parameters",
					    "input", "output", "stdin" };
	const struct tool_tool *old = tools_find(g->base, new->head.name);

	if (!old) {
		grew(g, tools_place(&new->head, NULL), "tools + %s", new->head.name);
		return;
	}
	compare_paths(g, old, new);
	compare_hosts(g, old, new);
	compare_names(g, new, "credentials", &old->scope.credentials, &new->scope.credentials);
	compare_names(g, new, "env", &old->scope.env, &new->scope.env);
	compare_names(g, new, "toolchains", &old->scope.toolchains, &new->scope.toolchains);
	compare_limits(g, old, new);
	compare_nature(g, old, new);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		compare_text(g, old, new, keys[i]);
}

static void compare_agents(struct growth *g)
{
	for (size_t i = 0; i < g->t->file.agents.len; i++) {
		const struct tool_agent *new = tools_at(agent, &g->t->file.agents, i);
		const struct tool_agent *old = tools_find_agent(g->base, new->head.name);

		for (size_t k = 0; k < new->tools.len; k++)
			if (!old || !strv_has(&old->tools, new->tools.items[k]))
				grew(g, tools_place(&new->head, "tools"), "agents.%s.tools + %s",
				     new->head.name, new->tools.items[k]);
		if (old && !same(old->policy, new->policy))
			grew(g, tools_place(&new->head, "policy"), "agents.%s.policy changed",
			     new->head.name);
	}
}

static void compare_servers(struct growth *g)
{
	for (size_t i = 0; i < g->t->file.servers.len; i++) {
		const struct tool_server *new = tools_at(server, &g->t->file.servers, i);
		const struct tool_server *old = tools_find_server(g->base, new->head.name);
		bool differs = !old || old->command.len != new->command.len;

		for (size_t k = 0; !differs && k < new->command.len; k++)
			differs = strcmp(old->command.items[k], new->command.items[k]) != 0;
		if (differs)
			grew(g, tools_place(&new->head, "command"), "servers.%s.command changed",
			     new->head.name);
		if (old && !same(old->pin, new->pin))
			grew(g, tools_place(&new->head, "pin"), "servers.%s.pin changed",
			     new->head.name);
	}
}

void check_growth(const struct tools *base, const struct tools *t, const char *dir,
		  const char *home, const struct strv *policies, struct check_findings *f)
{
	struct growth g = { base, t, dir, home, f, { 0 } };

	for (size_t i = 0; i < t->file.tools.len; i++)
		compare_tool(&g, tools_at(tool, &t->file.tools, i));
	compare_agents(&g);
	compare_servers(&g);
	if (!same(base->file.policy, t->file.policy))
		grew(&g, tools_place(&t->file.head, "policy"), "policy changed");
	if (!same(base->file.workspace, t->file.workspace))
		grew(&g, tools_place(&t->file.head, "workspace"), "workspace changed");
	for (size_t i = 0; policies && i < policies->len; i++)
		grew(&g, tools_place(&t->file.head, "policy"), "%s", policies->items[i]);
	for (size_t i = 0; i < t->file.signoffs.len && i < ARRAY_LEN(g.used); i++) {
		const struct tool_signoff *s = tools_at(signoff, &t->file.signoffs, i);

		if (!g.used[i])
			check_add(f, CHECK_STALE_SIGNOFF, tools_place(&s->head, "change"), NULL,
				  "no such change since the base: %s", s->change);
	}
}
