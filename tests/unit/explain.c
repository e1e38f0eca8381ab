/* Explanations: every kind of denial has one, every change that is offered is valid, nothing that
 * was chosen inside acts on a shell or a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "event/event.h"
#include "event/table_names.h"
#include "model/plan.h"
#include "observe/advice.h"
#include "observe/explain.h"
#include "policy/policy_edit.h"

static const struct explain_run run = { .workspace = "/srv",
					.policy_file = "/srv/ward.yaml",
					.home = "/root" };

/* A kind without a row is a denial that nobody explains. */
static void test_every_kind(void **state)
{
	(void)state;
	for (unsigned k = 0; k < EVENT_KINDS; k++) {
		struct ward_event v = event_make((enum event_kind)k, ACTION_DENY, "object");
		struct explanation x;

		if (!explain_knows((enum event_kind)k))
			fail_msg("%s has no row in tables/explain.def",
				 event_kind_name((enum event_kind)k));
		if (!explain_is_denial(&v))
			continue;
		event_text(&v, FIELD_WHY, "because");
		event_text(&v, FIELD_REMEDY, "words only");
		explain_event(&v, &run, &x);
		if (!x.what.len || !x.why.len || !*x.layer || (!x.change_count && !x.advice.len))
			fail_msg("%s: nothing is said about it",
				 event_kind_name((enum event_kind)k));
		explain_clear(&x);
		v.action = ACTION_LOG;
		assert_false(explain_is_denial(&v));
	}
}

/* Every reason of the gateway: a change, or what to do instead. */
static void test_every_reason(void **state)
{
	static const char names[][24] = {
#define REASON(id, name, ...) name,
#include "egress.def"
	};

	(void)state;
	for (size_t i = 1; i < ARRAY_LEN(names); i++) {
		struct ward_event v = event_make(EVENT_CONNECT, ACTION_DENY, "api.example.com:443");
		struct explanation x;

		event_text(&v, FIELD_REASON, names[i]);
		explain_event(&v, &run, &x);
		if (!x.advice.len)
			fail_msg("%s: no advice", names[i]);
		explain_clear(&x);
	}
}

/* Every limit can be raised, whatever it was. */
static void test_every_limit(void **state)
{
	(void)state;
	for (enum limit l = 0; l < LIMITS; l++) {
		struct ward_event v = event_make(EVENT_LIMIT, ACTION_DENY, limit_name(l));
		struct explanation x;

		event_number(&v, FIELD_VALUE, 256 << 20);
		event_text(&v, FIELD_HELD_BY, "watch");
		explain_event(&v, &run, &x);
		if (l == LIMIT_MEMORY) {
			assert_string_equal(x.changes[0].field, "resources.memory_limit");
			assert_string_equal(x.changes[0].value, "512Mi");
		}
		/* so many are no value of these */
		if (l != LIMIT_PIDS && l != LIMIT_OPEN_FILES && l != LIMIT_CPU && !x.change_count)
			fail_msg("%s: no change", limit_name(l));
		explain_clear(&x);
		v = event_make(EVENT_LIMIT, ACTION_DENY, limit_name(l));
		event_number(&v, FIELD_VALUE, 500);
		explain_event(&v, &run, &x);
		assert_int_equal(x.change_count, l != LIMIT_MEMORY && l != LIMIT_DISK);
		explain_clear(&x);
	}
}

struct row {
	enum event_kind kind;
	const char *object, *why, *remedy, *path, *grant, *host;
	const char *command, *yaml; /* NULL: none */
	const char *advice;         /* part of it; NULL: whatever it is */
};

