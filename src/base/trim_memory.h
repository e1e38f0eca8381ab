/* Sleeping with little memory. */
#ifndef WARD_BASE_TRIM_MEMORY_H
#define WARD_BASE_TRIM_MEMORY_H

#include <poll.h>

/* poll(2), after giving back all memory that can be had again: for a process that will sleep for
 * long. */
int trim_memory_poll(struct pollfd *polled, nfds_t count, int timeout_ms);

/* The same at once, but for the stack: for a process that has begun and will need little of what
 * that took. */
void trim_memory_now(void);

/* After so many rounds of its loop a process that is busy has begun. */
#define SETTLED_ROUNDS 500

#endif
