/*
 * The judgement over one file of a git directory. In: its path, what stat says, and its bytes or
 * their beginning. Out: whether it may stay, with the reason. Pure; the sweep runs it, in the
 * supervisor, on a repository that was made while an agent ran; fuzzed (fuzz/git_judge.c).
 *
 * Everything here is an allow-list: a name that no row of tables/gitdata.def has, a type that git
 * does not make, a form that its reader does not know are refused. What a file points at is not
 * resolved here: `points` tells the caller to do that.
 */
#include "rules/git_judge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "rules/git_config.h"
#include "rules/git_index.h"
#include "rules/git_link.h"
#include "rules/git_object.h"
#include "rules/git_ref.h"
#include "rules/git_reflog.h"
#include "rules/git_state.h"

static struct git_judged *say(struct git_judged *j, enum git_verdict verdict, const char *format,
			      ...) __attribute__((format(printf, 3, 4)));

/* Keeps the gravest verdict, with its reason. */
static struct git_judged *say(struct git_judged *j, enum git_verdict verdict, const char *format,
			      ...)
{
	va_list args;

	if (verdict <= j->verdict)
		return j;
	j->verdict = verdict;
	va_start(args, format);
	vsnprintf(j->why, sizeof(j->why), format, args);
	va_end(args);
	return j;
}

/* What a configuration has said so far. */
struct config {
	struct git_judged *j;
	struct strv urls, used; /* remotes with an address; all that are named */
};

static int see_setting(void *ctx, const struct gitconfig_entry *entry)
{
	struct config *c = ctx;
	const char *why = "";
	bool path = false;
	auto_buf name = { 0 };
	enum git_config_verdict v = git_config_allowed(entry, c->j->kind, &why);

	text_escape(&name, entry->section);
	if (*entry->subsection) {
		buf_puts(&name, ".");
		text_escape(&name, entry->subsection);
	}
	buf_printf(&name, ".%s", entry->key);
	if (v == GIT_CONFIG_REFUSED)
		say(c->j, GIT_REFUSE, "has a setting %.100s that %s", buf_text(&name), why);
	if (v == GIT_CONFIG_URL) {
		git_url_ok(entry->value, &path);
		say(c->j, GIT_CONFIRM, "has a setting %.100s that %s", buf_text(&name), why);
		if (strcmp(entry->section, "remote") == 0 && strcmp(entry->key, "url") == 0)
			strv_add(&c->urls, entry->subsection);
	}
	if (strcmp(entry->section, "remote") == 0 && *entry->subsection)
		strv_add(&c->used, entry->subsection);
	if (v == GIT_CONFIG_REMOTE)
		strv_add(&c->used, entry->value);
	c->j->points |= path || v == GIT_CONFIG_WORKTREE;
	return name.failed || c->urls.failed || c->used.failed ? -ENOMEM : 0;
}

static void judge_config(struct git_judged *j, const struct git_file *f)
{
	struct config c = { .j = j };
	const char *why = "";
	size_t line = 0;
	int status = git_config_read((const char *)f->bytes, f->n, see_setting, &c, &why, &line);

	if (status == -EINVAL)
		say(j, GIT_REFUSE, "is configuration with %s (line %zu)", why, line);
	else if (status != 0)
		say(j, GIT_REFUSE, "cannot be judged: out of memory");
	for (size_t i = 0; i < c.used.len; i++)
		if (!strv_has(&c.urls, c.used.items[i]))
			say(j, GIT_REFUSE,
			    "has a remote without a URL, or a branch of one: git treats the name "
			    "as a path or a URL");
	strv_free(&c.urls);
	strv_free(&c.used);
}

static void judge_index(struct git_judged *j, const struct git_file *f)
{
	struct git_index_info info;
	const char *why;

	if (git_index_read(f->bytes, f->n, f->hash, NULL, NULL, &info, &why) != 0)
		say(j, GIT_REFUSE, "is a rejected index: %s", why);
	else if (info.hidden)
		say(j, GIT_REPORT, "hides changes of %u files (assume-unchanged, skip-worktree)",
		    info.hidden);
}

static bool ref_ok(const struct git_file *f, bool head)
{
	const char *to;
	size_t n;

	return (head ? git_head_read : git_ref_read)(f->bytes, f->n, f->hash, &to, &n) !=
	       GIT_REF_BAD;
}

