/*
 * ward trust: the user's word for a policy file. In: a path. Out: what the file widens, and the
 * SHA-256 of the content that is accepted from now on; both come from one reading, so no other
 * content can be slipped in between them. A file with errors is not accepted: no one could say what
 * it means.
 */
#include "cli/ask.h"
#include "cli/tell.h"

#include <errno.h>

#include "base/json.h"
#include "base/text.h"
#include "event/event.h"
#include "plan/spec.h"

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
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	auto_strv wider = { 0 };
	auto_buf out = { 0 };
	char hex[65] = "";
	auto_free char *real = realpath(file, NULL);
	struct ward_event v;
	int r = spec_trust_content(file, &wider, &errors, hex, &e);

	if (errors.lines.len) {
		ask_print_errors(&errors);
		r = ward_fail(&e, EINVAL, "%.300s has errors and is not accepted", file);
	}
	strv_free(&errors.lines);
	if (r < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	v = event_make(EVENT_POLICY_TRUST, ACTION_ALLOW, real ? real : file);
	event_text(&v, FIELD_DIGEST, hex);
	tell_done(&v);
	print_trust(file, hex, &wider, o->json, &out);
	return say_out(&out, EXIT_FINE);
}
