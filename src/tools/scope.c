/*
 * From a scope to a policy. In: a tool, and the policy of the agent that holds it. Out: the policy
 * of one call: what the scope names and nothing else, every other grant of the base taken away; or
 * what the scope has beyond the base. Files: a tool with the whole workspace has it, read-only
 * unless it writes there; one with parts of it has the workspace read-only with all but those parts
 * hidden, so that .aiignore and the policy's hide and protect hold there as in any run; one without
 * files has an empty directory. Hosts: the scope's rules, with the scope's methods in each.
 * Credentials: the named grants. Engine, image, approvals, audit and requirements stay the base's,
 * or become stronger. Pure functions.
 */
#include "tools/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "policy/policy_grant.h"
#include "policy/policy_rule.h"
#include "policy/schema.h"
#include "tools/bind.h"

struct cut {
	const struct tool_tool *tool;
	const struct scope_place *at;
	const struct policy *base;
	struct policy *p;
	struct strv *wider;
	struct ward_err *e;
};

static int set(struct cut *c, const char *field, const char *value)
{
	int r = policy_set(c->p, field, value, false, POLICY_FILE, c->e);

	return r < 0 ? ward_wrap(c->e, "scope of %s", c->tool->head.name) : 0;
}

/* Conditions of one kind: each of the narrower is one of the wider's, and there is one. */
static bool conditions_cover(const struct policy_rule *a, const struct policy_rule *b, char kind)
{
	bool some = false;

	for (unsigned i = 0; i < b->http_len; i += (unsigned)strlen(b->http + i) + 1) {
		bool found = false;

		if (b->http[i] != kind)
			continue;
		some = true;
		for (unsigned k = 0; k < a->http_len; k += (unsigned)strlen(a->http + k) + 1)
			found |= strcmp(a->http + k, b->http + i) == 0;
		if (!found)
			return false;
	}
	return some;
}

static bool ports_cover(const struct policy_rule *a, const struct policy_rule *b)
{
	for (unsigned i = 0; a->n_ports && i < b->n_ports; i++) {
		bool found = false;

		for (unsigned k = 0; k < a->n_ports; k++)
			found |= a->ports[k] == b->ports[i];
		if (!found)
			return false;
	}
	return !a->n_ports || b->n_ports;
}

static bool limits_cover(const struct policy_rule *a, const struct policy_rule *b)
{
	return b->connections <= a->connections && b->connection_rate <= a->connection_rate &&
	       b->receive <= a->receive && b->send <= a->send && b->bandwidth <= a->bandwidth &&
	       b->request_rate <= a->request_rate && b->spend <= a->spend;
}

bool scope_rule_covers(const char *a_text, const char *b_text)
{
	struct ward_err ignored;
	struct policy_rule a, b;
	bool raw;

	if (strcmp(a_text, b_text) == 0)
		return true;
	if (policy_rule_read(a_text, &a, &ignored) < 0 ||
	    policy_rule_read(b_text, &b, &ignored) < 0)
		return false;
	/* raw bytes are more than any other way, and a rule that looks is more than none */
	raw = b.mode == POLICY_RULE_TCP && a.mode != POLICY_RULE_TCP;
	if (!grant_host_covers(a.host, b.host) || !ports_cover(&a, &b) || raw ||
	    (a.mode != b.mode && a.mode != POLICY_RULE_BY_PORT && b.mode != POLICY_RULE_INSPECT) ||
	    b.private > a.private || a.ask > b.ask || b.waf < a.waf || a.llm != b.llm ||
	    !limits_cover(&a, &b))
		return false;
	for (unsigned i = 0; i < a.http_len; i += (unsigned)strlen(a.http + i) + 1)
		if (!conditions_cover(&a, &b, a.http[i]))
			return false;
	return true;
}

bool scope_policy_shows(const struct policy *p, const char *dir, const char *home, const char *path,
			bool write)
{
	auto_free char *workspace = bind_scope_path(dir, home, p->fs_workspace);

	if (workspace && path_is_beneath(path, workspace) &&
	    (!write || p->fs_mode != FS_MODE_READ_ONLY))
		return true;
	for (size_t i = 0; i < p->fs_host_mounts.len; i++) {
		const struct policy_mount *m = &p->fs_host_mounts.items[i];
		auto_free char *source = bind_scope_path(dir, home, m->path);

		if (source && !m->at && path_is_beneath(path, source) && (!write || m->writable))
			return true;
	}
	return false;
}

