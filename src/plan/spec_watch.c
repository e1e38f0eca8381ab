/*
 * What watch rules mean for the rest of a spec. In: the policy with all layers and options. Out:
 * the same with the audit.level that has the events which the rules count, and a note where that is
 * more than was asked for: a rule that never sees what it counts would be no rule. Pure.
 */
#include "plan/spec_watch.h"

#include "policy/policy_watch.h"

int spec_watch(struct spec *s, struct ward_err *e)
{
	struct policy *p = &s->policy;
	char rule[WATCH_NAME_TEXT];
	unsigned level;
	int r;

	if (!p->watch_rules.len && !p->watch_labels.len)
		return 0;
	r = policy_watch_check(p, e);
	if (r < 0)
		return r;
	level = policy_watch_level(p, rule);
	if (level >= p->audit_level)
		return 0;
	p->audit_level = level;
	strv_addf(&s->notes, "audit.level is %s, which the watch rule %s needs",
		  policy_enum_name(POLICY_F_audit_level, level), rule);
	return 0;
}
