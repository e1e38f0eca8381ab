/*
 * What a client outside asked of a sandbox, as events. In: a request that was checked, its
 * connection. Out: one api.call with who asked. Runs in ward-box before the request is carried out,
 * so that it is on record whatever becomes of it. Looking (stats, wait) is not worth an event;
 * rules and secrets have events of their own.
 */
#include <string.h>
#include <sys/socket.h>

#include "event/event.h"
#include "run/box_internal.h"
#include "run/serve_internal.h"

static const char *name_of(const struct control_message *m)
{
	if (m->op == CONTROL_EXEC)
		return m->flags & CONTROL_CHECKPOINT ? "checkpoint"
		       : m->flags & CONTROL_COPY     ? "cp"
						     : "exec";
	return m->op == CONTROL_SIGNAL   ? "signal"
	       : m->op == CONTROL_KILL   ? "kill"
	       : m->op == CONTROL_STOP   ? "stop"
	       : m->op == CONTROL_PAUSE  ? "pause"
	       : m->op == CONTROL_RESUME ? "resume"
	       : m->op == CONTROL_ATTACH ? "attach"
					 : NULL;
}

/* Behind an EXEC: directory, words, variables, each ended by a NUL. */
static void add_words(struct ward_event *v, const struct control_message *m, const char *text,
		      size_t n)
{
	const char *directory = text, *end = text + n, *words, *at;

	words = n ? memchr(directory, '\0', n) : NULL;
	if (!words)
		return;
	at = ++words;
	for (int32_t i = 0; i < m->a && at < end; i++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));

		at = nul ? nul + 1 : end;
	}
	event_text(v, FIELD_CWD, *directory ? directory : NULL);
	event_list(v, FIELD_ARGV, words, (size_t)(at - words));
}

void serve_report(struct serve *s, const struct serve_client *c, const struct control_message *m,
		  const char *text, size_t n)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(peer);
	const char *name = name_of(m);
	struct ward_event v;

	if (!name || !s->box->result->events)
		return;
	v = event_make(EVENT_API, ACTION_ALLOW, name);
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0) {
		event_number(&v, FIELD_UID, peer.uid);
		event_number(&v, FIELD_PID, (uint64_t)peer.pid);
	}
	event_text(&v, FIELD_VIA, "control");
	if (m->op == CONTROL_EXEC)
		add_words(&v, m, text, n);
	if (m->op == CONTROL_SIGNAL)
		event_number(&v, FIELD_SIGNAL, (uint64_t)m->a);
	event_emit(s->box->result->events, &v);
}
