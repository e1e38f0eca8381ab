/*
 * process.children: what a sandbox needs to start others. In: the policy. Out: ward's client
 * (guest/stand_in.c) as `ward` in PATH, and the mount of the socket over which it speaks to
 * ward-children, which run/children.c starts; in a child, that of the socket for messages, which
 * its parent's ward-children made for it alone. Refuses what cannot hold a child apart: a child has
 * the workspace read-only, and writes in host mounts only, which nothing inside can move or replace
 * as long as they are mount points. Runs in `ward` with the user's rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/syscall.h>

#include "plan/plan_root.h"

#define FIELD "process.children"

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
		return refuse_here("only isolation native with namespaces can start other "
				   "sandboxes",
				   "use isolation: native, or remove it from the policy", e);
	if (p->image.root)
		return refuse_here("it is not supported in an image",
				   "remove it from the policy, or use image: host", e);
	if (s->policy.proc_nesting)
		return refuse_here("with process.nesting the mounts that hold children apart could "
				   "be left behind",
				   "remove one of them", e);
	if (p->review)
		return refuse_here("children would not see changes that wait for ward apply",
				   "use filesystem.mode: read_write or read_only", e);
	if (strv_has(&s->policy.fs_programs, "ward"))
		return refuse_here("ward is in filesystem.programs, and inside it is ward's client",
				   "remove it from filesystem.programs", e);
	return 0;
}

/* As root the child that builds the sandbox has no right to the path. */
static int add_channel(struct plan *p, struct ward_err *e)
{
	struct plan_mount *m = plan_add_bind(p, p->spec->channel, PLAN_CHANNEL_SOCKET);

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->is_file = true;
	if (!p->spec->starts || p->ids.mode == IDS_OWN)
		return 0;
	m->tree_fd = (int)syscall(SYS_open_tree, AT_FDCWD, p->spec->channel,
				  AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return m->tree_fd < 0 ? ward_fail_errno(e, "WARD_CHANNEL: cannot mount the socket") : 0;
}

int plan_add_children(struct plan *p, struct ward_err *e)
{
	struct plan_mount *m;
	int r;

	if (p->spec->channel && add_channel(p, e) < 0)
		return -e->code;
	if (!p->spec->policy.proc_children && p->spec->policy.channels.len) {
		ward_fail(e, EINVAL, "channels: the sandbox may have no children");
		return ward_remedy(e, "set process.children, or remove channels");
	}
	if (!p->spec->policy.proc_children)
		return 0;
	r = check_host(p, e);
	if (r < 0)
		return r;
	m = plan_add_bind(p, "(the socket of " FIELD ")", PLAN_CHILDREN_SOCKET);
	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->is_file = true;
	return 0;
}
