/* What programs inside ask with ward-ask. */
#ifndef WARD_RUN_BOX_PROPOSALS_H
#define WARD_RUN_BOX_PROPOSALS_H

#include "run/box_internal.h"

/* Begins to answer ward-ask, where the plan has it and there is a person to ask. */
must_check int box_proposals_begin(struct box *b, struct ward_err *e);
/* Answers http://ward.internal/ there, too; takes the socket. -1: there is none. */
void box_proposals_listen(struct box *b, int fd);
/* Where the run has no network: rules that have approvals.never. p NULL: none. */
const struct rules *box_proposals_rules(const struct box_proposals *p);
/* The run is over: what waits gets no answer any more. */
void box_proposals_end(struct box *b);
/* What is polled, -1: nothing. */
int box_proposals_fd(const struct box *b);
void box_proposals_handle(struct box *b);
/* The gateway may have taken rules that a proposal waits for. */
void box_proposals_look(struct box *b);
/* An answer to a QUESTION_PROPOSAL; DENY or 0: nothing changes. */
must_check int box_proposals_answer(struct box *b, const struct question *q,
				    enum question_answer answer, uint64_t seconds,
				    struct ward_err *e);

/* What ward-ask prints: the rules in force, what was refused so far (box_tell_rules.c). */
void box_tell_rules(const struct box *b, bool as_json, struct buf *out);
void box_tell_denials(const struct box *b, bool as_json, struct buf *out);

#endif
