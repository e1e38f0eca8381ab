/*
 * Credentials in a plan. In: the policy's grants. Out: what they need of the rest of the policy is there, or a refusal: a network
 * that lets the gateway see requests, names that are not taken twice.
 */
#include "lib/plan_creds.h"

#include <errno.h>
#include <string.h>

#include "policy/policy_grant.h"

static int check_names(const struct policy_grant *grants, size_t count, struct ward_err *e)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++) {
			if (strcmp(grants[i].name, grants[k].name) == 0)
				return ward_fail(e, EINVAL, "credentials.grants[%zu].name: %s is the name of grants[%zu] already", i,
						 grants[i].name, k);
			for (size_t v = 0; v < grants[i].variables.len; v++)
				if (strv_has(&grants[k].variables, grants[i].variables.items[v])) {
					ward_fail(e, EINVAL, "credentials.grants[%zu]: the placeholder of %s and that of %s would both stand in %s",
						  i, grants[i].name, grants[k].name, grants[i].variables.items[v]);
					return ward_remedy(e, "give one of them another variable: as: NAME");
				}
		}
	return 0;
}

int plan_creds_check(const struct policy *p, struct ward_err *e)
{
	struct policy_grant grants[GRANTS_MAX];
	size_t count = 0;
	int r = 0;

	if (p->cred_mode == CRED_MODE_NONE || !p->cred_grants.len)
		return 0;
	if (p->net_mode == NET_MODE_NONE) {
		ward_fail(e, EINVAL, "credentials.grants: a secret is put in by the gateway, and network.mode is none");
		return ward_remedy(e, "network.mode: restricted, with the grants' hosts in network.egress_allowlist; or credentials.mode: none");
	}
	if (p->cred_grants.len > GRANTS_MAX)
		return ward_fail(e, E2BIG, "credentials.grants: more than %d grants", GRANTS_MAX);
	for (; r == 0 && count < p->cred_grants.len; count += r == 0) {
		r = policy_grant_read(p->cred_grants.items[count], &grants[count], e);
		if (r < 0)
			ward_wrap(e, "credentials.grants[%zu]", count);
	}
	if (r == 0)
		r = check_names(grants, count, e);
	while (count)
		policy_grant_clear(&grants[--count]);
	if (r == 0)
		r = ward_fail(e, ENOTSUP, "credentials.grants: not yet supported by this build");
	return r;
}
