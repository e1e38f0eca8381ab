/* ward run --notify: desktop notifications by notify-send. */
#ifndef WARD_CLI_DESKTOP_H
#define WARD_CLI_DESKTOP_H

#include "model/plan.h"
#include "model/result.h"

struct desktop;

/* Finds notify-send and puts itself in front of r->events. Where there is none, a note of the
 * result says so. NULL: no notifications. */
struct desktop *desktop_create(const struct plan *p, struct result *r);
/* The run has ended. NULL is fine. */
void desktop_end(struct desktop *d, const struct result *r);
void desktop_destroy(struct desktop *d);
/* Appends a name as it may stand in a notification: what is not a plain letter, digit or sign of
 * file and host names becomes '?', a long one is cut. Pure. */
void desktop_put_name(struct buf *out, const char *name);
/* Whether so many more denials at that time make a burst that is worth a notification. */
struct desktop_burst {
	uint64_t since_ms, denials, quiet_until_ms;
};
bool desktop_is_burst(struct desktop_burst *b, uint64_t now_ms, uint64_t denials);

#endif
