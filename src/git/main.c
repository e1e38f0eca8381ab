/*
 * ward-git: takes over what a sandbox did with git. In: directories of views (gitview/git_view.h)
 * as words, a socket at descriptor 3. Out: the host's repositories; lines for the supervisor
 * (say.c). `import` waits for one byte and takes over everything; `follow` does so too, and until
 * then takes over commits as they are made and brings the host's into the view; `show` only says
 * what `import` would take over.
 *
 * Runs outside of the sandbox, as the owner of the repositories: as root it becomes that user
 * before it reads anything. It parses hostile files with the pure functions of src/rules and runs
 * git only on the host's side. Each view is taken over by a child that is bounded in memory and
 * time, so a view that takes long, or makes git use too much, does not keep the others back. Where
 * its socket ends without a byte the supervisor was killed: it ends without a word, and `ward
 * recover` starts another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "confine/confine.h"
#include "git/git.h"

#define SOCKET_FD 3
#define PAUSE_MS 1000  /* between two takings while the sandbox runs */
#define SETTLE_MS 60   /* a commit touches several files */
#define LIVE_MS 60000  /* for all views, while the sandbox runs */
#define END_MS 15000   /* of that, once the end is wanted */
#define VIEW_MS 600000 /* for one view at the end */
#define ALL_MS 900000  /* for all of them */
#define GRACE_MS 20000 /* to end */
#define SAID_MAX (64u << 20)
#define WATCH_EVENTS (IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR)

/* Directories in which a change means that something was committed, checked out or fetched. */
static const char *const watched[] = { "",     "refs/heads", "refs/tags", "refs/remotes",
				       "logs", "worktrees" };

static void watch_dir(int fd, const char *dir)
{
	for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
		auto_buf path = { 0 };

		buf_printf(&path, "%s%s%s", dir, *watched[i] ? "/" : "", watched[i]);
		if (!path.failed)
			(void)inotify_add_watch(fd, path.data, WATCH_EVENTS);
	}
}

static int watch_all(char **dirs)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	for (char **dir = dirs; fd >= 0 && *dir; dir++) {
		struct git_view_record r = { 0 };
		auto_buf view = { 0 }, text = { 0 }, path = { 0 };

		buf_printf(&view, "%s/" GIT_VIEW_DIR, *dir);
		buf_printf(&path, "%s/" GIT_VIEW_RECORD, *dir);
		if (view.failed || path.failed ||
		    io_read_file(AT_FDCWD, path.data, 1u << 20, &text) < 0 ||
		    git_view_record_read(buf_text(&text), text.len, &r) < 0)
			continue;
		watch_dir(fd, view.data);
		watch_dir(fd, r.git_dir);
		git_view_record_clear(&r);
	}
	return fd;
}

static void read_events(int fd)
{
	char events[8192];

	while (read(fd, events, sizeof(events)) > 0)
		;
}

static int read_record(int dir_fd, const char *dir, struct git_view_record *ret, struct ward_err *e)
{
	auto_buf text = { 0 };

	if (io_read_file(dir_fd, GIT_VIEW_RECORD, 1u << 20, &text) < 0 ||
	    git_view_record_read(buf_text(&text), text.len, ret) < 0)
		return ward_fail(e, EINVAL, "cannot read the private git directory %s", dir);
	return 0;
}

/* As root: becomes the owner of the repository, with no group but its own. */
static int become_owner(int dir_fd, const char *dir, struct ward_err *e)
{
	struct git_view_record r = { 0 };
	uid_t uid;
	gid_t gid;

	if (read_record(dir_fd, dir, &r, e) < 0)
		return -e->code;
	uid = r.uid;
	gid = r.gid;
	git_view_record_clear(&r);
	/* no id-mapped mount was to be had */
	if (!git_view_is_owned(dir, uid) && git_view_give(dir, uid, gid, e) < 0)
		return -e->code;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return ward_fail_errno(e, "cannot become the owner of the repository");
	return 0;
}

/* In a process of its own, so that a view's trouble is not another one's: as root it becomes the
 * repository's owner. */
static int take_as_owner(size_t number, const char *dir, enum take_how how, struct buf *out,
			 struct ward_err *e)
{
	auto_fd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int status = dir_fd < 0 ? ward_fail_errno(e, "cannot open %s", dir) : 0;

