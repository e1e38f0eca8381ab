/*
 * The way to what ward itself believes. In: a path of ward's own (profiles, state, programs). Out:
 * rules of a tree that keep a sandbox from putting something else there: what lies in the tree, and
 * each link on the way that does. Runs in the supervisor with the user's rights.
 */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "guard/guard_internal.h"

#define LINKS_MAX 40

int guard_protect_place(struct guard_root *g, const char *place, bool is_dir, struct ward_err *e)
{
	size_t n = strlen(g->path);

	if (!path_is_beneath(place, g->path) || !place[n])
		return 0;
	return guard_add_path_rule(g, place + (n > 1 ? n + 1 : 1), is_dir, e);
}

/* One name of the way: *at is where it stands, *rest what follows it. Both are replaced. */
static int step_towards(struct guard_root *g, char **at, char **rest, unsigned *links,
			struct ward_err *e)
{
	char *name = *rest + strspn(*rest, "/"), *behind = name + strcspn(name, "/"), target[4096],
	     *longer = NULL;
	auto_free char *place = NULL;
	ssize_t n;
	int r = 0;

	if (*behind)
		*behind++ = '\0';
	place = path_join(*at, name);
	n = place ? readlink(place, target, sizeof(target) - 1) : -1;
	target[n < 0 ? 0 : n] = '\0';
	if (n >= 0)
		r = ++*links > LINKS_MAX
			    ? ward_fail(e, ELOOP, "too many symbolic links on the way to %.300s",
					place)
			    : guard_protect_place(g, place, false, e);
	if (r < 0)
		return r;
	if (!place || asprintf(&longer, "%s/%s", target, behind) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	free(*rest);
	*rest = longer;
	if (n < 0 || *target == '/') {
		free(*at);
		*at = n < 0 ? take_ptr(place) : strdup("/");
	}
	return *at ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

int guard_protect_way(struct guard_root *g, const char *path, char **ret_real, struct ward_err *e)
{
	auto_free char *rest = strdup(path), *at = strdup("/");
	unsigned links = 0;
	int r = rest && at ? 0 : ward_fail(e, ENOMEM, "out of memory");

	while (r == 0 && rest[strspn(rest, "/")])
		r = step_towards(g, &at, &rest, &links, e);
	if (r == 0)
		*ret_real = take_ptr(at);
	return r;
}
