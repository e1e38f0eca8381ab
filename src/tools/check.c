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

#include "base/path.h"
#include "base/text.h"
#include "policy/policy_rule.h"
#include "policy/secret_path.h"
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

/* A home that no machine has: below it are the places of secrets, whichever user's they are. */
#define ANY_HOME "/home/~"

/* As it is meant, however it was written; below the workspace it begins with /./. The caller
 * frees. */
static char *plain_path(const char *path)
{
	if (*path == '/')
		return path_clean(path);
	return *path == '~' && (path[1] == '/' || !path[1])
		       ? path_join(ANY_HOME, path[1] ? path + 2 : ".")
		       : path_join("/.workspace", path);
}

/* Directories that hold what many programs and people have. */
static bool is_broad(const char *path)
{
	static const char *const broad[] = { "/",    ANY_HOME, "/home", "/root",    "/etc",
					     "/var", "/usr",   "/tmp",  "/opt",     "/proc",
					     "/sys", "/dev",   "/run",  "/boot",    "/mnt",
					     "/lib", "/bin",   "/sbin", "/var/run", "/media" };

	for (size_t k = 0; k < ARRAY_LEN(broad); k++)
		if (strcmp(path, broad[k]) == 0)
			return true;
	/* a user's whole home */
	return strncmp(path, "/home/", 6) == 0 && path[6] && !strchr(path + 6, '/');
}

/* Whether it lies where secrets do, in any user's home. */
static bool is_secret(const char *path)
{
	size_t n = strncmp(path, "/home/", 6) == 0  ? 6 + strcspn(path + 6, "/")
		   : path_is_beneath(path, "/root") ? 5
						    : 0;
	auto_free char *home = strndup(path, n);

	return !home || secret_is_path(path, n ? home : ANY_HOME);
}

static void check_paths(const struct tool_tool *tool, const struct strv *paths, const char *key,
			struct check_findings *f)
{
	const struct place at = tools_place(&tool->scope.head, key);

	for (size_t i = 0; i < paths->len; i++) {
		auto_free char *path = plain_path(paths->items[i]);
		bool inside = path && path_is_beneath(path, "/.workspace");

		if (path && strcmp(path, "/.workspace") == 0 && strcmp(key, "write") == 0 &&
		    tool->scope.hosts.len)
			check_add(f, CHECK_BROAD_SCOPE, at, NULL,
				  "%s: writes the whole workspace and reaches hosts",
				  tool->head.name);
		else if (!path || strchr(paths->items[i], '*') || (!inside && is_broad(path)))
			check_add(f, CHECK_BROAD_SCOPE, at, NULL,
				  "%s: scope.%s: %s is more than a tool needs", tool->head.name,
				  key, paths->items[i]);
		else if (!inside && is_secret(path))
			check_add(f, CHECK_BROAD_SCOPE, at,
				  "credentials of the policy, which the tool never holds",
				  "%s: scope.%s: %s is a place of secrets", tool->head.name, key,
				  paths->items[i]);
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
	for (size_t i = 0; i < s->env.len; i++) {
		const char *entry = s->env.items[i];

		if (strchr(entry, '='))
			continue;
		if (strchr(entry, '*'))
			check_add(f, CHECK_BROAD_SCOPE, tools_place(&s->head, "env"), NULL,
				  "%s: scope.env: %s passes variables without naming them",
				  tool->head.name, entry);
		else if (secret_is_word(entry))
			check_add(f, CHECK_BROAD_SCOPE, tools_place(&s->head, "env"),
				  "credentials: [NAME] of a grant, which the tool never holds",
				  "%s: scope.env: %s may hold a secret", tool->head.name, entry);
	}
	if (s->credentials.len && !s->hosts.len)
		check_add(f, CHECK_FALSE_NATURE, tools_place(&s->head, "credentials"), NULL,
			  "%s: scope.credentials without scope.hosts", tool->head.name);
}

/* -- parameters */

static const char *base_name(const char *program)
{
	const char *slash = strrchr(program, '/');

	return slash ? slash + 1 : program;
}

/* Programs that read one of their arguments as a program. */
static bool is_interpreter(const char *program)
{
	static const char *const names[] = {
		"sh",     "bash",  "dash",    "zsh",   "ksh",  "fish",  "python",  "python3",
		"perl",   "ruby",  "node",    "php",   "awk",  "gawk",  "mawk",    "sed",
		"env",    "xargs", "eval",    "lua",   "jq",   "find",  "busybox", "ssh",
		"sudo",   "nohup", "timeout", "watch", "make", "tclsh", "nice",    "setsid",
		"stdbuf", "doas",  "su",      "expect"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], base_name(program)) == 0)
			return true;
	return false;
}

/* Whether all that stands behind this program's first argument is one: a remote shell's words, a
 * database's statements and commands. */
static bool runs_its_words(const char *program)
{
	static const char *const names[] = { "ssh", "sqlite3", "parallel" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], base_name(program)) == 0)
			return true;
	return false;
}

/* Options behind which interpreters expect code. */
static bool expects_code(const char *option)
{
	static const char *const names[] = { "-c",     "-e",        "-E",      "-lc",  "-ic",
					     "-ec",    "-xc",       "-r",      "-p",   "--command",
					     "--eval", "--execute", "--print", "-exec" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], option) == 0)
			return true;
	return false;
}