static const struct row rows[] = {
	{ EVENT_CONNECT, "a.example:443", "not listed",
	  "network.egress_allowlist: [\"a.example:443\"]",
	  .command = "ward policy add network.egress_allowlist a.example:443",
	  .yaml = "network:\n  egress_allowlist:\n    - \"a.example:443\"\n" },
	{ EVENT_HTTP, "POST https://a.example/x", "method",
	  "network.egress_allowlist: [{host: \"a.example\", ports: [443], methods: [POST], paths: "
	  "[\"/x\"]}]",
	  .command = "ward policy add network.egress_allowlist '{host: \"a.example\", ports: "
		     "[443], methods: [POST], paths: [\"/x\"]}'" },
	{ EVENT_CONNECT, "10.1.2.3:80", "private",
	  "network.egress_allowlist: [{host: \"10.1.2.3\", ports: [80], private: true}]",
	  .command = "ward policy add network.egress_allowlist '{host: \"10.1.2.3\", ports: [80], "
		     "private: true}'" },
	{ EVENT_HTTP, "GET x", "query",
	  "network.egress_allowlist: [{host: \"a.example\", ports: [443], query: [...]}]",
	  .advice = "query: [...]" },
	{ EVENT_SYSCALL, "ptrace", "not in the default set", "process.syscalls: build",
	  .advice = "earlier events" },
	{ EVENT_EXEC, "claude", "No such file", "the host has it", .path = "claude",
	  .command = "ward policy add filesystem.programs claude" },
	{ EVENT_EXEC, "/opt/a b/x", "No such file", "the host has it", .path = "/opt/a b/x",
	  .command = "ward policy add filesystem.host_mounts '/opt/a b/x'" },
	{ EVENT_EXEC, "nothing", "No such file", "install it", .advice = "install it" },
	{ EVENT_FILE_MISSING, "/opt/data", "not there",
	  "filesystem.host_mounts: [{path: /opt/data}]",
	  .command = "ward policy add filesystem.host_mounts '{path: /opt/data}'" },
	{ EVENT_FILE_MISSING, "/opt/data", "not there",
	  "filesystem.host_mounts: [{path: \"/opt/data\"}]",
	  .command = "ward policy add filesystem.host_mounts /opt/data" },
	{ EVENT_FILE_MISSING, "/home/agent/x", "not there",
	  "filesystem.host_mounts: [{path: \"/root/x\", at: \"/home/agent/x\"}]",
	  .command = "ward policy add filesystem.host_mounts '{path: \"/root/x\", at: "
		     "\"/home/agent/x\"}'" },
	/* what had no remedy when it was asked for has none later, and neither has what may hold
	 * secrets, or everything */
	{ EVENT_FILE_MISSING, "/opt/data", "not there", NULL, .advice = "may contain credentials" },
	{ EVENT_FILE_MISSING, "/root/.ssh/id_rsa", "not there",
	  "filesystem.host_mounts: [{path: \"/root/.ssh/id_rsa\"}]",
	  .advice = "may contain credentials" },
	{ EVENT_FILE_MISSING, "/root/.cargo", "not there",
	  "filesystem.host_mounts: [{path: \"/root/.cargo\"}]", .advice = "too much" },
	{ EVENT_FILE_MISSING, "/x", "not there",
	  "filesystem.host_mounts: [{at: \"/x\", path: \"/opt/../root/.aws\"}]",
	  .advice = "may contain credentials" },
	{ EVENT_FILE_MISSING, "/x", "not there", "filesystem.host_mounts: [\"~/.netrc\"]",
	  .advice = "may contain credentials" },
	{ EVENT_FILE_MISSING, "/x", "not there", "filesystem.host_mounts: [/opt/a, ~/.kube]",
	  .advice = "may contain credentials" },
	{ EVENT_FILE_MISSING, "/root", "not there", "filesystem.host_mounts: [{path: \"/root\"}]",
	  .advice = "too much" },
	{ EVENT_EXEC, "/root/.ssh/x", "No such file", "the host has it", .path = "/root/.ssh/x",
	  .advice = "may contain credentials" },
	{ EVENT_FILE_QUARANTINE, "/srv/.envrc", "direnv", NULL,
	  .command = "ward policy add filesystem.protect '!/.envrc'" },
	{ EVENT_FILE_GUARD, ".git/config", "protected", "words",
	  .command = "ward policy add filesystem.protect '!.git/config'", .advice = "--review" },
	{ EVENT_FILE_QUARANTINE, "/srv/sub/.envrc", "direnv", NULL,
	  .command = "ward policy add filesystem.protect '!sub/.envrc'" },
	{ EVENT_FILE_QUARANTINE, "/srv/x", "set-uid", NULL, .advice = "ward quarantine" },
	{ EVENT_FILE_QUARANTINE, "/srv/*.x", "direnv", NULL, .advice = "ward quarantine" },
	{ EVENT_CREDENTIAL_USE, "openai", "it reached max_uses", .grant = "openai",
	  .host = "a.example", .advice = "max_uses of the grant openai" },
	{ EVENT_CREDENTIAL_USE, "openai", "it has expired and could not be renewed",
	  .grant = "openai", .advice = "ttl_seconds" },
	{ EVENT_CREDENTIAL_LEAK, "openai", "found in a header", .grant = "openai",
	  .host = "evil.example", .advice = "hosts of the grant openai" },
	/* what was chosen inside stays a text */
	{ EVENT_FILE_MISSING, "/opt/$(id)'x", "not there",
	  "filesystem.host_mounts: [{path: \"/opt/$(id)'x\"}]",
	  .command = "ward policy add filesystem.host_mounts '/opt/$(id)'\\''x'" },
	{ EVENT_FILE_MISSING, "/opt/\n\033[2Jx", "not \033[2J there", NULL,
	  .advice = "may not need it" },
	{ EVENT_CONNECT, "x", "y", "network.egress_allowlist: [\"a b\"]", .advice = "" },
	{ EVENT_CONNECT, "x", "y", "network.nothing: [\"a\"]", .advice = "" },
};

