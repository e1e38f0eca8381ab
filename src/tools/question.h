/* How a call is shown to the person who must agree to it. */
#ifndef WARD_TOOLS_QUESTION_H
#define WARD_TOOLS_QUESTION_H

#include "tools/invoke.h"

/* Appends "NAME wants to run" with the command as it will run, word by word in quotes, and all that
 * it is given; long texts by their digest, too. No text in it reads as two, or as another's end. */
void tools_question(const struct invoke_request *r, const struct tools_call *call, struct buf *out);

#endif
