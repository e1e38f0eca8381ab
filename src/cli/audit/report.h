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

/* What was done to a path; bits. */
enum {
	PATH_READ = 1 << 0,
	PATH_WRITTEN = 1 << 1,
	PATH_CREATED = 1 << 2,
	PATH_DELETED = 1 << 3,
	PATH_RENAMED = 1 << 4,
	PATH_MODE = 1 << 5,
	PATH_REFUSED = 1 << 6,
	PATH_QUARANTINED = 1 << 7,
};

struct report_path {
	char *path, *exe; /* owned */
	unsigned what;
};

/* Sorted as a tree. */
struct report_paths {
	struct report_path *rows; /* owned */
	size_t len;
	uint64_t more;
};

enum report_act { DID_READ, DID_WRITE, DID_REFUSE, REPORT_ACTS };

/* A process, or what it became by another exec. Places are indices; UINT32_MAX: none. */
struct report_process {
	uint64_t pid, ppid, first_us, all; /* all: with those beneath it */
	uint64_t acts[REPORT_ACTS];
	char *exe, *words; /* owned */
	uint32_t parent, first_child, last_child, next;
	bool became;
};

struct report_processes {
	struct report_process *rows; /* owned */
	uint32_t len;
	uint64_t more;
};

#define REPORT_PATHS 2000
#define REPORT_PROCESSES 1000
#define REPORT_DEPTH 12 /* of a tree; what is deeper is not nested further */
#define REPORT_ROWS 300 /* of each table */
#define REPORT_POINTS 4000
#define REPORT_SAMPLES 4000
#define REPORT_EVENTS 500 /* of the list at the end */

struct run_report {
	const char *run;
	uint64_t began_us, ended_us, events, denied;
	uint64_t counts[EVENT_KINDS];
	bool has_start, has_end;
	/* owned */
	char *command, *workspace, *policy, *profile, *engine, *network, *level, *layers, *absent,
		*why;
	uint64_t exit, signal, duration_ms, cpu_ms, memory_peak, bytes_in, bytes_out;
	bool limited;
	uint64_t spent; /* millionths */
	struct report_table denials, reviews, hosts, spends, notes, events_list;
	struct report_paths paths;
	struct report_processes processes;
	struct report_point *points; /* owned */
	size_t point_count;
	struct report_sample *samples; /* owned */
	size_t sample_count;
	bool failed; /* out of memory */
};

/* What was done to a path (absolute), and by which program (NULL: unknown). Both are copied. */
void report_add_path(struct run_report *r, const char *path, unsigned what, const char *exe);
void report_clear_paths(struct run_report *r);
/* The tree of files. */
void report_files(const struct run_report *r, struct buf *out);
/* A process begins a program. Takes exe and words (NULL: unknown). */
void report_add_exec(struct run_report *r, uint64_t pid, uint64_t ppid, char *exe, char *words,
		     uint64_t time_us);
/* A process did something, so often. exe is copied. */
void report_add_act(struct run_report *r, uint64_t pid, uint64_t ppid, const char *exe,
		    enum report_act act, uint64_t count);
void report_clear_processes(struct run_report *r);
/* The tree of processes. */
void report_processes(const struct run_report *r, struct buf *out);

/* Text of the sandbox's, escaped; NULL: nothing. */
void report_put(struct buf *out, const char *text);
void report_put_some(struct buf *out, const char *text, size_t n);
void report_put_ms(struct buf *out, uint64_t ms);
/* How much was left out; 0: nothing. */
void report_put_more(struct buf *out, uint64_t more);

/* Appends the whole page. */
void report_page(const struct run_report *r, struct buf *out);
/* A timeline of all events, and lines of what it used over time; nothing where there is nothing to
 * show. */
void report_timeline(const struct run_report *r, struct buf *out);
void report_plots(const struct run_report *r, struct buf *out);

#endif
