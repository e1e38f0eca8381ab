/* The socket that ward-ask inside connects to: what is made before the sandbox starts. Answering:
 * box_proposals.c. */
#ifndef WARD_RUN_PROPOSALS_H
#define WARD_RUN_PROPOSALS_H

#include "run/inside_socket.h"

/* Makes the socket of a plan that has ward-ask and will be started. proposals_end() is for it in
 * any case. */
must_check int proposals_start(struct plan *p, struct ward_err *e);
void proposals_end(struct plan *p);

#endif
