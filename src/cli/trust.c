/*
 * ward trust: the user's word for a policy file. In: a path. Out: what the file widens, and the SHA-256 of the content that is accepted from now on. A file with
 * errors is not accepted: nobody could say what it means.
 */
#include "cli/ask.h"

#include <errno.h>

#include "base/json.h"
#include "base/text.h"

static int find_wider(const char *file, struct strv *wider, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	struct policy base = { 0 }, p = { 0 };
	int r = policy_defaults(&base, e);

	if (r == 0)
		r = policy_defaults(&p, e);
	if (r == 0)
		r = spec_read_policy(file, &p, &errors, e);
	if (errors.lines.len) {
		ask_print_errors(&errors);
		r = ward_fail(e, EINVAL, "%.300s has errors and is not accepted", file);
	} else if (r == 0) {
		r = policy_compare(&base, &p, wider);
		r = r < 0 ? ward_fail(e, -r, "comparing with the defaults failed") : 0;
	}
	policy_clear(&p);
	policy_clear(&base);
	strv_free(&errors.lines);
	return r;
}

static void print_trust(const char *file, const char *hex, const struct strv *wider, bool as_json,
			struct buf *out)
{
	struct json j = { .out = out };

	if (as_json) {
		json_begin_object(&j, NULL);
		json_string(&j, "file", file);
		json_string(&j, "sha256", hex);
		json_begin_array(&j, "widens");
		for (size_t i = 0; i < wider->len; i++)
			json_string(&j, NULL, wider->items[i]);
		json_end_array(&j);
		json_end_object(&j);
		buf_puts(out, "\n");
		return;
	}
	for (size_t i = 0; i < wider->len; i++) {
		buf_puts(out, "widens ");
		text_escape(out, wider->items[i]);
		buf_puts(out, "\n");
	}
	if (!wider->len)
		buf_puts(out, "it grants no more than the defaults\n");
	buf_puts(out, "accepted ");
	text_escape(out, file);
	buf_printf(out, " as it is now, sha256 %s\n", hex);
}

int verb_trust(struct options *o)
{
	const char *file = o->word_count ? o->words[0] : "ward.yaml";
	struct ward_err e = { 0 };
	auto_strv wider = { 0 };
	auto_buf out = { 0 };
	char hex[65] = "";

	if (find_wider(file, &wider, &e) < 0 || spec_trust(file, hex, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	print_trust(file, hex, &wider, o->json, &out);
	return say_out(&out, EXIT_FINE);
}
