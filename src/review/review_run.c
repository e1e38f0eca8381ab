/*
 * A run under review. In: the plan. Out: the review's directory, locked for the life of the run,
 * and what the engine mounts. Runs in the supervisor before it sends the sandbox the plan; as root
 * it makes an id-mapped copy of the directory's mount, so that changes are on disk as the
 * workspace's owner's whatever uid the sandbox has, and a later run can go on with them.
 *
 * What is in the directory belongs to the sandbox from then on: nobody but the kernel's overlay may
 * write to it until the run ends.
 */
#include "review/review_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/path.h"
#include "review/changes.h"
#include "host/idmap.h"
#include "limit/limits.h"
#include "base/remove.h"
#include "state/store.h"
#include "recover/recover.h"

#define FORMER_TRIES 500
#define FORMER_PAUSE_MS 20

struct review_run {
	const struct plan *plan;
	int place_fd, dir_fd, upper_fd, layer_fd;
	char *place_path, *layer_path;
	struct review_record record;
	bool made, copied;
};

static int out_of_memory(struct ward_err *e)
{
	return ward_fail(e, ENOMEM, "out of memory");
}

static const struct guard_root *workspace_root(const struct plan *p)
{
	for (size_t i = 0; i < p->live->root_count; i++)
		if (strcmp(p->live->roots[i].target, p->workspace) == 0)
			return &p->live->roots[i];
	return NULL;
}

/* An agent that could see or write its own review could forge it. */
static int check_outside(const struct plan *p, const char *place_path, struct ward_err *e)
{
	if (!path_is_beneath(place_path, p->workspace))
		return 0;
	ward_fail(e, EINVAL, "the reviews in %s are inside the workspace %s", place_path,
		  p->workspace);
	return ward_remedy(
		e, "use a smaller workspace, or set WARD_STATE_DIR to a directory elsewhere");
}

static int choose_place(struct review_run *r, struct strv *notes, struct ward_err *e)
{
	struct ward_err memory = { 0 };
	int fd = review_open_place(REVIEW_IN_STATE, true, &r->place_path, e);

	if (fd < 0)
		return fd;
	if (!review_place_suits(fd)) {
		close(fd);
		free(take_ptr(r->place_path));
		fd = review_open_place(REVIEW_IN_MEMORY, true, &r->place_path, &memory);
		if (fd < 0 || !review_place_suits(fd)) {
			own_close_fd(&fd);
			ward_fail(e, ENOTSUP,
				  "ward's state directory cannot hold an overlay's changes (it is "
				  "on an overlay itself or lacks extended attributes), and neither "
				  "can /dev/shm%s%s",
				  memory.code ? ": " : "", memory.why);
			return ward_remedy(
				e,
				"set WARD_STATE_DIR to a directory on ext4, xfs, btrfs or tmpfs");
		}
		strv_addf(
			notes,
			"the changes stay in memory, in %s, until they are applied: the file "
			"system of the state directory cannot hold them (WARD_STATE_DIR moves it)",
			r->place_path);
	}
	r->place_fd = fd;
	return check_outside(r->plan, r->place_path, e);
}

