/*
 * ward check: validates a policy file. In: a path. Out: every error with its place, and notes: what
 * this build refuses at start, what widens the defaults and so needs ward trust when it lies in a
 * workspace, which egress rules let more out than they seem to. Reads the file, what it extends
 * and, for wildcards, the system's public suffix list; it touches nothing else; paths that the
 * policy names are not looked at.
 */
#include "cli/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "plan/plan_net.h"
#include "plan/plan_tape.h"
#include "plan/spec.h"
#include "plan/spec_origin.h"
#include "policy/policy_grant.h"
#include "policy/policy_rule.h"
#include "policy/policy_watch.h"
#include "policy/suffix.h"
#include "rules/waf.h"

struct findings {
	const char *file;
	struct policy_errors errors;
	struct strv refused;  /* values that this build does not have yet */
	struct strv wider;    /* fields that allow more than the defaults */
	struct strv warnings; /* rules that let more out than they seem to */
	struct strv files;    /* that the policy was read from */
};

static void findings_clear(struct findings *f)
{
	strv_free(&f->errors.lines);
	strv_free(&f->refused);
	strv_free(&f->wider);
	strv_free(&f->warnings);
	strv_free(&f->files);
}

/* What a rule that counts or looks does not do here. */
static void warn_about_inspection(const struct policy *p, const struct policy_rule *rule, size_t i,
				  struct findings *f)
{
	if (rule->llm && p->net_unpriced == UNPRICED_FREE &&
	    (rule->spend != POLICY_NONE || p->net_spend != POLICY_NONE))
		strv_addf(&f->warnings,
			  "network.egress_allowlist[%zu]: with network.unpriced: free, models "
			  "without a price and other requests to %s count as free, regardless of "
			  "spend_limit",
			  i, rule->host);
	if (rule->waf == POLICY_WAF_DETECT)
		strv_addf(&f->warnings,
			  "network.egress_allowlist[%zu]: waf: detect reports attacks but stops "
			  "none; use block to stop them",
			  i);
	if (rule->waf != POLICY_WAF_OFF && access(WAF_RULES, R_OK) < 0)
		strv_addf(&f->warnings,
			  "network.egress_allowlist[%zu]: this machine refuses waf at start: "
			  "install the package modsecurity-crs",
			  i);
}

static bool is_looked_into(const struct policy_rule *rule)
{
	return rule->inspect || rule->mode == POLICY_RULE_INSPECT;
}

static bool shares_port(const struct policy_rule *a, const struct policy_rule *b)
{
	bool some = !a->n_ports || !b->n_ports;

	for (unsigned i = 0; i < a->n_ports; i++)
		for (unsigned k = 0; k < b->n_ports; k++)
			some |= a->ports[i] == b->ports[k];
	return some;
}

#define ORDER_MAX 1000 /* rules that are compared with those before them */

/* The first rule for a host says how it is spoken to: what a later one says about requests is never
 * asked if that one does not look. */
static void warn_about_order(const struct policy *p, const struct policy_rule *rule, size_t i,
			     struct findings *f)
{
	for (size_t k = 0; k < i && i < ORDER_MAX && is_looked_into(rule); k++) {
		struct policy_rule before;
		struct ward_err e = { 0 };

		if (policy_rule_read(p->net_egress.items[k], &before, &e) < 0 ||
		    strcmp(before.host, rule->host) != 0 || !shares_port(&before, rule))
			continue;
		if (!is_looked_into(&before))
			strv_addf(&f->warnings,
				  "network.egress_allowlist[%zu]: its conditions on requests to %s "
				  "have no effect: [%zu] comes first and passes everything "
				  "uninspected; remove that rule",
				  i, rule->host, k);
		return;
	}
}

/* Wildcards under which anyone can register a name, and blocks of every address. */
static void warn_about_rules(const struct policy *p, struct findings *f)
{
	auto_buf list = { 0 };

	for (size_t i = 0; i < p->net_egress.len; i++) {
		struct policy_rule rule;
		struct ward_err e = { 0 };
		const char *at;

		if (policy_rule_read(p->net_egress.items[i], &rule, &e) < 0)
			continue;
		if ((p->net_record || p->net_replay) && rule.mode != POLICY_RULE_INSPECT &&
		    !rule.inspect)
			strv_addf(&f->warnings,
				  "network.egress_allowlist[%zu]: requests to %s are not "
				  "inspected, so they are not recorded, and a replay refuses them",
				  i, rule.host);
		warn_about_inspection(p, &rule, i, f);
		warn_about_order(p, &rule, i, f);
		at = strchr(rule.host, '/');
		if (strcmp(rule.host, "*") == 0)
			strv_addf(&f->warnings,
				  "network.egress_allowlist[%zu]: * matches every public name", i);
		else if (at && strcmp(at, "/0") == 0)
			strv_addf(&f->warnings,
				  "network.egress_allowlist[%zu]: %s matches every address", i,
				  rule.host);
		if (strncmp(rule.host, "*.", 2) != 0)
			continue;
		if (!list.len && io_read_file(AT_FDCWD, SUFFIX_LIST, SUFFIX_LIST_MAX, &list) < 0)
			/* a system without the list: only suffixes of one label are known to be
			 * public */
			list.len = 0;
		if (suffix_is_public(buf_text(&list), list.len, rule.host + 2))
			strv_addf(&f->warnings,
				  "network.egress_allowlist[%zu]: anyone can register a name under "
				  "%s",
				  i, rule.host + 2);
	}
}

