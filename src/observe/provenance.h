/*
 * Who changed a file (audit.level: writes), and what it had read from the network before (full).
 * Observed, not proven; the hosts are those that may have been read from: it is rather too much
 * than too little, within the limits that SECURITY.md names.
 */
#ifndef WARD_OBSERVE_PROVENANCE_H
#define WARD_OBSERVE_PROVENANCE_H

#include "model/result.h"
#include "observe/observe.h"

struct provenance;

/* upper_fd: where a run under review keeps changes of the workspace, borrowed; -1: it has none.
 * NULL: out of memory. */
must_check struct provenance *provenance_create(const struct plan *p, int upper_fd);
void provenance_destroy(struct provenance *v);

/* A call was seen (observe.h); words: the arguments of a program that is being started, each ended
 * by a NUL. */
void provenance_saw(struct provenance *v, const struct observation *o, const char *words,
		    size_t words_len);
/* Whether it wants to see whole which programs begin (provenance_saw); NULL: no. */
bool provenance_follows_hosts(const struct provenance *v);
/* A process begins a program, and nothing more was seen. */
void provenance_began(struct provenance *v, pid_t pid);
/* A name has an address inside (4 or 16 bytes), which stands for nothing else. */
void provenance_name(struct provenance *v, const char *host, const uint8_t *address, size_t n);
/* A connection to that host was opened through a proxy: a process that has spoken to one may have
 * asked for it. */
void provenance_proxied(struct provenance *v, const char *host);

/* Reports which files have changed since, and by whom, as file.change; now and then, and at the
 * end. */
void provenance_tell(struct provenance *v, struct result *r, bool end);
/* Reports the files that were opened for reading since; whole: and how many more there were. */
void provenance_tell_reads(struct provenance *v, struct result *r, bool whole);

#endif
