/*
 * The plan for a reader. In: a compiled plan and the engine's stages. Out: text or one JSON object.
 * A pure function over the plan; names in it are the user's or come from the workspace, so text is
 * escaped. The values of environment variables are not shown: they may be secrets, and plans end up
 * in logs.
 */
#include "plan/plan.h"
#include "plan/spec_origin.h"
#include "plan/plan_tape.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "event/table_names.h"
#include "plan/inner.h"
#include "policy/policy_rule.h"
#include "policy/units.h"
#include "state/checkpoint.h"

static const char *level_name(enum level r)
{
	return r == LEVEL_NAMESPACES ? "namespaces" : "landlock";
}

static const char *ids_name(enum ids_mode m)
{
	switch (m) {
	case IDS_OWN:
		return "own";
	case IDS_MAPPED:
		return "mapped";
	case IDS_OWNER:
		return "owner";
	case IDS_ROOT:
		return "root";
	}
	return "";
}

static const char *ids_help(enum ids_mode m)
{
	switch (m) {
	case IDS_OWN:
		return "your own uid";
	case IDS_MAPPED:
		return "an unprivileged uid of its own, writable trees id-mapped";
	case IDS_OWNER:
		return "the workspace's owner";
	case IDS_ROOT:
		return "uid 0 without capabilities";
	}
	return "";
}

static const char *mount_kind_name(const struct plan_mount *m)
{
	switch (m->kind) {
	case MOUNT_BIND:
		return m->review ? "review" : "bind";
	case MOUNT_TMPFS:
		return "tmpfs";
	case MOUNT_PROC:
		return "proc";
	case MOUNT_DEV:
		return "dev";
	case MOUNT_LINK:
		return "link";
	case MOUNT_FILE:
		return "file";
	}
	return "";
}

static const char *action_name(enum guard_action a)
{
	switch (a) {
	case GUARD_PIN:
		return "pinned";
	case GUARD_VIEW:
		return "private copy";
	case GUARD_READONLY:
		return "read-only";
	case GUARD_HIDE:
		return "hidden";
	}
	return "";
}

static void json_strings(struct json *j, const char *key, char *const *items)
{
	json_begin_array(j, key);
	for (; items && *items; items++)
		json_string(j, NULL, *items);
	json_end_array(j);
}

static void json_ids(struct json *j, const struct plan_ids *ids)
{
	json_begin_object(j, "ids");
	json_string(j, "mode", ids_name(ids->mode));
	json_uint(j, "host_uid", ids->host_uid);
	json_uint(j, "host_gid", ids->host_gid);
	json_uint(j, "inside_uid", ids->inside_uid);
	json_uint(j, "inside_gid", ids->inside_gid);
	json_end_object(j);
}

static void json_limits(struct json *j, const struct plan *p)
{
	json_begin_object(j, "limits");
	for (enum limit l = 0; l < LIMITS; l++) {
		json_begin_object(j, limit_name(l));
		if (p->limits[l].value == POLICY_NONE)
			json_null(j, "value");
		else
			json_uint(j, "value", p->limits[l].value);
		json_string(j, "held_by", held_by_name(p->limits[l].held_by));
		json_end_object(j);
	}
	json_end_object(j);
}

static void json_mounts(struct json *j, const struct plan *p)
{
	json_begin_array(j, "mounts");
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];

		json_begin_object(j, NULL);
		json_string(j, "kind", mount_kind_name(m));
		json_string(j, "target", m->target);
		if (m->kind == MOUNT_BIND || m->kind == MOUNT_LINK)
			json_string(j, "source", m->source);
		if (m->kind == MOUNT_TMPFS)
			json_uint(j, "bytes", m->bytes);
		json_bool(j, "writable", m->writable);
		if (m->toolchain)
			json_bool(j, "toolchain", true);
		json_end_object(j);
	}
	json_end_array(j);
}

