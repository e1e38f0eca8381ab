/* The reader: the sample, every row with a good and a bad value, errors with their places, the two
 * syntaxes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/io.h"
#include "policy/policy.h"

static int read_text(struct policy *p, const char *name, const char *text, size_t n,
		     struct strv *lines)
{
	struct policy_errors errors = { 0 };
	struct ward_err e;
	int r;

	assert_int_equal(policy_defaults(p, &e), 0);
	r = policy_read(p, name, (const uint8_t *)text, n, POLICY_FILE, &errors);
	*lines = errors.lines;
	assert_true((r == 0) == (lines->len == 0));
	return r;
}

/* Reads text and expects exactly these lines of errors, NULL at the end; "..." at the end of one:
 * any rest. */
static void expect(const char *name, const char *text, ...)
{
	auto_strv lines = { 0 };
	struct policy p;
	const char *line;
	size_t i = 0;
	va_list ap;

	read_text(&p, name, text, strlen(text), &lines);
	va_start(ap, text);
	for (; (line = va_arg(ap, const char *)); i++) {
		size_t n = strlen(line);
		bool open = n > 3 && strcmp(line + n - 3, "...") == 0;

		if (i >= lines.len)
			fail_msg("%s: missing: %s", text, line);
		else if (open ? strncmp(lines.items[i], line, n - 3) != 0
			      : strcmp(lines.items[i], line) != 0)
			fail_msg("%s:\nwanted: %s\ngot:    %s", text, line, lines.items[i]);
	}
	va_end(ap);
	if (i < lines.len)
		fail_msg("%s: one more: %s", text, lines.items[i]);
	policy_clear(&p);
}

static void check_sample(const char *file)
{
	auto_free char *path = NULL;
	auto_strv lines = { 0 };
	auto_buf text = { 0 };
	struct policy p;

	assert_true(asprintf(&path, "%s/%s", getenv("WARD_TEST_DATA"), file) > 0);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 20, &text), 0);
	read_text(&p, file, text.data, text.len, &lines);
	for (size_t i = 0; i < lines.len; i++)
		print_error("%s\n", lines.items[i]);
	assert_int_equal(lines.len, 0);
	assert_int_equal(p.isolation.len, 1);
	assert_string_equal(p.isolation.items[0], "gvisor");
	assert_string_equal(policy_enum_name(POLICY_F_net_mode, p.net_mode), "restricted");
	assert_int_equal(p.net_egress.len, 2);
	assert_string_equal(p.net_egress.items[1], "{\"host\":\"github.com\",\"ports\":[443]}");
	assert_int_equal(p.net_ingress.len, 0);
	assert_string_equal(p.fs_workspace, "/tmp/agent");
	assert_int_equal(p.fs_host_mounts.len, 0);
	assert_int_equal(p.res_cpu, 2000);
	assert_true(p.res_memory == 4ULL << 30);
	assert_int_equal(p.res_timeout, 300000);
	assert_int_equal(p.cred_mode, 1);
	assert_true(p.cred_scanning);
	assert_int_equal(p.origin[POLICY_F_res_cpu].source, POLICY_FILE);
	assert_true(p.origin[POLICY_F_res_cpu].line > 1);
	assert_int_equal(p.origin[POLICY_F_res_pids].source, POLICY_DEFAULT);
	policy_clear(&p);
}

static void test_sample(void **state)
{
	(void)state;
	check_sample("sample.yaml");
	check_sample("sample.json");
	check_sample("sample-dict.yaml");
}

