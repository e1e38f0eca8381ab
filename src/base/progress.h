/* How far a long piece of work has come, for display. The work only counts; it prints nothing and
 * does not know its display. */
#ifndef WARD_BASE_PROGRESS_H
#define WARD_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_QUIET_MS 1000 /* work that is done by then is not shown */
#define PROGRESS_EACH_MS 200

struct progress {
	/* Called now and then once the work has taken PROGRESS_QUIET_MS; total 0: not known. what
	 * is NULL at the end: nothing of it shall be seen any more. */
	void (*show)(struct progress *p, const char *what, uint64_t done, uint64_t total);
	uint64_t done, total;
	uint64_t due_ms; /* when to show next */
	bool shown;      /* something is to be seen, and to be taken away at the end */
};

/* Begins a piece of work of `total` steps (0: not known). p may be NULL here and everywhere:
 * nothing is shown. */
void progress_begin(struct progress *p, uint64_t total);
/* The work is over, or goes on unseen. */
void progress_end(struct progress *p);
/* Looks at the clock, and shows what there is if it is time. */
void progress_look(struct progress *p, const char *what);

/* One step is done. */
static inline void progress_step(struct progress *p, const char *what)
{
	if (p && (++p->done & 255) == 0)
		progress_look(p, what);
}

/* For a terminal: one line that is written over, and gone at the end. NULL where no process does,
 * or wanted is false. */
struct progress *progress_for_terminal(struct progress *p, bool wanted);

#endif