	if (status == 0 && geteuid() == 0)
		status = become_owner(dir_fd, dir, e);
	/* after the change of user, which resets it */
	if (status == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0)
		status = ward_fail_errno(e, "cannot tie ward-git to its parent");
	return status < 0 ? status : take_view(number, dir, dir_fd, how, out, e);
}

/* The child: a process group of its own, with all that it starts. */
static noreturn void take_and_exit(size_t number, const char *dir, enum take_how how, int out_fd)
{
	struct ward_err e = { 0 };
	auto_buf said = { 0 };
	int r;

	setpgid(0, 0);
	signal(SIGTERM, SIG_DFL);
	r = confine_enter(PROC_GIT_VIEW, NULL, &e);
	if (r == 0)
		r = take_as_owner(number, dir, how, &said, &e);
	if (r < 0)
		buf_printf(&said, "%zu\tlost\t\tgit: %s\n", number, e.why);
	/* what is shown of the other repositories and of files must not wait for this one */
	if (r < 0 && how == TAKE_SHOW && !said.failed)
		r = 0;
	if (io_write_all(out_fd, buf_text(&said), said.len) < 0)
		r = -EIO;
	_exit(r < 0 ? 1 : 0);
}

/* Reads what the child says until it has ended. The supervisor may go, or want the end while the
 * sandbox's last commit is still taken over: that has END_MS. -ETIMEDOUT: it takes too long. */
static int read_child(int fd, enum take_how how, int64_t until, struct buf *out)
{
	bool asked = how != TAKE_LIVE;
	char bytes[65536];

	for (;;) {
		struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
				       { .fd = SOCKET_FD, .events = asked ? 0 : POLLIN } };
		int64_t left = until - now_ms();
		int ready = poll(p, 2, left < 0 ? 0 : (int)left);
		ssize_t n;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready < 0 ? -errno : -ETIMEDOUT;
		if (p[1].revents & (POLLHUP | POLLERR))
			return -EPIPE;
		if (p[1].revents) {
			asked = true;
			until = until < now_ms() + END_MS ? until : now_ms() + END_MS;
		}
		if (!p[0].revents)
			continue;
		n = read(fd, bytes, sizeof(bytes));
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf_add(out, bytes, (size_t)n);
		if (out->failed || out->len > SAID_MAX)
			return -EFBIG;
	}
}

/* Ends the child and every git of its, which become children of this process when that one is dead
 * (PR_SET_CHILD_SUBREAPER). They remove their locks when they get SIGTERM, which takes its time
 * where there are thousands: a lock that stays would keep the host's git from its refs. */
static void end_group(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000000 };
	int64_t until = now_ms() + GRACE_MS;
	pid_t got = 0;

	kill(-pid, SIGTERM);
	do {
		if (got == 0)
			nanosleep(&pause, NULL);
		got = waitpid(-pid, NULL, WNOHANG);
	} while ((got >= 0 || errno == EINTR) && now_ms() < until);
	if (got < 0)
		return; /* none is left */
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) >= 0 || errno == EINTR)
		;
}

/* Takes over one view in a child; its lines are appended to *out. */
static int take_in_child(size_t number, const char *dir, enum take_how how, int64_t until,
			 struct buf *out)
{
	int pipe_fds[2], code = 0, status;
	size_t before = out->len;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		take_and_exit(number, dir, how, pipe_fds[1]);
	close(pipe_fds[1]);
	if (pid > 0)
		setpgid(pid, pid);
	status = pid < 0 ? -EAGAIN : read_child(pipe_fds[0], how, until, out);
	if (pid > 0 && status < 0)
		end_group(pid);
	close(pipe_fds[0]);
	while (pid > 0 && status >= 0 && waitpid(pid, &code, 0) < 0 && errno == EINTR)
		;
	if (status < 0 && out->len > before)
		out->len = before; /* no half line */
	if (status == -ETIMEDOUT)
		buf_printf(out, "%zu\tlost\t\tgit: importing %s took too long\n", number, dir);
	return status < 0 ? status : WIFEXITED(code) && WEXITSTATUS(code) == 0 ? 0 : -EIO;
}

