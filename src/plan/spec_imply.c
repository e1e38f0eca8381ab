/*
 * What options mean beyond their field. In: the policy with the options set. Out: the same with
 * what --secret, --ssh, --allow, --service, --ask and --budget imply. A secret or key for a host
 * that no rule allows would never be used, so its host is allowed; a host or service on the command
 * line needs a network; a budget that no rule counts towards would limit nothing, so the rules for
 * well-known language models (tables/models.def) begin to count, and a run in which none does is
 * refused where the rules are compiled. Runs in `ward` with the user's rights.
 */
#include "plan/spec_imply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_grant.h"
#include "policy/policy_rule.h"
#include "policy/policy_ssh.h"

/* -- --secret, --allow, --service */

static bool has_port(const struct policy_rule *rule, unsigned port)
{
	for (unsigned i = 0; i < rule->n_ports; i++)
		if (rule->ports[i] == port)
			return true;
	return false;
}

/* Whether some rule is for this host (a name or *.suffix) on the port. */
static int is_allowed(const struct policy *p, const char *host, unsigned port, struct ward_err *e)
{
	for (size_t i = 0; i < p->net_egress.len; i++) {
		struct policy_rule rule;
		int r = policy_rule_read(p->net_egress.items[i], &rule, e);

		if (r < 0)
			return r;
		if (has_port(&rule, port) && !rule.ask && grant_host_covers(rule.host, host))
			return 1;
	}
	return 0;
}

/* The hosts of one --ssh, on their ports. */
static int allow_ssh(struct policy *p, const char *text, struct ward_err *e)
{
	auto_policy_ssh s = { 0 };
	int r = policy_ssh_read(text, &s, e);

	for (size_t i = 0; r == 0 && i < s.hosts.len; i++) {
		struct ssh_host host;
		auto_buf rule = { 0 };

		if (!ssh_host_split(s.hosts.items[i], &host))
			return ward_fail(e, EINVAL, "not a host: %.200s", s.hosts.items[i]);
		r = is_allowed(p, host.host, host.port, e);
		if (r == 0) {
			buf_printf(&rule, strchr(host.host, ':') ? "[%s]:%u" : "%s:%u", host.host,
				   host.port);
			r = policy_set(p, "network.egress_allowlist", buf_text(&rule), true,
				       POLICY_CLI, e);
		} else if (r > 0) {
			r = 0;
		}
	}
	return r;
}

static int allow_hosts(struct policy *p, const char *grant_text, struct ward_err *e)
{
	auto_grant g = { 0 };
	int r = policy_grant_parse(grant_text, &g, NULL, e);

	for (size_t i = 0; r == 0 && i < g.hosts.len; i++) {
		r = is_allowed(p, g.hosts.items[i], 443, e);
		if (r == 0)
			r = policy_set(p, "network.egress_allowlist", g.hosts.items[i], true,
				       POLICY_CLI, e);
		else if (r > 0)
			r = 0;
	}
	return r;
}

/* --ask: what no rule names is asked about. Names only: an address is never matched by "*". */
static int ask_about_rest(const struct spec_request *r, struct policy *p, struct ward_err *e)
{
	for (size_t i = 0; i < r->option_count; i++)
		if (strcmp(r->options[i].option, "--ask") == 0)
			return policy_set(p, "network.egress_allowlist",
					  "{host: \"*\", ports: [443, 80, 22, 8080, 8443], "
					  "ask: true}",
					  true, POLICY_CLI, e);
	return 0;
}

int spec_imply_reach(const struct spec_request *r, struct policy *p, struct ward_err *e)
{
	bool named;

	for (size_t i = 0; i < r->option_count; i++)
		if (r->options[i].reach && (strcmp(r->options[i].field, "credentials.ssh") == 0
						    ? allow_ssh(p, r->options[i].value, e)
						    : allow_hosts(p, r->options[i].value, e)) < 0)
			return ward_wrap(e, "%s", r->options[i].option);
	if (ask_about_rest(r, p, e) < 0)
		return ward_wrap(e, "--ask");
	/* a host on the command line is a word for a network, too */
	named = (p->origin[POLICY_F_net_egress].source == POLICY_CLI && p->net_egress.len) ||
		(p->origin[POLICY_F_net_host_services].source == POLICY_CLI &&
		 p->net_host_services.len);
	/* so is a secret whose host a rule already names */
	for (size_t i = 0; i < r->option_count; i++)
		named |= r->options[i].reach;
	if (p->net_mode != NET_MODE_NONE || !named ||
	    p->origin[POLICY_F_net_mode].source == POLICY_CLI)
		return 0;
	return policy_set(p, "network.mode", "restricted", false, POLICY_CLI, e);
}

void spec_note_loopback(const struct spec_request *r, struct strv *said)
{
	static const char *const own[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < r->option_count; i++)
		for (size_t k = 0; k < ARRAY_LEN(own); k++) {
			const char *value = r->options[i].value;
			size_t n = strlen(own[k]);
			unsigned long port;

			if (strcmp(r->options[i].option, "--allow") != 0 ||
			    strncmp(value, own[k], n) != 0 || (value[n] && value[n] != ':'))
				continue;
			port = value[n] ? strtoul(value + n + 1, NULL, 10) : 443;
			strv_addf(
				said,
				"--allow %s reaches nothing: inside, that is the sandbox's own "
				"loopback; remedy: --service svc%lu=127.0.0.1:%lu, and connect to "
				"host svc%lu",
				own[k], port, port, port);
		}
}

/* -- --budget */

static const char llm_hosts[][36] = {
#define LLM_HOST(host) host,
#include "models.def"
};

