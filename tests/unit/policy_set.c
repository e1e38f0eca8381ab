/* Values of the command line, which policy is wider, and what this build does not do yet. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "policy/policy.h"

static const struct {
	const char *field, *value;
	bool append;
	const char *text; /* the field afterwards */
} good[] = {
	{ "resources.pids_limit", "64", false, "64" },
	{ "resources.pids_limit", "none", false, "none" },
	{ "resources.memory_limit", "512M", false, "512M" },
	{ "resources.timeout_seconds", "null", false, "none" },
	{ "process.nesting", "true", false, "true" },
	{ "process.syscalls", "build", false, "build" },
	{ "filesystem.workspace", "a: [b", false, "\"a: [b\"" },
	{ "filesystem.workspace", "true", false, "\"true\"" },
	{ "filesystem.hide", "*.key", true, "[\"*.key\"]" },
	{ "filesystem.hide", "*.key", false, "[\"*.key\"]" },
	{ "filesystem.hide", "[a, \"b c\"]", false, "[a, \"b c\"]" },
	{ "filesystem.hide", "[\"a\", \"b\"]", true, "[a, b]" },
	{ "filesystem.hide", "[]", false, "[]" },
	{ "process.env", "A=x y: z # no comment", true,
	  "[TERM, COLORTERM, NO_COLOR, TZ, LANG, LANGUAGE, LC_ALL, LC_CTYPE, LC_COLLATE, "
	  "LC_MESSAGES, LC_NUMERIC, LC_TIME, \"A=x y: z # no comment\"]" },
	{ "process.env", "TERM", true,
	  "[TERM, COLORTERM, NO_COLOR, TZ, LANG, LANGUAGE, LC_ALL, LC_CTYPE, LC_COLLATE, "
	  "LC_MESSAGES, LC_NUMERIC, LC_TIME]" },
	{ "filesystem.host_mounts", "/data", true, "[{path: /data, mode: read_only}]" },
	{ "filesystem.host_mounts", "{\"path\":\"/a b\",\"mode\":\"read_write\"}", true,
	  "[{path: \"/a b\", mode: read_write}]" },
	{ "filesystem.host_mounts", "{path: /d, at: /e}", true,
	  "[{path: /d, mode: read_only, at: /e}]" },
	{ "isolation", "gvisor", false, "[gvisor]" },
	{ "isolation", "[vm, native]", false, "[vm, native]" },
	{ "network.ingress", "8080", true, "[8080]" },
	{ "network.ingress", "deny_all", false, "deny_all" },
	{ "network.ingress", "8080:3000", true, "[\"8080:3000\"]" },
	{ "network.ingress", "80,8080:3000", true, "[80, \"8080:3000\"]" },
	{ "network.ingress", "[\"3000:3000\", 1]", false, "[3000, 1]" },
	{ "extends", "base.yaml", false, "[base.yaml]" },
	{ "network.egress_allowlist", "a.example:80", true,
	  "[{\"host\":\"a.example\",\"ports\":[80]}]" },
	{ "network.upstream_proxy", "null", false, "null" },
};

static const struct {
	const char *field, *value, *why, *remedy;
} bad[] = {
	{ "resources.pid_limit", "1", "resources.pid_limit: there is no such field",
	  "did you mean \"resources.pids_limit\"?" },
	{ "pids_limit", "1", "pids_limit: there is no such field",
	  "did you mean \"resources.pids_limit\"?" },
	{ "nestin", "1", "nestin: there is no such field", "did you mean \"process.nesting\"?" },
	{ "xyzzy", "1", "xyzzy: there is no such field", "man ward.yaml lists the fields" },
	{ "process.syscalls", "biuld",
	  "process.syscalls: expected strict, default or build, found \"biuld\"",
	  "did you mean \"build\"?" },
	{ "resources.memory_limit", "", "resources.memory_limit: expected a size", "" },
	{ "resources.cpu_limit", "1e30", "resources.cpu_limit: expected a number of processors",
	  "" },
	{ "process.nesting", "yes", "process.nesting: expected true or false, found \"yes\"",
	  "write true, without quotes" },
	{ "filesystem.hide", "[a", "not YAML: ", "" },
	{ "filesystem.hide", "", "filesystem.hide[0]: expected text that is not empty", "" },
	{ "process.env", "1=2", "process.env[0]: expected NAME, PREFIX* or NAME=VALUE", "" },
	{ "filesystem.host_mounts", "{path: /a, mod: b}",
	  "filesystem.host_mounts[0].mod: unknown key", "did you mean \"mode\"?" },
	{ "process.commands", "git", "process.commands: expected a map", "" },
	{ "network.ingress",
	  "8080:", "network.ingress[0]: expected a port from 1 to 65535, or HOST:SANDBOX", "" },
	{ "network.ingress", "1:2:3",
	  "network.ingress[0]: expected a port from 1 to 65535, or HOST:SANDBOX", "" },
	{ "network.ingress", "1:65536",
	  "network.ingress[0]: expected a port from 1 to 65535, or HOST:SANDBOX", "" },
};

