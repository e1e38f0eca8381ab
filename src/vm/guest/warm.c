/*
 * What nearly every command needs of the root, read once before READY: a clone of a template then
 * finds it in memory, and does not begin with reading a device and unpacking. In: the root. Out:
 * nothing but the kernel's cache; no program of the root is run, so nothing of it can have drawn a
 * random number that all clones would share. A file that is not there, or is large, is left alone.
 * Of the directories that commands are searched in, what is in them is looked at, not read: a
 * search goes through most of them, block by block.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm/guest/agent.h"

#define FILE_MAX_BYTES (8 << 20)
#define ENTRIES_MAX 4096

static const char *const files[] = {
	"/bin/sh",
	"/bin/true",
	"/usr/bin/env",
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib/ld-musl-x86_64.so.1",
	"/etc/ld.so.cache",
	"/etc/passwd",
	"/etc/group",
};

static const char *const directories[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					   "/usr/bin",        "/sbin",          "/bin" };

static void look_at_all(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	struct stat st;

	for (int n = 0; d && n < ENTRIES_MAX && (entry = readdir(d)); n++)
		fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW);
	if (d)
		closedir(d);
}

void warm_cache(void)
{
	static char bytes[65536];
	struct stat st;

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		look_at_all(directories[i]);

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		    st.st_size <= FILE_MAX_BYTES)
			while (read(fd, bytes, sizeof(bytes)) > 0)
				;
		if (fd >= 0)
			close(fd);
	}
}
