/*
 * The plan in a dozen lines: what the run may do, and what of it is weaker than the defaults. In: a
 * compiled plan. Out: text for a person. Names in it are the user's or come from the workspace, so
 * all of it is escaped. Mounts, variables and stages are in the long form (plan_print.c). A pure
 * function; run by `ward plan`.
 */
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/text.h"
#include "plan/plan_root.h"
#include "policy/units.h"
#include "event/table_names.h"

#define INDENT 11   /* where the values begin */
#define NAMED_MAX 6 /* entries of a list; the long form has all of them */

static void put_line(struct buf *out, const char *name, const struct buf *value)
{
	buf_printf(out, "%-10s ", name);
	text_wrap(out, buf_text(value), INDENT);
	buf_puts(out, "\n");
}

/* "a, b and 3 more": called for each entry. */
static void put_item(struct buf *out, size_t *count, const char *text)
{
	if ((*count)++ < NAMED_MAX)
		buf_printf(out, "%s%s", *count > 1 ? ", " : "", text);
}

static void put_rest(struct buf *out, size_t count)
{
	if (count > NAMED_MAX)
		buf_printf(out, " and %zu more", count - NAMED_MAX);
}

static void put_command(const struct plan *p, struct buf *out)
{
	auto_buf text = { 0 };

	for (char *const *a = p->argv; a && *a; a++)
		buf_printf(&text, "%s%s", a == p->argv ? "" : " ", *a);
	if (text.len)
		put_line(out, "command", &text);
}

static void put_place(const struct plan *p, struct buf *out)
{
	auto_buf workspace = { 0 }, policy = { 0 }, engine = { 0 };

	buf_printf(&workspace, "%s, %s", p->workspace,
		   p->review ? "changes wait for ward apply" : "changes are made in place");
	if (strcmp(p->cwd, p->workspace) != 0)
		buf_printf(&workspace, "; in %s", p->cwd);
	put_line(out, "workspace", &workspace);
	buf_printf(&policy, "%s", p->spec->policy_file ? p->spec->policy_file : "no file");
	if (p->spec->profile)
		buf_printf(&policy, ", profile %s", p->spec->profile);
	put_line(out, "policy", &policy);
	buf_printf(&engine, "%s, %s", plan_isolation(p),
		   p->level == LEVEL_NAMESPACES ? "namespaces" : "Landlock only, no namespaces");
	if (p->image.root)
		buf_printf(&engine, ", image %s", p->image.root);
	put_line(out, "engine", &engine);
}

static void put_network(const struct plan *p, struct buf *out)
{
	const struct rules *rules = p->net.rules;
	const struct policy *policy = &p->spec->policy;
	auto_buf text = { 0 };
	size_t count = 0;

	if (!p->net.on) {
		buf_puts(&text, "none, only a loopback of its own (--allow HOST opens it)");
	} else {
		buf_puts(&text, policy->net_mode == NET_MODE_OPEN ? "open: every public host"
				: policy->net_mode == NET_MODE_NONE
					? "none, but for published ports"
					: "only ");
		for (uint32_t i = 0; i < rules->n_items && policy->net_mode == NET_MODE_RESTRICTED;
		     i++) {
			auto_buf rule = { 0 };

			if (rules->items[i].never)
				continue;
			rules_text(rules, (int32_t)i, &rule);
			if (rules->items[i].ask)
				buf_puts(&rule, rules->asks ? " (asks)" : " (asks: denied)");
			put_item(&text, &count, buf_text(&rule));
		}
		for (size_t i = 0; i < policy->net_host_services.len; i++)
			put_item(&text, &count, policy->net_host_services.items[i]);
		put_rest(&text, count);
		if (!count && policy->net_mode == NET_MODE_RESTRICTED)
			buf_puts(&text, "what no rule names yet: every host is refused");
		if (policy->net_ingress.len)
			buf_puts(&text, "; published:");
		for (size_t i = 0; i < policy->net_ingress.len; i++)
			buf_printf(&text, " %s", policy->net_ingress.items[i]);
	}
	put_line(out, "network", &text);
}

