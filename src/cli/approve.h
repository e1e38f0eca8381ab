/* What the files of ward approve share. */
#ifndef WARD_CLI_APPROVE_H
#define WARD_CLI_APPROVE_H

#include "cli/cli.h"
#include "control/client_approve.h"

/* Answers one question; ALWAYS writes the policy first, as `ward policy add` does: the difference
 * is shown, and yes said to it. */
must_check int approve_send(const struct options *o, const struct client_question *q,
			    enum question_answer answer, uint64_t seconds, struct ward_err *e);
/* Where this process's answers come from: its terminal; NULL: none. */
const char *approve_from(void);
/* Appends one question as a person reads it. full: with all that is known. */
void approve_put(const struct client_question *q, bool full, struct buf *out);
/* Shows questions as they come and answers by keys, until q. */
int approve_watch(const struct options *o);

#endif