/* One value that is accepted, what it reads back as (NULL: the same), and one that is refused. */
static const struct {
	enum policy_field field;
	const char *good, *text, *bad;
} values[] = {
	{ POLICY_F_version, "1", NULL, "2" },
	{ POLICY_F_profile, "claude", NULL, "[claude]" },
	{ POLICY_F_extends, "base.yaml", "[base.yaml]", "{a: b}" },
	{ POLICY_F_extends, "[base.yaml, python]", NULL, "[\"a\\nb\"]" },
	{ POLICY_F_isolation, "gvisor", "[gvisor]", "docker" },
	{ POLICY_F_isolation, "[vm, native]", NULL, "[]" },
	{ POLICY_F_isolation, "[wasm]", NULL, "[oci, oci]" },
	{ POLICY_F_oci_runtime, "crun", NULL, "runsc" },
	{ POLICY_F_wasm_runtime, "wasmtime", NULL, "wasm3" },
	{ POLICY_F_wasm_fuel, "1000", NULL, "0" },
	{ POLICY_F_wasm_compile, "false", NULL, "maybe" },
	{ POLICY_F_vm_accel, "tcg", NULL, "hvf" },
	{ POLICY_F_vm_memory, "1Gi", NULL, "1Mi" },
	{ POLICY_F_vm_cpus, "2", NULL, "0" },
	{ POLICY_F_toolchains, "none", NULL, "rust" },
	{ POLICY_F_toolchains, "[]", "none", "[none]" },
	{ POLICY_F_toolchains, "[auto]", "auto", "null" },
	{ POLICY_F_toolchains, "[rust, node]", NULL, "[rsut]" },
	{ POLICY_F_toolchains, "[auto, node]", NULL, "[../x]" },
	{ POLICY_F_image, "python-3.12", NULL, "''" },
	{ POLICY_F_fs_workspace, "/tmp/agent", NULL, "[a]" },
	{ POLICY_F_fs_workspace, "\"with space\"", NULL, "null" },
	{ POLICY_F_fs_mode, "read_only", NULL, "readonly" },
	{ POLICY_F_fs_host_mounts, "[/data]", "[{path: /data, mode: read_only}]", "/data" },
	{ POLICY_F_fs_host_mounts, "[{path: /d, mode: read_write, at: /e}]", NULL,
	  "[{mode: read_write}]" },
	{ POLICY_F_fs_host_mounts, "[{path: /d}]", "[{path: /d, mode: read_only}]",
	  "[{path: /d, at: ../e}]" },
	{ POLICY_F_fs_host_mounts, "[]", NULL, "[{path: /d, mode: rw}]" },
	{ POLICY_F_fs_host_mounts, "[]", NULL, "[{path: /d, at: /}]" },
	{ POLICY_F_fs_host_mounts, "[]", NULL, "[[a]]" },
	{ POLICY_F_fs_hide, "[.env, \"*.key\"]", "[\".env\", \"*.key\"]", ".env" },
	{ POLICY_F_fs_hide, "[]", NULL, "[\"a\\n!b\"]" },
	{ POLICY_F_fs_ask, "[/data, /srv/x]", NULL, "{a: b}" },
	{ POLICY_F_fs_protect, "[\"!Makefile\"]", NULL, "{a: b}" },
	{ POLICY_F_fs_scratch, "[/srv/data, /run]", NULL, "{a: b}" },
	{ POLICY_F_fs_caches, "[pip, npm]", NULL, "[3, true]" },
	{ POLICY_F_fs_caches, "[ccache]", NULL, "[nmp]" },
	{ POLICY_F_proc_user, "user", NULL, "../x" },
	{ POLICY_F_fs_home, "claude", NULL, "../x" },
	{ POLICY_F_fs_home, "a.b_c-d+1", NULL, ".x" },
	{ POLICY_F_fs_programs, "[claude, node]", NULL, "[/bin/sh]" },
	{ POLICY_F_net_mode, "open", NULL, "opne" },
	{ POLICY_F_net_egress, "[]", NULL, "[\"http://a.example\"]" },
	{ POLICY_F_net_ingress, "[8080]", NULL, "[0]" },
	{ POLICY_F_net_ingress, "deny_all", NULL, "allow_all" },
	{ POLICY_F_net_ingress, "[]", "deny_all", "[65536]" },
	{ POLICY_F_net_egress,
	  "[{host: a.example, ports: 8080, mode: http, connection_limit: 4, send_limit: 1Mi, "
	  "receive_limit: none}]",
	  "[{\"host\":\"a.example\",\"ports\":[8080],\"mode\":\"http\",\"connection_limit\":4,"
	  "\"send_limit\":1048576}]",
	  "[{host: a.example, connection_limit: 0}]" },
	{ POLICY_F_net_egress, "[]", NULL, "[{host: 10.0.0.0/8, mode: http}]" },
	{ POLICY_F_net_egress, "[]", NULL, "[{host: 192.0.2.1, mode: splice}]" },
	{ POLICY_F_net_egress, "[]", NULL, "[{host: \"2001:db8::1\", mode: splice}]" },
	{ POLICY_F_net_connections, "100", NULL, "0" },
	{ POLICY_F_net_connection_rate, "none", NULL, "-1" },
	{ POLICY_F_net_receive, "1Gi", NULL, "x" },
	{ POLICY_F_net_send, "1Mi", NULL, "0" },
	{ POLICY_F_net_bandwidth, "1Mi", NULL, "100" },
	{ POLICY_F_net_request_rate, "60", NULL, "0" },
	{ POLICY_F_net_spend, "5", "5.00", "0" },
	{ POLICY_F_net_spend, "0.25", NULL, "1e30" },
	{ POLICY_F_net_spend_warning, "90", NULL, "101" },
	{ POLICY_F_net_unpriced, "free", NULL, "cheap" },
	{ POLICY_F_net_prices, "[{model: a, input: 3, output: 15}]",
	  "[{\"model\":\"a\",\"input\":\"3.00\",\"output\":\"15.00\"}]", "[{model: a, input: 3}]" },
	{ POLICY_F_net_host_services, "[\"postgres=127.0.0.1:5432\"]", NULL, "[\"postgres\"]" },
	{ POLICY_F_net_upstream_proxy, "null", NULL, "3.5e\n  a: b" },
	{ POLICY_F_net_record, "~", "null", "[]" },
	{ POLICY_F_net_replay, "file.har", NULL, "{}" },
	{ POLICY_F_proc_syscalls, "build", NULL, "Build" },
	{ POLICY_F_proc_env, "[TERM, \"A=b c\"]", "[TERM, \"A=b c\"]", "[\"9A\"]" },
	{ POLICY_F_proc_env, "[A=]", NULL, "[\"=x\"]" },
	{ POLICY_F_proc_env, "[LC_*]", NULL, "[\"*\"]" },
	{ POLICY_F_proc_env, "[A=b*]", NULL, "[\"A*B\"]" },
	{ POLICY_F_proc_git_identity, "false", NULL, "no" },
	{ POLICY_F_proc_terminal, "raw", NULL, "null" },
	{ POLICY_F_proc_nesting, "true", NULL, "yes" },
	{ POLICY_F_proc_nesting, "False", "false", "\"true\"" },
	{ POLICY_F_proc_commands, "{allow: [git], deny: [\"rm *\"]}", NULL, "{forbid: [rm]}" },
	{ POLICY_F_proc_commands, "{}", NULL, "[git]" },
	{ POLICY_F_proc_children, "4", NULL, "65" },
	{ POLICY_F_proc_children_depth, "2", NULL, "0" },
	{ POLICY_F_channels,
	  "[{name: c, from: [parent], to: [a], schema: '{\"type\": \"object\"}'}]",
	  "[{\"name\":\"c\",\"from\":[\"parent\"],\"to\":[\"a\"],\"schema\":\"{\\\"type\\\": "
	  "\\\"object\\\"}\"}]",
	  "[{from: [parent], to: [a]}]" },
	{ POLICY_F_res_cpu, "\"2\"", "2", "0" },
	{ POLICY_F_res_cpu, "0.5", NULL, "-1" },
	{ POLICY_F_res_cpu, "500m", "0.5", "5000" },
	{ POLICY_F_res_memory, "4Gi", NULL, "1Mi" },
	{ POLICY_F_res_memory, "25%", NULL, "101%" },
	{ POLICY_F_res_memory, "null", "none", "0%" },
	{ POLICY_F_res_memory, "4294967296", "4Gi", "10000000000000000000" },
	{ POLICY_F_res_pids, "64", NULL, "1" },
	{ POLICY_F_res_pids, "none", NULL, "1.5" },
	{ POLICY_F_res_disk, "1500M", NULL, "nan" },
	{ POLICY_F_res_disk, "~", "none", "1e9" },
	{ POLICY_F_res_inodes, "1000", NULL, "1000000000000000000000000000000" },
	{ POLICY_F_res_open_files, "1024", NULL, "[1]" },
	{ POLICY_F_res_output, "10Mi", NULL, "0" },
	{ POLICY_F_res_timeout, "300", NULL, "0" },
	{ POLICY_F_res_timeout, "1h30m", "5400", "-5" },
	{ POLICY_F_res_timeout, "0.25", NULL, ".inf" },
	{ POLICY_F_res_gpus, "all", NULL, "0" },
	{ POLICY_F_res_gpus, "[0, 2]", NULL, "[64]" },
	{ POLICY_F_res_gpus, "[]", "none", "[all]" },
	{ POLICY_F_cred_mode, "just_in_time", NULL, "jit" },
	{ POLICY_F_cred_scanning, "true", NULL, "on" },
	{ POLICY_F_cred_scan_requests, "redact", NULL, "true" },
	{ POLICY_F_cred_scan_output, "block", NULL, "strip" },
	{ POLICY_F_cred_scan_workspace, "log", NULL, "redact" },
	{ POLICY_F_cred_scan_personal, "true", NULL, "yes please" },
	{ POLICY_F_cred_leaks, "strip", NULL, "true" },
	{ POLICY_F_cred_grants, "[]", NULL, "[{name: a}]" },
	{ POLICY_F_cred_ssh, "[{hosts: [git@a.example]}]", "[{\"hosts\":[\"git@a.example\"]}]",
	  "[{hosts: [\"-o\"]}]" },
	{ POLICY_F_cred_gpg, "[ABCDEF0123456789ABCDEF0123456789abcdef01]", NULL, "[ABCDEF]" },
	{ POLICY_F_appr_mode, "ask", NULL, "allow" },
	{ POLICY_F_appr_timeout, "60", NULL, "none" },
	{ POLICY_F_appr_never, "['host:*.example.com']", "[\"host:*.example.com\"]",
	  "[example.com]" },
	{ POLICY_F_appr_proposals, "false", NULL, "ask" },
	{ POLICY_F_appr_on_timeout, "deny", NULL, "allow" },
	{ POLICY_F_watch_rules,
	  "[{name: a, count: denials, above: 0, within_seconds: 1m, do: log}]",
	  "[{\"name\":\"a\",\"count\":\"denials\",\"within_seconds\":60}]",
	  "[{name: a, count: denials, within_seconds: 0}]" },
	{ POLICY_F_watch_rules, "[{name: b, count: bytes_out, above: 1Ki, except: [\"host:a*\"]}]",
	  "[{\"name\":\"b\",\"count\":\"bytes_out\",\"above\":1024,\"except\":[\"host:a*\"]}]",
	  "[{name: b, count: bytes}]" },
	{ POLICY_F_watch_labels, "[{name: a, paths: [x]}]", "[{\"name\":\"a\",\"paths\":[\"x\"]}]",
	  "[{name: a}]" },
	{ POLICY_F_canary_files, "[~/.netrc, /srv/x]", "[\"~/.netrc\", /srv/x]", "[../x]" },
	{ POLICY_F_canary_hosts, "[a.example]", NULL, "[\"a b\"]" },
	{ POLICY_F_canary_variables, "[A_TOKEN]", NULL, "[\"A B\"]" },
	{ POLICY_F_canary_git_remotes, "[\"b=https://h.example/p\"]", NULL,
	  "[b=http://h.example/p]" },
	{ POLICY_F_canary_do, "kill", NULL, "ask" },
	{ POLICY_F_audit_level, "full", NULL, "all" },
	{ POLICY_F_audit_journal, "none", NULL, "/var/log/ward" },
	{ POLICY_F_audit_on_full, "continue", NULL, "ignore" },
	{ POLICY_F_audit_sinks, "[{type: file, to: /x}]", "[{\"type\":\"file\",\"to\":\"/x\"}]",
	  "[{type: file}]" },
	{ POLICY_F_tools, "tools.yaml", NULL, "[tools.yaml]" },
	{ POLICY_F_gvisor_platform, "ptrace", NULL, "qemu" },
	{ POLICY_F_req_isolation, "landlock", NULL, "container" },
	{ POLICY_F_req_limits, "cgroup", NULL, "null" },
	{ POLICY_F_req_idmap, "true", NULL, "1" },
	{ POLICY_F_req_landlock, "true", NULL, "2" },
};

