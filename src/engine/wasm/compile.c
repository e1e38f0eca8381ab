/*
 * Compiling a module ahead of time. In: a private copy of the module. Out: an entry of the store. The compiler is LLVM and its input is anybody's, so it runs in a native sandbox: `ward run` with an empty read-only workspace, no network, the module as standard input, a new file of the store as standard output, bounded in
 * time, memory and output. Runs in the supervisor with the user's rights, before the sandbox of the module itself is built; a signal that ends ward ends this, too.
 */
#include "engine/wasm/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define EMPTY "empty"		/* in the store: a workspace with nothing in it */
#define TURN_MS 100

static int make_words(const struct compile_job *job, struct strv *out, struct ward_err *e)
{
	static const char *const limits[] = { "--timeout", "300", "--memory", "4Gi", "--pids", "64", "--set", "resources.output_limit=512Mi",
					      "--set", "filesystem.mode=read_only", "--set", "audit.level=basic" };

	if (mkdirat(job->code->dir_fd, EMPTY, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make %s/" EMPTY, job->code->dir);
	strv_add(out, "ward");
	strv_add(out, "run");
	strv_addf(out, "--workspace=%s/" EMPTY, job->code->dir);	/* no policy file of anybody's lies there */
	strv_add(out, "--isolation=native");
	strv_addf(out, "--ro=%s", job->runner);
	if (job->image_root)
		strv_addf(out, "--image=%s", job->image_root);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		strv_add(out, limits[i]);
	strv_add(out, "--");
	strv_add(out, job->runner);
	strv_add(out, "compile");
	strv_add(out, "--runtime");
	strv_add(out, wasm_runtime_name(job->runtime->id));
	strv_add(out, "--file");
	strv_add(out, job->runtime->file);
	if (job->metered)
		strv_add(out, "--metered");
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* ward once more, with no signal blocked. */
static int start_ward(char *const *argv, int in_fd, int out_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	sigemptyset(&none);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	r = posix_spawn_file_actions_adddup2(&actions, in_fd, STDIN_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (r == 0)
		r = posix_spawnattr_setsigmask(&attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	if (r == 0)
		r = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* ward's own signals are blocked, and read when the sandbox runs: here they are looked at and stay. */
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
	bool told = false;

	progress_begin(progress, 0);
	for (;;) {
		struct pollfd ready = { .fd = pid_fd, .events = POLLIN };

		if (pid_fd < 0 || poll(&ready, 1, TURN_MS) > 0)
			break;
		if (!told && asked_to_end()) {
			kill(pid, SIGTERM);
			told = true;
		}
		progress_look(progress, "compiling the module");
	}
	progress_end(progress);
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return told ? -EINTR : 0;
}

/* Whether the sandbox has left compiled code behind; *e says why not. */
static int judge(int status, int fd, struct ward_err *e)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	struct stat st;

	if (code == 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		return 0;
	if (code == 125 || code == 127)
		return ward_fail(e, EIO, "the module's compiler could not be started: ward run -- ward-wasm compile ended with %d", code);
	return ward_fail(e, ENOTSUP, code == 124 ? "it took longer than 300 s" : code == 137 ? "it needed more memory than 4 GiB" : "the compiler refused it");
}

int compile_module(const struct compile_job *job, struct ward_err *e)
{
	auto_strv argv = { 0 };
	char name[64];
	auto_fd fd = -1;
	int status = 0, r = make_words(job, &argv, e), kept;
	pid_t pid = 0;

	if (r < 0)
		return r;
	fd = wasm_store_begin(job->code, name, e);
	if (fd < 0)
		return fd;
	r = start_ward(argv.items, job->module_fd, fd, &pid);
	if (r < 0)
		r = ward_fail(e, -r, "cannot start ward to compile the module: %s", strerror(-r));
	else if (wait_for(pid, job->progress, &status) < 0)
		r = ward_fail(e, EINTR, "interrupted while the module was compiled");
	else
		r = judge(status, fd, e);
	if (r == 0 || r == -ENOTSUP) {
		kept = wasm_store_keep(job->code, fd, name, r == 0, e);
		return kept < 0 ? kept : r;
	}
	unlinkat(job->code->dir_fd, name, 0);
	return r;
}
