/*
 * One command, or one copy, of the guest: what VM_START begins. In: the words that VM_WORDS
 * brought. Out: a child with pipes or a terminal as its 0-2, whose other ends streams.c moves bytes
 * through. A command gets the user's ids and limits before it is executed; what ward-init does for
 * a command in a native sandbox (src/guest) is done here by the same code: session, search along
 * PATH, copies of `ward cp`. Trees are made and read with the guest root's rights: they are of the
 * user's anyhow.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw.h"
#include "guest/guest.h"
#include "guest/session.h"
#include "vm/guest/agent.h"

#define CHILD_FDS 5
#define DISK_FD 4
#define REFUSAL_BYTES 1200 /* less than a pipe holds */

/* Of the freestanding code that is shared with ward-init. */
_Noreturn void guest_exit(int code)
{
	_exit(code);
}

static void use_channel(struct agent *a, unsigned channel)
{
	if (a->channels <= channel)
		a->channels = channel + 1;
}

bool job_make_room(struct agent *a, unsigned channel, size_t n)
{
	struct job *j = &a->jobs[channel];
	char *more;

	use_channel(a, channel);
	if (n <= j->words_room)
		return true;
	if (!j->words && n <= JOB_SPARE_BYTES && a->spare_words) {
		j->words = a->spare_words;
		j->words_room = JOB_SPARE_BYTES;
		a->spare_words = NULL;
		return true;
	}
	more = realloc(j->words, n);
	if (!more)
		return false;
	j->words = more;
	j->words_room = n;
	return true;
}

static void drop_words(struct agent *a, struct job *j)
{
	if (!a->spare_words && j->words_room == JOB_SPARE_BYTES)
		a->spare_words = j->words;
	else
		free(j->words);
	j->words = NULL;
	j->words_len = j->words_room = 0;
}

void job_clear(struct agent *a, unsigned channel)
{
	struct job *j = &a->jobs[channel];

	drop_words(a, j);
	free(j->pending);
	if (j->in_fd >= 0)
		close(j->in_fd);
	for (int i = 0; i < VM_STREAMS; i++)
		if (j->out_fds[i] >= 0)
			close(j->out_fds[i]);
	if (j->stopped_fd >= 0)
		close(j->stopped_fd);
	*j = (struct job){ .in_fd = -1, .stopped_fd = -1, .out_fds = { -1, -1, -1 } };
	while (a->channels > 1 && !a->jobs[a->channels - 1].active &&
	       !a->jobs[a->channels - 1].words)
		a->channels--;
}

void job_fail(struct agent *a, unsigned channel, int code)
{
	struct job *j = &a->jobs[channel];

	if (!channel) {
		job_clear(a, channel);
		return;
	}
	a->error_code = code;
	a->error_channel = channel;
	j->active = j->exited = true;
	j->status = JOB_NOT_STARTED << 8;
}

/* ---- descriptors ---- */

/* Into standard input we write; from the others we read. */
int job_make_pipe(unsigned stream, int *ret_inner, int *ret_outer)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_inner = fds[stream ? 1 : 0];
	*ret_outer = fds[stream ? 0 : 1];
	fcntl(*ret_outer, F_SETFL, O_NONBLOCK);
	return 0;
}

void job_prepare(struct agent *a)
{
	spare_make(a); /* if it cannot be made, its user will report it */
	if (!a->spare_words)
		a->spare_words = calloc(1, JOB_SPARE_BYTES);
}

static int make_terminal(struct agent *a, struct job *j, const struct vm_start *s,
			 struct ends *ends)
{
	struct winsize size = { .ws_row = s->rows, .ws_col = s->columns };
	int unlock = 0, slave;

