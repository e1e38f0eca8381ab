/*
 * Taking over what a sandbox did with git. In: the private git directories of a run. Out: the
 * host's repositories have the commits, references and state of the sandbox as far as they are of
 * an ordinary form; everything else is in the quarantine. Runs in the supervisor, which only starts
 * ward-git (src/git) and believes what that says.
 *
 * One byte makes ward-git finish. Where its end of the socket closes without one, the supervisor
 * was killed: ward-git ends, and `ward recover`, which finishes the run, starts another one. It
 * answers with lines "VIEW\tKIND\tPATH\tTEXT\n".
 */
#include "gitview/git_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/remove.h"
#include "gitview/git_view.h"
#include "guard/guard_internal.h"
#include "guard/guard_move.h"
#include "guard/guard_sweep.h"
#include "host/program.h"
#include "state/review_place.h"
#include "state/store_internal.h"

#define ANSWER_MAX (64u << 20)
#define WORDS_MAX 256

struct git_run {
	pid_t pid;
	int socket_fd;
};

/* Where the views of one run are, and what is reported about them. */
struct taking {
	const char *run_id, *workspace;
	const struct strv *dirs;
	struct strv *moved, *notes;
	struct strv *loud; /* what did not arrive, once more; NULL: no such list */
	struct ward_err *e;
};

static int start(const struct strv *dirs, const char *how, struct git_run *ret, struct ward_err *e)
{
	char mode[16], *words[WORDS_MAX] = { (char[]){ "ward-git" }, mode };
	char *env[] = { (char[]){ "PATH=/usr/sbin:/usr/bin:/usr/local/bin:/sbin:/bin" },
			(char[]){ "LC_ALL=C" }, NULL };
	auto_fd own = program_open("ward-git", e);
	struct program p = { .fd = own, .argv = words, .envp = env, .fd_count = 1 };
	int pair[2], status;

	if (own < 0)
		return own;
	snprintf(mode, sizeof(mode), "%s", how);
	for (size_t i = 0; i < dirs->len && i + 3 < WORDS_MAX; i++)
		words[i + 2] = dirs->items[i];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make a socket for ward-git");
	p.fds[0] = pair[1];
	status = program_start(&p, &ret->pid, e);
	close(pair[1]);
	ret->socket_fd = pair[0];
	if (status < 0)
		close(pair[0]);
	return status;
}

int git_run_start(const struct plan *p, struct git_run **ret_run, struct ward_err *e)
{
	struct git_run *run;
	int status;

	*ret_run = NULL;
	if (!p->live->views || p->live->views->kept || p->live->views->dirs.len == 0)
		return 0;
	run = calloc(1, sizeof(*run));
	if (!run)
		return ward_fail(e, ENOMEM, "out of memory");
	status = start(&p->live->views->dirs, "follow", run, e);
	if (status < 0) {
		free(run);
		return status;
	}
	*ret_run = run;
	return 0;
}

/* Tells it to finish and reads all that it says. */
static int finish(struct git_run *run, struct buf *answer, struct ward_err *e)
{
	int status = io_write_all(run->socket_fd, "f", 1), code = 0;

	if (status == 0)
		status = io_read_all(run->socket_fd, ANSWER_MAX, answer);
	close(run->socket_fd);
	while (waitpid(run->pid, &code, 0) < 0 && errno == EINTR)
		;
	if (status == 0 && (!WIFEXITED(code) || WEXITSTATUS(code) != 0))
		status = -EIO;
	return status < 0 ? ward_fail(e, -status,
				      "ward-git could not import the sandbox's git changes")
			  : 0;
}

/* Puts PATH of a view into the quarantine, as a part of the git directory that the view stands
 * for. */
