/*
 * ward check of tools. In: a tools.yaml, the policies that its agents name, a git revision to
 * compare with. Out: findings of all rules in one report, exit status 1 if one is an error, 125 if
 * something could not be looked at. Nothing of what it reads runs.
 */
#include "cli/tool/check_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/policy.h"
#include "policy/suffix.h"

/* "FILE:LINE:COLUMN: message" of a reader. */
static void add_line(struct check_findings *f, const char *line)
{
	struct place at = { 1, 1 };
	const char *p = strstr(line, ".yaml:");
	int used = 0;

	p = p ? p + 5 : strchr(line, ':');
	if (p && sscanf(p, ":%u:%u: %n", &at.line, &at.column, &used) == 2 && used)
		line = p + used;
	check_add(f, CHECK_INVALID, at, NULL, "%s", line);
}

static void add_lines(struct check_findings *f, const struct strv *lines)
{
	for (size_t i = 0; i < lines->len; i++)
		add_line(f, lines->items[i]);
}

static int scan_file(const char *shown, const struct buf *bytes, struct check_findings *f,
		     struct ward_err *e)
{
	auto_strv rules = { 0 };
	const char *before = f->file;
	int r = output_scan(bytes, &rules, e);

	f->file = shown;
	for (size_t i = 0; r == 0 && i < rules.len; i++) {
		size_t n = strcspn(rules.items[i], ":");

		check_add(f, CHECK_SECRET,
			  (struct place){
				  (unsigned)strtoul(rules.items[i] + n + (rules.items[i][n] == ':'),
						    NULL, 10),
				  1 },
			  NULL, "the file holds a secret: %.*s", (int)n, rules.items[i]);
	}
	f->file = before;
	return r;
}

/* One agent's policy (NULL: that of tools which nobody holds). */
static int check_one_policy(const struct tools_source *s, const struct tool_agent *agent,
			    struct check_findings *f, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	auto_free char *path = NULL;
	auto_buf bytes = { 0 };
	struct policy policy;
	int r = tools_load_policy(s, agent, false, &policy, &path, &errors, e);

	add_lines(f, &errors.lines);
	if (r < 0 && !errors.lines.len)
		check_add(f, CHECK_INVALID,
			  tools_place(agent ? &agent->head : &s->t.file.head, "policy"), NULL,
			  "%s: %s", e->what, e->why);
	strv_free(&errors.lines);
	if (r < 0)
		return 0;
	check_policy(&s->t, agent, r > 0 ? &policy : NULL, path ? path : "", s->workspace, s->home,
		     f);
	policy_clear(&policy);
	if (path && io_read_file(AT_FDCWD, path, TOOLS_BYTES_MAX, &bytes) == 0)
		return scan_file(path, &bytes, f, e);
	return 0;
}

static int check_policies(const struct tools_source *s, struct check_findings *f,
			  struct ward_err *e)
{
	int r = check_one_policy(s, NULL, f, e);

	for (size_t i = 0; r == 0 && i < s->t.file.agents.len; i++)
		r = check_one_policy(s, tools_at(agent, &s->t.file.agents, i), f, e);
	return r;
}

/* A policy file by itself, or the defaults. 1: it can be compared; 0: it has errors. */
static int read_alone(const char *name, const struct buf *bytes, struct policy *ret,
		      struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	int r = policy_defaults(ret, e);

	if (r == 0)
		r = policy_read(ret, name, (const uint8_t *)buf_text(bytes), bytes->len,
				POLICY_FILE, &errors) == 0;
	strv_free(&errors.lines);
	return r;
}

/* Whether what a policy builds on is another. */
static bool builds_on_others(const struct policy *old, const struct policy *new)
{
	static const enum policy_field fields[] = { POLICY_F_profile, POLICY_F_extends };
	bool differs = false;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		auto_free char *a = policy_text(old, fields[i]), *b = policy_text(new, fields[i]);

		differs |= !a || !b || strcmp(a, b) != 0;
	}
	return differs;
}

/* What a policy allows more than in the base; one that is new only takes away. */
static int compare_policy(const struct tools_source *s, const char *name, const char *revision,
			  struct strv *grown, struct ward_err *e)
{
	auto_free char *path = path_join(s->dir, name);
	struct policy old = { 0 }, new = { 0 };
	auto_buf before = { 0 }, now = { 0 };
	auto_strv wider = { 0 };
	int r = *name == '/' ? 0 : check_read_base(s, name, revision, &before, e), sound = 0;

	if (r <= 0 || !path)
		return r < 0 ? r : path ? 0 : ward_fail(e, ENOMEM, "out of memory");
	r = io_read_file(AT_FDCWD, path, TOOLS_BYTES_MAX, &now);
	if (r == -ENOENT)
		strv_addf(grown, "%s removed", name);
	if (r < 0)
		return 0; /* what cannot be read is a finding already */
	sound = read_alone(name, &before, &old, e);
	if (sound >= 0)
		r = read_alone(name, &now, &new, e);
	if (sound >= 0 && r > 0) {
		if (policy_compare(&old, &new, &wider) < 0)
			sound = ward_fail(e, ENOMEM, "out of memory");
		if (sound == 0)
			strv_addf(grown, "%s: the base cannot be read", name);
		else if (sound > 0 && builds_on_others(&old, &new))
			strv_addf(grown, "%s: extends or profile changed", name);
	}
	for (size_t i = 0; sound > 0 && i < wider.len; i++)
		strv_addf(grown, "%s: %s", name, wider.items[i]);
	policy_clear(&old);
	policy_clear(&new);
	return sound < 0 || r < 0 ? -e->code : 0;
}

