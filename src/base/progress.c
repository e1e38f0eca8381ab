/*
 * Progress of long work: the clock is read every 256 steps, and whoever shows it is called a few times a second, from the
 * first second on.
 */
#include "base/progress.h"

#include "base/io.h"

void progress_begin(struct progress *p, uint64_t total)
{
	if (!p)
		return;
	p->done = 0;
	p->total = total;
	p->due_ms = io_now_ms() + PROGRESS_QUIET_MS;
}

void progress_look(struct progress *p, const char *what)
{
	uint64_t now;

	if (!p || !p->show)
		return;
	now = io_now_ms();
	if (!p->due_ms)
		p->due_ms = now + PROGRESS_QUIET_MS;
	if (now < p->due_ms)
		return;
	p->due_ms = now + PROGRESS_EACH_MS;
	p->show(p, what, p->done, p->total);
	p->shown = true;
}

void progress_end(struct progress *p)
{
	if (!p || !p->shown)
		return;
	p->shown = false;
	p->show(p, NULL, 0, 0);
}
