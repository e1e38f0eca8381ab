/*
 * ward profile: what --profile can name. In: ls, or show and a name. Out: the list with what each
 * is for, or a profile's text as a start for one's own. Runs with the user's rights and only reads.
 */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "plan/profile.h"

static int describe(const char *name, struct json *j, struct buf *out, struct ward_err *e)
{
	auto_buf text = { 0 }, about = { 0 };
	auto_free char *where = NULL;
	int r = profile_read(name, &text, &where, e);

	if (r < 0)
		return r;
	profile_about(&text, &about);
	if (j) {
		json_begin_object(j, NULL);
		json_string(j, "name", name);
		json_string(j, "about", buf_text(&about));
		json_string(j, "file", where);
		json_end_object(j);
		return 0;
	}
	buf_printf(out, "%-10s ", name);
	text_escape(out, buf_text(&about));
	if (where) {
		buf_puts(out, " (");
		text_escape(out, where);
		buf_puts(out, ")");
	}
	buf_puts(out, "\n");
	return 0;
}

static int list(const struct options *o, struct ward_err *e)
{
	auto_strv names = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (profile_names(&names, e) < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (o->json)
		json_begin_list(&j, "profiles");
	for (size_t i = 0; i < names.len; i++)
		if (describe(names.items[i], o->json ? &j : NULL, &out, e) < 0)
			return say_error(e, o->json, EXIT_REFUSED);
	if (o->json)
		json_end_list(&j);
	return say_out(&out, EXIT_FINE);
}

static int show(const struct options *o, struct ward_err *e)
{
	auto_buf text = { 0 }, out = { 0 };
	auto_free char *where = NULL;
	struct json j = { .out = &out };

	if (profile_read(o->words[1], &text, &where, e) < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (!o->json)
		return say_out(&text, EXIT_FINE);
	json_begin_object(&j, NULL);
	json_string(&j, "name", o->words[1]);
	json_string(&j, "file", where);
	json_string(&j, "text", buf_text(&text));
	json_end_object(&j);
	buf_puts(&out, "\n");
	return say_out(&out, EXIT_FINE);
}

int verb_profile(struct options *o)
{
	struct ward_err e = { 0 };

	if (strcmp(o->words[0], "ls") == 0 && o->word_count == 1)
		return list(o, &e);
	if (strcmp(o->words[0], "show") == 0 && o->word_count == 2)
		return show(o, &e);
	ward_fail(&e, EINVAL, "expected ls, or show and the name of a profile");
	ward_remedy(&e, "ward profile ls, or ward profile show NAME");
	return say_usage(&e, o);
}