/* A refusal as an error of the file, at the field that it begins with. */
static void add_refusal(const struct policy *p, const struct ward_err *why, struct findings *f)
{
	auto_buf text = { 0 };
	size_t best = 0, at = POLICY_FIELDS;

	buf_printf(&text, "%s%s%s%s%s", why->what, *why->what ? ": " : "", why->why,
		   *why->remedy ? "; " : "", why->remedy);
	for (size_t i = 0; i < POLICY_FIELDS; i++) {
		const char *path = policy_row((enum policy_field)i)->path;
		size_t n = strlen(path);

		if (n > best && strncmp(buf_text(&text), path, n) == 0) {
			best = n;
			at = i;
		}
	}
	if (at < POLICY_FIELDS && p->origin[at].line)
		strv_addf(&f->errors.lines, "%s:%u:%u: %s",
			  p->origin[at].file && p->origin[at].file <= f->files.len
				  ? f->files.items[p->origin[at].file - 1]
				  : f->file,
			  p->origin[at].line, p->origin[at].column, buf_text(&text));
	else
		strv_addf(&f->errors.lines, "%s: %s", f->file, buf_text(&text));
}

/* What ward run refuses of the network whatever the machine. A file that says nothing about its
 * mode may be meant for use with a profile. */
static void look_at_network(const struct policy *p, struct findings *f)
{
	bool silent = p->net_mode == NET_MODE_NONE &&
		      p->origin[POLICY_F_net_mode].source == POLICY_DEFAULT;
	auto_free struct plan_net *n = calloc(1, sizeof(*n));
	struct ward_err why = { 0 };

	if (p->net_mode == NET_MODE_NONE && p->net_egress.len)
		strv_addf(&f->warnings, "network.mode is none: egress_allowlist has no effect; to "
					"use it: network.mode: restricted");
	if (!n)
		f->errors.lines.failed = true;
	else if (plan_net_fill(p, n, &why) < 0 || ((!silent || (p->net_record && p->net_replay)) &&
						   plan_tape_check(p, n->rules, &why) < 0))
		add_refusal(p, &why, f);
	if (n)
		plan_net_clear(n);
}

/* Grants that do not go together, in force or not. */
static void look_at_grants(const struct policy *p, struct findings *f)
{
	struct policy_grant *grants = NULL;
	struct ward_err why = { 0 };
	size_t count = 0;

	if (grants_read(p, &grants, &count, &why) < 0 || grants_check(grants, count, &why) < 0)
		add_refusal(p, &why, f);
	grants_free(grants, count);
}

/* Watch rules that do not go together. */
static void look_at_watch(const struct policy *p, struct findings *f)
{
	struct ward_err why = { 0 };

	if (policy_watch_check(p, &why) < 0)
		add_refusal(p, &why, f);
}

/* Where several files make the policy: which of them widens. */
static void name_places(const struct policy *p, struct findings *f)
{
	struct strv named = { 0 };

	for (size_t i = 0; f->files.len > 1 && i < f->wider.len; i++) {
		const char *line = f->wider.items[i];
		auto_buf text = { 0 };

		buf_puts(&text, line);
		for (enum policy_field k = 0; k < POLICY_FIELDS; k++) {
			size_t n = strlen(policy_row(k)->path);

			if (strncmp(line, policy_row(k)->path, n) != 0 || line[n] != ':')
				continue;
			buf_puts(&text, " (");
			spec_put_origin(p, &f->files, k, &text);
			buf_puts(&text, ")");
		}
		strv_add(&named, buf_text(&text));
	}
	if (!named.len)
		return;
	strv_free(&f->wider);
	f->wider = named;
}

