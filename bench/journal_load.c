/* Writes a journal of N events as fast as it can: journal-load RUN N. What ward's supervisor does,
 * without a sandbox. */
#include <stdio.h>
#include <stdlib.h>

#include "audit/journal.h"
#include "event/event.h"

#define EVENTS_PER_TURN 8

int main(int argc, char **argv)
{
	long count = argc == 3 ? atol(argv[2]) : 0;
	struct journal *j = count > 0 ? journal_create(false) : NULL;
	struct ward_err e = { 0 };
	struct event_sink *s;
	bool due;

	if (!j || event_begin(journal_sink(j), argv[1], &e) < 0) {
		fprintf(stderr, "journal-load RUN N: %s\n", e.why);
		return 1;
	}
	s = journal_sink(j);
	for (long i = 0; i < count; i++) {
		struct ward_event v = event_make(EVENT_CONNECT, i % 7 ? ACTION_ALLOW : ACTION_DENY,
						 "api.example.com:443");

		event_text(&v, FIELD_HOST, "api.example.com");
		event_number(&v, FIELD_PORT, 443);
		event_number(&v, FIELD_FLOW, (uint64_t)i);
		event_text(&v, FIELD_RULE, "api.example.com:443");
		event_text(&v, FIELD_ADDRESS, "93.184.216.34");
		event_emit(s, &v);
		if (i % EVENTS_PER_TURN == EVENTS_PER_TURN - 1 && event_flush(s, &e) < 0)
			break;
	}
	if (journal_close(j, &due, &e) < 0)
		fprintf(stderr, "%s\n", e.why);
	return e.code != 0;
}
