/* What a sink has not delivered yet, on record until it has. */
#ifndef WARD_AUDIT_SINK_STATE_H
#define WARD_AUDIT_SINK_STATE_H

#include "audit/place.h"
#include "base/buf.h"

#define SINK_DIR "sinks"
#define SINK_LINE_MAX 8192

/* Opens and locks the record of a run's sink; one that is there with the same line is gone on with,
 * else it begins behind the event from. line NULL: one that must be there, *ret_line (the caller
 * frees) is its sink. -EWOULDBLOCK: another process is delivering it. */
must_check int sink_state_open(int audit_fd, const char *name, const char *line, uint64_t from,
			       int *ret_fd, uint64_t *ret_seq, char **ret_line, struct ward_err *e);
void sink_state_remove(int audit_fd, const char *name);
/* The names of all records, "RUN.N". */
void sink_state_list(int audit_fd, struct strv *ret);
/* "RUN.N" -> "RUN". False: it is no such name. */
bool sink_state_run(const char *name, char ret[48]);
/* The journal of a run: removed; still open, or its run was killed and no process has ended it yet;
 * complete. */
enum sink_record { RECORD_GONE, RECORD_LIVE, RECORD_COMPLETE };
enum sink_record sink_state_journal(int audit_fd, const char *run);
/* How many events of the run's journal come behind seq. */
uint64_t sink_state_left(int audit_fd, const char *run, uint64_t seq);

#endif
