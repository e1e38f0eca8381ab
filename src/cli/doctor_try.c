/*
 * ward doctor's trials: whether the programs that engines need work, not whether a file of their
 * name is there. In: a table of runtimes. Out: of each that it is absent, works, or fails and why.
 * A runtime that makes sandboxes makes one (`ward run` with a policy of its own, in an empty
 * workspace and with a state directory that is removed again); the others are started and asked to
 * end. Each runs as the user, with nothing to read, bounded in time and in what it may print; what
 * it prints is another program's text and shown escaped.
 */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/remove.h"
#include "engine/gvisor/gvisor.h"
#include "engine/oci/oci.h"
#include "engine/wasm/wasm.h"
#include "host/program.h"
#include "state/vm.h"

#define TRIAL_MS 20000
#define PRINTED_MAX 4096
#define WORDS_MAX 16

enum { WASMEDGE = 1, WASMTIME, IWASM, NODE }; /* as wasm.runtime counts them, behind auto */

/* (module (memory (export "memory") 1) (func (export "_start"))) */
static const unsigned char module[] = {
	0, 'a', 's', 'm', 1,   0,   0,   0,   1, 4, 1,   0x60, 0,   0,   3,   2,    1,
	0, 5,   3,   1,   0,   1,   7,   19,  2, 6, 'm', 'e',  'm', 'o', 'r', 'y',  2,
	0, 6,   '_', 's', 't', 'a', 'r', 't', 0, 0, 10,  4,    1,   2,   0,   0x0b,
};

/* ---- where they are ---- */

static int find_oci(unsigned which, char *path, struct ward_err *e)
{
	struct oci_runtime r;
	int status = oci_find_runtime(which, &r, e);

	if (status == 0)
		snprintf(path, PATH_MAX, "%s", r.path);
	return status;
}

static int find_runsc(unused_arg unsigned which, char *path, struct ward_err *e)
{
	struct gvisor_runtime r = { 0 };
	int status = gvisor_find(&r, e);

	snprintf(path, PATH_MAX, "%s", r.path ? r.path : "");
	return status;
}

static int find_qemu(unused_arg unsigned which, char *path, struct ward_err *e)
{
	auto_free char *found = NULL;
	int status = vm_find_qemu(&found, e);

	if (status == 0)
		snprintf(path, PATH_MAX, "%s", found);
	return status;
}

static int find_wasm(unsigned which, char *path, struct ward_err *e)
{
	struct wasm_runtime r;
	int status = wasm_find_runtime(which, NULL, &r, e);

	if (status == 0)
		snprintf(path, PATH_MAX, "%s", r.host_file);
	return status;
}

static int find_skopeo(unused_arg unsigned which, char *path, struct ward_err *e)
{
	return program_find_system("skopeo", path, e);
}

/* words: of the program itself, or, where an engine is to be tried, of `ward run` behind its usual
 * ones. */
static const struct trial {
	/* engine NULL: no policy names it; it is not what an engine needs */
	const char *name, *engine;
	bool through_ward;
	unsigned which;
	int (*find)(unsigned which, char *path, struct ward_err *e);
	const char *input;
	const char *words[10];
} trials[] = {
	{ "runc", "oci", true, OCI_RUNC, find_oci, "", { "oci.runtime=runc", "--", "/bin/true" } },
	{ "crun", "oci", true, OCI_CRUN, find_oci, "", { "oci.runtime=crun", "--", "/bin/true" } },
	{ "runsc", "gvisor", true, 0, find_runsc, "", { "network.mode=none", "--", "/bin/true" } },
	{ "qemu",
	  "vm",
	  false,
	  0,
	  find_qemu,
	  "quit\n",
	  { "qemu", "-M", "none", "-nodefaults", "-no-user-config", "-display", "none", "-monitor",
	    "stdio" } },
	{ "wasmedge",
	  "wasm",
	  true,
	  WASMEDGE,
	  find_wasm,
	  "",
	  { "wasm.runtime=wasmedge", "--", "./module.wasm" } },
	{ "wasmtime",
	  "wasm",
	  true,
	  WASMTIME,
	  find_wasm,
	  "",
	  { "wasm.runtime=wasmtime", "--", "./module.wasm" } },
	{ "iwasm",
	  "wasm",
	  true,
	  IWASM,
	  find_wasm,
	  "",
	  { "wasm.runtime=iwasm", "--", "./module.wasm" } },
	{ "node",
	  "wasm",
	  true,
	  NODE,
	  find_wasm,
	  "",
	  { "wasm.runtime=node", "--", "./module.wasm" } },
	{ "skopeo", NULL, false, 0, find_skopeo, "", { "skopeo", "--version" } },
};

_Static_assert(ARRAY_LEN(trials) == DOCTOR_TRIALS, "DOCTOR_TRIALS does not fit");

/* ---- a trial ---- */

/* A directory for what a trial writes: its workspace, and its state. */
struct bench {
	char dir[64], workspace[80], state[80];
};

static int bench_make(struct bench *b, struct ward_err *e)
{
	char path[112];
	auto_fd fd = -1;

	snprintf(b->dir, sizeof(b->dir), "/tmp/ward-doctor-XXXXXX");
	if (!mkdtemp(b->dir))
		return ward_fail_errno(e, "cannot make a directory in /tmp");
	snprintf(b->workspace, sizeof(b->workspace), "%s/workspace", b->dir);
	snprintf(b->state, sizeof(b->state), "%s/state", b->dir);
	snprintf(path, sizeof(path), "%s/module.wasm", b->workspace);
	if (mkdir(b->workspace, 0755) < 0 || mkdir(b->state, 0700) < 0)
		return ward_fail_errno(e, "cannot make a directory in %s", b->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0 || io_write_all(fd, module, sizeof(module)) < 0)
		return ward_fail_errno(e, "cannot write %s", path);
	return 0;
}

