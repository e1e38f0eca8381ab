/*
 * Fetching the secrets of a run. In: a plan that will be started. Out: ward-secrets running with
 * the secrets, and its placeholders in the environment inside; or why a secret cannot be had. Runs
 * in the supervisor, after the plan was checked and before the sandbox starts.
 */
#include "egress/creds_start.h"

#include <errno.h>
#include <string.h>

#include "egress/secrets.h"
#include "plan/plan_root.h"
#include "plan/plan_tape.h"

/* The host's paths that exist inside, and the words that the command will see. */
static int collect(const struct plan *p, struct strv *seen, struct strv *words, struct ward_err *e)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND && p->mounts[i].from_policy)
			strv_add(seen, p->mounts[i].source);
	strv_add(seen, p->workspace);
	for (size_t i = 0; i < p->env.len; i++)
		strv_add(words, p->env.items[i]);
	for (char *const *word = p->spec->argv; word && *word; word++)
		strv_add(words, *word);
	return seen->failed || words->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Whether there is something to fetch: in a replay no server is there that a secret could go to. */
static bool wants_secrets(const struct plan *p)
{
	const struct policy *policy = &p->spec->policy;

	return p->spec->starts && policy->cred_grants.len && policy->cred_mode != CRED_MODE_NONE &&
	       !(p->live->tape && p->live->tape->replay);
}

int creds_start(struct plan *p, struct ward_err *e)
{
	auto_strv seen = { 0 }, words = { 0 }, shown = { 0 };
	int r;

	if (!wants_secrets(p))
		return 0;
	r = collect(p, &seen, &words, e);
	if (r == 0)
		r = secrets_start(&p->spec->policy, &seen, &words, &p->live->secrets, &shown, e);
	for (size_t i = 0; r == 0 && i < shown.len; i++) {
		const char *equals = strchr(shown.items[i], '=');

		plan_set_env(p, shown.items[i], (size_t)(equals - shown.items[i]), equals + 1);
	}
	return r < 0 ? r : p->env.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

void creds_end(struct plan *p)
{
	secrets_end(p->live->secrets);
	p->live->secrets = NULL;
}
