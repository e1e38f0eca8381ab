/*
 * The grants of a tools.yaml, and what uses them. In: the file; events of runs, of which those
 * count that begin with a call of one of its tools (tool.call). Out: grants, and their uses: tools,
 * who holds them, and of a tool that was called the hosts, methods, paths and credentials of its
 * scope. A canary is never called, and not judged.
 */
#include "cli/unused/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cli/ask.h"
#include "event/event.h"
#include "policy/policy_rule.h"
#include "tools/bind.h"
#include "tools/scope.h"

static size_t add(struct unused *u, enum unused_kind kind, size_t tool, const char *text,
		  const char *list, size_t entry)
{
	const struct tool_tool *t = tools_at(tool, &u->source.t.file.tools, tool);
	char *way = NULL;
	size_t n;

	if (asprintf(&way, "tools/%s/scope/%s/%zu", t->head.name, list, entry) < 0)
		way = NULL;
	n = unused_add(u, kind, entry, strdup(text), way, "tools.%s.scope.%s: %s", t->head.name,
		       list, text);
	if (n != UNUSED_WHOLE) {
		u->grants[n].whole = tool; /* tools come first */
		u->grants[n].record = tool;
	}
	return n;
}

static void add_paths(struct unused *u, enum unused_kind kind, size_t tool,
		      const struct strv *paths, const char *list)
{
	for (size_t i = 0; i < paths->len; i++) {
		size_t n = add(u, kind, tool, paths->items[i], list, i);

		if (n != UNUSED_WHOLE)
			u->grants[n].level = kind == UNUSED_READ ? AUDIT_FULL : AUDIT_WRITES;
	}
}

static void add_scope(struct unused *u, size_t tool)
{
	const struct tool_scope *s = &tools_at(tool, &u->source.t.file.tools, tool)->scope;

	add_paths(u, UNUSED_READ, tool, &s->read, "read");
	add_paths(u, UNUSED_WRITE, tool, &s->write, "write");
	for (size_t i = 0; i < s->hosts.len; i++) {
		struct policy_rule rule;
		struct ward_err ignored;

		if (policy_rule_read(s->hosts.items[i], &rule, &ignored) == 0)
			add(u, UNUSED_HOST, tool, rule.host, "hosts", i);
	}
	for (size_t i = 0; s->methods.len > 1 && i < s->methods.len; i++)
		add(u, UNUSED_VERB, tool, s->methods.items[i], "methods", i);
	for (size_t i = 0; i < s->credentials.len; i++)
		add(u, UNUSED_SECRET, tool, s->credentials.items[i], "credentials", i);
}

static size_t number_of(const struct unused *u, const char *name)
{
	const struct tools_list *tools = &u->source.t.file.tools;
	size_t i = 0;

	while (i < tools->len && strcmp(tools_at(tool, tools, i)->head.name, name) != 0)
		i++;
	return i < tools->len ? i : UNUSED_WHOLE;
}

static void add_agents(struct unused *u)
{
	const struct tools_list *agents = &u->source.t.file.agents;

	for (size_t i = 0; i < agents->len; i++) {
		const struct tool_agent *a = tools_at(agent, agents, i);

		for (size_t k = 0; k < a->tools.len; k++) {
			size_t tool = number_of(u, a->tools.items[k]), n;
			char *way = NULL;

			if (tool == UNUSED_WHOLE ||
			    tools_at(tool, &u->source.t.file.tools, tool)->canary)
				continue;
			if (asprintf(&way, "agents/%s/tools/%zu", a->head.name, k) < 0)
				way = NULL;
			n = unused_add(u, UNUSED_HOLDING, tool, strdup(a->head.name), way,
				       "agents.%s.tools: %s", a->head.name, a->tools.items[k]);
			if (n == UNUSED_WHOLE)
				continue;
			u->grants[n].whole = tool;
			u->grants[n].record = tool;
		}
	}
}

/* The rules of a tool's hosts, in their order. */
static int compile(struct unused *u, size_t tool, struct ward_err *e)
{
	const struct scope_place place = { u->source.workspace, u->source.home, "/" };
	auto_strv wider = { 0 };
	struct policy p;
	int r = scope_policy(tools_at(tool, &u->source.t.file.tools, tool), &place, NULL, &p,
			     &wider, e);

	if (r == 0)
		r = unused_compile(&p, &u->tool_rules[tool], e);
	policy_clear(&p);
	return r;
}