static void test_set(void **state)
{
	struct ward_err e = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		auto_free char *text = NULL;
		struct policy p;
		unsigned f = 0;

		assert_int_equal(policy_defaults(&p, &e), 0);
		if (policy_set(&p, good[i].field, good[i].value, good[i].append, POLICY_CLI, &e) <
		    0)
			fail_msg("%s=%s: %s", good[i].field, good[i].value, e.why);
		while (strcmp(policy_row(f)->path, good[i].field) != 0)
			f++;
		text = policy_text(&p, f);
		assert_string_equal(text, good[i].text);
		assert_int_equal(p.origin[f].source, POLICY_CLI);
		assert_int_equal(p.origin[f].line, 0);
		policy_clear(&p);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct policy p;

		assert_int_equal(policy_defaults(&p, &e), 0);
		assert_int_equal(policy_set(&p, bad[i].field, bad[i].value, false, POLICY_CLI, &e),
				 -EINVAL);
		if (strncmp(e.why, bad[i].why, strlen(bad[i].why)) != 0 ||
		    (*bad[i].remedy && strcmp(e.remedy, bad[i].remedy) != 0))
			fail_msg("%s=%s: %s; %s", bad[i].field, bad[i].value, e.why, e.remedy);
		policy_clear(&p);
	}
	{
		struct policy p; /* an entry of what is no list */

		assert_int_equal(policy_defaults(&p, &e), 0);
		assert_int_equal(policy_set(&p, "process.syscalls", "build", true, POLICY_CLI, &e),
				 -EINVAL);
		assert_non_null(strstr(e.why, "is not a list"));
		assert_int_equal(p.origin[POLICY_F_proc_syscalls].source, POLICY_DEFAULT);
		policy_clear(&p);
	}
}

/* An address in brackets is an entry; what else begins with one is a list. */
static void test_brackets(void **state)
{
	static const struct {
		const char *value, *text; /* NULL: refused */
	} rows[] = {
		{ "[2001:db8::1]:443", "[{\"host\":\"2001:db8::1\",\"ports\":[443]}]" },
		{ "[2001:DB8::1]", "[{\"host\":\"2001:db8::1\",\"ports\":[443]}]" },
		{ "[2001:db8::/32]:80", "[{\"host\":\"2001:db8::/32\",\"ports\":[80]}]" },
		{ "[a.example, b.example]", "[{\"host\":\"a.example\",\"ports\":[443]}, "
					    "{\"host\":\"b.example\",\"ports\":[443]}]" },
		{ "[2001:db8::1", NULL },
		{ "[2001:db8::1]x", NULL },
		{ "[2001:db8::1]:", NULL },
		{ "[a:b]", NULL },
	};
	struct ward_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *text = NULL;
		struct policy p;
		int r;

		assert_int_equal(policy_defaults(&p, &e), 0);
		r = policy_set(&p, "network.egress_allowlist", rows[i].value, true, POLICY_CLI, &e);
		text = policy_text(&p, POLICY_F_net_egress);
		if (r < 0 && rows[i].text)
			fail_msg("%s: %s", rows[i].value, e.why);
		if (rows[i].text)
			assert_string_equal(text, rows[i].text);
		else
			assert_true(r < 0);
		policy_clear(&p);
	}
}