static void check_harmless(const struct buf *text)
{
	for (const char *s = buf_text(text); *s; s++)
		assert_true((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct ward_event v = event_make(row->kind, ACTION_DENY, row->object);
		auto_buf command = { 0 }, yaml = { 0 };
		struct explanation x;

		event_text(&v, FIELD_WHY, row->why);
		event_text(&v, FIELD_REMEDY, row->remedy);
		event_text(&v, FIELD_PATH, row->path);
		event_text(&v, FIELD_GRANT, row->grant);
		event_text(&v, FIELD_HOST, row->host);
		explain_event(&v, &run, &x);
		explain_command(&x, &run, &command);
		explain_yaml(&x, 0, &yaml);
		check_harmless(&x.what);
		check_harmless(&x.why);
		check_harmless(&x.advice);
		check_harmless(&command);
		if (strcmp(buf_text(&command), row->command ? row->command : "") != 0)
			fail_msg("row %zu: %s", i, buf_text(&command));
		if (row->yaml)
			assert_string_equal(buf_text(&yaml), row->yaml);
		if (row->advice && !strstr(buf_text(&x.advice), row->advice))
			fail_msg("row %zu: %s", i, buf_text(&x.advice));
		explain_clear(&x);
	}
}

/* Another policy file is named, and one that gives no network gets one. */
static void test_the_run(void **state)
{
	const struct explain_run other = { .workspace = "/srv",
					   .policy_file = "/etc/my policy.yaml",
					   .network_off = true };
	struct ward_event v = event_make(EVENT_DNS, ACTION_DENY, "a.example");
	auto_buf command = { 0 };
	struct explanation x;

	(void)state;
	event_text(&v, FIELD_REMEDY, "network.egress_allowlist: [\"a.example\"]");
	explain_event(&v, &other, &x);
	explain_command(&x, &other, &command);
	assert_string_equal(buf_text(&command),
			    "ward policy add -p '/etc/my policy.yaml' network.egress_allowlist "
			    "a.example network.mode restricted");
	explain_clear(&x);
}

/* The number of a system call tells that it is one by one. */
static void test_system_call(void **state)
{
	struct ward_event v = event_make(EVENT_SYSCALL, ACTION_DENY, "ptrace");
	auto_buf command = { 0 };
	struct explanation x;

	(void)state;
	event_number(&v, FIELD_VALUE, 101);
	event_text(&v, FIELD_REMEDY, "process.syscalls: build");
	explain_event(&v, &run, &x);
	explain_command(&x, &run, &command);
	assert_string_equal(buf_text(&command), "ward policy add process.syscalls build");
	explain_clear(&x);
}

/* A line of the policy as an option: quoted for a shell, --allow alone where it is enough. */
static void test_options(void **state)
{
	static const struct {
		const char *line, *option;
	} lines[] = {
		{ "network.egress_allowlist: [\"a.example\"]", "--allow a.example" },
		{ "network.egress_allowlist: [\"10.0.0.1:80\"]", "--allow 10.0.0.1:80" },
		{ "network.egress_allowlist: [\"[2001:db8::7]:443\"]",
		  "--add network.egress_allowlist='[\"[2001:db8::7]:443\"]'" },
		{ "network.egress_allowlist: [{host: a.example, private: true}]",
		  "--add network.egress_allowlist='{host: a.example, private: true}'" },
		{ "filesystem.host_mounts: [{path: \"/opt/x\"}]", "--ro /opt/x" },
		{ "filesystem.host_mounts: [{path: \"/opt/x\", at: \"/y\"}]", "--ro /opt/x:/y" },
		{ "filesystem.host_mounts: [{path: \"/opt/it's\"}]", "--ro '/opt/it'\\''s'" },
		{ "filesystem.programs: [\"tool\"]", "--add filesystem.programs=tool" },
		{ "process.syscalls: build", "--set process.syscalls=build" },
		{ "resources.memory_limit: 4Gi", "--memory 4Gi" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct explain_change c;
		auto_buf out = { 0 }, wide = { 0 };

		assert_true(explain_read_line(lines[i].line, &c));
		advice_option(&c, 1, false, &out);
		assert_string_equal(buf_text(&out), lines[i].option);
		advice_option(&c, 1, true, &wide);
		assert_int_equal(wide.len, out.len + strlen(" --widen"));
		free(c.value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind),  cmocka_unit_test(test_every_reason),
		cmocka_unit_test(test_every_limit), cmocka_unit_test(test_rows),
		cmocka_unit_test(test_the_run),     cmocka_unit_test(test_system_call),
		cmocka_unit_test(test_options)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