static _Noreturn void become(const struct bench *b, const char *path, char *const *argv,
			     const int ends[4], pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || setpgid(0, 0) < 0 ||
	    chdir(b->workspace) < 0 || setenv("WARD_STATE_DIR", b->state, 1) < 0 ||
	    dup2(ends[0], 0) < 0 || dup2(ends[3], 1) < 0 || dup2(ends[3], 2) < 0)
		_exit(126);
	execv(path, argv);
	dprintf(2, "%s\n", strerror(errno));
	_exit(127);
}

/* Reads until it ends, or its time does. False: it did not end. */
static bool listen_to(int fd, struct buf *printed)
{
	uint64_t until = io_now_ms() + TRIAL_MS;
	char bytes[1024];

	for (uint64_t now = io_now_ms(); now < until; now = io_now_ms()) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n =
			poll(&p, 1, (int)(until - now)) > 0 ? read(fd, bytes, sizeof(bytes)) : -1;

		if (n == 0)
			return true;
		if (n > 0 && printed->len < PRINTED_MAX)
			buf_add(printed, bytes, (size_t)n);
	}
	return false;
}

/* The first line that says something, without ward's own name in front. */
static const char *first_line(struct buf *printed)
{
	char *at = printed->data ? printed->data + strspn(printed->data, "\n") : NULL;

	if (!at || !*at)
		return "it printed nothing";
	at[strcspn(at, "\n")] = '\0';
	return strncmp(at, "ward: ", 6) == 0 ? at + 6 : at;
}

static int judge(const struct trial *t, int status, bool ended, struct buf *printed,
		 struct ward_err *e)
{
	if (!ended)
		return ward_fail(e, ETIMEDOUT, "it did not end within %d s", TRIAL_MS / 1000);
	if (WIFSIGNALED(status))
		return ward_fail(e, EIO, "it was ended by signal %d (%s)", WTERMSIG(status),
				 strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) != 0)
		return ward_fail(e, EIO, "exit status %d: %.300s", WEXITSTATUS(status),
				 first_line(printed));
	/* a version, a prompt: something of that name that does nothing is not it */
	if (!t->through_ward && !printed->len)
		return ward_fail(e, EIO, "it printed nothing");
	return 0;
}

static int run(const struct trial *t, const struct bench *b, const char *path, char *const *argv,
	       struct ward_err *e)
{
	auto_buf printed = { 0 };
	int ends[4] = { -1, -1, -1, -1 }, status = 0, r;
	pid_t pid, parent = getpid();
	bool ended;

	if (pipe2(ends, O_CLOEXEC) < 0 || pipe2(ends + 2, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		become(b, path, argv, ends, parent);
	close(ends[0]);
	close(ends[3]);
	r = pid < 0 ? ward_fail_errno(e, "cannot start it")
		    : io_write_all(ends[1], t->input, strlen(t->input));
	close(ends[1]);
	ended = pid > 0 && listen_to(ends[2], &printed);
	close(ends[2]);
	if (pid < 0)
		return r;
	if (!ended)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return judge(t, status, ended, &printed, e);
}

static int try_one(const struct trial *t, const struct bench *b, const char *path,
		   struct ward_err *e)
{
	static const char *const usual[] = {
		"ward",        "run", "--set", "audit.journal=none", "--timeout", "15",
		"--isolation", NULL,  "--set"
	};
	auto_free char *ward = NULL;
	const char *argv[WORDS_MAX];
	size_t n = 0;

	for (size_t i = 0; t->through_ward && i < ARRAY_LEN(usual); i++)
		argv[n++] = usual[i] ? usual[i] : t->engine;
	for (size_t i = 0; i < ARRAY_LEN(t->words) && t->words[i] && n + 1 < WORDS_MAX; i++)
		argv[n++] = t->words[i];
	argv[n] = NULL;
	if (t->through_ward && program_path("ward", &ward, e) < 0)
		return -e->code;
	return run(t, b, ward ? ward : path, (char *const *)(uintptr_t)argv, e);
}

void doctor_try(struct doctor_trial results[DOCTOR_TRIALS])
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	struct ward_err unmade = { 0 };
	struct bench b;
	int made = bench_make(&b, &unmade);

	sigaction(SIGPIPE, &ignore, &before); /* one that reads nothing */
	for (size_t i = 0; i < DOCTOR_TRIALS; i++) {
		struct doctor_trial *r = &results[i];
		int status;

		*r = (struct doctor_trial){ .name = trials[i].name, .engine = trials[i].engine };
		status = trials[i].find(trials[i].which, r->path, &r->why);
		if (status == 0) {
			if (made < 0)
				r->why = unmade;
			status = made < 0 ? made : try_one(&trials[i], &b, r->path, &r->why);
		}
		r->state = status == 0                        ? TRIAL_WORKS
			   : status == -ENOENT && !r->path[0] ? TRIAL_ABSENT
							      : TRIAL_FAILS;
	}
	sigaction(SIGPIPE, &before, NULL);
	(void)!remove_tree(b.dir);
}

const struct doctor_trial *doctor_trial_of(const struct doctor_trial results[DOCTOR_TRIALS],
					   const char *engine)
{
	for (size_t i = 0; i < DOCTOR_TRIALS; i++)
		if (results[i].engine && strcmp(results[i].engine, engine) == 0 &&
		    results[i].state != TRIAL_ABSENT)
			return &results[i];
	return NULL;
}
