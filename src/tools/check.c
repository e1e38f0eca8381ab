/*
 * Rules about single tools and servers. In: a tools.yaml that was read. Out: findings with places:
 * a nature that is not said or that the scope shows to be false, scopes that hold far more than one
 * tool can need, parameters that a program would read as options or as code, destruction without
 * approval, servers that can change under one's feet. Pure functions.
 */
#include "tools/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/policy_rule.h"
#include "policy/suffix.h"
#include "tools/bind.h"
#include "tools/scope.h"
#include "tools/value.h"

#define ERROR true
#define WARNING false

static const struct check_rule_row rows[] = {
#define CHECK(id, n, level, t, h) { .name = n, .title = t, .help = h, .error = level },
#include "checks.def"
};

const struct check_rule_row *check_rule_row(enum check_rule rule)
{
	return &rows[rule];
}

void check_add(struct check_findings *f, enum check_rule rule, struct place at, const char *fix,
	       const char *format, ...)
{
	struct check_finding *grown;
	auto_buf text = { 0 };
	char *message = NULL;
	va_list ap;

	if (f->len == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 16;
		grown = reallocarray(f->items, f->cap, sizeof(*grown));
		if (!grown) {
			f->cap = f->len;
			f->failed = true;
			return;
		}
		f->items = grown;
	}
	va_start(ap, format);
	if (vasprintf(&message, format, ap) < 0)
		message = NULL;
	va_end(ap);
	text_escape(&text, message ? message : "out of memory");
	free(message);
	f->items[f->len++] = (struct check_finding){ rule,
						     at.line,
						     at.column,
						     strdup(f->file ? f->file : ""),
						     buf_take(&text),
						     fix ? strdup(fix) : NULL };
}

void check_free(struct check_findings *f)
{
	for (size_t i = 0; i < f->len; i++) {
		free(f->items[i].file);
		free(f->items[i].message);
		free(f->items[i].fix);
	}
	free(f->items);
	*f = (struct check_findings){ 0 };
}

size_t check_errors(const struct check_findings *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->len; i++)
		n += rows[f->items[i].rule].error;
	return n;
}

/* -- nature */

static void check_said(const struct tool_tool *tool, struct check_findings *f)
{
	const struct {
		const char *key;
		enum tools_said said;
	} keys[] = { { "private_data", tool->nature.private_data },
		     { "untrusted_content", tool->nature.untrusted_content },
		     { "communicates_outside", tool->nature.communicates_outside },
		     { "destructive", tool->nature.destructive } };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].said == SAID_NOTHING)
			check_add(f, CHECK_UNANNOTATED, tools_place(&tool->head, "nature"), NULL,
				  "%s: nature.%s is not said", tool->head.name, keys[i].key);
}

static void check_nature(const struct tool_tool *tool, struct check_findings *f)
{
	const struct tool_nature *n = &tool->nature;

	if (n->communicates_outside == SAID_FALSE && tool->scope.hosts.len)
		check_add(f, CHECK_FALSE_NATURE, tools_place(&n->head, "communicates_outside"),
			  "communicates_outside: true",
			  "%s: communicates_outside is false, and its scope has hosts",
			  tool->head.name);
	if (n->idempotent && tool->http.head.node && tool->http.method == 2 /* POST */)
		check_add(f, CHECK_FALSE_NATURE, tools_place(&n->head, "idempotent"),
			  "idempotent: false", "%s: a POST is not idempotent", tool->head.name);
	if ((n->destructive == SAID_TRUE || n->production) && n->approval != APPROVAL_ALWAYS)
		check_add(f, CHECK_NO_APPROVAL, tools_place(&tool->head, "nature"),
			  "approval: always", "%s is %s and needs no person's approval",
			  tool->head.name, n->production ? "in production" : "destructive");
}

/* -- scope */

static void check_paths(const struct tool_tool *tool, const struct strv *paths, const char *key,
			struct check_findings *f)
{
	static const char *const broad[] = { "/",    "~",    "~/",   "/home", "/root",
					     "/etc", "/var", "/usr", "/tmp",  "/opt" };

	for (size_t i = 0; i < paths->len; i++) {
		bool is = strchr(paths->items[i], '*') != NULL;

		for (size_t k = 0; k < ARRAY_LEN(broad); k++)
			is |= strcmp(paths->items[i], broad[k]) == 0;
		if (strcmp(paths->items[i], ".") == 0 && strcmp(key, "write") == 0 &&
		    tool->scope.hosts.len) {
			check_add(f, CHECK_BROAD_SCOPE, tools_place(&tool->scope.head, key), NULL,
				  "%s: writes the whole workspace and reaches hosts",
				  tool->head.name);
			continue;
		}
		if (is)
			check_add(f, CHECK_BROAD_SCOPE, tools_place(&tool->scope.head, key), NULL,
				  "%s: scope.%s: %s is more than a tool needs", tool->head.name,
				  key, paths->items[i]);
	}
}

