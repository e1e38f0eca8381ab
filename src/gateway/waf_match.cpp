/*
 * The one thing that libmodsecurity tells to C++ only: what a rule that matched is called. Its log lines cite the request, which could
 * write anything there; this has the number, the severity and the message apart. Runs in ward-waf.
 */
#include <modsecurity/modsecurity.h>
#include <modsecurity/rule_message.h>

#include "gateway/waf_match.h"

static void on_match(void *about, const void *message)
{
	const auto *m = static_cast<const modsecurity::RuleMessage *>(message);

	waf_matched(about, m->m_ruleId, m->m_severity, m->m_message.c_str(), m->m_message.size());
}

void waf_listen(modsecurity::ModSecurity *engine)
{
	engine->setServerLogCb(on_match, modsecurity::RuleMessageLogProperty);
}
