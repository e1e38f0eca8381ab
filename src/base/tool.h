/* The command line of a program that is a verb of ward's and is started by it: VERB [OPTION...]
 * [--] WORD... */
#ifndef WARD_BASE_TOOL_H
#define WARD_BASE_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct tool {
	const char *program, *verb;    /* "ward-image" of "ward image" */
	const char *(*name)(size_t i); /* of its verbs, NULL behind the last */
	/* Where the option's flag is; NULL: it is none and has a value. */
	bool *(*flag)(void *options, const char *option);
	int (*value)(void *options, const char *option, const char *value, struct ward_err *e);
};

/* Reads argv into the options; *ret_words, of *ret_count, are what stands behind them:
 * NULL-terminated, argv's own. Returns the number of the verb. Every error is one of usage. */
must_check int tool_read(const struct tool *t, char **argv, void *options, char ***ret_words,
			 size_t *ret_count, struct ward_err *e);

#endif