static void check_hosts(const struct tool_tool *tool, const char *suffixes, size_t n,
			struct check_findings *f)
{
	const struct tool_scope *s = &tool->scope;

	for (size_t i = 0; i < s->hosts.len; i++) {
		struct policy_rule rule;
		struct ward_err ignored;
		const char *why = NULL, *slash;

		if (policy_rule_read(s->hosts.items[i], &rule, &ignored) < 0)
			continue;
		slash = strchr(rule.host, '/');
		if (strcmp(rule.host, "*") == 0)
			why = "is every public host";
		else if (strncmp(rule.host, "*.", 2) == 0 &&
			 suffix_is_public(suffixes, n, rule.host + 2))
			why = "is a suffix under which anyone can register a name";
		else if (slash && atoi(slash + 1) < (strchr(rule.host, ':') ? 48 : 24))
			why = "is a large block of addresses";
		if (why)
			check_add(f, CHECK_BROAD_SCOPE, tools_place(&s->head, "hosts"), NULL,
				  "%s: scope.hosts: %s %s", tool->head.name, rule.host, why);
	}
	if (s->syscalls == 2 || strv_has(&s->env, "*"))
		check_add(f, CHECK_BROAD_SCOPE, tools_place(&s->head, "syscalls"), NULL,
			  "%s: scope.syscalls: build is for compilers and debuggers",
			  tool->head.name);
	for (size_t i = 0; i < s->env.len; i++)
		if (strchr(s->env.items[i], '*') && !strchr(s->env.items[i], '='))
			check_add(f, CHECK_BROAD_SCOPE, tools_place(&s->head, "env"), NULL,
				  "%s: scope.env: %s passes variables without naming them",
				  tool->head.name, s->env.items[i]);
	if (s->credentials.len && !s->hosts.len)
		check_add(f, CHECK_FALSE_NATURE, tools_place(&s->head, "credentials"), NULL,
			  "%s: scope.credentials without scope.hosts", tool->head.name);
}

/* -- parameters */

/* Programs that read one of their arguments as a program. */
static bool is_interpreter(const char *program)
{
	static const char *const names[] = { "sh",    "bash",    "dash",    "zsh",  "ksh",
					     "fish",  "python",  "python3", "perl", "ruby",
					     "node",  "php",     "awk",     "gawk", "mawk",
					     "sed",   "env",     "xargs",   "eval", "lua",
					     "jq",    "find",    "busybox", "ssh",  "sudo",
					     "nohup", "timeout", "watch",   "make", "tclsh" };
	const char *base = strrchr(program, '/');

	base = base ? base + 1 : program;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], base) == 0)
			return true;
	return false;
}

static const struct tool_param *param_of(const struct tool_tool *tool, const struct bind_piece *p)
{
	for (size_t i = 0; i < tool->parameters.len; i++)
		if (bind_piece_is(p, tools_at(param, &tool->parameters, i)->head.name))
			return tools_at(param, &tool->parameters, i);
	return NULL;
}

static bool is_free_text(const struct tool_param *p)
{
	return p->type == PARAM_STRING && !p->pattern;
}

static void check_run(const struct tool_tool *tool, struct check_findings *f)
{
	for (size_t i = 1; i < tool->run.len; i++) {
		const char *at = tool->run.items[i], *wrong;
		const char *before = tool->run.items[i - 1];
		bool first = bind_can_be_option(tool, i);
		struct bind_piece piece;

		while (bind_next_piece(&at, &piece, &wrong)) {
			const struct tool_param *p = param_of(tool, &piece);

			if (p && first && piece.text == tool->run.items[i] + 1 &&
			    value_may_begin_with_dash(p))
				check_add(f, CHECK_OPTION_INJECTION, tools_place(&p->head, NULL),
					  NULL,
					  "%s: --%s can begin with - and would be an option of %s",
					  tool->head.name, p->head.name, tool->run.items[0]);
			if (p && is_free_text(p) && is_interpreter(tool->run.items[0]) &&
			    (before[0] == '-' || i == 1))
				check_add(f, CHECK_CODE_INJECTION, tools_place(&p->head, NULL),
					  NULL, "%s: --%s becomes code or a command of %s",
					  tool->head.name, p->head.name, tool->run.items[0]);
		}
	}
}

static void check_param(const struct tool_tool *tool, const struct tool_param *p,
			struct check_findings *f)
{
	static const char *const words[] = { "path",      "file",   "dir",
					     "directory", "folder", "filename" };

