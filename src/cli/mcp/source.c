/*
 * Which server, and under which policy. In: the options of ward mcp wrap, trust and ls. Out: a
 * command, and a policy that says every field: what ward run would make of the same options, but
 * that the workspace is read-only where nothing says otherwise. Without a command it is what was
 * accepted under the name that is given, as it was. Runs with the user's rights.
 */
#include "cli/mcp/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/ask.h"
#include "plan/spec.h"
#include "policy/policy_rule.h"

void source_free(struct source *s)
{
	strv_free(&s->command);
	buf_free(&s->document);
	free(s->cwd);
	pins_free(&s->pins);
	*s = (struct source){ 0 };
}

static struct walls walls_of(const struct policy *p)
{
	struct walls w = { .writes = p->fs_mode == FS_MODE_READ_WRITE || p->fs_caches.len ||
				     strcmp(p->fs_home, "private") != 0,
			   .world = p->net_mode != NET_MODE_NONE || p->net_host_services.len ||
				    p->cred_ssh.len };

	for (size_t i = 0; i < p->fs_host_mounts.len; i++)
		w.writes |= p->fs_host_mounts.items[i].writable;
	return w;
}

int source_walls(const char *document, struct walls *ret, struct policy *ret_policy,
		 struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	int r = policy_defaults(ret_policy, e);

	if (r == 0)
		r = policy_read(ret_policy, "policy", (const uint8_t *)document, strlen(document),
				POLICY_FILE, &errors);
	if (r == -EINVAL)
		ward_fail(e, EINVAL, "the policy that was accepted cannot be read: %.300s",
			  errors.lines.len ? errors.lines.items[0] : "");
	strv_free(&errors.lines);
	if (r == 0 && ret)
		*ret = walls_of(ret_policy);
	return r;
}

/* -- walls, for people */

static void put_host(const char *rule, struct buf *out)
{
	struct policy_rule parsed;
	struct ward_err ignored;

	if (policy_rule_read(rule, &parsed, &ignored) < 0) {
		text_escape(out, rule);
		return;
	}
	text_escape(out, parsed.host);
	for (unsigned i = 0; i < parsed.n_ports; i++)
		buf_printf(out, "%s%u", i ? "," : ":", parsed.ports[i]);
}

static void put_hosts(const struct policy *p, struct buf *out)
{
	bool some = false;

	if (p->net_mode == NET_MODE_OPEN) {
		buf_puts(out, "every public address");
		some = true;
	}
	for (size_t i = 0; p->net_mode == NET_MODE_RESTRICTED && i < p->net_egress.len; i++) {
		buf_puts(out, some ? ", " : "");
		put_host(p->net_egress.items[i], out);
		some = true;
	}
	for (size_t i = 0; i < p->net_host_services.len; i++) {
		buf_puts(out, some ? ", " : "");
		text_escape(out, p->net_host_services.items[i]);
		some = true;
	}
	for (size_t i = 0; i < p->cred_ssh.len; i++) {
		buf_puts(out, some ? ", ssh " : "ssh ");
		text_escape(out, p->cred_ssh.items[i]);
		some = true;
	}
	buf_puts(out, some ? "\n" : "nothing\n");
}

static void put_paths(const struct policy *p, bool writable, struct buf *out)
{
	bool some = false;

	if ((p->fs_mode == FS_MODE_READ_WRITE) == writable) {
		text_escape(out, p->fs_workspace);
		buf_puts(out, p->fs_mode == FS_MODE_REVIEW ? " (changes wait for ward apply)" : "");
		some = true;
	}
	for (size_t i = 0; i < p->fs_host_mounts.len; i++) {
		if (p->fs_host_mounts.items[i].writable != writable)
			continue;
		buf_puts(out, some ? ", " : "");
		text_escape(out, p->fs_host_mounts.items[i].path);
		some = true;
	}
	buf_puts(out, some ? "\n" : "nothing\n");
}

