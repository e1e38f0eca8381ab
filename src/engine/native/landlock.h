/* Landlock: a second wall behind the mounts, or the only one on the level without namespaces. */
#ifndef WARD_ENGINE_NATIVE_LANDLOCK_H
#define WARD_ENGINE_NATIVE_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/own.h"

/* What may be done beneath a path. */
enum {
	LANDLOCK_READ = 1 << 0,    /* read files, list directories */
	LANDLOCK_EXECUTE = 1 << 1, /* run programs */
	LANDLOCK_MODIFY = 1 << 2,  /* write and truncate what exists */
	LANDLOCK_CREATE =
		1 << 3, /* make, remove, link and rename; sockets and pipes too, devices never */
	LANDLOCK_DEVICE = 1 << 4, /* ioctl on devices */
	LANDLOCK_FULL = LANDLOCK_READ | LANDLOCK_EXECUTE | LANDLOCK_MODIFY | LANDLOCK_CREATE |
			LANDLOCK_DEVICE
};

struct landlock_path {
	const char *path; /* opened by the call; one that does not exist grants nothing */
	bool writable;    /* everything; else reading and executing */
	unsigned rights;  /* not 0: exactly these instead */
};

enum {
	LANDLOCK_SCOPES_ONLY =
		1 << 0,           /* no file rules at all: mounts stay possible (process.nesting) */
	LANDLOCK_NO_TCP = 1 << 1, /* every TCP bind and connect is refused; needs ABI 4 */
	LANDLOCK_MUST =
		1
		<< 2 /* -EOPNOTSUPP where the ABI is too old for a part, instead of doing without */
};

/* Confines the calling process for good, by raw system calls only; no_new_privs must be set. abi is
 * that of the host's facts: files are confined from 2 on (before it, no rename between directories
 * works), signals and abstract sockets from 6 on. Returns 0 or -errno. */
must_check int landlock_apply(int abi, const struct landlock_path *paths, size_t n, unsigned flags);
/* The two halves of that: the rules (*ret_fd; -1: there is nothing that this kernel could refuse),
 * and to be held to them, which closes the descriptor. */
must_check int landlock_rules(int abi, const struct landlock_path *paths, size_t n, unsigned flags,
			      int *ret_fd);
must_check int landlock_enter(int rules_fd);

#endif
