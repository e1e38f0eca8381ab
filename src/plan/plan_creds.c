/*
 * Credentials in a plan. In: the policy's grants. Out: placeholders in the environment inside, or a
 * refusal: what a grant needs of the rest of the policy is not there, a name is taken twice. Runs
 * in the supervisor; nothing is fetched here (egress/creds_start.c does).
 */
#include <errno.h>
#include <string.h>

#include "model/inner.h"
#include "plan/plan_root.h"
#include "plan/plan_tape.h"
#include "policy/policy_grant.h"
#include "policy/policy_ssh.h"

#define PLACEHOLDER_TEXT "(a placeholder)"
#define PLACEHOLDER_REPLAY                                                                         \
	"ward-replay-placeholder" /* no secret was asked for: nothing has its shape */

/* A rule that says how it is to be passed keeps the gateway from seeing requests. */
static int check_host(struct plan *p, size_t grant, const char *text, struct ward_err *e)
{
	const struct rule *rule;
	struct rules_match m;
	struct host host;

	if (strncmp(text, "*.", 2) == 0 || host_read(text, strlen(text), &host) != HOST_FINE)
		return 0;
	m = rules_match(p->net.rules, &host, 443);
	if (m.rule < 0 || m.denied) {
		if (p->net.rules->network != RULES_OPEN)
			strv_addf(&p->notes,
				  "credentials.grants[%zu]: %s:443 is not in "
				  "network.egress_allowlist, so the secret is never used there",
				  grant, text);
		return 0;
	}
	rule = &p->net.rules->items[m.rule];
	if (rule->ask)
		strv_addf(&p->notes,
			  "credentials.grants[%zu]: the rule for %s asks a person and passes TLS "
			  "uninspected, "
			  "so the secret is never used there",
			  grant, text);
	if (rule->moded &&
	    (rule->mode == RULE_SPLICE || rule->mode == RULE_TCP || rule->mode == RULE_HTTP)) {
		ward_fail(e, EINVAL,
			  "credentials.grants[%zu]: the rule for %s passes TLS uninspected, so "
			  "ward cannot inject a secret",
			  grant, text);
		return ward_remedy(e, "set mode: inspect in that rule of network.egress_allowlist, "
				      "or remove its mode");
	}
	return 0;
}

static int check_grants(struct plan *p, const struct policy_grant *grants, size_t count,
			struct ward_err *e)
{
	int r = grants_check(grants, count, e);

	for (size_t i = 0; r == 0 && i < count; i++)
		for (size_t k = 0; r == 0 && k < grants[i].hosts.len; k++)
			r = check_host(p, i, grants[i].hosts.items[k], e);
	return r;
}

static void show_words(struct plan *p, const struct policy_grant *grants, size_t count,
		       const char *text)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < grants[i].variables.len; k++)
			plan_set_env(p, grants[i].variables.items[k],
				     strlen(grants[i].variables.items[k]), text);
}

/* No server is there that a secret could go to: no source is asked. */
static bool is_replayed(const struct plan *p)
{
	return p->live->tape && p->live->tape->replay;
}

static int add_grants(struct plan *p, const struct policy_grant *grants, size_t count,
		      struct ward_err *e)
{
	int r = check_grants(p, grants, count, e);

	/* whatever process.env says: placeholders, which egress/creds_start.c replaces by those of
	 * ward-secrets */
	if (r == 0)
		show_words(p, grants, count,
			   p->spec->starts && is_replayed(p) ? PLACEHOLDER_REPLAY
							     : PLACEHOLDER_TEXT);
	return r;
}

/* -- ssh */

/* A login to a host that no rule allows cannot happen. */
static int check_ssh_hosts(struct plan *p, size_t entry, struct ward_err *e)
{
	auto_policy_ssh s = { 0 };
	int r = policy_ssh_read(p->spec->policy.cred_ssh.items[entry], &s, e);

	for (size_t i = 0; r == 0 && i < s.hosts.len; i++) {
		struct ssh_host at;
		struct rules_match m;
		struct host host;

		if (!ssh_host_split(s.hosts.items[i], &at) ||
		    host_read(at.host, strlen(at.host), &host) != HOST_FINE)
			continue;
		if (p->net.on) {
			m = rules_match(p->net.rules, &host, (uint16_t)at.port);
			if ((m.rule >= 0 && !m.denied) || p->net.rules->network == RULES_OPEN)
				continue;
		}
		strv_addf(&p->notes,
			  "credentials.ssh[%zu]: %s:%u is not in network.egress_allowlist, so "
			  "nothing can log in there",
			  entry, at.host, at.port);
	}
	return r;
}

/* What egress/creds_start.c fills when the run starts. */
static int add_later_file(struct plan *p, const char *shown, const char *target, struct ward_err *e)
{
	struct plan_mount *m = plan_add_bind(p, shown, target);

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->is_file = true;
	return 0;
}

