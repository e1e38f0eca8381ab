/*
 * What ward scan prints. In: hits, one after the other. Out: lines, JSON or SARIF 2.1.0 on standard
 * output, a summary on standard error. Never a whole secret: at most its first four characters and
 * never more than a quarter of it, with --redact none. Names of files are untrusted and escaped.
 * Written as it comes, so a flood of hits costs no memory.
 */
#include "scan/scan.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/sarif.h"
#include "base/say.h"
#include "base/sha256.h"
#include "base/text.h"

#define FLUSH_AT 65536
#define SHOWN_MAX 4

static void flush(struct report *r)
{
	int n = r->out.failed ? -ENOMEM : 0;

	if (n == 0 && r->out.len)
		n = io_write_all(STDOUT_FILENO, r->out.data, r->out.len);
	if (n < 0 && r->failed == 0)
		r->failed = n;
	r->out.len = 0;
}

/* The rule and the secret, as a name that does not tell the secret. */
static void fingerprint_of(const struct detect_hit *hit, char ret[FINGERPRINT_DIGITS + 1])
{
	const char *id = detect_rule(hit->rule)->id;
	char hex[SHA256_HEX];
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, id, strlen(id) + 1);
	sha256_add(&s, hit->secret, hit->secret_bytes);
	sha256_end_hex(&s, hex);
	memcpy(ret, hex, FINGERPRINT_DIGITS);
	ret[FINGERPRINT_DIGITS] = 0;
}

static void shown_of(const struct report *r, const struct detect_hit *hit, char ret[16])
{
	size_t n = hit->secret_bytes / 4 < SHOWN_MAX ? hit->secret_bytes / 4 : SHOWN_MAX;

	if (r->options->redact)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = hit->secret[i];

		ret[i] = (char)(c > ' ' && c < 0x7f ? c : '.');
	}
	memcpy(ret + n, "...", 4);
}

/* -- the three forms */

static void write_text(struct report *r, const struct detect_hit *hit, const char *fingerprint)
{
	const struct detect_rule *rule = detect_rule(hit->rule);
	char shown[16];

	shown_of(r, hit, shown);
	text_escape(&r->out, r->path);
	buf_printf(&r->out, ":%llu:%llu: %s %s: %s, ", (unsigned long long)hit->line,
		   (unsigned long long)hit->column, detect_severity(rule->severity), rule->id,
		   rule->title);
	text_escape(&r->out, shown);
	buf_printf(&r->out, " (%zu bytes) %s\n", hit->secret_bytes, fingerprint);
}

static void write_json(struct report *r, const struct detect_hit *hit, const char *fingerprint)
{
	const struct detect_rule *rule = detect_rule(hit->rule);
	char shown[16];

	shown_of(r, hit, shown);
	json_begin_object(&r->json, NULL);
	json_string(&r->json, "path", r->path);
	json_uint(&r->json, "line", hit->line);
	json_uint(&r->json, "column", hit->column);
	json_uint(&r->json, "offset", hit->offset);
	json_uint(&r->json, "length", hit->secret_bytes);
	json_string(&r->json, "rule", rule->id);
	json_string(&r->json, "title", rule->title);
	json_string(&r->json, "severity", detect_severity(rule->severity));
	json_string(&r->json, "shown", shown);
	json_string(&r->json, "fingerprint", fingerprint);
	json_end_object(&r->json);
}

static void write_sarif(struct report *r, const struct detect_hit *hit, const char *fingerprint)
{
	static const enum sarif_level levels[] = { [SEVERITY_LOW] = SARIF_NOTE,
						   [SEVERITY_MEDIUM] = SARIF_WARNING,
						   [SEVERITY_HIGH] = SARIF_ERROR };
	const struct detect_rule *rule = detect_rule(hit->rule);

	sarif_result(&r->json, &(struct sarif_result){ .rule = rule->id,
						       .is_listed = true,
						       .rule_index = (unsigned)hit->rule,
						       .level = levels[rule->severity],
						       .message = rule->title,
						       .path = r->path,
						       .line = hit->line,
						       .column = hit->column,
						       .offset = hit->offset,
						       .bytes = hit->secret_bytes,
						       .fingerprint_name = "wardScan/v1",
						       .fingerprint = fingerprint });
}

