/* Runs in the foreground that can be spoken to while they run: all that last a moment. */
#ifndef WARD_STATE_RUNS_H
#define WARD_STATE_RUNS_H

#include "state/boxes.h"

/* A directory of its own for the run's control socket; entry->run_fd. Refused where the sandbox
 * could see it. */
must_check int runs_enter(const struct plan *p, struct box_entry *ret_entry, struct ward_err *e);
/* The same for a process of ward's that is no run, but asks a person things: it is listed as long
 * as it does. id: as of a run. */
must_check int runs_enter_asker(const char *id, struct box_entry *ret_entry, struct ward_err *e);
/* Removes it with the socket. */
void runs_leave(struct box_entry *entry);
/* Removes what a run that was killed left there. */
void runs_forget(const char *id);
/* All that live; what dead ones left is removed. */
must_check int runs_list(struct boxes *ret_runs, struct ward_err *e);
/* The directory of all their sockets. */
must_check int runs_open(struct ward_err *e);

#endif