/* Each policy that scopes may not exceed, once. */
static int compare_policies(const struct tools_source *s, const char *revision, struct strv *grown,
			    struct ward_err *e)
{
	auto_strv names = { 0 };
	int r = 0;

	strv_add(&names, s->t.file.policy ? s->t.file.policy : "ward.yaml");
	for (size_t i = 0; i < s->t.file.agents.len; i++) {
		const char *name = tools_at(agent, &s->t.file.agents, i)->policy;

		if (name && !strv_has(&names, name))
			strv_add(&names, name);
	}
	for (size_t i = 0; r == 0 && i < names.len; i++)
		r = compare_policy(s, names.items[i], revision, grown, e);
	return r == 0 && (names.failed || grown->failed) ? ward_fail(e, ENOMEM, "out of memory")
							 : r;
}

static int check_base(const struct tools_source *s, const char *revision, struct check_findings *f,
		      struct ward_err *e)
{
	static const char empty[] = "version: 1\ntools: {}\n";
	struct policy_errors errors = { 0 };
	auto_strv policies = { 0 };
	auto_buf bytes = { 0 };
	struct tools base;
	int r = check_read_base(s, strrchr(s->path, '/') + 1, revision, &bytes, e);

	if (r < 0)
		return r;
	if (r == 0)
		buf_puts(&bytes, empty); /* everything is new */
	r = tools_read(&base, s->shown, (const uint8_t *)buf_text(&bytes), bytes.len, &errors);
	if (r < 0) {
		/* a base that cannot be read has nothing to compare with: all counts as new */
		tools_free(&base);
		strv_free(&errors.lines);
		r = tools_read(&base, s->shown, (const uint8_t *)empty, strlen(empty), &errors);
	}
	if (r < 0)
		r = ward_fail(e, -r, "cannot read the base");
	if (r == 0)
		r = compare_policies(s, revision, &policies, e);
	if (r == 0)
		check_growth(&base, &s->t, s->workspace, s->home, &policies, f);
	tools_free(&base);
	strv_free(&errors.lines);
	return r;
}

static int look(const struct options *o, struct tools_source *s, struct check_findings *f,
		struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	auto_buf suffixes = { 0 };
	int r = tools_load(o->word_count ? o->words[0] : TOOLS_FILE_NAME, s, &errors, e);

	f->file = s->shown;
	add_lines(f, &errors.lines);
	if (errors.lines.len) {
		strv_free(&errors.lines);
		return scan_file(s->shown, &s->bytes, f, e);
	}
	if (r < 0)
		return r;
	if (io_read_file(AT_FDCWD, SUFFIX_LIST, SUFFIX_LIST_MAX, &suffixes) < 0)
		suffixes.len = 0;
	check_each_tool(&s->t, buf_text(&suffixes), suffixes.len, f);
	check_trifecta(&s->t, s->workspace, s->home, f);
	r = scan_file(s->shown, &s->bytes, f, e);
	if (r == 0)
		r = check_policies(s, f, e);
	if (r == 0 && o->check_base)
		r = check_base(s, o->check_base, f, e);
	return r == 0 && f->failed ? ward_fail(e, ENOMEM, "out of memory") : r;
}

static int report(const struct options *o, const struct check_findings *f, struct ward_err *e)
{
	const char *format = o->format ? o->format : o->json ? "json" : "text";
	auto_buf out = { 0 };

	if (strcmp(format, "text") == 0)
		check_report_text(f, &out);
	else if (strcmp(format, "json") == 0)
		check_report_json(f, &out);
	else if (strcmp(format, "sarif") == 0)
		check_report_sarif(f, &out);
	else if (strcmp(format, "junit") == 0)
		check_report_junit(f, f->file, &out);
	else
		return ward_fail(e, EINVAL, "--format %.50s: expected text, json, sarif or junit",
				 format);
	return say_out(&out, check_errors(f) ? EXIT_FINDINGS : EXIT_FINE);
}

int tool_check(struct options *o)
{
	struct check_findings f = { 0 };
	struct ward_err e = { 0 };
	auto_source s = { 0 };
	int r;

	if (o->word_count > 1) {
		ward_fail(&e, EINVAL, "unexpected argument: %.200s", o->words[1]);
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (o->check_score)
		return check_score(o);
	r = look(o, &s, &f, &e);
	if (r == 0)
		r = report(o, &f, &e);
	check_free(&f);
	return r < 0 ? say_error(&e, o->json, e.code == EINVAL ? EXIT_USAGE : EXIT_REFUSED) : r;
}
