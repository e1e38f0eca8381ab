/* The directory beside a place on the host into which ward cp receives a copy before it is judged.
 * It is gone at the end, whatever ends the process. */
#ifndef WARD_CONTROL_COPY_STAGE_H
#define WARD_CONTROL_COPY_STAGE_H

#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"

struct copy_stage {
	int new_fd;     /* the copy is received here */
	int refused_fd; /* what is taken out of it goes here */
	int life_fd;    /* as long as a process has it open, the directory stays */
	pid_t cleaner;  /* the process that removes it; 0: none */
};
#define NO_COPY_STAGE                                                                              \
	{                                                                                          \
		.new_fd = -1, .refused_fd = -1, .life_fd = -1                                      \
	}

/* Removes what a copy left there whose processes were all killed, then makes the directory. Call
 * copy_stage_end() in any case. */
must_check int copy_stage_begin(int dir_fd, struct copy_stage *s, struct ward_err *e);
/* Removes it with all that is still in it. */
must_check int copy_stage_end(struct copy_stage *s, struct ward_err *e);

#endif
