/*
 * ward check --score: a policy and the tools beside it, held against published lists, item by item:
 * met, not met, or outside of what a policy can say; and the line that would meet it. In: a
 * ward.yaml or a tools.yaml. Out: a table; the exit status is 1 where an item is not met. The items
 * are rows of tables/score.def, each with one test of this file. Nothing of what it reads runs.
 */
#include "cli/tool/check_parts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/path.h"
#include "cli/ask.h"
#include "plan/spec.h"
#include "policy/policy_rule.h"

struct subject {
	struct policy policy;
	bool has_policy;
	struct tools_source tools;
	bool has_tools;
};

static bool is_limited(uint64_t value)
{
	return value != POLICY_NONE;
}

static bool test_always(const struct subject *s)
{
	(void)s;
	return true;
}

static bool test_file(const struct subject *s)
{
	return s->has_policy;
}

static bool test_ephemeral(const struct subject *s)
{
	return strcmp(s->policy.fs_home, "private") == 0 && !s->policy.fs_caches.len;
}

static bool test_mounts(const struct subject *s)
{
	static const char *const broad[] = { "/", "/home", "/root", "/etc", "/var", "/run", "~" };

	for (size_t i = 0; i < s->policy.fs_host_mounts.len; i++)
		for (size_t k = 0; k < ARRAY_LEN(broad); k++)
			if (s->policy.fs_host_mounts.items[i].writable ||
			    strcmp(s->policy.fs_host_mounts.items[i].path, broad[k]) == 0)
				return false;
	return true;
}

static bool test_privilege(const struct subject *s)
{
	return !s->policy.proc_nesting && test_mounts(s);
}

static bool test_quotas(const struct subject *s)
{
	const struct policy *p = &s->policy;

	return is_limited(p->res_cpu) && is_limited(p->res_memory) && is_limited(p->res_pids) &&
	       is_limited(p->res_timeout);
}

static bool test_review(const struct subject *s)
{
	return s->policy.fs_mode != FS_MODE_READ_WRITE;
}

static bool test_journal(const struct subject *s)
{
	return s->policy.audit_journal == JOURNAL_DEFAULT &&
	       s->policy.audit_on_full == ON_FULL_STOP;
}

/* Variables whose name says that they hold one. */
static bool test_credentials(const struct subject *s)
{
	static const char *const words[] = { "TOKEN", "SECRET", "PASSWORD", "API_KEY", "APIKEY" };

	for (size_t i = 0; i < s->policy.proc_env.len; i++)
		for (size_t k = 0; k < ARRAY_LEN(words); k++)
			if (strstr(s->policy.proc_env.items[i], words[k]))
				return false;
	return true;
}

static bool test_on_timeout(const struct subject *s)
{
	return s->policy.appr_on_timeout == 0;
}

static bool test_syscalls(const struct subject *s)
{
	return s->policy.proc_syscalls != SYSCALLS_BUILD && !s->policy.proc_nesting;
}

static bool test_network(const struct subject *s)
{
	if (s->policy.net_mode == NET_MODE_OPEN)
		return false;
	for (size_t i = 0; i < s->policy.net_egress.len; i++) {
		struct policy_rule rule;
		struct ward_err ignored;

		if (policy_rule_read(s->policy.net_egress.items[i], &rule, &ignored) < 0 ||
		    rule.private || strcmp(rule.host, "*") == 0)
			return false;
	}
	return true;
}

static bool test_tools(const struct subject *s)
{
	struct check_findings f = { .file = "" };
	bool clean;

	if (!s->has_tools)
		return false;
	check_each_tool(&s->tools.t, "", 0, &f);
	check_policy(&s->tools.t, NULL, s->has_policy ? &s->policy : NULL, "", s->tools.workspace,
		     s->tools.home, &f);
	clean = check_errors(&f) == 0;
	check_free(&f);
	return clean;
}

static bool test_trifecta(const struct subject *s)
{
	struct check_findings f = { .file = "" };
	bool clean;

	if (!s->has_tools)
		return false;
	check_trifecta(&s->tools.t, s->tools.workspace, s->tools.home, &f);
	clean = check_errors(&f) == 0;
	check_free(&f);
	return clean;
}

static bool test_agents(const struct subject *s)
{
	return s->has_tools && s->tools.t.file.agents.len;
}

/* One agent has nobody to poison. */
static bool test_channels(const struct subject *s)
{
	return test_agents(s) &&
	       (s->tools.t.file.agents.len == 1 ||
		!check_agents_share(&s->tools.t, s->tools.workspace, s->tools.home));
}

enum test {
	TEST_ALWAYS,
	TEST_FILE,
	TEST_EPHEMERAL,
	TEST_MOUNTS,
	TEST_PRIVILEGE,
	TEST_QUOTAS,
	TEST_REVIEW,
	TEST_JOURNAL,
	TEST_CREDENTIALS,
	TEST_ON_TIMEOUT,
	TEST_SYSCALLS,
	TEST_NETWORK,
	TEST_TOOLS,
	TEST_TRIFECTA,
	TEST_AGENTS,
	TEST_CHANNELS,
	TEST_OUTSIDE
};

