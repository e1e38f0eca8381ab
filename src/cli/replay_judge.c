/*
 * Judging the past by another policy. In: an event of a journal, the new policy as it would be
 * enforced: its compiled rules, its plan's view of files, its limits. Out: whether what was done
 * would be refused, or what was refused be allowed. Decisions are made by the functions that
 * enforce them: decide_name() and decide_address() of the gateway, http_decide(),
 * grant_is_for_host(), path_view_find(), the comparison of limits; nothing is decided here a second
 * way. What the record does not hold (headers, bodies, names behind links) is reported as unsure.
 * Events may have been written by any process with the user's rights: every text is bounded and
 * escaped. Pure, fuzzed (fuzz/replay.c).
 */
#include "cli/replay_judge.h"

#include <inttypes.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "event/table_names.h"
#include "observe/explain.h"
#include "policy/policy_grant.h"
#include "rules/http_rule.h"

static char *text_of(const struct ward_event *v, enum event_field f)
{
	const struct event_value *value = event_get(v, f);

	return value && value->text ? strndup(value->text, value->len) : NULL;
}

static bool is_text(const struct ward_event *v, enum event_field f, const char *word)
{
	const struct event_value *value = event_get(v, f);

	return value && value->text && strlen(word) == value->len &&
	       memcmp(word, value->text, value->len) == 0;
}

static uint64_t number_of(const struct ward_event *v, enum event_field f, uint64_t otherwise)
{
	const struct event_value *value = event_get(v, f);

	return value ? value->number : otherwise;
}

/* -- ways out */

static enum verdict_reason reason_of(const struct ward_event *v)
{
	for (unsigned i = 0; i < VERDICT_REASONS; i++)
		if (is_text(v, FIELD_REASON, verdict_reason_name((enum verdict_reason)i)))
			return (enum verdict_reason)i;
	return REASON_ALLOWED;
}

/* An address of the kind that was refused: which one it was is not on record. */
static bool address_of(enum verdict_reason reason, struct ip *ret)
{
	static const struct {
		uint8_t reason, bytes[4];
	} rows[] = {
		{ REASON_PRIVATE, { 10, 0, 0, 1 } },    { REASON_METADATA, { 169, 254, 169, 254 } },
		{ REASON_LOOPBACK, { 127, 0, 0, 1 } },  { REASON_OWN_ADDRESS, { 127, 0, 0, 1 } },
		{ REASON_MULTICAST, { 224, 0, 0, 1 } }, { REASON_RESERVED, { 240, 0, 0, 1 } },
		{ REASON_TRANSLATED, { 240, 0, 0, 1 } }
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].reason == reason) {
			*ret = ip_from_4(rows[i].bytes);
			return true;
		}
	return false;
}

/* Both phases of the gateway's decision. */
static bool decide(const struct replay *r, const struct ward_event *v, struct verdict *ret)
{
	const struct event_value *host = event_get(v, FIELD_HOST),
				 *address = event_get(v, FIELD_ADDRESS);
	const struct address_own nobody = { 0 };
	struct host name, literal;
	struct verdict named;
	struct want w;
	struct ip ip;

	if (!host || !host->text || host_read(host->text, host->len, &name) != HOST_FINE)
		return false;
	want_host(&w, v->kind == EVENT_DNS ? WANT_DNS : WANT_TRANSPARENT, &name,
		  (uint16_t)number_of(v, FIELD_PORT, 0));
	decide_name(r->rules, &w, ret);
	if (!ret->allow || v->kind == EVENT_DNS)
		return true;
	named = *ret;
	if (address && address->text &&
	    host_read(address->text, address->len, &literal) == HOST_FINE &&
	    literal.kind == HOST_ADDRESS)
		decide_address(&named, &literal.ip, &nobody, ret);
	else if (name.kind == HOST_ADDRESS && named.reach != REACH_SERVICE)
		decide_address(&named, &name.ip, &nobody, ret);
	else if (v->action == ACTION_DENY && name.kind == HOST_NAME && named.reach == REACH_NAME &&
		 address_of(reason_of(v), &ip))
		decide_address(&named, &ip, &nobody, ret);
	return true;
}

/* What a connection was let through as, and what it would be: another mode looks at other
 * things. */
static bool is_mode_narrower(const struct ward_event *v, const struct verdict *now)
{
	static const char names[][8] = {
		[RULE_SPLICE] = "tls", [RULE_HTTP] = "http", [RULE_TCP] = "tcp"
	};

	return event_get(v, FIELD_MODE) && now->mode != RULE_TCP &&
	       (now->mode >= ARRAY_LEN(names) || !is_text(v, FIELD_MODE, names[now->mode])) &&
	       !(now->mode == RULE_INSPECT &&
		 (is_text(v, FIELD_MODE, "tls") || is_text(v, FIELD_MODE, "inspect"))) &&
	       !(now->mode == RULE_PLAIN &&
		 (is_text(v, FIELD_MODE, "http") || is_text(v, FIELD_MODE, "inspect")));
}