static void check_paths(struct cut *c, const struct strv *paths, bool write)
{
	for (size_t i = 0; c->base && i < paths->len; i++) {
		auto_free char *path = bind_scope_path(c->at->dir, c->at->home, paths->items[i]);

		if (!path || !scope_policy_shows(c->base, c->at->dir, c->at->home, path, write))
			strv_addf(c->wider, "scope.%s: %s is not %s in the policy",
				  write ? "write" : "read", paths->items[i],
				  write ? "writable" : "readable");
	}
}

/* -- files */

/* "/a/b" below the workspace: hides what is beside each step of it. gitignore: the last pattern
 * that matches decides. */
static void show_only(const struct strv *parts, struct buf *out)
{
	auto_strv steps = { 0 };

	json_quote(out, "/*");
	for (size_t i = 0; i < parts->len; i++) {
		const char *part = parts->items[i];

		for (size_t n = 1; n <= strlen(part); n++) {
			if (part[n] != '/' && part[n])
				continue;
			strv_addf(&steps, "!%.*s", (int)n, part);
			if (part[n])
				strv_addf(&steps, "%.*s/*", (int)n, part);
		}
	}
	/* a step that is hidden for one part must not hide another: shows come last, by depth */
	for (size_t i = 0; i < steps.len; i++)
		if (steps.items[i][0] != '!') {
			buf_puts(out, ",");
			json_quote(out, steps.items[i]);
		}
	for (size_t i = 0; i < steps.len; i++)
		if (steps.items[i][0] == '!') {
			buf_puts(out, ",");
			json_quote(out, steps.items[i]);
		}
}

/* gitignore would read these. */
static bool is_plain_path(const char *path)
{
	return !strpbrk(path, "*?[]\\!\n\r") && path[strlen(path) - 1] != ' ';
}

static int sort_path(struct cut *c, const char *path, bool write, bool *ret_whole,
		     struct strv *parts, struct json *mounts)
{
	auto_free char *full = bind_scope_path(c->at->dir, c->at->home, path);
	bool inside;

	if (!full)
		return ward_fail(c->e, EINVAL, "scope of %s: cannot resolve %.200s",
				 c->tool->head.name, path);
	if (path_is_beneath(c->at->dir, full) && strcmp(full, c->at->dir) != 0)
		return ward_fail(c->e, EINVAL,
				 "scope of %s: %.200s holds the workspace and more; name what the "
				 "tool needs",
				 c->tool->head.name, path);
	inside = path_is_beneath(full, c->at->dir);
	if (strcmp(full, c->at->dir) == 0) {
		*ret_whole = true;
		return 0;
	}
	if (inside && !is_plain_path(full))
		return ward_fail(c->e, EINVAL,
				 "scope of %s: %.200s: paths with * ? [ ] \\ ! are not supported",
				 c->tool->head.name, path);
	if (inside)
		strv_add(parts, full + strlen(c->at->dir));
	if (write || !inside) {
		json_begin_object(mounts, NULL);
		json_string(mounts, "path", full);
		json_string(mounts, "mode", write ? "read_write" : "read_only");
		json_end_object(mounts);
	}
	return 0;
}

static int set_hide(struct cut *c, bool whole, const struct strv *parts)
{
	auto_buf hide = { 0 };

	if (whole || !parts->len)
		return 0;
	buf_puts(&hide, "[");
	show_only(parts, &hide);
	for (size_t i = 0; i < c->p->fs_hide.len; i++) {
		/* one that shows again could show what lies outside of the scope */
		if (c->p->fs_hide.items[i][0] == '!')
			return ward_fail(c->e, EINVAL,
					 "scope of %s: filesystem.hide with %.100s cannot be cut "
					 "to parts of the workspace",
					 c->tool->head.name, c->p->fs_hide.items[i]);
		buf_puts(&hide, ",");
		json_quote(&hide, c->p->fs_hide.items[i]);
	}
	buf_puts(&hide, "]");
	return hide.failed ? ward_fail(c->e, ENOMEM, "out of memory")
			   : set(c, "filesystem.hide", buf_text(&hide));
}

static int cut_files(struct cut *c)
{
	const struct tool_scope *s = &c->tool->scope;
	bool reads_all = false, writes_all = false;
	auto_strv parts = { 0 };
	auto_buf list = { 0 };
	struct json mounts = { .out = &list };
	int r = 0;

	check_paths(c, &s->read, false);
	check_paths(c, &s->write, true);
	json_begin_array(&mounts, NULL);
	for (size_t i = 0; r == 0 && i < s->write.len; i++)
		r = sort_path(c, s->write.items[i], true, &writes_all, &parts, &mounts);
	for (size_t i = 0; r == 0 && i < s->read.len; i++)
		r = sort_path(c, s->read.items[i], false, &reads_all, &parts, &mounts);
	json_end_array(&mounts);
	if (r == 0)
		r = set(c, "filesystem.workspace",
			reads_all || writes_all || parts.len ? c->at->dir : c->at->empty);
	if (r == 0)
		r = set(c, "filesystem.mode",
			!writes_all                                     ? "read_only"
			: c->base && c->base->fs_mode == FS_MODE_REVIEW ? "review"
									: "read_write");
	if (r == 0)
		r = set(c, "filesystem.host_mounts", buf_text(&list));
	return r == 0 ? set_hide(c, reads_all || writes_all, &parts) : r;
}

