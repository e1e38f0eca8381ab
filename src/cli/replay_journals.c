/*
 * The journals of past runs, for what tries a policy on them: ward check --replay and --unused,
 * ward watch suggest. In: runs, files of journals, or neither: all runs of this workspace. Out:
 * their events in order, after all of a journal was verified; one that was changed is an error, and
 * nothing of it is used. Run by ward-explain with the user's rights.
 */
#include "cli/replay_journals.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/verify.h"
#include "cli/explain_parts.h"
#include "event/event.h"
#include "plan/project.h"
#include "plan/spec.h"

static int fail_changed(const char *name, uint64_t line, const char *what, struct ward_err *e)
{
	ward_fail(e, EBADMSG, "the journal %.200s was changed: line %" PRIu64 ": %.200s", name,
		  line, what);
	return ward_remedy(e, "ward audit verify shows details; the journal was not used");
}

/* The index is verified before the first run, once for all of them: there may be thousands. */
static int check_run(struct replay_source *w, int audit_fd, const char *run, struct ward_err *e)
{
	struct verify *v = w->verified;

	if (!v) {
		v = w->verified = calloc(1, sizeof(*v));
		if (!v)
			return ward_fail(e, ENOMEM, "out of memory");
		v->audit_fd = audit_fd;
		verify_index(v);
	}
	verify_run(v, run);
	if (v->fault_count)
		return fail_changed(v->faults[0].file, v->faults[0].line, v->faults[0].what, e);
	return v->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int replay_run(struct replay_source *w, int audit_fd, const char *run, struct ward_err *e)
{
	int r = check_run(w, audit_fd, run, e);

	if (r < 0)
		return r;
	w->begin(w->context, run);
	w->runs++;
	explain_events(audit_fd, run, w->see, w->context);
	return 0;
}

/* A file by itself: its chain must hold from its first line on. Judged only after all of it was
 * checked. */
static int replay_file(struct replay_source *w, const char *path, bool judge, struct ward_err *e)
{
	static char scratch[EVENT_LINE_MAX];
	struct chain chain = { 0 };
	struct ward_event v;
	struct lines l;
	const char *line;
	size_t n;
	int r = lines_open(&l, AT_FDCWD, path);

	if (r < 0)
		return ward_fail(e, -r, "cannot open %.300s: %s", path, strerror(-r));
	if (judge)
		w->begin(w->context, path);
	while ((r = lines_next(&l, &line, &n)) > 0) {
		if (!judge && chain_check(&chain, line, n) != CHAIN_FINE) {
			r = fail_changed(
				path, l.number,
				"it does not follow the line before, or is not a journal line", e);
			break;
		}
		if (judge && event_decode(line, n, scratch, &v, NULL))
			w->see(w->context, &v);
	}
	if (r == 0 && !judge && l.at < l.len)
		r = fail_changed(path, l.number + 1, "it is truncated", e);
	else if (r == -EBADMSG && !e->code)
		r = fail_changed(path, l.number + 1, "it is too long", e);
	lines_close(&l);
	w->runs += judge;
	return r;
}

static int replay_word(struct replay_source *w, int audit_fd, const char *word, struct ward_err *e)
{
	auto_free char *run = NULL;
	int r;

	if (strchr(word, '/') || access(word, F_OK) == 0) {
		r = replay_file(w, word, false, e);
		return r < 0 ? r : replay_file(w, word, true, e);
	}
	if (audit_fd < 0)
		return ward_fail(e, ENOENT,
				 "there is neither a journal for run %.60s nor such a file", word);
	r = audit_find_run(audit_fd, word, &run, e);
	return r < 0 ? r : replay_run(w, audit_fd, run, e);
}

/* Whether a run was in this workspace. */
static bool is_here(int audit_fd, const char *run, const char *here)
{
	static char scratch[EVENT_LINE_MAX];
	struct ward_event v = event_make(EVENT_RUN_NOTE, ACTION_LOG, NULL);
	const struct event_value *workspace =
		audit_first(audit_fd, run, scratch, &v) ? event_get(&v, FIELD_WORKSPACE) : NULL;

	return workspace && strlen(here) == workspace->len &&
	       memcmp(here, workspace->text, workspace->len) == 0;
}

/* Every run of this workspace; with --all of every one. */
static int replay_all(struct replay_source *w, int audit_fd, struct ward_err *e)
{
	auto_free char *here = NULL, *project = NULL;
	auto_strv runs = { 0 };
	int r = audit_fd < 0 ? ward_fail(e, ENOENT, "there is no journal yet")
			     : lines_runs(audit_fd, &runs, e);

	if (r == 0 && !w->all && !w->wants)
		r = workspace_here(&here, e);
	if (r == 0 && here)
		r = project_find(here, &project, NULL, e);
	for (size_t i = 0; i < runs.len && r == 0; i++)
		if (w->wants ? w->wants(w->context, audit_fd, runs.items[i])
			     : !here || is_here(audit_fd, runs.items[i], project ? project : here))
			r = replay_run(w, audit_fd, runs.items[i], e);
	if (r == 0 && here && !w->runs)
		strv_add(w->notes, "no run of this workspace is on record; --all compares with "
				   "the runs of every workspace");
	return r;
}

int replay_journals(struct replay_source *w, int audit_fd, char *const *words, size_t count,
		    struct ward_err *e)
{
	int r = count ? 0 : replay_all(w, audit_fd, e);

	for (size_t i = 0; i < count && r == 0; i++)
		r = replay_word(w, audit_fd, words[i], e);
	if (w->verified)
		verify_clear(w->verified);
	free(take_ptr(w->verified));
	return r;
}
