/* What a verb did, for the user's own journal. */
#ifndef WARD_CLI_TELL_H
#define WARD_CLI_TELL_H

#include "model/event.h"

/* Adds who did it, and writes it into the index of the journals. A failure to write it is reported,
 * and changes nothing else: it has happened. */
void tell_done(struct ward_event *v);

#endif
