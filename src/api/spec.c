/*
 * ward_spec_*: what shall run. In: texts of the host program. Out: a spec that owns copies of them,
 * and the command line that it stands for. Nothing is looked at here but that a text is one; what
 * the policy says to it is found out by ward_plan() and ward_start(), in another process. A setter
 * that fails leaves the spec as it was.
 */
#include "api/api.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "plan/spec_mount.h"

struct ward_spec *ward_spec_new(void)
{
	return calloc(1, sizeof(struct ward_spec));
}

void ward_spec_free(struct ward_spec *s)
{
	if (!s)
		return;
	free(s->program);
	free(s->policy);
	free(s->profile);
	free(s->workspace);
	free(s->directory);
	free(s->name);
	strv_free(&s->fields);
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
	return set_path(&s->policy, "the policy file", file, e);
}

int ward_spec_profile(struct ward_spec *s, const char *name, struct ward_error *e)
{
	return set_path(&s->profile, "the profile's name", name, e);
}

int ward_spec_workspace(struct ward_spec *s, const char *dir, struct ward_error *e)
{
	return set_path(&s->workspace, "the workspace", dir, e);
}

int ward_spec_directory(struct ward_spec *s, const char *dir, struct ward_error *e)
{
	return set_path(&s->directory, "the directory", dir, e);
}

int ward_spec_name(struct ward_spec *s, const char *name, struct ward_error *e)
{
	return set_path(&s->name, "the name", name, e);
}

/* Both words, or none of them. */
static int add_field(struct ward_spec *s, const char *option, const char *field, const char *value,
		     struct ward_err *e)
{
	size_t before = s->fields.len;

	strv_add(&s->fields, option);
	strv_addf(&s->fields, "%s=%s", field, value);
	if (!s->fields.failed)
		return 0;
	while (s->fields.len > before) {
		free(s->fields.items[--s->fields.len]);
		s->fields.items[s->fields.len] = NULL;
	}
	s->fields.failed = false;
	return ward_fail(e, ENOMEM, "out of memory");
}

static int check_field(const char *field, const char *value, struct ward_err *e)
{
	int r = check_path("the field's name", field, e);

	if (r == 0 && strchr(field, '='))
		r = ward_fail(e, EINVAL, "the field's name contains =");
	if (r == 0)
		r = check_text("the field's name", field, e);
	return r == 0 ? check_text("the field's value", value, e) : r;
}

static int set_field(struct ward_spec *s, const char *option, const char *field, const char *value,
		     struct ward_error *e)
{
	struct ward_err inner = { 0 };

	if (check_field(field, value, &inner) < 0 || add_field(s, option, field, value, &inner) < 0)
		return api_fail(e, &inner);
	return 0;
}

int ward_spec_set(struct ward_spec *s, const char *field, const char *value, struct ward_error *e)
{
	return set_field(s, "--set", field, value, e);
}

int ward_spec_add(struct ward_spec *s, const char *field, const char *value, struct ward_error *e)
{
	return set_field(s, "--add", field, value, e);
}

int ward_spec_mount(struct ward_spec *s, const char *path, const char *at, int writable,
		    struct ward_error *e)
{
	struct ward_err inner = { 0 };
	auto_free char *entry = NULL;

	if (check_path("the path", path, &inner) < 0 || check_text("the path", path, &inner) < 0 ||
	    (at && check_text("the path inside", at, &inner) < 0) ||
	    spec_mount_entry(path, at, writable != 0, &entry, &inner) < 0 ||
	    add_field(s, "--add", SPEC_MOUNT_FIELD, entry, &inner) < 0)
		return api_fail(e, &inner);
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
		ward_fail(&inner, EINVAL, "%s",
			  words.len ? "the name of the command is empty" : "no command given");
	strv_free(&words);
	return api_fail(e, &inner);
}

int ward_spec_terminal(struct ward_spec *s, unsigned rows, unsigned columns, struct ward_error *e)
{
	struct ward_err inner = { 0 };

	if (!rows != !columns || rows > UINT16_MAX || columns > UINT16_MAX) {
		ward_fail(&inner, EINVAL, "not a valid terminal size: %u rows and %u columns", rows,
			  columns);
		return api_fail(e, &inner);
	}
	s->rows = rows;
	s->columns = columns;
	return 0;
}

static void add_pair(struct strv *out, const char *option, const char *value)
{
	if (!value)
		return;
	strv_add(out, option);
	strv_add(out, value);
}

void spec_words(const struct ward_spec *s, uint32_t flags, struct strv *out)
{
	bool starts = !(flags & REQUEST_PLAN);

	add_pair(out, "--policy", s->policy);
	add_pair(out, "--profile", s->profile);
	add_pair(out, "--workspace", s->workspace);
	add_pair(out, "--chdir", s->directory);
	for (size_t i = 0; i < s->fields.len; i++)
		strv_add(out, s->fields.items[i]);
	if (s->widen)
		strv_add(out, "--widen");
	if (starts) {
		strv_add(out, "--detach"); /* so it may be idle */
		add_pair(out, "--name", s->name);
		if (s->rows)
			strv_add(out, "--tty");
	}
	strv_add(out, "--");
	for (size_t i = 0; i < s->argv.len; i++)
		strv_add(out, s->argv.items[i]);
}
