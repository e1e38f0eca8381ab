/* The answer ALWAYS on a terminal: what it changes in the policy file, and the change. For
 * prompt_ops (term/prompt.h). */
#ifndef WARD_RUN_ALWAYS_H
#define WARD_RUN_ALWAYS_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "model/question.h"

struct always {
	const char *file; /* the policy file; NULL: the one of dir. Both borrowed */
	const char *dir;  /* where the run was started */
	pid_t pid;        /* of ward-explain; 0: it does not run */
	bool writes;
	int out_fd;              /* what it says; owned where pid is set */
	struct buf out;          /* so far */
	char digest[SHA256_HEX]; /* of the difference that was shown; "": none was */
};

/* Starts `ward policy add` for what the question's line adds: to show the difference, or, with
 * write, to write it if it is the one that was shown. -EBUSY: it runs already. */
must_check int always_begin(struct always *a, const struct question *q, bool write,
			    struct ward_err *e);
/* Without waiting: 1: it is done, *ret_text is the difference (borrowed until the next call), 0:
 * not yet; < 0: nothing was changed, *e says why. */
must_check int always_look(struct always *a, const char **ret_text, struct ward_err *e);
/* The run is over: a change that was begun is finished. */
void always_end(struct always *a);

#endif