static void field_document(struct buf *out, enum policy_field field, const char *value)
{
	const char *path = policy_row(field)->path, *dot = strchr(path, '.');

	if (dot)
		buf_printf(out, "%.*s:\n  %s: %s\n", (int)(dot - path), path, dot + 1, value);
	else
		buf_printf(out, "%s: %s\n", path, value);
}

static void test_every_row(void **state)
{
	bool seen[POLICY_FIELDS] = { false };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		auto_buf good = { 0 }, bad = { 0 };
		auto_strv lines = { 0 }, refused = { 0 };
		auto_free char *text = NULL;
		struct policy p;

		seen[values[i].field] = true;
		field_document(&good, values[i].field, values[i].good);
		read_text(&p, "f", good.data, good.len, &lines);
		if (lines.len)
			fail_msg("%s: %s", good.data, lines.items[0]);
		text = policy_text(&p, values[i].field);
		assert_string_equal(text, values[i].text ? values[i].text : values[i].good);
		assert_int_equal(p.origin[values[i].field].source, POLICY_FILE);
		policy_clear(&p);

		field_document(&bad, values[i].field, values[i].bad);
		assert_true(read_text(&p, "f", bad.data, bad.len, &refused) < 0);
		policy_clear(&p);
	}
	for (unsigned i = 0; i < POLICY_FIELDS; i++)
		if (!seen[i])
			fail_msg("%s has no test value", policy_row(i)->path);
}