/* Options of programs that are no interpreters, and run what they are given with those. */
static bool runs_value(const char *program, const char *option, size_t n)
{
	static const struct {
		const char *program, *option;
	} pairs[] = { { "git", "-c" },
		      { "git", "--upload-pack" },
		      { "git", "--exec" },
		      { "psql", "-c" },
		      { "psql", "--command" },
		      { "mysql", "-e" },
		      { "mysql", "--execute" },
		      { "mariadb", "-e" },
		      { "mariadb", "--execute" },
		      { "tar", "--to-command" },
		      { "tar", "-I" },
		      { "tar", "--use-compress-program" },
		      { "rsync", "-e" },
		      { "rsync", "--rsh" },
		      { "vim", "-c" },
		      { "docker", "--entrypoint" } };

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (strcmp(pairs[i].program, base_name(program)) == 0 &&
		    strlen(pairs[i].option) == n && memcmp(pairs[i].option, option, n) == 0)
			return true;
	return false;
}

/* Whether a text in entry i of run would be code. */
static bool becomes_code(const struct tool_tool *tool, size_t i)
{
	const char *before = tool->run.items[i - 1], *entry = tool->run.items[i];

	if (is_interpreter(tool->run.items[0]) && (before[0] == '-' || i == 1))
		return true;
	for (size_t k = 0; k < i; k++) {
		if (runs_its_words(tool->run.items[k]) && i > k + 1)
			return true;
		if ((k > 0 && is_interpreter(tool->run.items[k]) && expects_code(before)) ||
		    runs_value(tool->run.items[k], before, strlen(before)) ||
		    (*entry == '-' && runs_value(tool->run.items[k], entry, strcspn(entry, "={"))))
			return true;
	}
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

/* Whether the text around a parameter makes it a part of a path: notes/{name}. URLs are not. */
static bool is_path_part(const char *entry, const struct bind_piece *piece)
{
	const char *behind = piece->text + piece->len + 1;

	return !strstr(entry, "://") &&
	       ((piece->text >= entry + 2 && piece->text[-2] == '/') || *behind == '/');
}

static void check_run(const struct tool_tool *tool, struct check_findings *f)
{
	for (size_t i = 1; i < tool->run.len; i++) {
		const char *at = tool->run.items[i], *wrong;
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
			if (p && is_free_text(p) && is_path_part(tool->run.items[i], &piece))
				check_add(f, CHECK_PATH_PARAMETER, tools_place(&p->head, "type"),
					  "pattern: \"[A-Za-z0-9_-]+\"",
					  "%s: --%s stands within a path, and .. in it leaves the "
					  "directory",
					  tool->head.name, p->head.name);
			if (p && is_free_text(p) && becomes_code(tool, i))
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

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], base_name(program)) == 0)
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

/* Words of those programs that are no package: npm exec, uv tool run. */
static bool is_verb(const char *word)
{
	static const char *const words[] = { "exec",   "x",       "dlx",       "run", "tool",
					     "create", "install", "container", "--" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}

/* Options whose value is a package; others that take one are for docker, whose image is the only
 * thing with a digest. */
static bool names_package(const char *option)
{
	static const char *const names[] = { "-p", "--package", "--from", "--with", "--spec" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], option) == 0)
			return true;
	return false;
}

static bool is_container(const char *program)
{
	return strcmp(base_name(program), "docker") == 0 ||
	       strcmp(base_name(program), "podman") == 0;
}

/* Whether every package that a command line from this word on fetches is exact: those that options
 * name, or else the first word that is none. What stands behind is the server's own. */
static bool packages_are_exact(const struct strv *command, size_t from)
{
	bool container = is_container(command->items[from]), named = false;

	for (size_t k = from + 1; k < command->len; k++) {
		const char *word = command->items[k], *equals = strchr(word, '=');
		auto_free char *option = equals ? strndup(word, (size_t)(equals - word)) : NULL;

		if (container && strstr(word, "@sha256:"))
			return true;
		if (container || is_verb(word))
			continue;
		if (*word == '-' && option && names_package(option)) {
			if (!is_exact(equals + 1))
				return false;
			named = true;
		} else if (names_package(word) && k + 1 < command->len) {
			if (!is_exact(command->items[++k]))
				return false;
			named = true;
		} else if (*word != '-') {
			return named || is_exact(word);
		}
	}
	return named;
}

/* The program that fetches may stand behind others: env A=b npx. */
static bool is_pinned(const struct strv *command)
{
	for (size_t k = 0; k < command->len; k++) {
		const char *word = command->items[k];

		if (fetches(word))
			return packages_are_exact(command, k);
		/* a shell's line is not read, and can fetch anything */
		if (k && expects_code(command->items[k - 1]) && is_interpreter(command->items[0]))
			for (const char *at = word; *at; at += strcspn(at, " ;&|(") + 1) {
				char first[16];

				snprintf(first, sizeof(first), "%.*s", (int)strcspn(at, " ;&|("),
					 at);
				if (fetches(first))
					return false;
				if (!at[strcspn(at, " ;&|(")])
					break;
			}
	}
	return true;
}

static void check_servers(const struct tools *t, struct check_findings *f)
{
	for (size_t i = 0; i < t->file.servers.len; i++) {
		const struct tool_server *s = tools_at(server, &t->file.servers, i);

		if (!is_pinned(&s->command))
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