static int fill_record(struct review_run *r, struct ward_err *e)
{
	const struct plan *p = r->plan;
	const struct guard_root *g = workspace_root(p);
	const struct strv *hide = &p->spec->policy.fs_hide;
	struct review_record *record = &r->record;
	uint64_t *starts = reallocarray(record->starts, record->start_count + 1, sizeof(*starts));
	struct timespec now;
	struct stat st;

	if (!starts)
		return out_of_memory(e);
	record->starts = starts;
	if (!g || stat(p->workspace, &st) < 0)
		return ward_fail_errno(e, "cannot access the workspace %s", p->workspace);
	clock_gettime(CLOCK_REALTIME, &now);
	starts[record->start_count++] = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	free(record->workspace);
	record->workspace = strdup(p->workspace);
	record->device = st.st_dev;
	record->inode = st.st_ino;
	record->owner_uid = st.st_uid;
	record->owner_gid = st.st_gid;
	/* what one run of them asked for holds for all of the review */
	record->blocks |= SCAN_MODE_TREE(&p->spec->policy) == SCAN_TREE_BLOCK;
	record->personal |= p->spec->policy.cred_scan_personal;
	for (size_t i = 0; i < hide->len; i++)
		if (!strv_has(&record->hide, hide->items[i]))
			strv_add(&record->hide, hide->items[i]);
	for (size_t i = 0; i < g->step_count; i++)
		if (g->steps[i].action == GUARD_HIDE)
			strv_addf(&record->hidden, "%s%s", g->steps[i].path,
				  g->steps[i].is_dir ? "/" : "");
	for (size_t i = 0; i < g->rules.len; i++)
		if (!strv_has(&record->rules, g->rules.items[i]))
			strv_add(&record->rules, g->rules.items[i]);
	return !record->workspace || record->hide.failed || record->hidden.failed ||
			       record->rules.failed
		       ? out_of_memory(e)
		       : 0;
}

/* Makes one directory of the layer. Its owner is the workspace's, so that an id-mapped copy shows
 * it as the sandbox's. */
static int make_layer_dir(const struct review_run *r, const char *name, mode_t mode,
			  struct ward_err *e)
{
	const struct plan_ids *ids = &r->plan->ids;
	auto_fd fd = -1;

	if (mkdirat(r->dir_fd, name, 0700) < 0)
		return ward_fail_errno(e, "cannot make a directory of the review");
	fd = openat(r->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (r->plan->facts.uid == 0 && fchown(fd, ids->owner_uid, ids->owner_gid) < 0) ||
	    fchmod(fd, mode) < 0)
		return ward_fail_errno(e, "cannot set up a directory of the review");
	return 0;
}

static int make_review(struct review_run *r, struct ward_err *e)
{
	char name[REVIEW_ID_MAX + 8];
	struct stat st;
	int status;

	snprintf(name, sizeof(name), ".new-%s", r->plan->spec->run_id);
	if (stat(r->plan->workspace, &st) < 0)
		return ward_fail_errno(e, "cannot access the workspace %s", r->plan->workspace);
	/* until it is locked itself: review_tidy() would take it for one that was left */
	if (flock(r->place_fd, LOCK_SH) < 0)
		return ward_fail_errno(e, "cannot lock the directory of reviews");
	if (mkdirat(r->place_fd, name, 0700) < 0) {
		ward_fail_errno(e, "cannot make the directory of the review");
		return ward_remedy(
			e,
			"free some space, or set WARD_STATE_DIR to a directory that you can write");
	}
	r->made = true;
	r->dir_fd = openat(r->place_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->dir_fd < 0 || flock(r->dir_fd, LOCK_EX | LOCK_NB) < 0 ||
	    flock(r->place_fd, LOCK_UN) < 0)
		return ward_fail_errno(e, "cannot lock the directory of the review");
	status = make_layer_dir(r, REVIEW_LAYER, 0700, e);
	/* what the sandbox sees of the workspace's own mode comes from here */
	if (status == 0)
		status = make_layer_dir(r, REVIEW_UPPER, st.st_mode & 01777, e);
	if (status == 0)
		status = make_layer_dir(r, REVIEW_WORK, 0700, e);
	if (status == 0)
		status = make_layer_dir(r, REVIEW_LOWER, 0700, e);
	if (status == 0)
		status = fill_record(r, e);
	if (status == 0)
		status = review_write_record(r->dir_fd, &r->record, e);
	if (status == 0 &&
	    renameat2(r->place_fd, name, r->place_fd, r->plan->spec->run_id, RENAME_NOREPLACE) < 0)
		status = ward_fail_errno(e, "cannot name the directory of the review");
	return status;
}

