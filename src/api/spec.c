/*
 * ward_spec_*: what shall run. In: texts of the host program. Out: a spec that owns copies of them. Nothing is looked at
 * here but that a text is one; what the policy says to it is found out by ward_plan() and ward_start(), in another process.
 * A setter that fails leaves the spec as it was.
 */
#include "api/api.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "lib/spec_mount.h"

struct ward_spec *ward_spec_new(void)
{
	return calloc(1, sizeof(struct ward_spec));
}

void ward_spec_free(struct ward_spec *s)
{
	if (!s)
		return;
	free(s->program);
	for (size_t i = 0; i < REQUEST_TEXTS; i++)
		free(s->texts[i]);
	strv_free(&s->options);
	strv_free(&s->argv);
	free(s);
}

static int check_path(const char *name, const char *path, struct ward_err *e)
{
	if (!path)
		return ward_fail(e, EINVAL, "%s is NULL", name);
	return *path ? 0 : ward_fail(e, EINVAL, "%s is empty", name);
}

/* What becomes part of a policy document. */
static int check_text(const char *name, const char *text, struct ward_err *e)
{
	if (!text)
		return ward_fail(e, EINVAL, "%s is NULL", name);
	return text_is_utf8(text) ? 0 : ward_fail(e, EILSEQ, "%s is not UTF-8", name);
}

static int set_path(char **where, const char *name, const char *path, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	char *copy;

	if (check_path(name, path, &inner) < 0)
		return api_fail(e, &inner);
	copy = strdup(path);
	if (!copy) {
		ward_fail(&inner, ENOMEM, "out of memory");
		return api_fail(e, &inner);
	}
	free(*where);
	*where = copy;
	return 0;
}

int ward_spec_program(struct ward_spec *s, const char *path, struct ward_error *e)
{
	return set_path(&s->program, "the path of the program", path, e);
}

int ward_spec_policy(struct ward_spec *s, const char *file, struct ward_error *e)
{
	return set_path(&s->texts[REQUEST_POLICY], "the policy file", file, e);
}

int ward_spec_workspace(struct ward_spec *s, const char *dir, struct ward_error *e)
{
	return set_path(&s->texts[REQUEST_WORKSPACE], "the workspace", dir, e);
}

int ward_spec_directory(struct ward_spec *s, const char *dir, struct ward_error *e)
{
	return set_path(&s->texts[REQUEST_DIRECTORY], "the directory", dir, e);
}

/* Appends all four, or none of them. */
static int add_option(struct ward_spec *s, const char *field, const char *value, const char *origin, bool append,
		      struct ward_err *e)
{
	const char *parts[] = { field, value, origin, append ? "+" : "" };
	size_t before = s->options.len;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		strv_add(&s->options, parts[i]);
	if (!s->options.failed)
		return 0;
	while (s->options.len > before) {
		free(s->options.items[--s->options.len]);
		s->options.items[s->options.len] = NULL;
	}
	s->options.failed = false;
	return ward_fail(e, ENOMEM, "out of memory");
}

static int set_option(struct ward_spec *s, const char *field, const char *value, const char *origin, bool append,
		      struct ward_error *e)
{
	struct ward_err inner = { 0 };

	if (check_path("the field's name", field, &inner) < 0 ||
	    check_text("the field's name", field, &inner) < 0 ||
	    check_text("the field's value", value, &inner) < 0 ||
	    add_option(s, field, value, origin, append, &inner) < 0) {
		ward_wrap(&inner, "%s", origin);
		return api_fail(e, &inner);
	}
	return 0;
}

int ward_spec_set(struct ward_spec *s, const char *field, const char *value, struct ward_error *e)
{
	return set_option(s, field, value, "ward_spec_set", false, e);
}

int ward_spec_add(struct ward_spec *s, const char *field, const char *value, struct ward_error *e)
{
	return set_option(s, field, value, "ward_spec_add", true, e);
}

int ward_spec_mount(struct ward_spec *s, const char *path, const char *at, int writable, struct ward_error *e)
{
	static const char origin[] = "ward_spec_mount";
	struct ward_err inner = { 0 };
	auto_free char *entry = NULL;

	if (check_path("the path", path, &inner) < 0 || check_text("the path", path, &inner) < 0 ||
	    (at && check_text("where it is inside", at, &inner) < 0) ||
	    spec_mount_entry(path, at, writable != 0, &entry, &inner) < 0 ||
	    add_option(s, SPEC_MOUNT_FIELD, entry, origin, true, &inner) < 0) {
		ward_wrap(&inner, "%s", origin);
		return api_fail(e, &inner);
	}
	return 0;
}

int ward_spec_widen(struct ward_spec *s, int widen)
{
	s->widen = widen != 0;
	return 0;
}

int ward_spec_command(struct ward_spec *s, const char *const argv[], struct ward_error *e)
{
	struct ward_err inner = { 0 };
	struct strv words = { 0 };

	for (size_t i = 0; argv && argv[i]; i++)
		strv_add(&words, argv[i]);
	if (!words.failed && words.len && *words.items[0]) {
		strv_free(&s->argv);
		s->argv = words;
		return 0;
	}
	if (words.failed)
		ward_fail(&inner, ENOMEM, "out of memory");
	else
		ward_fail(&inner, EINVAL, "%s", words.len ? "the name of the command is empty" : "no command was given");
	strv_free(&words);
	return api_fail(e, &inner);
}

int spec_request_of(const struct ward_spec *s, uint32_t flags, struct request *ret_request, struct ward_err *e)
{
	size_t options = s->options.len / 4;
	struct request r = { .flags = flags | (s->widen ? REQUEST_WIDEN : 0), .option_count = options,
			     .arg_count = s->argv.len };

	r.options = calloc(options + 1, sizeof(*r.options));
	r.argv = calloc(r.arg_count + 1, sizeof(*r.argv));
	if (!r.options || !r.argv) {
		request_clear(&r);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < REQUEST_TEXTS; i++)
		r.texts[i] = s->texts[i];
	for (size_t i = 0; i < options; i++) {
		char **at = s->options.items + i * 4;

		r.options[i] = (struct request_option){ at[0], at[1], at[2], *at[3] == '+' };
	}
	for (size_t i = 0; i < r.arg_count; i++)
		r.argv[i] = s->argv.items[i];
	*ret_request = r;
	return 0;
}