/* Why the bytes have not the form, static text; NULL: they have it. */
static const char *form_refused(enum git_form form, const struct git_file *f)
{
	const char *why = NULL, *to;
	uint32_t count;
	size_t n;

	switch ((int)form) {
	case GIT_FORM_LOOSE:
		return git_loose_ok(f->bytes, f->n) ? NULL : "is not a loose object";
	case GIT_FORM_PACK:
		return git_pack_ok(f->bytes, f->n, &count) ? NULL : "is not a pack of version 2";
	case GIT_FORM_DATA:
	case GIT_FORM_LFS:
		return NULL;
	case GIT_FORM_REF:
		return ref_ok(f, false)
			       ? NULL
			       : "is not a ref (an object id or \"ref: refs/...\", and a newline)";
	case GIT_FORM_HEAD:
		return ref_ok(f, true) ? NULL
				       : "is not a HEAD (an object id or \"ref: refs/heads/...\", "
					 "and a newline)";
	case GIT_FORM_PACKED_REFS:
		return git_packed_read(f->bytes, f->n, f->hash, NULL, NULL, &why) == 0 ? NULL : why;
	case GIT_FORM_REFLOG:
		return git_reflog_read(f->bytes, f->n, f->hash, NULL, NULL, &why) == 0 ? NULL : why;
	case GIT_FORM_FETCH_HEAD:
		return git_fetch_head_ok(f->bytes, f->n, f->hash) ? NULL : "is not a FETCH_HEAD";
	case GIT_FORM_GITDIR:
		return git_worktree_gitdir_read(f->bytes, f->n, &to, &n)
			       ? NULL
			       : "is not the place of a worktree";
	case GIT_FORM_COMMONDIR:
		return git_commondir_ok(f->bytes, f->n)
			       ? NULL
			       : "points git to another directory than \"../..\"";
	default:
		return git_state_refused(form, f->bytes, f->n, f->hash);
	}
}

/* Type, mode and size: what can be said without the content. */
static void judge_stat(struct git_judged *j, const struct git_file *f,
		       const struct git_place *place)
{
	bool object = place->form == GIT_FORM_LOOSE || place->form == GIT_FORM_PACK ||
		      place->form == GIT_FORM_LFS;

	if (!S_ISREG(f->mode))
		say(j, GIT_REFUSE, "is not a regular file");
	else if (f->mode & (S_ISUID | S_ISGID))
		say(j, GIT_REFUSE, "is a file with a set-id bit");
	else if (place->treat == GIT_TREAT_REFUSE)
		say(j, GIT_REFUSE, "%s", place->why);
	else if (place->treat == GIT_TREAT_DROP)
		say(j, GIT_DROP, "%s", place->why);
	else if (place->treat == GIT_TREAT_DERIVED)
		say(j, GIT_DERIVED, "%s", place->why);
	else if (f->links > 1 && !object)
		say(j, GIT_REFUSE,
		    "has a second name (a hard link), by which it can be changed later");
	else if (f->size > git_form_max(place->form))
		say(j, GIT_REFUSE, "is larger than git would make it");
	else if (f->n < f->size && f->n < git_form_needs(place->form))
		say(j, GIT_REFUSE, "could not be read completely");
	else if (f->links > 1)
		say(j, GIT_COPY,
		    "is an object with a second name (a hard link), by which it can be changed "
		    "later");
}

size_t git_judge_needs(const char *path, enum git_dir_kind kind, unsigned hash, size_t *ret_max)
{
	struct git_place place = git_path_find(path, kind, hash, false);
	bool kept = place.treat == GIT_TREAT_ADMIT || place.treat == GIT_TREAT_REPORT ||
		    place.treat == GIT_TREAT_MERGE;

	*ret_max = git_form_max(place.form);
	return kept ? git_form_needs(place.form) : 0;
}

struct git_judged git_judge(const struct git_file *file)
{
	struct git_file copy = *file, *f = &copy;
	struct git_place place = git_path_find(f->path, f->kind, f->hash, S_ISDIR(f->mode));
	struct git_judged j = { .verdict = GIT_ADMIT, .form = place.form, .kind = place.kind };
	const char *why;

	if (!f->bytes) {
		f->bytes = (const uint8_t *)"";
		f->n = 0;
	}
	if (S_ISDIR(f->mode)) {
		if (place.treat == GIT_TREAT_REFUSE)
			say(&j, GIT_REFUSE, "%s", place.why);
		return j;
	}
	judge_stat(&j, f, &place);
	if (j.verdict > GIT_COPY)
		return j;
	j.points = place.form == GIT_FORM_GITDIR;
	if (place.form == GIT_FORM_CONFIG) {
		judge_config(&j, f);
	} else if (place.form == GIT_FORM_INDEX) {
		judge_index(&j, f);
	} else {
		why = form_refused(place.form, f);
		if (why)
			say(&j, GIT_REFUSE, "%s", why);
	}
	if (place.treat == GIT_TREAT_REPORT)
		say(&j, GIT_REPORT, "%s", place.why);
	return j;
}
