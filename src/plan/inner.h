/* What a plan and a run do for an inner runtime (model/inner.h). */
#ifndef WARD_PLAN_INNER_H
#define WARD_PLAN_INNER_H

#include "model/inner.h"

/* Steps of plan_compile(): nothing to do without an inner runtime. */
must_check int inner_add_mounts(struct plan *p, struct ward_err *e);
must_check int inner_add_devices(struct plan *p, struct ward_err *e);
must_check int inner_fill_words(struct plan *p, struct ward_err *e);

/* A packet of GUEST_EXEC or GUEST_COPY (struct guest_message, directory, words, variables) as
 * ward-init shall have it: with the inner runtime's words in front of the others, in *out. 1: *out
 * has it; 0: it stays as it is, there is no inner runtime, or ward-init copies by itself. -E2BIG:
 * it would be longer than a packet can be; -EINVAL: it is no such packet. A pure function. */
must_check int inner_packet(const struct strv *exec, const struct strv *copy, const char *bytes,
			    size_t n, struct buf *out);

#endif
