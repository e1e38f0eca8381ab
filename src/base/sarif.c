/*
 * SARIF. In: rules and results, one after the other. Out: the document, in the buffer of the JSON
 * writer. Pure; runs in whatever program reports findings. Paths become URI references, so a name
 * with any byte in it is a valid one.
 */
#include "base/sarif.h"

#include <string.h>

static void text(struct json *j, const char *key, const char *value)
{
	json_begin_object(j, key);
	json_string(j, "text", value);
	json_end_object(j);
}

void sarif_begin(struct json *j, const char *tool, const char *version)
{
	json_begin_object(j, NULL);
	json_string(j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	json_string(j, "version", "2.1.0");
	json_begin_array(j, "runs");
	json_begin_object(j, NULL);
	json_begin_object(j, "tool");
	json_begin_object(j, "driver");
	json_string(j, "name", tool);
	if (version)
		json_string(j, "version", version);
	json_begin_array(j, "rules");
}

void sarif_rule(struct json *j, const struct sarif_rule *rule)
{
	json_begin_object(j, NULL);
	json_string(j, "id", rule->id);
	text(j, "shortDescription", rule->title);
	if (rule->help)
		text(j, "help", rule->help);
	json_end_object(j);
}

void sarif_results(struct json *j)
{
	json_end_array(j);
	json_end_object(j);
	json_end_object(j);
	json_string(j, "columnKind", "utf16CodeUnits");
	json_begin_array(j, "results");
}

static void put_uri(struct json *j, const char *path)
{
	auto_buf uri = { 0 };

	for (const unsigned char *p = (const unsigned char *)path; *p; p++)
		if ((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') ||
		    (*p >= 'a' && *p <= 'z') || strchr("/._-~", *p))
			buf_add(&uri, p, 1);
		else
			buf_printf(&uri, "%%%02X", *p);
	json_begin_object(j, "artifactLocation");
	json_string(j, "uri", buf_text(&uri));
	json_end_object(j);
}

static void put_region(struct json *j, const struct sarif_result *x)
{
	if (!x->line && !x->bytes)
		return;
	json_begin_object(j, "region");
	if (x->line)
		json_uint(j, "startLine", x->line);
	if (x->line && x->column)
		json_uint(j, "startColumn", x->column);
	if (x->bytes) {
		json_uint(j, "byteOffset", x->offset);
		json_uint(j, "byteLength", x->bytes);
	}
	json_end_object(j);
}

void sarif_result(struct json *j, const struct sarif_result *x)
{
	static const char *const levels[] = { "note", "warning", "error" };

	json_begin_object(j, NULL);
	json_string(j, "ruleId", x->rule);
	if (x->is_listed)
		json_uint(j, "ruleIndex", x->rule_index);
	json_string(j, "level", levels[x->level]);
	text(j, "message", x->message);
	json_begin_array(j, "locations");
	json_begin_object(j, NULL);
	json_begin_object(j, "physicalLocation");
	put_uri(j, x->path);
	put_region(j, x);
	json_end_object(j);
	json_end_object(j);
	json_end_array(j);
	if (x->fingerprint) {
		json_begin_object(j, "partialFingerprints");
		json_string(j, x->fingerprint_name, x->fingerprint);
		json_end_object(j);
	}
	json_end_object(j);
}

void sarif_end(struct json *j)
{
	json_end_array(j);
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
	buf_puts(j->out, "\n");
}
