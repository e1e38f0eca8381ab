/* A command that looks at a sandbox which stands still, from outside: ward exec --forensic. */
#ifndef WARD_CLI_FORENSIC_H
#define WARD_CLI_FORENSIC_H

#include "cli/cli.h"
#include "state/boxes.h"

struct forensic {
	pid_t pid;  /* 0: none; killed, it takes the command with it */
	int pid_fd; /* readable when the command has ended; owned */
	int fds[3]; /* the outer ends of its pipes; 0: -1 without -i; the caller's */
};

#define NO_FORENSIC                                                                                \
	{                                                                                          \
		.pid_fd = -1, .fds = { -1, -1, -1 }                                                \
	}

/* Freezes the sandbox and starts o->words[1] with its arguments in a read-only view of it. */
must_check int forensic_start(const struct options *o, const struct box_info *box,
			      const struct strv *env, struct forensic *ret, struct ward_err *e);
/* It has ended, or is killed now: its exit status as a shell has it. */
int forensic_end(struct forensic *f);

#endif
