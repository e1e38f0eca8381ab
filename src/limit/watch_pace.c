/*
 * How fast a sandbox fills its disk. In: how far the file systems rose from one look to the next,
 * and what is left of the limit. Out: how long the next look may wait. Pure functions, called by
 * the watch (watch.c) in the supervisor.
 *
 * A look finds the limit passed only after it happened, so what can be written between two looks
 * is what can be left behind. Writing costs processor time: fallocate(), which takes blocks at no
 * cost, is closed by the filter while the watch holds the limit (tables/syscalls.def). So the rate
 * has a bound that the number of processors gives, and where a machine is faster than assumed, the
 * rate that was seen counts. The wait is such that a quarter of the margin (limits_disk_margin())
 * cannot be passed; the rest is for the time until every process stands still.
 */
#include "limit/watch_parts.h"

/* bytes that one processor writes in a millisecond, generously */
#define WRITE_RATE (4u << 20)
#define MACHINE_RATE (64u << 20) /* and all of them together: memory is no faster */
#define LEAST_WAIT_MS 1
#define MOST_WAIT_MS 1000
#define FADE 8 /* an eighth of what was seen is forgotten at each look */

uint64_t limits_disk_margin(uint64_t limit)
{
	return limit / 10 > DISK_MARGIN ? limit / 10 : DISK_MARGIN;
}

void disk_pace_note(struct disk_pace *p, uint64_t gross_bytes, uint64_t now_ms)
{
	uint64_t elapsed = now_ms - p->last_ms, rate = 0;

	if (p->last_ms && elapsed < LEAST_WAIT_MS)
		return; /* too short to tell; the next one counts it */
	if (p->last_ms && gross_bytes > p->last_gross)
		rate = (gross_bytes - p->last_gross) / elapsed;
	p->rate -= p->rate / FADE;
	if (rate > p->rate)
		p->rate = rate;
	p->last_ms = now_ms;
	p->last_gross = gross_bytes;
}

uint64_t disk_pace_wait(const struct disk_pace *p, uint64_t limit, uint64_t grown_bytes,
			unsigned cpus)
{
	uint64_t room = limit > grown_bytes ? limit - grown_bytes : 0;
	uint64_t rate = (uint64_t)WRITE_RATE * (cpus ? cpus : 1), wait;

	if (rate > MACHINE_RATE)
		rate = MACHINE_RATE;
	if (rate < p->rate * 2)
		rate = p->rate * 2; /* it may double */
	wait = (room + limits_disk_margin(limit) / 4) / rate;
	return wait < LEAST_WAIT_MS ? LEAST_WAIT_MS : wait > MOST_WAIT_MS ? MOST_WAIT_MS : wait;
}