	j->out_fds[0] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (j->out_fds[0] < 0)
		return -errno;
	slave = ioctl(j->out_fds[0], TIOCSPTLCK, &unlock) < 0
			? -1
			: ioctl(j->out_fds[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	ioctl(slave, TIOCSWINSZ, &size);
	if (fchown(slave, a->setup.uid, a->setup.gid) < 0 ||
	    pipe2(ends->stopped, O_CLOEXEC | O_NONBLOCK) < 0) {
		close(slave);
		return -errno;
	}
	j->stopped_fd = ends->stopped[0];
	for (int i = 0; i < VM_STREAMS; i++)
		if (s->terminals & 1u << i)
			ends->inner[i] = fcntl(slave, F_DUPFD_CLOEXEC, 10);
	if (s->terminals & 1)
		j->in_fd = fcntl(j->out_fds[0], F_DUPFD_CLOEXEC, 10);
	close(slave);
	j->terminal = true;
	return 0;
}

static int make_ends(struct agent *a, struct job *j, const struct vm_start *s, struct ends *ends)
{
	int r = s->terminals & 7 ? make_terminal(a, j, s, ends) : 0;

	for (unsigned i = 0; i < VM_STREAMS && r == 0; i++)
		if (!(s->terminals & 1u << i))
			r = job_make_pipe(i, &ends->inner[i], i ? &j->out_fds[i] : &j->in_fd);
	return r;
}

/* ---- the child ---- */

/* The first `count` descriptors: 0-2; 3 for the session's leader or the manifest; 4 for a tree's
 * device, which no command gets. All else is for the caller to close; an exec does. */
static bool take_ends(const struct ends *ends, int count, int manifest_fd, int disk_fd)
{
	int fds[CHILD_FDS] = { ends->inner[0], ends->inner[1], ends->inner[2],
			       ends->stopped[1] < 0 ? manifest_fd : ends->stopped[1], disk_fd };

	for (int i = 0; i < count; i++) /* out of the way of each other first */
		if (fds[i] >= 0 && fds[i] < count) {
			fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, count);
			if (fds[i] < 0)
				return false;
		}
	for (int i = 0; i < count; i++) {
		if (fds[i] < 0)
			close(i);
		else if (dup3(fds[i], i, i < VM_STREAMS ? 0 : O_CLOEXEC) < 0)
			return false;
	}
	return true;
}

static size_t append(char *text, size_t n, const char *more)
{
	for (; *more && n < REFUSAL_BYTES; more++)
		text[n++] = *more;
	return n;
}

/* Raw: the memory may be pid 1's. */
static _Noreturn void refuse(const char *what, int code, long error)
{
	char text[REFUSAL_BYTES + 64];
	size_t n = append(text, append(text, 0, "ward: "), what);

	n = append(text, append(text, n < REFUSAL_BYTES - 100 ? n : REFUSAL_BYTES - 100, ": "),
		   strerror((int)error));
	text[n++] = '\n';
	raw_call(SYS_write, 2, text, n);
	raw_call(SYS_exit_group, code);
	__builtin_unreachable();
}

static void let_signals_through(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

bool job_take_ends(const struct ends *ends)
{
	if (!take_ends(ends, VM_STREAMS, -1, -1) || setsid() < 0)
		return false;
	let_signals_through();
	return true;
}

static _Noreturn void become(const struct agent *a, struct guest_start *start)
{
	char *none = NULL;
	long r = limits_enter(a);

	if (r < 0)
		refuse("limits and ids of the command", JOB_NOT_STARTED, -r);
	r = start->cwd[0] ? raw_call(SYS_chdir, start->cwd) : 0;
	if (r < 0)
		refuse(start->cwd, JOB_NOT_STARTED, -r);
	r = guest_exec(start, &none);
	refuse(start->strings, r == ENOENT ? 127 : 126, r);
}

_Noreturn void job_become(const struct agent *a, const char *words, const struct vm_start *s,
			  char **list)
{
	struct guest_start start = { .argc = s->argc,
				     .envc = s->envc,
				     .cwd = words,
				     .strings = list[0],
				     .argv = list,
				     .envp = list + s->argc + 1 };

	become(a, &start);
}

/* On a terminal, or beside other commands. */
static _Noreturn void run_command(const struct agent *a, const char *words,
				  const struct vm_start *s)
{
	struct guest_start start = { .argc = s->argc,
				     .envc = s->envc,
				     .cwd = words,
				     .strings = words + strlen(words) + 1,
				     .from_packet = true };

	guest_session(0);
	let_signals_through();
	become(a, &start);
}

static _Noreturn void run_copy(const struct agent *a, const char *words, uint32_t argc)
{
	const char *what = words + strlen(words) + 1,
		   *path = argc > 1 ? what + strlen(what) + 1 : "",
		   *name = argc > 2 ? path + strlen(path) + 1 : "";

	setsid();
	if (limits_enter(a) < 0 || (words[0] && chdir(words) < 0 && path[0] != '/'))
		_exit(JOB_NOT_STARTED);
	let_signals_through();
	_exit(guest_copy(what, path, name));
}

static _Noreturn void run_child(const struct agent *a, const char *words, const struct vm_start *s,
				const struct ends *ends)
{
	const char *paths = words + strlen(words) + 1;
	bool tree = s->kind == VM_TREE_IN || s->kind == VM_TREE_OUT;
	int disk_fd = tree && a->disk_fd >= 0 ? DISK_FD : -1;

	/* not every child executes something, and a pipe that a process has open does not end */
	if (!take_ends(ends, CHILD_FDS, tree ? a->manifest_fd : -1, tree ? a->disk_fd : -1) ||
	    syscall(SYS_close_range, CHILD_FDS, ~0u, 0) < 0)
		_exit(JOB_NOT_STARTED);
	if (s->kind == VM_RUN)
		run_command(a, words, s);
	if (s->kind == VM_COPY)
		run_copy(a, words, s->argc);
	let_signals_through();
	_exit(s->kind == VM_TREE_IN ? tree_in_main(a, paths, s->argc, GUEST_CONTROL_FD, disk_fd)
				    : tree_out_main(paths, s->argc, GUEST_CONTROL_FD, disk_fd));
}

/* ---- the start ---- */

/* Beside what there is, or with a terminal: in memory of its own. */
static pid_t start_child(struct agent *a, struct job *j, const struct vm_start *s,
			 const struct ends *ends)
{
	bool is_user = s->kind == VM_RUN || s->kind == VM_COPY;
	pid_t pid;

	if (is_user)
		spare_drop(a);
	pid = limits_fork(a, is_user);
	if (pid == 0)
		run_child(a, j->words, s, ends);
	return pid < 0 ? -errno : pid;
}

/* What is not started by spare.c. Returns its pid or -errno. */
static pid_t start_with_ends(struct agent *a, struct job *j, const struct vm_start *s)
{
	struct ends ends = { .inner = { -1, -1, -1 }, .stopped = { -1, -1 } };
	pid_t r = make_ends(a, j, s, &ends);

	if (r == 0)
		r = start_child(a, j, s, &ends);
	for (int i = 0; i < VM_STREAMS; i++)
		if (ends.inner[i] >= 0)
			close(ends.inner[i]);
	if (ends.stopped[1] >= 0)
		close(ends.stopped[1]);
	return r;
}

void job_start(struct agent *a, unsigned channel, const struct vm_start *s)
{
	struct job *j = &a->jobs[channel];
	bool is_quick = s->kind == VM_RUN && !(s->terminals & 7) && a->childless;
	pid_t r = 0;

	use_channel(a, channel);
	if (j->active || !j->words || s->kind < VM_RUN || s->kind >= VM_KINDS ||
	    !wire_check_words(j->words, j->words_len, s->argc, s->envc))
		r = -EINVAL;
	if (r == 0)
		r = is_quick ? spare_start(a, j, s) : start_with_ends(a, j, s);
	if (r > 0) {
		j->pid = r;
		a->used |= channel && s->kind == VM_RUN;
		if (channel && (s->kind == VM_RUN || s->kind == VM_COPY))
			a->childless = false;
	}
	for (int i = 0; i < VM_STREAMS; i++)
		j->credit[i] = VM_WINDOW_BYTES;
	drop_words(a, j);
	j->active = j->fresh = true;
	if (r < 0)
		job_fail(a, channel, -r);
}
