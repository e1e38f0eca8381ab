/*
 * Reviews on disk. In: ids. Out: open, locked review directories. Runs in the supervisor and in the
 * verbs with the user's rights. One directory a review, which only its owner can enter:
 *
 *	PLACE/review/ID/record		what it is, see review_record.c
 *	PLACE/review/ID/layer/upper	the changes, as the kernel's overlay leaves them
 *	PLACE/review/ID/layer/work	the kernel's own
 *	PLACE/review/ID/layer/lower	empty: where the workspace is mounted for a moment
 *
 * PLACE is the state directory. Where that lies on an overlay itself (the root of most containers)
 * or takes no attributes, the kernel refuses it as the place of changes; then it is a directory in
 * /dev/shm, and the run says that changes are in memory.
 *
 * A review is made and removed under another name (".new-ID", ".gone-ID"), so that one that has its
 * name is whole. The lock is the directory's own: a run or a verb that changes something holds it
 * exclusively.
 */
#include "review/review_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/path.h"
#include "gitview/git_run.h"
#include "base/remove.h"
#include "state/store_internal.h"

#define RECORD_MAX (64u << 20)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

bool review_place_suits(int dir_fd)
{
	struct statfs fs;

	if (fstatfs(dir_fd, &fs) < 0 || (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return false;
	return fsetxattr(dir_fd, "user.ward.review", "y", 1, 0) == 0;
}

int review_write_record(int dir_fd, const struct review_record *r, struct ward_err *e)
{
	auto_buf text = { 0 };
	auto_fd fd = -1;
	int status;

	review_record_write(r, &text);
	if (text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	fd = openat(dir_fd, REVIEW_RECORD ".new",
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	status = fd < 0 ? -errno : io_write_all(fd, text.data, text.len);
	if (status == 0 && renameat(dir_fd, REVIEW_RECORD ".new", dir_fd, REVIEW_RECORD) < 0)
		status = -errno;
	if (status == 0)
		return 0;
	ward_fail(e, -status, "cannot write the record of the review: %s", strerror(-status));
	return ward_remedy(
		e, "free some space in the state directory, or set WARD_STATE_DIR to another one");
}

int review_read_record(int dir_fd, struct review_record *ret_record, struct ward_err *e)
{
	auto_buf text = { 0 };
	int status = io_read_file(dir_fd, REVIEW_RECORD, RECORD_MAX, &text);

	if (status == 0)
		status = review_record_read(buf_text(&text), text.len, ret_record);
	if (status == 0)
		return 0;
	ward_fail(e, -status, "the record of the review cannot be read: %s", strerror(-status));
	return ward_remedy(e, "ward discard RUN removes it");
}

static int fail_missing(const char *id, struct ward_err *e)
{
	ward_fail(e, ENOENT, "there is no review of a run %.100s", id);
	return ward_remedy(e, "ward diff --list shows the reviews");
}

static int take_lock(int dir_fd, const char *id, struct ward_err *e)
{
	struct stat st;

	if (flock(dir_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return ward_fail_errno(e, "cannot lock the review of %s", id);
		ward_fail(e, EBUSY,
			  "the review of %s is in use: its run is active, or another command works "
			  "on it",
			  id);
		return ward_remedy(e, "wait until that is done");
	}
	if (fstat(dir_fd, &st) < 0 || st.st_nlink == 0)
		return fail_missing(id, e); /* removed while we waited for nothing */
	return 0;
}

/* The workspace, if it is still the one that the run saw. */
static int open_workspace(const struct review_record *r)
{
	auto_fd fd = open(r->workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != r->device || st.st_ino != r->inode)
		return -1;
	return take_fd(&fd);
}

static int open_in_place(struct review *r, int place, const char *place_path, enum review_lock lock,
			 struct ward_err *e)
{
	int status;

	r->dir_fd = openat(place, r->id, DIR_FLAGS);
	if (r->dir_fd < 0)
		return errno == ENOENT ? -ENOENT
				       : ward_fail_errno(e, "cannot open the review of %s", r->id);
	if (asprintf(&r->path, "%s/%s", place_path, r->id) < 0) {
		r->path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	status = lock == REVIEW_WRITE ? take_lock(r->dir_fd, r->id, e) : 0;
	if (status == 0)
		status = review_read_record(r->dir_fd, &r->record, e);
	if (status < 0)
		return status;
	r->upper_fd = openat(r->dir_fd, REVIEW_UPPER, DIR_FLAGS);
	if (r->upper_fd < 0)
		return ward_fail_errno(e, "cannot open the changes of %s", r->id);
	r->workspace_fd = open_workspace(&r->record);
	return 0;
}

int review_open(const char *id, enum review_lock lock, struct review *ret_review,
		struct ward_err *e)
{
	*ret_review = (struct review){ .dir_fd = -1, .upper_fd = -1, .workspace_fd = -1 };
	if (!review_is_id(id))
		return fail_missing(id, e);
	snprintf(ret_review->id, sizeof(ret_review->id), "%s", id);
	for (int place = 0; place < REVIEW_PLACES; place++) {
		auto_free char *path = NULL;
		struct ward_err none;
		auto_fd fd = review_open_place((enum review_place)place, false, &path, &none);
		int status = fd < 0 ? -ENOENT : open_in_place(ret_review, fd, path, lock, e);

		if (status == -ENOENT)
			continue;
		if (status < 0)
			review_close(ret_review);
		return status;
	}
	review_close(ret_review);
	return fail_missing(id, e);
}

void review_close(struct review *r)
{
	own_close_fd(&r->workspace_fd);
	own_close_fd(&r->upper_fd);
	own_close_fd(&r->dir_fd);
	free(r->path);
	review_record_clear(&r->record);
	*r = (struct review){ .dir_fd = -1, .upper_fd = -1, .workspace_fd = -1 };
}

int review_remove_dir(int place_fd, const char *place_path, const char *name, struct ward_err *e)
{
	auto_buf gone = { 0 };
	auto_buf path = { 0 };
	int status;

	buf_printf(&gone, "%s%s", strncmp(name, ".gone-", 6) == 0 ? "" : ".gone-", name);
	buf_printf(&path, "%s/%s", place_path, buf_text(&gone));
	if (gone.failed || path.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (strcmp(gone.data, name) != 0 && renameat(place_fd, name, place_fd, gone.data) < 0 &&
	    errno != ENOENT)
		return ward_fail_errno(e, "cannot remove the review %s", name);
	status = remove_tree(path.data);
	if (status == 0 &&
	    strncmp(place_path, STATE_DIR_MEMORY, sizeof(STATE_DIR_MEMORY) - 1) == 0 &&
	    rmdir(place_path) == 0) {
		/* the last one: nothing of ours stays in memory */
		*strrchr(path.data, '/') = '\0';
		*strrchr(path.data, '/') = '\0';
		if (rmdir(path.data) < 0)
			return 0; /* somebody needs it again */
	}
	return status < 0 ? ward_fail(e, -status, "cannot remove the review %s: %s", name,
				      strerror(-status))
			  : 0;
}

int review_remove(struct review *r, struct ward_err *e)
{
	const char *slash = r->path ? strrchr(r->path, '/') : NULL;
	auto_free char *place_path = slash ? strndup(r->path, (size_t)(slash - r->path)) : NULL;
	auto_fd place = place_path ? open(place_path, DIR_FLAGS) : -1;

	if (!place_path || place < 0)
		return ward_fail_errno(e, "cannot open the directory of reviews");
	if (git_views_remove(r->id, e) < 0)
		return -e->code;
	return review_remove_dir(place, place_path, r->id, e);
}
