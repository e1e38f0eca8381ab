/*
 * Which runtime, and its words. In: the policy. Out: the path of runc or crun and the command line
 * that makes a container and leaves it alone. Runs in the supervisor; starts nothing. Only the
 * system's own directories are looked in: a runtime sees the host's files. crun is asked to leave
 * cgroups alone, runc finds them read-only, which is the same.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "engine/oci/oci.h"
#include "protocol/guest.h"

static const char *const places[] = { "/usr/sbin", "/usr/bin", "/usr/local/sbin",
				      "/usr/local/bin" };
/* as oci.runtime counts them, behind auto */
static const char *const names[] = { "runc", "crun" };

static bool look_in_places(const char *name, struct oci_runtime *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(ret->path, sizeof(ret->path), "%s/%s", places[i], name);
		if (access(ret->path, X_OK) == 0)
			return true;
	}
	return false;
}

static int not_there(const char *name, struct ward_err *e)
{
	ward_fail(e, ENOENT, "%s is not installed", name);
	return ward_remedy(e, "apt-get install %s", name);
}

int oci_find_runtime(unsigned wanted, struct oci_runtime *ret, struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((wanted == OCI_AUTO || wanted == i + 1) && look_in_places(names[i], ret)) {
			ret->crun = i + 1 == OCI_CRUN;
			return 0;
		}
	return not_there(names[wanted == OCI_CRUN], e);
}

int oci_runtime_words(const struct oci_runtime *r, const char *bundle, const char *id,
		      struct strv *texts, struct ward_err *e)
{
	_Static_assert(GUEST_LOG_FD == 4 && GUEST_CONTROL_FD == 3,
		       "the runtime passes the first descriptor behind 0-2 on");

	strv_add(texts, "ward-outer");
	strv_add(texts, r->path);
	strv_add(texts, "--root");
	strv_addf(texts, "%s/" OCI_STATE, bundle);
	strv_add(texts, "--log");
	strv_add(texts, "/proc/self/fd/4");
	if (r->crun)
		strv_add(texts, "--cgroup-manager=disabled");
	strv_add(texts, "run");
	strv_add(texts, "--detach");
	strv_add(texts, "--bundle");
	strv_add(texts, bundle);
	strv_add(texts, "--preserve-fds");
	strv_add(texts, "1");
	strv_add(texts, id);
	return texts->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

const char *oci_choose_dir(const struct plan *p, const struct oci_runtime *r)
{
	static const char *const candidates[] = { "/mnt", "/srv", "/media", "/opt", "/boot",
						  "/tmp", "/var", "/home",  "/root" };

	for (size_t i = 0; i < ARRAY_LEN(candidates); i++) {
		bool used = (p->image.root && path_is_beneath(p->image.root, candidates[i])) ||
			    path_is_beneath(r->path, candidates[i]);
		struct stat st;

		for (size_t k = 0; k < p->mount_count; k++)
			used |= p->mounts[k].kind == MOUNT_BIND &&
				path_is_beneath(p->mounts[k].source, candidates[i]);
		if (!used && lstat(candidates[i], &st) == 0 && S_ISDIR(st.st_mode))
			return candidates[i];
	}
	return NULL;
}