static const struct {
	char name[24], input[8], output[8], cache_read[8], cache_write[8];
} models[] = {
#define MODEL(name, input, output, cache_read, cache_write)                                        \
	{ name, input, output, cache_read, cache_write },
#include "models.def"
};

static bool is_llm_host(const char *host)
{
	for (size_t i = 0; i < ARRAY_LEN(llm_hosts); i++)
		if (strcmp(llm_hosts[i], host) == 0)
			return true;
	return false;
}

/* The list of rules as it will be, in JSON: those for language models count. */
struct counting {
	struct buf rules; /* "[...]" */
	bool wide[ARRAY_LEN(llm_hosts)], own[ARRAY_LEN(llm_hosts)];
	size_t added, counted; /* counted: those that did before, too */
};

static void add_text(struct counting *c, const char *text, size_t n)
{
	buf_puts(&c->rules, c->rules.len > 1 ? "," : "");
	buf_add(&c->rules, text, n);
}

/* A rule as it is, or with llm in it. Its line is canonical JSON, an object that is not empty. */
static void add_rule(struct counting *c, const char *line, const struct policy_rule *rule)
{
	bool known = is_llm_host(rule->host);

	for (size_t i = 0; i < ARRAY_LEN(llm_hosts); i++) {
		bool same = strcmp(rule->host, llm_hosts[i]) == 0;

		c->own[i] |= same && has_port(rule, 443);
		c->wide[i] |=
			!same && has_port(rule, 443) && grant_host_covers(rule->host, llm_hosts[i]);
	}
	c->counted += rule->llm;
	if (!known || rule->llm) {
		add_text(c, line, strlen(line));
		return;
	}
	c->added++;
	add_text(c, line, strlen(line) - 1);
	buf_puts(&c->rules, ",\"llm\":true}");
}

/* Behind *, *.suffix and an open network there are language models, too: each gets a rule of its
 * own, which goes before the wider one. */
static void add_hosts(struct counting *c, bool open)
{
	for (size_t i = 0; i < ARRAY_LEN(llm_hosts); i++) {
		auto_buf rule = { 0 };

		if (c->own[i] || !(open || c->wide[i]))
			continue;
		buf_printf(&rule, "{\"host\":\"%s\",\"llm\":true}", llm_hosts[i]);
		add_text(c, buf_text(&rule), rule.len);
		c->rules.failed |= rule.failed;
		c->added++;
	}
}

/* Sets a field and lets it keep the origin that it had: what is changed is how it is meant. */
static int set_quietly(struct policy *p, enum policy_field field, const char *value,
		       struct ward_err *e)
{
	struct policy_origin origin = p->origin[field];
	int r = policy_set(p, policy_row(field)->path, value, false, POLICY_CLI, e);

	p->origin[field] = origin;
	return r;
}

static int give_prices(struct spec *s, struct ward_err *e)
{
	auto_buf list = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(models); i++)
		buf_printf(&list,
			   "%c{\"model\":\"%s\",\"input\":\"%s\",\"output\":\"%s\",\"cache_read\":"
			   "\"%s\",\"cache_write\":\"%s\"}",
			   i ? ',' : '[', models[i].name, models[i].input, models[i].output,
			   models[i].cache_read, models[i].cache_write);
	buf_puts(&list, "]");
	if (list.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	strv_add(&s->notes, "costs are counted by ward's own approximate prices, in US dollars; "
			    "network.prices replaces them");
	return set_quietly(&s->policy, POLICY_F_net_prices, buf_text(&list), e);
}

static int count_rules(struct spec *s, struct counting *c, struct ward_err *e)
{
	struct policy *p = &s->policy;

	buf_puts(&c->rules, "[");
	for (size_t i = 0; i < p->net_egress.len; i++) {
		struct policy_rule rule;
		int r = policy_rule_read(p->net_egress.items[i], &rule, e);

		if (r < 0)
			return ward_wrap(e, "network.egress_allowlist[%zu]", i);
		add_rule(c, p->net_egress.items[i], &rule);
	}
	add_hosts(c, p->net_mode == NET_MODE_OPEN);
	buf_puts(&c->rules, "]");
	if (c->rules.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (c->added && set_quietly(p, POLICY_F_net_egress, buf_text(&c->rules), e) < 0)
		return ward_wrap(e, "network.spend_limit");
	return 0;
}

/* A limit of the user's own defaults is for whatever counts; where nothing does, it is left out. */
static int check_counted(struct spec *s, const struct counting *c, struct ward_err *e)
{
	if (c->added || c->counted)
		return 0;
	if (s->policy.origin[POLICY_F_net_spend].source != POLICY_CLI) {
		s->policy.net_spend = POLICY_NONE;
		return 0;
	}
	ward_fail(e, EINVAL,
		  "network.spend_limit: no rule counts costs: no host in "
		  "network.egress_allowlist is known for language models");
	return ward_remedy(e, "--allow api.openai.com, or for another: --add "
			      "network.egress_allowlist='{host: llm.example.com, llm: true}'");
}

int spec_count_costs(struct spec *s, struct ward_err *e)
{
	struct policy *p = &s->policy;
	enum policy_source source = p->origin[POLICY_F_net_spend].source;
	struct counting c = { 0 };
	int r;

	if (p->net_spend == POLICY_NONE || (source != POLICY_CLI && source != POLICY_USER))
		return 0;
	if (p->net_mode == NET_MODE_NONE)
		return 0; /* nothing can be spent */
	r = count_rules(s, &c, e);
	if (r == 0)
		r = check_counted(s, &c, e);
	if (r == 0 && (c.added || c.counted) && !p->net_prices.len)
		r = give_prices(s, e);
	buf_free(&c.rules);
	return r;
}