/* Mounts of the policy's and the caller's own, not those that every sandbox has. */
static void put_files(const struct plan *p, struct buf *out)
{
	const struct policy *policy = &p->spec->policy;
	auto_buf writable = { 0 }, readable = { 0 };
	size_t writes = 0, reads = 0, hidden = 0, protected = 0;
	char home[PLAN_USER_MAX + 8];

	put_item(&writable, &writes, "the workspace");
	for (size_t i = 0; i < policy->fs_host_mounts.len; i++) {
		const struct policy_mount *m = &policy->fs_host_mounts.items[i];

		if (m->writable)
			put_item(&writable, &writes, m->path);
		else
			put_item(&readable, &reads, m->path);
	}
	put_rest(&writable, writes);
	put_rest(&readable, reads);
	for (size_t i = 0; i < p->live->root_count; i++)
		for (size_t k = 0; k < p->live->roots[i].step_count; k++) {
			hidden += p->live->roots[i].steps[k].action == GUARD_HIDE;
			protected += p->live->roots[i].steps[k].action == GUARD_READONLY;
		}
	buf_printf(&writable, "; private until the end: /tmp, %s", plan_home(p, home));
	put_line(out, "writes", &writable);
	buf_printf(&readable, "%ssystem programs, part of /etc%s", reads ? ", " : "",
		   policy->fs_programs.len ? ", chosen programs" : "");
	put_line(out, "reads", &readable);
	buf_printf(out, "%-10s %zu hidden, %zu read-only because they run as you\n", "guarded",
		   hidden, protected);
}

/* Which programs may run, and which of them no list can hold. */
static void put_commands(const struct plan *p, struct buf *out)
{
	const struct plan_commands *c = p->commands;
	auto_buf text = { 0 };

	if (!c)
		return;
	if (c->listed)
		buf_printf(&text, "%zu allowed, nothing else is executable; ", c->files.len);
	buf_printf(&text, "%zu denied", c->denied.len);
	for (size_t i = 0; i < c->roles.len; i++)
		buf_printf(&text, "; %s", c->roles.items[i]);
	put_line(out, "programs", &text);
	for (size_t i = 0; i < c->guarded_count; i++) {
		const struct plan_guarded *g = &c->guarded[i];
		auto_buf rules = { 0 };

		text_escape(&rules, g->names.items[0]);
		for (size_t k = 0; k < g->rules.len; k++) {
			buf_puts(&rules, k ? "; " : ": ");
			text_escape(&rules, g->rules.items[k]);
		}
		put_line(out, "", &rules);
	}
}

