/* Where journals lie, and locks on them. */
#ifndef WARD_AUDIT_PLACE_H
#define WARD_AUDIT_PLACE_H

#include "audit/chain.h"

#define PLACE_LIVE "live"
#define PLACE_RUNS "runs"
#define PLACE_INDEX "index.jsonl"
#define PLACE_SEALED "sealed" /* there as soon as something was signed */
#define PLACE_NAME 96         /* the longest name of a journal's file, with its directory */
#define PLACE_WAIT_MS 5000    /* for a lock that others hold */

/* Opens (and with make: makes, 0700) STATE/audit. -ENOENT: there is none. */
must_check int place_open(bool make, struct ward_err *e);
/* "runs/ID.jsonl", or "runs/ID.N.jsonl" for a segment that is not the last (segment < 0: the
 * last). */
void place_name(char ret[PLACE_NAME], const char *dir, const char *run, int segment);
/* Renames a file of audit_fd's into PLACE_RUNS, which is made where a killed run came no further. 0
 * or -errno. */
must_check int place_move(int audit_fd, const char *from, const char *to);
/* Whether it can be the id of a run: the name of a file is made of it. */
bool place_is_id(const char *run);
/* Locks a file against other writers; waits at most PLACE_WAIT_MS. 0 or -errno. */
must_check int place_lock(int fd);
/* The same, shared with others. */
must_check int place_share(int fd);

/* What stands at the end of a journal's file. */
struct place_end {
	struct chain chain; /* after the last whole line; of an empty file as it was */
	uint64_t bytes;     /* up to there */
	uint64_t torn;      /* bytes behind it: a line that was cut short */
};

/* Finds the last whole line that is one of a journal. chain is left as it is where there is none. 0
 * or -errno. */
must_check int place_read_end(int fd, struct place_end *ret);

#endif
