/* Shared by ward-init's own files. */
#ifndef WARD_GUEST_GUEST_H
#define WARD_GUEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/guest.h"

/* One command to start. Strings are borrowed. */
struct guest_start {
	char **argv, **envp; /* from_packet: made in the child, of what stands in strings */
	size_t argc, envc;
	const char *cwd;     /* "": where init is */
	const char *strings; /* argc words, then envc variables, each ended by NUL */
	bool from_packet;
	bool copy;  /* no program: guest_copy() */
	int fds[3]; /* become 0-2 */
	/* GUEST_EXEC_FILE: these are the directory and the program */
	bool opened;
	int dir_fd, program_fd;
	uint32_t tag;
};

struct guest_exec {
	long pid; /* 0: free */
	uint32_t tag;
};

/* pid 1, all that it remembers. */
struct guest {
	long command; /* the sandbox's own; 0: none, it is idle */
	char **envp;
	long signal_fd;
	unsigned long command_mask; /* of signals, for commands */
	bool level;
	bool container;               /* of an OCI runtime */
	struct guest_message *packet; /* GUEST_PACKET_MAX bytes, made when the first word comes */
	struct guest_exec execs[GUEST_EXECS_MAX];
};

_Noreturn void guest_exit(int code);
void guest_say(uint32_t op, int32_t a, int32_t b, uint32_t tag);

/* Receives one message and the descriptors that came with it (close-on-exec, the caller closes).
 * Its length, or -errno. */
long guest_receive(struct guest *g, struct guest_message **ret_message, int fds[GUEST_FDS_MAX]);
/* Takes a GUEST_EXEC apart; false when it is not well formed. */
bool guest_read_start(const struct guest_message *m, size_t len, const int *fds,
		      struct guest_start *start);
/* In the child: descriptors to 0-2; 0 or -errno. */
long guest_take_stdio(const struct guest_start *start);
/* In the child: executes; comes back with the errno. base is the environment that the command's own
 * variables add to. */
long guest_exec(struct guest_start *start, char **base);

/* In the child: copies files between 0, 1 and the sandbox; words are "get" PATH, or "put" PATH
 * NAME. The exit code. */
int guest_copy(const char *what, const char *path, const char *name);

/* In a container of an OCI runtime, first of all: becomes whom the supervisor says, then itself
 * again as "ward-settle". */
_Noreturn void guest_join(void);
/* As that: puts limits and filter on and sends ready. Ends the process where it cannot; else
 * returns the command's words, their count and its variables. */
char **guest_settle(size_t *ret_argc, char ***ret_envp);
/* Around such a container: starts the runtime, waits for the container's end. */
_Noreturn void guest_outer(char **argv, char **envp);

#endif