/* For each row: old, narrower (or equal) and wider values. */
static const struct {
	enum policy_field field;
	const char *old, *narrower, *wider; /* NULL: there is none */
} directions[] = {
	{ POLICY_F_version, "1", "1", NULL },
	{ POLICY_F_profile, "null", "claude", NULL },
	{ POLICY_F_extends, "[]", "[a.yaml]", NULL },
	{ POLICY_F_isolation, "[native]", "[vm]", NULL },
	{ POLICY_F_oci_runtime, "runc", "crun", NULL },
	{ POLICY_F_wasm_runtime, "auto", "node", NULL },
	{ POLICY_F_wasm_fuel, "1000", "10", "2000" },
	{ POLICY_F_wasm_compile, "true", "false", NULL },
	{ POLICY_F_vm_accel, "tcg", "kvm", NULL },
	{ POLICY_F_vm_memory, "1Gi", "2Gi", NULL },
	{ POLICY_F_vm_cpus, "2", "4", NULL },
	{ POLICY_F_toolchains, "auto", "none", "[rust]" },
	{ POLICY_F_toolchains, "auto", "[auto]", "[auto, node]" },
	{ POLICY_F_toolchains, "[rust, node]", "node", "auto" },
	{ POLICY_F_image, "host", "host", "other" },
	{ POLICY_F_fs_workspace, ".", ".", "sub" },
	{ POLICY_F_fs_mode, "review", "read_only", "read_write" },
	{ POLICY_F_fs_host_mounts, "[/a, /b]", "[/b]", "[/a, /c]" },
	{ POLICY_F_fs_host_mounts, "[{path: /a, mode: read_write}]", "[/a]",
	  "[{path: /a, at: /b}]" },
	{ POLICY_F_fs_host_mounts, "[/a]", "[]", "[{path: /a, mode: read_write}]" },
	{ POLICY_F_fs_hide, "[a]", "[b, a]", "[b]" },
	{ POLICY_F_fs_hide, "[a]", "[a, a]", "[a, \"!b\"]" },
	{ POLICY_F_fs_hide, "[\"!a\", b]", "[\"!a\", c, b]", "[b, \"!a\"]" },
	{ POLICY_F_fs_protect, "[]", "[a]", "[\"!.envrc\"]" },
	{ POLICY_F_fs_ask, "[/a, /b]", "[/a]", "[/a, /c]" },
	{ POLICY_F_fs_scratch, "[/a, /b]", "[/a]", "[/a, /c]" },
	{ POLICY_F_fs_caches, "[pip]", "[]", "[pip, npm]" },
	{ POLICY_F_proc_user, "agent", "agent", "user" },
	{ POLICY_F_fs_home, "private", "private", "claude" },
	{ POLICY_F_fs_home, "claude", "claude", "private" },
	{ POLICY_F_fs_programs, "[claude]", "[]", "[claude, node]" },
	{ POLICY_F_net_mode, "restricted", "none", "open" },
	{ POLICY_F_net_egress, "[a.example, b.example]", "[\"B.example.:443\"]",
	  "[a.example, \"*.example\"]" },
	{ POLICY_F_net_ingress, "[80]", "deny_all", "[80, 81]" },
	{ POLICY_F_net_connections, "100", "99", "none" },
	{ POLICY_F_net_connection_rate, "none", "10", NULL },
	{ POLICY_F_net_receive, "1Gi", "1Mi", "2Gi" },
	{ POLICY_F_net_send, "1Gi", "1Mi", "none" },
	{ POLICY_F_net_bandwidth, "1Mi", "512Ki", "2Mi" },
	{ POLICY_F_net_request_rate, "60", "10", "61" },
	{ POLICY_F_net_spend, "5", "4.99", "none" },
	{ POLICY_F_net_spend_warning, "80", "90", NULL },
	{ POLICY_F_net_unpriced, "dearest", "refuse", "free" },
	{ POLICY_F_net_prices, "[]", "[]", "[{model: a, input: 3, output: 15}]" },
	{ POLICY_F_net_host_services, "[\"a=127.0.0.1:1\"]", "[]", "[\"a=127.0.0.1:2\"]" },
	{ POLICY_F_net_upstream_proxy, "null", "null", "\"http://p\"" },
	{ POLICY_F_net_record, "a", "a", "null" },
	{ POLICY_F_net_replay, "a", "a", "b" },
	{ POLICY_F_proc_syscalls, "default", "strict", "build" },
	{ POLICY_F_proc_env, "[TERM]", "[]", "[TERM, HOME]" },
	{ POLICY_F_proc_env, "[LC_*]", "[LC_*]", "[L*]" },
	{ POLICY_F_proc_git_identity, "true", "false", NULL },
	{ POLICY_F_proc_git_identity, "false", "false", "true" },
	{ POLICY_F_proc_terminal, "clean", "clean", "raw" },
	{ POLICY_F_proc_nesting, "false", "false", "true" },
	{ POLICY_F_proc_nesting, "true", "false", NULL },
	{ POLICY_F_proc_commands, "{deny: [a]}", "{deny: [a, b], allow: [c]}", "{}" },
	{ POLICY_F_proc_commands, "{allow: [a, b]}", "{allow: [a]}", "{allow: [a, b, c]}" },
	{ POLICY_F_proc_commands, "{allow: [a]}", "{allow: [a], deny: [b]}", "{deny: [b]}" },
	{ POLICY_F_proc_children, "4", "0", "5" },
	{ POLICY_F_proc_children_depth, "2", "1", "3" },
	{ POLICY_F_channels, "[{name: c, from: [a], to: [b], schema: '{}'}]", "[]",
	  "[{name: c, from: [a], to: [b], schema: '{}'}, {name: d, from: [b], to: [a], schema: "
	  "'{}'}]" },
	{ POLICY_F_res_cpu, "2", "1.5", "2.001" },
	{ POLICY_F_res_memory, "4Gi", "1Gi", "none" },
	{ POLICY_F_res_memory, "50%", "25%", "75%" },
	{ POLICY_F_res_memory, "50%", "4Gi", "5Gi" }, /* on a machine with 8Gi */
	{ POLICY_F_res_memory, "2Gi", "25%", "26%" },
	{ POLICY_F_res_pids, "none", "none", NULL },
	{ POLICY_F_res_pids, "100", "99", "101" },
	{ POLICY_F_res_disk, "1Gi", "1000M", "none" },
	{ POLICY_F_res_inodes, "1000", "999", "1001" },
	{ POLICY_F_res_open_files, "1000", "999", "1001" },
	{ POLICY_F_res_output, "1000", "999", "1001" },
	{ POLICY_F_res_timeout, "1", "0.5", "1.5" },
	{ POLICY_F_res_gpus, "none", "none", "all" },
	{ POLICY_F_res_gpus, "all", "[0, 2]", NULL },
	{ POLICY_F_res_gpus, "[0, 2]", "2", "0,1" },
	{ POLICY_F_res_gpus, "0,2", "2,0", "all" },
	{ POLICY_F_cred_mode, "none", "none", "just_in_time" },
	{ POLICY_F_cred_scanning, "true", "true", "false" },
	{ POLICY_F_cred_scanning, "false", "true", NULL },
	{ POLICY_F_cred_scan_requests, "redact", "block", "log" },
	{ POLICY_F_cred_scan_output, "log", "redact", "auto" },
	{ POLICY_F_cred_scan_workspace, "auto", "log", "off" },
	{ POLICY_F_cred_scan_personal, "true", "true", "false" },
	{ POLICY_F_cred_leaks, "strip", "block", "log" },
	{ POLICY_F_cred_grants, "[]", "[]", "[{name: a, source: 'env:A', hosts: [a.example]}]" },
	{ POLICY_F_cred_grants, "[{name: a, source: 'env:A', hosts: [a.example]}]",
	  "[{name: a, source: 'env:A', hosts: [A.example.], ttl_seconds: 900}]",
	  "[{name: a, source: 'env:B', hosts: [a.example]}]" },
	{ POLICY_F_cred_gpg, "[]", "[]", "[ABCDEF0123456789ABCDEF0123456789abcdef01]" },
	{ POLICY_F_cred_ssh, "[]", "[]", "[{hosts: [a.example]}]" },
	{ POLICY_F_cred_ssh, "[{hosts: [a.example]}, {sign: true}]", "[{sign: true}]",
	  "[{hosts: [b.example]}]" },
	{ POLICY_F_appr_mode, "deny", "deny", "ask" },
	{ POLICY_F_appr_timeout, "100", "10", "200" },
	{ POLICY_F_appr_never, "['host:a.example']", "['host:a.example', 'program:git']", "[]" },
	{ POLICY_F_appr_proposals, "false", "false", "true" },
	{ POLICY_F_appr_on_timeout, "deny", "deny", NULL },
	{ POLICY_F_cred_grants,
	  "[{name: a, source: 'env:A', hosts: [a.example]}, {name: b, source: 'env:B', hosts: "
	  "[b.example], ask: true}]",
	  "[{name: a, source: 'env:A', hosts: [a.example], ask: true}]",
	  "[{name: b, source: 'env:B', hosts: [b.example]}]" },
	/* deny < ask < allow */
	{ POLICY_F_net_egress, "[a.example, b.example]", "[{host: a.example, ask: true}]",
	  "[a.example, {host: c.example, ask: true}]" },
	{ POLICY_F_net_egress, "[{host: a.example, ask: true}, b.example]",
	  "[{host: a.example, ask: true}]", "[a.example, b.example]" },
	/* what asked may stand before what allows: without it, or behind that, it asks no more */
	{ POLICY_F_net_egress, "[{host: a.example, ask: true}, '*']",
	  "[{host: a.example, ask: true}, {host: '*', ask: true}]", "['*']" },
	{ POLICY_F_net_egress, "[{host: a.example, ask: true}, a.example]",
	  "[{host: a.example, ask: true}]", "[a.example, {host: a.example, ask: true}]" },
	{ POLICY_F_watch_rules, "[{name: a, count: denials}]",
	  "[{name: a, count: denials}, {name: b, count: execs}]", "[{name: b, count: execs}]" },
	{ POLICY_F_watch_rules, "[{name: a, count: denials, above: 5}]",
	  "[{name: a, count: denials, above: 5}]", "[{name: a, count: denials, above: 6}]" },
	{ POLICY_F_watch_labels, "[{name: a, paths: [x]}]",
	  "[{name: a, paths: [x]}, {name: b, hosts: [b.example]}]", "[{name: a, paths: [y]}]" },
	{ POLICY_F_canary_files, "[~/.netrc]", "[~/.netrc, ~/.npmrc]", "[]" },
	{ POLICY_F_canary_hosts, "[a.example]", "[a.example, b.example]", "[b.example]" },
	{ POLICY_F_canary_variables, "[A]", "[A, B]", "[]" },
	{ POLICY_F_canary_git_remotes, "[a=https://h/p]", "[a=https://h/p, b=https://h/q]", "[]" },
	{ POLICY_F_canary_do, "freeze", "kill", "log" },
	{ POLICY_F_audit_level, "exec", "full", "basic" },
	{ POLICY_F_audit_journal, "default", "default", "none" },
	{ POLICY_F_audit_on_full, "stop", "stop", "continue" },
	{ POLICY_F_audit_sinks, "[]", "[]", "[{type: file, to: /x}]" },
	{ POLICY_F_tools, "null", "a.yaml", NULL },
	{ POLICY_F_gvisor_platform, "auto", "ptrace", NULL },
	{ POLICY_F_req_isolation, "namespaces", "vm", "landlock" },
	{ POLICY_F_req_limits, "watch", "cgroup", "none" },
	{ POLICY_F_req_idmap, "true", "true", "false" },
	{ POLICY_F_req_landlock, "true", "true", "false" },
};

