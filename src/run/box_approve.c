/*
 * Questions of a run. In: what the gateway holds, answers. Out: orders for the gateway
 * (egress_ask.c, egress_live.c), events. The queue itself is approve/approve.c. A yes for once is a
 * grant for the connections that wait; a yes for the run or for a time is a rule for the host and
 * port, as by `ward net allow`, which the gateway takes and decides again with: what waits goes on.
 * A request is let through by its digest; a yes for more than once is kept in the queue, which lets
 * later ones like it through. A new kind is a row of kinds[].
 * A no, and no answer in time, refuse what waits. Runs in the supervisor; nothing here waits.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include "approve/show.h"
#include "base/io.h"
#include "egress/secrets.h"
#include "event/event.h"
#include "run/box_commands.h"
#include "run/box_proposals.h"
#include "run/serve.h"
#include "rules/never.h"

static const char *scope_of(enum question_answer answer)
{
	static const char *const scopes[QUESTION_ANSWERS] = { [QUESTION_ONCE] = "once",
							      [QUESTION_RUN] = "sandbox",
							      [QUESTION_TIME] = "time",
							      [QUESTION_ALWAYS] = "always" };

	return answer < QUESTION_ANSWERS ? scopes[answer] : NULL;
}

static struct ward_event event_of(enum event_kind kind, enum event_action action,
				  const struct question *q, char id[24])
{
	struct ward_event v = event_make(kind, action, q->subject);

	snprintf(id, 24, "%" PRIu64, q->id);
	event_text(&v, FIELD_REQUEST, id);
	event_text(&v, FIELD_QUESTION, question_kind_name(q->kind));
	if (q->kind != QUESTION_WATCH && *q->host) {
		event_text(&v, FIELD_HOST, q->host);
		event_number(&v, FIELD_PORT, q->port);
	}
	event_text(&v, FIELD_RULE, q->rule);
	return v;
}

static void on_asked(void *context, const struct question *q)
{
	struct box *b = context;
	char id[24];
	struct ward_event v = event_of(EVENT_APPROVAL_ASK, ACTION_ASK, q, id);

	event_text(&v, FIELD_WHY, *q->details[0] ? q->details[0] : NULL);
	event_emit(b->result->events, &v);
}

static void on_ended(void *context, const struct question *q, enum approve_end end,
		     enum question_answer answer, uint64_t seconds, const struct question_who *who)
{
	static const char *const changes[] = { [APPROVE_ANSWERED] = "answer",
					       [APPROVE_TIMEOUT] = "timeout",
					       [APPROVE_WITHDRAWN] = "withdrawn",
					       [APPROVE_LATE] = "late",
					       [APPROVE_COVERED] = "covered" };
	static const char *const whys[] = {
		[APPROVE_ANSWERED] = "a person answered",
		[APPROVE_TIMEOUT] = "no answer within approvals.timeout_seconds",
		[APPROVE_WITHDRAWN] = "nothing waits for an answer any more",
		[APPROVE_LATE] = "the question had ended before, so the answer has no effect",
		[APPROVE_COVERED] = "an earlier answer covers it"
	};
	struct box *b = context;
	bool yes = (end == APPROVE_ANSWERED || end == APPROVE_COVERED) && answer != QUESTION_DENY;
	char id[24];
	struct ward_event v =
		event_of(EVENT_APPROVAL_ANSWER,
			 yes                                               ? ACTION_APPROVE
			 : end == APPROVE_LATE || end == APPROVE_WITHDRAWN ? ACTION_LOG
									   : ACTION_DENY,
			 q, id);

	event_text(&v, FIELD_CHANGE, changes[end]);
	event_text(&v, FIELD_WHY, whys[end]);
	event_text(&v, FIELD_SCOPE, end == APPROVE_COVERED ? NULL : scope_of(answer));
	event_number(&v, FIELD_COUNT, q->count);
	if (who) {
		event_number(&v, FIELD_UID, who->uid);
		event_number(&v, FIELD_PID, (uint64_t)who->pid);
		event_text(&v, FIELD_VIA, who->via);
		event_text(&v, FIELD_FROM, *who->from ? who->from : NULL);
	}
	if (seconds) {
		event_number(&v, FIELD_VALUE, seconds);
		event_text(&v, FIELD_UNIT, "seconds");
	}
	event_emit(b->result->events, &v);
	/* what was answered with always is in the policy already */
	if (yes && *q->line && answer != QUESTION_ALWAYS &&
	    !strv_has(&b->result->approved, q->line))
		strv_add(&b->result->approved, q->line);
}

