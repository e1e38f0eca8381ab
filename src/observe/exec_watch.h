/* Programs that are started inside, as events: watching, never deciding. */
#ifndef WARD_OBSERVE_EXEC_WATCH_H
#define WARD_OBSERVE_EXEC_WATCH_H

#include <linux/seccomp.h>

#include "model/plan.h"
#include "model/result.h"
#include "protocol/guest.h"

struct exec_watch;

must_check struct exec_watch *exec_watch_create(const struct plan *p); /* borrowed */
void exec_watch_destroy(struct exec_watch *w);
/* Whether the call is one of those that start a program. */
bool exec_watch_knows(int nr);
/* Looks at a call that waits at the listener, and reports it once it has been answered: what it
 * sees before is gone afterwards. exec_watch_look() may be slow; beyond EXEC_LOOKS a second it only
 * counts. */
void exec_watch_look(struct exec_watch *w, int listener_fd, const struct seccomp_notif *q);
void exec_watch_report(struct exec_watch *w, struct result *r);
/* The words of the last one; "": nothing was seen of them. */
const char *exec_watch_words(const struct exec_watch *w, size_t *ret_len);
/* A command was handed to ward-init (protocol/guest.h): text is what stands behind the message. And
 * what ward-init says of it. */
void exec_watch_expect(struct exec_watch *w, uint32_t tag, int32_t words, const char *text,
		       size_t n);
void exec_watch_guest(struct exec_watch *w, const struct guest_message *m);
/* Reports how many were only counted. */
void exec_watch_finish(struct exec_watch *w, struct result *r);

#endif