	for (size_t i = 0; is_free_text(p) && i < ARRAY_LEN(words); i++) {
		const char *at = strstr(p->head.name, words[i]);

		if (at && (at == p->head.name || at[-1] == '_' || at[-1] == '-') &&
		    (!at[strlen(words[i])] || strchr("_-", at[strlen(words[i])]))) {
			check_add(f, CHECK_PATH_PARAMETER, tools_place(&p->head, "type"),
				  "type: path",
				  "%s: --%s is text, so it can leave the scope's paths",
				  tool->head.name, p->head.name);
			return;
		}
	}
}

/* -- servers */

/* npx, uvx and the like fetch the newest of a name without a version. */
static bool fetches(const char *program)
{
	static const char *const names[] = { "npx",  "bunx", "pnpx", "uvx",    "pipx",   "npm",
					     "pnpm", "yarn", "uv",   "docker", "podman", "deno" };
	const char *base = strrchr(program, '/');

	base = base ? base + 1 : program;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], base) == 0)
			return true;
	return false;
}

static bool is_exact(const char *word)
{
	const char *at = strrchr(word, '@'), *equals = strstr(word, "==");

	if (strstr(word, "@sha256:"))
		return true;
	if (equals)
		return equals[2] >= '0' && equals[2] <= '9' && !strchr(equals, '*');
	return at && at != word && at[1] >= '0' && at[1] <= '9' && strchr(at, '.') &&
	       !strpbrk(at + 1, "xX*^~<>| ");
}

static void check_servers(const struct tools *t, struct check_findings *f)
{
	for (size_t i = 0; i < t->file.servers.len; i++) {
		const struct tool_server *s = tools_at(server, &t->file.servers, i);
		bool exact = !s->command.len || !fetches(s->command.items[0]);

		for (size_t k = 1; k < s->command.len; k++)
			exact |= s->command.items[k][0] != '-' && is_exact(s->command.items[k]);
		if (!exact)
			check_add(f, CHECK_UNPINNED, tools_place(&s->head, "command"), NULL,
				  "%s: the command fetches a package without an exact version",
				  s->head.name);
		if (!s->pin)
			check_add(f, CHECK_UNPINNED, tools_place(&s->head, NULL), NULL,
				  "%s: there is no pin of the tools that it lists", s->head.name);
	}
}

static bool is_held(const struct tools *t, const struct tool_tool *tool)
{
	for (size_t i = 0; i < t->file.agents.len; i++)
		if (strv_has(&tools_at(agent, &t->file.agents, i)->tools, tool->head.name))
			return true;
	return false;
}

static void check_held(const struct tools *t, const struct tool_tool *tool,
		       struct check_findings *f)
{
	if (t->file.agents.len && !is_held(t, tool))
		check_add(f, CHECK_NOT_HELD, tools_place(&tool->head, NULL), NULL,
			  "%s: no agent holds it", tool->head.name);
}

void check_each_tool(const struct tools *t, const char *suffixes, size_t n,
		     struct check_findings *f)
{
	for (size_t i = 0; i < t->file.tools.len; i++) {
		const struct tool_tool *tool = tools_at(tool, &t->file.tools, i);

		check_said(tool, f);
		check_nature(tool, f);
		check_paths(tool, &tool->scope.read, "read", f);
		check_paths(tool, &tool->scope.write, "write", f);
		check_hosts(tool, suffixes, n, f);
		check_run(tool, f);
		for (size_t k = 0; k < tool->parameters.len; k++)
			check_param(tool, tools_at(param, &tool->parameters, k), f);
		check_held(t, tool, f);
	}
	check_servers(t, f);
}

void check_policy(const struct tools *t, const struct tool_agent *agent,
		  const struct policy *policy, const char *policy_name, const char *dir,
		  const char *home, struct check_findings *f)
{
	const struct scope_place place = { dir, home, "/" };

	for (size_t i = 0; i < t->file.tools.len; i++) {
		const struct tool_tool *tool = tools_at(tool, &t->file.tools, i);
		struct ward_err e = { 0 };
		struct policy made;
		auto_strv wider = { 0 };

		if (agent ? !strv_has(&agent->tools, tool->head.name) : is_held(t, tool))
			continue;
		if (scope_policy(tool, &place, policy, &made, &wider, &e) < 0)
			check_add(f, CHECK_INVALID, tools_place(&tool->scope.head, NULL), NULL,
				  "%s: %s%s%s", tool->head.name, e.what, *e.what ? ": " : "",
				  e.why);
		for (size_t k = 0; policy && k < wider.len; k++)
			check_add(f, CHECK_WIDER_THAN_POLICY, tools_place(&tool->scope.head, NULL),
				  NULL, "%s: %s (%s%s%s)", tool->head.name, wider.items[k],
				  agent ? "agent " : "", agent ? agent->head.name : policy_name,
				  agent ? "'s policy" : "");
		policy_clear(&made);
	}
}
