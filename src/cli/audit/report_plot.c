/*
 * Pictures of a run, as SVG within the page. In: what was gathered. Out: a timeline with a row for
 * each group of events, and lines of memory, processor and processes over time. Pure. Only numbers
 * of ours and names of tables are written here; colours are classes, which the page's style gives
 * for light and dark.
 */
#include "cli/audit/report.h"

#include <inttypes.h>
#include <string.h>

#include "event/event.h"
#include "policy/units.h"

#define WIDTH 640
#define LEFT 84
#define ROW 18
#define PLOT 110

/* What stands before the dot of a kind. */
static size_t group_of(const char *kind)
{
	return strcspn(kind, ".");
}

static unsigned place_x(const struct run_report *r, uint64_t time_us)
{
	uint64_t all = r->ended_us > r->began_us ? (r->ended_us - r->began_us) / 1000 : 0,
		 at = time_us > r->began_us ? (time_us - r->began_us) / 1000 : 0;

	return LEFT + (unsigned)((at < all ? at : all) * (WIDTH - LEFT - 12) / (all + 1));
}

static void put_seconds(struct buf *out, uint64_t us)
{
	if (us < 10000000)
		buf_printf(out, "%u.%02u s", (unsigned)(us / 1000000),
			   (unsigned)(us / 10000 % 100));
	else
		buf_printf(out, "%" PRIu64 " s", us / 1000000);
}

static void put_points(const struct run_report *r, const char *group, size_t n, unsigned y,
		       struct buf *out)
{
	unsigned last[3] = { 0 };

	for (size_t i = 0; i < r->point_count; i++) {
		const struct report_point *p = &r->points[i];
		const char *kind = event_kind_name((enum event_kind)p->kind);
		unsigned x = place_x(r, p->time_us), colour = p->action == ACTION_DENY         ? 2
							      : p->severity >= SEVERITY_MEDIUM ? 1
											       : 0;

		if (group_of(kind) != n || strncmp(kind, group, n) != 0 || last[colour] == x)
			continue;
		last[colour] = x;
		buf_printf(out, "<circle cx=\"%u\" cy=\"%u\" r=\"4\" class=\"c%u\"/>", x, y,
			   colour);
	}
}

void report_timeline(const struct run_report *r, struct buf *out)
{
	const char *groups[EVENT_KINDS];
	unsigned count = 0;

	for (unsigned k = 0; k < EVENT_KINDS; k++) {
		const char *kind = event_kind_name((enum event_kind)k);
		unsigned g = 0;

		if (!r->counts[k] || k == EVENT_RUN_SAMPLE)
			continue;
		while (g < count && (group_of(groups[g]) != group_of(kind) ||
				     strncmp(groups[g], kind, group_of(kind)) != 0))
			g++;
		if (g == count)
			groups[count++] = kind;
	}
	if (!count)
		return;
	buf_printf(out, "<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"timeline\">", WIDTH,
		   count * ROW + 24);
	for (unsigned g = 0; g < count; g++) {
		unsigned y = g * ROW + 12;

		buf_printf(out,
			   "<text x=\"0\" y=\"%u\">%.*s</text><line x1=\"%d\" x2=\"%d\" y1=\"%u\" "
			   "y2=\"%u\" class=\"axis\"/>",
			   y + 4, (int)group_of(groups[g]), groups[g], LEFT, WIDTH - 12, y, y);
		put_points(r, groups[g], group_of(groups[g]), y, out);
	}
	buf_printf(out,
		   "<text x=\"%d\" y=\"%u\">0</text><text x=\"%d\" y=\"%u\" text-anchor=\"end\">",
		   LEFT, count * ROW + 20, WIDTH - 12, count * ROW + 20);
	put_seconds(out, r->ended_us - r->began_us);
	buf_puts(out, "</text></svg>\n");
}

/* -- lines */

enum what { MEMORY, CPU, PROCESSES };

static uint64_t value_at(const struct run_report *r, size_t i, enum what what)
{
	const struct report_sample *s = &r->samples[i];
	uint64_t ms = i ? s->ms - s[-1].ms : s->ms,
		 cpu = i ? s->cpu_ms - (s->cpu_ms < s[-1].cpu_ms ? s->cpu_ms : s[-1].cpu_ms)
			 : s->cpu_ms;

	if (what == CPU)
		return ms ? cpu * 100 / ms : 0; /* percent of one processor */
	return what == MEMORY ? s->memory : s->pids;
}

static void put_amount(struct buf *out, enum what what, uint64_t value)
{
	if (what == MEMORY)
		buf_printf(out, "%" PRIu64 ".%u MiB", value >> 20,
			   (unsigned)((value & 0xfffff) * 10 >> 20));
	else
		buf_printf(out, what == CPU ? "%" PRIu64 " %%" : "%" PRIu64, value);
}

static void put_plot(const struct run_report *r, const char *title, enum what what, struct buf *out)
{
	uint64_t most = 1, end = r->samples[r->sample_count - 1].ms;

	for (size_t i = 0; i < r->sample_count; i++)
		most = value_at(r, i, what) > most ? value_at(r, i, what) : most;
	if (most >= UINT64_MAX >> 10)
		return; /* no run has that much: the journal is forged */
	buf_printf(out, "<figure><figcaption>%s, at most ", title);
	put_amount(out, what, most);
	buf_printf(out,
		   "</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\"><line "
		   "x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\" class=\"axis\"/><polyline "
		   "class=\"plot\" points=\"",
		   WIDTH, PLOT + 16, title, WIDTH, PLOT, PLOT);
	for (size_t i = 0; i < r->sample_count; i++) {
		uint64_t x =
			end ? (r->samples[i].ms < end ? r->samples[i].ms : end) * (WIDTH - 8) / end
			    : 0;

		buf_printf(out, "%" PRIu64 ",%" PRIu64 " ", x + 4,
			   PLOT - value_at(r, i, what) * (PLOT - 8) / most);
	}
	buf_printf(
		out,
		"\"/><text x=\"0\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">",
		PLOT + 13, WIDTH, PLOT + 13);
	put_seconds(out, end * 1000);
	buf_puts(out, "</text></svg></figure>\n");
}

void report_plots(const struct run_report *r, struct buf *out)
{
	if (r->sample_count < 2 || r->samples[r->sample_count - 1].ms > UINT32_MAX * 1000ull)
		return;
	put_plot(r, "memory", MEMORY, out);
	put_plot(r, "processor", CPU, out);
	put_plot(r, "processes", PROCESSES, out);
}
