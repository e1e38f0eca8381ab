/*
 * Applying. In: an open review and what is wanted of it. Out: the workspace with those changes, and
 * a report for each path. Runs in the verbs, and at the end of a run with --apply-on-exit, with the
 * user's rights.
 *
 * In order: read and judge the changes, decide what happens to each, write the intent log, do it,
 * take what was done out of the review. What gives way to something of another type is deleted
 * first, then everything new comes, then the rest is deleted: a full disk stops the work before
 * anything is lost. A kill at any point leaves the log; apply_recover() does the same again, and
 * what is in its place already equals the review and is no change.
 */
#include "review/apply_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/io.h"
#include "review/changes_internal.h"
#include "gitview/git_run.h"
#include "guard/guard_internal.h"
#include "base/remove.h"
#include "review/review_internal.h"
#include "state/store_internal.h"

#define LOG_MAX (256u << 20)

bool apply_is_selected(const struct strv *paths, const char *path)
{
	for (size_t i = 0; i < paths->len; i++) {
		size_t n = strlen(paths->items[i]);

		if (n == 0 ||
		    (strncmp(path, paths->items[i], n) == 0 && (path[n] == '\0' || path[n] == '/')))
			return true;
	}
	return paths->len == 0;
}

/* ---- what happens to each ---- */

/* Directories above what was asked for are needed for it. */
static bool is_needed(const struct strv *paths, const struct change *c)
{
	size_t n = strlen(c->path);

	if (apply_is_selected(paths, c->path))
		return true;
	for (size_t i = 0; i < paths->len && S_ISDIR(c->new_mode); i++)
		if (strncmp(paths->items[i], c->path, n) == 0 && paths->items[i][n] == '/')
			return true;
	return false;
}

