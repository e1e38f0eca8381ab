/*
 * Compiling a module ahead of time. In: a private copy of the module. Out: an entry of the store.
 * The compiler is LLVM and its input is untrusted, so it runs in a native sandbox: `ward run` with
 * an empty read-only workspace, no network, the module as standard input, a new file of the store
 * as standard output, bounded in time, memory and output. Runs in the supervisor with the user's
 * rights, before the sandbox of the module itself is built; a signal that ends ward ends this, too.
 */
#include "engine/wasm/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/raw.h"

#define FIRST_FD 16   /* above all that the child overwrites */
#define EMPTY "empty" /* in the store: a workspace with nothing in it */
#define TURN_MS 100

static int make_words(const struct compile_job *job, struct strv *out, struct ward_err *e)
{
	static const char *const limits[] = { "--timeout", "300",
					      "--memory",  "4Gi",
					      "--pids",    "64",
					      "--set",     "resources.output_limit=512Mi",
					      "--set",     "filesystem.mode=read_only",
					      "--set",     "audit.level=basic" };

	if (mkdirat(job->code->dir_fd, EMPTY, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make %s/" EMPTY, job->code->dir);
	strv_add(out, "ward");
	strv_add(out, "run");
	/* no policy file lies there */
	strv_addf(out, "--workspace=%s/" EMPTY, job->code->dir);
	strv_add(out, "--isolation=native");
	strv_addf(out, "--ro=%s", job->at->runner);
	if (job->at->plan->image.root)
		strv_addf(out, "--image=%s", job->at->plan->image.root);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		strv_add(out, limits[i]);
	strv_add(out, "--");
	strv_add(out, job->at->runner);
	strv_add(out, "compile");
	strv_add(out, "--runtime");
	strv_add(out, wasm_runtime_name(job->at->runtime->id));
	strv_add(out, "--file");
	strv_add(out, job->at->runtime->file);
	if (job->metered)
		strv_add(out, "--metered");
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

struct starting {
	char *const *argv;
	int fds[3]; /* that become 0-2, all above them */
	uint64_t no_signals;
};

/* Shares the caller's memory until it executes: raw calls only. */
static int become_ward(void *argument)
{
	struct starting *s = argument;

	/* killing ward ends this, too */
	raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &s->no_signals, 0, 8);
	for (int i = 0; i < 3; i++)
		if (raw_call(SYS_dup3, s->fds[i], i, 0) < 0)
			return 125;
	raw_call(SYS_execve, "/proc/self/exe", s->argv, environ);
	return 125;
}

/* ward once more, with no signal blocked. */
static int start_ward(char *const *argv, int in_fd, int out_fd, pid_t *ret_pid)
{
	char stack[8192] __attribute__((aligned(16)));
	auto_fd nothing = open("/dev/null", O_WRONLY | O_CLOEXEC),
		in = fcntl(in_fd, F_DUPFD_CLOEXEC, FIRST_FD),
		out = fcntl(out_fd, F_DUPFD_CLOEXEC, FIRST_FD),
		silent = fcntl(nothing, F_DUPFD_CLOEXEC, FIRST_FD);
	struct starting s = { .argv = argv, .fds = { in, out, silent } };
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK,
				     .stack = stack,
				     .stack_bytes = sizeof(stack),
				     .main = become_ward,
				     .argument = &s };
	long pid;

	if (in < 0 || out < 0 || silent < 0)
		return -EMFILE;
	pid = clone_start(&child);
	if (pid < 0)
		return (int)pid;
	*ret_pid = (pid_t)pid;
	return 0;
}

/* ward's own signals are blocked, and read when the sandbox runs: here they are looked at and
 * stay. */
static bool asked_to_end(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t pending;

	if (sigpending(&pending) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (sigismember(&pending, ends[i]) == 1)
			return true;
	return false;
}

static int wait_for(pid_t pid, struct progress *progress, int *ret_status)
{
	auto_fd pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	bool asked = false;

	progress_begin(progress, 0);
	for (;;) {
		struct pollfd ready = { .fd = pid_fd, .events = POLLIN };

		if (pid_fd < 0 || poll(&ready, 1, TURN_MS) > 0)
			break;
		if (!asked && asked_to_end()) {
			kill(pid, SIGTERM);
			asked = true;
		}
		progress_look(progress, "compiling the module");
	}
	progress_end(progress);
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return asked ? -EINTR : 0;
}

/* Why there is no code. What was a matter of the moment is tried again at the next start. */
static const struct {
	int code;
	bool again;
	const char *why;
} reasons[] = {
	{ 74, true, "no space for the code; the disk may be full" },
	{ 124, true, "it took longer than 300 s; wasm.compile: false skips it" },
	{ 126, false, "the compiler rejected the module" },
	{ 128 + SIGABRT, true, "the compiler gave up; it may have had too little memory" },
	{ 128 + SIGKILL, true, "it needed more memory than 4 GiB; wasm.compile: false skips it" },
	{ 128 + SIGSEGV, false, "the compiler crashed" },
	{ 0, true, "the compiler wrote no output" },
};

/* Whether the sandbox has left a result behind; *e says why not, *ret_again whether that may
 * change. */
static int judge(int status, int fd, bool *ret_again, struct ward_err *e)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	struct stat st;

	*ret_again = true;
	if (code == 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].code == code) {
			*ret_again = reasons[i].again;
			return ward_fail(e, ENOTSUP, "%s", reasons[i].why);
		}
	if (code != 125 && code != 127)
		return ward_fail(e, ENOTSUP, "the compiler exited with %d", code);
	return ward_fail(
		e, EIO,
		"cannot start the module's compiler: ward run -- ward-wasm compile exited with %d",
		code);
}

/* Without room for it there is no code: that is no reason not to run the module. */
static int soften(struct ward_err *e)
{
	return e->code == ENOSPC || e->code == EDQUOT || e->code == EFBIG
		       ? ward_fail(e, ENOTSUP, "%s", reasons[0].why)
		       : -e->code;
}

int compile_module(const struct compile_job *job, struct ward_err *e)
{
	auto_strv argv = { 0 };
	char name[64];
	auto_fd fd = -1;
	int status = 0, r = make_words(job, &argv, e), kept;
	bool again = true;
	pid_t pid = 0;

	if (r < 0)
		return soften(e);
	fd = wasm_store_begin(job->code, name, e);
	if (fd < 0)
		return soften(e);
	r = start_ward(argv.items, job->input_fd, fd, &pid);
	if (r < 0)
		r = ward_fail(e, -r, "cannot start ward to compile the module: %s", strerror(-r));
	else if (wait_for(pid, job->at->plan->spec->progress, &status) < 0)
		r = ward_fail(e, EINTR, "interrupted while the module was compiled");
	else
		r = judge(status, fd, &again, e);
	if (r == 0 || (r == -ENOTSUP && !again)) {
		kept = wasm_store_keep(job->code, fd, name, job->origin, r == 0, e);
		return kept < 0 ? soften(e) : r;
	}
	if (name[0])
		unlinkat(job->code->dir_fd, name, 0);
	return r;
}
