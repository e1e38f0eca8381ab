/* Reading the journal of a run while it is written: over its segments, to its end. */
#ifndef WARD_AUDIT_TAIL_H
#define WARD_AUDIT_TAIL_H

#include "audit/lines.h"

struct tail {
	int audit_fd; /* borrowed */
	char run[48];
	int segment;      /* which file, from 0 */
	bool open, quiet; /* quiet: no process writes it any more, and it was read once since */
	struct lines lines;
};

enum tail_state { TAIL_LINE, TAIL_WAIT, TAIL_TORN, TAIL_END, TAIL_LOST };

void tail_begin(struct tail *t, int audit_fd, const char *run);
void tail_close(struct tail *t);
/* LINE: *ret_line, borrowed until the next call. WAIT: none yet, its writer lives. TORN: its writer
 * was killed, and no process has ended it yet; it may be asked again. END: that was all. LOST: the
 * journal, or a part of it, is not there or cannot be read. */
enum tail_state tail_next(struct tail *t, const char **ret_line, size_t *ret_len);

#endif
