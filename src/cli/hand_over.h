/* Verbs whose work another program does. */
#ifndef WARD_CLI_HAND_OVER_H
#define WARD_CLI_HAND_OVER_H

#include "cli/cli.h"

/* An option of the other program; value NULL and not set: it was not given. */
struct handed {
	const char *name, *value;
	bool set; /* a flag */
};

/* Becomes the program, with the verb's first word, these options, --json, --quiet and the other
 * words. Returns only if it cannot: the exit code, said. */
int hand_over(struct options *o, const char *program, const struct handed *options, size_t count);

#endif
