/*
 * Reports of a check. In: findings. Out: text for people (FILE:LINE:COLUMN, as compilers write it),
 * JSON, SARIF 2.1.0 for code hosts, JUnit for CI: one document each. The messages are harmless for
 * a terminal already; each format escapes for itself. Pure functions.
 */
#include <string.h>

#include "base/json.h"
#include "tools/check.h"

void check_report_text(const struct check_findings *f, struct buf *out)
{
	size_t errors = check_errors(f);

	for (size_t i = 0; i < f->len; i++) {
		const struct check_finding *x = &f->items[i];
		const struct check_rule_row *row = check_rule_row(x->rule);

		buf_printf(out, "%s:%u:%u: %s: %s [%s]\n", x->file, x->line, x->column,
			   row->error ? "error" : "warning", x->message, row->name);
		buf_printf(out, "  %s%s\n", x->fix ? "write: " : "", x->fix ? x->fix : row->help);
	}
	buf_printf(out, "%zu error%s, %zu warning%s\n", errors, errors == 1 ? "" : "s",
		   f->len - errors, f->len - errors == 1 ? "" : "s");
}

void check_report_json(const struct check_findings *f, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_bool(&j, "valid", check_errors(f) == 0);
	json_begin_array(&j, "findings");
	for (size_t i = 0; i < f->len; i++) {
		const struct check_finding *x = &f->items[i];
		const struct check_rule_row *row = check_rule_row(x->rule);

		json_begin_object(&j, NULL);
		json_string(&j, "rule", row->name);
		json_string(&j, "level", row->error ? "error" : "warning");
		json_string(&j, "file", x->file);
		json_uint(&j, "line", x->line);
		json_uint(&j, "column", x->column);
		json_string(&j, "message", x->message);
		json_string(&j, "fix", x->fix ? x->fix : row->help);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

static void sarif_text(struct json *j, const char *key, const char *text)
{
	json_begin_object(j, key);
	json_string(j, "text", text);
	json_end_object(j);
}

static void sarif_rules(struct json *j)
{
	json_begin_array(j, "rules");
	for (unsigned i = 0; i < CHECKS; i++) {
		const struct check_rule_row *row = check_rule_row((enum check_rule)i);

		json_begin_object(j, NULL);
		json_string(j, "id", row->name);
		sarif_text(j, "shortDescription", row->title);
		sarif_text(j, "help", row->help);
		json_end_object(j);
	}
	json_end_array(j);
}

static void sarif_result(struct json *j, const struct check_finding *x)
{
	const struct check_rule_row *row = check_rule_row(x->rule);

	json_begin_object(j, NULL);
	json_string(j, "ruleId", row->name);
	json_uint(j, "ruleIndex", x->rule);
	json_string(j, "level", row->error ? "error" : "warning");
	sarif_text(j, "message", x->message);
	json_begin_array(j, "locations");
	json_begin_object(j, NULL);
	json_begin_object(j, "physicalLocation");
	json_begin_object(j, "artifactLocation");
	json_string(j, "uri", x->file);
	json_end_object(j);
	json_begin_object(j, "region");
	json_uint(j, "startLine", x->line ? x->line : 1);
	json_uint(j, "startColumn", x->column ? x->column : 1);
	json_end_object(j);
	json_end_object(j);
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
}

void check_report_sarif(const struct check_findings *f, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	json_string(&j, "version", "2.1.0");
	json_begin_array(&j, "runs");
	json_begin_object(&j, NULL);
	json_begin_object(&j, "tool");
	json_begin_object(&j, "driver");
	json_string(&j, "name", "ward check");
	json_string(&j, "version", WARD_VERSION);
	sarif_rules(&j);
	json_end_object(&j);
	json_end_object(&j);
	json_begin_array(&j, "results");
	for (size_t i = 0; i < f->len; i++)
		sarif_result(&j, &f->items[i]);
	json_end_array(&j);
	json_end_object(&j);
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

static void xml(struct buf *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			buf_puts(out, "&amp;");
			break;
		case '<':
			buf_puts(out, "&lt;");
			break;
		case '>':
			buf_puts(out, "&gt;");
			break;
		case '"':
			buf_puts(out, "&quot;");
			break;
		default:
			buf_add(out, text, 1);
		}
	}
}

/* One case a rule: a rule without errors passes. */
void check_report_junit(const struct check_findings *f, const char *suite, struct buf *out)
{
	unsigned failed[CHECKS] = { 0 }, failures = 0;

	for (size_t i = 0; i < f->len; i++)
		failed[f->items[i].rule]++;
	for (unsigned i = 0; i < CHECKS; i++)
		failures += failed[i] && check_rule_row((enum check_rule)i)->error;
	buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"");
	xml(out, suite);
	buf_printf(out, "\" tests=\"%d\" failures=\"%u\">\n", CHECKS, failures);
	for (unsigned rule = 0; rule < CHECKS; rule++) {
		const struct check_rule_row *row = check_rule_row((enum check_rule)rule);
		const char *element = row->error ? "failure" : "system-out";

		buf_printf(out, "  <testcase classname=\"ward.check\" name=\"%s\">\n", row->name);
		if (failed[rule])
			buf_printf(out, "    <%s>", element);
		for (size_t i = 0; i < f->len; i++) {
			const struct check_finding *x = &f->items[i];

			if (x->rule != rule)
				continue;
			xml(out, x->file);
			buf_printf(out, ":%u:%u: ", x->line, x->column);
			xml(out, x->message);
			buf_puts(out, "\n");
		}
		if (failed[rule])
			buf_printf(out, "</%s>\n", element);
		buf_puts(out, "  </testcase>\n");
	}
	buf_puts(out, "</testsuite>\n");
}
