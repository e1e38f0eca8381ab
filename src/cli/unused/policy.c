/*
 * The grants of a policy, and what uses them. In: the file by itself, without what it builds on;
 * events of runs. Out: grants, and their uses. Which rule a connection belongs to is decided by the
 * gateway's own function, so by the policy as it is now. A name that was only looked up used
 * nothing. Where a record fits several grants, all of them were used.
 */
#include "cli/unused/parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cli/ask.h"
#include "event/event.h"
#include "plan/spec.h"
#include "policy/policy_channel.h"
#include "policy/policy_grant.h"
#include "policy/policy_rule.h"
#include "policy/policy_ssh.h"
#include "rules/command_rule.h"

/* "FIELD/INDEX", or deeper; the caller frees. */
static char *way_to(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *way_to(const char *format, ...)
{
	char *way = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&way, format, ap) < 0)
		way = NULL;
	va_end(ap);
	return way;
}

/* The number of the entry with that text in the list that a way leads to. */
static bool find_entry(const struct unused *u, const char *way, const char *text, size_t *ret)
{
	const struct node *list = unused_node(u, way);
	size_t i = 0;

	if (!list || list->kind != NODE_LIST)
		return false;
	for (const struct node *c = list->first; c; c = c->next, i++)
		if (c->text && strcasecmp(c->text, text) == 0) {
			*ret = i;
			return true;
		}
	return false;
}

/* A part of a grant: one entry of a list in its map. */
static void add_part(struct unused *u, enum unused_kind kind, size_t whole, size_t index,
		     const char *list, const char *text, const char *what)
{
	auto_free char *way = way_to("%s/%s", u->grants[whole].way, list);
	size_t entry, number;

	if (!way || !find_entry(u, way, text, &entry))
		return;
	number = unused_add(u, kind, index, strdup(text), way_to("%s/%zu", way, entry), "%s: %s %s",
			    u->grants[whole].shown, what, text);
	if (number != UNUSED_WHOLE)
		u->grants[number].whole = whole;
}

/* -- reading */

static void add_ports(struct unused *u, size_t whole, const struct policy_rule *rule, size_t index)
{
	for (unsigned k = 0; rule->n_ports > 1 && k < rule->n_ports; k++) {
		char port[8];
		size_t before = u->count;

		snprintf(port, sizeof(port), "%u", rule->ports[k]);
		add_part(u, UNUSED_PORT, whole, index, "ports", port, "port");
		if (u->count > before)
			u->grants[before].port = rule->ports[k];
	}
}

static void add_rule(struct unused *u, size_t i)
{
	struct policy_rule rule;
	struct ward_err ignored = { 0 };
	unsigned methods = 0;
	size_t whole;

	if (policy_rule_read(u->policy.net_egress.items[i], &rule, &ignored) < 0)
		return;
	whole = unused_add(u, UNUSED_EGRESS, i, strdup(rule.host),
			   way_to("network/egress_allowlist/%zu", i),
			   rule.n_ports == 1 ? "network.egress_allowlist: %s:%u"
					     : "network.egress_allowlist: %s",
			   rule.host, rule.n_ports ? rule.ports[0] : 0);
	if (whole == UNUSED_WHOLE || !u->grants[whole].way)
		return;
	add_ports(u, whole, &rule, i);
	for (unsigned k = 0; k < rule.http_len; k += (unsigned)strlen(rule.http + k) + 1)
		methods += rule.http[k] == POLICY_HTTP_METHOD;
	for (unsigned k = 0; methods > 1 && k < rule.http_len;
	     k += (unsigned)strlen(rule.http + k) + 1)
		if (rule.http[k] == POLICY_HTTP_METHOD)
			add_part(u, UNUSED_METHOD, whole, i, "methods", rule.http + k + 1,
				 "method");
}