/* What policy_text() writes reads back as the same. */
static void test_text_round_trip(void **state)
{
	static const char doc[] =
		"network: {mode: restricted, egress_allowlist: ['*.github.com', {host: db.corp, "
		"ports: [5432], mode: tcp, "
		"private: true}], ingress: [80, 81]}\n"
		"filesystem: {host_mounts: [{path: '/a b', at: /c}, ~/x], hide: ['!#x', 'yes', "
		"\"t\\tb\"]}\n"
		"process: {commands: {deny: [a, 'b c'], allow: [git]}, env: ['A=1', B]}\n"
		"credentials: {grants: [{name: n, source: 'env:N', hosts: [a.example], header: 'X: "
		"{}'}]}\n"
		"resources: {memory_limit: 1537, cpu_limit: 1.25, timeout_seconds: 90.5}\n";
	auto_strv lines = { 0 };
	struct policy p;

	(void)state;
	read_text(&p, "f", doc, strlen(doc), &lines);
	assert_int_equal(lines.len, 1); /* 1537 bytes of memory are too few */
	policy_clear(&p);
	strv_free(&lines);
	read_text(&p, "f", doc,
		  strlen(doc) - strlen("resources: {memory_limit: 1537, cpu_limit: 1.25, "
				       "timeout_seconds: 90.5}\n"),
		  &lines);
	assert_int_equal(lines.len, 0);
	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		auto_free char *text = policy_text(&p, i), *again = NULL;
		auto_strv more = { 0 };
		auto_buf one = { 0 };
		struct policy q;

		field_document(&one, i, text);
		read_text(&q, "f", one.data, one.len, &more);
		if (more.len)
			fail_msg("%s: %s", one.data, more.items[0]);
		again = policy_text(&q, i);
		assert_string_equal(text, again);
		policy_clear(&q);
	}
	policy_clear(&p);
}

