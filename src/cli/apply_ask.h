/* ward apply --patch: hunk by hunk. */
#ifndef WARD_CLI_APPLY_ASK_H
#define WARD_CLI_APPLY_ASK_H

#include "cli/review_parts.h"

/* What was answered: picks sorted by path, with the contents that they point to. */
struct apply_answers {
	struct apply_pick *picks;
	struct buf **contents; /* owned, as many as picks; NULL: the change as a whole */
	size_t len, cap;
	struct strv paths; /* ".git" where git's part is wanted; else a name that nothing has */
	struct strv names; /* what picks point to */
};

/* Shows each change and asks on standard input. Nothing is done yet. */
must_check int apply_ask(const struct options *o, const struct review *r,
			 const struct review_asked *asked, struct apply_answers *ret,
			 struct ward_err *e);
void apply_answers_clear(struct apply_answers *a);

#endif
