/*
 * Canary tools: decoys of a tools.yaml (canary: true), which look like every other tool and which
 * no task needs. In: a call of one. Out: an event canary.touch on record and a line on standard
 * error; every call that runs is killed and every later one refused, the session's sandbox is
 * frozen and left to the operator. Nothing of the decoy runs. What the client gets does not say
 * what it has called.
 */
#include "cli/mcp/parts.h"

#include <string.h>

#include "base/text.h"
#include "cli/tell.h"
#include "event/event.h"

static const char stopped[] = "this server has stopped: it takes no calls any more";

static void put_on_record(const struct server *s, const char *name, const char *session)
{
	struct ward_event v = event_make(EVENT_CANARY, ACTION_DENY, name);
	auto_buf why = { 0 };

	buf_puts(&why, "an MCP client called this tool, a decoy");
	if (*session)
		buf_printf(&why, "; sandbox %s", session);
	event_text(&v, FIELD_RULE, "canary of tools.yaml");
	event_text(&v, FIELD_WHY, why.failed ? NULL : buf_text(&why));
	event_text(&v, FIELD_PATH, s->catalog->source.path);
	tell_done(&v);
}

static void alarm_about(struct server *s, const char *name)
{
	char session[sizeof(s->session.id)];
	struct ward_err e = { 0 };
	auto_buf line = { 0 };

	memcpy(session, s->session.id, sizeof(session));
	s->alarmed = true;
	if (*session && session_freeze(&s->session, &e) < 0)
		(void)say_error(&e, false, 0);
	work_refuse_all(s, stopped);
	put_on_record(s, name, session);
	buf_puts(&line, "ward: the canary tool ");
	text_escape(&line, name);
	buf_puts(&line, " was called: all calls are stopped");
	if (*session)
		buf_printf(&line, ", the sandbox %s %s", session,
			   *s->session.id ? "could not be frozen"
					  : "is frozen (ward evidence, ward resume, ward kill)");
	buf_puts(&line, "\n");
	say_err(&line);
}

bool canary_holds(const struct request *r, const struct offer *offer)
{
	struct server *s = r->peer->server;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };

	if (!s->alarmed && !(offer->tool && offer->tool->canary))
		return false;
	if (!s->alarmed)
		alarm_about(s, offer->name);
	ward_fail(&e, 1, "%s", stopped);
	call_put_refusal(&e, NULL, &out);
	reply(r, &out);
	return true;
}
