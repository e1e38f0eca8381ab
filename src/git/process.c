/*
 * git on the host's side. In: words, bytes for its standard input. Out: what it writes. Runs in
 * ward-git with the rights of the repository's owner, always in a repository of the host's or in
 * one that ward-git made itself, never in the sandbox's: so no configuration and no hook of the
 * sandbox's is read. The user's own hooks are switched off, and only the repository's own
 * configuration is read.
 *
 * git reads objects that the sandbox made, so each call is bounded: in time here, in memory and
 * processor time by the limits of the process (main.c). A git that is ended for that counts as one
 * that refuses what it was given.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "host/program.h"

#define OUTPUT_MAX (256u << 20)
#define WORDS_MAX 64
#define HOLD_FD 9      /* above what the file actions use */
#define CALL_MS 120000 /* for one call */
#define GRACE_MS 15000 /* to remove its lock files after SIGTERM */

extern char **environ;

/* The words in front of every command: nothing of the repository's starts a program. */
static const char *const front[] = {
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
	"-c", "core.commitGraph=false",
	"-c", "core.multiPackIndex=false",
	"-c", "protocol.allow=never",
	"-c", "core.alternateRefsCommand=",
};

/* hold: the other end of a pipe, which is closed when it has ended; its standard output where out
 * is that. */
static int start(const struct git_call *c, int in, int out, int hold, pid_t *ret_pid)
{
	char program[PATH_MAX], git_dir[PATH_MAX + 16], store[PATH_MAX + 32],
		borrowed[PATH_MAX + 48];
	const char *words[WORDS_MAX] = { "git" };
	char *env[16] = { (char[]){ "GIT_TERMINAL_PROMPT=0" },
			  (char[]){ "GIT_OPTIONAL_LOCKS=0" },
			  (char[]){ "GIT_NO_LAZY_FETCH=1" },
			  (char[]){ "GIT_CONFIG_GLOBAL=/dev/null" },
			  (char[]){ "GIT_CONFIG_NOSYSTEM=1" },
			  (char[]){ "HOME=/nonexistent" },
			  (char[]){ "GIT_COMMITTER_NAME=ward" },
			  (char[]){ "GIT_COMMITTER_EMAIL=ward@localhost" },
			  git_dir };
	size_t n = 1, k = 9;
	posix_spawn_file_actions_t files;
	struct ward_err e = { 0 };
	int status;

	if (program_find_system("git", program, &e) < 0)
		return -ENOENT;
	snprintf(git_dir, sizeof(git_dir), "GIT_DIR=%s", c->git_dir);
	if (c->store) {
		snprintf(store, sizeof(store), "GIT_OBJECT_DIRECTORY=%s", c->store);
		env[k++] = store;
	}
	if (c->borrowed) {
		snprintf(borrowed, sizeof(borrowed), "GIT_ALTERNATE_OBJECT_DIRECTORIES=%s",
			 c->borrowed);
		env[k++] = borrowed;
	}
	for (char **v = environ; *v && k < ARRAY_LEN(env) - 1; v++)
		if (strncmp(*v, "GIT_", 4) != 0 && strncmp(*v, "HOME=", 5) != 0 &&
		    strncmp(*v, "XDG_", 4) != 0)
			env[k++] = *v;
	for (size_t i = 0; i < ARRAY_LEN(front); i++)
		words[n++] = front[i];
	for (size_t i = 0; c->words[i] && n < WORDS_MAX - 1; i++)
		words[n++] = c->words[i];
	if (posix_spawn_file_actions_init(&files) != 0)
		return -ENOMEM;
	status = posix_spawn_file_actions_adddup2(&files, in, 0);
	if (status == 0)
		status = posix_spawn_file_actions_adddup2(&files, out, 1);
	if (status == 0 && hold != out)
		status = posix_spawn_file_actions_adddup2(&files, hold, HOLD_FD);
	if (status == 0)
		status = posix_spawn(ret_pid, program, &files, NULL,
				     (char *const *)(uintptr_t)words, env);
	posix_spawn_file_actions_destroy(&files);
	return -status;
}

static int wait_for(pid_t pid)
{
	int code = 0;

	while (waitpid(pid, &code, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
}

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What is left until then, for poll(). */
static int left_ms(int64_t until)
{
	int64_t left = until - now_ms();

	return left < 0 ? 0 : left > CALL_MS ? CALL_MS : (int)left;
}

/* Writes and reads at the same time, so that neither side waits for the other. -ETIMEDOUT: it took
 * too long. */
static int feed(const struct git_call *c, int to, int from, struct buf *output)
{
	int64_t until = now_ms() + CALL_MS;
	size_t sent = 0;
	int status = 0;

	if (c->until_ms && c->until_ms < until)
		until = c->until_ms;

	if (to >= 0 && (!c->input || !c->input_n)) {
		close(to);
		to = -1;
	}
	if (to >= 0 && fcntl(to, F_SETFL, O_NONBLOCK) < 0)
		status = -errno;
	while (status == 0) {
		struct pollfd p[2] = { { .fd = from, .events = POLLIN },
				       { .fd = to, .events = POLLOUT } };
		char bytes[65536];
		ssize_t n;
		int ready = poll(p, 2, left_ms(until));

		if (ready == 0)
			status = -ETIMEDOUT;
		if (ready <= 0)
			continue;
		if (p[1].revents) {
			n = write(to, c->input + sent, c->input_n - sent);
			sent += n > 0 ? (size_t)n : 0;
			if ((n < 0 && errno != EAGAIN && errno != EINTR) || sent == c->input_n) {
				close(to); /* it may have enough of it */
				to = -1;
			}
		}
		if (!p[0].revents)
			continue;
		n = read(from, bytes, sizeof(bytes));
		if (n == 0)
			break;
		if (n > 0 && output)
			buf_add(output, bytes, (size_t)n);
		if (output && (output->failed || output->len > OUTPUT_MAX))
			status = -EFBIG;
	}
	own_close_fd(&to);
	return status;
}

/* git removes its locks and temporary files on SIGTERM. */
static int end_it(pid_t pid, int from)
{
	struct pollfd p = { .fd = from, .events = POLLIN };
	int64_t until = now_ms() + GRACE_MS;
	char bytes[4096];

	kill(pid, SIGTERM);
	while (poll(&p, 1, left_ms(until)) > 0 && read(from, bytes, sizeof(bytes)) > 0)
		;
	/* its standard output is closed, or the time is over; not reaped yet, so the number is its
	 * own */
	kill(pid, SIGKILL);
	(void)wait_for(pid);
	return 128 + SIGTERM;
}

int git_call(const struct git_call *c, struct buf *output)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status, code;
	pid_t pid = 0;

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	if (!c->input_fd && pipe2(in, O_CLOEXEC) < 0) {
		close(out[0]);
		close(out[1]);
		return -EMFILE;
	}
	status = start(c, c->input_fd ? c->input_fd : in[0], c->output_fd ? c->output_fd : out[1],
		       out[1], &pid);
	close(out[1]);
	own_close_fd(&in[0]);
	if (status == 0)
		status = feed(c, take_fd(&in[1]), out[0], output);
	own_close_fd(&in[1]);
	if (pid > 0) {
		code = status < 0 ? end_it(pid, out[0]) : wait_for(pid);
		status = status == 0 || status == -ETIMEDOUT || status == -EFBIG ? code : status;
	}
	close(out[0]);
	return status;
}
