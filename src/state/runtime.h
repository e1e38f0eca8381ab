/* The runtime directory: sockets of sandboxes that live now. */
#ifndef WARD_STATE_RUNTIME_H
#define WARD_STATE_RUNTIME_H

#include "base/err.h"

/* Opens (and makes, 0700) the runtime directory: WARD_RUNTIME_DIR, /run/ward as root,
 * $XDG_RUNTIME_DIR/ward, or /tmp/ward-UID. Refuses one that another user owns or can look into, and
 * a link. Returns the descriptor. */
must_check int runtime_open(struct ward_err *e);

#endif