int unused_read_tools(struct unused *u, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	const struct tools_list *tools = &u->source.t.file.tools;
	int r = tools_load(u->file, &u->source, &errors, e);

	if (errors.lines.len)
		ask_print_errors(&errors);
	strv_free(&errors.lines);
	if (r < 0)
		return r;
	u->records = calloc(tools->len + 1, sizeof(*u->records));
	u->tool_rules = calloc(tools->len + 1, sizeof(struct rules *));
	u->record_count = tools->len;
	if (!u->records || !u->tool_rules)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < tools->len; i++) {
		const struct tool_tool *t = tools_at(tool, tools, i);
		char *way = NULL;
		size_t n;

		if (asprintf(&way, "tools/%s", t->head.name) < 0)
			way = NULL;
		n = unused_add(u, UNUSED_TOOL, i, strdup(t->head.name), way, "tools: %s",
			       t->head.name);
		if (n != i)
			return ward_fail(e, ENOMEM, "out of memory");
		u->grants[n].record = i;
		u->grants[n].exempt = t->canary;
		r = compile(u, i, e);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < tools->len; i++)
		if (!tools_at(tool, tools, i)->canary)
			add_scope(u, i);
	add_agents(u);
	return 0;
}

/* -- events */

/* The run is a call: of which tool, and by whom. */
static void begin_call(struct unused *u, const struct ward_event *v)
{
	auto_free char *name = unused_text(v, FIELD_OBJECT), *file = unused_text(v, FIELD_PATH),
		       *agent = unused_text(v, FIELD_FROM);
	bool named = u->o->word_count > 1 || u->o->all; /* the file may lie elsewhere there */

	if (!name || !file || (!named && strcmp(file, u->path) != 0))
		return;
	u->tool = number_of(u, name);
	u->record = u->tool;
	if (u->tool == UNUSED_WHOLE || v->time_us < u->since_us)
		return;
	u->grants[u->tool].uses++;
	u->records[u->tool].nameless += !agent;
	for (size_t i = 0; agent && i < u->count; i++)
		if (u->grants[i].kind == UNUSED_HOLDING && u->grants[i].index == u->tool &&
		    strcmp(u->grants[i].text, agent) == 0)
			u->grants[i].uses++;
}

static void use(struct unused *u, enum unused_kind kind, size_t entry)
{
	for (size_t i = 0; i < u->count; i++)
		if (u->grants[i].kind == kind && u->grants[i].whole == u->tool &&
		    u->grants[i].index == entry)
			u->grants[i].uses++;
}

static void use_text(struct unused *u, enum unused_kind kind, const struct ward_event *v,
		     enum event_field f)
{
	auto_free char *text = unused_text(v, f);

	for (size_t i = 0; text && i < u->count; i++)
		if (u->grants[i].kind == kind && u->grants[i].whole == u->tool &&
		    u->grants[i].text && strcasecmp(u->grants[i].text, text) == 0)
			u->grants[i].uses++;
}

static void see_path(struct unused *u, const struct ward_event *v)
{
	auto_free char *path = unused_path(v);
	bool write = v->kind == EVENT_FILE_CHANGE;

	for (size_t i = 0; path && i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];
		auto_free char *scope = NULL;

		if (g->whole != u->tool || !g->text ||
		    (g->kind != UNUSED_READ && (g->kind != UNUSED_WRITE || !write)))
			continue;
		scope = bind_scope_path(u->source.workspace, u->source.home, g->text);
		g->uses += !scope || path_is_beneath(path, scope);
	}
}

void unused_see_tools(struct unused *u, const struct ward_event *v)
{
	int32_t service, rule;

	if (v->kind == EVENT_TOOL)
		begin_call(u, v);
	if (u->tool == UNUSED_WHOLE || v->time_us < u->since_us || v->action == ACTION_DENY)
		return;
	switch (v->kind) {
	case EVENT_CONNECT:
	case EVENT_HTTP:
		rule = unused_rule(u->tool_rules[u->tool], v, &service);
		if (rule >= 0)
			use(u, UNUSED_HOST, (size_t)rule);
		use_text(u, UNUSED_VERB, v, FIELD_METHOD);
		break;
	case EVENT_CREDENTIAL_USE:
		use_text(u, UNUSED_SECRET, v, FIELD_GRANT);
		break;
	case EVENT_FILE_READ:
	case EVENT_FILE_CHANGE:
	case EVENT_EXEC:
		see_path(u, v);
		break;
	default:
		break;
	}
}
