/*
 * What ward-ask needs before a sandbox starts. In: a plan that has it. Out: the socket that it
 * connects to (inside_socket.c). Runs in `ward` with the user's rights.
 */
#include "run/proposals.h"

#include <errno.h>

#include "protocol/ask.h"

int proposals_start(struct plan *p, struct ward_err *e)
{
	struct inside_socket *s;

	if (!p->spec->starts || !p->proposals)
		return 0;
	s = p->live->proposals = calloc(1, sizeof(*s));
	if (!s)
		return ward_fail(e, ENOMEM, "out of memory");
	return inside_socket_make(p, "ask", ASK_SOCKET, "approvals.proposals", s, e);
}

void proposals_end(struct plan *p)
{
	if (!p->live->proposals)
		return;
	inside_socket_end(p->live->proposals);
	free(p->live->proposals);
	p->live->proposals = NULL;
}