void source_put_walls(const struct policy *p, const char *indent, struct buf *out)
{
	buf_printf(out, "%sreads   ", indent);
	put_paths(p, false, out);
	buf_printf(out, "%swrites  ", indent);
	put_paths(p, true, out);
	buf_printf(out, "%sreaches ", indent);
	put_hosts(p, out);
}

/* -- from options */

/* A server without an entry changes nothing. */
static int add_default(struct options *o, struct ward_err *e)
{
	struct spec_option *all = calloc(o->field_count + 1, sizeof(*all));

	if (!all)
		return ward_fail(e, ENOMEM, "out of memory");
	all[0] = (struct spec_option){ .field = "filesystem.mode",
				       .value = "read_only",
				       .option = "ward mcp",
				       .below = true };
	if (o->field_count)
		memcpy(all + 1, o->fields, o->field_count * sizeof(*all));
	free(o->fields);
	o->fields = all;
	o->field_cap = ++o->field_count;
	return 0;
}

static int read_options(struct options *o, struct source *s, struct ward_err *e)
{
	char **words = o->words;
	struct spec spec;
	int r = add_default(o, e);

	if (r < 0)
		return r;
	o->words = s->command.items;
	r = ask_spec(o, &spec, e);
	o->words = words;
	if (r < 0)
		return r;
	free(spec.policy.fs_workspace);
	spec.policy.fs_workspace = strdup(spec.workspace);
	s->cwd = strdup(spec.cwd);
	if (spec.policy.fs_workspace && s->cwd) {
		policy_document(&spec.policy, NULL, &s->document);
		s->walls = walls_of(&spec.policy);
		s->ask_ms = spec.policy.appr_timeout;
	}
	if (!spec.policy.fs_workspace || !s->cwd || s->document.failed)
		r = ward_fail(e, ENOMEM, "out of memory");
	spec_clear(&spec);
	return r;
}

/* As it was accepted. */
static int read_record(const struct options *o, struct source *s, struct ward_err *e)
{
	struct policy policy = { 0 };
	int r;

	if (o->field_count || o->policy_file || o->profile || o->workspace || o->cwd) {
		ward_fail(e, EINVAL, "options of the sandbox need the server's command");
		return ward_remedy(e, "ward mcp WORD OPTION... -- SERVER...");
	}
	for (size_t i = 0; i < s->pins.command.len; i++)
		strv_add(&s->command, s->pins.command.items[i]);
	buf_puts(&s->document, s->pins.policy);
	s->cwd = strdup(s->pins.cwd);
	if (s->command.failed || s->document.failed || !s->cwd)
		return ward_fail(e, ENOMEM, "out of memory");
	r = source_walls(s->pins.policy, &s->walls, &policy, e);
	s->ask_ms = policy.appr_timeout;
	policy_clear(&policy);
	return r;
}

int source_read(struct options *o, char *const *words, struct source *ret, struct ward_err *e)
{
	struct ward_err none = { 0 };
	int r;

	*ret = (struct source){ 0 };
	if (o->name && !pins_is_name(o->name))
		return ward_fail(e, EINVAL, "a name has letters, digits, _ and -, at most %d",
				 PINS_NAME_MAX);
	if (!o->name && !words[0]) {
		ward_fail(e, EINVAL, "the server's command is missing");
		return ward_remedy(e, "-- SERVER..., or --name NAME of one that was accepted");
	}
	if (o->name)
		snprintf(ret->name, sizeof(ret->name), "%s", o->name);
	else
		pins_default_name(words, ret->name);
	r = pins_load(ret->name, &ret->pins, &none);
	ret->known = r == 0;
	if (r < 0 && (r != -ENOENT || !words[0])) {
		*e = none;
		return r == -ENOENT
			       ? ward_remedy(e, "ward mcp trust --name %s OPTION... -- SERVER...",
					     ret->name)
			       : r;
	}
	for (size_t i = 0; words[i]; i++)
		strv_add(&ret->command, words[i]);
	if (ret->command.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return words[0] ? read_options(o, ret, e) : read_record(o, ret, e);
}
