/*
 * Going through events. In: a run, or none for the index. Out: each event in order, to the process
 * that asked. Run by ward-audit. What is no event is left out: ward audit verify tells of it.
 */
#include "cli/audit/parts.h"

#include <string.h>

#include "audit/tail.h"
#include "event/event.h"

static void see_index(int audit_fd, const char *only,
		      void (*see)(void *with, const struct ward_event *v), void *with)
{
	static char scratch[EVENT_LINE_MAX];
	auto_strv files = { 0 };
	bool live;

	lines_files(audit_fd, NULL, &files, &live);
	for (size_t i = 0; i < files.len; i++) {
		struct ward_event v;
		const char *line;
		struct lines l;
		size_t n;

		if (lines_open(&l, audit_fd, files.items[i]) < 0)
			continue;
		while (lines_next(&l, &line, &n) > 0) {
			if (!event_decode(line, n, scratch, &v, NULL))
				continue;
			if (!only ||
			    (v.run && strcmp(v.run, only) == 0 &&
			     strncmp(event_kind_name((enum event_kind)v.kind), "journal.", 8) != 0))
				see(with, &v);
		}
		lines_close(&l);
	}
}

void audit_each(int audit_fd, const char *run, void (*see)(void *with, const struct ward_event *v),
		void *with)
{
	static char scratch[EVENT_LINE_MAX];
	struct ward_event v;
	struct tail tail;
	const char *line;
	size_t n;

	if (run) {
		tail_begin(&tail, audit_fd, run);
		while (tail_next(&tail, &line, &n) == TAIL_LINE)
			if (event_decode(line, n, scratch, &v, NULL))
				see(with, &v);
		tail_close(&tail);
	}
	see_index(audit_fd, run, see, with);
}
