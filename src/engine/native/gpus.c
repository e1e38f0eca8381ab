/*
 * Devices: graphics processors, and /dev/kvm for a virtual machine. In: the plan's devices and
 * texts. Out: their nodes in /dev, read-only as files (the devices themselves can be written), and
 * a /proc/driver/nvidia that knows only these. Runs in the child before pivot_root, while the root
 * can still be changed; raw system calls only.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/raw.h"
#include "engine/native/native.h"
#include "host/gpus.h"

#define PROC_DIR (&GPUS_PROC[1])

static long set_dev(struct native_child *c, bool writable)
{
	struct mount_attr attr = { .attr_set = writable ? 0 : MOUNT_ATTR_RDONLY,
				   .attr_clr = writable ? MOUNT_ATTR_RDONLY : 0 };

	return raw_call(SYS_mount_setattr, c->base_fd, "dev", 0, &attr, sizeof(attr));
}

/* The node of the agent's own lies in a file system that is in view only while the node is
 * bound. */
static long bind_own(struct native_child *c, const char *target)
{
	long r = native_make_point(c->base_fd, NATIVE_NODE, false);

	if (r == 0)
		r = native_attach(c->tree_fds[c->next_tree++], c->base_fd, NATIVE_NODE);
	if (r < 0)
		return r;
	r = raw_call(SYS_mount, NATIVE_NODE "/node", target, 0, MS_BIND, 0);
	raw_call(SYS_umount2, NATIVE_NODE, MNT_DETACH);
	return r;
}

static long bind_device(struct native_child *c, const struct plan_device *d)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NOEXEC };
	const char *target = d->path + 1;
	struct stat st;
	long r = native_make_point(c->base_fd, target, true);

	c->failed_path = d->path;
	if (r == 0)
		r = d->tree_fd >= 0 ? bind_own(c, target)
				    : raw_call(SYS_mount, d->path, target, 0, MS_BIND, 0);
	if (r == 0)
		r = raw_call(SYS_newfstatat, c->base_fd, target, &st, AT_SYMLINK_NOFOLLOW);
	/* the device that the plan saw, and no other */
	if (r == 0 && (!S_ISCHR(st.st_mode) || st.st_rdev != d->device))
		r = -ESTALE;
	return r < 0 ? r : raw_call(SYS_mount_setattr, c->base_fd, target, 0, &attr, sizeof(attr));
}

static long make_texts(struct native_child *c, const struct plan_gpus *g)
{
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY };
	long r;

	c->failed_path = GPUS_PROC;
	r = raw_call(SYS_mount, "ward", PROC_DIR, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		     "mode=0755,size=1m");
	if (r == -ENOENT || r == -ENOTDIR)
		return 0; /* this kernel's /proc does not say anything of them */
	for (size_t i = 0; i < g->text_count && r == 0; i++) {
		struct plan_mount m = { .kind = MOUNT_FILE,
					.source = g->texts[i].text,
					.target = g->texts[i].path,
					.mode = 0444 };

		c->failed_path = m.target;
		r = native_make_own(c, &m);
	}
	return r < 0 ? r
		     : raw_call(SYS_mount_setattr, c->base_fd, PROC_DIR, 0, &closed,
				sizeof(closed));
}

long native_gpus(struct native_child *c)
{
	const struct plan_gpus *g = c->plan->gpus;
	const struct plan_devices *d = c->plan->devices;
	long r, end;

	if (!d)
		return 0;
	c->failed_path = "/dev";
	r = set_dev(c, true);
	for (size_t i = 0; i < d->len && r == 0; i++)
		r = bind_device(c, &d->items[i]);
	end = set_dev(c, false);
	if (r == 0 && end < 0)
		r = end;
	/* a runtime mounts /proc itself, and nothing in it */
	return r == 0 && g && g->text_count && !c->bundle ? make_texts(c, g) : r;
}
