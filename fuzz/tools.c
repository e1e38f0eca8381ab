/*
 * Fuzzes the reader of tools.yaml. The first byte chooses YAML or JSON. Whatever it is: no
 * crash, no leak, errors exactly when it is refused and none that could act on a terminal. What is
 * accepted is checked, made into policies and compared with itself: nothing has grown then.
 */
#include <assert.h>
#include <string.h>

#include "tools/bind.h"
#include "tools/check.h"
#include "tools/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_line(const char *line)
{
	for (; *line; line++)
		assert((unsigned char)*line >= 0x20 && *line != 0x7f);
}

static void try_scopes(const struct tools *t)
{
	const struct scope_place place = { "/w", "/home/u", "/empty" };

	for (size_t i = 0; i < t->file.tools.len; i++) {
		const struct tool_tool *tool = tools_at(tool, &t->file.tools, i);
		struct strv wider = { 0 };
		struct ward_err e = { 0 };
		struct policy p;
		struct buf text = { 0 };

		if (scope_policy(tool, &place, NULL, &p, &wider, &e) == 0) {
			/* what the scope does not name is not there */
			assert(tool->scope.hosts.len || p.net_mode == NET_MODE_NONE);
			assert(tool->scope.write.len || p.fs_mode == FS_MODE_READ_ONLY);
			assert(tool->scope.credentials.len || !p.cred_grants.len);
			scope_document(&p, &text);
		}
		bind_input_schema(tool, &text);
		policy_clear(&p);
		strv_free(&wider);
		buf_free(&text);
	}
}

static void try_checks(const struct tools *t)
{
	struct check_findings f = { .file = "f" };
	struct buf out = { 0 };

	check_each_tool(t, "", 0, &f);
	check_trifecta(t, "/w", "/home/u", &f);
	for (size_t i = 0; i < f.len; i++)
		check_line(f.items[i].message);
	check_report_text(&f, &out);
	check_report_sarif(&f, &out);
	check_report_junit(&f, "f", &out);
	buf_free(&out);
	check_free(&f);
	f.file = "f";
	check_growth(t, t, "/w", "/home/u", NULL, &f);
	assert(check_errors(&f) == 0 || t->file.tools.len);
	for (size_t i = 0; i < f.len; i++) /* a path that cannot be compared counts as grown */
		assert(f.items[i].rule == CHECK_STALE_SIGNOFF || f.items[i].rule == CHECK_GREW);
	check_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct policy_errors errors = { 0 };
	struct tools t;
	int r;

	if (!n || n > 65536)
		return 0;
	r = tools_read(&t, data[0] & 1 ? "f.yaml" : "f", data + 1, n - 1, &errors);
	assert((r == 0) == (errors.lines.len == 0));
	for (size_t i = 0; i < errors.lines.len; i++)
		check_line(errors.lines.items[i]);
	if (r == 0) {
		try_scopes(&t);
		try_checks(&t);
	}
	tools_free(&t);
	strv_free(&errors.lines);
	return 0;
}
