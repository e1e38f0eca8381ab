/* The words of a shell command line that may name a file. A pure reader. */
#ifndef WARD_POLICY_COMMAND_H
#define WARD_POLICY_COMMAND_H

#include "base/buf.h"

struct command_word {
	const char *text;  /* quotes and backslashes removed; valid during the call only */
	bool is_expanded;  /* text is what stands behind an expansion: "/x" of "$(pwd)/x" */
	bool is_script;    /* an interpreter stands in front of it, options between them at most */
	bool is_argument;  /* an interpreter stands somewhere in front of it */
	bool is_directory; /* the command goes there: cd DIR, -C DIR */
	bool is_value;     /* it stands behind "=": what a variable holds */
	bool is_first;     /* the name of a program: looked up in PATH if it has no slash */
};

/* Gets each word in order; anything but 0 stops. */
typedef int command_fn(void *ctx, const struct command_word *word);

/* Finds the words. *ret_opaque: the text holds expansions, substitutions, patterns, or changes of
 * directory, so that it may run what no word names. Returns 0, what fn stopped with, or -ENOMEM. */
must_check int command_words(const char *text, size_t n, command_fn *fn, void *ctx,
			     bool *ret_opaque);

/* Whether a name looks like a script: "x.py". */
bool command_is_script(const char *name);

#endif
