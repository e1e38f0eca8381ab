/*
 * One command, or one copy, of the guest: what VM_START begins. In: the words that VM_WORDS brought. Out: a child with pipes or a
 * terminal as its 0-2, whose other ends streams.c moves bytes through. A command gets the user's ids and limits before
 * it is executed; what ward-init does for a command in a native sandbox (src/guest) is done here by the same code: session,
 * search along PATH, copies of `ward cp`. Trees are made and read with the guest root's rights: they are of the user's anyhow.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clone.h"
#include "guest/guest.h"
#include "guest/session.h"
#include "vm/guest/agent.h"

#define EXIT_NOT_STARTED 125
#define CHILD_FDS 5
#define DISK_FD 4
#define STACK_BYTES 65536
#define LIST_WORDS 256	/* of a command that need no memory of their own */

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
	if (j->told_fd >= 0)
		close(j->told_fd);
	*j = (struct job){ .in_fd = -1, .told_fd = -1, .out_fds = { -1, -1, -1 } };
	while (a->channels > 1 && !a->jobs[a->channels - 1].active && !a->jobs[a->channels - 1].words)
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
	j->status = EXIT_NOT_STARTED << 8;
}

/* ---- descriptors ---- */

struct ends {
	int inner[VM_STREAMS];	/* the child's 0-2 */
	int told[2];		/* where the session's leader says that its command was stopped */
};

/* Into standard input we write; from the others we read. */
static int make_pipe(unsigned stream, int fds[2])
{
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	fcntl(fds[stream ? 0 : 1], F_SETFL, O_NONBLOCK);
	return 0;
}

/* One that was made before, or a new one. */
static int take_pipe(struct agent *a, unsigned stream, int *ret_inner, int *ret_ours)
{
	int fds[2] = { a->spare_pipes[stream][0], a->spare_pipes[stream][1] }, r = fds[0] < 0 ? make_pipe(stream, fds) : 0;

	if (r < 0)
		return r;
	a->spare_pipes[stream][0] = a->spare_pipes[stream][1] = -1;
	*ret_inner = fds[stream ? 1 : 0];
	*ret_ours = fds[stream ? 0 : 1];
	return 0;
}

void job_prepare(struct agent *a)
{
	for (unsigned i = 0; i < VM_STREAMS; i++)
		if (a->spare_pipes[i][0] < 0 && make_pipe(i, a->spare_pipes[i]) < 0)
			a->spare_pipes[i][0] = a->spare_pipes[i][1] = -1;
	if (!a->spare_words)
		a->spare_words = calloc(1, JOB_SPARE_BYTES);
}