static void test_all_errors_at_once(void **state)
{
	(void)state;
	expect("ward.yaml",
	       "versoin: 1\n"
	       "filesystem:\n"
	       "  mode: readwrite\n"
	       "  hide: [a, {b: c}]\n"
	       "resources:\n"
	       "  memory_limit: 4 Gi\n"
	       "  cpu_limit: -2\n"
	       "  pid_limit: 3\n"
	       "timeout_seconds: 3\n"
	       "process: {nesting: yes}\n",
	       "ward.yaml:1:1: versoin: unknown key; did you mean \"version\"?",
	       "ward.yaml:3:9: filesystem.mode: expected read_only, review or read_write, found "
	       "\"readwrite\"; did you mean \"read_write\"?",
	       "ward.yaml:4:13: filesystem.hide[1]: expected text, found a map",
	       "ward.yaml:6:17: resources.memory_limit: expected a size such as 512Mi or 4Gi, a "
	       "share such as 50%, at least 4Mi, or none, found \"4 Gi\"; no spaces within",
	       "ward.yaml:7:14: resources.cpu_limit: expected a number of processors such as 2 or "
	       "0.5, from 0.01 to 4096, or none, found \"-2\"",
	       "ward.yaml:8:3: resources.pid_limit: unknown key; did you mean \"pids_limit\"?",
	       "ward.yaml:9:1: timeout_seconds: unknown key; did you mean "
	       "resources.timeout_seconds or approvals.timeout_seconds?",
	       "ward.yaml:10:20: process.nesting: expected true or false, found \"yes\"; write "
	       "true, without quotes",
	       NULL);
	expect("p.json",
	       "{\"isolation\": 3,\n \"resources\": {\"pids_limit\": 1.5, \"x\": "
	       "1},\n\t\"filesystem\": null,\n \"isolation\": \"native\"}",
	       "p.json:4:2: isolation: duplicate key, first in line 1; "
	       "remove one of them",
	       "p.json:1:15: isolation: expected native, oci, gvisor, vm or wasm, found 3",
	       "p.json:2:30: resources.pids_limit: expected a whole number, from 2 to 4194304, or "
	       "none, found 1.5",
	       "p.json:2:35: resources.x: unknown key; known here: cpu_limit, memory_limit, "
	       "pids_limit, disk_limit, "
	       "inode_limit, open_files, output_limit, timeout_seconds, gpus",
	       NULL);
}

