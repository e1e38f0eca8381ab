/* Shared by the files of libward, and by `ward run -d`. */
#ifndef WARD_API_API_H
#define WARD_API_API_H

#include "api/request.h"
#include "ward/ward.h"

/* Hands an error of ours to the caller, who may not want it; returns -e->code. */
int api_fail(struct ward_error *ret_e, const struct ward_err *e);

/* The spec as a command line. tty: whether the command gets a terminal. */
struct ward_spec {
	char *program; /* NULL: it is looked for */
	char *policy, *profile, *workspace, *directory, *name;
	struct strv fields; /* --set FIELD=VALUE, --add FIELD=VALUE */
	struct strv argv;
	bool widen;
	unsigned rows, columns; /* of the terminal; 0: none */
};
/* Appends the spec as arguments of `ward run` (or `ward plan`). */
void spec_words(const struct ward_spec *s, uint32_t flags, struct strv *out);

/* Starts a box with what a command line of `ward run` says. */
struct box_start {
	const char *program; /* NULL: it is looked for */
	const struct strv *words;
	bool detached;
	/* ward-box has 0-2 of this process until the sandbox runs, and says there what it has to
	 * say */
	bool keep_stdio;
	unsigned rows, columns;
	const char *name; /* NULL: none */
	/* NULL, or when it fails: the exit code that says how; unchanged where the box gave none */
	int *ret_code;
};
must_check int box_start(const struct box_start *how, struct ward_box **ret_box,
			 struct ward_err *e);

#endif
