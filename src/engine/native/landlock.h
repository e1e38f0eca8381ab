/* Landlock: a second wall behind the mounts, or the only one on the rung without namespaces. */
#ifndef WARD_ENGINE_NATIVE_LANDLOCK_H
#define WARD_ENGINE_NATIVE_LANDLOCK_H

#include <stddef.h>

#include "base/own.h"

/* What may be done beneath a path. */
enum {
	LANDLOCK_READ = 1 << 0,		/* read files, list directories */
	LANDLOCK_EXECUTE = 1 << 1,	/* run programs */
	LANDLOCK_MODIFY = 1 << 2,	/* write and truncate what exists */
	LANDLOCK_CREATE = 1 << 3,	/* make, remove, link and rename; sockets and pipes too, devices never */
	LANDLOCK_DEVICE = 1 << 4,	/* ioctl on devices */
	LANDLOCK_FULL = LANDLOCK_READ | LANDLOCK_EXECUTE | LANDLOCK_MODIFY | LANDLOCK_CREATE
};

struct landlock_path {
	const char *path;	/* opened by the call; one that does not exist grants nothing */
	int fd;			/* where path is NULL: an O_PATH descriptor, borrowed */
	unsigned rights;
};

/* What is closed as a whole. */
enum {
	LANDLOCK_FILES = 1 << 0,	/* files by the rules; needs ABI 2 (before it, no rename between directories works) */
	LANDLOCK_TCP = 1 << 1,		/* every TCP bind and connect; needs ABI 4 */
	LANDLOCK_SCOPES = 1 << 2,	/* signals and abstract sockets leave the sandbox no more; needs ABI 6 */
	LANDLOCK_MUST = 1 << 3		/* -EOPNOTSUPP where the ABI is too old for one of these, instead of doing the rest */
};

/* Confines the calling process for good, by raw system calls only; no_new_privs must be set. abi is that of the host's
 * facts. Returns what is in force (LANDLOCK_FILES and so on; 0: nothing) or -errno. */
must_check int landlock_apply(int abi, const struct landlock_path *paths, size_t n, unsigned flags);

#endif
