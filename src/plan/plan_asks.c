/*
 * What asks a person. ward-ask, with which programs inside propose rules (approvals.proposals):
 * where the engine can show it, with the socket that it connects to (run/proposals.c).
 * filesystem.ask: files outside of the view that a person is asked about. In: paths of the policy,
 * the plan's mounts. Out: the paths, as they are written and without links, for the supervisor
 * (observe/file_ask.c), which answers an open of one of them. A path that the sandbox sees anyway
 * is refused: there the kernel opens it, and nobody would be asked. So is what cannot hold it. Runs
 * in `ward` with the user's rights.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "plan/path_view.h"
#include "plan/plan_root.h"
#include "protocol/ask.h"

#define FIELD "filesystem.ask"
#define ASKS_MAX 64

static int refuse_here(const char *why, const char *remedy, struct ward_err *e)
{
	ward_fail(e, ENOTSUP, FIELD ": %s", why);
	return ward_remedy(e, "%s", remedy);
}

static int check_host(const struct plan *p, struct ward_err *e)
{
	const struct spec *s = p->spec;

	if (p->level == LEVEL_LANDLOCK || s->inner ||
	    (s->engine && strcmp(s->engine, "native") != 0))
		return refuse_here("only isolation native with namespaces enforces it",
				   "use isolation: native, or remove it from the policy", e);
	if (p->image.root)
		return refuse_here("it is not enforced in an image",
				   "remove it from the policy, or use image: host", e);
	if (p->commands && p->commands->listed)
		return refuse_here("with an allow list in process.commands what was given could "
				   "be executed",
				   "remove one of them", e);
	if (s->policy.fs_ask.len > ASKS_MAX)
		return ward_fail(e, E2BIG, FIELD ": more than %d paths", ASKS_MAX);
	return 0;
}

static int add(struct plan *p, size_t i, struct ward_err *e)
{
	const char *path = p->spec->policy.fs_ask.items[i];
	const struct path_view view = path_view_of(p);
	auto_free char *clean = path_clean(path), *real = realpath(path, NULL);
	struct stat st;

	if (!clean)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!real || stat(real, &st) < 0) {
		ward_fail(e, errno, FIELD "[%zu]: %s: %s", i, path, strerror(errno));
		return ward_remedy(e, "name a file or directory of this host, or remove it");
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return ward_fail(e, EINVAL, FIELD "[%zu]: %s: neither a file nor a directory", i,
				 path);
	if (strcmp(real, "/") == 0)
		return ward_fail(e, EINVAL, FIELD "[%zu]: %s: it is the whole file system", i,
				 path);
	if (!path_view_is_elsewhere(&view, real) || !path_view_is_elsewhere(&view, clean)) {
		ward_fail(e, EINVAL,
			  FIELD "[%zu]: %s: the sandbox sees it anyway, so no question is asked", i,
			  path);
		return ward_remedy(e, "remove it here, or hide it, or do not mount it");
	}
	strv_add(&p->asks, clean);
	strv_add(&p->asks_real, real);
	return p->asks.failed || p->asks_real.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* An engine without it has no ward-ask, and says so only where the policy names it. */
int plan_add_proposals(struct plan *p, struct ward_err *e)
{
	const struct policy *policy = &p->spec->policy;
	const struct spec *s = p->spec;
	struct plan_mount *m;

	if (policy->appr_mode != APPROVALS_ASK || !policy->appr_proposals)
		return 0;
	if (p->level == LEVEL_LANDLOCK || s->inner ||
	    (s->engine && strcmp(s->engine, "native") != 0)) {
		if (policy->origin[POLICY_F_appr_proposals].source != POLICY_DEFAULT)
			strv_add(&p->notes, "approvals.proposals: only isolation native with "
					    "namespaces has ward-ask inside");
		return 0;
	}
	m = plan_add_bind(p, "(the socket of approvals.proposals)", ASK_SOCKET);
	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->is_file = true;
	p->proposals = true;
	return 0;
}

int plan_add_asks(struct plan *p, struct ward_err *e)
{
	size_t count = p->spec->policy.fs_ask.len;
	int r = count ? check_host(p, e) : 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = add(p, i, e);
	return r;
}
