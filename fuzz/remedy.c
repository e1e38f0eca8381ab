/*
 * Fuzzes remedies: a letter for the reason, a line with what was asked, a line more. What comes out
 * as a line of the policy is one; its last rule names one method and one path (or one repository),
 * and matches no neighbour of what was refused.
 */
#include <assert.h>
#include <string.h>

#include "policy/policy_rule.h"
#include "rules/http_path.h"
#include "rules/remedy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What the rule says, by the letter of the reason; each ends in the NUL of its literal. A rule has
 * one of graphql, json_rpc and git. */
#define COMMON "hx-team:red\0"
static const struct {
	const char *text;
	size_t n;
} conditions[] = {
	{ COMMON "mGET\0p/open/*", sizeof(COMMON "mGET\0p/open/*") },
	{ COMMON "p/open/*", sizeof(COMMON "p/open/*") },
	{ COMMON "mGET", sizeof(COMMON "mGET") },
	{ COMMON "gquery:viewer", sizeof(COMMON "gquery:viewer") },
	{ COMMON "jinitialize", sizeof(COMMON "jinitialize") },
	{ COMMON "vfetch\0r/team/*", sizeof(COMMON "vfetch\0r/team/*") },
};

/* The only condition of this kind, which fits `text` and not what differs from it by a letter. */
static void check_one(const struct policy_rule *rule, char kind, const char *text, size_t n)
{
	const char *only = NULL;
	char longer[HTTP_PATH_MAX + 1];

	for (size_t at = 0; at < rule->http_len; at += strlen(rule->http + at) + 1)
		if (rule->http[at] == kind) {
			assert(!only);
			only = rule->http + at + 1;
		}
	assert(only && http_glob(only, strlen(only), text, n));
	memcpy(longer, text, n);
	longer[n] = 'x';
	assert(!http_glob(only, strlen(only), longer, n + 1));
	longer[n - 1] = longer[n - 1] == 'x' ? 'y' : 'x';
	assert(!http_glob(only, strlen(only), longer, n));
}

static void check_line(const char *line, const char *request, enum verdict_reason reason)
{
	static struct http_path normal;
	static struct policy_rule rule;
	struct policy p = { 0 };
	struct ward_err e = { 0 };
	size_t method = strcspn(request, " "), path = strcspn(request + method + 1, " ");

	assert(policy_defaults(&p, &e) == 0);
	assert(policy_set(&p, "network.egress_allowlist", line, false, POLICY_CLI, &e) == 0 &&
	       p.net_egress.len == 1);
	assert(policy_rule_read(p.net_egress.items[0], &rule, &e) == 0);
	assert(strcmp(rule.host, "a.example") == 0 && rule.n_ports == 1 && rule.ports[0] == 443 &&
	       rule.private && rule.send == 7);
	check_one(&rule, POLICY_HTTP_HEADER, "x-team:red", 10);
	if (reason != REASON_GIT) {
		assert(http_path_read(request + method + 1, path, &normal) && !normal.two);
		check_one(&rule, POLICY_HTTP_PATH, normal.text, normal.len);
	}
	policy_clear(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char kinds[] = "mpwgjv";
	static const uint8_t reasons[] = { REASON_METHOD,  REASON_PATH, REASON_WEBSOCKET,
					   REASON_GRAPHQL, REASON_RPC,  REASON_GIT };
	char text[64] = "a.example", request[384] = "", more[208] = "";
	uint16_t port = 443;
	struct rule rule = { .kind = RULE_NAME,
			     .moded = true,
			     .mode = RULE_INSPECT,
			     .len = 9,
			     .n_ports = 1,
			     .http = 10,
			     .private = true,
			     .limits = { RULE_NONE, RULE_NONE, RULE_NONE, 7, RULE_NONE, RULE_NONE,
					 RULE_NONE } };
	struct rules rules = { .network = RULES_RESTRICTED,
			       .n_items = 1,
			       .n_ports = 1,
			       .n_text = sizeof(text),
			       .items = &rule,
			       .ports = &port,
			       .text = text };
	struct want w = { .how = WANT_TRANSPARENT,
			  .port = 443,
			  .host = { .kind = HOST_NAME, .len = 9, .name = "a.example" } };
	struct verdict v = { .rule = 0, .port = 443 };
	static const char head[] = "network.egress_allowlist: ";
	const char *kind = n ? strchr(kinds, data[0]) : NULL, *line;
	auto_buf out = { 0 };

	if (n < 2 || !kind || !*kind)
		return 0;
	rule.http_len = (uint16_t)conditions[kind - kinds].n;
	memcpy(text + 10, conditions[kind - kinds].text, rule.http_len);
	data += 2, n -= 2;
	line = memchr(data, '\n', n);
	snprintf(request, sizeof(request), "%.*s",
		 (int)(line ? (size_t)(line - (const char *)data) : n), (const char *)data);
	if (line)
		snprintf(more, sizeof(more), "%.*s",
			 (int)(n - (size_t)(line + 1 - (const char *)data)), line + 1);
	v.reason = reasons[kind - kinds];
	remedy_write(&rules, &w, &v, request, more, &out);
	if (strncmp(buf_text(&out), head, sizeof(head) - 1) == 0)
		check_line(buf_text(&out) + sizeof(head) - 1, request,
			   (enum verdict_reason)v.reason);
	return 0;
}
