/* The command line of a program that is a verb of ward's and is started by it: VERB [OPTION...] [--] WORD... */
#ifndef WARD_LIB_TOOL_H
#define WARD_LIB_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct tool {
	const char *program, *verb;	/* "ward-image" of "ward image" */
	const char *(*name)(size_t i);	/* of its verbs, NULL behind the last */
	/* Where the option's flag is; NULL: it is none and has a value. */
	bool *(*flag)(void *options, const char *option);
	int (*value)(void *options, const char *option, const char *value, struct ward_err *e);
};

struct tool_line {
	size_t verb;		/* its number */
	char **words;		/* behind the options; NULL-terminated, argv's own */
	size_t count;
};

/* Reads argv into the options and *ret. Every error is one of usage. */
must_check int tool_read(const struct tool *t, char **argv, void *options, struct tool_line *ret, struct ward_err *e);

#endif
