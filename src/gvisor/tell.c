/*
 * What runner and command tell each other across the wall: files in a directory that both see. Behind the wall anybody can write there, so names are never followed, never reused, and what is read is parsed.
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

extern char **environ;

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
static int create(const char *name, const char *kind)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), GVISOR_IO "/%s.%s", name, kind);
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
		r = create(name, "start");
		if (r == -EEXIST && wanted)
			break;
	}
	*ret_fd = r;
	return r < 0 ? r : 0;
}

int gvisor_tell(char **argv, char *name, size_t n)
{
	auto_free char *cwd = getcwd(NULL, 0);
	struct start s = { .uid = getuid(), .gid = getgid(), .argc = count_of(argv), .envc = count_of(environ), .cwd = cwd ? cwd : "/", .argv = argv, .envp = environ };
	auto_buf bytes = { 0 };
	auto_fd file = -1, told = -1;
	int r;

	start_write(&s, &bytes);
	r = bytes.failed ? -ENOMEM : create_named(*name ? "run" : NULL, name, n, &file);
	if (r == 0)
		r = io_write_all(file, bytes.data, bytes.len);
	if (r == 0)
		r = told = create(name, "told");
	if (r < 0)
		gvisor_say("cannot pass the command on: %s", strerror(-r));
	return r < 0 ? r : 0;
}

enum told gvisor_told(const char *name, int *ret_value)
{
	char path[96], bytes[16];
	auto_fd file = -1;
	ssize_t n;

	snprintf(path, sizeof(path), GVISOR_IO "/%s.told", name);
	file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	n = file < 0 ? -1 : read(file, bytes, sizeof(bytes));
	return n < 0 ? TOLD_NOTHING : told_parse(bytes, (size_t)n, ret_value);
}

void gvisor_forget(const char *name)
{
	static const char *const kinds[] = { "start", "told" };
	char path[96];

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		snprintf(path, sizeof(path), GVISOR_IO "/%s.%s", name, kinds[i]);
		unlink(path);
	}
}

int gvisor_end_like(enum told told, int value)
{
	const struct rlimit none = { 0, 0 };
	sigset_t all;

	if (told != TOLD_SIGNAL)
		return value;
	setrlimit(RLIMIT_CORE, &none);
	signal(value, SIG_DFL);
	sigfillset(&all);
	sigdelset(&all, value);
	sigprocmask(SIG_SETMASK, &all, NULL);
	raise(value);
	return 128 + value;
}
