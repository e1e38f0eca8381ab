/*
 * Records of what passed. In: struct flow_report, or bytes of a packet, which the reader believes
 * no further than it can check. Out: bytes, or struct flow_report. Pure; written by front, read by
 * the supervisor. A record is struct flow_report without what its host does not need.
 */
#include "rules/flow_report.h"

#include <stddef.h>
#include <string.h>

#define FIXED offsetof(struct flow_report, host)

size_t flow_report_put(uint8_t *bytes, size_t n, size_t cap, const struct flow_report *t)
{
	size_t len = FIXED + t->host_len;

	if (t->host_len >= sizeof(t->host) || len > cap - n)
		return n;
	memcpy(bytes + n, t, len);
	return n + len;
}

size_t flow_report_length(const uint8_t *bytes, size_t n)
{
	uint16_t host_len;

	if (n < FIXED)
		return 0;
	memcpy(&host_len, bytes + offsetof(struct flow_report, host_len), sizeof(host_len));
	return host_len < FLOW_REPORT_TEXT && FIXED + host_len <= n ? FIXED + host_len : 0;
}

size_t flow_report_get(const uint8_t *bytes, size_t n, struct flow_report *ret)
{
	size_t len = flow_report_length(bytes, n);
	uint8_t inward;

	if (!len)
		return 0;
	memset(ret, 0, sizeof(*ret));
	inward = bytes[offsetof(struct flow_report, inward)];
	if (inward > 1)
		return 0;
	memcpy(ret, bytes, len);
	if (ret->kind < FLOW_REPORT_NAME || ret->kind >= FLOW_REPORT_KINDS ||
	    ret->how > WANT_SOCKS || ret->mode >= RULE_MODES ||
	    (ret->family != 0 && ret->family != 4 && ret->family != 6) ||
	    (ret->kind != FLOW_REPORT_HTTP && ret->host_len >= HOST_TEXT))
		return 0;
	for (size_t i = 0; i < ret->host_len; i++)
		if (ret->host[i] < (ret->kind == FLOW_REPORT_WAF || ret->kind == FLOW_REPORT_HTTP ||
						    ret->kind == FLOW_REPORT_SECRET
					    ? 0x20
					    : 0x21) ||
		    ret->host[i] > 0x7e)
			return 0;
	return len;
}
