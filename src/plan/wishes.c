/*
 * A profile's wishes. In: a spec whose policy is complete. Out: the same without what only a
 * profile asked for and cannot be had. A profile serves many policies: it publishes a port for a
 * login, and `ward agent` puts grants and a spend limit beside it. Where the policy turns the
 * network off, or the engine cannot publish ports, that is no mistake of the user's, so the wish
 * goes, with a note, instead of the run. Dropping only ever narrows. What a policy file or an
 * option says itself is never dropped: there the contradiction is an error.
 */
#include "plan/wishes.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/policy_rule.h"

static bool only_profile(const struct policy *p, enum policy_field field)
{
	return p->origin[field].source == POLICY_PROFILE;
}

bool wishes_drop_ingress(struct spec *s, const char *why)
{
	struct policy *p = &s->policy;

	if (!p->net_ingress.len || !only_profile(p, POLICY_F_net_ingress))
		return false;
	for (size_t i = 0; i < p->net_ingress.len; i++)
		strv_addf(&s->notes, "%s: port %s of the profile is not published", why,
			  p->net_ingress.items[i]);
	strv_free(&p->net_ingress);
	return true;
}

int wishes_note_metered(struct spec *s, struct ward_err *e)
{
	const struct strv *rules = &s->policy.net_egress;

	if (!only_profile(&s->policy, POLICY_F_net_spend))
		return 0;
	for (size_t i = 0; i < rules->len; i++) {
		struct policy_rule rule;
		int r = policy_rule_read(rules->items[i], &rule, e);

		if (r < 0)
			return r;
		if (rule.llm)
			strv_add(&s->metered, rule.host);
	}
	return s->metered.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Whether a rule for these hosts lets requests to a metered one pass. */
static const char *meets_metered(const struct spec *s, const char *host)
{
	for (size_t i = 0; i < s->metered.len; i++) {
		const char *metered = s->metered.items[i];
		size_t n = strlen(metered), suffix = *host == '*' ? strlen(host + 1) : 0;

		if (strcmp(host, metered) == 0 || strcmp(host, "*") == 0 ||
		    (suffix && suffix < n && strcmp(metered + n - suffix, host + 1) == 0))
			return metered;
	}
	return NULL;
}

static int fail_uncounted(const char *host, struct ward_err *e)
{
	ward_fail(
		e, EINVAL,
		"network.spend_limit: the policy allows %s in a way that requests are not counted",
		host);
	return ward_remedy(
		e,
		"name it in network.egress_allowlist alone: {host: %s, llm: true}; or run "
		"without the limit: --default network.spend_limit=none",
		host);
}

/* The rules as they are, but for plain ones of metered hosts, which count. *ret_any: one counts.
 * A metered host must not be reached by a rule that does not count. */
static int count_rules(const struct spec *s, struct buf *out, bool *ret_any, struct ward_err *e)
{
	const struct strv *rules = &s->policy.net_egress;

	for (size_t i = 0; i < rules->len; i++) {
		struct policy_rule rule;
		auto_buf plain = { 0 };
		const char *metered;
		int r = policy_rule_read(rules->items[i], &rule, e);

		if (r < 0)
			return r;
		buf_puts(out, i ? ", " : "[");
		buf_printf(&plain, "{\"host\":\"%s\",\"ports\":[443]}", rule.host);
		metered = rule.llm ? NULL : meets_metered(s, rule.host);
		if (metered && strcmp(metered, rule.host) == 0 &&
		    strcmp(buf_text(&plain), rules->items[i]) == 0) {
			buf_printf(out, "{\"host\": \"%s\", \"llm\": true}", rule.host);
			rule.llm = true;
		} else if (metered) {
			return fail_uncounted(metered, e);
		} else {
			buf_puts(out, rules->items[i]);
		}
		*ret_any |= rule.llm;
	}
	buf_puts(out, rules->len ? "]" : "[]");
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* A spend limit beside the profile holds whichever list names the host: a file's, or options'.
 * Where none does, nothing costs money. */
static int settle_limit(struct spec *s, struct ward_err *e)
{
	struct policy *p = &s->policy;
	enum policy_source source = p->origin[POLICY_F_net_egress].source;
	auto_buf rules = { 0 };
	bool any = false;
	int r;

	if (p->net_spend == POLICY_NONE || !only_profile(p, POLICY_F_net_spend) || !s->metered.len)
		return 0;
	if (p->net_mode == NET_MODE_OPEN)
		return fail_uncounted(s->metered.items[0], e);
	r = count_rules(s, &rules, &any, e);
	if (r < 0)
		return r;
	if (any)
		return policy_set(p, "network.egress_allowlist", buf_text(&rules), false, source,
				  e);
	strv_add(&s->notes, "no host is allowed whose requests cost money: the spend limit counts "
			    "nothing");
	p->net_spend = POLICY_NONE;
	return 0;
}

int wishes_settle(struct spec *s, struct ward_err *e)
{
	struct policy *p = &s->policy;
	bool off = p->net_mode == NET_MODE_NONE;

	if (off)
		wishes_drop_ingress(s, "network.mode is none");
	else if (p->net_replay)
		wishes_drop_ingress(s, "network.replay is set");
	if (off && p->cred_grants.len && only_profile(p, POLICY_F_cred_grants)) {
		strv_add(&s->notes, "network.mode is none: no key is put into requests");
		strv_free(&p->cred_grants);
	}
	if (off && only_profile(p, POLICY_F_net_spend))
		p->net_spend = POLICY_NONE;
	if (settle_limit(s, e) < 0)
		return -e->code;
	return s->notes.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int wishes_note_overridden(struct spec *s, const char *file, const struct policy *profile,
			   uint64_t memory, struct ward_err *e)
{
	auto_buf fields = { 0 }, note = { 0 };
	const char *off = "";

	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		enum policy_field f = (enum policy_field)i;

		if (profile->origin[i].source != POLICY_PROFILE ||
		    s->policy.origin[i].source != POLICY_FILE ||
		    !policy_field_widens(&s->policy, profile, f, memory))
			continue;
		buf_printf(&fields, "%s%s", fields.len ? ", " : "", policy_row(f)->path);
		if (f == POLICY_F_net_mode && s->policy.net_mode == NET_MODE_NONE)
			off = ", so it has no network";
	}
	if (!fields.len)
		return 0;
	text_escape(&note, file);
	buf_printf(&note,
		   " gives less than the profile %s asks for (%s)%s; remove those lines from the "
		   "file, or run with -p FILE",
		   s->profile, buf_text(&fields), off);
	strv_add(&s->said, buf_text(&note));
	return s->said.failed || note.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}
