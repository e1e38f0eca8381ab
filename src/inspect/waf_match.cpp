/*
 * The one thing that libmodsecurity tells to C++ only: what a rule that matched is called. Its log lines cite the request, which could
 * write anything there; this has the number, the severity and the message apart. Runs in ward-waf.
 */
#include <modsecurity/modsecurity.h>
#include <modsecurity/rule_message.h>
#include <modsecurity/rule_with_actions.h>

#include "inspect/waf_match.h"

/* The number of the rule: up to 3.0.12 in the message itself, later in the rule that it refers to. */
template <typename Message>
static auto rule_number(const Message &m, int) -> decltype(m.m_ruleId)
{
	return m.m_ruleId;
}

template <typename Message>
static auto rule_number(const Message &m, long) -> decltype(m.m_rule.m_ruleId)
{
	return m.m_rule.m_ruleId;
}

static void on_match(void *about, const void *message)
{
	const auto *m = static_cast<const modsecurity::RuleMessage *>(message);

	waf_matched(about, rule_number(*m, 0), m->m_severity, m->m_message.c_str(), m->m_message.size());
}

void waf_listen(modsecurity::ModSecurity *engine)
{
	engine->setServerLogCb(on_match, modsecurity::RuleMessageLogProperty);
}