static int make_terminal(struct agent *a, struct job *j, const struct vm_start *s, struct ends *ends)
{
	struct winsize size = { .ws_row = s->rows, .ws_col = s->columns };
	int unlock = 0, slave;

	j->out_fds[0] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (j->out_fds[0] < 0)
		return -errno;
	slave = ioctl(j->out_fds[0], TIOCSPTLCK, &unlock) < 0 ? -1 : ioctl(j->out_fds[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	ioctl(slave, TIOCSWINSZ, &size);
	if (fchown(slave, a->setup.uid, a->setup.gid) < 0 || pipe2(ends->told, O_CLOEXEC | O_NONBLOCK) < 0) {
		close(slave);
		return -errno;
	}
	j->told_fd = ends->told[0];
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
			r = take_pipe(a, i, &ends->inner[i], i ? &j->out_fds[i] : &j->in_fd);
	return r;
}

/* ---- the child ---- */

/* The first `count` descriptors: 0-2; 3 for the session's leader or the manifest; 4 for a tree's device, which no command gets. All else is for the caller to close; an exec does. */
static bool take_ends(const struct ends *ends, int count, int manifest_fd, int disk_fd)
{
	int fds[CHILD_FDS] = { ends->inner[0], ends->inner[1], ends->inner[2], ends->told[1] < 0 ? manifest_fd : ends->told[1], disk_fd };

	for (int i = 0; i < count; i++)	/* out of the way of each other first */
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

/* Less than a pipe holds: who reads it may be waiting for us (start_quick). */
static _Noreturn void refuse(const char *what, int code, int error)
{
	dprintf(2, "ward: %.1000s: %s\n", what, strerror(error));
	_exit(code);
}

static void let_signals_through(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* list: room for what stands in words. In a child that has its parent's memory nothing may be left behind in it. */
static _Noreturn void run_command(const struct agent *a, const char *words, const struct vm_start *s, char **list)
{
	struct guest_start start = { .argc = s->argc, .envc = s->envc, .cwd = words, .strings = words + strlen(words) + 1, .from_packet = !list, .argv = list, .envp = list ? list + s->argc + 1 : NULL };
	char *none = NULL;
	long error;

	if (list)
		setsid();
	else
		guest_session(0);
	if (!limits_enter(a))
		refuse("limits and ids of the command", EXIT_NOT_STARTED, errno);
	if (start.cwd[0] && chdir(start.cwd) < 0)
		refuse(start.cwd, EXIT_NOT_STARTED, errno);
	let_signals_through();
	error = guest_exec(&start, &none);
	refuse(start.strings, error == ENOENT ? 127 : 126, (int)error);
}

static _Noreturn void run_copy(const struct agent *a, const char *words, uint32_t argc)
{
	const char *what = words + strlen(words) + 1, *path = argc > 1 ? what + strlen(what) + 1 : "", *name = argc > 2 ? path + strlen(path) + 1 : "";

	setsid();
	if (!limits_enter(a) || (words[0] && chdir(words) < 0 && path[0] != '/'))
		_exit(EXIT_NOT_STARTED);
	let_signals_through();
	_exit(guest_copy(what, path, name));
}

static _Noreturn void run_child(const struct agent *a, const char *words, const struct vm_start *s, const struct ends *ends)
{
	const char *paths = words + strlen(words) + 1;
	bool tree = s->kind == VM_TREE_IN || s->kind == VM_TREE_OUT;
	int disk_fd = tree && a->disk_fd >= 0 ? DISK_FD : -1;

	/* not every child executes something, and a pipe that somebody has open does not end */
	if (!take_ends(ends, CHILD_FDS, tree ? a->manifest_fd : -1, tree ? a->disk_fd : -1) || syscall(SYS_close_range, CHILD_FDS, ~0u, 0) < 0)
		_exit(EXIT_NOT_STARTED);
	if (s->kind == VM_RUN)
		run_command(a, words, s, NULL);
	if (s->kind == VM_COPY)
		run_copy(a, words, s->argc);
	let_signals_through();
	_exit(s->kind == VM_TREE_IN ? tree_in_main(a, paths, s->argc, GUEST_CONTROL_FD, disk_fd) : tree_out_main(paths, s->argc, GUEST_CONTROL_FD, disk_fd));
}

/* ---- the start ---- */

struct quick {
	const struct agent *agent;
	const char *words;
	const struct vm_start *start;
	const struct ends *ends;
	char **list;
};

static int quick_main(void *argument)
{
	const struct quick *q = argument;

	if (!take_ends(q->ends, VM_STREAMS, -1, -1))
		_exit(EXIT_NOT_STARTED);
	run_command(q->agent, q->words, q->start, q->list);
}

/* Words and variables as execve() wants them, pointing into the words: in `few` where that has room, else in memory of their own. NULL: no memory. */
static char **list_words(char *words, const struct vm_start *s, char **few)
{
	size_t count = (size_t)s->argc + s->envc;
	char **list = count + 2 <= LIST_WORDS ? few : calloc(count + 2, sizeof(*list)), *at = words + strlen(words) + 1;

	if (!list)
		return NULL;
	for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
		list[i < s->argc ? i : i + 1] = at;
	list[s->argc] = list[count + 1] = NULL;
	return list;
}

/* A command without a terminal begins in our memory, which spares copying it; as soon as it is another user, nobody may look into that
 * (the kernel takes it for one that is not to be dumped). We wait until it executes: so only while nobody is there who could stop it. */
static pid_t start_quick(struct agent *a, char *words, const struct vm_start *s, const struct ends *ends)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	char *few[LIST_WORDS];
	struct quick q = { a, words, s, ends, list_words(words, s, few) };
	struct clone_child c = { .flags = CLONE_VM | CLONE_VFORK, .stack = stack, .stack_bytes = sizeof(stack), .main = quick_main, .argument = &q };
	long pid;

	if (a->cgroup_fd >= 0) {
		c.flags |= CLONE_INTO_CGROUP;
		c.cgroup_fd = a->cgroup_fd;
	}
	pid = q.list ? clone_start(&c) : -ENOMEM;
	if (q.list != few)
		free(q.list);
	errno = pid < 0 ? (int)-pid : 0;
	return pid < 0 ? -1 : (pid_t)pid;
}

static pid_t start_child(struct agent *a, struct job *j, const struct vm_start *s, const struct ends *ends)
{
	pid_t pid;

	if (s->kind == VM_RUN && !(s->terminals & 7) && a->childless)
		return start_quick(a, j->words, s, ends);
	pid = limits_fork(a, s->kind == VM_RUN || s->kind == VM_COPY);
	if (pid == 0)
		run_child(a, j->words, s, ends);
	return pid;
}

void job_start(struct agent *a, unsigned channel, const struct vm_start *s)
{
	struct job *j = &a->jobs[channel];
	struct ends ends = { .inner = { -1, -1, -1 }, .told = { -1, -1 } };
	int r = 0;

	use_channel(a, channel);
	if (channel)
		rehearse_stop(a);
	if (j->active || !j->words || s->kind < VM_RUN || s->kind >= VM_KINDS || !wire_check_words(j->words, j->words_len, s->argc, s->envc))
		r = -EINVAL;
	if (r == 0)
		r = make_ends(a, j, s, &ends);
	if (r == 0) {
		j->pid = start_child(a, j, s, &ends);
		r = j->pid < 0 ? -errno : 0;
		if (channel) {
			a->childless &= r < 0;
			a->used |= s->kind == VM_RUN;
		}
	}
	for (int i = 0; i < VM_STREAMS; i++) {
		if (ends.inner[i] >= 0)
			close(ends.inner[i]);
		j->credit[i] = VM_WINDOW_BYTES;
	}
	if (ends.told[1] >= 0)
		close(ends.told[1]);
	drop_words(a, j);
	j->active = j->fresh = true;
	if (r < 0)
		job_fail(a, channel, -r);
}
