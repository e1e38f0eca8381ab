/* The journal of one run: a sink of events that writes them down. */
#ifndef WARD_AUDIT_JOURNAL_H
#define WARD_AUDIT_JOURNAL_H

#include "audit/place.h"

#define JOURNAL_SEGMENT_MAX (64 << 20) /* bytes of one file */

struct journal;

/* A journal that nothing is written to before event_begin() of its sink. go_on: what cannot be
 * written is counted and reported, the run goes on (audit.on_full: continue). NULL: out of memory.
 */
must_check struct journal *journal_create(bool go_on);
struct event_sink *journal_sink(struct journal *j);
/* STATE/audit, borrowed; how many events are on record. Both once the sink has begun. */
int journal_directory(const struct journal *j);
uint64_t journal_events(const struct journal *j);
/* Events that could not be written, or are not to be found any more, and why. 0: none. */
uint64_t journal_lost(const struct journal *j, const char **ret_why);
/* Writes what is left, puts the end into the index, frees. Returns 0, or -errno where something is
 * not on record. *ret_due: the index should be signed. NULL is fine. */
int journal_close(struct journal *j, bool *ret_due, struct ward_err *e);

/* Ends the journals of killed runs, looking at so many: half a line is removed, and the chain says
 * so. Returns how many. */
must_check int journal_recover(size_t most, struct ward_err *e);
/* Whether the index should be signed again: much was added since it was, or long ago. */
bool journal_seal_due(int audit_fd);

#endif