static int apply_to_connection(struct box *b, const struct question *q, enum question_answer answer,
			       uint64_t seconds, struct ward_err *e)
{
	char line[sizeof(q->line)], *lines[] = { line };
	uint64_t generation;

	if (answer == QUESTION_ONCE)
		return egress_allow_once(b->egress, q->host, q->port, q->serial_last, q->count, e);
	if (answer == QUESTION_RUN || answer == QUESTION_TIME || answer == QUESTION_ALWAYS) {
		memcpy(line, q->line, sizeof(line));
		return egress_change(b->egress, lines, 1, false, seconds, &generation, e);
	}
	egress_refuse(b->egress, q->host, q->port, q->serial_last,
		      answer == QUESTION_DENY ? REASON_ANSWERED_NO : REASON_UNANSWERED);
	return 0;
}

static enum verdict_reason reason_of(enum question_answer answer)
{
	return answer == QUESTION_DENY ? REASON_ANSWERED_NO
	       : answer                ? REASON_ALLOWED
				       : REASON_UNANSWERED;
}

static int apply_to_request(struct box *b, const struct question *q, enum question_answer answer,
			    uint64_t seconds, struct ward_err *e)
{
	(void)seconds;
	return egress_answer_request(b->egress, q->host, q->port, q->exact, q->serial_last,
				     reason_of(answer), e);
}

static int apply_to_credential(struct box *b, const struct question *q, enum question_answer answer,
			       uint64_t seconds, struct ward_err *e)
{
	(void)seconds;
	return secrets_answer(b->plan->live->secrets, q->exact, q->serial_last, reason_of(answer),
			      e);
}

static int apply_to_alert(struct box *b, const struct question *q, enum question_answer answer,
			  uint64_t seconds, struct ward_err *e)
{
	if (answer == QUESTION_ALWAYS) {
		ward_fail(e, EINVAL, "an alert cannot be answered once and for all");
		return ward_remedy(e, "--once, --run, --for TIME or --deny; a false alarm is "
				      "silenced in watch.rules");
	}
	box_alarm_answer(b, q, answer, seconds);
	return 0;
}

static int apply_to_file(struct box *b, const struct question *q, enum question_answer answer,
			 uint64_t seconds, struct ward_err *e)
{
	(void)seconds;
	return notify_answer_file(b->notify, q->exact, q->serial_last,
				  reason_of(answer) == REASON_ALLOWED, e);
}

static int apply_to_command(struct box *b, const struct question *q, enum question_answer answer,
			    uint64_t seconds, struct ward_err *e)
{
	(void)seconds;
	return box_commands_answer(b, q, answer, e);
}

static int apply_to_proposal(struct box *b, const struct question *q, enum question_answer answer,
			     uint64_t seconds, struct ward_err *e)
{
	return box_proposals_answer(b, q, answer, seconds, e);
}

/* What an answer does about each kind. */
static const struct {
	int (*apply)(struct box *b, const struct question *q, enum question_answer answer,
		     uint64_t seconds, struct ward_err *e);
	bool remembers; /* a yes for the run or for a time is kept in the queue */
} kinds[QUESTION_KINDS] = {
	[QUESTION_CONNECT] = { apply_to_connection, false },
	[QUESTION_REQUEST] = { apply_to_request, true },
	[QUESTION_CREDENTIAL] = { apply_to_credential, true },
	[QUESTION_FILE] = { apply_to_file, true },
	[QUESTION_WATCH] = { apply_to_alert, false },
	[QUESTION_COMMAND] = { apply_to_command, true },
	[QUESTION_PROPOSAL] = { apply_to_proposal, false },
};

/* By its own name, and by that of where it leads. */
static bool is_never_path(const struct strv *never, const char *path)
{
	auto_free char *real = realpath(path, NULL);

	return never_tree(never, path) || (real && never_tree(never, real));
}

/* Hosts, secrets and proposed paths; files and programs are looked at where they are given. */
bool box_is_never(const struct box *b, const struct question *q)
{
	const struct strv *never = &b->plan->spec->policy.appr_never;
	const struct rules *rules =
		b->egress ? egress_rules(b->egress) : box_proposals_rules(b->proposals);
	struct host host;

	if (q->kind == QUESTION_CREDENTIAL && never_grants(never, q->rule))
		return true;
	if (q->kind == QUESTION_PROPOSAL && !*q->host)
		return !q->port && is_never_path(never, q->line);
	return rules && q->kind != QUESTION_WATCH && *q->host &&
	       host_read(q->host, strlen(q->host), &host) == HOST_FINE && rules_never(rules, &host);
}

