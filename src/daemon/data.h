/* Requests to sandboxes: what data.c, data_access.c and data_answer.c share. */
#ifndef WARD_DAEMON_DATA_H
#define WARD_DAEMON_DATA_H

#include "daemon/front.h"

bool data_path_is(const struct conn *c, const char *path);
/* The sandbox for which a file URL without one was signed; NULL: none. c->to.id is set. */
struct sandbox *access_find_signed(struct conn *c);
/* Whether the client may ask ward-envd, or reach a port; else it was answered. */
must_check bool access_envd(struct conn *c, const struct sandbox *s);
must_check bool access_port(struct conn *c, const struct sandbox *s);

#endif