/* What of the user's own toolchains is shown read-only. */
static void put_toolchains(const struct plan *p, struct buf *out)
{
	auto_buf text = { 0 };
	size_t count = 0;

	if (!p->toolchains.len)
		return;
	for (size_t i = 0; i < p->toolchains.len; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", p->toolchains.items[i]);
	buf_puts(&text, ": ");
	for (size_t i = 0; i < p->tool_rows.len; i++)
		put_item(&text, &count, p->tool_rows.items[i]);
	put_rest(&text, count);
	if (!count)
		buf_puts(&text, "not found here");
	put_line(out, "toolchains", &text);
}

static void put_limits(const struct plan *p, struct buf *out)
{
	auto_buf text = { 0 }, off = { 0 };

	for (enum limit l = 0; l < LIMITS; l++) {
		char value[48];

		if (p->limits[l].value == POLICY_NONE) {
			buf_printf(&off, "%s%s", off.len ? ", " : "", limit_name(l));
			continue;
		}
		if (l == LIMIT_MEMORY || l == LIMIT_DISK || l == LIMIT_OUTPUT)
			units_format_size(p->limits[l].value, value, sizeof(value));
		else if (l == LIMIT_TIMEOUT)
			units_format_ms(p->limits[l].value, value, sizeof(value));
		else if (l == LIMIT_CPU)
			snprintf(value, sizeof(value), "%g", (double)p->limits[l].value / 1000);
		else
			snprintf(value, sizeof(value), "%" PRIu64, p->limits[l].value);
		buf_printf(&text, "%s%s %s", text.len ? ", " : "", limit_name(l), value);
	}
	if (off.len)
		buf_printf(&text, "%sno limit: %s", text.len ? "; " : "", buf_text(&off));
	put_line(out, "limits", &text);
}

static void put_weaker(const struct plan *p, struct buf *out)
{
	struct policy base = { 0 };
	struct ward_err ignored = { 0 };
	struct sysinfo info;
	auto_strv wider = { 0 };
	auto_buf text = { 0 };
	size_t count = 0;

	if (policy_defaults(&base, &ignored) == 0 &&
	    policy_compare_on(&base, &p->spec->policy,
			      sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0,
			      &wider) >= 0) {
		for (size_t i = 0; i < wider.len; i++)
			put_item(&text, &count, wider.items[i]);
		put_rest(&text, count);
		if (!count)
			buf_puts(&text, "nothing is weaker than the defaults");
	} else {
		buf_puts(&text, "could not be compared with the defaults");
	}
	policy_clear(&base);
	put_line(out, "weaker", &text);
}

static void put_asks(const struct plan *p, struct buf *out)
{
	auto_buf text = { 0 };

	if (!p->asks.len)
		return;
	for (size_t i = 0; i < p->asks.len; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", p->asks.items[i]);
	buf_puts(&text, p->spec->policy.appr_mode == APPROVALS_ASK
				? ": a person is asked before a file is read"
				: ": never read, approvals.mode is deny");
	put_line(out, "asks", &text);
}

static void put_never(const struct plan *p, struct buf *out)
{
	const struct strv *never = &p->spec->policy.appr_never;
	auto_buf text = { 0 };

	for (size_t i = 0; i < never->len; i++) {
		buf_puts(&text, i ? ", " : "");
		text_escape(&text, never->items[i]);
	}
	buf_puts(&text, ": no answer allows it");
	if (never->len)
		put_line(out, "never", &text);
}

static void put_secrets(const struct plan *p, struct buf *out)
{
	const struct strv *grants = &p->spec->policy.cred_grants;
	size_t asks = 0;

	for (size_t i = 0; i < grants->len; i++) /* canonical JSON */
		asks += strstr(grants->items[i], ",\"ask\":true") != NULL;
	if (!grants->len)
		return;
	buf_printf(out, "%-10s %zu, used by the gateway; the agent never holds them\n", "secrets",
		   grants->len);
	if (asks)
		buf_printf(out, "%-10s %zu of them: %s\n", "", asks,
			   p->spec->policy.appr_mode == APPROVALS_ASK
				   ? "a person has to allow each use"
				   : "never used: approvals.mode is deny");
}

void plan_print_brief(const struct plan *p, struct buf *out)
{
	auto_buf more = { 0 };

	put_command(p, out);
	put_place(p, out);
	put_network(p, out);
	put_files(p, out);
	put_commands(p, out);
	put_toolchains(p, out);
	put_limits(p, out);
	put_asks(p, out);
	put_never(p, out);
	put_secrets(p, out);
	put_weaker(p, out);
	for (size_t i = 0; i < p->spec->said.len; i++) {
		buf_printf(out, "%-10s ", "note");
		text_wrap(out, p->spec->said.items[i], INDENT);
		buf_puts(out, "\n");
	}
	buf_puts(&more, "ward plan --full: mounts, variables, stages");
	if (p->notes.len)
		buf_printf(&more, ", %zu note%s", p->notes.len, p->notes.len == 1 ? "" : "s");
	put_line(out, "more", &more);
}