static void test_empty(void **state)
{
	static const char *const empties[] = {
		"",    "\n\n",         "# only a comment\n",       "---\n", "{}",
		"~\n", "resources:\n", "\xef\xbb\xbfversion: 1\n", "null"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(empties); i++)
		expect("f", empties[i], NULL);
	expect("f", "\"text\"",
	       "f:1:1: policy: expected a map with keys such as filesystem and resources, found "
	       "\"text\"",
	       NULL);
	expect("f", "- a\n", "f:1:1: policy: expected a map...", NULL);
}

static void test_yaml_refusals(void **state)
{
	(void)state;
	expect("f", "image: &a host\ntools: *a\n", "f:1:8: anchors (&name)...",
	       "f:2:8: aliases (*name)...", NULL);
	expect("f", "filesystem: {hide: [*.key]}\n", "f:1:22: not YAML: while scanning an alias...",
	       NULL);
	expect("f", "filesystem:\n  protect: [!Makefile]\n",
	       "f:2:22: not YAML: while scanning a tag, did not find expected whitespace or line "
	       "break; a value that begins with...",
	       NULL);
	expect("f", "image: !!str host\n", "f:1:8: tags (!name)...", NULL);
	expect("f", "filesystem:\n  <<: {a: b}\n", "f:2:3: merge keys (<<)...",
	       "f:2:3: filesystem.<<: unknown key...", NULL);
	expect("f", "version: 1\n---\nversion: 1\n", "f:2:1: a policy is one document...", NULL);
	expect("f", "version: 1\nversion: 1\n", "f:2:1: version: duplicate key, first in line 1...",
	       NULL);
	expect("f", "image: \"a\\0b\"\n", "f:1:8: a NUL character...", NULL);
	expect("f", "[a]: b\n", "f:1:1: a key must be a word...", NULL);
	expect("f", "image: [\n", "f:2:1: not YAML: ...", NULL);
	expect("f", "\timage: host\n",
	       "f:1:1: not YAML: while scanning for the next token, found character that cannot "
	       "start any token; indent with spaces...",
	       NULL);
	expect("f", "image: \"\xff\"\n", "f:1:1: not YAML: invalid leading UTF-8 octet...", NULL);
	expect("f", "image: \x01\n", "f:1:1: not YAML: control characters are not allowed...",
	       NULL);
}

static void test_json_refusals(void **state)
{
	(void)state;
	expect("f", "{\"image\": \"host\",}",
	       "f:1:18: not JSON: expected a key in double quotes, found \"}\"; remove the comma "
	       "before it",
	       NULL);
	expect("f", "{\"image\": 'host'}",
	       "f:1:11: not JSON: expected a value, found \"'host'\"...", NULL);
	expect("f", "{\"image\": True}",
	       "f:1:11: not JSON: expected a value, found \"True\"; text must be in double "
	       "quotes...",
	       NULL);
	expect("f", "{\"image\": NaN}", "f:1:11: not JSON: expected a value...", NULL);
	expect("f", "{\"version\": 01}", "f:1:13: not JSON: expected a value...", NULL);
	expect("f", "{\"version\": 1} x",
	       "f:1:16: not JSON: expected the end of the document, found \"x\"", NULL);
	expect("f", "{\"version\": 1",
	       "f:1:14: not JSON: expected a comma or }, the text ends here", NULL);
	expect("f", "{\"image\": \"a\\u0000\"}", "f:1:14: a NUL character...", NULL);
	expect("f", "{\"image\": \"\\ud800x\"}", "f:1:13: not JSON: expected both halves...", NULL);
	expect("f", "{\"image\": \"\xff\"}", "f:1:12: not UTF-8...", NULL);
	expect("f", "{\"image\": \"a\nb\"}", "f:1:13: not JSON: expected a closing quote...", NULL);
	expect("f", "{\"image\": \"\\x\"}", "f:1:13: not JSON: expected one of...", NULL);
	expect("f", "{\"\xc3\xa4\": 1, \"version\": 2}", "f:1:2: \xc3\xa4: unknown key...",
	       "f:1:21: version: expected a whole number, only 1, found 2...", NULL);
	expect("f", "{\"image\": \"\\ud83d\\ude00\\u00e4\\/\"}", NULL);
}

