/* What ward learn makes of names and connections. */
#ifndef WARD_CLI_LEARN_WAYS_H
#define WARD_CLI_LEARN_WAYS_H

#include "cli/learn.h"

struct learn_ways {
	const struct options *o;   /* the user's --allow rules; borrowed */
	const struct policy *base; /* that is added to; borrowed, NULL: none */
	int stop_fd;               /* readable: no question is asked any more; -1: never */
	struct strv answered;      /* what the user was asked, so that it is asked once */
	struct strv private_hosts; /* that the user has said yes to */
	struct strv refused;       /* "HOST:PORT: why", for the report */
};

void learn_ways_clear(struct learn_ways *w);
/* Looks at what was refused: what the user has allowed, or allows now on the terminal, becomes one
 * more rule for the next round. True: there is one. */
bool learn_ways_give(struct learn_ways *w, const struct learn_needs *n, struct strv *rules);
/* The rules that the connections of a run were made by: exact hosts with their ports. A name that
 * was only asked for keeps the rules that it was given, tried. */
void learn_ways_used(const struct learn_ways *w, const struct learn_needs *n,
		     const struct strv *tried, struct strv *ret_rules);

/* Asks on the terminal; without one the answer is no, and so it is once stop_fd is readable.
 * question is escaped already. */
bool learn_ask(const char *question, int stop_fd);

#endif