static void begin_sarif(struct json *j)
{
	sarif_begin(j, "ward scan", NULL);
	for (size_t i = 0; i < detect_rule_count(); i++)
		sarif_rule(j, &(struct sarif_rule){ .id = detect_rule(i)->id,
						    .title = detect_rule(i)->title });
	sarif_results(j);
}

/* -- the report */

void report_begin(struct report *r)
{
	r->json = (struct json){ .out = &r->out };
	if (r->options->sarif) {
		begin_sarif(&r->json);
	} else if (r->options->json) {
		json_begin_object(&r->json, NULL);
		json_begin_array(&r->json, "findings");
	}
}

void report_hit(void *ctx, const struct detect_hit *hit)
{
	struct report *r = ctx;
	char fingerprint[FINGERPRINT_DIGITS + 1];

	if (detect_rule(hit->rule)->severity < r->least)
		return;
	fingerprint_of(hit, fingerprint);
	if (allow_covers(&r->allow, fingerprint, (int)hit->rule, r->path)) {
		r->allowed++;
		return;
	}
	r->findings++;
	if (r->options->write_baseline) {
		buf_printf(&r->baseline, "fingerprint %s %s in ", fingerprint,
			   detect_rule(hit->rule)->id);
		text_escape(&r->baseline, r->path);
		buf_puts(&r->baseline, "\n");
	}
	if (r->options->sarif)
		write_sarif(r, hit, fingerprint);
	else if (r->options->json)
		write_json(r, hit, fingerprint);
	else
		write_text(r, hit, fingerprint);
	if (r->out.len > FLUSH_AT)
		flush(r);
}

void report_failure(struct report *r, const char *path, const char *why)
{
	auto_buf text = { 0 };

	r->failures++;
	buf_puts(&text, "ward scan: ");
	text_escape(&text, path);
	buf_printf(&text, ": %s\n", why);
	say_err(&text);
}

static void end_lists(struct report *r)
{
	struct json *j = &r->json;

	if (r->options->sarif) {
		sarif_end(j);
		return;
	}
	json_end_array(j);
	json_uint(j, "files", r->files);
	json_uint(j, "bytes", r->bytes);
	json_uint(j, "allowed", r->allowed);
	json_uint(j, "unread", r->failures);
	json_end_object(j);
	buf_puts(&r->out, "\n");
}

int report_end(struct report *r)
{
	auto_buf text = { 0 };

	if (r->options->sarif || r->options->json)
		end_lists(r);
	flush(r);
	buf_printf(&text, "ward scan: %llu finding%s in %llu file%s, %llu bytes",
		   (unsigned long long)r->findings, r->findings == 1 ? "" : "s",
		   (unsigned long long)r->files, r->files == 1 ? "" : "s",
		   (unsigned long long)r->bytes);
	if (r->allowed)
		buf_printf(&text, "; %llu allowed", (unsigned long long)r->allowed);
	if (r->failures)
		buf_printf(&text, "; %llu could not be read", (unsigned long long)r->failures);
	buf_puts(&text, "\n");
	if (!r->options->quiet)
		say_err(&text);
	return r->failures || r->failed < 0                 ? EXIT_REFUSED
	       : r->findings && !r->options->write_baseline ? EXIT_FINDINGS
							    : EXIT_FINE;
}

int report_rules(bool json)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (json)
		json_begin_list(&j, "rules");
	for (size_t i = 0; i < detect_rule_count(); i++) {
		const struct detect_rule *r = detect_rule(i);
		const char *kind = r->kind == DETECT_PII ? "pii" : "secret";

		if (!json) {
			buf_printf(&out, "%-24s %-6s %-6s  %s (%s, %s)\n", r->id, kind,
				   detect_severity(r->severity), r->title, r->source, r->date);
			continue;
		}
		json_begin_object(&j, NULL);
		json_string(&j, "id", r->id);
		json_string(&j, "kind", kind);
		json_string(&j, "severity", detect_severity(r->severity));
		json_string(&j, "title", r->title);
		json_string(&j, "source", r->source);
		json_string(&j, "date", r->date);
		json_end_object(&j);
	}
	if (json)
		json_end_list(&j);
	return say_out(&out, EXIT_FINE);
}
