/*
 * Calls of the sandbox that are looked at before they go on: which files are opened, changed or
 * only looked for, which programs are started, where connections go. Everything here is observed,
 * not proven: another thread of the caller's can change what its pointers point to between our look
 * and the kernel's. Nothing that the kernel then does is decided by it; what the supervisor does
 * instead (file_ask.h) goes by what was copied here.
 */
#ifndef WARD_OBSERVE_OBSERVE_H
#define WARD_OBSERVE_OBSERVE_H

#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/own.h"

struct plan;

/* Groups of tables/watched.def; the filter's flags (engine/native/seccomp.h) are these, shifted. */
enum {
	OBSERVE_EXEC = 1 << 0, /* programs that are started */
	/* files that are opened for writing, made, renamed, removed */
	OBSERVE_WRITES = 1 << 1,
	/* files that are opened at all; only together with WRITES */
	OBSERVE_READS = 1 << 2,
	/* files that were asked about; what the host has and the sandbox lacks becomes an event /
	 */
	OBSERVE_LOOKS = 1 << 3,
	OBSERVE_NET = 1 << 4,    /* connections, with the process that asks for them */
	OBSERVE_LISTEN = 1 << 5, /* ports that are listened on */
};

enum observe_act {
	ACT_EXEC,
	ACT_OPEN,
	ACT_CREATE,
	ACT_WRITE,
	ACT_RENAME,
	ACT_LINK,
	ACT_DELETE,
	ACT_MODE,
	ACT_CONNECT,
	ACT_LISTEN,
	ACT_LOOK
};

/* One call as it was seen. Paths are absolute and cleaned, as the sandbox has them. */
struct observation {
	enum observe_act act;
	pid_t pid;           /* of the calling thread, outside */
	bool writes;         /* OPEN: for writing */
	bool creates;        /* OPEN: with O_CREAT */
	char path[PATH_MAX]; /* "": not a path, or it could not be read */
	char from[PATH_MAX]; /* RENAME, LINK: the other one */
	/* CONNECT: struct sockaddr_in, sockaddr_in6 or sockaddr_un, ended by a NUL */
	uint8_t address[112];
	size_t address_len;
};

/* What a run asks to be shown: by its audit.level, and what its spec wants besides. */
unsigned observe_wanted(const struct plan *p);
/* The same, and what is shown where that can be had, and else is not: connections of a sandbox
 * without a network. */
unsigned observe_shown(const struct plan *p);

/* Whether the call is one of the table's, of one of these groups. */
bool observe_knows(int nr, unsigned groups);
/* Whether the call is one that the filter refuses instead of showing it: with set-id bits in its
 * mode. By its registers alone, which no process can change. */
bool observe_denied(const struct seccomp_notif *q);
/* Looks at a call that waits at the listener. False: there is nothing to see, or its caller is
 * gone. */
bool observe_look(int listener_fd, const struct seccomp_notif *q, struct observation *ret);

/* Where the sandbox's path lies on the host: the private home is the user's own, everything else is
 * called the same. *ret has PATH_MAX bytes. Pure but for home, which is the user's (NULL:
 * unknown). */
void observe_host_path(const char *inside, const char *home, char *ret);

#endif