static bool (*const tests[])(const struct subject *s) = {
	[TEST_ALWAYS] = test_always,
	[TEST_FILE] = test_file,
	[TEST_EPHEMERAL] = test_ephemeral,
	[TEST_MOUNTS] = test_mounts,
	[TEST_PRIVILEGE] = test_privilege,
	[TEST_QUOTAS] = test_quotas,
	[TEST_REVIEW] = test_review,
	[TEST_JOURNAL] = test_journal,
	[TEST_CREDENTIALS] = test_credentials,
	[TEST_ON_TIMEOUT] = test_on_timeout,
	[TEST_SYSCALLS] = test_syscalls,
	[TEST_NETWORK] = test_network,
	[TEST_TOOLS] = test_tools,
	[TEST_TRIFECTA] = test_trifecta,
	[TEST_AGENTS] = test_agents,
	[TEST_CHANNELS] = test_channels,
};

static const struct {
	const char *list, *id, *title, *line;
	enum test test;
} rows[] = {
#define SCORE(l, i, t, w, n) { .list = l, .id = i, .title = t, .test = TEST_##w, .line = n },
#include "score.def"
};

static const char *verdict(const struct subject *s, size_t row)
{
	if (rows[row].test == TEST_OUTSIDE)
		return "outside";
	return tests[rows[row].test](s) ? "met" : "not met";
}

static int load(const struct options *o, struct subject *s, struct policy_errors *errors,
		struct ward_err *e)
{
	const char *given = o->word_count ? o->words[0] : NULL;
	size_t n = given ? strlen(given) : 0;
	bool is_tools = given && n >= 10 && strcmp(given + n - 10, TOOLS_FILE_NAME) == 0;
	auto_free char *dir = NULL;
	auto_free char *beside = NULL;
	int r;

	if (is_tools) {
		r = tools_load(given, &s->tools, errors, e);
		s->has_tools = r == 0;
		r = r == 0 ? tools_load_policy(&s->tools, NULL, false, &s->policy, NULL, errors, e)
			   : r;
		s->has_policy = r > 0;
		return r == 0 ? policy_defaults(&s->policy, e) : r < 0 ? r : 0;
	}
	r = policy_defaults(&s->policy, e);
	if (r == 0 && (given || access("ward.yaml", F_OK) == 0)) {
		r = spec_read_policy(given ? given : "ward.yaml", &s->policy, errors, e);
		s->has_policy = r == 0;
	}
	dir = given && strrchr(given, '/')
		      ? strndup(given, (size_t)(strrchr(given, '/') - given + 1))
		      : strdup("");
	if (!dir || asprintf(&beside, "%s" TOOLS_FILE_NAME, dir) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	if (r == 0 && access(beside, F_OK) == 0) {
		r = tools_load(beside, &s->tools, errors, e);
		s->has_tools = r == 0;
	}
	return r;
}

static size_t print(const struct subject *s, bool as_json, struct buf *out)
{
	size_t unmet = 0, met = 0;
	struct json j = { .out = out };
	const char *list = "";

	if (as_json) {
		json_begin_object(&j, NULL);
		json_begin_array(&j, "items");
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *word = verdict(s, i);

		unmet += strcmp(word, "not met") == 0;
		met += strcmp(word, "met") == 0;
		if (as_json) {
			json_begin_object(&j, NULL);
			json_string(&j, "list", rows[i].list);
			json_string(&j, "id", rows[i].id);
			json_string(&j, "title", rows[i].title);
			json_string(&j, "verdict", word);
			json_string(&j, "line", rows[i].line);
			json_end_object(&j);
			continue;
		}
		if (strcmp(list, rows[i].list) != 0)
			buf_printf(out, "%s%s\n", i ? "\n" : "", rows[i].list);
		list = rows[i].list;
		buf_printf(out, "  %-8s %-4s %s\n", word, rows[i].id, rows[i].title);
		if (strcmp(word, "met") != 0)
			buf_printf(out, "                %s\n", rows[i].line);
	}
	if (as_json) {
		json_end_array(&j);
		json_uint(&j, "met", met);
		json_uint(&j, "not_met", unmet);
		json_end_object(&j);
		buf_puts(out, "\n");
	} else {
		buf_printf(out, "\n%zu met, %zu not met\n", met, unmet);
	}
	return unmet;
}

int check_score(struct options *o)
{
	struct policy_errors errors = { 0 };
	struct subject s = { 0 };
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	size_t unmet = 0;
	int r;

	if (o->format && strcmp(o->format, "text") != 0 && strcmp(o->format, "json") != 0) {
		ward_fail(&e, EINVAL, "--format %.50s: --score knows text and json", o->format);
		return say_error(&e, o->json, EXIT_USAGE);
	}
	r = load(o, &s, &errors, &e);
	if (errors.lines.len)
		ask_print_errors(&errors);
	strv_free(&errors.lines);
	if (r == 0)
		unmet = print(&s, o->json || (o->format && *o->format == 'j'), &out);
	policy_clear(&s.policy);
	tools_unload(&s.tools);
	if (r < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	return say_out(&out, unmet ? EXIT_FINDINGS : EXIT_FINE);
}