static bool is_published(const struct replay *r, const struct ward_event *v)
{
	char port[8];

	snprintf(port, sizeof(port), "%u", (unsigned)(number_of(v, FIELD_PORT, 0) & 0xffff));
	for (size_t i = 0; i < r->policy->net_ingress.len; i++) {
		const char *entry = r->policy->net_ingress.items[i], *colon = strchr(entry, ':');

		if (strcmp(colon ? colon + 1 : entry, port) == 0)
			return true;
	}
	return false;
}

/* The path of "https://host:port/path". */
static struct http_text path_of(const char *url)
{
	const char *at = strstr(url, "://"), *path = strchr(at ? at + 3 : url, '/');

	return path ? (struct http_text){ path, strcspn(path, "?") } : (struct http_text){ "/", 1 };
}

/* A request under a rule that looks into it: method and path are on record, the rest is not. */
static enum verdict_reason ask_http(const struct replay *r, const struct ward_event *v,
				    const struct verdict *now, bool *ret_sure)
{
	auto_free char *method = text_of(v, FIELD_METHOD), *url = text_of(v, FIELD_URL);
	auto_free struct http_request *request = calloc(1, sizeof(*request));
	auto_free struct http_path *room = calloc(1, sizeof(*room));
	struct http_verdict verdict;

	*ret_sure = false;
	if (!method || !url || !request || !room ||
	    (now->mode != RULE_INSPECT && now->mode != RULE_PLAIN) || now->rule < 0)
		return REASON_ALLOWED;
	request->method = (struct http_text){ method, strlen(method) };
	request->path = path_of(url);
	http_decide(r->rules, now->rule, now->port, request, room, &verdict);
	/* of a long path only its beginning is there: that one fits tells enough, that none does
	 * does not */
	*ret_sure = verdict.reason == REASON_ALLOWED || verdict.reason == REASON_METHOD ||
		    verdict.reason == REASON_DENIED ||
		    ((verdict.reason == REASON_PATH || verdict.reason == REASON_PATH_BAD) &&
		     !event_get(v, FIELD_CUT));
	return (enum verdict_reason)verdict.reason;
}

static enum replay_verdict judge_done_way(const struct replay *r, const struct ward_event *v,
					  struct buf *why)
{
	struct verdict now;
	enum verdict_reason reason;
	bool sure;

	if (is_text(v, FIELD_HOW, "published")) {
		if (is_published(r, v))
			return REPLAY_SAME;
		buf_puts(why, "network.ingress does not list the port");
		return REPLAY_LOST;
	}
	if (!decide(r, v, &now)) {
		buf_puts(why, "the record does not contain the host");
		return REPLAY_UNSURE;
	}
	if (!now.allow) {
		buf_puts(why, verdict_reason_text((enum verdict_reason)now.reason));
		return REPLAY_LOST;
	}
	if (v->kind == EVENT_CONNECT && is_mode_narrower(v, &now)) {
		buf_puts(why, "the rule would inspect it, or allow only TLS or HTTP");
		return REPLAY_UNSURE;
	}
	if (v->kind != EVENT_HTTP)
		return REPLAY_SAME;
	reason = ask_http(r, v, &now, &sure);
	if (reason == REASON_ALLOWED)
		return REPLAY_SAME;
	buf_puts(why, verdict_reason_text(reason));
	return sure ? REPLAY_LOST : REPLAY_UNSURE;
}

/* Reasons that no policy had to do with: they would be the same. */
static bool is_by_policy(enum verdict_reason reason)
{
	return reason == REASON_NO_NETWORK || reason == REASON_NOT_LISTED ||
	       reason == REASON_PORT || reason == REASON_DENIED || reason == REASON_LITERAL ||
	       reason == REASON_LOOPBACK || reason == REASON_OWN_ADDRESS ||
	       reason == REASON_PRIVATE || reason == REASON_METADATA || reason == REASON_METHOD ||
	       reason == REASON_PATH;
}

static enum replay_verdict judge_refused_way(const struct replay *r, const struct ward_event *v,
					     struct buf *why)
{
	enum verdict_reason reason = reason_of(v);
	struct verdict now;
	bool sure = true;