/* The agent that signs, for ssh and for gpg. */
static int add_agent(struct plan *p, const char *field, struct ward_err *e)
{
	if (strcmp(p->engine, "native") != 0 || p->level != LEVEL_NAMESPACES) {
		ward_fail(e, ENOTSUP, "%s needs isolation: native with namespaces", field);
		return ward_remedy(e, "--isolation native; or git over https: --secret "
				      "GITHUB_TOKEN@github.com");
	}
	return add_later_file(p, "(the ssh-agent's socket)", PLAN_SSH_SOCKET, e);
}

/* One of them signs by default: git has one setting for it. */
static int check_one_signs(const struct policy *policy, struct ward_err *e)
{
	for (size_t i = 0; policy->cred_gpg.len && i < policy->cred_ssh.len; i++) {
		auto_policy_ssh s = { 0 };
		int r = policy_ssh_read(policy->cred_ssh.items[i], &s, e);

		if (r < 0)
			return r;
		if (s.sign) {
			ward_fail(
				e, EINVAL,
				"credentials.gpg and credentials.ssh[%zu].sign both say which key "
				"signs commits",
				i);
			return ward_remedy(e, "keep one of them");
		}
	}
	return 0;
}

static int add_gpg(struct plan *p, struct ward_err *e)
{
	int r = check_one_signs(&p->spec->policy, e);

	if (r == 0 && !p->spec->policy.cred_ssh.len)
		r = add_agent(p, "credentials.gpg", e);
	if (r == 0)
		r = add_later_file(p, "(ward-gpg)", PLAN_GPG, e);
	return r < 0 ? r : add_later_file(p, "(public gpg keys)", PLAN_GPG_KEYS, e);
}

static int add_ssh(struct plan *p, struct ward_err *e)
{
	int r = add_agent(p, "credentials.ssh: the ssh-agent", e);

	for (size_t i = 0; r == 0 && i < p->spec->policy.cred_ssh.len; i++)
		r = check_ssh_hosts(p, i, e);
	if (r < 0)
		return r;
	r = plan_add_file(p, "", PLAN_SSH_KNOWN);
	/* an image has an /etc/ssh of its own, or none */
	if (r == 0 && !p->image.root)
		r = plan_add_link(p, PLAN_SSH, "/etc/ssh");
	if (r < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	if (p->image.root)
		plan_set_env(p, "GIT_SSH_COMMAND", strlen("GIT_SSH_COMMAND"),
			     "ssh -o GlobalKnownHostsFile=" PLAN_SSH_KNOWN);
	plan_set_env(p, "SSH_AUTH_SOCK", strlen("SSH_AUTH_SOCK"), PLAN_SSH_SOCKET);
	return 0;
}

/* ssh and gpg ask an agent by a Unix socket, which programs of an inner runtime cannot reach. */
static int check_agent(const struct plan *p, struct ward_err *e)
{
	const struct policy *policy = &p->spec->policy;

	if (!p->spec->inner || policy->cred_mode == CRED_MODE_NONE ||
	    (!policy->cred_ssh.len && !policy->cred_gpg.len))
		return 0;
	ward_fail(
		e, ENOTSUP,
		"credentials.%s: programs behind isolation: %s cannot connect to the agent of the "
		"sandbox",
		policy->cred_ssh.len ? "ssh" : "gpg", p->spec->inner->name);
	return ward_remedy(e, "use isolation: native or oci, or remove it from the policy");
}

int plan_add_creds(struct plan *p, struct ward_err *e)
{
	const struct policy *policy = &p->spec->policy;
	struct policy_grant *grants = NULL;
	size_t count = 0;
	int r;

	if (check_agent(p, e) < 0)
		return -e->code;
	if (policy->cred_ssh.len && policy->cred_mode != CRED_MODE_NONE && add_ssh(p, e) < 0)
		return -e->code;
	if (policy->cred_gpg.len && policy->cred_mode != CRED_MODE_NONE && add_gpg(p, e) < 0)
		return -e->code;
	if (policy->cred_gpg.len && policy->cred_mode == CRED_MODE_NONE)
		strv_add(&p->notes, "credentials.mode is none: credentials.gpg is not in force");
	if (policy->cred_ssh.len && policy->cred_mode == CRED_MODE_NONE)
		strv_add(&p->notes, "credentials.mode is none: credentials.ssh is not in force");
	if (!policy->cred_grants.len)
		return 0;
	if (policy->cred_mode == CRED_MODE_NONE) {
		strv_addf(&p->notes, "credentials.mode is none: %zu grants are not in force",
			  policy->cred_grants.len);
		return 0;
	}
	if (policy->net_mode == NET_MODE_NONE) {
		ward_fail(e, EINVAL,
			  "credentials.grants: the gateway injects secrets, but network.mode is "
			  "none");
		return ward_remedy(e, "set network.mode: restricted, with the grants' hosts in "
				      "network.egress_allowlist; or credentials.mode: none");
	}
	r = grants_read(policy, &grants, &count, e);
	if (r == 0)
		r = add_grants(p, grants, count, e);
	grants_free(grants, count);
	return r;
}
