/*
 * filesystem.scratch: more directories that are private, empty and writable, as /tmp is. In: paths
 * of the policy. Out: mounts of the plan, each of which only the sandbox sees and which end with
 * it. Pure but for what an image has. A path that would cover something that is in view, or lie in
 * it, is refused: nothing else of the plan changes its meaning by one.
 */
#include "plan/plan_root.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"

#define SCRATCH_MAX 8
#define SCRATCH_PATH_MAX 255

/* What the system and ward have, also where an image has it. */
static const char *const reserved[] = { "/.ward", "/bin",   "/dev",   "/etc",    "/home",
					"/lib",   "/lib32", "/lib64", "/libx32", "/proc",
					"/sbin",  "/sys",   "/tmp",   "/usr" };

static bool overlap(const char *a, const char *b)
{
	return path_is_beneath(a, b) || path_is_beneath(b, a);
}

static const char *find_overlap(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (overlap(path, reserved[i]))
			return reserved[i];
	for (size_t i = 0; i < p->mount_count; i++)
		if (overlap(path, p->mounts[i].target))
			return p->mounts[i].target;
	for (size_t i = 0; i < p->system->mount_count; i++)
		if (overlap(path, p->system->mounts[i].target))
			return p->system->mounts[i].target;
	return NULL;
}

static int check(const struct plan *p, const char *given, struct ward_err *e)
{
	auto_free char *path = path_clean(given);
	const char *other;

	if (!path || strcmp(path, given) != 0 || strcmp(path, "/") == 0 ||
	    strlen(path) > SCRATCH_PATH_MAX) {
		ward_fail(e, EINVAL, "filesystem.scratch: %s is not the path of a directory inside",
			  given);
		return ward_remedy(e, "an absolute path without \"..\" or a slash at its end, such "
				      "as /srv/data");
	}
	other = find_overlap(p, path);
	if (other) {
		ward_fail(e, EINVAL, "filesystem.scratch: %s would cover %s, or lie in it", path,
			  other);
		return ward_remedy(e, "choose another path; /tmp and the home are writable");
	}
	if (strcmp(p->spec->policy.image, "host") != 0 && !plan_image_has(p, path)) {
		ward_fail(e, ENOENT, "filesystem.scratch: the image has no directory %s", path);
		return ward_remedy(e, "make it when the image is built");
	}
	return 0;
}

int plan_add_scratch(struct plan *p, struct ward_err *e)
{
	const struct strv *wanted = &p->spec->policy.fs_scratch;
	uint64_t inodes = p->limits[LIMIT_INODES].value;

	if (!wanted->len)
		return 0;
	if (wanted->len > SCRATCH_MAX)
		return ward_fail(e, E2BIG, "filesystem.scratch: at most %d directories",
				 SCRATCH_MAX);
	if (p->spec->inner) {
		ward_fail(e, ENOTSUP, "filesystem.scratch: only with isolation: native or oci");
		return ward_remedy(e, "remove it from the policy");
	}
	for (size_t i = 0; i < wanted->len; i++) {
		struct plan_mount *m;
		int r = check(p, wanted->items[i], e);

		if (r < 0)
			return r;
		m = plan_add_tmpfs(p, wanted->items[i], 0755);
		if (!m)
			return ward_fail(e, ENOMEM, "out of memory");
		m->noexec = false;
		m->bytes = plan_private_bytes(p);
		m->inodes = inodes != POLICY_NONE ? inodes : 0;
	}
	return 0;
}
