/*
 * ward recover: finishes the runs whose supervisor was killed. In: the records in the state
 * directory that no process holds, and the cgroups of starts that were killed before they had a
 * record. Out: how many were finished. Detached sandboxes among them are marked as dead. The
 * guardian becomes this program when it finds its supervisor dead; it prints nothing when there was
 * nothing to do.
 */
#include "audit/journal.h"
#include "cli/ask.h"
#include "control/client.h"
#include "gitview/git_run.h"
#include "limit/limits.h"
#include "plan/etc_cache.h"
#include "recover/recover.h"
#include "review/apply.h"
#include "state/runs.h"
#include "state/store.h"

static void mark_boxes(void)
{
	struct ward_err ignored = { 0 };
	struct boxes all, runs;

	if (runs_list(&runs, &ignored) == 0) /* which removes what dead ones left */
		boxes_clear(&runs);
	if (boxes_list(&all, &ignored) < 0)
		return;
	client_recover(&all);
	boxes_clear(&all);
	boxes_drop_orphans();
}

int verb_recover(struct options *o)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	auto_strv notes = { 0 };
	int finished = recover_runs_noting(&notes, &e);
	unsigned orphans = cgroup_remove_orphans();

	if (finished >= 0)
		finished += (int)orphans;
	mark_boxes();
	review_tidy();
	git_views_tidy(&notes);
	say_notes(&notes);
	etc_cache_tidy();
	if (finished >= 0 && apply_recover(&e) < 0)
		finished = -e.code;
	if (finished >= 0 && journal_recover(SIZE_MAX, &e) < 0)
		finished = -e.code;
	if (finished < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (finished > 0)
		buf_printf(&out, "cleaned up %d killed run%s; see: ward quarantine ls\n", finished,
			   finished == 1 ? "" : "s");
	return say_out(&out, EXIT_FINE);
}