static void add_network(struct unused *u)
{
	const struct policy *p = &u->policy;

	if (p->net_mode == NET_MODE_OPEN)
		unused_add(u, UNUSED_NETWORK, 0, NULL, way_to("network/mode"),
			   "network.mode: open");
	for (size_t i = 0; i < p->net_egress.len; i++)
		add_rule(u, i);
	for (size_t i = 0; i < p->net_host_services.len; i++)
		unused_add(u, UNUSED_SERVICE, i, NULL, way_to("network/host_services/%zu", i),
			   "network.host_services: %s", p->net_host_services.items[i]);
	for (size_t i = 0; i < p->net_ingress.len; i++) {
		const char *entry = p->net_ingress.items[i], *colon = strchr(entry, ':');
		size_t n = unused_add(u, UNUSED_INGRESS, i, NULL, way_to("network/ingress/%zu", i),
				      "network.ingress: %s", entry);

		if (n != UNUSED_WHOLE)
			u->grants[n].port = (unsigned)strtoul(colon ? colon + 1 : entry, NULL, 10);
	}
}

/* Reads are on record at full, writes at writes. */
static void add_files(struct unused *u)
{
	const struct policy *p = &u->policy;

	for (size_t i = 0; i < p->fs_host_mounts.len; i++) {
		const struct policy_mount *m = &p->fs_host_mounts.items[i];
		auto_free char *real = m->at ? NULL : realpath(m->path, NULL);
		size_t whole = unused_add(u, UNUSED_MOUNT, i,
					  path_clean(m->at  ? m->at
						     : real ? real
							    : m->path),
					  way_to("filesystem/host_mounts/%zu", i),
					  "filesystem.host_mounts: %s", m->path),
		       writing;

		if (whole == UNUSED_WHOLE)
			continue;
		u->grants[whole].level = AUDIT_FULL;
		if (!m->writable || !u->grants[whole].way)
			continue;
		writing = unused_add(u, UNUSED_WRITING, i, NULL,
				     way_to("filesystem/host_mounts/%zu/mode", i),
				     "filesystem.host_mounts: %s: mode: read_write", m->path);
		if (writing == UNUSED_WHOLE)
			continue;
		u->grants[writing].level = AUDIT_WRITES;
		u->grants[writing].whole = whole;
	}
	if (p->fs_mode == FS_MODE_READ_WRITE) {
		size_t n =
			unused_add(u, UNUSED_CHANGES, 0, NULL, NULL, "filesystem.mode: read_write");
		const struct node *said = unused_node(u, "filesystem/mode");

		if (n != UNUSED_WHOLE) {
			u->grants[n].level = AUDIT_WRITES;
			u->grants[n].at = said ? (struct place){ said->key_line, said->key_column }
					       : (struct place){ 1, 1 };
		}
	}
}

static void add_grant(struct unused *u, size_t i)
{
	struct ward_err ignored = { 0 };
	auto_grant g = { 0 };
	size_t whole;

	if (policy_grant_read(u->policy.cred_grants.items[i], &g, &ignored) < 0)
		return;
	whole = unused_add(u, UNUSED_GRANT, i, strdup(g.name), way_to("credentials/grants/%zu", i),
			   "credentials.grants: %s", g.name);
	for (size_t k = 0;
	     whole != UNUSED_WHOLE && u->grants[whole].way && g.hosts.len > 1 && k < g.hosts.len;
	     k++)
		add_part(u, UNUSED_HOST, whole, i, "hosts", g.hosts.items[k], "host");
}

static void add_rest(struct unused *u)
{
	const struct policy *p = &u->policy;

	for (size_t i = 0; i < p->cred_grants.len; i++)
		add_grant(u, i);
	for (size_t i = 0; i < p->cred_ssh.len; i++)
		unused_add(u, UNUSED_SSH, i, NULL, way_to("credentials/ssh/%zu", i),
			   "credentials.ssh: %s", p->cred_ssh.items[i]);
	for (size_t i = 0; i < p->cred_gpg.len; i++)
		unused_add(u, UNUSED_GPG, i, NULL, way_to("credentials/gpg/%zu", i),
			   "credentials.gpg: %s", p->cred_gpg.items[i]);
	for (size_t i = 0; i < p->proc_commands.len; i++) {
		const char *pattern = p->proc_commands.items[i];
		size_t entry, n;

		if (strncmp(pattern, "allow ", 6) != 0)
			continue;
		pattern += 6;
		if (!find_entry(u, "process/commands/allow", pattern, &entry))
			continue;
		n = unused_add(u, UNUSED_COMMAND, i, strdup(pattern),
			       way_to("process/commands/allow/%zu", entry),
			       "process.commands: allow %s", pattern);
		if (n != UNUSED_WHOLE)
			u->grants[n].level = AUDIT_EXEC;
	}
	if (p->proc_children)
		unused_add(u, UNUSED_CHILDREN, 0, NULL, way_to("process/children"),
			   "process.children: %llu", (unsigned long long)p->proc_children);
	for (size_t i = 0; i < p->channels.len; i++) {
		struct ward_err ignored = { 0 };
		struct policy_channel c = { 0 };

		if (policy_channel_read(p->channels.items[i], &c, &ignored) == 0)
			unused_add(u, UNUSED_CHANNEL, i, strdup(c.name), way_to("channels/%zu", i),
				   "channels: %s", c.name);
		policy_channel_clear(&c);
	}
}

