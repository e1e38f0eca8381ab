/* Locking up ward's own processes: the rows of tables/procs.def, put into force. */
#ifndef WARD_CONFINE_CONFINE_H
#define WARD_CONFINE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum proc {
#define PROC(id, ...) PROC_##id,
#include "procs.def"
	PROCS
};

/* Rights over a file or a directory and all that is beneath. */
enum {
	CONFINE_READ = 1,
	CONFINE_WRITE = 2, /* reading, making, changing, removing: all but executing */
	CONFINE_EXEC = 4
};

/* A tree that only the caller knows; borrowed. */
struct confine_tree {
	const char *path; /* NULL: the descriptor says which; what is not there needs no rule */
	int fd;
	unsigned rights;
};

/* What a process keeps beside its rows, and what it cannot give up here. */
struct confine_own {
	const struct confine_tree *trees;
	size_t tree_count;
	unsigned port; /* of TCP, to connect to; 0: none */
	/* the plan has found that the kernel, or the filter of the sandbox, does not allow it */
	bool no_landlock, no_filter;
};

/* Gives up for good what the rows of the process do not have. own may be NULL. A step that fails
 * does not keep the later ones from being taken; the first failure is returned and in *e. Unless
 * the caller can do with less, it must end then. */
must_check int confine_enter(enum proc p, const struct confine_own *own, struct ward_err *e);

/* The process's name in the table. */
const char *confine_name(enum proc p);

struct sock_filter;
#define CONFINE_FILTER_MAX 256
/* The filter alone, for tests: at most CONFINE_FILTER_MAX instructions. Returns their number, 0
 * where the row has no filter, or -E2BIG. */
must_check int confine_filter(enum proc p, struct sock_filter *code);

#endif
