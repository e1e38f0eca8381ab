/*
 * What verbs did outside any sandbox that runs: applied, discarded, restored, trusted. In: an
 * event. Out: a line of the index of the journals. Runs in the verb, after the deed: what would
 * fail here must not keep a review half applied.
 */
#include "cli/tell.h"

#include <unistd.h>

#include "audit/index.h"
#include "cli/cli.h"
#include "event/event.h"

void tell_done(struct ward_event *v)
{
	struct ward_err e = { 0 };

	event_number(v, FIELD_UID, (uint64_t)getuid());
	event_text(v, FIELD_VIA, "cli");
	if (index_report(v, &e) < 0)
		say_error(&e, false, 0);
}
