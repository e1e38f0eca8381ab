/*
 * Finishing what killed runs have left. In: the records of runs whose lock is free: their
 * supervisor is dead. Out: no process, no cgroup directory and no private directory of theirs; what
 * their sandboxes planted is in the quarantine, what they committed is taken over, and the record
 * is gone. Runs in `ward recover` (which the guardian becomes), and first thing in whatever needs a
 * tidy state.
 */
#include "recover/recover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "gitview/git_run.h"
#include "guard/guard_internal.h"
#include "limit/limits.h"
#include "plan/level.h"
#include "state/review_place.h"
#include "state/runs.h"
#include "state/store_internal.h"

#define DYING_MS 5000

/* Makes sure that the sandbox's first process, and with it all others, is dead. */
static int wait_dead(const struct dead_run *d, struct ward_err *e)
{
	auto_fd fd = -1;
	struct pollfd p = { .events = POLLIN };

	if (d->init_pid <= 1 || strcmp(io_boot_id(), d->init_boot) != 0)
		return 0;
	fd = (int)syscall(SYS_pidfd_open, d->init_pid, 0);
	if (fd < 0 || (d->numbered ? store_process_number(fd) : store_process_start(d->init_pid)) !=
			      d->init_start)
		return 0;
	p.fd = fd;
	if (poll(&p, 1, DYING_MS / 10) > 0)
		return 0;
	syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	if (poll(&p, 1, DYING_MS / 10) > 0)
		return 0;
	/* frozen, and so not killed: ward stopped it before it was killed itself */
	cgroup_remove_dirs(&d->cgroups);
	if (poll(&p, 1, DYING_MS) > 0)
		return 0;
	return ward_fail(e, ETIMEDOUT, "process %d of a dead run does not exit", d->init_pid);
}

static int finish_run(int state_fd, const char *id, struct dead_run *d, struct strv *notes,
		      struct ward_err *e)
{
	auto_strv moved = { 0 };
	int status = wait_dead(d, e);

	if (status < 0)
		return status;
	cgroup_remove_dirs(&d->cgroups);
	runs_forget(id);
	/* only a run on the Landlock level has one; what is not ours there stays */
	(void)!level_tmp_remove(id);
	if (!review_exists(id))
		status = git_run_finish(id, d->workspace ? d->workspace : "", &moved, notes, e);
	for (size_t i = 0; status >= 0 && i < d->root_count; i++) {
		status = guard_restore_rules(&d->roots[i], e);
		if (status >= 0)
			status = store_sweep_root(state_fd, id, d->workspace ? d->workspace : "",
						  &d->roots[i], i, &moved, NULL, e);
	}
	return status;
}

static bool is_free_slot(int live_fd, const char *name)
{
	struct stat st;

	return store_is_slot_kept(name) && fstatat(live_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_size == 0;
}

/* Finishes the run of one record if no process holds its lock. Returns 1 when there was something
 * to finish. */
static int recover_one(int state_fd, int live_fd, const char *name, struct strv *notes,
		       struct ward_err *e)
{
	auto_fd fd = -1;
	struct dead_run d = { 0 };
	const char *id;
	struct stat st;
	int status;

	if (is_free_slot(live_fd, name))
		return 0;
	fd = openat(live_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		status = errno == ENOENT
				 ? 0
				 : ward_fail_errno(e, "cannot open the record %s of a run", name);
		return status < 0 ? ward_remedy(e, "make the state directory writable: until then "
						   "ward cannot clean up after that run")
				  : 0;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
		return 0; /* alive, or finished by another process just now */
	if (st.st_size == 0 && store_is_slot(name))
		return store_leave_slot(live_fd, fd, name) < 0 && errno != ENOENT
			       ? ward_fail_errno(e, "cannot remove the record %s", name)
			       : 0;
	status = store_read_record(fd, &d);
	id = d.id[0] ? d.id : name;
	if (status < 0)
		ward_fail(e, -status, "cannot read the record: %s", strerror(-status));
	else if (d.complete)
		status = finish_run(state_fd, id, &d, notes, e);
	if (status >= 0 && store_leave_slot(live_fd, fd, name) < 0 && errno != ENOENT)
		status = ward_fail_errno(e, "cannot remove the record");
	if (status < 0)
		ward_wrap(e, "cleaning up after the killed run %s", id);
	dead_run_clear(&d);
	return status < 0 ? status : 1;
}

int recover_runs_noting(struct strv *notes, struct ward_err *e)
{
	auto_fd state = store_open(e);
	auto_dir list = NULL;
	int live, finished = 0, failure = 0;

	if (state < 0)
		return state;
	live = openat(state, STORE_LIVE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (live < 0)
		return errno == ENOENT ? 0 : ward_fail_errno(e, "cannot open the records of runs");
	list = fdopendir(live);
	if (!list) {
		close(live);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
		struct ward_err own = { 0 };
		int status;

		if (entry->d_name[0] == '.')
			continue;
		status = recover_one(state, live, entry->d_name, notes, &own);
		finished += status > 0;
		if (status < 0 && !failure) {
			*e = own;
			failure = status;
		}
	}
	return failure ? failure : finished;
}

int recover_runs(struct ward_err *e)
{
	auto_strv notes = { 0 };

	return recover_runs_noting(&notes, e);
}
