/*
 * Reports of a check. In: findings. Out: text for people (FILE:LINE:COLUMN, as compilers write it),
 * JSON, SARIF 2.1.0 for code hosts, JUnit for CI: one document each. The messages are harmless for
 * a terminal already; each format escapes for itself. Pure functions.
 */
#include <string.h>

#include "base/json.h"
#include "base/sarif.h"
#include "base/text.h"
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

void check_report_sarif(const struct check_findings *f, struct buf *out)
{
	struct json j = { .out = out };

	sarif_begin(&j, "ward check", WARD_VERSION);
	for (unsigned i = 0; i < CHECKS; i++) {
		const struct check_rule_row *row = check_rule_row((enum check_rule)i);

		sarif_rule(&j, &(struct sarif_rule){ row->name, row->title, row->help });
	}
	sarif_results(&j);
	for (size_t i = 0; i < f->len; i++) {
		const struct check_finding *x = &f->items[i];
		const struct check_rule_row *row = check_rule_row(x->rule);

		sarif_result(&j, &(struct sarif_result){ .rule = row->name,
							 .is_listed = true,
							 .rule_index = x->rule,
							 .level = row->error ? SARIF_ERROR
									     : SARIF_WARNING,
							 .message = x->message,
							 .path = x->file,
							 .line = x->line ? x->line : 1,
							 .column = x->column ? x->column : 1 });
	}
	sarif_end(&j);
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
	text_entities(out, suite);
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
			text_entities(out, x->file);
			buf_printf(out, ":%u:%u: ", x->line, x->column);
			text_entities(out, x->message);
			buf_puts(out, "\n");
		}
		if (failed[rule])
			buf_printf(out, "</%s>\n", element);
		buf_puts(out, "  </testcase>\n");
	}
	buf_puts(out, "</testsuite>\n");
}
