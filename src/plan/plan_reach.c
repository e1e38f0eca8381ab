/*
 * What of the host a sandbox can write to. In: the plan's mounts and a path. Out: whether something
 * inside could change what is there. Files that ward writes, reads or runs outside with the user's
 * rights must not lie there. Links are resolved first: a text says nothing about a place. Runs in
 * the supervisor as the user.
 */
#include "plan/plan_reach.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "model/plan.h"

#define LINKS_MAX 40

static bool is_writable(const struct plan_mount *m)
{
	return m->kind == MOUNT_BIND && m->from_policy && m->writable;
}

const char *plan_reach(const struct plan *p, const char *real)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (is_writable(&p->mounts[i]) && path_is_beneath(real, p->mounts[i].source))
			return p->mounts[i].source;
	return path_is_beneath(real, p->workspace) ? p->workspace : NULL;
}

void plan_reach_list(const struct plan *p, struct strv *ret)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (is_writable(&p->mounts[i]))
			strv_add(ret, p->mounts[i].source);
	strv_add(ret, p->workspace);
}

int plan_reach_file(const struct plan *p, const char *field, const char *path, char **ret,
		    struct ward_err *e)
{
	const char *name = strrchr(path, '/') + 1, *where;
	auto_free char *parent = strndup(path, (size_t)(name - path)), *file = NULL;
	char dir[PATH_MAX];

	if (!parent)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!realpath(parent, dir)) {
		ward_fail_errno(e, "%s: the directory of %s", field, path);
		return ward_remedy(e, "create the directory first");
	}
	if (asprintf(&file, "%s/%s", dir[1] ? dir : "", name) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	where = plan_reach(p, file);
	if (where) {
		ward_fail(e, EINVAL, "%s: %s is in %s, which the sandbox can write to", field, path,
			  where);
		return ward_remedy(e,
				   "name a file in a directory that the sandbox cannot write to");
	}
	*ret = take_ptr(file);
	return 0;
}

static int refuse_link(const char *field, const char *path, const char *link, const char *real,
		       struct ward_err *e)
{
	ward_fail(e, EPERM,
		  "%s: %.300s leads to %.300s through the link %.300s, which a sandbox could have "
		  "made",
		  field, path, real, link);
	return ward_remedy(e, "name %.300s directly, if you want to mount it", real);
}

int plan_reach_way(const struct plan *p, const char *field, const char *path, const char *real,
		   struct ward_err *e)
{
	auto_free char *rest = strdup(path), *at = strdup("/");
	unsigned links = 0;

	while (rest && at && rest[strspn(rest, "/")]) {
		char *name = rest + strspn(rest, "/"), *behind = name + strcspn(name, "/"),
		     target[PATH_MAX], *longer = NULL;
		auto_free char *place = NULL;
		const char *where;
		ssize_t n;

		if (*behind)
			*behind++ = '\0';
		place = path_join(at, name);
		n = place ? readlink(place, target, sizeof(target) - 1) : -1;
		target[n < 0 ? 0 : n] = '\0';
		where = n < 0 ? NULL : plan_reach(p, place);
		if (where && !path_is_beneath(real, where))
			return refuse_link(field, path, place, real, e);
		if (n >= 0 && ++links > LINKS_MAX)
			return ward_fail(e, ELOOP, "%s: %.300s: too many links", field, path);
		if (!place || asprintf(&longer, "%s/%s", target, behind) < 0)
			return ward_fail(e, ENOMEM, "out of memory");
		free(rest);
		rest = longer;
		if (n < 0 || *target == '/') {
			free(at);
			at = n < 0 ? take_ptr(place) : strdup("/");
		}
	}
	return rest && at ? 0 : ward_fail(e, ENOMEM, "out of memory");
}