/* Whether both sides can write the view at the same time. */
static bool is_followed(const char *dir)
{
	auto_fd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct git_view_record r = { 0 };
	struct ward_err e = { 0 };
	bool followed = dir_fd >= 0 && read_record(dir_fd, dir, &r, &e) == 0 &&
			git_view_is_owned(dir, r.uid);

	git_view_record_clear(&r);
	return followed;
}

/* How deep the repository of a view lies: a submodule is taken over before what names its
 * commits. */
static size_t depth_of(const char *dir)
{
	auto_fd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct git_view_record r = { 0 };
	struct ward_err e = { 0 };
	size_t depth = 0;

	if (dir_fd >= 0 && read_record(dir_fd, dir, &r, &e) == 0)
		for (const char *c = r.git_dir; *c; c++)
			depth += *c == '/';
	git_view_record_clear(&r);
	return depth;
}

struct turn {
	size_t number, depth;
};

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->depth != y->depth ? (x->depth < y->depth) - (x->depth > y->depth)
				    : (x->number > y->number) - (x->number < y->number);
}

static int take_each(char **dirs, enum take_how how, struct buf *out)
{
	int64_t all = now_ms() + (how == TAKE_LIVE ? LIVE_MS : ALL_MS);
	auto_free struct turn *turns = NULL;
	size_t count = 0;
	int status = 0;

	while (dirs[count])
		count++;
	turns = calloc(count + 1, sizeof(*turns));
	if (!turns)
		return -ENOMEM;
	for (size_t k = 0; k < count; k++)
		turns[k] = (struct turn){ k, count > 1 ? depth_of(dirs[k]) : 0 };
	qsort(turns, count, sizeof(*turns), compare_turns);
	for (size_t k = 0; k < count; k++) {
		size_t i = turns[k].number;
		int64_t one_ms = now_ms() + VIEW_MS;
		bool idle = how == TAKE_LIVE ? !is_followed(dirs[i]) : !git_view_changed(dirs[i]);
		int one =
			idle ? 0 : take_in_child(i, dirs[i], how, one_ms < all ? one_ms : all, out);

		status = status < 0 ? status : one;
	}
	return status;
}

/* Waits for the byte; takes over meanwhile where follow_fd says that something happened. 0: finish;
 * -1: the supervisor is gone. */
static int wait_for_end(char **dirs, int follow_fd)
{
	bool due = false;

	/* what happened before the watches were set */
	for (char **dir = dirs; follow_fd >= 0 && *dir; dir++)
		due |= git_view_changed(*dir);
	for (;;) {
		struct pollfd p[2] = { { .fd = SOCKET_FD, .events = POLLIN },
				       { .fd = follow_fd, .events = POLLIN } };
		int ready = poll(p, follow_fd >= 0 && !due ? 2 : 1, due ? SETTLE_MS : -1);
		char byte;

		if (ready < 0 && errno == EINTR)
			continue;
		if (p[0].revents)
			return read(SOCKET_FD, &byte, 1) == 1 ? 0 : -1;
		if (due) {
			auto_buf unsaid = { 0 };

			/* what is written here makes one more turn, in which nothing is left to
			 * do */
			(void)!take_each(dirs, TAKE_LIVE, &unsaid);
			due = false;
			if (poll(p, 1, PAUSE_MS) != 0)
				return read(SOCKET_FD, &byte, 1) == 1 ? 0 : -1;
		} else if (ready > 0 && p[1].revents) {
			read_events(follow_fd);
			due = true;
		}
	}
}

int main(int argc, char **argv)
{
	bool follow = argc > 1 && strcmp(argv[1], "follow") == 0,
	     show = argc > 1 && strcmp(argv[1], "show") == 0;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	int follow_fd = -1, status;

	if (argc < 3 || (!follow && !show && strcmp(argv[1], "import") != 0))
		return 2;
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || confine_enter(PROC_GIT, NULL, &e) < 0)
		return 1;
	if (follow)
		follow_fd = watch_all(argv + 2);
	if (wait_for_end(argv + 2, follow_fd) < 0)
		return 0;
	status = take_each(argv + 2, show ? TAKE_SHOW : TAKE_ALL, &out);
	if (io_write_all(SOCKET_FD, buf_text(&out), out.len) < 0)
		status = -EIO;
	return status < 0 ? 1 : 0;
}