static int set_aside(struct taking *t, size_t view, const char *path, const char *why)
{
	struct git_view_record r = { 0 };
	auto_buf text = { 0 }, shown = { 0 }, in_view = { 0 };
	auto_fd state = store_open(t->e),
		dir = open(t->dirs->items[view], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		parent = -1;
	struct store_sink sink = { .state_fd = state,
				   .run_id = t->run_id,
				   .workspace = t->workspace,
				   .root_index = 1000 + view,
				   .dir_fd = -1,
				   .index_fd = -1 };
	struct guard_sink face = store_sink_face(&sink);
	const char *name;
	int status = state < 0 ? state
		     : dir < 0 ? -errno
			       : io_read_file(dir, GIT_VIEW_RECORD, 1u << 20, &text);

	if (status == 0)
		status = git_view_record_read(buf_text(&text), text.len, &r);
	if (status < 0)
		return ward_fail(t->e, -status,
				 "cannot read the record of a private git directory");
	sink.root = r.host_root;
	if (strlen(r.git_dir) > strlen(r.host_root))
		buf_printf(&shown, "%s/", r.git_dir + strlen(r.host_root) + 1);
	buf_puts(&shown, path);
	buf_printf(&in_view, GIT_VIEW_DIR "/%s", path);
	parent = shown.failed || in_view.failed
			 ? -ENOMEM
			 : guard_open_parent(dir, in_view.data, 0700, &name, t->e);
	status = parent < 0 ? parent
			    : guard_quarantine_one(&face, parent, name, shown.data, why, t->moved,
						   t->e);
	store_sink_close(&sink);
	git_view_record_clear(&r);
	return status;
}

/* One line of the answer: "VIEW\tKIND\tPATH\tTEXT". */
static int take_line(struct taking *t, char *line)
{
	char *number = strsep(&line, "\t"), *kind = strsep(&line, "\t"),
	     *path = strsep(&line, "\t");
	size_t view = strtoul(number, NULL, 10);

	if (!kind || !path || !line || view >= t->dirs->len)
		return ward_fail(t->e, EPROTO, "ward-git sent a malformed answer");
	guard_unescape(path);
	guard_unescape(line);
	if (strcmp(kind, "refused") == 0)
		return set_aside(t, view, path, line);
	if (strcmp(kind, "note") == 0 || strcmp(kind, "lost") == 0)
		strv_add(t->notes, line);
	if (strcmp(kind, "lost") == 0 && t->loud)
		strv_add(t->loud, line);
	return t->notes->failed || (t->loud && t->loud->failed)
		       ? ward_fail(t->e, ENOMEM, "out of memory")
		       : 0;
}

static int take_answer(struct taking *t, struct git_run *run)
{
	auto_buf answer = { 0 };
	int status = finish(run, &answer, t->e);
	char *rest = answer.data, *line;

	/* what it said before it failed counts all the same */
	while (rest && (line = strsep(&rest, "\n")))
		if (*line) {
			int one = take_line(t, line);

			status = status < 0 ? status : one;
		}
	return status;
}

static bool any_changed(const struct strv *dirs)
{
	for (size_t i = 0; i < dirs->len; i++)
		if (git_view_changed(dirs->items[i]))
			return true;
	return false;
}

/* The directories of a run's views, sorted by number. */
static int list_views(const char *run_id, struct strv *dirs, int *ret_lock, struct ward_err *e)
{
	auto_free char *state = NULL;
	auto_buf path = { 0 };
	auto_fd fd = -1;
	int status = state_dir_path(&state, e);

	if (status < 0)
		return status;
	buf_printf(&path, "%s/" GIT_VIEWS "/%s", state, run_id);
	if (path.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	fd = open(path.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : ward_fail_errno(e, "cannot open %s", path.data);
	if (ret_lock && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return ward_fail(e, EBUSY, "the private git directories of %s are in use", run_id);
	for (size_t i = 0;; i++) {
		auto_buf dir = { 0 };
		struct stat st;

		buf_printf(&dir, "%s/%zu", path.data, i);
		if (dir.failed || lstat(dir.data, &st) < 0)
			break;
		strv_add(dirs, dir.data);
	}
	if (ret_lock)
		*ret_lock = take_fd(&fd);
	return dirs->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Whether a review has anything of git's: also in the view of a repository that is gone by now. */
static bool needs_views(const char *run_id)
{
	struct ward_err ignored;
	auto_strv all = { 0 };

	return list_views(run_id, &all, NULL, &ignored) < 0 || any_changed(&all);
}

void git_run_end(const struct plan *p, struct git_run *run, struct result *r)
{
	struct git_views *v = p->live->views;
	struct ward_err e = { 0 };
	struct taking t = { .run_id = p->spec->run_id,
			    .workspace = p->workspace,
			    .dirs = v ? &v->dirs : NULL,
			    .moved = &r->quarantine,
			    .notes = &r->notes,
			    .loud = &r->loud,
			    .e = &e };
	struct git_run now = { 0 };
	int status = 0;

	if (v && v->kept && !needs_views(p->spec->run_id))
		v->kept = false; /* the review has nothing of git's */
	if (!v || v->kept || v->dirs.len == 0)
		return;
	if (!run && any_changed(&v->dirs)) {
		status = start(&v->dirs, "import", &now, &e);
		run = status < 0 ? NULL : &now;
	}
	if (run)
		status = take_answer(&t, run);
	if (run != &now)
		free(run);
	if (status >= 0)
		return;
	v->failed = true; /* nothing is lost: `ward recover` tries again */
	strv_addf(&r->notes, "the sandbox's git changes are not imported yet: %s; they are in %s",
		  e.why, v->path);
	if (!r->error.code) {
		r->error = e;
		ward_wrap(&r->error, "importing the sandbox's git changes");
		ward_remedy(&r->error,
			    "`ward recover` tries again; the sandbox's git directory is in %s",
			    v->path);
	}
}

int git_views_remove(const char *run_id, struct ward_err *e)
{
	auto_free char *state = NULL;
	auto_buf path = { 0 };
	int status = state_dir_path(&state, e);

	if (status < 0)
		return status;
	buf_printf(&path, "%s/" GIT_VIEWS "/%s", state, run_id);
	status = path.failed ? -ENOMEM : remove_tree(path.data);
	return status < 0 ? ward_fail(e, -status,
				      "cannot remove the private git directories of %s: %s", run_id,
				      strerror(-status))
			  : 0;
}

int git_run_finish(const char *run_id, const char *workspace, struct strv *moved,
		   struct strv *notes, struct ward_err *e)
{
	auto_strv dirs = { 0 };
	struct taking t = { .run_id = run_id,
			    .workspace = workspace,
			    .dirs = &dirs,
			    .moved = moved,
			    .notes = notes,
			    .e = e };
	struct git_run now = { 0 };
	auto_fd lock = -1;
	int status = list_views(run_id, &dirs, &lock, e);

	if (status == 0 && any_changed(&dirs)) {
		status = start(&dirs, "import", &now, e);
		if (status == 0)
			status = take_answer(&t, &now);
	}
	return status < 0 || lock < 0 ? status : git_views_remove(run_id, e);
}

int git_views_show(const char *run_id, struct strv *lines, struct ward_err *e)
{
	auto_strv dirs = { 0 }, moved = { 0 };
	struct taking t = { .dirs = &dirs, .moved = &moved, .notes = lines, .e = e };
	struct git_run now = { 0 };
	int status = list_views(run_id, &dirs, NULL, e);

	if (status < 0 || !any_changed(&dirs))
		return status;
	status = start(&dirs, "show", &now, e);
	return status < 0 ? status : take_answer(&t, &now);
}

/* Whether a run that goes on, was killed or is under review may still need its views. */
static bool is_wanted(const char *run_id)
{
	return !review_is_id(run_id) || store_has_record(run_id) || review_exists(run_id);
}

void git_views_tidy(struct strv *notes)
{
	struct ward_err ignored = { 0 };
	auto_strv moved = { 0 };
	auto_fd state = store_open(&ignored);
	int fd = state < 0 ? -1
			   : openat(state, GIT_VIEWS,
				    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir list = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !list)
		close(fd);
	for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list)) {
		auto_fd one = entry->d_name[0] == '.'
				      ? -1
				      : openat(fd, entry->d_name,
					       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (one < 0 || flock(one, LOCK_EX | LOCK_NB) < 0 || is_wanted(entry->d_name))
			continue;
		flock(one, LOCK_UN);
		/* the next `ward recover` tries again */
		(void)!git_run_finish(entry->d_name, "", &moved, notes, &ignored);
	}
}
