/*
 * What runner and command send each other across gVisor's boundary. The command goes in as a file
 * in a directory that is read-only inside the inner runtime. How it ended comes back in a file of a
 * directory that every process in gVisor can write and fill: the runner opens it before the command
 * starts and looks at no name again, `enter` removes the name, names are never followed, and what
 * is read is parsed. Others inside the inner runtime can still write it (gVisor opens what is in
 * another's /proc/PID/fd) or fill the directory: a report only counts if it agrees with runsc's own
 * status, which no process can forge, and it may be missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"

#define TRIES 100

void gvisor_say(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	dprintf(2, "ward: gvisor: %s\n", line);
}

static uint32_t count_of(char **list)
{
	uint32_t n = 0;

	while (list[n])
		n++;
	return n;
}

/* A file that was not there; -errno. */
static int create(const char *dir, const char *name)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* "run" for the first command, its number for every other one. */
static int create_named(const char *wanted, char *name, size_t n, int *ret_fd)
{
	int r = -EEXIST;

	for (int i = 0; i < TRIES && r == -EEXIST; i++) {
		if (wanted)
			snprintf(name, n, "%s", wanted);
		else
			snprintf(name, n, "%d-%d", (int)getpid(), i);
		r = create(GVISOR_START, name);
		if (r == -EEXIST && wanted)
			break;
	}
	*ret_fd = r;
	return r < 0 ? r : 0;
}

int gvisor_tell(char **argv, char *name, size_t n, int *ret_report_fd)
{
	auto_free char *cwd = getcwd(NULL, 0);
	struct start s = { .uid = getuid(),
			   .gid = getgid(),
			   .argc = count_of(argv),
			   .envc = count_of(environ),
			   .cwd = cwd ? cwd : "/",
			   .argv = argv,
			   .envp = environ };
	auto_buf bytes = { 0 };
	auto_fd file = -1;
	bool first = *name;
	int r, report_fd = -1;

	start_write(&s, &bytes);
	r = bytes.failed ? -ENOMEM : create_named(first ? "run" : NULL, name, n, &file);
	if (r == 0)
		r = io_write_all(file, bytes.data, bytes.len);
	if (r == 0)
		report_fd = create(GVISOR_IO, name);
	if (r == 0 && first && report_fd < 0)
		r = report_fd;
	if (r < 0)
		gvisor_say("cannot pass the command on: %s", strerror(-r));
	*ret_report_fd = report_fd < 0 ? -1 : report_fd;
	return r < 0 ? r : 0;
}

enum command_report gvisor_report(int fd, int *ret_value)
{
	char bytes[16];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	return n < 0 ? REPORT_NOTHING : command_report_parse(bytes, (size_t)n, ret_value);
}

void gvisor_forget(const char *name)
{
	static const char *const dirs[] = { GVISOR_START, GVISOR_IO };
	char path[96];

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		unlink(path);
	}
}

int gvisor_end_like(enum command_report report, int value)
{
	const struct rlimit none = { 0, 0 };
	sigset_t all;

	if (report != REPORT_SIGNAL)
		return value;
	setrlimit(RLIMIT_CORE, &none);
	signal(value, SIG_DFL);
	sigfillset(&all);
	sigdelset(&all, value);
	sigprocmask(SIG_SETMASK, &all, NULL);
	raise(value);
	return 128 + value;
}
