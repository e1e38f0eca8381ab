/*
 * What became of a recording, for the report and the journal. In: the file, when the gateway has
 * ended. Out: one event with the hash of its last frame, which stands for all of it: the process
 * that has the journal can tell whether a recording was changed since. Runs in the supervisor.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "egress/egress_internal.h"
#include "event/event.h"
#include "plan/plan_tape.h"
#include "rules/tape.h"

static void emit(const struct plan_tape *t, uint64_t exchanges, uint64_t bytes, const uint8_t *hash,
		 const char *why, struct result *r)
{
	struct ward_event v = event_make(EVENT_RECORDING, why ? ACTION_DENY : ACTION_LOG, t->path);
	char hex[2 * TAPE_HASH + 1] = "";

	for (size_t i = 0; hash && i < TAPE_HASH; i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	event_text(&v, FIELD_CHANGE, t->replay ? "replay" : "record");
	event_text(&v, FIELD_WHY, why);
	event_number(&v, FIELD_COUNT, exchanges);
	event_number(&v, FIELD_BYTES, bytes);
	event_text(&v, FIELD_DIGEST, *hex ? hex : NULL);
	event_emit(r->events, &v);
}

void egress_report_tape(const struct egress *g, struct result *r)
{
	const struct plan_tape *t = g->plan->live->tape;
	struct tape_frame last;
	struct stat st;

	if (!t || t->fd < 0)
		return;
	if (t->replay) {
		emit(t, t->exchanges, t->bytes, t->hash, NULL, r);
		return;
	}
	/* no connection was wanted, so there is no gateway */
	if (fstat(t->fd, &st) < 0 || st.st_size == 0) {
		unlink(t->path);
		strv_addf(&r->notes,
			  "network.record: the run made no network connection, so there is no %s",
			  t->path);
		return;
	}
	if (st.st_size < (off_t)(TAPE_START + sizeof(last)) ||
	    pread(t->fd, &last, sizeof(last), st.st_size - (off_t)sizeof(last)) !=
		    (ssize_t)sizeof(last) ||
	    last.kind != TAPE_CLOSE || last.bytes) {
		emit(t, 0, (uint64_t)st.st_size, NULL, "it was not closed properly", r);
		strv_addf(&r->notes,
			  "network.record: %s is incomplete: it can be replayed up to where it "
			  "breaks off",
			  t->path);
		return;
	}
	emit(t, last.exchange, (uint64_t)st.st_size, last.hash, NULL, r);
}
