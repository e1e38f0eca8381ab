/* Denied system calls as events: answers seccomp's user notifications, never decides what is
 * allowed (the filter has). */
#ifndef WARD_OBSERVE_NOTIFY_H
#define WARD_OBSERVE_NOTIFY_H

#include "model/result.h"
#include "observe/file_ask.h"

struct listeners;
struct notify;
struct guest_message;

/* Takes fd, the listener; borrows the plan, whose set and level are the reasons given. */
must_check int notify_create(int fd, const struct plan *p, struct notify **ret_notify,
			     struct ward_err *e);
/* Calls of listen are noted there; borrowed. */
void notify_listen(struct notify *n, struct listeners *l);
int notify_fd(const struct notify *n);
/* Answers what waits: each call gets EPERM (on the Landlock level, changes of modes, times and
 * attributes in the workspace are made on the sandbox's behalf). At most 1,000 a second; the first
 * 100 per call are recorded in *r, the rest counted. Returns the milliseconds to wait before the
 * next call when the rate is used up, 0 otherwise. Never blocks. */
unsigned notify_handle(struct notify *n, struct result *r);
/* Reports what was only counted. NULL is fine. */
void notify_finish(struct notify *n, struct result *r);
/* What is handed to ward-init, and what it says (exec_watch.h); n may be NULL. */
void notify_expect(struct notify *n, uint32_t tag, int32_t words, const char *text, size_t len);
void notify_guest(struct notify *n, const struct guest_message *m);
/* Files that a person is asked about (file_ask.h); n may be NULL. */
void notify_on_file(struct notify *n, file_ask_fn *asked, void *context);
must_check int notify_answer_file(struct notify *n, const uint8_t exact[32], uint64_t serial,
				  bool yes, struct ward_err *e);
uint64_t notify_due_ms(const struct notify *n);
void notify_on_time(struct notify *n, uint64_t now_ms);
void notify_destroy(struct notify *n);

#endif
