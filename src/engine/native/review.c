/*
 * The workspace under review. In: the real workspace and the run's layer directory. Out: an overlay
 * at the workspace's own path: what is read comes from the workspace, what is written goes to the
 * layer. Runs in the child before pivot_root, with the capabilities of its own user namespace; raw
 * system calls only.
 *
 * Both directories are mounted for a moment in ward's own directory of the new root, one in the
 * other, where the overlay finds them by names that hold no character of the options' syntax, and
 * are unmounted together: nothing inside can reach either of them but through the overlay. Its
 * attributes are in user.overlay (the only ones that a user namespace may write; the kernel keeps
 * the sandbox from setting them), so directories are not redirected: renaming one of the
 * workspace's is EXDEV. It is volatile: no process has to wait for the disk when the sandbox ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/raw.h"
#include "engine/native/native.h"

#define LAYER NATIVE_LAYER
#define LOWER LAYER "/lower" /* an empty directory of the supervisor's; or the workspace's copy */

static const char options[] = "lowerdir=" LOWER ",upperdir=" LAYER "/upper,workdir=" LAYER
			      "/work,userxattr,volatile,index=off";

/* The layer: a mount that the supervisor made, or one of our own. */
static long open_layer(const struct native_child *c)
{
	if (c->layer_fd >= 0)
		return c->layer_fd;
	return raw_call(SYS_open_tree, AT_FDCWD, c->layer_path,
			AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

static long attach(struct native_child *c, long tree, const char *point)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	long r = tree < 0 ? tree
			  : raw_call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr,
				     sizeof(attr));

	return r < 0 ? r : native_attach((int)tree, c->base_fd, point);
}

long native_attach_review(struct native_child *c, const struct plan_mount *m, long lower_tree)
{
	const char *target = m->target + 1;
	bool made = c->system->image; /* image.c did, in a root that is read-only by now */
	long r = made ? 0 : raw_call(SYS_mkdirat, c->base_fd, LAYER, 0700);

	c->failed_path = c->layer_path;
	if (r == 0)
		r = attach(c, open_layer(c), LAYER);
	c->failed_path = m->target;
	if (r == 0 && !c->layer_copy)
		r = attach(c, lower_tree, LOWER);
	if (r == 0)
		r = native_make_point(c->base_fd, target, false);
	if (r == 0) {
		r = raw_call(SYS_mount, "ward", target, "overlay",
			     MS_NOSUID | MS_NODEV | (m->noexec ? MS_NOEXEC : 0), options);
		c->review_refused = r < 0;
	}
	if (r == 0)
		r = raw_call(SYS_umount2, LAYER, MNT_DETACH);
	return r < 0 || made ? r : raw_call(SYS_unlinkat, c->base_fd, LAYER, AT_REMOVEDIR);
}
