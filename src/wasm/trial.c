/*
 * Making the library without its compiler (trim.c), and trying it. In: the system's library. Out:
 * at standard output the trimmed one, which ward puts into its store, if a small module runs by it
 * as it should, interpreted and compiled; nothing otherwise. It runs where modules are compiled: in
 * a native sandbox of its own that sees neither workspace nor network. Each try is a process of its
 * own, which may crash.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sha256.h"
#include "wasm/edge.h"

#define LIBRARY "/tmp/ward-library.so"
#define CODE "/tmp/ward-trial.so"
#define CODE_OF_TRIAL 7

/* (module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32))) (memory (export
 * "memory") 1) (func (export "_start") (call 0 (i32.const 7)))) */
static uint8_t trial[] = "\0asm\1\0\0\0"
			 "\1\x08\2\x60\1\x7f\0\x60\0\0"
			 "\2\x24\1\x16wasi_snapshot_preview1\x09proc_exit\0\0"
			 "\3\2\1\1"
			 "\5\3\1\0\1"
			 "\7\x13\2\6memory\2\0\6_start\0\1"
			 "\x0a\x08\1\6\0\x41\7\x10\0\x0b";
static const struct wasm_module module = { .bytes = trial, .n = sizeof(trial) - 1 };

enum step { COMPILE, INTERPRETED, COMPILED };

static int act(enum step step, const struct wasm_job *system)
{
	static char name[] = "trial", *words[] = { name, NULL };
	struct wasm_job job = { .runtime = system->runtime, .file = LIBRARY, .words = words };
	char digest[SHA256_HEX];

	if (step == COMPILE)
		return edge_compile_to(system, &module, CODE);
	sha256_hex(module.bytes, module.n, digest);
	if (step == COMPILED) {
		job.aot = CODE;
		job.aot_digest = digest;
	}
	return edge_run(&job, &module);
}

/* 0: it ends as it should. */
static int try(enum step step, const struct wasm_job *system)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(act(step, system));
	if (pid < 0 || waitpid(pid, &status, 0) != pid ||
	    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		return say(EXIT_LIMIT, NULL, "no memory for a trial");
	if (WIFEXITED(status) && WEXITSTATUS(status) == (step == COMPILE ? 0 : CODE_OF_TRIAL))
		return 0;
	return say(EXIT_NOT_RUN, system->file, "does not work without its compiler");
}

static int write_library(const struct wasm_module *m)
{
	int fd = open(LIBRARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t done = 0;

	while (fd >= 0 && done < m->n) {
		ssize_t n = write(fd, m->bytes + done, m->n - done);

		if (n < 0)
			break;
		done += (size_t)n;
	}
	if (fd < 0 || done < m->n || close(fd) < 0)
		return say(EXIT_NO_ROOM, LIBRARY, "cannot be written: %s", strerror(errno));
	return 0;
}

int edge_trim(const struct wasm_job *job)
{
	struct wasm_module m;
	const char *wrong;
	int r = file_read(job->file, &m);

	if (r)
		return r;
	wrong = wasm_trim(m.bytes, m.n);
	if (wrong)
		return say(EXIT_NOT_RUN, job->file, "%s", wrong);
	r = write_library(&m);
	if (r)
		return r;
	for (enum step step = COMPILE; step <= COMPILED && r == 0; step++)
		r = try(step, job);
	return r ? r : hand_out(LIBRARY);
}
