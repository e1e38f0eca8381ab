/* One more command in a box. */
#ifndef WARD_API_PROCESS_H
#define WARD_API_PROCESS_H

#include "api/box.h"

/* Whether the command is one. */
must_check int process_check(const struct ward_command *c, struct ward_err *e);
/* Starts it over the connection, which is taken when it succeeds. */
must_check int process_start(struct client *client, const struct ward_command *c,
			     struct ward_process **ret_process, struct ward_err *e);
must_check int process_signal(struct ward_process *p, int signal_number, struct ward_err *e);

#endif
