/* One run as a page: what was gathered of it, and the parts of the page. */
#ifndef WARD_CLI_AUDIT_REPORT_H
#define WARD_CLI_AUDIT_REPORT_H

#include "base/buf.h"
#include "model/event.h"

/* A row of a table: the same thing again is counted. Texts are owned. */
struct report_row {
	char *texts[5];
	uint64_t count, numbers[3];
	uint64_t first_us;
	uint8_t kind, action, severity;
};

struct report_table {
	struct report_row *rows; /* owned */
	size_t len, cap;
	uint64_t more; /* rows that had no room */
};

struct report_point {
	uint64_t time_us;
	uint8_t kind, action, severity;
};

struct report_sample {
	uint64_t ms, cpu_ms, memory, pids;
};

#define REPORT_ROWS 300 /* of each table */
#define REPORT_POINTS 4000
#define REPORT_SAMPLES 4000
#define REPORT_EVENTS 500 /* of the list at the end */

struct run_report {
	const char *run;
	uint64_t began_us, ended_us, events, denied;
	uint64_t counts[EVENT_KINDS];
	bool has_start, has_end, sees_files;
	/* owned */
	char *command, *workspace, *policy, *profile, *engine, *network, *level, *layers, *absent,
		*why;
	uint64_t exit, signal, duration_ms, cpu_ms, memory_peak, bytes_in, bytes_out;
	bool limited;
	struct report_table denials, files, hosts, programs, notes, events_list;
	struct report_point *points; /* owned */
	size_t point_count;
	struct report_sample *samples; /* owned */
	size_t sample_count;
	bool failed; /* out of memory */
};

/* Appends the whole page. */
void report_page(const struct run_report *r, struct buf *out);
/* A timeline of all events, and lines of what it used over time; nothing where there is nothing to
 * show. */
void report_timeline(const struct run_report *r, struct buf *out);
void report_plots(const struct run_report *r, struct buf *out);

#endif
