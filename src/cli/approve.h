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
/* Appends one question as a person reads it. full: with all that is known, else with what an
 * answer needs. */
void approve_put(const struct client_question *q, bool full, struct buf *out);
/* "*.npmjs.org": the group of the question's host, if there is one that is no wider than one
 * registrant's. */
bool approve_group(const struct question *q, char *ret, size_t cap);
/* Shows questions as they come and answers by keys, until q; without --watch until none waits.
 * seconds: of an answer for a time. */
int approve_watch(const struct options *o, uint64_t seconds);
/* Appends one question as a JSON object. */
void approve_put_json(const struct client_question *q, const char *event, struct buf *out);
/* Finds "SANDBOX:N", or N where only one sandbox has such a question. */
must_check int approve_find_question(const char *word, struct client_question *ret,
				     struct ward_err *e);
/* Lets programs answer, over a socket or a webhook, until a signal. */
int approve_serve(const struct options *o);

#endif
