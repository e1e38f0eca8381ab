/* What conn.c, conn_read.c and conn_answer.c know of a connection together. */
#ifndef WARD_DAEMON_CONN_H
#define WARD_DAEMON_CONN_H

#include "daemon/front.h"

#define CONN_IN_MAX (64 * 1024)

/* Whether the client takes its answers: only then another request is read. */
static inline bool conn_takes_answers(const struct conn *c)
{
	return c->out.len - c->out_at < CONN_IN_MAX;
}

/* Whether its stream can take bytes of the client. */
static inline bool conn_has_room(const struct conn *c)
{
	return c->stream && c->stream->credit > 0 && !link_is_full(c->stream->link);
}

#endif
