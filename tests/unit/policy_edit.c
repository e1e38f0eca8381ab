/* Editing a policy file: where a value goes, that everything else stays as it was, and what is
 * refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy_edit.h"

struct row {
	const char *name, *before, *field, *value, *after;
};

#define EGRESS "network.egress_allowlist"

static const struct row rows[] = {
	{ "w.yaml", "", EGRESS, "a.example:443",
	  "network:\n  egress_allowlist:\n    - \"a.example:443\"\n" },
	{ "w.yaml", "# nothing yet\n", EGRESS, "a.example",
	  "# nothing yet\nnetwork:\n  egress_allowlist:\n    - a.example\n" },
	{ "w.yaml", "version: 1", EGRESS, "a.example",
	  "version: 1\nnetwork:\n  egress_allowlist:\n    - a.example\n" },
	{ "w.yaml", "version: 1\n# the end\n", EGRESS, "a.example",
	  "version: 1\n# the end\nnetwork:\n  egress_allowlist:\n    - a.example\n" },
	{ "w.yaml", "version: 1\n...\n", EGRESS, "a.example",
	  "version: 1\nnetwork:\n  egress_allowlist:\n    - a.example\n...\n" },
	/* a list with a line for each */
	{ "w.yaml",
	  "network:\n  egress_allowlist:   # who\n    - b.example  # why\n  # more of it\n  mode: "
	  "restricted\n",
	  EGRESS, "a.example",
	  "network:\n  egress_allowlist:   # who\n    - b.example  # why\n    - a.example\n  # "
	  "more of it\n  mode: restricted\n" },
	{ "w.yaml", "network:\n  egress_allowlist:\n  - b.example\n", EGRESS, "*.a.example",
	  "network:\n  egress_allowlist:\n  - b.example\n  - \"*.a.example\"\n" },
	{ "w.yaml",
	  "network:\n  egress_allowlist:\n    - host: b.example\n      ports:\n        - 443 # "
	  "x\nversion: 1\n",
	  EGRESS, "{host: a.example, methods: [GET]}",
	  "network:\n  egress_allowlist:\n    - host: b.example\n      ports:\n        - 443 # x\n "
	  "   - {host: a.example, methods: [GET]}\nversion: 1\n" },
	{ "w.yaml", "network:\n  egress_allowlist:\n    - b.example", EGRESS,
	  "[a.example, \"c.example:80\"]",
	  "network:\n  egress_allowlist:\n    - b.example\n    - a.example\n    - "
	  "\"c.example:80\"" },
	/* in brackets */
	{ "w.yaml", "network:\n  egress_allowlist: [b.example]  # few\n", EGRESS, "a.example:80",
	  "network:\n  egress_allowlist: [b.example, \"a.example:80\"]  # few\n" },
	{ "w.yaml", "network: { egress_allowlist: [] }\n", EGRESS, "a.example",
	  "network: { egress_allowlist: [a.example] }\n" },
	{ "w.yaml",
	  "network:\n  egress_allowlist: [\n    b.example, # one\n    c.example # two\n  ]\n",
	  EGRESS, "a.example",
	  "network:\n  egress_allowlist: [\n    b.example, # one\n    c.example, # two\n    "
	  "a.example\n  ]\n" },
	{ "w.yaml", "network:\n  egress_allowlist: [\n    b.example,\n  ]\n", EGRESS, "a.example",
	  "network:\n  egress_allowlist: [\n    b.example,\n    a.example,\n  ]\n" },
	{ "w.yaml", "{network: {mode: restricted}}\n", EGRESS, "a.example",
	  "{network: {mode: restricted, egress_allowlist: [a.example]}}\n" },
	/* nothing there, or everything commented out */
	/* null is no list: the file has an error */
	{ "w.yaml", "network:\n  egress_allowlist:\n", EGRESS, "a.example", NULL },
	{ "w.yaml", "network:  # closed\n#  mode: none\nversion: 1\n", EGRESS, "a.example",
	  "network:  # closed\n  egress_allowlist:\n    - a.example\n#  mode: none\nversion: 1\n" },
	{ "w.yaml", "network: ~\nversion: 1\n", EGRESS, "a.example",
	  "network: {egress_allowlist: [a.example]}\nversion: 1\n" },
	{ "w.yaml", "network:\n    mode: restricted   # yes\n\nversion: 1\n", EGRESS, "a.example",
	  "network:\n    mode: restricted   # yes\n    egress_allowlist:\n      - "
	  "a.example\n\nversion: 1\n" },
	/* words and numbers */
	{ "w.yaml", "process:\n  syscalls: strict # tight\n", "process.syscalls", "build",
	  "process:\n  syscalls: build # tight\n" },
	{ "w.yaml", "resources: {memory_limit: \"1Gi\"}\n", "resources.memory_limit", "2Gi",
	  "resources: {memory_limit: \"2Gi\"}\n" },
	{ "w.yaml", "resources:\r\n  pids_limit: 10\r\n", "resources.memory_limit", "2Gi",
	  "resources:\r\n  pids_limit: 10\r\n  memory_limit: \"2Gi\"\r\n" },
	{ "w.yaml", "version: 1\n", "resources.pids_limit", "64",
	  "version: 1\nresources:\n  pids_limit: 64\n" },
	{ "w.yaml", "network:\n  ingress: deny_all # closed\n", "network.ingress", "8080",
	  "network:\n  ingress: [8080] # closed\n" },
	{ "w.yaml", "isolation: native\n", "isolation", "oci", "isolation: [native, oci]\n" },
	{ "w.yaml", "# é ü\nfilesystem:\n  hide: ['é'] # ü\n", "filesystem.hide", "x y",
	  "# é ü\nfilesystem:\n  hide: ['é', \"x y\"] # ü\n" },
	{ "w.yaml", "filesystem:\n  hide:\n    - |-\n      a\n    # b\n", "filesystem.hide", "c",
	  "filesystem:\n  hide:\n    - |-\n      a\n    - c\n    # b\n" },
	{ "w.yaml", "version: 1\n", "process.env", "FOO",
	  "version: 1\nprocess:\n  env: [TERM, COLORTERM, NO_COLOR, TZ, LANG, LANGUAGE, LC_ALL, "
	  "LC_CTYPE, LC_COLLATE, LC_MESSAGES, LC_NUMERIC, LC_TIME, FOO]\n" },
	{ "w.yaml", "process: {env: [TERM]}\n", "process.env", "FOO=a b",
	  "process: {env: [TERM, \"FOO=a b\"]}\n" },
	/* JSON */
	{ "w.json", "{}", EGRESS, "a.example",
	  "{\"network\": {\"egress_allowlist\": [\"a.example\"]}}" },
	{ "w.json",
	  "{\n  \"network\": {\n    \"egress_allowlist\": [\n      \"b.example\"\n    ]\n  }\n}\n",
	  EGRESS, "{host: a.example, ports: [80], private: true}",
	  "{\n  \"network\": {\n    \"egress_allowlist\": [\n      \"b.example\",\n      "
	  "{\"host\": \"a.example\", \"ports\": [80], \"private\": true}\n    ]\n  }\n}\n" },
	{ "w.json", "{\n\t\"version\": 1\n}\n", "resources.pids_limit", "64",
	  "{\n\t\"version\": 1,\n\t\"resources\": {\"pids_limit\": 64}\n}\n" },
	{ "w.json", "{\"process\":{\"syscalls\":\"strict\"}}", "process.syscalls", "build",
	  "{\"process\":{\"syscalls\":\"build\"}}" },
	/* refused: no such field, no such value, a file with errors, no place */
	{ "w.yaml", "version: 1\n", "network.egress", "a.example", NULL },
	{ "w.yaml", "version: 1\n", EGRESS, "a b", NULL },
	{ "w.yaml", "version: 7\n", EGRESS, "a.example", NULL },
	{ "w.yaml", "? network\n: mode: open\n", "network.ingress", "80",
	  "? network\n: mode: open\n  ingress:\n    - 80\n" },
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct ward_err e = { 0 };
		auto_buf out = { 0 };
		int r = policy_edit(row->name, (const uint8_t *)row->before, strlen(row->before),
				    row->field, row->value, &out, &e);

		if (!row->after) {
			if (r != -EINVAL || !e.why[0])
				fail_msg("row %zu: %d, and this was made: %s", i, r,
					 buf_text(&out));
			continue;
		}
		if (r != 0)
			fail_msg("row %zu: %d: %s", i, r, e.why);
		assert_string_equal(buf_text(&out), row->after);
	}
}

/* What the document says already is left alone, in whatever words. */
static void test_nothing_to_do(void **state)
{
	static const char document[] = "network:\n  egress_allowlist: [A.example.]\nfilesystem:\n  "
				       "host_mounts: [{path: /opt, mode: read_write}]\n";
	static const char *const pairs[][2] = { { EGRESS, "a.example:443" },
						{ EGRESS, "{host: a.example}" },
						{ "filesystem.host_mounts", "/opt" },
						{ "network.mode", "none" },
						{ EGRESS, "[]" },
						{ "network.ingress", "deny_all" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct ward_err e = { 0 };
		auto_buf out = { 0 };

		assert_int_equal(policy_edit("w.yaml", (const uint8_t *)document, strlen(document),
					     pairs[i][0], pairs[i][1], &out, &e),
				 1);
		assert_string_equal(buf_text(&out), document);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows),
					    cmocka_unit_test(test_nothing_to_do) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