	if (v->kind == EVENT_PACKET || !is_by_policy(reason) || !decide(r, v, &now) || !now.allow)
		return REPLAY_SAME;
	if (reason == REASON_METHOD || reason == REASON_PATH) {
		if (!event_get(v, FIELD_METHOD) || ask_http(r, v, &now, &sure) != REASON_ALLOWED)
			return REPLAY_SAME;
	}
	buf_puts(why, "it was refused: ");
	buf_puts(why, verdict_reason_text(reason));
	return REPLAY_GAINED;
}

/* -- files and programs */

/* The object's path, absolute; NULL: it is none. The caller frees. */
static char *path_of_object(const struct replay *r, const struct ward_event *v, enum event_field f)
{
	auto_free char *object = text_of(v, f), *cwd = text_of(v, FIELD_CWD);
	const char *base = cwd && *cwd == '/' ? cwd : r->workspace;

	if (!object || !*object || strlen(object) > 4096)
		return NULL;
	if (*object == '/')
		return path_clean(object);
	return base && *base == '/' ? path_join(base, object) : NULL;
}

static enum replay_verdict judge_write(const struct replay *r, const struct ward_event *v,
				       enum event_field f, struct buf *why)
{
	auto_free char *path = path_of_object(r, v, f);
	enum path_view_access access;

	if (!path)
		return REPLAY_SAME;
	access = path_view_find(r->view, path, NULL);
	if (access >= PATH_VIEW_PRIVATE)
		return REPLAY_SAME;
	buf_puts(why, path_view_access_text(access));
	return REPLAY_LOST;
}

static enum replay_verdict judge_change(const struct replay *r, const struct ward_event *v,
					struct buf *why)
{
	enum replay_verdict verdict = r->view ? judge_write(r, v, FIELD_OBJECT, why) : REPLAY_SAME;

	return verdict == REPLAY_SAME && r->view && event_get(v, FIELD_TO)
		       ? judge_write(r, v, FIELD_TO, why)
		       : verdict;
}

static enum replay_verdict judge_program(const struct replay *r, const struct ward_event *v,
					 struct buf *why)
{
	auto_free char *path = r->view ? path_of_object(r, v, FIELD_OBJECT) : NULL;
	enum path_view_access access;
	bool noexec;

	if (!path || !event_get(v, FIELD_OBSERVED))
		return REPLAY_SAME;
	access = path_view_find(r->view, path, &noexec);
	if (access >= PATH_VIEW_READ && access != PATH_VIEW_PRIVATE && !noexec)
		return REPLAY_SAME;
	buf_puts(why, noexec && access >= PATH_VIEW_READ ? "programs there cannot be executed"
							 : path_view_access_text(access));
	return access == PATH_VIEW_PRIVATE && !noexec ? REPLAY_UNSURE : REPLAY_LOST;
}

/* A file that was missing, protected or taken away: whether the view has it now. */
static enum replay_verdict judge_refused_file(const struct replay *r, const struct ward_event *v,
					      enum path_view_access least, struct buf *why)
{
	auto_free char *path = r->view ? path_of_object(r, v, FIELD_OBJECT) : NULL;
	enum path_view_access access =
		path ? path_view_find(r->view, path, NULL) : PATH_VIEW_ABSENT;

	if (!path || access < least || access == PATH_VIEW_PRIVATE)
		return REPLAY_SAME;
	buf_puts(why, least == PATH_VIEW_READ ? "it would exist" : "it may be written, and stays");
	return REPLAY_GAINED;
}

/* -- limits, secrets, everything else that a line of the policy allows */

static enum replay_verdict judge_refused_limit(const struct replay *r, const struct ward_event *v,
					       struct buf *why)
{
	const struct event_value *value = event_get(v, FIELD_VALUE);

	for (enum limit l = 0; r->limits && value && l < LIMITS; l++)
		if (is_text(v, FIELD_OBJECT, limit_name(l)) && r->limits[l] > value->number) {
			buf_puts(why, "the limit is higher");
			return REPLAY_GAINED;
		}
	return REPLAY_SAME;
}

static bool is_over(const struct ward_event *v, enum event_field f, uint64_t limit,
		    const char *what, struct buf *why)
{
	uint64_t used = number_of(v, f, 0);

	if (limit == POLICY_NONE || used <= limit)
		return false;
	buf_printf(why, "%s%s: %" PRIu64 " used, %" PRIu64 " allowed", why->len ? "; " : "", what,
		   used, limit);
	return true;
}

/* What a run used in all. */
static enum replay_verdict judge_end(const struct replay *r, const struct ward_event *v,
				     struct buf *why)
{
	bool over = false;

