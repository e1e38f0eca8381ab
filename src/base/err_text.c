/*
 * An error in words. In: an error. Out: "ward: WHAT: WHY" with the remedy below it, or one JSON
 * object. An error may quote untrusted bytes, so all of it is escaped. Pure functions.
 */
#include "base/err_text.h"

#include "base/json.h"
#include "base/text.h"

static void json_refusal(struct json *j, const struct ward_err *e)
{
	json_begin_object(j, "refused");
	json_string(j, "what", e->what);
	json_string(j, "why", e->why);
	json_string(j, "remedy", e->remedy);
	json_end_object(j);
}

void err_json(const struct ward_err *e, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_refusal(&j, e);
	json_end_object(&j);
}

void err_text(const struct ward_err *e, bool json, struct buf *out)
{
	if (json) {
		err_json(e, out);
		buf_puts(out, "\n");
		return;
	}
	buf_puts(out, "ward: ");
	text_escape(out, e->what);
	buf_puts(out, e->what[0] ? ": " : "");
	text_escape(out, e->why);
	buf_puts(out, e->remedy[0] ? "\n  remedy: " : "");
	text_escape(out, e->remedy);
	buf_puts(out, "\n");
}
