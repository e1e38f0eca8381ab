/*
 * Where each value of a policy came from. In: a spec. Out: its fields with the file and line, the
 * profile or the command line that set them, as text and as JSON. What a file says is text of
 * somebody else and is escaped. Runs in `ward plan`, `ward policy show` and `ward check`.
 */
#include "plan/spec_origin.h"

#include "base/text.h"

static const char *const sources[] = { [POLICY_DEFAULT] = "default",
				       [POLICY_USER] = "user",
				       [POLICY_PROFILE] = "profile",
				       [POLICY_FILE] = "file",
				       [POLICY_CLI] = "command line" };

/* The name of the document that a value was read from, NULL: none. */
static const char *name_of(const struct policy_origin *o, const struct strv *files)
{
	return o->line && o->file && o->file <= files->len ? files->items[o->file - 1] : NULL;
}

void spec_put_origin(const struct policy *p, const struct strv *files, enum policy_field field,
		     struct buf *out)
{
	const struct policy_origin *o = &p->origin[field];
	const char *name = name_of(o, files);

	if (!name) {
		buf_puts(out, sources[o->source]);
		return;
	}
	text_escape(out, name);
	buf_printf(out, ":%u", o->line);
}

void spec_print_policy(const struct spec *s, struct buf *out)
{
	for (enum policy_field f = 0; f < POLICY_FIELDS; f++) {
		auto_free char *value = NULL;
		auto_buf line = { 0 };

		if (s->policy.origin[f].source == POLICY_DEFAULT || f == POLICY_F_version)
			continue;
		value = policy_text(&s->policy, f);
		buf_printf(&line, "%s: ", policy_row(f)->path);
		text_escape(&line, value ? value : "");
		buf_printf(out, "  %-44s (", buf_text(&line));
		spec_put_origin(&s->policy, &s->files, f, out);
		buf_puts(out, ")\n");
		out->failed |= !value || line.failed;
	}
}

void spec_json_policy(const struct spec *s, struct json *j)
{
	json_begin_object(j, "policy");
	for (enum policy_field f = 0; f < POLICY_FIELDS; f++) {
		const struct policy_origin *o = &s->policy.origin[f];
		auto_free char *value = policy_text(&s->policy, f);

		json_begin_object(j, policy_row(f)->path);
		json_string(j, "value", value);
		json_string(j, "from", sources[o->source]);
		if (name_of(o, &s->files))
			json_string(j, "file", name_of(o, &s->files));
		if (o->line)
			json_uint(j, "line", o->line);
		json_end_object(j);
	}
	json_end_object(j);
}