static void json_roots(struct json *j, const struct plan *p)
{
	json_begin_array(j, "guarded");
	for (size_t i = 0; i < p->live->root_count; i++) {
		const struct guard_root *g = &p->live->roots[i];

		json_begin_object(j, NULL);
		json_string(j, "path", g->path);
		json_string(j, "target", g->target);
		json_begin_array(j, "steps");
		for (size_t k = 0; k < g->step_count; k++) {
			json_begin_object(j, NULL);
			json_string(j, "path", g->steps[k].path);
			json_string(j, "action", action_name(g->steps[k].action));
			json_end_object(j);
		}
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

/* Only the names: see above. */
static void json_env(struct json *j, const struct plan *p)
{
	json_begin_array(j, "env");
	for (size_t i = 0; i < p->env.len; i++) {
		auto_free char *name = strndup(p->env.items[i], strcspn(p->env.items[i], "="));

		json_string(j, NULL, name);
	}
	json_end_array(j);
}

static const char *const waf_words[] = {
	[POLICY_WAF_OFF] = "off", [POLICY_WAF_DETECT] = "detect", [POLICY_WAF_BLOCK] = "block"
};

/* What a rule says about requests: "methods: GET", each as one text. */
static void json_conditions(struct json *j, const struct rules *rules, const struct rule *rule)
{
	const char *at = rules->text + rule->http, *end = at + rule->http_len;

	json_begin_array(j, "conditions");
	for (; at < end; at += strlen(at) + 1) {
		auto_buf text = { 0 };

		buf_printf(&text, "%s: %s", policy_http_name(*at), *at ? at + 1 : "");
		json_string(j, NULL, buf_text(&text));
	}
	json_end_array(j);
	json_string(j, "waf", waf_words[rule->waf]);
	json_bool(j, "llm", rule->llm);
}

/* The same for a reader: one line for each word of the policy. */
static void text_conditions(const struct rules *rules, const struct rule *rule, struct buf *out)
{
	const char *at = rules->text + rule->http, *end = at + rule->http_len;
	char kind = '\0';

	for (; at < end; at += strlen(at) + 1) {
		if (*at != kind)
			buf_printf(out, "%s    %s: ", kind ? "\n" : "", policy_http_name(*at));
		else
			buf_puts(out, ", ");
		kind = *at;
		text_escape(out, *at ? at + 1 : "");
	}
	buf_puts(out, kind ? "\n" : "");
	if (rule->waf != POLICY_WAF_OFF)
		buf_printf(out, "    waf: %s\n", waf_words[rule->waf]);
	if (rule->llm)
		buf_puts(out, "    llm: counts what requests cost\n");
}

static void json_network(struct json *j, const struct plan *p)
{
	static const char *const modes[] = { [RULE_SPLICE] = "splice",
					     [RULE_HTTP] = "http",
					     [RULE_TCP] = "tcp",
					     [RULE_INSPECT] = "inspect",
					     [RULE_PLAIN] = "http" };
	const struct rules *rules = p->net.rules;

	json_begin_array(j, "network");
	for (uint32_t i = 0; p->net.on && i < rules->n_items; i++) {
		auto_buf text = { 0 };

		if (rules->items[i].never)
			continue;
		rules_text(rules, (int32_t)i, &text);
		json_begin_object(j, NULL);
		json_string(j, "rule", buf_text(&text));
		json_string(j, "mode",
			    modes[rules_mode(rules, (int32_t)i,
					     rules->ports[rules->items[i].first_port])]);
		json_bool(j, "private", rules->items[i].private);
		json_bool(j, "ask", rules->items[i].ask);
		json_conditions(j, rules, &rules->items[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

/* The stages of the inner runtime, which follow the engine's own. */
static const char *const *inner_stages(const struct plan *p)
{
	return p->spec->inner ? p->spec->inner->stages : NULL;
}

static void json_stages(struct json *j, const char *const *stages)
{
	for (; stages && stages[0]; stages += 2) {
		json_begin_object(j, NULL);
		json_string(j, "name", stages[0]);
		json_string(j, "does", stages[1]);
		json_end_object(j);
	}
}

/* Whether ward checkpoint could make one of it. */
static bool can_be_kept(const struct plan *p, struct ward_err *why)
{
	auto_strv words = { 0 };

	return checkpoint_possible(p, NULL, &words, why) == 0;
}

static void print_json(const struct plan *p, const char *const *stages, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "engine", plan_isolation(p));
	json_string(&j, "wall", p->spec->inner ? p->spec->inner->help : NULL);
	json_string(&j, "rung", level_name(p->level));
	json_string(&j, "workspace", p->workspace);
	json_string(&j, "cwd", p->cwd);
	json_string(&j, "profile", p->spec->profile);
	json_string(&j, "policy_file", p->spec->policy_file);
	json_strings(&j, "command", p->argv);
	json_strings(&j, "started", p->started);
	json_string(&j, "image", p->image.root);
	json_string(&j, "image_digest",
		    p->image.root && p->image.digest[0] ? p->image.digest : NULL);
	json_ids(&j, &p->ids);
	json_limits(&j, p);
	json_network(&j, p);
	json_strings(&j, "gpus", p->gpus ? p->gpus->names.items : NULL);
	json_begin_array(&j, "devices");
	for (size_t i = 0; p->devices && i < p->devices->len; i++)
		json_string(&j, NULL, p->devices->items[i].path);
	json_end_array(&j);
	if (p->commands) {
		json_bool(&j, "commands_listed", p->commands->listed);
		json_strings(&j, "commands_allowed", p->commands->files.items);
		json_strings(&j, "commands_denied", p->commands->denied.items);
		json_strings(&j, "commands_interpreters", p->commands->roles.items);
	}
	json_strings(&j, "toolchains", p->toolchains.items);
	json_strings(&j, "toolchain_paths", p->tool_rows.items);
	json_mounts(&j, p);
	json_roots(&j, p);
	json_env(&j, p);
	spec_json_policy(p->spec, &j);
	json_begin_array(&j, "stages");
	json_stages(&j, stages);
	json_stages(&j, inner_stages(p));
	json_end_array(&j);
	json_bool(&j, "checkpoint", can_be_kept(p, &(struct ward_err){ 0 }));
	json_strings(&j, "notes", p->notes.items);
	json_end_object(&j);
	buf_puts(out, "\n");
}

#define HEAD_INDENT 11  /* where the values of the first lines begin */
#define STAGE_INDENT 17 /* where the help of a stage begins */

static void text_line(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%-10s ", name);
	text_wrap(out, value, HEAD_INDENT);
	buf_puts(out, "\n");
}

/* Only the names: see above. */
static void text_variables(const struct plan *p, struct buf *out)
{
	auto_buf names = { 0 };

	for (size_t i = 0; i < p->env.len; i++)
		buf_printf(&names, "%s%.*s", i ? " " : "", (int)strcspn(p->env.items[i], "="),
			   p->env.items[i]);
	text_line(out, "variables", buf_text(&names));
}

static void text_toolchains(const struct plan *p, struct buf *out)
{
	auto_buf names = { 0 };

	for (size_t i = 0; i < p->toolchains.len; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", p->toolchains.items[i]);
	for (size_t i = 0; i < p->tool_rows.len; i++)
		buf_printf(&names, "%s%s", i ? ", " : ": ", p->tool_rows.items[i]);
	if (names.len)
		text_line(out, "toolchains", buf_text(&names));
}

static void text_head(const struct plan *p, struct buf *out)
{
	text_line(out, "engine", plan_isolation(p));
	if (p->spec->inner)
		text_line(out, "runtime", p->spec->inner->help);
	text_line(out, "isolation", level_name(p->level));
	text_line(out, "workspace", p->workspace);
	text_line(out, "directory", p->cwd);
	if (p->image.root)
		text_line(out, "image", p->image.root);
	if (p->spec->profile)
		text_line(out, "profile", p->spec->profile);
	text_line(out, "policy",
		  p->spec->policy_file ? p->spec->policy_file : "none (defaults and options)");
	text_toolchains(p, out);
	if (p->argv) {
		auto_buf words = { 0 };

		for (char *const *a = p->argv; *a; a++)
			buf_printf(&words, "%s%s", a == p->argv ? "" : " ", *a);
		text_line(out, "command", buf_text(&words));
	}
	text_line(out, "ids", ids_help(p->ids.mode));
	buf_printf(out, "%-10s host uid %u gid %u, inside %u:%u\n", "", p->ids.host_uid,
		   p->ids.host_gid, p->ids.inside_uid, p->ids.inside_gid);
	if (p->spec->inner && p->spec->inner->snapshot) {
		struct ward_err why = { 0 };

		text_line(out, "checkpoint",
			  can_be_kept(p, &why) ? "ward checkpoint can keep it while it runs"
					       : why.why);
	}
	text_variables(p, out);
}

static void format_limit(enum limit l, uint64_t value, char *out, size_t n)
{
	if (value == POLICY_NONE)
		snprintf(out, n, "off");
	else if (l == LIMIT_MEMORY || l == LIMIT_DISK || l == LIMIT_OUTPUT)
		units_format_size(value, out, n);
	else if (l == LIMIT_TIMEOUT)
		units_format_ms(value, out, n);
	else if (l == LIMIT_CPU)
		snprintf(out, n, "%g", (double)value / 1000);
	else
		snprintf(out, n, "%" PRIu64, value);
}

static void text_limits(const struct plan *p, struct buf *out)
{
	buf_puts(out, "\nlimits\n");
	for (enum limit l = 0; l < LIMITS; l++) {
		char value[48];

		format_limit(l, p->limits[l].value, value, sizeof(value));
		buf_printf(out, "  %-12s %-10s", limit_name(l), value);
		if (p->limits[l].value != POLICY_NONE)
			buf_printf(out, " held by %s", held_by_name(p->limits[l].held_by));
		while (out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		buf_puts(out, "\n");
	}
}

static void text_mounts(const struct plan *p, struct buf *out)
{
	buf_puts(out, "\nmounts\n");
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];
		char size[48];

		buf_printf(out, "  %s  %-6s ", m->writable ? "rw" : "ro", mount_kind_name(m));
		text_escape(out, m->target);
		if ((m->kind == MOUNT_BIND && strcmp(m->source, m->target) != 0) ||
		    m->kind == MOUNT_LINK) {
			buf_puts(out, m->kind == MOUNT_LINK ? " -> " : " from ");
			text_escape(out, m->source);
		}
		if (m->kind == MOUNT_TMPFS) {
			units_format_size(m->bytes, size, sizeof(size));
			buf_printf(out, " of %s", size);
		}
		buf_puts(out, "\n");
	}
}

static void text_roots(const struct plan *p, struct buf *out)
{
	for (size_t i = 0; i < p->live->root_count; i++) {
		const struct guard_root *g = &p->live->roots[i];

		if (!g->step_count)
			continue;
		buf_puts(out, "\nprotected and hidden in ");
		text_escape(out, g->path);
		buf_puts(out, "\n");
		for (size_t k = 0; k < g->step_count; k++) {
			buf_printf(out, "  %-12s ", action_name(g->steps[k].action));
			text_escape(out, g->steps[k].path);
			buf_puts(out, g->steps[k].is_dir ? "/\n" : "\n");
		}
	}
}

static const char *const net_modes[] = { "none", "restricted", "open" };
static const char *const rule_modes[] = { [RULE_SPLICE] = "TLS to that name",
					  [RULE_HTTP] = "HTTP to that host",
					  [RULE_TCP] = "anything",
					  [RULE_INSPECT] = "inspected (TLS ends at the gateway)",
					  [RULE_PLAIN] = "requests" };

static void text_network(const struct plan *p, struct buf *out)
{
	const struct rules *rules = p->net.rules;

	if (!p->net.on)
		return;
	buf_printf(out, "\nnetwork (%s)\n",
		   net_modes[p->spec->policy.net_mode % ARRAY_LEN(net_modes)]);
	for (uint32_t i = 0; i < rules->n_items; i++) {
		const struct rule *rule = &rules->items[i];

		auto_buf text = { 0 };

		if (rule->never)
			continue;

		rules_text(rules, (int32_t)i, &text);
		buf_printf(out, "  %-32s", buf_text(&text));
		for (unsigned k = 0; k < rule->n_ports; k++)
			if (!k ||
			    rules_mode(rules, (int32_t)i, rules->ports[rule->first_port + k]) !=
				    rules_mode(rules, (int32_t)i,
					       rules->ports[rule->first_port + k - 1]))
				buf_printf(
					out, "%s %s", k ? "," : "",
					rule_modes[rules_mode(rules, (int32_t)i,
							      rules->ports[rule->first_port + k])]);
		buf_puts(out, rule->private ? ", also private addresses" : "");
		buf_puts(out, !rule->ask    ? "\n"
			      : rules->asks ? ", asks first\n"
					    : ", denied: approvals.mode is deny\n");
		text_conditions(rules, rule, out);
	}
	for (size_t i = 0; i < p->spec->policy.net_host_services.len; i++)
		buf_printf(out, "  %-32s of this host\n",
			   p->spec->policy.net_host_services.items[i]);
	for (size_t i = 0; i < p->net.published_count; i++)
		buf_printf(out, "  published: port %u of this host's loopback leads to %u inside\n",
			   p->net.published[i].host, p->net.published[i].inside);
	if (p->live->tape) {
		buf_puts(out, p->live->tape->replay ? "  answers from the recording "
						    : "  records requests to ");
		text_escape(out, p->live->tape->path);
		buf_puts(out, "\n");
	}
}

static void text_devices(const struct plan *p, struct buf *out)
{
	if (!p->devices)
		return;
	buf_puts(out, p->gpus ? "\nGPUs\n" : "\ndevices\n");
	for (size_t i = 0; p->gpus && i < p->gpus->names.len; i++) {
		buf_puts(out, "  ");
		text_escape(out, p->gpus->names.items[i]);
		buf_puts(out, "\n");
	}
	for (size_t i = 0; i < p->devices->len; i++)
		buf_printf(out, "  rw  device %s\n", p->devices->items[i].path);
}

/* Returns the number that the next one has. */
static size_t text_stages(const char *const *stages, size_t i, struct buf *out)
{
	for (; stages && stages[0]; stages += 2, i++) {
		buf_printf(out, "  %2zu. %-10s ", i, stages[0]);
		text_wrap(out, stages[1], STAGE_INDENT);
		buf_puts(out, "\n");
	}
	return i;
}

static void text_commands(const struct plan *p, struct buf *out)
{
	const struct plan_commands *c = p->commands;

	if (!c)
		return;
	buf_puts(out, "\nprograms\n");
	for (size_t i = 0; i < c->files.len; i++) {
		buf_puts(out, "  may run  ");
		text_escape(out, c->files.items[i]);
		buf_puts(out, "\n");
	}
	buf_puts(out,
		 c->listed ? "  nothing else is executable; what can be written is noexec\n" : "");
	for (size_t i = 0; i < c->denied.len; i++) {
		buf_puts(out, "  denied   ");
		text_escape(out, c->denied.items[i]);
		buf_puts(out, "\n");
	}
	for (size_t i = 0; i < c->roles.len; i++) {
		buf_puts(out, "  - ");
		text_wrap(out, c->roles.items[i], 4);
		buf_puts(out, "\n");
	}
}

static void print_text(const struct plan *p, const char *const *stages, struct buf *out)
{
	size_t count;

	text_head(p, out);
	if (p->spec->policy_file || p->spec->files.len) {
		buf_puts(out, "\npolicy\n");
		spec_print_policy(p->spec, out);
	}
	text_limits(p, out);
	text_network(p, out);
	text_devices(p, out);
	text_commands(p, out);
	text_mounts(p, out);
	text_roots(p, out);
	buf_puts(out, "\nstages\n");
	count = text_stages(stages, 1, out);
	text_stages(inner_stages(p), count, out);
	if (p->notes.len)
		buf_puts(out, "\nnotes\n");
	for (size_t i = 0; i < p->notes.len; i++) {
		buf_puts(out, "  - ");
		text_wrap(out, p->notes.items[i], 4);
		buf_puts(out, "\n");
	}
}

void plan_print(const struct plan *p, const char *const *stages, bool json, struct buf *out)
{
	if (json)
		print_json(p, stages, out);
	else
		print_text(p, stages, out);
}
