/* Reflogs. Pure functions. */
#ifndef WARD_RULES_GIT_REFLOG_H
#define WARD_RULES_GIT_REFLOG_H

#include "rules/git_name.h"

/* One line, valid during the call; nothing in it is NUL-terminated. */
struct git_reflog_line {
	const char *old_id, *new_id; /* digits */
	const char *who;             /* "NAME <MAIL> SECONDS +ZONE" */
	size_t who_n;
	const char *message; /* NULL: none */
	size_t message_n;
};

/* Gets each line in order, the oldest first; anything but 0 stops the reading. */
typedef int git_reflog_fn(void *ctx, const struct git_reflog_line *line);

/* Reads lines "OLD NEW NAME <MAIL> SECONDS +ZONE[TAB MESSAGE]". fn may be NULL. Returns 0, what fn
 * stopped with, or -EINVAL with static text in *ret_why. */
int git_reflog_read(const void *bytes, size_t n, unsigned hash, git_reflog_fn *fn, void *ctx,
		    const char **ret_why);

#endif