static void test_bounds(void **state)
{
	auto_buf deep = { 0 }, wide = { 0 }, large = { 0 }, many = { 0 };
	auto_strv lines = { 0 };
	struct policy p;

	(void)state;
	for (int i = 0; i < 5000; i++)
		buf_puts(&deep, "[");
	expect("f", deep.data, "f:1:33: more than 32 levels deep", NULL);
	buf_free(&deep);
	for (int i = 0; i < 5000; i++)
		buf_puts(&deep, "{\"a\":");
	expect("f", deep.data, "f:1:161: more than 32 levels deep", NULL);
	for (int i = 0; i < 300; i++)
		buf_printf(&wide, "k%d:\n", i);
	read_text(&p, "f", wide.data, wide.len, &lines);
	assert_int_equal(lines.len, 101);
	assert_string_equal(lines.items[0], "f:257:1: a map may have at most 256 keys");
	assert_string_equal(lines.items[100], "too many errors; the rest is not listed");
	policy_clear(&p);
	for (int i = 0; i < 1024 * 1024 + 1; i++)
		buf_add(&large, "#", 1);
	expect("f", large.data, "f:1:1: a policy has at most 1048576 bytes, this has 1048577",
	       NULL);
	buf_puts(&many, "filesystem: {hide: [a");
	for (int i = 0; i < 100000; i++)
		buf_puts(&many, ",bcd");
	buf_puts(&many, "]}\n");
	expect("f", many.data, NULL);
}

/* Nothing that a file or its name holds reaches the terminal as it is. */
static void test_no_escape_sequences(void **state)
{
	(void)state;
	expect("a\x1b[2J", "image: [\"\\e[31m\"]\n\"\\e]0;x\\a\": 1\n",
	       "a\\x1b[2J:1:8: image: expected text, found a list",
	       "a\\x1b[2J:2:1: \\x1b]0;x\\x07: unknown key...", NULL);
	expect("f", "filesystem: {mode: \"\\e[31m\\x9b\\n\"}",
	       "f:1:20: filesystem.mode: expected read_only, review or read_write, found "
	       "\"\\x1b[31m\\u{009b}\\n\"",
	       NULL);
}

static const struct {
	const char *rule, *canonical; /* NULL: refused */
} rules[] = {
	{ "api.openai.com:443", "{\"host\":\"api.openai.com\",\"ports\":[443]" },
	{ "API.OpenAI.com.", "{\"host\":\"api.openai.com\",\"ports\":[443]" },
	{ "*.github.com:8443", "{\"host\":\"*.github.com\",\"ports\":[8443]" },
	{ "*", "{\"host\":\"*\"" },
	{ "10.0.0.0/8:5432", "{\"host\":\"10.0.0.0/8\",\"ports\":[5432]" },
	{ "192.0.2.1", "{\"host\":\"192.0.2.1\"" },
	{ "2001:db8::1", "{\"host\":\"2001:db8::1\",\"ports\":[443]" },
	{ "[2001:db8::1]:80", "{\"host\":\"2001:db8::1\",\"ports\":[80]" },
	{ "[2001:db8::/32]:80", "{\"host\":\"2001:db8::/32\",\"ports\":[80]" },
	{ "xn--bcher-kva.example", "{\"host\":\"xn--bcher-kva.example\"" },
	{ "", NULL },
	{ ":443", NULL },
	{ "a.example:0", NULL },
	{ "a.example:65536", NULL },
	{ "a.example:", NULL },
	{ "a.example:4 43", NULL },
	{ "https://a.example", NULL },
	{ "a.example/path", NULL },
	{ "a..example", NULL },
	{ ".example", NULL },
	{ "a b", NULL },
	{ "a%00b", NULL },
	{ "user@a.example", NULL },
	{ "b\xc3\xbc"
	  "cher.example",
	  "{\"host\":\"xn--bcher-kva.example\"" },
	{ "*.B\xc3\xbc"
	  "cher.example.",
	  "{\"host\":\"*.xn--bcher-kva.example\"" },
	{ "B\xc3\x9c"
	  "CHER.example",
	  NULL },
	{ "-a.example", NULL },
	{ "*a.example", NULL },
	{ "a.*.example", NULL },
	{ "127.1", NULL },
	{ "2130706433", NULL },
	{ "0x7f000001", NULL },
	{ "0177.0.0.1", NULL },
	{ "10.0.0.1/8", NULL },
	{ "10.0.0.0/33", NULL },
	{ "10.0.0.0/", NULL },
	{ "::ffff:10.0.0.1", NULL },
	{ "[a.example]:443", NULL },
	{ "[::1", NULL },
	{ "fe80::1%eth0", NULL },
};

