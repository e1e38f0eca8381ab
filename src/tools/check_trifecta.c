/*
 * The lethal trifecta. In: tools, their natures, who holds them. Out: for each agent that has a way
 * out, how private data and untrusted content reach it, drawn step by step. An agent's context
 * mixes everything that its tools return, so what one tool returns every other can be given.
 * Between agents, files carry: what a tool of one writes, a tool of another that reads an
 * overlapping path returns. So the agents are a graph, and the question is what reaches whom. A way
 * out that a person must approve each time (approval: always) does not count. Without agents, all
 * tools count as one agent's. Pure functions.
 */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "tools/bind.h"
#include "tools/check.h"

#define NONE SIZE_MAX

struct graph {
	const struct tools *t;
	const char *dir, *home;
	size_t agents; /* at least 1: all tools, where no agent is named */
};

static bool holds(const struct graph *g, size_t agent, const struct tool_tool *tool)
{
	if (!g->t->file.agents.len)
		return true;
	return strv_has(&tools_at(agent, &g->t->file.agents, agent)->tools, tool->head.name);
}

static const char *name_of(const struct graph *g, size_t agent)
{
	return g->t->file.agents.len ? tools_at(agent, &g->t->file.agents, agent)->head.name
				     : "one agent with all tools";
}

static const struct tool_tool *tool_at(const struct graph *g, size_t i)
{
	return tools_at(tool, &g->t->file.tools, i);
}

enum leg { LEG_PRIVATE, LEG_UNTRUSTED, LEG_OUT };

/* What is not said counts as true: the unknown is not safe. */
static bool has_leg(const struct tool_tool *tool, enum leg leg)
{
	const struct tool_nature *n = &tool->nature;

	if (tool->canary) /* it never runs */
		return false;
	if (leg == LEG_PRIVATE)
		return n->private_data != SAID_FALSE;
	if (leg == LEG_UNTRUSTED)
		return n->untrusted_content != SAID_FALSE;
	return (n->communicates_outside != SAID_FALSE || tool->scope.hosts.len) &&
	       n->approval != APPROVAL_ALWAYS;
}

/* A tool of the agent with the leg, or NULL. */
static const struct tool_tool *leg_of(const struct graph *g, size_t agent, enum leg leg)
{
	for (size_t i = 0; i < g->t->file.tools.len; i++)
		if (holds(g, agent, tool_at(g, i)) && has_leg(tool_at(g, i), leg))
			return tool_at(g, i);
	return NULL;
}

static bool overlap(const struct graph *g, const char *a, const char *b)
{
	auto_free char *x = bind_scope_path(g->dir, g->home, a);
	auto_free char *y = bind_scope_path(g->dir, g->home, b);

	return !x || !y || path_is_beneath(x, y) || path_is_beneath(y, x);
}

/* A path that writer writes and reader reads (or writes: who writes may read). */
static const char *shared_path(const struct graph *g, const struct tool_tool *writer,
			       const struct tool_tool *reader)
{
	for (size_t i = 0; i < writer->scope.write.len; i++) {
		for (size_t k = 0; k < reader->scope.read.len; k++)
			if (overlap(g, writer->scope.write.items[i], reader->scope.read.items[k]))
				return writer->scope.write.items[i];
		for (size_t k = 0; k < reader->scope.write.len; k++)
			if (overlap(g, writer->scope.write.items[i], reader->scope.write.items[k]))
				return writer->scope.write.items[i];
	}
	return NULL;
}

/* How what is in one agent's context gets into another's. */
struct step {
	const struct tool_tool *writer, *reader;
	const char *path;
};

static bool find_step(const struct graph *g, size_t from, size_t to, struct step *ret)
{
	for (size_t i = 0; i < g->t->file.tools.len; i++) {
		if (!holds(g, from, tool_at(g, i)))
			continue;
		for (size_t k = 0; k < g->t->file.tools.len; k++) {
			const char *path;

			if (!holds(g, to, tool_at(g, k)))
				continue;
			path = shared_path(g, tool_at(g, i), tool_at(g, k));
			if (path) {
				*ret = (struct step){ tool_at(g, i), tool_at(g, k), path };
				return true;
			}
		}
	}
	return false;
}

/* The agents from which something can reach `to`, nearest first: next[i] is the one that i passes
 * it on to. Returns the nearest that has the leg, or NONE. */
static size_t search(const struct graph *g, size_t to, enum leg leg, size_t *next, size_t *queue)
{
	size_t head = 0, tail = 0;

	for (size_t i = 0; i < g->agents; i++)
		next[i] = NONE;
	next[to] = to;
	queue[tail++] = to;
	while (head < tail) {
		size_t at = queue[head++];

		if (leg_of(g, at, leg))
			return at;
		for (size_t i = 0; i < g->agents; i++) {
			struct step ignored;

			if (next[i] == NONE && find_step(g, i, at, &ignored)) {
				next[i] = at;
				queue[tail++] = i;
			}
		}
	}
	return NONE;
}

static void draw(const struct graph *g, size_t from, size_t to, enum leg leg, const size_t *next,
		 struct buf *out)
{
	buf_printf(out, "%s [%s]", leg_of(g, from, leg)->head.name, name_of(g, from));
	for (size_t at = from; at != to; at = next[at]) {
		struct step step;

		if (!find_step(g, at, next[at], &step))
			break;
		buf_printf(out, " -> %s writes %s -> %s reads it [%s]", step.writer->head.name,
			   step.path, step.reader->head.name, name_of(g, next[at]));
	}
}

static void check_agent(const struct graph *g, size_t agent, size_t *next, size_t *queue,
			struct check_findings *f)
{
	const struct tool_tool *out = leg_of(g, agent, LEG_OUT);
	auto_buf private_way = { 0 }, untrusted_way = { 0 };
	struct place at = { 1, 1 };
	size_t from;

	if (!out)
		return;
	from = search(g, agent, LEG_PRIVATE, next, queue);
	if (from == NONE)
		return;
	draw(g, from, agent, LEG_PRIVATE, next, &private_way);
	from = search(g, agent, LEG_UNTRUSTED, next, queue);
	if (from == NONE)
		return;
	draw(g, from, agent, LEG_UNTRUSTED, next, &untrusted_way);
	if (g->t->file.agents.len)
		at = tools_place(&tools_at(agent, &g->t->file.agents, agent)->head, "tools");
	check_add(f, CHECK_TRIFECTA, at, NULL,
		  "%s: private data: %s; untrusted content: %s; way out: %s", name_of(g, agent),
		  buf_text(&private_way), buf_text(&untrusted_way), out->head.name);
}

void check_trifecta(const struct tools *t, const char *dir, const char *home,
		    struct check_findings *f)
{
	struct graph g = { t, dir, home, t->file.agents.len ? t->file.agents.len : 1 };
	size_t *next = calloc(g.agents, sizeof(*next)), *queue = calloc(g.agents, sizeof(*queue));

	if (!next || !queue)
		f->failed = true;
	for (size_t i = 0; next && queue && i < g.agents; i++)
		check_agent(&g, i, next, queue, f);
	free(next);
	free(queue);
}

bool check_agents_share(const struct tools *t, const char *dir, const char *home)
{
	struct graph g = { t, dir, home, t->file.agents.len };

	for (size_t i = 0; i < g.agents; i++)
		for (size_t k = 0; k < g.agents; k++) {
			struct step ignored;

			if (i != k && find_step(&g, i, k, &ignored))
				return true;
		}
	return false;
}
