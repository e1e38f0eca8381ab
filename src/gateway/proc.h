/* The gateway's processes and their rights: see tables/procs.def. */
#ifndef WARD_GATEWAY_PROC_H
#define WARD_GATEWAY_PROC_H

#include "base/err.h"

enum proc {
#define PROC(id, name, ...) PROC_##id,
#include "procs.def"
	PROCS
};

/* Gives up for good what this process does not need: capabilities, root's id, files, new
 * privileges, and every system call that its rows do not have. There is no way on when it fails. */
must_check int proc_confine(enum proc p, struct ward_err *e);

/* front: parses what programs inside say. Returns the exit code. */
struct inspect_ops;
int front_main(const struct inspect_ops *inspect);
/* dial: resolves and connects. */
int dial_main(void);
/* keys: holds the secrets. NULL: this program has no such role. */
extern int (*const keys_here)(void);

#endif
