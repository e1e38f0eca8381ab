/*
 * An image as the root. In: a tree that an image build has made, and the plan's mounts. Out: an
 * overlay of two read-only layers in place of the new root: on top what ward itself made in its own
 * tmpfs (init, users, links, and a directory or file for everything that will be mounted), below it
 * the image. Runs in the child, before anything is mounted; raw system calls only.
 *
 * Every name that ward will ever use in the root is made in the tmpfs first, with all directories
 * above it. In the overlay those directories are ward's, merged with the image's: a link that the
 * image has in such a place is covered, so no link of an image is followed by ward, neither now nor
 * when something is mounted later.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/raw.h"
#include "engine/native/native.h"
#include "plan/certs.h"

#define IMAGE ".ward/image"

/* What other stages make where the root is ward's alone: review.c, gpus.c, trust.c. */
static const char *const own_points[] = { NATIVE_LAYER, NATIVE_NODE, &CERTS_DIR[1],
					  &CERTS_SYSTEM[1] };

static long make_points(struct native_child *c, const struct plan_image *image)
{
	long r = 0;

	for (size_t i = 0; i < image->point_count && r == 0; i++) {
		const struct plan_mount *m = &image->points[i];

		c->failed_path = m->target;
		if (m->kind == MOUNT_LINK || m->kind == MOUNT_FILE)
			r = native_make_own(c, m);
		else if (!m->in_bind)
			r = native_make_point(c->base_fd, m->target + 1, m->is_file);
	}
	for (size_t i = 0; i < ARRAY_LEN(own_points) && r == 0; i++)
		r = native_make_point(c->base_fd, own_points[i], false);
	if (r == 0 && image->workdir)
		r = native_make_point(c->base_fd, image->workdir + 1, false);
	return r;
}

/* The very tree that the plan saw. */
static long open_tree_checked(const struct plan_image *image)
{
	struct stat st;
	long fd, r;

	if (image->tree_fd >= 0)
		return image->tree_fd;
	fd = raw_call(SYS_openat, AT_FDCWD, image->root,
		      O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	r = raw_call(SYS_fstat, fd, &st);
	if (r == 0 && (st.st_dev != image->dev || st.st_ino != image->ino))
		r = -ESTALE;
	return r < 0 ? r
		     : raw_call(SYS_open_tree, fd, "",
				AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

long native_image(struct native_child *c, const struct plan_image *image)
{
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						 MOUNT_ATTR_NODEV };
	long r = make_points(c, image), tree;

	if (r < 0)
		return r;
	c->failed_path = image->root;
	r = raw_call(SYS_mkdirat, c->base_fd, IMAGE, 0700);
	tree = r < 0 ? r : open_tree_checked(image);
	if (tree < 0)
		return tree;
	r = raw_call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &closed, sizeof(closed));
	if (r == 0)
		r = native_attach((int)tree, c->base_fd, IMAGE);
	if (r == 0)
		r = raw_call(SYS_mount, "ward", ".", "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV,
			     "lowerdir=.:" IMAGE ",redirect_dir=nofollow,metacopy=off");
	if (r < 0)
		return r;
	/* what is at that path now is the overlay; the layers stay behind in the old root */
	raw_call(SYS_close, c->base_fd);
	c->base_fd = (int)raw_call(SYS_openat, AT_FDCWD, c->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = c->base_fd < 0 ? c->base_fd : raw_call(SYS_fchdir, c->base_fd);
	if (r == 0)
		c->layers[LAYER_MOUNT] = LAYER_IN_FORCE;
	return r;
}
