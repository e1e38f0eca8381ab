/*
 * Which runsc there is. In: the places where packages put it, or WARD_RUNSC of the operator's
 * environment. Out: its path, the date of its version, which decides the platform, and whether its
 * inside is known: only of a program itself, not of a script around one, which would find nothing
 * in the empty root that gVisor's kernel begins in. Runs in the supervisor as the user. Starting a
 * Go program costs a tenth of a whole start behind gVisor, so the answer is kept in the state
 * directory, in one line with what tells one file from another; a line that does not fit is an
 * answer that has to be asked for again.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "engine/gvisor/gvisor.h"
#include "state/store.h"

#define CACHE "gvisor-runtime"
#define ANSWER_MAX 512
#define ANSWER_MS 10000
#define SYSTRAP_SINCE 20230501

/* What src/gvisor/direct.c says to runsc is no promise of runsc's: these versions were seen to
 * understand it. */
static const char *const direct[] = { "runsc version 0.0~20240729.0\n" };

static const char *const places[] = { "/usr/local/bin/runsc", "/usr/bin/runsc", "/usr/sbin/runsc",
				      "/usr/local/sbin/runsc" };

uint32_t gvisor_version_date(const char *text, size_t n)
{
	for (size_t i = 0; i + 8 <= n; i++) {
		uint32_t date = 0;
		size_t k = 0;

		for (; k < 8 && text[i + k] >= '0' && text[i + k] <= '9'; k++)
			date = 10 * date + (uint32_t)(text[i + k] - '0');
		if (k == 8 && date / 1000000 == 20)
			return date;
	}
	return 0;
}

bool gvisor_has_systrap(const struct gvisor_runtime *r)
{
	return r->date >= SYSTRAP_SINCE;
}

bool gvisor_is_known(const char *text, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(direct); i++)
		if (n >= strlen(direct[i]) && memcmp(text, direct[i], strlen(direct[i])) == 0)
			return true;
	return false;
}

static bool is_elf(const char *path)
{
	auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
	char magic[4];

	return file >= 0 && pread(file, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

static _Noreturn void be_runsc(const char *path, int out_fd)
{
	char name[] = "runsc", option[] = "--version", env[] = "PATH=/usr/bin:/bin";
	char *argv[] = { name, option, NULL }, *envp[] = { env, NULL };
	int nothing = open("/dev/null", O_RDWR);

	if (dup2(nothing, 0) == 0 && dup2(out_fd, 1) == 1 && dup2(nothing, 2) == 2)
		execve(path, argv, envp);
	_exit(127);
}

/* What it says of itself; a program that says nothing in time has none. */
static void ask(struct gvisor_runtime *r)
{
	char answer[ANSWER_MAX];
	size_t n = 0;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0)
		be_runsc(r->path, ends[1]);
	close(ends[1]);
	while (pid > 0 && n < sizeof(answer)) {
		struct pollfd p = { .fd = ends[0], .events = POLLIN };
		ssize_t got = poll(&p, 1, ANSWER_MS) == 1
				      ? read(ends[0], answer + n, sizeof(answer) - n)
				      : 0;

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	close(ends[0]);
	if (pid > 0)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	r->date = gvisor_version_date(answer, n);
	r->known = gvisor_is_known(answer, n) && is_elf(r->path);
}

void gvisor_keep(int dir_fd, const char *name, const char *line)
{
	char fresh[64];
	auto_fd file = -1;

	snprintf(fresh, sizeof(fresh), "%s.%d", name, (int)getpid());
	file = openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file >= 0 && (io_write_all(file, line, strlen(line)) < 0 ||
			  renameat(dir_fd, fresh, dir_fd, name) < 0))
		unlinkat(dir_fd, fresh, 0);
}

/* "20240729 direct", or "whole": what was kept. False: it has to be asked for. */
static bool recall(const char *text, struct gvisor_runtime *r)
{
	r->date = gvisor_version_date(text, strlen(text));
	r->known = strstr(text, " direct\n") != NULL;
	return r->date && (r->known || strstr(text, " whole\n"));
}

static void look_at(struct gvisor_runtime *r, const struct stat *st)
{
	struct ward_err ignored = { 0 };
	auto_fd dir = store_open(&ignored);
	auto_buf kept = { 0 };
	char identity[128], line[160];

	snprintf(identity, sizeof(identity), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 ".%ld ",
		 (uint64_t)st->st_dev, (uint64_t)st->st_ino, (uint64_t)st->st_size,
		 (uint64_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
	if (dir >= 0 && io_read_file(dir, CACHE, sizeof(line), &kept) == 0 &&
	    strncmp(buf_text(&kept), identity, strlen(identity)) == 0 &&
	    recall(buf_text(&kept) + strlen(identity), r))
		return;
	*r = (struct gvisor_runtime){ .path = r->path };
	ask(r);
	snprintf(line, sizeof(line), "%s%u %s\n", identity, r->date, r->known ? "direct" : "whole");
	if (dir >= 0 && r->date)
		gvisor_keep(dir, CACHE, line);
}

static bool is_program(const char *path, struct stat *ret_st)
{
	return stat(path, ret_st) == 0 && S_ISREG(ret_st->st_mode) && access(path, X_OK) == 0;
}

int gvisor_find(struct gvisor_runtime *ret_runtime, struct ward_err *e)
{
	const char *path = getenv("WARD_RUNSC");
	struct stat st;
	bool found, named = path && *path;

	if (named && *path != '/') {
		ward_fail(e, EINVAL, "WARD_RUNSC is not an absolute path: %s", path);
		return ward_remedy(e,
				   "set WARD_RUNSC to the absolute path of a runsc, or unset it");
	}
	if (named) {
		found = is_program(path, &st);
	} else {
		path = NULL;
		found = false;
		for (size_t i = 0; i < ARRAY_LEN(places) && !found; i++) {
			path = places[i];
			found = is_program(path, &st);
		}
	}
	if (!found && named) {
		ward_fail(e, ENOENT, "WARD_RUNSC names no program: %s", path);
		return ward_remedy(e,
				   "set WARD_RUNSC to the absolute path of a runsc, or unset it");
	}
	if (!found) {
		ward_fail(e, ENOENT, "runsc is not installed");
		return ward_remedy(e, "apt-get install runsc, preferably from bookworm-backports");
	}
	*ret_runtime = (struct gvisor_runtime){ .path = path };
	look_at(ret_runtime, &st);
	if (ret_runtime->date)
		return 0;
	ward_fail(e, EIO, "%s does not report its version", path);
	return ward_remedy(e, "check the output of %s --version", path);
}