/* The one place where questions get into the queue: 0, or why nobody is asked. */
int box_ask(struct box *b, bool waits, const struct question *q)
{
	uint64_t id;

	if (waits)
		return box_is_never(b, q) ? -EACCES : approve_ask(b->approve, q, io_now_ms(), &id);
	approve_withdraw(b->approve, q);
	return 0;
}

/* The one way of every answer, from whomever it comes. */
static int apply(void *context, const struct question *q, enum question_answer answer,
		 uint64_t seconds, struct ward_err *e)
{
	struct box *b = context;
	bool longer =
		answer == QUESTION_RUN || answer == QUESTION_TIME || answer == QUESTION_ALWAYS;
	bool remembers = longer && kinds[q->kind].remembers;
	int r;

	if (answer && answer != QUESTION_DENY && box_is_never(b, q)) {
		ward_fail(e, EPERM, "%s: approvals.never names it", q->subject);
		return ward_remedy(e, "answer with --deny");
	}
	if (remembers &&
	    !approve_remember(b->approve, q, seconds ? io_now_ms() + seconds * 1000 : 0)) {
		ward_fail(e, ENOTSUP, "%s: it can be allowed once only", q->subject);
		return ward_remedy(e, "answer with --once or --deny");
	}
	r = kinds[q->kind].apply(b, q, answer, seconds, e);
	if (r < 0 && remembers)
		approve_forget(b->approve, q); /* a yes without effect covers nothing */
	return r;
}

static int on_request(void *context, bool waits, const struct want *w, const struct verdict *v,
		      const struct gate_request *said)
{
	struct box *b = context;
	struct question q;

	show_request(egress_rules(b->egress), w, v, said, &q);
	return box_ask(b, waits, &q);
}

static int on_credential(void *context, bool waits, const struct host *host,
			 const struct keys_asked *said)
{
	struct box *b = context;
	struct question q;
	struct want w;

	if (!b->approve)
		return -EPERM;
	want_host(&w, WANT_TRANSPARENT, host, said->port);
	show_credential(egress_rules(b->egress), &w, said, &q);
	return box_ask(b, waits, &q);
}

static int on_file(void *context, bool waits, const struct file_asked *asked)
{
	struct box *b = context;
	struct question q;

	if (!b->approve)
		return -EPERM;
	show_file(asked, getenv("HOME"), &q);
	return box_ask(b, waits, &q);
}

static int on_connection(void *context, bool waits, const struct want *w, const struct verdict *v,
			 uint64_t serial)
{
	struct box *b = context;
	struct question q;

	show_connection(egress_rules(b->egress), w, v, &q);
	q.serial_first = serial;
	q.alone = rules_never_near(egress_rules(b->egress), &w->host);
	return box_ask(b, waits, &q);
}

static void on_changed(void *context)
{
	struct box *b = context;
	struct serve *server = b->serve ? b->serve : b->net_serve;

	if (server)
		serve_questions_changed(server);
}

int box_approve_begin(struct box *b, struct ward_err *e)
{
	static const struct approve_ops ops = {
		.apply = apply, .asked = on_asked, .ended = on_ended, .changed = on_changed
	};
	const struct policy *p = &b->plan->spec->policy;

	if (p->appr_mode != APPROVALS_ASK ||
	    (!b->egress && !b->alarm && !b->plan->asks.len && !b->plan->live->commands &&
	     !b->plan->live->proposals))
		return 0;
	b->approve = approve_create(&ops, b, p->appr_timeout);
	if (!b->approve)
		return ward_fail(e, ENOMEM, "out of memory");
	if (b->egress) {
		egress_on_asked(b->egress, on_connection, b);
		egress_on_requested(b->egress, on_request, b);
	}
	if (b->plan->live->secrets)
		secrets_on_asked(b->plan->live->secrets, on_credential, b);
	return 0;
}

void box_approve_files(struct box *b)
{
	if (b->approve)
		notify_on_file(b->notify, on_file, b);
}

void box_approve_end(struct box *b)
{
	if (b->approve && b->plan->live->secrets)
		secrets_on_asked(b->plan->live->secrets, NULL, NULL);
	notify_on_file(b->notify, NULL, NULL);
	approve_destroy(b->approve);
	b->approve = NULL;
	always_end(&b->always);
}
