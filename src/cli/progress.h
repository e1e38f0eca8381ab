/* Progress on the terminal: one line of standard error that is written over, and gone at the end. */
#ifndef WARD_CLI_PROGRESS_H
#define WARD_CLI_PROGRESS_H

#include "base/progress.h"

/* For a person who watches standard error; NULL where nobody does, or wanted is false. */
struct progress *progress_for_terminal(struct progress *p, bool wanted);

#endif