	if (v->action == ACTION_DENY) /* a limit ended it: nothing that it had is lost */
		return REPLAY_SAME;
	if (r->limits) {
		over |= is_over(v, FIELD_MEMORY_PEAK, r->limits[LIMIT_MEMORY], "bytes of memory",
				why);
		over |= is_over(v, FIELD_DURATION_MS, r->limits[LIMIT_TIMEOUT], "milliseconds",
				why);
	}
	over |= is_over(v, FIELD_BYTES_IN, r->policy->net_receive, "bytes received", why);
	over |= is_over(v, FIELD_BYTES_OUT, r->policy->net_send, "bytes sent", why);
	return over ? REPLAY_LOST : REPLAY_SAME;
}

static enum replay_verdict judge_grant(const struct replay *r, const struct ward_event *v,
				       struct buf *why)
{
	auto_free char *name = text_of(v, FIELD_GRANT), *host = text_of(v, FIELD_HOST);
	bool known = false;

	for (size_t i = 0; name && host && r->policy->cred_mode != CRED_MODE_NONE &&
			   i < r->policy->cred_grants.len;
	     i++) {
		struct ward_err ignored = { 0 };
		auto_grant g = { 0 };

		if (policy_grant_read(r->policy->cred_grants.items[i], &g, &ignored) < 0 ||
		    strcmp(g.name, name) != 0)
			continue;
		known = true;
		if (grant_is_for_host(&g, host))
			return REPLAY_SAME;
	}
	buf_puts(why, known ? "the grant is not for this host" : "there is no such grant");
	return REPLAY_LOST;
}

/* The change that would have allowed it adds nothing to the new policy: it is there. */
static bool has_change(const struct policy *p, const struct explain_change *c)
{
	struct ward_err ignored = { 0 };
	struct policy with = { 0 };
	bool has = false;

	if (policy_copy(&with, p, &ignored) < 0)
		return false;
	for (unsigned i = 0; i < POLICY_FIELDS && !has; i++) {
		const struct policy_row *row = policy_row((enum policy_field)i);
		size_t n = strlen(row->type);
		bool list = n && (row->type[n - 1] == 'S' || strcmp(row->type, "INGRESS") == 0) &&
			    strcmp(row->type, "CPUS") != 0 && strcmp(row->type, "SECONDS") != 0;

		if (strcmp(row->path, c->field) == 0)
			has = policy_set(&with, c->field, c->value, list, POLICY_FILE, &ignored) ==
				      0 &&
			      !policy_field_widens(p, &with, (enum policy_field)i, 0);
	}
	policy_clear(&with);
	return has;
}

static enum replay_verdict judge_by_change(const struct replay *r, const struct ward_event *v,
					   struct buf *why)
{
	const struct explain_run about = { .workspace = r->workspace };
	auto_explanation x = { 0 };
	bool has;

	explain_event(v, &about, &x);
	has = x.change_count > 0;
	for (size_t i = 0; i < x.change_count; i++)
		has &= has_change(r->policy, &x.changes[i]);
	if (!has)
		return REPLAY_SAME;
	buf_printf(why, "the policy has %s", x.changes[0].field);
	return REPLAY_GAINED;
}

static enum replay_verdict judge_refused(const struct replay *r, const struct ward_event *v,
					 struct buf *why)
{
	enum replay_verdict verdict;

	if (!explain_is_denial(v))
		return REPLAY_SAME;
	if (v->kind == EVENT_DNS || v->kind == EVENT_CONNECT || v->kind == EVENT_HTTP ||
	    v->kind == EVENT_PACKET)
		return judge_refused_way(r, v, why);
	if (v->kind == EVENT_LIMIT)
		return judge_refused_limit(r, v, why);
	if (v->kind == EVENT_FILE_MISSING)
		return judge_refused_file(r, v, PATH_VIEW_READ, why);
	if (v->kind == EVENT_FILE_GUARD || v->kind == EVENT_FILE_QUARANTINE) {
		verdict = judge_refused_file(r, v, PATH_VIEW_WRITE, why);
		return verdict == REPLAY_GAINED ? verdict : judge_by_change(r, v, why);
	}
	return judge_by_change(r, v, why);
}

enum replay_verdict replay_judge(const struct replay *r, const struct ward_event *v,
				 struct buf *why)
{
	if (v->action == ACTION_DENY && v->kind != EVENT_RUN_END)
		return judge_refused(r, v, why);
	switch (v->kind) { /* of what was done, only this is decided by a policy */
	case EVENT_DNS:
	case EVENT_CONNECT:
	case EVENT_HTTP:
		return v->action == ACTION_ALLOW ? judge_done_way(r, v, why) : REPLAY_SAME;
	case EVENT_EXEC:
		return judge_program(r, v, why);
	case EVENT_FILE_CHANGE:
		return judge_change(r, v, why);
	case EVENT_CREDENTIAL_USE:
		return judge_grant(r, v, why);
	case EVENT_RUN_END:
		return judge_end(r, v, why);
	default:
		return REPLAY_SAME;
	}
}
