/*
 * Fuzzes how questions are shown: hosts, requests and paths as a program inside may name them. What
 * is shown is ended, holds nothing that acts on a terminal, and is a question that the reader of
 * the control socket takes; the rule of an answer is for that host alone.
 */
#include <assert.h>
#include <string.h>

#include "approve/show.h"
#include "control/control.h"
#include "observe/file_ask.h"
#include "policy/policy_rule.h"
#include "protocol/gateway.h"
#include "protocol/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct rules *make_rules(void)
{
	struct policy p = { 0 };
	struct rules *r = NULL;
	struct ward_err e = { 0 };

	assert(policy_defaults(&p, &e) == 0);
	assert(policy_set(&p, "network.mode", "restricted", false, POLICY_CLI, &e) == 0);
	assert(policy_set(&p, "approvals.mode", "ask", false, POLICY_CLI, &e) == 0);
	assert(policy_set(&p, "network.egress_allowlist",
			  "[internal.corp, {host: '*', ask: true}, {host: 10.0.0.0/8, private: "
			  "true, ask: true}, {host: api.corp, methods: [POST], paths: ['/v1/*'], "
			  "ask: true}, {host: api.corp, paths: [/mcp], json_rpc: ['tools/call:*'], "
			  "ask: true}, {host: api.corp, git: [push], ask: true}]",
			  false, POLICY_CLI, &e) == 0);
	assert(rules_compile(&p, 1, &r, &e) == 0);
	policy_clear(&p);
	return r;
}

static void check_shown(const struct question *q)
{
	struct {
		struct control_message m;
		struct question q;
	} packet = { .m = { .magic = CONTROL_MAGIC, .op = CONTROL_QUESTIONS, .a = 1 }, .q = *q };
	char bytes[sizeof(packet.m) + sizeof(*q)];

	memcpy(bytes, &packet.m, sizeof(packet.m));
	memcpy(bytes + sizeof(packet.m), q, sizeof(*q));
	assert(control_check_answer(bytes, sizeof(bytes)) == 0);
}

/* The rule of an answer is for that host and port alone, and does not ask. */
static void check_line(const struct question *q)
{
	struct policy_rule rule;
	struct ward_err e = { 0 };
	bool port_said;

	assert(policy_rule_parse(q->line, &rule, &port_said, &e) == 0);
	assert(strcmp(rule.host, q->host) == 0 && rule.n_ports == 1 && rule.ports[0] == q->port &&
	       !rule.ask);
}

/* The same text as what a request is, asks for and says, in each of its places. */
static void check_request(const struct rules *rules, const char *text)
{
	struct gate_request said = { .kind = GATE_REQUEST_ASK, .like = { 1 } };
	struct want w = { .port = 443 };
	struct verdict v;
	struct question q;

	assert(host_read("api.corp", 8, &w.host) == HOST_FINE);
	decide_name(rules, &w, &v);
	snprintf(said.what, sizeof(said.what), "%s", text);
	snprintf(said.more, sizeof(said.more), "%s", text);
	snprintf(said.query, sizeof(said.query), "%s", text);
	snprintf(said.body, sizeof(said.body), "%s", text);
	for (int32_t i = v.rule; i >= 0; i = rules_sibling(rules, i, 443)) {
		v.rule = i;
		show_request(rules, &w, &v, &said, &q);
		check_shown(&q);
		if (*q.line)
			check_line(&q);
	}
}

/* And as what a secret is for, and as a file of the host's. */
static void check_others(const struct rules *rules, const char *text)
{
	struct keys_asked said = { .serial = 1, .port = 443 };
	struct want w = { .port = 443 };
	struct question q;
	static struct file_asked file;

	assert(host_read("api.corp", 8, &w.host) == HOST_FINE);
	snprintf(said.grants, sizeof(said.grants), "%s", text);
	snprintf(said.what, sizeof(said.what), "%s", text);
	snprintf(said.query, sizeof(said.query), "%s", text);
	show_credential(rules, &w, &said, &q);
	check_shown(&q);
	assert(!*q.line);
	snprintf(file.path, sizeof(file.path), "/%s", text);
	snprintf(file.exe, sizeof(file.exe), "/%s", text);
	show_file(&file, "/home/a", &q);
	check_shown(&q);
	assert(!*q.line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct rules *rules;
	char text[512], shown[128];
	struct want w = { .port = 443 };
	struct verdict v;
	struct question q;

	if (!rules)
		rules = make_rules();
	n = n < sizeof(text) ? n : sizeof(text) - 1;
	memcpy(text, data, n);
	text[n] = '\0';
	show_text(shown, sizeof(shown), text);
	assert(strlen(shown) < sizeof(shown));
	for (const char *c = shown; *c; c++)
		assert((unsigned char)*c >= ' ' && *c != 0x7f);
	check_request(rules, text);
	check_others(rules, text);
	if (host_read(text, strlen(text), &w.host) != HOST_FINE)
		return 0;
	decide_name(rules, &w, &v);
	show_connection(rules, &w, &v, &q);
	check_shown(&q);
	if (v.ask)
		check_line(&q);
	return 0;
}
