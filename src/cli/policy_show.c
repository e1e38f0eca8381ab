/*
 * ward policy show: the policy that a run here would have, without a run. In: a policy file, or the
 * one that ward run would find, and the user's defaults. Out: each value that somebody has set, and
 * where: file and line, profile, environment. Nothing is started and no path that the policy names
 * is looked at. Run by ward-explain with the user's rights.
 */
#include "cli/ask.h"
#include "cli/explain_parts.h"

#include "plan/spec.h"
#include "plan/spec_origin.h"

static void put_text(const struct spec *s, struct buf *out)
{
	size_t before = out->len;

	spec_print_policy(s, out);
	if (out->len == before)
		buf_puts(out, "only the built-in defaults: no file, profile or option sets a "
			      "value\n");
}

int policy_show(struct options *o)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	struct spec s = { 0 };
	int r = ask_spec(o, &s, &e);

	if (r < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "policy_file", s.policy_file);
		json_string(&j, "profile", s.profile);
		spec_json_policy(&s, &j);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else {
		put_text(&s, &out);
	}
	spec_clear(&s);
	return say_out(&out, EXIT_FINE);
}
