/*
 * Whether something inside the inner runtime has streams that could not be restored: a program that
 * `ward exec` started and left behind holds the pipes of that command, and a kernel that goes on
 * from a checkpoint gets only those of the sandbox's own. Runs inside the inner runtime as gVisor's
 * uid 0, with no rights over anything but files of the same id. In: /proc. Out: 1 and a line on
 * standard error where there is such a program, else 0. What runs there can hide from it: then the
 * checkpoint does not go on, and says so.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"

#define LINK_MAX_BYTES 64
#define OWN_STREAMS 3

/* "host:[7]": of no file that gVisor has by itself. */
static bool read_host(const char *path, char out[LINK_MAX_BYTES])
{
	ssize_t n = readlink(path, out, LINK_MAX_BYTES - 1);

	out[n < 0 ? 0 : n] = '\0';
	return strncmp(out, "host:[", 6) == 0;
}

static bool is_foreign(const char *pid, const char own[OWN_STREAMS][LINK_MAX_BYTES])
{
	char path[96], link[LINK_MAX_BYTES];
	auto_dir list = NULL;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	list = opendir(path);
	for (struct dirent *d = list ? readdir(list) : NULL; d; d = readdir(list)) {
		bool known = false;

		snprintf(path, sizeof(path), "/proc/%.20s/fd/%.20s", pid, d->d_name);
		if (!read_host(path, link))
			continue;
		for (size_t i = 0; i < OWN_STREAMS && !known; i++)
			known = strcmp(link, own[i]) == 0;
		if (!known)
			return true;
	}
	return false;
}

static void say(const char *pid)
{
	auto_buf name = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	if (io_read_file(AT_FDCWD, path, 64, &name) < 0)
		name.len = 0;
	gvisor_say("the process %.20s (%.*s), left behind by a ward exec, still has its streams "
		   "open, which cannot be restored: end it, or redirect the streams of such "
		   "programs, as in >/dev/null 2>&1 </dev/null",
		   pid, (int)strcspn(buf_text(&name), "\n"), buf_text(&name));
}

int gvisor_streams(int argc, char **argv)
{
	char own[OWN_STREAMS][LINK_MAX_BYTES], path[32], self[16];
	auto_dir processes = opendir("/proc");

	(void)argc, (void)argv;
	for (int i = 0; i < OWN_STREAMS; i++) {
		snprintf(path, sizeof(path), "/proc/1/fd/%d", i);
		if (!read_host(path, own[i]))
			own[i][0] = '\0';
	}
	snprintf(self, sizeof(self), "%d", (int)getpid());
	for (struct dirent *d = processes ? readdir(processes) : NULL; d; d = readdir(processes))
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && strcmp(d->d_name, self) != 0 &&
		    is_foreign(d->d_name, own)) {
			say(d->d_name);
			return 1;
		}
	return 0;
}