/* -- the network */

/* The rule with the scope's methods, where it has none of its own. */
static void put_rule(struct cut *c, const char *rule, struct buf *out)
{
	const struct strv *methods = &c->tool->scope.methods;
	size_t n = strlen(rule);
	struct json j = { .out = out };

	if (!methods->len || strstr(rule, "\"methods\":")) {
		buf_puts(out, rule);
		return;
	}
	buf_add(out, rule, n - 1);
	buf_puts(out, ",");
	json_begin_array(&j, "methods");
	for (size_t i = 0; i < methods->len; i++)
		json_string(&j, NULL, methods->items[i]);
	json_end_array(&j);
	buf_puts(out, "}");
}

/* Questions of the base are questions of the tool. */
static bool base_covers(const struct policy *base, const char *rule)
{
	if (base->net_mode == NET_MODE_NONE)
		return false;
	for (size_t i = 0; i < base->net_egress.len; i++)
		if (scope_rule_covers(base->net_egress.items[i], rule))
			return true;
	return base->net_mode == NET_MODE_OPEN && !strstr(rule, "\"private\":true");
}

static int cut_network(struct cut *c)
{
	const struct strv *hosts = &c->tool->scope.hosts;
	auto_buf list = { 0 };
	int r;

	buf_puts(&list, "[");
	for (size_t i = 0; i < hosts->len; i++) {
		if (i)
			buf_puts(&list, ",");
		put_rule(c, hosts->items[i], &list);
	}
	buf_puts(&list, "]");
	r = set(c, "network.mode", hosts->len ? "restricted" : "none");
	if (r == 0)
		r = set(c, "network.egress_allowlist", buf_text(&list));
	/* what the rules say in full is compared, as they are enforced */
	for (size_t i = 0; r == 0 && c->base && i < c->p->net_egress.len; i++)
		if (!base_covers(c->base, c->p->net_egress.items[i]))
			strv_addf(c->wider, "scope.hosts: %s is not in the policy",
				  c->p->net_egress.items[i]);
	if (r == 0)
		r = set(c, "network.ingress", "deny_all");
	if (r == 0)
		r = set(c, "network.host_services", "[]");
	return r;
}

/* The grants that the scope names, for as far as its hosts go: a grant for other hosts only is of
 * no use to it. */
static int cut_credentials(struct cut *c)
{
	const struct strv *names = &c->tool->scope.credentials;
	auto_strv kept = { 0 };

	for (size_t i = 0; i < names->len; i++) {
		bool found = false;

		for (size_t k = 0; c->base && k < c->base->cred_grants.len; k++) {
			auto_grant grant = { 0 };
			struct ward_err ignored;

			if (policy_grant_read(c->base->cred_grants.items[k], &grant, &ignored) <
				    0 ||
			    strcmp(grant.name, names->items[i]) != 0)
				continue;
			found = true;
			strv_add(&kept, c->base->cred_grants.items[k]);
		}
		if (!found)
			strv_addf(c->wider, "scope.credentials: the policy has no grant %s",
				  names->items[i]);
	}
	strv_free(&c->p->cred_grants);
	c->p->cred_grants = kept;
	kept = (struct strv){ 0 };
	strv_free(&c->p->cred_ssh);
	strv_free(&c->p->cred_gpg);
	return set(c, "credentials.mode", names->len ? "just_in_time" : "none");
}

/* -- the rest */

/* A limit that the scope says must not exceed the base's; one that it does not say is the smaller
 * of the two. A share of the machine's memory is compared when the sandbox starts. */
static void lower(struct cut *c, const char *key, uint64_t *member, uint64_t value)
{
	const struct node *n = c->tool->scope.limits.head.node;
	bool said = n && n->kind == NODE_MAP && node_get(n, key);
	bool share = *member != POLICY_NONE && (*member & POLICY_PERCENT);

	if (!share && *member < value && c->base) {
		if (said)
			strv_addf(c->wider, "scope.limits.%s: the policy allows less", key);
		return;
	}
	*member = value;
}