static void test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		auto_buf doc = { 0 };
		auto_strv lines = { 0 };
		struct policy p;

		buf_printf(&doc, "network: {egress_allowlist: [\"%s\"]}\n", rules[i].rule);
		read_text(&p, "f", doc.data, doc.len, &lines);
		if ((lines.len == 0) != (rules[i].canonical != NULL))
			fail_msg("%s: %s", rules[i].rule, lines.len ? lines.items[0] : "accepted");
		if (rules[i].canonical && strncmp(p.net_egress.items[0], rules[i].canonical,
						  strlen(rules[i].canonical)) != 0)
			fail_msg("%s: %s", rules[i].rule, p.net_egress.items[0]);
		policy_clear(&p);
	}
	expect("f",
	       "network:\n  egress_allowlist:\n  - {host: a.example, methods: ['G T'], paths: [x, "
	       "/y], headers: [X-A]}\n  - {host: b.example, git: [psh], refs: [main]}\n"
	       "  - {host: c.example, graphql: [mutations, 'query:a b'], json_rpc: ['a:']}\n  - "
	       "{host: d.example, refs: [refs/heads/*]}\n"
	       "  - {host: e.example, git: [fetch], refs: [refs/heads/*], repositories: "
	       "[team/x]}\n",
	       "f:3:33: network.egress_allowlist[0].methods[0]: expected a method such as GET, "
	       "found \"G T\"",
	       "f:3:49: network.egress_allowlist[0].paths[0]: expected a path that begins with / "
	       "or *, without ? and #, with \\* for a literal star, found \"x\"",
	       "f:3:67: network.egress_allowlist[0].headers[0]: expected \"Name: PATTERN\", found "
	       "\"X-A\"",
	       "f:4:29: network.egress_allowlist[1].git[0]: expected fetch, push, force, delete or "
	       "options, found \"psh\"; did you mean \"push\"?",
	       "f:4:42: network.egress_allowlist[1].refs[0]: expected a full name such as "
	       "refs/heads/agent/*, found \"main\"; a branch is refs/heads/NAME, ...",
	       "f:5:58: network.egress_allowlist[2].json_rpc: a rule has one of graphql, json_rpc "
	       "and git; write two rules for the host, with paths",
	       "f:5:33: network.egress_allowlist[2].graphql[0]: expected query, mutation or "
	       "subscription, with or without :FIELD, or persisted, found \"mutations\"; did you "
	       "...",
	       "f:5:44: network.egress_allowlist[2].graphql[1]: expected query...",
	       "f:5:69: network.egress_allowlist[2].json_rpc[0]: expected a method, or "
	       "METHOD:NAME, such as tools/call:search, found \"a:\"",
	       "f:6:23: network.egress_allowlist[3].refs: has no effect without git; add git: "
	       "[fetch] or git: [fetch, push]",
	       "f:7:37: network.egress_allowlist[4].refs: restricts pushes, but the "
	       "rule does not allow push; write git: [fetch, push]",
	       "f:7:74: network.egress_allowlist[4].repositories[0]: expected the path of a "
	       "repository such as /team/project, found \"team/x\"",
	       NULL);
	expect("f",
	       "network:\n  egress_allowlist:\n  - {host: a.example, mode: splice, methods: "
	       "[GET]}\n",
	       "f:3:37: network.egress_allowlist[0].methods: works in mode inspect only; write "
	       "mode: inspect",
	       NULL);
	expect("f", "network:\n  egress_allowlist:\n  - {hots: a.example, ports: [0]}\n",
	       "f:3:5: network.egress_allowlist[0]: the key \"host\" is missing",
	       "f:3:6: network.egress_allowlist[0].hots: unknown key; did you mean \"host\"?",
	       "f:3:31: network.egress_allowlist[0].ports[0]: expected a whole number, from 1 to "
	       "65535, found \"0\"; the number is out of range",
	       NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_every_row),
		cmocka_unit_test(test_text_round_trip),
		cmocka_unit_test(test_all_errors_at_once),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_yaml_refusals),
		cmocka_unit_test(test_json_refusals),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_no_escape_sequences),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