/* Goes on with the changes of an earlier run. */
static int continue_review(struct review_run *r, struct ward_err *e)
{
	struct review old;
	int status = review_open(r->plan->spec->run_id, REVIEW_WRITE, &old, e);
	char *slash;

	if (status < 0)
		return status;
	r->dir_fd = take_fd(&old.dir_fd);
	r->place_path = take_ptr(old.path);
	slash = strrchr(r->place_path, '/');
	*slash = '\0';
	r->place_fd = open(r->place_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r->record = old.record;
	old.record = (struct review_record){ 0 };
	review_close(&old);
	if (r->place_fd < 0)
		return ward_fail_errno(e, "cannot open the directory of reviews");
	if (r->record.start_count >= REVIEW_STARTS_MAX)
		return ward_fail(e, E2BIG,
				 "the review was continued too often; apply or discard it");
	status = check_outside(r->plan, r->place_path, e);
	if (status == 0)
		status = fill_record(r, e);
	return status < 0 ? status : review_write_record(r->dir_fd, &r->record, e);
}

/* The lock says that nobody supervises the former run any more. If it was killed, it is made sure
 * here that its processes and what was made for it are gone: this run has its id. */
static int finish_former(const struct review_run *r, struct ward_err *e)
{
	const struct timespec pause = { .tv_nsec = FORMER_PAUSE_MS * 1000000L };
	auto_strv dirs = { 0 };

	for (int i = 0; i < FORMER_TRIES && store_has_record(r->plan->spec->run_id); i++) {
		if (recover_runs(e) < 0)
			return -e->code;
		if (i)
			nanosleep(&pause, NULL); /* somebody else is at it */
	}
	if (store_has_record(r->plan->spec->run_id))
		return ward_fail(e, EBUSY, "the run %s was killed and is not cleaned up yet",
				 r->plan->spec->run_id);
	cgroup_planned_dirs(r->plan, &dirs);
	cgroup_remove_dirs(&dirs);
	return 0;
}

/* Makes a directory of the layer anew: the kernel takes a work directory of a mount that has ended
 * without a sync for incomplete, and a copy of the workspace that a killed run left is out of
 * date. */
static int fresh_dir(struct review_run *r, const char *name, struct ward_err *e)
{
	auto_buf path = { 0 };
	int status;

	buf_printf(&path, "%s/%s/%s", r->place_path, r->plan->spec->run_id, name);
	if (path.failed)
		return out_of_memory(e);
	status = remove_tree(path.data);
	if (status < 0)
		return ward_fail(e, -status,
				 "cannot remove leftovers of the last run's overlay: %s",
				 strerror(-status));
	return make_layer_dir(r, name, 0700, e);
}

/* Where the kernel makes no overlay of the workspace, or one that cannot take over all of it, the
 * sandbox gets one of a copy. */
static int copy_workspace(struct review_run *r, struct strv *notes, struct progress *progress,
			  struct ward_err *e)
{
	const struct plan_ids *ids = &r->plan->ids;
	uid_t uid = ids->mode == IDS_MAPPED ? ids->owner_uid : ids->host_uid;
	gid_t gid = ids->mode == IDS_MAPPED ? ids->owner_gid : ids->host_gid;
	auto_fd from = open(r->plan->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd to =
		openat(r->dir_fd, REVIEW_LOWER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_free char *foreign = NULL;
	bool fits;
	int status;

	if (from < 0 || to < 0)
		return ward_fail_errno(e, "cannot open the workspace");
	fits = review_overlay_fits(from, to);
	if (fits && review_ids_fit(from, uid, gid, &foreign))
		return 0;
	status = review_copy(from, to, uid, gid, progress, e);
	progress_end(progress);
	if (status < 0)
		return status;
	r->copied = true;
	strv_addf(notes,
		  "%s%s: the run works on a copy of the workspace, in %s, and does not see outside "
		  "changes",
		  fits && foreign ? foreign : "",
		  fits ? " belongs to another user or group, which an overlay cannot handle"
		       : "the kernel cannot overlay the workspace's file system",
		  r->place_path);
	return 0;
}

/* What the engine needs: as root a copy of the layer's mount, seen as the sandbox's own. */
static int open_layer(struct review_run *r, struct ward_err *e)
{
	const struct plan_ids *ids = &r->plan->ids;
	struct stat st;
	int status;

	r->upper_fd =
		openat(r->dir_fd, REVIEW_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->upper_fd < 0 || asprintf(&r->layer_path, "%s/%s/%s", r->place_path,
					r->plan->spec->run_id, REVIEW_LAYER) < 0)
		return ward_fail_errno(e, "cannot open the directory of the review");
	if (r->plan->facts.uid != 0)
		return 0;
	if (fstatat(r->dir_fd, REVIEW_LAYER, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ward_fail_errno(e, "cannot access the directory of the review");
	r->layer_fd = idmap_clone_tree(r->layer_path, st.st_dev, st.st_ino, e);
	if (r->layer_fd == -EPERM)
		return 0; /* a container without CAP_SYS_ADMIN: the sandbox opens it itself */
	if (r->layer_fd < 0 || ids->mode != IDS_MAPPED)
		return r->layer_fd < 0 ? r->layer_fd : 0;
	status = idmap_apply(r->layer_fd, st.st_uid, st.st_gid, ids->host_uid, ids->host_gid);
	if (status == 0)
		return 0;
	ward_fail(e, -status, "the file system of %s does not support id-mapped mounts: %s",
		  r->place_path, strerror(-status));
	return ward_remedy(e, "set WARD_STATE_DIR to a directory on ext4, xfs, btrfs or tmpfs");
}

int review_begin(const struct plan *p, struct review_run **ret_run, struct strv *notes,
		 struct progress *progress, struct ward_err *e)
{
	struct review_run *r = calloc(1, sizeof(*r));
	int status;

	if (!r)
		return out_of_memory(e);
	r->plan = p;
	r->place_fd = r->dir_fd = r->upper_fd = r->layer_fd = -1;
	if (p->spec->continued) {
		status = continue_review(r, e);
		if (status == 0)
			status = finish_former(r, e);
		if (status == 0)
			status = fresh_dir(r, REVIEW_WORK, e);
		if (status == 0)
			status = fresh_dir(r, REVIEW_LOWER, e);
	} else {
		status = choose_place(r, notes, e);
		if (status == 0)
			status = make_review(r, e);
		if (status == 0)
			changes_bases_begin(r->dir_fd, p->workspace);
	}
	if (status == 0)
		status = copy_workspace(r, notes, progress, e);
	if (status == 0)
		status = open_layer(r, e);
	if (status < 0) {
		review_end(r, false);
		return ward_wrap(e, "review");
	}
	*ret_run = r;
	return 0;
}

bool review_is_copy(const struct review_run *r)
{
	return r->copied;
}

int review_layer_fd(const struct review_run *r)
{
	return r->layer_fd;
}

const char *review_layer_path(const struct review_run *r)
{
	return r->layer_path;
}

int review_upper_fd(const struct review_run *r)
{
	return r->upper_fd;
}

void review_end(struct review_run *r, bool started)
{
	struct ward_err ignored;

	if (!r)
		return;
	if (r->made && !started) {
		char name[REVIEW_ID_MAX + 8];

		snprintf(name, sizeof(name), ".new-%s", r->plan->spec->run_id);
		if (review_remove_dir(r->place_fd, r->place_path, name, &ignored) < 0 ||
		    review_remove_dir(r->place_fd, r->place_path, r->plan->spec->run_id, &ignored) <
			    0)
			review_tidy();
	}
	own_close_fd(&r->layer_fd);
	if (r->copied && started)
		/* what is left goes with the review */
		(void)!fresh_dir(r, REVIEW_LOWER, &ignored);
	own_close_fd(&r->upper_fd);
	own_close_fd(&r->dir_fd);
	own_close_fd(&r->place_fd);
	free(r->place_path);
	free(r->layer_path);
	review_record_clear(&r->record);
	free(r);
}
