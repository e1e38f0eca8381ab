/*
 * Taking over one view. In: its directory in ward's state. Out: the host's repository has what the
 * sandbox did, as far as it is of an ordinary form; the rest is reported to the supervisor. Runs in
 * ward-git with the rights of the repository's owner.
 *
 * In this order: what the sandbox has, its objects, what its commits bring, its refs, then HEAD,
 * index and state, then reflogs and configuration. Each step can be done again: a run that is
 * killed in between is finished by another one.
 */
#include "git/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"

#define BASE_MAX ((size_t)2 << 30)
#define LOCKS_MS 5000     /* to wait for locks of the host's, in one taking */
#define LOCK_LIVE_MS 2000 /* to wait for another run's import */
#define LOCK_MS 120000

static int add_base(void *ctx, const char *path, const char *bytes, size_t n)
{
	struct files *f = ctx;

	return files_add(f, path, bytes, n);
}

/* One ward-git at a time: objects that another run's brings between two steps of this one were not
 * examined here. The lock goes with the descriptor. */
static int lock_host(struct take *t)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000000 };
	int64_t until = now_ms() + (t->live ? LOCK_LIVE_MS : LOCK_MS);

	while (flock(t->host_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return ward_fail_errno(t->e, "cannot lock %s", t->record.git_dir);
		if (now_ms() > until)
			return ward_fail(t->e, EBUSY, "%s is locked by another run's import",
					 t->record.git_dir);
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int open_take(struct take *t)
{
	auto_buf text = { 0 }, base = { 0 };
	struct stat st;
	int status;

	status = io_read_file(t->dir_fd, GIT_VIEW_RECORD, 1u << 20, &text);
	if (status == 0)
		status = git_view_record_read(buf_text(&text), text.len, &t->record);
	if (status == 0)
		status = io_read_file(t->dir_fd, GIT_VIEW_BASE, BASE_MAX, &base);
	if (status == 0)
		status = git_view_base_read(buf_text(&base), base.len, add_base, &t->base);
	files_sort(&t->base);
	if (status < 0)
		return ward_fail(t->e, -status, "cannot read the private git directory %s: %s",
				 t->dir, strerror(-status));
	t->view_fd =
		openat(t->dir_fd, GIT_VIEW_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	t->host_fd = open(t->record.git_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->view_fd < 0 || t->host_fd < 0 || fstat(t->host_fd, &st) < 0)
		return ward_fail_errno(t->e, "cannot open %s",
				       t->view_fd < 0 ? t->dir : t->record.git_dir);
	status = t->shows ? 0 : lock_host(t);
	if (status < 0)
		return status;
	if (st.st_dev != t->record.device || st.st_ino != t->record.inode)
		return ward_fail(t->e, ESTALE,
				 "%s was replaced by another directory while the sandbox ran, so "
				 "its commits stay in the sandbox's copy",
				 t->record.git_dir);
	return 0;
}

/* What both sides have from now on. */
static int write_base(struct take *t)
{
	auto_buf text = { 0 };
	int status;

	for (size_t i = 0; i < t->base.len; i++)
		git_view_base_add(&text, t->base.items[i].path, t->base.items[i].bytes,
				  t->base.items[i].n);
	if (text.failed)
		return ward_fail(t->e, ENOMEM, "out of memory");
	status = file_write(t->dir_fd, GIT_VIEW_BASE, buf_text(&text), text.len, &t->wait_ms);
	return status < 0 ? ward_fail(t->e, -status, "cannot record what was imported: %s",
				      strerror(-status))
			  : 0;
}

/* Where HEAD leads now, if that changed. */
static void show_head(struct take *t)
{
	const struct file *b = files_find(&t->base, "HEAD"), *m = files_find(&t->view, "HEAD");

	if (!m || files_equal(b, m))
		return;
	if (strncmp(m->bytes, "ref: refs/heads/", 16) == 0)
		say_note(t, "git: branch %.*s is checked out now",
			 (int)strcspn(m->bytes + 16, "\n"), m->bytes + 16);
	else
		say_note(t, "git: commit %.9s is checked out now", m->bytes);
}

/* Refs by name and HEAD; what goes with them (the index, reflogs) only where nothing else is to be
 * said. */
static int show_all(struct take *t)
{
	int status = open_take(t);
	bool rest = false;

	if (status >= 0)
		status = scan_view(t);
	if (status >= 0)
		status = list_repositories(t);
	for (size_t i = 0; i < t->repositories.len && status >= 0; i++)
		status = show_refs(t, t->repositories.items[i]);
	if (status >= 0)
		show_head(t);
	for (size_t i = 0; i < t->view.len && !rest && !t->noted; i++) {
		struct git_place place =
			git_path_find(t->view.items[i].path, GIT_DIR_MAIN, t->hash, false);

		rest = place.form != GIT_FORM_REF && place.form != GIT_FORM_PACKED_REFS &&
		       place.form != GIT_FORM_REFLOG &&
		       !files_equal(&t->view.items[i], files_find(&t->base, t->view.items[i].path));
	}
	if (rest && status >= 0)
		say_note(t, "git: the index or other state changed, no commits");
	return status < 0 ? status : 0;
}

int go_on(struct take *t, const char *prefix, int status)
{
	if (status >= 0 || !*prefix || status == -ENOMEM)
		return status;
	say_lost(t, "git: %s was not imported: %s", prefix, t->e->why);
	*t->e = (struct ward_err){ 0 };
	return 0;
}

static int judge_histories(struct take *t)
{
	int status = 0;

	for (size_t i = 0; i < t->repositories.len && status >= 0; i++)
		status = judge_history(t, t->repositories.items[i]);
	return status;
}

static int take_all(struct take *t)
{
	static int (*const before[])(
		struct take *) = { open_take,    scan_view,       check_places, list_repositories,
				   take_objects, judge_histories, take_indexes };
	static int (*const after[])(struct take *) = { check_heads, take_state, take_logs,
						       take_configs };
	int status = 0, written;
	bool began;

	for (size_t i = 0; i < ARRAY_LEN(before) && status >= 0; i++)
		status = before[i](t);
	began = status >= 0;
	for (size_t i = 0; i < t->repositories.len && status >= 0; i++)
		status = go_on(t, t->repositories.items[i], take_refs(t, t->repositories.items[i]));
	for (size_t i = 0; i < ARRAY_LEN(after) && status >= 0; i++)
		status = after[i](t);
	/* what has moved is on record, also where something after it failed: at the end it would
	 * count as the host's own */
	written = began && t->live ? write_base(t) : 0;
	say_rest(t);
	status = status < 0 ? status : written;
	return status < 0 ? status : 0;
}

int take_view(size_t number, const char *dir, int dir_fd, enum take_how how, struct buf *out,
	      struct ward_err *e)
{
	struct take t = { .number = number,
			  .dir = dir,
			  .dir_fd = dir_fd,
			  .view_fd = -1,
			  .host_fd = -1,
			  .out = out,
			  .live = how == TAKE_LIVE,
			  .shows = how == TAKE_SHOW,
			  .wait_ms = LOCKS_MS,
			  .e = e };
	int status = how == TAKE_SHOW ? show_all(&t) : take_all(&t);

	if (status == 0 && t.failed)
		status = ward_fail(e, EIO, "cannot write everything to %s", t.record.git_dir);
	own_close_fd(&t.view_fd);
	own_close_fd(&t.host_fd);
	git_view_record_clear(&t.record);
	files_clear(&t.base);
	files_clear(&t.view);
	strv_free(&t.objects);
	strv_free(&t.repositories);
	strv_free(&t.indexes);
	strv_free(&t.blocked);
	strv_free(&t.lost);
	strv_free(&t.held);
	protect_free(t.protect);
	return status;
}