static int look(struct findings *f, struct ward_err *e)
{
	struct policy base = { 0 }, p = { 0 };
	struct sysinfo info;
	uint64_t memory_bytes = sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
	int r = policy_defaults(&base, e);

	if (r == 0)
		r = policy_defaults(&p, e);
	if (r == 0)
		r = spec_read_files(f->file, &p, &f->files, &f->errors, e);
	if (r == 0) {
		warn_about_rules(&p, f);
		look_at_network(&p, f);
		look_at_grants(&p, f);
		look_at_watch(&p, f);
		r = policy_unsupported(&p, &f->refused);
		if (r >= 0)
			r = policy_compare_on(&base, &p, memory_bytes, &f->wider);
		if (r < 0)
			r = ward_fail(e, -r, "cannot compare with the defaults");
		name_places(&p, f);
	}
	policy_clear(&p);
	policy_clear(&base);
	return f->errors.lines.len ? 0 : r < 0 ? r : 0;
}

/* ":NUMBER" at *at; moves behind it. */
static bool read_place(const char **at, uint64_t *ret_number)
{
	char *end;

	if ((*at)[0] != ':' || (*at)[1] < '0' || (*at)[1] > '9')
		return false;
	*ret_number = strtoul(*at + 1, &end, 10);
	*at = end;
	return true;
}

/* "FILE:LINE:COLUMN: message" -> an object; a line of another form is all message. */
static void json_error(struct json *j, const char *file, const char *line)
{
	size_t n = strlen(file);
	const char *at = strncmp(line, file, n) == 0 ? line + n : "";
	uint64_t at_line, at_column;

	json_begin_object(j, NULL);
	json_string(j, "file", file);
	if (read_place(&at, &at_line) && read_place(&at, &at_column) && strncmp(at, ": ", 2) == 0) {
		json_uint(j, "line", at_line);
		json_uint(j, "column", at_column);
		line = at + 2;
	}
	json_string(j, "message", line);
	json_end_object(j);
}

static void json_list(struct json *j, const char *key, const struct strv *list)
{
	json_begin_array(j, key);
	for (size_t i = 0; i < list->len; i++)
		json_string(j, NULL, list->items[i]);
	json_end_array(j);
}

static void print_json(const struct findings *f, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "file", f->file);
	json_bool(&j, "valid", f->errors.lines.len == 0);
	json_begin_array(&j, "errors");
	for (size_t i = 0; i < f->errors.lines.len; i++)
		json_error(&j, f->file, f->errors.lines.items[i]);
	json_end_array(&j);
	json_list(&j, "refused_at_start", &f->refused);
	json_list(&j, "widens", &f->wider);
	json_list(&j, "warnings", &f->warnings);
	json_end_object(&j);
	buf_puts(out, "\n");
}

static void print_lines(const char *before, const struct strv *list, const char *after,
			struct buf *out)
{
	for (size_t i = 0; i < list->len; i++) {
		buf_puts(out, before);
		text_escape(out, list->items[i]);
		buf_printf(out, "%s\n", after);
	}
}

static void print_text(const struct findings *f, struct buf *out)
{
	size_t n = f->errors.lines.len;

	print_lines("", &f->errors.lines, "", out);
	print_lines("warning: ", &f->warnings, "", out);
	print_lines("note: refused at start: ", &f->refused, "", out);
	print_lines("note: widens the defaults: ", &f->wider, "", out);
	if (f->wider.len)
		buf_puts(out, "note: in a workspace this file needs ward trust; with -p FILE it "
			      "does not\n");
	text_escape(out, f->file);
	if (n)
		buf_printf(out, ": %zu error%s\n", n, n == 1 ? "" : "s");
	else
		buf_puts(out, ": valid\n");
}

int verb_check(struct options *o)
{
	struct findings f = { .file = o->word_count ? o->words[0] : NULL };
	auto_free char *found = NULL;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	int code;

	/* what is about tools has a program of its own, which main() starts */
	if (o->tools_check || o->check_score || o->check_base) {
		ward_fail(&e, ENOENT,
			  "checking tools needs ward-tool, which is neither next to ward "
			  "nor in ../libexec/ward");
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	/* so has what reads journals */
	if (o->replay || o->check_unused) {
		ward_fail(&e, ENOENT,
			  "%s needs ward-explain, which is neither next to ward nor in "
			  "../libexec/ward",
			  o->replay ? "--replay" : "--unused");
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	if (o->word_count > 1) {
		ward_fail(&e, EINVAL, "unexpected argument: %.200s", o->words[1]);
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (!f.file && ask_policy_file(&found, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	f.file = f.file ? f.file : found;
	if (look(&f, &e) < 0) {
		code = say_error(&e, o->json, EXIT_REFUSED);
	} else {
		if (o->json)
			print_json(&f, &out);
		else
			print_text(&f, &out);
		code = say_out(&out, f.errors.lines.len ? EXIT_FINDINGS : EXIT_FINE);
	}
	findings_clear(&f);
	return code;
}