const struct apply_pick *apply_find_pick(const struct apply_request *q, const char *path)
{
	size_t low = 0, high = q->pick_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(q->picks[middle].path, path);

		if (order == 0)
			return &q->picks[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Directories come with what was picked in them, and go when nothing is left in them. */
static bool has_pick_below(const struct apply_request *q, const struct change *c)
{
	size_t n = strlen(c->path);

	for (size_t i = 0; i < q->pick_count; i++)
		if (strncmp(q->picks[i].path, c->path, n) == 0 && q->picks[i].path[n] == '/')
			return true;
	return false;
}

static enum apply_outcome decide_picked(const struct applying *a, const struct change *c)
{
	const struct apply_pick *pick = apply_find_pick(a->request, c->path);

	if (!pick)
		return c->implied && has_pick_below(a->request, c) ? APPLY_DONE : APPLY_LEFT;
	if (c->refused)
		return APPLY_REFUSED;
	if (c->inode != pick->inode || c->ctime_ns != pick->ctime_ns)
		return APPLY_CONFLICT;
	return pick->content ? APPLY_PART : APPLY_DONE;
}

static enum apply_outcome decide(const struct applying *a, const struct change *c)
{
	const struct apply_request *q = a->request;

	if (q->picked)
		return decide_picked(a, c);
	if (!is_needed(q->paths, c))
		return APPLY_LEFT;
	if (c->refused)
		return APPLY_REFUSED;
	if (c->is_protected && !q->with_protected)
		return APPLY_PROTECTED;
	if (!c->conflict || q->force)
		return APPLY_DONE;
	return q->markers && c->markable ? APPLY_MARKED : APPLY_CONFLICT;
}

/* Whether the workspace gets something of it. */
static bool is_written(enum apply_outcome o)
{
	return o == APPLY_DONE || o == APPLY_MARKED || o == APPLY_PART;
}

/* ---- doing it ---- */

enum pass { PASS_GIVE_WAY, PASS_PUT, PASS_DELETE, PASSES };

static enum pass pass_of(const struct changes *c, const bool *way, size_t i)
{
	if (c->items[i].kind != CHANGE_DELETED)
		return PASS_PUT;
	return way[i] ? PASS_GIVE_WAY : PASS_DELETE;
}

/* A change that is in the workspace now leaves the review; that it is ward's own is noted, or a run
 * that goes on and moves something there would find it changed by somebody else. In a directory
 * that was made anew it must stay, or it would look deleted there. */
static int leave_review(struct applying *a, const struct change *c, bool whole)
{
	auto_buf line = { 0 };
	struct timespec now;
	int status;

	clock_gettime(CLOCK_REALTIME, &now);
	changes_applied_line(&line, c->path,
			     (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	status = line.failed ? -ENOMEM : io_write_all(a->applied_fd, line.data, line.len);
	if (status < 0) {
		ward_fail(a->e, -status, "cannot record what was applied: %s", strerror(-status));
		return ward_remedy(a->e, "free some space in the state directory and run ward "
					 "apply again");
	}
	if (whole && (!c->opaque || c->kind == CHANGE_DELETED)) {
		apply_drop(a->review, c);
		changes_base_drop(a->review, c->path);
	}
	return 0;
}

static int do_one(struct applying *a, size_t i)
{
	const struct change *c = &a->report->changes.items[i];
	int status = apply_log_at(a, c->path);

	if (status < 0)
		return status;
	status = c->kind == CHANGE_DELETED ? apply_delete(a, c)
					   : apply_put(a, c, a->report->outcomes[i]);
	if (status < 0)
		return status;
	if (status == 1)
		a->report->outcomes[i] = APPLY_CONFLICT;
	else if (!S_ISDIR(c->new_mode))
		status = leave_review(a, c, a->report->outcomes[i] != APPLY_PART);
	if (status < 0)
		return status;
	progress_step(a->request->progress, "paths applied");
	if (a->request->stop && a->request->stop(a->request->ctx))
		return ward_fail(a->e, EINTR,
				 "interrupted; what was not applied is still in the review of %s",
				 a->review->id);
	return 0;
}

/* Deletions from the end of the list, so that a directory goes behind what is in it. */
static int do_pass(struct applying *a, enum pass pass, const bool *way)
{
	const struct changes *c = &a->report->changes;
	int status = 0;

	for (size_t k = 0; k < c->len && status == 0; k++) {
		size_t i = pass == PASS_PUT ? k : c->len - 1 - k;

		if (is_written(a->report->outcomes[i]) && pass_of(c, way, i) == pass)
			status = do_one(a, i);
	}
	return status;
}

/* The modes of new directories, and their entries in the review, from the innermost out. */
static int finish_dirs(struct applying *a)
{
	const struct changes *c = &a->report->changes;
	int status = 0;

	for (size_t i = c->len; i-- > 0 && status >= 0;) {
		if (a->report->outcomes[i] != APPLY_DONE || !S_ISDIR(c->items[i].new_mode))
			continue;
		status = apply_dir_mode(a, &c->items[i]);
		if (status == 0 && c->items[i].kind != CHANGE_MODE)
			apply_drop(a->review, &c->items[i]);
	}
	return status < 0 ? status : 0;
}

/* Which deletions make room for something of another type, at the same path or above it. */
static void mark_way(const struct changes *c, bool *way)
{
	/* the last path that changes its type; what is beneath it follows */
	const char *top = NULL;
	size_t n = 0;

	for (size_t i = 0; i < c->len; i++) {
		const struct change *x = &c->items[i];

		if (x->kind == CHANGE_TYPE) {
			top = x->path;
			n = strlen(top);
		} else if (x->kind == CHANGE_DELETED) {
			way[i] = (i + 1 < c->len && strcmp(c->items[i + 1].path, x->path) == 0) ||
				 (top && strncmp(x->path, top, n) == 0 && x->path[n] == '/');
		}
	}
}

/* An agent's directories may shut out their owner. Their modes are in the list; until the end
 * nobody else looks. */
static void relax_dirs(const struct applying *a)
{
	const struct changes *all = &a->report->changes;

	for (size_t i = 0; i < all->len; i++) {
		const struct change *c = &all->items[i];
		const char *name;
		auto_fd dir = -1, fd = -1;
		char link[32];

		if (!S_ISDIR(c->new_mode) || (c->new_mode & 0700) == 0700)
			continue;
		dir = changes_open_parent(a->review->upper_fd, c->path, &name);
		fd = dir < 0 ? -1
			     : openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (fd >= 0 && chmod(link, (c->new_mode & 0777) | 0700) < 0)
			continue; /* what cannot be read then says so */
	}
}

/* From here on changed directories of the workspace tell nothing about others. */
static int mark_applied(struct applying *a)
{
	a->applied_fd = openat(a->review->dir_fd, REVIEW_APPLIED,
			       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	return a->applied_fd < 0
		       ? ward_fail_errno(a->e,
					 "cannot record that the review of %s is being applied",
					 a->review->id)
		       : 0;
}

static int do_all(struct applying *a)
{
	auto_free bool *way = calloc(a->report->changes.len + 1, sizeof(*way));
	int status = way ? mark_applied(a) : ward_fail(a->e, ENOMEM, "out of memory");

	if (status == 0)
		status = apply_log_begin(a);
	if (status == 0)
		mark_way(&a->report->changes, way);
	if (status == 0)
		relax_dirs(a);
	progress_begin(a->request->progress, a->report->changes.len);
	for (int pass = 0; pass < PASSES && status == 0; pass++)
		status = do_pass(a, (enum pass)pass, way);
	if (status == 0)
		status = finish_dirs(a);
	return status;
}

/* Nothing is left that anybody could want. */
static bool is_spent(const struct apply_report *r)
{
	for (size_t i = 0; i < r->changes.len; i++)
		if (r->outcomes[i] != APPLY_DONE && r->outcomes[i] != APPLY_MARKED)
			return false;
	return true;
}

static void count_outcomes(struct apply_report *r)
{
	for (size_t i = 0; i < r->changes.len; i++)
		if (!r->changes.items[i].implied)
			r->counts[r->outcomes[i]]++;
}

static int read_and_decide(struct applying *a)
{
	struct apply_report *report = a->report;
	int status = changes_read(a->review, &report->changes, a->request->progress, a->e);

	if (status == 0)
		status = changes_judge(a->review, &report->changes, a->e);
	if (status == 0)
		status = changes_find_news(a->review, &report->changes, a->e);
	if (status == 0 && !a->request->force)
		status = changes_settle(a->review, &report->changes, a->e);
	if (status < 0)
		return status;
	report->outcomes = calloc(report->changes.len + 1, sizeof(*report->outcomes));
	if (!report->outcomes)
		return ward_fail(a->e, ENOMEM, "out of memory");
	for (size_t i = 0; i < report->changes.len; i++)
		report->outcomes[i] = decide(a, &report->changes.items[i]);
	return 0;
}

/* What has arrived passes the sweep, as after a run that writes the workspace itself: above all
 * repositories, which are judged as a whole. A user who asks for protected names gets them. */
static int do_swept(struct applying *a)
{
	struct guard_root root = { 0 };
	auto_strv moved = { 0 };
	auto_fd state = -1;
	int status = a->request->with_protected ? 0 : changes_load_guard(a->review, &root, a->e);

	if (status == 0)
		status = do_all(a);
	if (status == 0 && !a->request->with_protected) {
		status = state = store_open(a->e);
		if (status >= 0)
			status = store_sweep_root(state, a->review->id, a->review->record.workspace,
						  &root, 0, &moved, NULL, a->e);
	}
	for (size_t i = 0; i < moved.len; i++)
		strv_addf(&a->report->git, "quarantined: %s", moved.items[i]);
	guard_clear(&root);
	return status < 0 ? status : 0;
}

/* What the run did with git goes as a whole: with everything, or where a git directory is named. */
static int apply_git(struct applying *a)
{
	const struct strv *lines = &a->report->changes.git;
	bool named = a->request->paths->len == 0;
	auto_strv moved = { 0 };
	int status;

	a->report->git_done = lines->len == 0;
	for (size_t i = 0; i < a->request->paths->len; i++) {
		const char *path = a->request->paths->items[i], *slash = strrchr(path, '/');

		named |= !*path || strcmp(slash ? slash + 1 : path, ".git") == 0;
	}
	if (!lines->len || !named)
		return 0;
	status = git_run_finish(a->review->id, a->review->record.workspace, &moved, &a->report->git,
				a->e);
	for (size_t i = 0; i < moved.len; i++)
		strv_addf(&a->report->git, "not applied, but quarantined: %s", moved.items[i]);
	a->report->git_done = status == 0;
	return status;
}

int apply_run(struct review *r, const struct apply_request *q, struct apply_report *ret_report,
	      struct ward_err *e)
{
	struct applying a = { .review = r,
			      .request = q,
			      .report = ret_report,
			      .e = e,
			      .log_fd = -1,
			      .applied_fd = -1 };
	int status;

	*ret_report = (struct apply_report){ 0 };
	status = read_and_decide(&a);
	if (status < 0)
		return status;
	if (!q->dry_run) {
		status = do_swept(&a);
		if (status == 0)
			status = apply_git(&a);
		if (status == 0 && is_spent(ret_report) && ret_report->git_done) {
			status = review_remove(r, e);
			ret_report->finished = status == 0;
		}
		apply_log_end(&a);
		own_close_fd(&a.applied_fd);
	}
	count_outcomes(ret_report);
	return status;
}

void apply_report_clear(struct apply_report *r)
{
	changes_clear(&r->changes);
	strv_free(&r->git);
	free(r->outcomes);
	*r = (struct apply_report){ 0 };
}

/* ---- discarding ---- */

static int refuse_part(const char *path, const char *above, struct ward_err *e)
{
	ward_fail(e, EINVAL,
		  "%s cannot be discarded on its own: its directory %s was deleted or recreated as "
		  "a whole",
		  path, above);
	return ward_remedy(e, "discard %s, or apply the review without that path", above);
}

/* The first directory above path that hides what the workspace has there, because it was deleted or
 * made anew; NULL: none. The caller frees. */
static char *find_cover(const struct review *r, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_free char *above = strndup(path, (size_t)(slash - path));
		const char *name;
		auto_fd dir = above ? changes_open_parent(r->upper_fd, above, &name) : -1;
		auto_fd fd = dir < 0 ? -1
				     : openat(dir, name,
					      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		char value[2];

		if (fd < 0 && dir >= 0 && faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return take_ptr(above);
		if (fd >= 0 && fgetxattr(fd, "user.overlay.opaque", value, sizeof(value)) >= 0)
			return take_ptr(above);
	}
	return NULL;
}

/* What is covered cannot come back by itself. */
static int check_above(const struct review *r, const char *path, struct ward_err *e)
{
	auto_free char *cover = find_cover(r, path);

	return cover ? refuse_part(path, cover, e) : 0;
}

/* Takes one path, with all beneath it, out of the upper layer. */
static int discard_path(const struct review *r, const char *path, struct ward_err *e)
{
	const char *name;
	auto_fd dir = changes_open_parent(r->upper_fd, path, &name);
	char link[32 + NAME_MAX + 2];
	int status;

	if (dir < 0 || unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d/%s", dir, name);
	status = remove_tree(link);
	return status < 0 ? ward_fail(e, -status, "cannot discard %s: %s", path, strerror(-status))
			  : 0;
}

int apply_discard(struct review *r, const struct strv *paths, size_t *ret_count, struct ward_err *e)
{
	struct changes all = { 0 };
	bool whole = paths->len == 0;
	int status = r->workspace_fd < 0 && whole ? 0 : changes_read(r, &all, NULL, e);

	*ret_count = 0;
	for (size_t i = 0; i < all.len; i++) {
		bool selected = apply_is_selected(paths, all.items[i].path);

		*ret_count += !all.items[i].implied && selected;
		if (selected)
			changes_base_drop(r, all.items[i].path);
	}
	changes_clear(&all);
	for (size_t i = 0; i < paths->len; i++)
		whole |= paths->items[i][0] == '\0';
	if (whole)
		return review_remove(r, e);
	for (size_t i = 0; i < paths->len && status >= 0; i++)
		status = check_above(r, paths->items[i], e);
	for (size_t i = 0; i < paths->len && status >= 0; i++)
		status = discard_path(r, paths->items[i], e);
	return status;
}

/* ---- after a kill ---- */

/* The temporary name goes; the path that was being worked on leaves the review if it is in its
 * place. */
static void settle(struct review *r, const struct apply_intent *intent)
{
	char temp[APPLY_NAME_MAX];
	const char *name;
	auto_fd dir = intent->at && r->workspace_fd >= 0
			      ? changes_open_parent(r->workspace_fd, intent->at, &name)
			      : -1;
	auto_fd upper = intent->at ? changes_open_parent(r->upper_fd, intent->at, &name) : -1;
	auto_fd a = -1, b = -1;
	auto_free char *cover = intent->at ? find_cover(r, intent->at) : NULL;
	struct stat old_st, new_st;

	snprintf(temp, sizeof(temp), "%s%s", APPLY_TEMP, intent->token);
	if (dir >= 0)
		unlinkat(dir, temp, 0);
	if (cover || dir < 0 || upper < 0 || fstatat(dir, name, &old_st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(upper, name, &new_st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(old_st.st_mode) ||
	    !S_ISREG(new_st.st_mode) || old_st.st_size != new_st.st_size ||
	    (old_st.st_mode & 0777) != (new_st.st_mode & 0777))
		return;
	a = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	b = changes_open_file(upper, name);
	if (a >= 0 && b >= 0 && changes_same_content(a, b, (uint64_t)old_st.st_size) == 1)
		apply_drop(r, &(struct change){ .path = intent->at, .kind = CHANGE_CONTENT });
}

/* The review is ours; so whatever its log says is what a dead apply meant. */
static int complete(int logs, struct review *r, struct ward_err *e)
{
	auto_buf text = { 0 };
	struct apply_intent intent;
	struct apply_request q = { .paths = &intent.paths };
	struct apply_report report;
	int status;

	if (io_read_file(logs, r->id, LOG_MAX, &text) < 0 ||
	    apply_intent_read(buf_text(&text), text.len, &intent) < 0)
		return 0; /* it was killed before it began */
	q.with_protected = intent.with_protected;
	q.force = intent.force;
	settle(r, &intent);
	/* what was answered hunk by hunk is asked again */
	status = intent.picked ? 0 : apply_run(r, &q, &report, e);
	if (!intent.picked)
		apply_report_clear(&report);
	apply_intent_clear(&intent);
	return status;
}

static int recover_one(int logs, const char *name, struct ward_err *e)
{
	bool begun = strncmp(name, APPLY_NEW, sizeof(APPLY_NEW) - 1) != 0;
	const char *id = begun ? name : name + sizeof(APPLY_NEW) - 1;
	struct review r;
	int status;

	if (!review_is_id(id))
		return 0;
	status = review_open(id, REVIEW_WRITE, &r, e);
	if (status == -EBUSY)
		return 0; /* alive */
	if (status == 0) {
		status = begun ? complete(logs, &r, e) : 0;
		review_close(&r);
	}
	/* no review: it was the last step that was cut short */
	if (status == 0 || status == -ENOENT) {
		unlinkat(logs, name, 0);
		return 0;
	}
	return ward_wrap(e, "completing the interrupted apply of %s", id);
}

int apply_recover(struct ward_err *e)
{
	int logs = apply_open_logs(false, e), failure = 0;
	auto_dir list = logs < 0 ? NULL : fdopendir(logs);

	if (logs < 0)
		return logs == -ENOENT ? 0 : logs;
	if (!list) {
		close(logs);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
		struct ward_err own = { 0 };

		if (recover_one(logs, entry->d_name, &own) < 0 && !failure) {
			*e = own;
			failure = -own.code;
		}
	}
	return failure;
}
