/*
 * ward trust: the user's word for a policy file. In: a path (default: the project's). Out: what the
 * file, with the files that it extends, widens, and what has changed since it was accepted last;
 * then, after a yes, the SHA-256 of exactly that content is accepted. All of it comes from one
 * reading, so nobody can slip in another content between what is shown and what is accepted. A file
 * with errors is not accepted: nobody could say what it means.
 */
#include "cli/ask.h"
#include "cli/difference.h"
#include "cli/tell.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "event/event.h"
#include "plan/spec.h"
#include "state/trust.h"

/* What a person is asked about. */
static int put_change(const char *file, const struct spec_content *c, struct buf *out,
		      struct ward_err *e)
{
	auto_buf before = { 0 };
	int r = trust_last(c->path, &before, e);

	if (r < 0)
		return r;
	if (r > 0 && (before.len != c->text.len ||
		      memcmp(buf_text(&before), buf_text(&c->text), before.len) != 0)) {
		if (difference_put("accepted before", &before, file, &c->text, out) < 0)
			return ward_fail(e, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < c->wider.len; i++) {
		buf_puts(out, "widens ");
		text_escape(out, c->wider.items[i]);
		buf_puts(out, "\n");
	}
	if (!c->wider.len)
		buf_puts(out, "it grants no more than the defaults\n");
	return 0;
}

static void put_json(const char *file, const struct spec_content *c, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "file", file);
	json_string(&j, "sha256", c->hex);
	json_begin_array(&j, "widens");
	for (size_t i = 0; i < c->wider.len; i++)
		json_string(&j, NULL, c->wider.items[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

/* Nothing to say yes to where nothing is widened. */
static int ask_to_accept(const struct options *o, const struct spec_content *c, struct ward_err *e)
{
	int r = o->yes || !c->wider.len ? 0 : ask_person("accept it? [y/N] ", "accepted", e);

	return r == -EACCES ? ward_remedy(e, "review it, then: ward trust --yes") : r;
}

static int accept(const struct options *o, const char *file, const struct spec_content *c,
		  struct ward_err *e)
{
	auto_buf shown = { 0 }, out = { 0 };
	struct ward_event v;
	int r = put_change(file, c, &shown, e);

	if (r == 0 && !o->json && say_out(&shown, 0) != 0)
		r = ward_fail(e, EIO,
			      "nothing was accepted: what it would be cannot be written to "
			      "standard output");
	if (r == 0)
		r = ask_to_accept(o, c, e);
	if (r == 0)
		r = spec_content_accept(c, e);
	if (r < 0)
		return r;
	v = event_make(EVENT_POLICY_TRUST, ACTION_ALLOW, c->path);
	event_text(&v, FIELD_DIGEST, c->hex);
	tell_done(&v);
	if (o->json) {
		put_json(file, c, &out);
	} else {
		buf_puts(&out, "accepted ");
		text_escape(&out, file);
		buf_printf(&out, " as it is now, sha256 %s\n", c->hex);
	}
	return say_out(&out, EXIT_FINE);
}

int verb_trust(struct options *o)
{
	const char *file = o->word_count ? o->words[0] : NULL;
	struct policy_errors errors = { 0 };
	auto_free char *found = NULL;
	struct spec_content c = { 0 };
	struct ward_err e = { 0 };
	int r = file ? 0 : ask_policy_file(&found, &e);

	file = file ? file : found;
	if (r == 0)
		r = spec_content_read(file, NULL, &c, &errors, &e);
	if (errors.lines.len) {
		ask_print_errors(&errors);
		r = ward_fail(&e, EINVAL, "%.300s has errors and is not accepted", file);
	}
	strv_free(&errors.lines);
	if (r == 0)
		r = accept(o, file, &c, &e);
	spec_content_clear(&c);
	if (r < 0)
		return say_error(&e, o->json, r == -ECANCELED ? EXIT_FINDINGS : EXIT_REFUSED);
	return r;
}