int unused_read_policy(struct unused *u, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	auto_free char *dir = strndup(u->path, (size_t)(strrchr(u->path, '/') - u->path) + 1);
	int r = policy_defaults(&u->policy, e);

	if (r == 0 && policy_read(&u->policy, u->file, (const uint8_t *)buf_text(&u->bytes),
				  u->bytes.len, POLICY_FILE, &errors) < 0)
		r = ward_fail(e, EINVAL, "%.300s has errors", u->file);
	if (errors.lines.len)
		ask_print_errors(&errors);
	strv_free(&errors.lines);
	if (r == 0)
		r = dir ? spec_resolve_mounts(&u->policy, dir, e)
			: ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		r = unused_compile(&u->policy, &u->rules, e);
	u->records = calloc(1, sizeof(*u->records));
	u->record_count = 1;
	if (r < 0 || !u->records)
		return r < 0 ? r : ward_fail(e, ENOMEM, "out of memory");
	add_network(u);
	add_files(u);
	add_rest(u);
	if (u->policy.profile || u->policy.extends.len)
		strv_add(&u->notes, "what this file builds on (profile, extends) is not looked at");
	if (u->policy.audit_journal == JOURNAL_NONE)
		strv_add(&u->notes, "audit.journal is none: runs under this file leave no record");
	return 0;
}

/* -- events */

static bool is_text(const struct ward_event *v, enum event_field f, const char *word)
{
	const struct event_value *value = event_get(v, f);

	return value && value->text && strlen(word) == value->len &&
	       memcmp(value->text, word, value->len) == 0;
}

static void see_way(struct unused *u, const struct ward_event *v)
{
	const struct event_value *port = event_get(v, FIELD_PORT);
	auto_free char *method = unused_text(v, FIELD_METHOD);
	int32_t service, rule;

	if (is_text(v, FIELD_HOW, "published")) {
		for (size_t i = 0; port && i < u->count; i++)
			if (u->grants[i].kind == UNUSED_INGRESS &&
			    u->grants[i].port == port->number)
				u->grants[i].uses++;
		return;
	}
	unused_count(u, UNUSED_NETWORK, 0);
	rule = unused_rule(u->rules, v, &service);
	if (service >= 0)
		unused_count(u, UNUSED_SERVICE, (size_t)service);
	if (rule < 0)
		return;
	for (size_t i = 0; i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];

		if (g->index != (size_t)rule)
			continue;
		g->uses += g->kind == UNUSED_EGRESS ||
			   (g->kind == UNUSED_PORT && port && g->port == port->number) ||
			   (g->kind == UNUSED_METHOD && method && strcasecmp(g->text, method) == 0);
	}
}

static void see_secret(struct unused *u, const struct ward_event *v)
{
	auto_free char *host = unused_text(v, FIELD_HOST);

	for (size_t i = 0; i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];

		if (g->kind == UNUSED_GRANT && is_text(v, FIELD_GRANT, g->text))
			g->uses++;
		else if (g->kind == UNUSED_HOST && host && g->whole != UNUSED_WHOLE &&
			 is_text(v, FIELD_GRANT, u->grants[g->whole].text) &&
			 grant_host_covers(g->text, host))
			g->uses++;
	}
}

