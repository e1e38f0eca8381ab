/* The private git directories of one run, from the plan to the end (git_view.h says what they
 * are). */
#ifndef WARD_GITVIEW_GIT_RUN_H
#define WARD_GITVIEW_GIT_RUN_H

#include "model/plan.h"
#include "model/result.h"

/* Adds a view for every repository of a writable tree; a repository that cannot have one becomes
 * read-only, with a note. */
must_check int plan_add_views(struct plan *p, struct ward_err *e);
/* Frees the list. What is not kept goes with it. NULL is fine. */
void git_views_free(struct git_views *v);

/* The process that takes over what the sandbox did with git (ward-git). */
struct git_run;

/* Starts it where there is a view and changes are not kept for a review: from then on it takes over
 * commits while the sandbox runs. *ret_run is NULL when there is nothing to do. */
must_check int git_run_start(const struct plan *p, struct git_run **ret_run, struct ward_err *e);
/* The sandbox is dead: takes over the rest, puts what was refused into the quarantine, removes the
 * views. run may be NULL: a process is started now if anything changed. Frees run. */
void git_run_end(const struct plan *p, struct git_run *run, struct result *r);

/* For a run that was killed, or a review that is applied: the views of that id, if there are
 * any. */
must_check int git_run_finish(const char *run_id, const char *workspace, struct strv *moved,
			      struct strv *notes, struct ward_err *e);
/* Appends a line for everything that git_run_finish() would take over of that run. */
must_check int git_views_show(const char *run_id, struct strv *lines, struct ward_err *e);
/* Removes the views of a run; there may be none. */
must_check int git_views_remove(const char *run_id, struct ward_err *e);
/* Removes what runs that never began have left, and tries again what could not be imported; what is
 * to be said of it is appended to notes. */
void git_views_tidy(struct strv *notes);

#endif
