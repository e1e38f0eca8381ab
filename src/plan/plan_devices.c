/*
 * Device nodes that appear in a sandbox's /dev. In: the node's path outside, and the field of the
 * policy that wants it. Out: a row of the plan's devices. Runs in the supervisor; opens no device.
 *
 * A node that only a group may open (render nodes, /dev/kvm) is of no use to root's agent, who is
 * in no group: root makes a node of the same device for the agent alone, in a file system that is
 * mounted nowhere else.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "plan/plan_root.h"

int plan_make_node(dev_t device, uid_t uid, gid_t gid)
{
	auto_fd fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), root = -1;

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	root = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
			    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (root < 0 || mknodat(root, "node", S_IFCHR | 0600, device) < 0 ||
	    fchownat(root, "node", uid, gid, 0) < 0 || fchmodat(root, "node", 0600, 0) < 0)
		return -errno;
	/* a part of a file system that is attached nowhere can be cloned from Linux 6.15 on; before
	 * that all of it is handed over */
	return take_fd(&root);
}

/* Whether the agent may open it, as it is. */
static bool agent_may(const struct plan *p, const char *node, const struct stat *st)
{
	if (p->ids.mode == IDS_OWN)
		return access(node, R_OK | W_OK) == 0;
	if (p->ids.host_uid == st->st_uid)
		return (st->st_mode & 0600) == 0600;
	return (st->st_mode & (p->ids.host_gid == st->st_gid ? 0060 : 0006)) ==
	       (p->ids.host_gid == st->st_gid ? 0060 : 0006);
}

static int cannot_open(const char *field, const char *node, const char *groups,
		       const struct stat *st, struct ward_err *e)
{
	ward_fail(e, EACCES, "%s: the agent may not open %s (mode %04o, group %u)", field, node,
		  st->st_mode & 07777, st->st_gid);
	return ward_remedy(e, "add yourself to the group that owns it (often %s), and log in again",
			   groups);
}

int plan_add_device(struct plan *p, const char *field, const char *node, const char *groups,
		    struct ward_err *e)
{
	struct plan_devices *d = p->devices ? p->devices : calloc(1, sizeof(*d));
	struct plan_device *new;
	struct stat st;

	if (!d)
		return ward_fail(e, ENOMEM, "out of memory");
	p->devices = d;
	for (size_t i = 0; i < d->len; i++)
		if (strcmp(d->items[i].path, node) == 0)
			return 0;
	if (lstat(node, &st) < 0 || !S_ISCHR(st.st_mode))
		return 1;
	if (d->len == PLAN_DEVICES_MAX)
		return ward_fail(e, E2BIG, "%s: more than %d devices", field, PLAN_DEVICES_MAX);
	strv_add(&p->strings, node);
	if (p->strings.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	new = &d->items[d->len++];
	*new = (struct plan_device){ .path = p->strings.items[p->strings.len - 1],
				     .device = st.st_rdev,
				     .tree_fd = -1 };
	if (agent_may(p, node, &st))
		return 0;
	if (p->facts.uid != 0)
		return cannot_open(field, node, groups, &st, e);
	if (!p->spec->starts)
		return 0;
	new->tree_fd = plan_make_node(st.st_rdev, p->ids.host_uid, p->ids.host_gid);
	return new->tree_fd < 0 ? cannot_open(field, node, groups, &st, e) : 0;
}

void plan_devices_free(struct plan_devices *d)
{
	for (size_t i = 0; d && i < d->len; i++)
		own_close_fd(&d->items[i].tree_fd);
	free(d);
}