static int cut_limits(struct cut *c)
{
	const struct tool_limits *l = &c->tool->scope.limits;

	lower(c, "timeout", &c->p->res_timeout, l->timeout);
	lower(c, "cpus", &c->p->res_cpu, l->cpus);
	lower(c, "memory", &c->p->res_memory, l->memory);
	lower(c, "pids", &c->p->res_pids, l->pids);
	lower(c, "disk", &c->p->res_disk, l->disk);
	strv_free(&c->p->res_gpus);
	return 0;
}

static int cut_process(struct cut *c)
{
	const struct tool_scope *s = &c->tool->scope;
	char word[32];
	int r;

	if (c->base && s->syscalls > c->base->proc_syscalls)
		strv_addf(c->wider, "scope.syscalls: the policy has a narrower set");
	r = set(c, "process.syscalls", tools_word("scope", "syscalls", s->syscalls, word));
	if (r == 0)
		r = set(c, "process.env", "[LANG, LC_ALL, TZ]");
	for (size_t i = 0; r == 0 && i < s->env.len; i++) {
		if (c->base && !strchr(s->env.items[i], '=') &&
		    !strv_has(&c->base->proc_env, s->env.items[i]))
			strv_addf(c->wider, "scope.env: %s is not in process.env of the policy",
				  s->env.items[i]);
		r = policy_set(c->p, "process.env", s->env.items[i], true, POLICY_FILE, c->e);
	}
	if (r == 0)
		r = set(c, "toolchains", "none");
	for (size_t i = 0; r == 0 && i < s->toolchains.len; i++) {
		if (c->base && !strv_has(&c->base->toolchains, "auto") &&
		    !strv_has(&c->base->toolchains, s->toolchains.items[i]))
			strv_addf(c->wider, "scope.toolchains: %s is not in the policy",
				  s->toolchains.items[i]);
		r = policy_set(c->p, "toolchains", s->toolchains.items[i], true, POLICY_FILE, c->e);
	}
	c->p->proc_nesting = false;
	return r == 0 ? set(c, "process.git_identity", "false") : r;
}

/* The engine that the scope names, if the base has it too or it is a stronger one. */
static int cut_engine(struct cut *c)
{
	unsigned engine = c->tool->scope.engine;
	char word[32];

	tools_word("scope", "engine", engine, word);
	if (c->base && !strv_has(&c->base->isolation, word) && engine == ENGINE_NATIVE) {
		/* nothing was said, or the weakest: the base's own list is kept */
		if (node_get(c->tool->scope.head.node, "engine"))
			strv_addf(c->wider, "scope.engine: the policy does not allow native");
		return 0;
	}
	return set(c, "isolation", word);
}

static int cut_volumes(struct cut *c)
{
	int r = set(c, "filesystem.caches", "[]");

	if (r == 0)
		r = set(c, "filesystem.home", "private");
	if (r == 0)
		r = set(c, "filesystem.programs", "[]");
	return r;
}

int scope_policy(const struct tool_tool *tool, const struct scope_place *at,
		 const struct policy *base, struct policy *ret, struct strv *wider,
		 struct ward_err *e)
{
	static int (*const steps[])(struct cut *) = { cut_files,   cut_network, cut_credentials,
						      cut_process, cut_limits,  cut_engine,
						      cut_volumes };
	struct cut c = { tool, at, base, ret, wider, e };
	int r;

	*ret = (struct policy){ 0 };
	r = base ? policy_copy(ret, base, e) : policy_defaults(ret, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(steps); i++)
		r = steps[i](&c);
	if (r == 0 && wider->failed)
		r = ward_fail(e, ENOMEM, "out of memory");
	return r;
}

/* Fields that a document says even where they have their default: the user's own configuration
 * lies below it. */
static bool is_decided(const char *path)
{
	static const char *const fields[] = {
		"version",
		"isolation",
		"toolchains",
		"filesystem.workspace",
		"filesystem.mode",
		"filesystem.host_mounts",
		"filesystem.hide",
		"filesystem.caches",
		"filesystem.home",
		"filesystem.programs",
		"network.mode",
		"network.egress_allowlist",
		"network.ingress",
		"network.host_services",
		"process.syscalls",
		"process.env",
		"process.git_identity",
		"process.nesting",
		"resources.cpu_limit",
		"resources.memory_limit",
		"resources.pids_limit",
		"resources.disk_limit",
		"resources.timeout_seconds",
		"resources.gpus",
		"credentials.mode",
		"credentials.grants",
		"credentials.ssh",
		"credentials.gpg",
	};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strcmp(fields[i], path) == 0)
			return true;
	return false;
}

static bool is_unsaid(const char *path, const char *fallback, const char *text)
{
	return strcmp(text, fallback) == 0 && !is_decided(path);
}

void scope_document(const struct policy *p, struct buf *out)
{
	policy_document(p, is_unsaid, out);
}
