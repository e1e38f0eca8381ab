/* Denied system calls as events: answers seccomp's user notifications, never decides (the filter has decided). */
#ifndef WARD_LIB_NOTIFY_H
#define WARD_LIB_NOTIFY_H

#include "lib/result.h"

struct notify;

/* Takes fd, the listener. */
must_check int notify_create(int fd, struct notify **ret_notify, struct ward_err *e);
int notify_fd(const struct notify *n);
/* Answers what waits: each call gets EPERM. At most 1,000 a second; the first 100 per call are recorded in *r, the rest
 * counted. Returns the milliseconds to wait before the next call when the rate is used up, 0 otherwise. */
unsigned notify_handle(struct notify *n, struct result *r);
void notify_destroy(struct notify *n);

#endif
