/* Guarded programs while a run lives. Shared by the supervisor's own files. */
#ifndef WARD_RUN_BOX_COMMANDS_H
#define WARD_RUN_BOX_COMMANDS_H

#include "run/box_internal.h"

/* Begins to answer stand-ins, where the plan has guarded programs. */
must_check int box_commands_begin(struct box *b, struct ward_err *e);
int box_commands_fd(const struct box *b); /* -1: nothing to poll */
void box_commands_handle(struct box *b);
/* What ward-init says about a command with a tag of GUEST_TAG_COMMAND. */
void box_commands_guest(struct box *b, const struct guest_message *m);
/* An answer to a QUESTION_COMMAND; DENY or 0: it is not started. */
must_check int box_commands_answer(struct box *b, const struct question *q,
				   enum question_answer answer, struct ward_err *e);
void box_commands_end(struct box *b);

#endif