static bool ssh_fits(const char *line, const char *host)
{
	struct ward_err ignored = { 0 };
	auto_policy_ssh s = { 0 };
	bool fits;

	if (policy_ssh_read(line, &s, &ignored) < 0)
		return true;
	fits = strcmp(host, "git") == 0 && s.sign;
	for (size_t i = 0; i < s.hosts.len; i++) {
		struct ssh_host h;

		fits |= !ssh_host_split(s.hosts.items[i], &h) || strstr(host, h.host);
	}
	return fits;
}

static void see_signature(struct unused *u, const struct ward_event *v)
{
	auto_free char *key = unused_text(v, FIELD_OBJECT), *host = unused_text(v, FIELD_HOST);

	for (size_t i = 0; key && i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];

		if (g->kind == UNUSED_SSH)
			g->uses += ssh_fits(u->policy.cred_ssh.items[g->index], host ? host : "");
		else if (g->kind == UNUSED_GPG)
			g->uses += strcasestr(key, u->policy.cred_gpg.items[g->index]) ||
				   strcasestr(u->policy.cred_gpg.items[g->index], key);
	}
}

/* A pattern's first word is the program, by name or path; what stands behind are its words. */
static bool command_fits(const char *pattern, const char *path, const struct ward_event *v)
{
	const struct event_value *argv = event_get(v, FIELD_ARGV);
	size_t n = strcspn(pattern, " ");
	const char *base = strrchr(path, '/'), *rest = pattern + n + (pattern[n] == ' ');
	struct command_said said = { .program = path };
	const char *name = memchr(pattern, '/', n) ? path : base ? base + 1 : path;

	if (strlen(name) != n || strncmp(name, pattern, n) != 0)
		return false;
	if (!*rest || !argv || event_get(v, FIELD_CUT))
		return true;
	said.words = argv->text;
	said.words_len = argv->len;
	for (size_t i = 0; i < argv->len; i++)
		said.word_count += argv->text[i] == '\0';
	return command_matches(rest, &said);
}

static void see_file(struct unused *u, const struct ward_event *v)
{
	auto_free char *path = unused_path(v), *raw = unused_text(v, FIELD_OBJECT);
	bool write = v->kind == EVENT_FILE_CHANGE;

	for (size_t i = 0; i < u->count; i++) {
		struct unused_grant *g = &u->grants[i];

		if (g->kind == UNUSED_COMMAND && v->kind == EVENT_EXEC && raw)
			g->uses += command_fits(g->text, raw, v);
		else if (g->kind == UNUSED_MOUNT && path && g->text)
			g->uses += path_is_beneath(path, g->text);
		else if (g->kind == UNUSED_WRITING && write && path && u->grants[g->whole].text)
			g->uses += path_is_beneath(path, u->grants[g->whole].text);
		else if (g->kind == UNUSED_CHANGES && write)
			g->uses += !path || !u->workspace || path_is_beneath(path, u->workspace);
	}
}

void unused_see_policy(struct unused *u, const struct ward_event *v)
{
	auto_free char *object = NULL;

	if (v->action == ACTION_DENY || v->action == ACTION_ASK)
		return;
	switch (v->kind) {
	case EVENT_CONNECT:
	case EVENT_HTTP:
		see_way(u, v);
		break;
	case EVENT_CREDENTIAL_USE:
		see_secret(u, v);
		break;
	case EVENT_CREDENTIAL_SIGN:
		see_signature(u, v);
		break;
	case EVENT_FILE_READ:
	case EVENT_FILE_CHANGE:
	case EVENT_EXEC:
		see_file(u, v);
		break;
	case EVENT_CHILD_START:
		unused_count(u, UNUSED_CHILDREN, 0);
		break;
	case EVENT_CHANNEL:
		object = unused_text(v, FIELD_OBJECT);
		for (size_t i = 0; object && i < u->count; i++)
			u->grants[i].uses += u->grants[i].kind == UNUSED_CHANNEL &&
					     u->grants[i].text &&
					     strcmp(u->grants[i].text, object) == 0;
		break;
	default:
		break;
	}
}
