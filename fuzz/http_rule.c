/* Fuzzes rules asked about requests: a byte of length, conditions, a request. What is allowed has a
 * method and path that the rule has. */
#include <assert.h>
#include <string.h>

#include "rules/http_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct http_request request;
	static struct http_path room;
	struct http_head head;
	struct http_verdict v;
	enum http_wrong wrong;
	char text[300] = "a.example";
	uint16_t port = 443;
	struct rule rule = { .kind = RULE_NAME,
			     .moded = true,
			     .mode = RULE_INSPECT,
			     .len = 9,
			     .n_ports = 1,
			     .http = 10 };
	struct rules rules = { .network = RULES_RESTRICTED,
			       .n_items = 1,
			       .n_ports = 1,
			       .n_text = sizeof(text),
			       .items = &rule,
			       .ports = &port,
			       .text = text };
	size_t conditions, scanned = 0;

	if (n < 2 || data[0] > n - 1)
		return 0;
	conditions = data[0];
	memcpy(text + 10, data + 1, conditions);
	/* ends in NUL, as rules_decode() makes sure */
	rule.http_len = (uint16_t)(conditions ? conditions + 1 : 0);
	data += 1 + conditions;
	n -= 1 + conditions;
	if (http1_head(data, n, &scanned, &head, &wrong) <= 0 ||
	    !http_request_read(data, &head, &request))
		return 0;
	http_decide(&rules, 0, 443, &request, &room, &v);
	assert(v.rule == 0 && v.reason < VERDICT_REASONS);
	if (!conditions)
		assert(v.reason == (request.websocket ? REASON_WEBSOCKET : REASON_ALLOWED));
	if (v.reason == REASON_ALLOWED && memchr(text + 10, 'p', 1))
		assert(v.path.s == room.text);
	return 0;
}