static void set_row(struct policy *p, enum policy_field field, const char *value)
{
	struct ward_err e;

	assert_int_equal(policy_defaults(p, &e), 0);
	if (policy_set(p, policy_row(field)->path, value, false, POLICY_FILE, &e) < 0)
		fail_msg("%s", e.why);
}

/* Lists are shown by what comes and goes, and rules as a person writes them. */
static void test_difference(void **state)
{
	static const struct {
		enum policy_field field;
		const char *old, *new, *text;
	} differences[] = {
		{ POLICY_F_net_egress, "[a.example]", "[a.example, \"b.example:80\"]",
		  "network.egress_allowlist: adds b.example:80" },
		{ POLICY_F_net_egress, "[]", "[\"[2001:db8::1]:80\"]",
		  "network.egress_allowlist: adds [2001:db8::1]:80" },
		{ POLICY_F_fs_hide, "[.env, a]", "[b]",
		  "filesystem.hide: adds b; drops \".env\", a" },
		{ POLICY_F_res_pids, "64", "65", "resources.pids_limit: 64 -> 65" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(differences); i++) {
		auto_free char *text = NULL;
		struct policy old, new;

		set_row(&old, differences[i].field, differences[i].old);
		set_row(&new, differences[i].field, differences[i].new);
		text = policy_difference(&old, &new, differences[i].field);
		assert_string_equal(text, differences[i].text);
		policy_clear(&old);
		policy_clear(&new);
	}
}

static void test_directions(void **state)
{
	bool seen[POLICY_FIELDS] = { false };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(directions); i++) {
		auto_strv lines = { 0 };
		struct policy old, new;

		seen[directions[i].field] = true;
		set_row(&old, directions[i].field, directions[i].old);
		assert_int_equal(policy_compare(&old, &old, &lines), 0);
		set_row(&new, directions[i].field, directions[i].narrower);
		if (policy_compare_on(&old, &new, 8ULL << 30, &lines) != 0)
			fail_msg("counts as wider: %s", lines.items[0]);
		policy_clear(&new);
		if (directions[i].wider) {
			set_row(&new, directions[i].field, directions[i].wider);
			if (policy_compare_on(&old, &new, 8ULL << 30, &lines) != 1)
				fail_msg("does not count as wider: %s %s",
					 policy_row(directions[i].field)->path,
					 directions[i].wider);
			assert_true(strncmp(lines.items[0], policy_row(directions[i].field)->path,
					    strlen(policy_row(directions[i].field)->path)) == 0);
			assert_true(strstr(lines.items[0], " -> ") ||
				    strstr(lines.items[0], ": adds ") ||
				    strstr(lines.items[0], ": drops "));
			policy_clear(&new);
		}
		policy_clear(&old);
	}
	for (unsigned i = 0; i < POLICY_FIELDS; i++)
		if (!seen[i])
			fail_msg("%s has no direction test", policy_row(i)->path);
}

