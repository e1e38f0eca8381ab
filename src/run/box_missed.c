/*
 * Logins, libraries and the git repository that a failed command missed. In: what complaint.c
 * found in the end of its standard error (tables/complaints.def). Out: a denial with the option
 * that gives a login by a grant, so that no token goes inside, that makes the whole repository the
 * workspace, or that shows the user's own libraries (pip's and gem's --user) read-only. Runs in the
 * supervisor after the sandbox is dead.
 *
 * The words are the sandbox's: a login's option is ward's own text with a checked host name in it,
 * and a library is looked for in directories of the table only, under a name without a slash or a
 * dot.
 */
#include "run/box_internal.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "event/result.h"
#include "observe/complaint.h"
#include "observe/learn_path.h"
#include "plan/plan_root.h"
#include "plan/spec.h"
#include "policy/hostname.h"

static const struct library {
	const char *path;
	unsigned up;
	const char *variable;
} libraries[] = {
#define LIBRARY(text, path, up, variable) { path, up, variable },
#include "complaints.def"
};

/* The text with `word` in place of `mark`, which it has at most once. */
static void put_filled(const char *text, const char *mark, const char *word, struct buf *out)
{
	const char *at = strstr(text, mark);

	buf_add(out, text, at ? (size_t)(at - text) : strlen(text));
	if (at)
		buf_printf(out, "%s%s", word, at + strlen(mark));
}

void box_report_login(struct box *b, const struct complaint *c)
{
	static const char why[] = "your logins and tokens are not inside; a grant puts one into "
				  "requests outside";
	struct ward_event v = event_make(EVENT_CREDENTIAL_USE, ACTION_DENY, "login");
	auto_buf what = { 0 }, remedy = { 0 };
	struct host h;
	bool named = c->word[0] && host_read(c->word, strlen(c->word), &h) == HOST_FINE &&
		     h.kind == HOST_NAME;

	if (b->plan->spec->policy.cred_grants.len)
		return; /* one of them may have been refused outside */
	buf_printf(&what, "login%s%s", named ? " to " : "", named ? h.name : "");
	put_filled(c->advice, "HOST", named ? h.name : "HOST", &remedy);
	if (what.failed || remedy.failed || box_is_reported(b->result, buf_text(&what)))
		return;
	event_text(&v, FIELD_HOST, named ? h.name : NULL);
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	result_deny(b->result, buf_text(&what), why, buf_text(&remedy));
}

/* The path of the first match without its last `up` names; NULL: none. The caller frees. */
static char *find_library(const struct library *l, const char *home, const char *name)
{
	auto_buf pattern = { 0 };
	char *found = NULL;
	glob_t matches = { 0 };

	buf_puts(&pattern, home);
	put_filled(l->path + 1, "NAME", name, &pattern);
	if (!pattern.failed && glob(buf_text(&pattern), GLOB_NOSORT, NULL, &matches) == 0)
		found = strdup(matches.gl_pathv[0]);
	for (unsigned i = 0; found && i < l->up; i++)
		*strrchr(found, '/') = '\0';
	globfree(&matches);
	return found;
}

static void report_library(struct box *b, const struct library *l, const char *home, char *dir,
			   const char *name)
{
	static const char why[] = "your home has it, and the sandbox has a home of its own";
	struct ward_event v = event_make(EVENT_FILE_MISSING, ACTION_DENY, dir);
	bool unmounted = b->plan->level == LEVEL_LANDLOCK;
	char own[PLAN_USER_MAX + 8];
	auto_buf what = { 0 }, remedy = { 0 };

	buf_printf(&what, "library %s", name);
	if (unmounted)
		buf_printf(&remedy, "--ro %s --env %s=%s", dir, l->variable, dir);
	else
		buf_printf(&remedy, "filesystem.host_mounts: [{path: \"%s\", at: \"%s%s\"}]", dir,
			   plan_home(b->plan, own), dir + strlen(home));
	if (what.failed || remedy.failed || box_is_reported(b->result, buf_text(&what)))
		return;
	event_text(&v, FIELD_RULE, "filesystem.host_mounts");
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	result_deny(b->result, buf_text(&what), why, buf_text(&remedy));
}

void box_report_library(struct box *b, const char *name)
{
	const char *set = getenv("HOME");
	auto_free char *home = set && *set == '/' ? path_clean(set) : NULL;

	if (!home || !text_is_plain(home))
		return;
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		auto_free char *dir = find_library(&libraries[i], home, name), *shown = NULL;
		enum learn_verdict verdict =
			dir ? learn_generalise(dir, home, b->plan->workspace, &shown) : LEARN_GONE;

		if (verdict != LEARN_GIVE || !text_is_plain(dir) || strcmp(shown, dir) != 0)
			continue;
		report_library(b, &libraries[i], home, dir, name);
		return;
	}
}

/* The nearest directory above the workspace that has a .git and can be a workspace; NULL: none. The
 * caller frees. */
static char *find_repository(const char *workspace)
{
	auto_free char *dir = strdup(workspace);
	struct ward_err ignored = { 0 };
	char *slash;

	while (dir && (slash = strrchr(dir, '/')) && slash != dir) {
		auto_free char *git = NULL;

		*slash = '\0';
		git = path_join(dir, ".git");
		if (git && access(git, F_OK) == 0)
			return workspace_check(dir, &ignored) == 0 ? take_ptr(dir) : NULL;
	}
	return NULL;
}

void box_report_repository(struct box *b)
{
	static const char why[] = "only one directory of it is the workspace, and the sandbox has "
				  "nothing around that";
	auto_free char *git = path_join(b->plan->workspace, ".git"), *root = NULL;
	struct ward_event v;
	auto_buf what = { 0 }, remedy = { 0 };

	if (!git || access(git, F_OK) == 0)
		return; /* it is inside: git refused it for another reason */
	root = find_repository(b->plan->workspace);
	if (!root || !text_is_plain(root))
		return;
	buf_printf(&what, "git repository %s", root);
	buf_printf(&remedy, "--workspace %s", root);
	if (what.failed || remedy.failed || box_is_reported(b->result, buf_text(&what)))
		return;
	v = event_make(EVENT_FILE_MISSING, ACTION_DENY, root);
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, buf_text(&remedy));
	event_flag(&v, FIELD_OBSERVED);
	event_emit(b->result->events, &v);
	result_deny(b->result, buf_text(&what), why, buf_text(&remedy));
}
