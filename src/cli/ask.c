/*
 * From options to a plan: what run and plan share. In: the options as read. Out: a spec and its
 * plan, or one error. All errors of a policy file are printed at once, as FILE:LINE:COLUMN lines
 * that an editor understands; the error that is handed back sums them up.
 */
#include "cli/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/image.h"
#include "engine/engines.h"
#include "plan/plan.h"
#include "plan/project.h"
#include "plan/spec.h"
#include "state/checkpoint.h"

void ask_print_errors(const struct policy_errors *errors)
{
	auto_buf out = { 0 };

	for (size_t i = 0; i < errors->lines.len; i++) {
		text_escape(&out, errors->lines.items[i]);
		buf_puts(&out, "\n");
	}
	say_err(&out);
}

static int fail_policy(const struct policy_errors *errors, bool json, struct ward_err *e)
{
	size_t n = errors->lines.len;

	ask_print_errors(errors);
	if (json) /* a program that reads only the object must see it, too */
		ward_fail(e, EINVAL, "%zu error%s: %.600s", n, n == 1 ? "" : "s, the first",
			  errors->lines.items[0]);
	else
		ward_fail(e, EINVAL, "%zu error%s", n, n == 1 ? "" : "s");
	ward_wrap(e, "policy file");
	return ward_remedy(e, "fix the file; ward check FILE shows all errors");
}

/* Whether it can be carried out, and is what its checkpoint, where there is one, was made under. */
static int check_plan(const struct plan *p, struct ward_err *e)
{
	int r = engine_choose(p)->check ? engine_choose(p)->check(p, e) : 0;

	return r == 0 && p->spec->restore ? checkpoint_match(p, e) : r;
}

/* What the environment says where the command line does not: never a project's word, for ward reads
 * it of its own environment only. */
static const char *from_env(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

int ask_person(const char *question, const char *otherwise, struct ward_err *e)
{
	char answer[16] = "";
	ssize_t n;

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		ward_fail(e, EACCES, "no terminal to ask on; nothing was %s", otherwise);
		return -EACCES;
	}
	(void)!write(STDERR_FILENO, question, strlen(question));
	n = read(STDIN_FILENO, answer, sizeof(answer) - 1);
	if (n > 0 && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return ward_fail(e, ECANCELED, "nothing was %s", otherwise);
}

static int build_spec(const struct options *o, struct spec *ret_spec, struct progress *progress,
		      struct ward_err *e)
{
	const struct spec_request request = {
		.profile = o->profile,
		.default_profile = from_env("WARD_PROFILE"),
		.policy_file = o->policy_file ? o->policy_file : from_env("WARD_POLICY"),
		.policy_unnamed = !o->policy_file && from_env("WARD_POLICY"),
		.isolation = from_env("WARD_ISOLATION"),
		.parent = from_env("WARD_PARENT"),
		.channel = from_env("WARD_CHANNEL"),
		.tool = from_env("WARD_TOOL"),
		.workspace = o->workspace,
		.cwd = o->cwd,
		.options = o->fields,
		.option_count = o->field_count,
		.widen = o->widen,
		.progress = progress,
		.starts = o->verb != VERB_PLAN && o->verb != VERB_POLICY,
		.own_env = o->own_env,
		.tty = o->tty,
		.observe = o->observe,
		.image_command = o->image_command,
		.restore = o->restored,
		.continued = o->continued,
		.argv = o->verb == VERB_POLICY                  ? NULL
			: o->word_count || o->verb != VERB_PLAN ? o->words
								: NULL,
	};
	struct policy_errors errors = { 0 };
	int r = spec_build(&request, ret_spec, &errors, e);

	if (r < 0 && errors.lines.len)
		r = fail_policy(&errors, o->json || o->report_file, e);
	strv_free(&errors.lines);
	return r;
}

int ask_spec(const struct options *o, struct spec *ret_spec, struct ward_err *e)
{
	return build_spec(o, ret_spec, NULL, e);
}

int ask_plan(const struct options *o, const struct plan_system *system, struct spec *ret_spec,
	     struct plan **ret_plan, struct progress *progress, struct ward_err *e)
{
	int r = build_spec(o, ret_spec, progress, e);

	if (r < 0)
		return r;
	r = image_prepare(ret_spec, e);
	if (r == 0)
		r = engine_pick(ret_spec, e);
	if (r == 0)
		r = plan_compile(ret_spec, system, ret_plan, e);
	if (r == 0) {
		r = check_plan(*ret_plan, e);
		if (r < 0)
			plan_free(*ret_plan);
	}
	if (r < 0)
		spec_clear(ret_spec);
	progress_end(progress);
	return r;
}

int ask_policy_file(char **ret_path, struct ward_err *e)
{
	static const char *const names[] = { "ward.yaml", "ward.json" };
	auto_free char *here = NULL, *project = NULL, *found = NULL;
	struct strv said = { 0 };
	auto_buf out = { 0 };
	int r = workspace_here(&here, e);

	if (r == 0)
		r = project_find(here, &project, &said, e);
	for (size_t i = 0; i < said.len; i++) {
		buf_puts(&out, "ward: ");
		buf_puts(&out, said.items[i]); /* escaped where it was made */
		buf_puts(&out, "\n");
	}
	strv_free(&said);
	say_err(&out);
	if (r < 0)
		return r;
	for (size_t i = 0; project && !found && i < ARRAY_LEN(names); i++) {
		found = strcmp(project, here) == 0 ? strdup(names[i])
						   : path_join(project, names[i]);
		if (found && faccessat(AT_FDCWD, found, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
			free(found);
			found = NULL;
		}
	}
	*ret_path = found ? take_ptr(found) : strdup(names[0]);
	return *ret_path ? 0 : ward_fail(e, ENOMEM, "out of memory");
}
