/* Long output in front of a person: through the user's own pager, as git does it. */
#ifndef WARD_CLI_PAGER_H
#define WARD_CLI_PAGER_H

#include <sys/types.h>

#include "cli/cli.h"

struct pager {
	pid_t pid;     /* 0: there is none */
	bool terminal; /* a person reads it */
	bool colour;
	bool left; /* that person has seen enough */
};

/* Decides how standard output is written, and starts the pager where one is wanted. */
void pager_begin(struct pager *p, bool wanted);
/* Writes the text; returns EXIT_FINE, or EXIT_REFUSED when nothing more can be written. */
int pager_out(struct pager *p, const struct buf *out);
/* Waits until the pager has ended; returns code, or EXIT_FINE if the person left early. */
int pager_end(struct pager *p, int code);

/* Which pager the user wants, by the words of the environment and of git's global configuration as
 * `git config --null --get-regexp` prints it; NULL: none. *ret_colour is cleared where that says
 * so. The caller frees. */
char *pager_choose(const char *git_pager, const char *pager, const char *config, size_t n,
		   bool *ret_colour);

#endif