/* Without the machine's memory a share and an amount cannot be compared: wider both ways. */
static void test_memory_unknown(void **state)
{
	auto_strv lines = { 0 };
	struct policy share, amount;

	(void)state;
	set_row(&share, POLICY_F_res_memory, "50%");
	set_row(&amount, POLICY_F_res_memory, "4Mi");
	assert_int_equal(policy_compare(&share, &amount, &lines), 1);
	assert_int_equal(policy_compare(&amount, &share, &lines), 1);
	assert_string_equal(lines.items[0], "resources.memory_limit: 50% -> 4Mi");
	policy_clear(&share);
	policy_clear(&amount);
}

static void test_unsupported(void **state)
{
	static const char doc[] = "isolation: [native]\nprocess: {commands: {deny: [a]}}\n"
				  "filesystem: {mode: read_only, hide: [a]}\ntools: t.yaml\n";
	struct policy_errors errors = { 0 };
	auto_strv lines = { 0 };
	struct ward_err e;
	struct policy p;

	(void)state;
	assert_int_equal(policy_defaults(&p, &e), 0);
	assert_int_equal(policy_unsupported(&p, &lines), 0);
	assert_int_equal(
		policy_read(&p, "f", (const uint8_t *)doc, strlen(doc), POLICY_FILE, &errors), 0);
	assert_int_equal(policy_unsupported(&p, &lines), 1);
	assert_string_equal(lines.items[0], "tools: t.yaml is not yet supported by this build");
	policy_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_directions),
		cmocka_unit_test(test_brackets),
		cmocka_unit_test(test_difference),
		cmocka_unit_test(test_memory_unknown),
		cmocka_unit_test(test_unsupported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
